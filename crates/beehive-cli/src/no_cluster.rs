//! `beehive cluster` in a program that was built without it: says how to build one that has it.

use crate::program;
use clap::Args;
use std::process::ExitCode;

/// Runs several hives that replicate each other's state (not in this build)
#[derive(Args, Debug)]
pub(crate) struct NoClusterArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _all: Vec<String>,
}

pub(crate) fn run() -> ExitCode {
    eprintln!(
        "{} cluster: this program was built without it; build with `--features cluster`: cargo run --bin beehive --features cluster -- \
         cluster up",
        program::name()
    );
    ExitCode::FAILURE
}
