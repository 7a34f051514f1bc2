//! `beehive maps`: prints the map derived for each handler of the controller's apps.

use crate::program;
use beehive_core::{Durability, HandlerReport, Handlers};
use beehive_nom::apps::{
    Discovery, Firewall, Forwarding, Hosts, Hub, LearningSwitch, LoopGuard, NodeController, Topology,
};
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// Shows which cells the messages of each handler touch
///
/// Lists each handler of the controller's apps: its message type, the kind of its map, the cells that it uses, the
/// cells whose owners it merges permanently, the source line that forces all of its messages to a single bee, and a
/// remedy. `beehive top` shows the effect in a running controller.
#[derive(Args, Debug)]
pub(crate) struct MapsArgs {
    /// Show only these apps; can be given several times
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    app: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The maps of one app, with the function that renders them as a table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AppMaps {
    app: &'static str,
    /// Number of copies of the app's state that the attribute `#[app(replication = n)]` requests.
    /// A hive that runs alone keeps one copy.
    replication_asked: u32,
    /// The durability that the app declares with `#[app(durability = "..")]`. `null` if the hive decides.
    durability_asked: Option<Durability>,
    handlers: &'static [HandlerReport],
    #[serde(skip)]
    table: fn() -> String,
}

/// Returns the maps of app `A`.
pub(crate) fn maps_of<A: Handlers>() -> AppMaps {
    AppMaps {
        app: A::NAME,
        replication_asked: A::OPTIONS.replication,
        durability_asked: A::OPTIONS.durability,
        handlers: A::REPORT,
        table: A::map_report,
    }
}

/// Returns the maps of all apps that the controller can run, the `custom` apps first.
fn apps(custom: Vec<AppMaps>) -> Vec<AppMaps> {
    let built_in = [
        maps_of::<NodeController>(),
        maps_of::<LearningSwitch>(),
        maps_of::<Hub>(),
        maps_of::<Discovery>(),
        maps_of::<Topology>(),
        maps_of::<LoopGuard>(),
        maps_of::<Firewall>(),
        maps_of::<Hosts>(),
        maps_of::<Forwarding>(),
    ];
    let others = built_in.into_iter().filter(|app| custom.iter().all(|custom| custom.app != app.app));
    let others: Vec<_> = others.collect();
    custom.into_iter().chain(others).collect()
}

/// Prints the maps. `custom` holds the maps of the apps added to the controller.
pub(crate) fn run(arguments: MapsArgs, custom: Vec<AppMaps>) -> ExitCode {
    match text(&arguments, custom) {
        Ok(text) => {
            // a closed pipe (`| head`) is not a failure
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{} maps: {failure}", program::name());
            ExitCode::FAILURE
        }
    }
}

fn text(arguments: &MapsArgs, custom: Vec<AppMaps>) -> Result<String, String> {
    let mut apps = apps(custom);
    let names: Vec<&str> = apps.iter().map(|a| a.app).collect();
    if let Some(unknown) = arguments.app.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("unknown app `{unknown}` (expected {})", names.join(", ")));
    }

    apps.retain(|a| arguments.app.is_empty() || arguments.app.iter().any(|name| name == a.app));
    if arguments.json {
        return serde_json::to_string_pretty(&apps).map(|json| json + "\n").map_err(|e| e.to_string());
    }

    Ok(apps.iter().map(|a| (a.table)()).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(app: &[&str], json: bool) -> Result<String, String> {
        text(&MapsArgs { app: app.iter().map(ToString::to_string).collect(), json }, Vec::new())
    }

    #[test]
    fn every_app_of_the_controller_is_there() {
        let all = shown(&[], false).unwrap();
        for app in crate::controller::app_names() {
            assert!(all.contains(&format!("{app}\n")), "{app} is missing in\n{all}");
        }
    }

    #[test]
    fn one_app_as_a_table_and_as_json() {
        let table = shown(&["learning-switch"], false).unwrap();
        let head = "learning-switch\n  replication: 1 (asked for 3)\n  handler";
        assert!(table.starts_with(head), "{table}");
        assert!(table.contains("packet_in") && table.contains("macs[msg.node]"), "{table}");
        assert!(!table.contains("node-controller"), "{table}");
        let json: serde_json::Value =
            serde_json::from_str(&shown(&["learning-switch"], true).unwrap()).unwrap();
        assert_eq!(json[0]["replication_asked"], 3);
        let handlers = json[0]["handlers"].as_array().unwrap();
        let packet_in = handlers.iter().find(|h| h["name"] == "packet_in").unwrap();
        assert_eq!(
            (packet_in["kind"].as_str(), packet_in["answer"].as_str()),
            (Some("sharded"), Some("PacketOut"))
        );

        assert!(packet_in["file"].as_str().unwrap().ends_with("learning.rs"));
    }

    #[test]
    fn an_unknown_app_is_named_with_those_that_are_there() {
        let words = shown(&["switch"], false).unwrap_err();
        assert!(words.contains("`switch`") && words.contains("learning-switch"), "{words}");
    }
}
