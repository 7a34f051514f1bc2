//! `beehive reload`: makes a running controller reload its configuration file.

use super::endpoint::Endpoint;
use super::request::{Method, Request};
use super::{Common, fetch, print, repeat};
use crate::api::Reloaded;
use clap::Args;
use std::process::ExitCode;

/// Makes a running controller reload its configuration file, as SIGHUP does, and prints the changes.
///
/// The settings of apps (the tables [apps.*]) take effect at once: all of them, or none if the file has an error.
/// Changed keys of [controller] are listed, and take effect at the next start.
#[derive(Args, Debug)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    controller: Endpoint,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn reload(arguments: ReloadArgs) -> ExitCode {
    let ReloadArgs { controller, json } = arguments;
    let request = Request::new(Method::Post, "/api/v1/reload");
    repeat(&Common { controller, json, watch: None }, |common| {
        let answer: Reloaded = fetch(common, &request)?;
        print(common, &answer, || text(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn text(answer: &Reloaded) -> String {
    let Reloaded { apps, at_next_start, without_effect } = answer;
    let mut text = match apps[..] {
        [] => "no app settings have changed\n".to_string(),
        _ => format!("settings changed: {}\n", apps.join(", ")),
    };

    if !at_next_start.is_empty() {
        text += &format!("take effect at the next start: {}\n", at_next_start.join(", "));
    }
    if !without_effect.is_empty() {
        text += &format!("ignored, because the apps are not running: {}\n", without_effect.join(", "));
    }

    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_listed() {
        let none = Reloaded::default();
        assert_eq!(text(&none), "no app settings have changed\n");
        let words = |word: &str| vec![word.to_string()];
        let all = Reloaded {
            apps: words("hosts"),
            at_next_start: words("listen"),
            without_effect: words("firewall"),
        };

        let expected = "settings changed: hosts\ntake effect at the next start: listen\n\
            ignored, because the apps are not running: firewall\n";
        assert_eq!(text(&all), expected);
    }
}
