//! `beehive switches`, `ports`, `links`, `hosts`, `flows`, `dead-letters` and `reload`: what a running controller says, as a table or as JSON.

pub(crate) mod endpoint;
mod reload;
pub(crate) mod request;
mod tables;

use crate::api::{DeadLetters, Discarded, Flows, Hosts, Links, Ports, Resent, Switches, Verified};
use clap::Args;
use endpoint::Endpoint;
pub(crate) use reload::{ReloadArgs, reload};
use request::{Method, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How long an answer may take: longer than the controller waits for its switches.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What all questions have in common.
#[derive(Args, Debug)]
struct Common {
    #[command(flatten)]
    controller: Endpoint,

    /// Print JSON, one object
    #[arg(long)]
    json: bool,

    /// Ask again and again, every so many seconds; with --json, an object a line
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch: Option<u64>,
}

/// Lists the switches that are connected.
///
/// Since it connected: IN are packets that came up, SHED those of them that were dropped because the controller was behind,
/// OUT packets that were sent, FLOWS-SENT flows that it was told of (`beehive flows` shows those that it has).
#[derive(Args, Debug)]
pub(crate) struct SwitchesArgs {
    #[command(flatten)]
    common: Common,
}

/// Lists the ports of the switches.
#[derive(Args, Debug)]
pub(crate) struct PortsArgs {
    /// Those of this switch only
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Lists the links between switches, as discovery has found them.
#[derive(Args, Debug)]
pub(crate) struct LinksArgs {
    /// Those of this switch only
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Lists the hosts: where they are, and which addresses they say to have.
#[derive(Args, Debug)]
pub(crate) struct HostsArgs {
    /// Those at this switch only
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Lists the flows of the switches: what is there, what should be there, which app wants it and what for.
///
/// STATE is `intended` (there, as it should be), `soft` (there until it times out), `missing`, `different` (another one is
/// in its place), `stray` (of ours, and wanted by nobody) or `foreign` (not of ours; left alone).
#[derive(Args, Debug)]
pub(crate) struct FlowsArgs {
    /// Those of this switch only
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,

    /// Only missing, different, stray, foreign and unknown flows; ends with status 3 if there are any but foreign ones, or
    /// a switch does not tell its flows
    ///
    /// Foreign flows are others' to keep or to take away: they are shown, and are no drift.
    #[arg(long)]
    drift: bool,

    /// Have flows put right at once, and say what that came to, before listing them
    #[arg(long)]
    verify: bool,

    /// Print the flows in the syntax of ovs-ofctl, one a line; with --json, beside the rest
    ///
    /// The state, the app and the cause of a flow follow as a comment. With --switch, the list is a file that `ovs-ofctl
    /// diff-flows BRIDGE FILE` compares with what a bridge has.
    #[arg(long)]
    ofctl: bool,

    #[command(flatten)]
    common: Common,
}

/// Lists messages that could not be handled, because their handler panicked or broke a rule; sends them again, or throws
/// them away.
///
/// AGE is in seconds. CHAIN is the number of the message from outside that caused it all; log lines name it, too. With --json, there
/// is all of each: who sent it, and all of the error.
#[derive(Args, Debug)]
pub(crate) struct DeadLettersArgs {
    /// Send a message again to the app that could not handle it: one of these numbers, or `all`. What is left is listed then
    #[arg(long, value_name = "NUMBER", conflicts_with = "watch")]
    resend: Option<Selection>,

    /// Throw a letter away: one of these numbers, or `all`. What is left is listed then
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["watch", "resend"])]
    discard: Option<Selection>,

    #[command(flatten)]
    common: Common,
}

/// One dead letter, or all.
#[derive(Clone, Copy, Debug)]
enum Selection {
    One(u64),
    All,
}

impl std::str::FromStr for Selection {
    type Err = String;
    fn from_str(text: &str) -> Result<Selection, String> {
        match text {
            "all" => Ok(Selection::All),
            number => number.parse().map(Selection::One).map_err(|_| "a number, or `all`".to_string()),
        }
    }
}

impl Selection {
    fn of(self, request: Request) -> Request {
        match self {
            Selection::One(number) => request.with("number", Some(&number.to_string())),
            Selection::All => request.with("all", Some("true")),
        }
    }
}

/// The status that `flows --drift` ends with if there is any.
const DRIFT_STATUS: u8 = 3;

pub(crate) fn switches(arguments: SwitchesArgs) -> ExitCode {
    let request = Request::new(Method::Get, "/api/v1/switches");
    repeat(&arguments.common, |common| {
        let answer: Switches = fetch(common, &request)?;
        print(common, &answer, || tables::switches(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn ports(arguments: PortsArgs) -> ExitCode {
    let request = Request::new(Method::Get, "/api/v1/ports").with("switch", arguments.switch.as_deref());
    repeat(&arguments.common, |common| {
        let answer: Ports = fetch(common, &request)?;
        print(common, &answer, || tables::ports(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn links(arguments: LinksArgs) -> ExitCode {
    let request = Request::new(Method::Get, "/api/v1/links").with("switch", arguments.switch.as_deref());
    repeat(&arguments.common, |common| {
        let answer: Links = fetch(common, &request)?;
        print(common, &answer, || tables::links(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn hosts(arguments: HostsArgs) -> ExitCode {
    let request = Request::new(Method::Get, "/api/v1/hosts").with("switch", arguments.switch.as_deref());
    repeat(&arguments.common, |common| {
        let answer: Hosts = fetch(common, &request)?;
        print(common, &answer, || tables::hosts(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn flows(arguments: FlowsArgs) -> ExitCode {
    let FlowsArgs { switch, drift, verify, ofctl, common } = arguments;
    let list = Request::new(Method::Get, "/api/v1/flows")
        .with("switch", switch.as_deref())
        .with("drift", drift.then_some("true"))
        .with("ofctl", ofctl.then_some("true"));
    let verify_request = Request::new(Method::Post, "/api/v1/flows/verify").with("switch", switch.as_deref());
    repeat(&common, |common| {
        if verify {
            let verified: Verified = fetch(common, &verify_request)?;
            // a list follows on standard output, which a program may read
            eprint!("{}", tables::verified(&verified))
        }
        let answer: Flows = fetch(common, &list)?;
        print(common, &answer, || if ofctl { tables::ofctl(&answer) } else { tables::flows(&answer) })?;
        // what is not told cannot be said to be right
        let drifts = answer.flows.iter().any(|flow| flow.state.is_drift()) || !answer.unread.is_empty();
        let status = if drift && drifts { DRIFT_STATUS } else { 0 };
        Ok(ExitCode::from(status))
    })
}

pub(crate) fn dead_letters(arguments: DeadLettersArgs) -> ExitCode {
    let DeadLettersArgs { resend, discard, common } = arguments;
    let path = "/api/v1/dead-letters";
    let list = Request::new(Method::Get, path);
    repeat(&common, |common| {
        let mut all_resent = true;
        // a list follows on standard output, which a program may read
        if let Some(selection) = resend {
            let request = selection.of(Request::new(Method::Post, "/api/v1/dead-letters/resend"));
            let resent: Resent = fetch(common, &request)?;
            all_resent = resent.not_resent.is_empty();
            eprint!("{}", tables::resent(&resent))
        }
        if let Some(selection) = discard {
            let discarded: Discarded = fetch(common, &selection.of(Request::new(Method::Delete, path)))?;
            eprintln!("{} thrown away", discarded.discarded.len())
        }
        let answer: DeadLetters = fetch(common, &list)?;
        print(common, &answer, || tables::dead_letters(&answer))?;
        Ok(if all_resent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Does `once` once, or again and again; says on standard error what goes wrong.
fn repeat(common: &Common, once: impl Fn(&Common) -> Result<ExitCode, String>) -> ExitCode {
    loop {
        let outcome = once(common);
        if let Err(why) = &outcome {
            eprintln!("beehive: {why}")
        }
        match common.watch {
            // a controller that is away may come back
            Some(seconds) => std::thread::sleep(Duration::from_secs(seconds)),
            None => return outcome.unwrap_or(ExitCode::FAILURE),
        }
    }
}

fn fetch<T: DeserializeOwned>(common: &Common, request: &Request) -> Result<T, String> {
    request.fetch(&common.controller, TIMEOUT, ANSWER_BYTES_MAX)
}

fn print(common: &Common, answer: &impl Serialize, table: impl Fn() -> String) -> Result<(), String> {
    let mut out = std::io::stdout();
    let text = match (common.json, common.watch) {
        (true, Some(_)) => serde_json::to_string(answer).map_err(|error| error.to_string())? + "\n",
        (true, None) => serde_json::to_string_pretty(answer).map_err(|error| error.to_string())? + "\n",
        // a screen at a time
        (false, Some(_)) if out.is_terminal() => format!("\x1b[H\x1b[2J{}", table()),
        (false, Some(_)) => table() + "\n",
        (false, None) => table(),
    };
    // whoever read it may be gone: `| head`
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(error.to_string()),
        Ok(()) => Ok(()),
    }
}
