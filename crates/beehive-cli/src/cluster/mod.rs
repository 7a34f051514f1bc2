//! `beehive cluster`: runs several hives on this machine, each a process of its own, so that one can see what happens when one
//! of them is killed.
//!
//! ```text
//!              a pipe to each one: the token; its end ends the hive
//!   up.rs ───────────────────────────────────────────────► hive.rs  hive 1 ─┐
//!  (parent) ◄───── a pipe from each one: address, colonies            hive 2 ├─ sockets
//!                                                                     hive 3 ─┘
//! ```
//!
//! `store.rs` is the app that they run, and its HTTP interface.

mod hive;
mod store;
mod up;

use crate::program;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Runs several hives that replicate each other's state (experimental)
#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpArgs),
    #[command(hide = true)]
    Hive(hive::HiveArgs),
}

/// The reason why a command fails, as a message for the user.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs `beehive cluster`.
pub(crate) fn run(arguments: ClusterArgs) -> ExitCode {
    let (who, ended) = match arguments.command {
        Command::Up(arguments) => ("cluster up".to_string(), up::run(&arguments)),
        Command::Hive(arguments) => (format!("cluster: hive {}", arguments.number), hive::run(&arguments)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{} {who}: {why}", program::name());
            ExitCode::FAILURE
        }
    }
}
