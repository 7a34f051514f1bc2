//! `beehive bench`: load generators, one subcommand each.

mod openflow;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// What `beehive bench` is asked to do.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Target {
    Openflow(Box<openflow::OpenflowArgs>),
}

/// Runs the chosen generator to its end. It blocks (it owns its threads), so call it outside of an async runtime.
///
/// The exit code is 0 when the measurement is sound, 1 when it could not be made or lost switches on the way.
pub(crate) fn run(args: BenchArgs) -> ExitCode {
    match args.target {
        Target::Openflow(args) => openflow::run(*args),
    }
}
