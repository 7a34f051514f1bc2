//! `beehive switches`, `ports`, `links`, `hosts` and `flows`: what a running controller says, as a table or as JSON.

pub(crate) mod question;
mod table;
pub(crate) mod whereabouts;

use crate::api::{Failed, Flows, Hosts, Links, Ports, Switches, Verified};
use clap::Args;
use question::{Method, Question};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;
use whereabouts::Whereabouts;

/// How long an answer may take: longer than the controller waits for its switches.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What all questions have in common.
#[derive(Args, Debug)]
struct Common {
    #[command(flatten)]
    controller: Whereabouts,

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

    /// Only missing, different, stray and foreign flows; ends with status 3 if there are any but foreign ones
    ///
    /// Foreign flows are others' to keep or to take away: they are shown, and are no drift.
    #[arg(long)]
    drift: bool,

    /// Have flows put right at once, and say what that came to, before listing them
    #[arg(long)]
    verify: bool,

    #[command(flatten)]
    common: Common,
}

/// The status that `flows --drift` ends with if there is any.
const DRIFT: u8 = 3;

pub(crate) fn switches(arguments: SwitchesArgs) -> ExitCode {
    let question = Question::new(Method::Get, "/api/v1/switches");
    watch(&arguments.common, |common| {
        let answer: Switches = ask(common, &question)?;
        show(common, &answer, || table::switches(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn ports(arguments: PortsArgs) -> ExitCode {
    let question = Question::new(Method::Get, "/api/v1/ports").with("switch", arguments.switch.as_deref());
    watch(&arguments.common, |common| {
        let answer: Ports = ask(common, &question)?;
        show(common, &answer, || table::ports(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn links(arguments: LinksArgs) -> ExitCode {
    let question = Question::new(Method::Get, "/api/v1/links").with("switch", arguments.switch.as_deref());
    watch(&arguments.common, |common| {
        let answer: Links = ask(common, &question)?;
        show(common, &answer, || table::links(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn hosts(arguments: HostsArgs) -> ExitCode {
    let question = Question::new(Method::Get, "/api/v1/hosts").with("switch", arguments.switch.as_deref());
    watch(&arguments.common, |common| {
        let answer: Hosts = ask(common, &question)?;
        show(common, &answer, || table::hosts(&answer))?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn flows(arguments: FlowsArgs) -> ExitCode {
    let FlowsArgs { switch, drift, verify, common } = arguments;
    let list = Question::new(Method::Get, "/api/v1/flows")
        .with("switch", switch.as_deref())
        .with("drift", drift.then_some("true"));
    let put_right = Question::new(Method::Post, "/api/v1/flows/verify").with("switch", switch.as_deref());
    watch(&common, |common| {
        if verify {
            let verified: Verified = ask(common, &put_right)?;
            // a list follows on standard output, which a program may read
            eprint!("{}", table::verified(&verified))
        }
        let answer: Flows = ask(common, &list)?;
        show(common, &answer, || table::flows(&answer))?;
        let drifts = answer.flows.iter().any(|flow| flow.state.is_drift());
        let status = if drift && drifts { DRIFT } else { 0 };
        Ok(ExitCode::from(status))
    })
}

/// Does `once` once, or again and again; says on standard error what goes wrong.
fn watch(common: &Common, once: impl Fn(&Common) -> Result<ExitCode, String>) -> ExitCode {
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

fn ask<T: DeserializeOwned>(common: &Common, question: &Question) -> Result<T, String> {
    let http = &common.controller.http;
    let (status, body) = question.ask(http, ANSWER_LIMIT, ANSWER_BYTES_MAX)?;
    if status == 200 {
        return serde_json::from_slice(&body)
            .map_err(|error| format!("what serves HTTP at {http} is not this version of Beehive: {error}"));
    }
    match serde_json::from_slice::<Failed>(&body) {
        Ok(failed) => Err(failed.error.message),
        Err(_) => Err(format!("{http}: HTTP status {status}: {}", body.trim_ascii().escape_ascii())),
    }
}

fn show(common: &Common, answer: &impl Serialize, table: impl Fn() -> String) -> Result<(), String> {
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
