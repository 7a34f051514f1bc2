//! The commands that query a running controller over HTTP: `switches`, `ports`, `links`, `hosts`, `flows`, `dead-letters`, `reload`.

pub(crate) mod endpoint;
mod reload;
pub(crate) mod request;
mod tables;

use crate::api::{DeadLetters, Discarded, Flows, Hosts, Links, Ports, Resent, Switches, Verified};
use crate::program;
use clap::Args;
use endpoint::Endpoint;
pub(crate) use reload::{ReloadArgs, reload};
use request::{Method, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Request timeout; longer than the time the controller waits for its switches.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The flags that all these commands share.
#[derive(Args, Debug)]
struct Common {
    #[command(flatten)]
    controller: Endpoint,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Repeat the query every SECONDS seconds; with --json, print one object per line
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch: Option<u64>,
}

/// Lists the connected switches.
///
/// The counters start when a switch connects. IN counts packet-ins, SHED the packet-ins that were dropped because the
/// controller was overloaded, OUT packet-outs, and FLOWS-SENT the flow-mods that add a flow (`beehive flows` shows
/// the flows that a switch has).
#[derive(Args, Debug)]
pub(crate) struct SwitchesArgs {
    #[command(flatten)]
    common: Common,
}

/// Lists the ports of the switches.
#[derive(Args, Debug)]
pub(crate) struct PortsArgs {
    /// Show only the switch with this datapath id
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Lists the links between switches that the app `discovery` has found.
#[derive(Args, Debug)]
pub(crate) struct LinksArgs {
    /// Show only the switch with this datapath id
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Lists the hosts with their locations and the IP addresses that they announce.
#[derive(Args, Debug)]
pub(crate) struct HostsArgs {
    /// Show only hosts at the switch with this datapath id
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Lists the installed and intended flows of the switches, with
/// the app that wants each flow and the message that caused it.
///
/// STATE is `intended` (installed as intended), `soft` (installed until it times out), `missing` (intended, but not
/// installed), `different` (another flow is in its place), `stray` (installed by this controller, but no longer
/// intended), `foreign` (installed by another controller, and left unchanged) or `unknown` (intended, but the switch
/// did not report its flows).
#[derive(Args, Debug)]
pub(crate) struct FlowsArgs {
    /// Show only the switch with this datapath id
    #[arg(long, value_name = "DATAPATH")]
    switch: Option<String>,

    /// Show only missing, different, stray, foreign and unknown flows; exit with status 3 if there are any except
    /// foreign ones, or if a switch does not report its flows
    ///
    /// Foreign flows belong to another controller. They are listed, but do not count as drift.
    #[arg(long)]
    drift: bool,

    /// Reconcile the flows now and print the result to standard error before listing them
    #[arg(long)]
    verify: bool,

    /// Print the flows in the syntax of ovs-ofctl, one per line; with --json, add this form to each flow
    ///
    /// State, app and cause follow each flow as a comment. With --switch, `ovs-ofctl diff-flows BRIDGE FILE` can
    /// compare the list with the flows of a bridge.
    #[arg(long)]
    ofctl: bool,

    #[command(flatten)]
    common: Common,
}

/// Lists dead letters, which are messages whose handler panicked or broke a rule. Resends or discards them on request.
///
/// AGE is in seconds. CHAIN identifies the causal chain, which an external message started; log lines contain this
/// id, too. --json also shows the sender, and does not shorten messages and errors.
#[derive(Args, Debug)]
pub(crate) struct DeadLettersArgs {
    /// Resend the message with this number, or `all`, to the app that failed to handle it; then list the remaining ones
    #[arg(long, value_name = "NUMBER", conflicts_with = "watch")]
    resend: Option<Selection>,

    /// Discard the dead letter with this number, or `all`; then list the remaining ones
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["watch", "resend"])]
    discard: Option<Selection>,

    #[command(flatten)]
    common: Common,
}

/// One dead letter or all dead letters.
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
            number => {
                number.parse().map(Selection::One).map_err(|_| "expected a number or `all`".to_string())
            }
        }
    }
}

impl Selection {
    /// Adds the selection to a request as a query parameter.
    fn of(self, request: Request) -> Request {
        match self {
            Selection::One(number) => request.with("number", Some(&number.to_string())),
            Selection::All => request.with("all", Some("true")),
        }
    }
}

/// Exit status of `flows --drift` if there is drift.
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
            // print to standard error, because a program may read the list from standard output
            eprint!("{}", tables::verified(&verified))
        }

        let answer: Flows = fetch(common, &list)?;
        print(common, &answer, || if ofctl { tables::ofctl(&answer) } else { tables::flows(&answer) })?;
        // counts a switch that did not report its flows as drift, because its flows may be wrong
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
        // print to standard error, because a program may read the list from standard output
        if let Some(selection) = resend {
            let request = selection.of(Request::new(Method::Post, "/api/v1/dead-letters/resend"));
            let resent: Resent = fetch(common, &request)?;
            all_resent = resent.not_resent.is_empty();
            eprint!("{}", tables::resent(&resent))
        }

        if let Some(selection) = discard {
            let discarded: Discarded = fetch(common, &selection.of(Request::new(Method::Delete, path)))?;
            eprintln!("{} discarded", discarded.discarded.len())
        }

        let answer: DeadLetters = fetch(common, &list)?;
        print(common, &answer, || tables::dead_letters(&answer))?;
        Ok(if all_resent { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Calls `once` one time, or repeatedly with `--watch`. Prints errors to standard error.
fn repeat(common: &Common, once: impl Fn(&Common) -> Result<ExitCode, String>) -> ExitCode {
    loop {
        let outcome = once(common);
        if let Err(why) = &outcome {
            eprintln!("{}: {why}", program::name())
        }
        match common.watch {
            // continue even after an error, because the controller may come back
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
        // clear the screen before each repetition
        (false, Some(_)) if out.is_terminal() => format!("\x1b[H\x1b[2J{}", table()),
        (false, Some(_)) => table() + "\n",
        (false, None) => table(),
    };

    // a closed pipe (`| head`) is not a failure
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(error.to_string()),
        Ok(()) => Ok(()),
    }
}
