//! `beehive top` and `beehive provenance`: two views of the status of a running controller.

mod client;
mod provenance;
mod status;
mod top;

use crate::client::endpoint::Endpoint;
use crate::program;
use clap::Args;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

pub(crate) use provenance::ProvenanceArgs;
pub(crate) use status::Status;
pub(crate) use top::{Top, TopArgs};

/// Maximum value of `--seconds` and `--watch`.
const SECONDS_MAX: u64 = 3600;

/// The flags of both commands: which controller to query, and how to print the view.
#[derive(Args, Debug)]
struct Source {
    #[command(flatten)]
    controller: Endpoint,

    /// Measure for N seconds and show the changes instead of the totals since the start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Repeat every SECONDS seconds; with --json, print one object per line
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    watch: Option<u64>,
}

impl Source {
    /// Fetches the status. With `--seconds`, fetches it twice and returns the difference.
    fn status(&self, sizes: bool) -> Result<status::Status, String> {
        let first = client::status(&self.controller, sizes)?;
        let Some(seconds) = self.seconds else { return Ok(first) };
        std::thread::sleep(Duration::from_secs(seconds));
        Ok(client::status(&self.controller, sizes)?.since(&first))
    }

    /// Prints the `view` of the status once or repeatedly, as JSON or rendered by `text`.
    fn show<V: Serialize>(
        &self,
        command: &str,
        sizes: bool,
        view: impl Fn(&status::Status) -> V,
        text: impl Fn(&V) -> String,
    ) -> ExitCode {
        loop {
            let shown = self.status(sizes).and_then(|status| {
                let view = view(&status);
                let json = match (self.json, self.watch) {
                    (false, _) => return Ok(text(&view)),
                    (true, Some(_)) => serde_json::to_string(&view),
                    (true, None) => serde_json::to_string_pretty(&view),
                };
                json.map(|json| json + "\n").map_err(|e| e.to_string())
            });

            let code = match shown {
                Ok(shown) => {
                    let mut out = std::io::stdout();
                    // clear the screen before each repetition
                    let clear = self.watch.is_some() && !self.json && out.is_terminal();
                    let start = if clear { "\x1b[H\x1b[2J" } else { "" };
                    // a closed pipe (`| head`) is not a failure
                    if out.write_all(format!("{start}{shown}").as_bytes()).and_then(|()| out.flush()).is_err()
                    {
                        return ExitCode::SUCCESS;
                    }
                    ExitCode::SUCCESS
                }
                Err(failure) => {
                    eprintln!("{} {command}: {failure}", program::name());
                    ExitCode::FAILURE
                }
            };

            match self.watch {
                // continue even after an error, because the controller may come back
                Some(seconds) => std::thread::sleep(Duration::from_secs(seconds)),
                None => return code,
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
