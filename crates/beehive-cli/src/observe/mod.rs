//! `beehive top` and `beehive provenance`: a running controller, seen through the status that it serves.

mod client;
mod provenance;
mod status;
mod table;
mod top;

use crate::client::whereabouts::Whereabouts;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) use provenance::ProvenanceArgs;
pub(crate) use top::TopArgs;

/// The longest time that a difference is taken over.
const SECONDS_MAX: u64 = 3600;

/// Which controller to ask, and how to show what it says.
#[derive(Args, Debug)]
struct Source {
    #[command(flatten)]
    controller: Whereabouts,

    /// Watch for so many seconds, and show what happened in them instead of everything since the start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Source {
    /// The status now, or what changed in the time that was asked for.
    fn status(&self, sizes: bool) -> Result<status::Status, String> {
        let first = client::status(&self.controller.http, sizes)?;
        let Some(seconds) = self.seconds else { return Ok(first) };
        std::thread::sleep(Duration::from_secs(seconds));
        Ok(client::status(&self.controller.http, sizes)?.since(&first))
    }

    /// Prints what `view` makes of the status, as JSON or as `text` makes of that.
    fn show<V: Serialize>(
        &self,
        command: &str,
        sizes: bool,
        view: impl FnOnce(&status::Status) -> V,
        text: impl FnOnce(&V) -> String,
    ) -> ExitCode {
        let shown = self.status(sizes).and_then(|status| {
            let view = view(&status);
            match self.json {
                true => {
                    serde_json::to_string_pretty(&view).map(|json| json + "\n").map_err(|e| e.to_string())
                }
                false => Ok(text(&view)),
            }
        });
        match shown {
            Ok(shown) => {
                // whoever reads it may be gone: that is no failure
                let _ = std::io::stdout().write_all(shown.as_bytes());
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("beehive {command}: {failure}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Runs `beehive top`.
pub(crate) fn top(arguments: TopArgs) -> ExitCode {
    let TopArgs { source, most, sizes } = arguments;
    source.show("top", sizes, |status| top::Top::of(status, most), top::Top::text)
}

/// Runs `beehive provenance`.
pub(crate) fn provenance(arguments: ProvenanceArgs) -> ExitCode {
    arguments.source.show("provenance", false, provenance::Provenance::of, provenance::Provenance::text)
}
