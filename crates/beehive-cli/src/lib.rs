//! The `beehive` program, which is an SDN controller and its tools,
//! and [`Controller`], the same controller for your own apps.

// the generated code refers to this crate as `beehive`
#[cfg(any(test, feature = "cluster"))]
extern crate beehive_core as beehive;

mod api;
mod bench;
mod client;
#[cfg(feature = "cluster")]
mod cluster;
mod controller;
mod data;
mod decode;
mod http;
mod log_filter;
mod maps;
mod new;
#[cfg(not(feature = "cluster"))]
mod no_cluster;
mod observe;
mod program;
mod table;

pub use controller::Controller;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Beehive: an SDN controller and its tools.
///
/// `beehive controller` needs no flags: it runs a learning switch for every switch that connects with OpenFlow 1.0 to 1.5.
#[derive(Debug, Parser)]
#[command(name = "beehive", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Controller(Box<controller::ControllerArgs>),
    #[command(flatten)]
    Tool(Tool),
    /// Measures a program by generating load.
    Bench(bench::BenchArgs),
    Decode(decode::DecodeArgs),
    New(new::NewArgs),
    #[cfg(feature = "cluster")]
    Cluster(cluster::ClusterArgs),
    #[cfg(not(feature = "cluster"))]
    #[command(hide = true)]
    Cluster(no_cluster::NoClusterArgs),
}

/// The commands that a program built with [`Controller`] has, too.
#[derive(Debug, Subcommand)]
enum Tool {
    Switches(client::SwitchesArgs),
    Ports(client::PortsArgs),
    Links(client::LinksArgs),
    Hosts(client::HostsArgs),
    Flows(client::FlowsArgs),
    DeadLetters(client::DeadLettersArgs),
    Data(data::DataArgs),
    Maps(maps::MapsArgs),
    Provenance(observe::ProvenanceArgs),
    Reload(client::ReloadArgs),
    Top(observe::TopArgs),
}

impl Tool {
    /// Runs the command. `custom` holds the maps of the apps added to the controller.
    fn run(self, custom: Vec<maps::AppMaps>) -> ExitCode {
        match self {
            Tool::Switches(arguments) => client::switches(arguments),
            Tool::Ports(arguments) => client::ports(arguments),
            Tool::Links(arguments) => client::links(arguments),
            Tool::Hosts(arguments) => client::hosts(arguments),
            Tool::Flows(arguments) => client::flows(arguments),
            Tool::DeadLetters(arguments) => client::dead_letters(arguments),
            Tool::Data(arguments) => data::run(arguments),
            Tool::Maps(arguments) => maps::run(arguments, custom),
            Tool::Provenance(arguments) => observe::provenance(arguments),
            Tool::Reload(arguments) => client::reload(arguments),
            Tool::Top(arguments) => observe::top(arguments),
        }
    }
}

/// Parses the command line and runs the subcommand it names.
pub fn run() -> ExitCode {
    match Arguments::parse().command {
        Command::Controller(arguments) => controller::run(*arguments),
        Command::Tool(tool) => tool.run(Vec::new()),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Decode(arguments) => decode::run(arguments),
        Command::New(arguments) => new::run(arguments),
        #[cfg(feature = "cluster")]
        Command::Cluster(arguments) => cluster::run(arguments),
        #[cfg(not(feature = "cluster"))]
        Command::Cluster(_) => no_cluster::run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// In the list of commands, every description starts with a verb and has no final period.
    #[test]
    fn commands_are_described_in_one_style() {
        let arguments = Arguments::command();
        for command in arguments.get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let verb = about.split(' ').next().unwrap_or_default();
            assert!(verb.ends_with('s') && !about.ends_with('.'), "{}: {about}", command.get_name());
        }
    }
}
