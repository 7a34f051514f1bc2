//! `beehive bench`: load generators, each of which is a subcommand.

mod openflow;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// The arguments of `beehive bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Target {
    Openflow(Box<openflow::OpenflowArgs>),
}

/// Runs the chosen load generator to completion. Blocks the calling thread, so call it outside an async runtime.
///
/// The exit status is 0 if the result is valid, and 1 if the measurement failed or a switch lost its connection.
pub(crate) fn run(args: BenchArgs) -> ExitCode {
    match args.target {
        Target::Openflow(args) => openflow::run(*args),
    }
}
