//! `beehive controller`: starts a hive with the chosen apps, listens for switches, and serves HTTP.

mod apps;
#[cfg(feature = "cluster")]
mod cluster;
mod configuration;
mod hive;
mod options;
mod reload;
mod resources;
mod sockets;

pub(crate) use options::ControllerArgs;
pub(crate) use reload::{ReloadError, Reloader};
pub(crate) use resources::raise_descriptors;

use crate::{Tool, http, log_filter, program};
use apps::AppChoice;
use beehive_core::{Handlers, Hive};
use beehive_nom::apps::{Mastership, NodeController};
use beehive_nom::driver::Directory;
use beehive_raft::Data;
use clap::{CommandFactory, FromArgMatches, Parser};
use hive::Running;
use options::Options;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Returns the names of the apps that `--app` accepts.
#[cfg(test)]
pub(crate) fn app_names() -> impl Iterator<Item = &'static str> {
    apps::APPS.iter().map(|(name, _)| *name)
}

/// Time the hive has to stop after a signal. The documentation promises five seconds for the whole shutdown.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// The same in a cluster, where the hive first hands over what it leads.
const STOP_TIMEOUT_IN_CLUSTER: Duration = Duration::from_secs(2);

/// Time that closing the data folder may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why the controller cannot run, as a message for the user.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The complete controller daemon for your own apps: OpenFlow, HTTP, configuration, logging and signals.
///
/// It accepts all flags of `beehive controller`, and reads the same environment variables and configuration file. It
/// also has the commands that query a controller (`switches`, `flows`, `top` and so on), and `maps`, which includes
/// your apps. `--app` selects among your apps and those of Beehive by [`App::NAME`](beehive_core::App::NAME). An app's
/// settings are in the table `[apps.<name>]` of the configuration file.
///
/// Your program chooses its memory allocator. `beehive controller` uses mimalloc, which is faster with many switches.
#[derive(Debug, Default)]
pub struct Controller {
    apps: Vec<AppChoice>,
}

// the doc comment below is the first part of `--help`
/// An SDN controller.
///
/// Without flags it runs the apps with which it was built, listens for switches on port 6653 of all addresses, and
/// serves HTTP on loopback. Commands such as `switches`, `flows` and `top` query a running controller; `maps` does
/// not need one.
#[derive(Parser, Debug)]
#[command(version = concat!("(beehive ", env!("CARGO_PKG_VERSION"), ")"), args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(flatten)]
    arguments: ControllerArgs,

    #[command(subcommand)]
    tool: Option<Tool>,
}

impl Controller {
    /// Creates a controller without your own apps. If you add none, it behaves like `beehive controller`.
    pub fn new() -> Controller {
        Controller::default()
    }

    /// Appends an app to the chain. The first app that answers a packet-in decides what happens to the packet. The
    /// controller runs exactly the apps added here, unless `--app` or the configuration file selects others.
    /// [`Discovery`](beehive_nom::apps::Discovery) also adds the apps that prevent forwarding loops.
    #[must_use]
    pub fn app<A: Handlers>(mut self) -> Controller {
        self.apps.push(AppChoice::of::<A>());
        self
    }

    /// Parses the command line. Then runs either the controller, until SIGTERM or SIGINT, or the command named on the
    /// command line (`maps`, `switches`, `top` and so on). Prints errors to standard error, under the name of this
    /// program.
    ///
    /// Exits the process if the command line is invalid or requests help.
    pub fn run(self) -> ExitCode {
        let name: &'static str = program::name().leak();
        let matches = CommandLine::command().name(name).get_matches();
        match CommandLine::from_arg_matches(&matches) {
            Ok(CommandLine { tool: Some(tool), .. }) => {
                tool.run(self.apps.iter().filter_map(|app| app.custom_maps()).collect())
            }
            Ok(CommandLine { arguments, tool: None }) => self.run_as(name, arguments),
            Err(error) => error.exit(),
        }
    }

    /// Runs the controller. Reports errors under `name`.
    fn run_as(self, name: &str, arguments: ControllerArgs) -> ExitCode {
        match start(name, arguments, &self.apps) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{name}: {failure}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Runs `beehive controller` until SIGTERM or SIGINT.
pub(crate) fn run(arguments: ControllerArgs) -> ExitCode {
    Controller::new().run_as("beehive controller", arguments)
}

fn start(name: &str, arguments: ControllerArgs, custom: &[AppChoice]) -> Result<(), Failure> {
    let options = Options::new(arguments.clone(), custom)?;
    log(&options, custom)?;
    let descriptors = resources::raise_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(resources::workers())
        .thread_name("beehive")
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(serve(name, options, arguments, custom, descriptors));
    runtime.shutdown_timeout(Duration::from_millis(500));

    outcome
}

/// Silences warnings about events without a handler, because the built-in apps emit events that are handled only by
/// some combinations of apps.
const QUIET_TARGETS: &str = "beehive::unhandled=error";

fn log(options: &Options, custom: &[AppChoice]) -> Result<(), Failure> {
    use std::io::IsTerminal;
    let quiet = if custom.is_empty() { format!("{QUIET_TARGETS},") } else { String::new() };
    let filter = log_filter::filter(&(quiet + &options.log))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        // with `beehive::messages=trace`, logs a line whenever a handler begins to handle a message
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::NEW)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init()
}

async fn serve(
    name: &str,
    options: Options,
    arguments: ControllerArgs,
    custom: &[AppChoice],
    descriptors: u64,
) -> Result<(), Failure> {
    // installs the signal handlers before anything else, so that no early signal is lost
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;

    let sockets = sockets::for_switches(&options.listen)?;
    let plain = sockets::for_switches(&options.listen_plain)?;
    let http_socket = match &options.http {
        Some(address) => Some(sockets::for_http(address).await?),
        None => None,
    };

    // a hive of a cluster has a folder of another kind, which it opens itself
    let folder = options.data.as_ref().filter(|_| !options.is_in_cluster());
    let data = folder.map(Data::open).transpose()?;
    let mut builder = Hive::builder().app::<NodeController>();
    if options.is_in_cluster() {
        builder = builder.app::<Mastership>()
    }
    for app in &options.apps {
        builder = app.register(builder);
    }
    if let Some(data) = &data {
        builder = data.attach(builder)
    }
    let started = tokio::select! {
        biased;
        // in a cluster, the others may not be there for long
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
        started = Running::start(builder, &options) => started?,
    };
    let hive = started.hive().clone();
    for app in &options.unused {
        eprintln!("{name}: [apps.{app}] has no effect: the app is not running (see --app)");
    }
    let directory = Arc::new(Directory::default());
    let reloader = Reloader::new(hive.clone(), arguments, custom, options.clone()).map(Arc::new);
    let listener = started.listener(directory.clone(), options.listener(descriptors), &options);

    let (mut addresses, mut without_tls) = (Vec::new(), Vec::new());
    for socket in sockets {
        addresses.push(socket.local_addr()?);
        match &options.credentials {
            Some(credentials) => listener.serve_tls(socket, credentials.clone()),
            None => listener.serve(socket),
        }
    }

    for socket in plain {
        without_tls.push(socket.local_addr()?);
        listener.serve(socket);
    }

    let (stop, stopped) = watch::channel(());
    let (http_address, http_server) = match http_socket {
        Some(socket) => {
            let address = socket.local_addr()?;
            let served = http::Served {
                hive: hive.clone(),
                directory: directory.clone(),
                reloader: reloader.clone(),
                data: data.clone(),
            };
            let guard = http::Guard::new(options.http_hosts.clone(), options.http_token);
            let server = tokio::spawn(http::serve(socket, served, guard, stopped));
            (Some(address), Some(server))
        }
        None => (None, None),
    };

    print_banner(name, &options, &addresses, &without_tls, http_address);

    let signal = loop {
        tokio::select! {
            _ = terminate.recv() => break "SIGTERM",
            _ = interrupt.recv() => break "SIGINT",
            () = hive.stopping() => {
                return Err("the hive has stopped; the log says why".into());
            }
            _ = hang_up.recv() => match &reloader {
                // the reloader logs the outcome
                Some(reloader) => drop(reloader.reload().await),
                None => tracing::error!("{}", ReloadError::NoFile),
            },
        }
    };

    tracing::info!(signal, switches = directory.nodes(), "the controller is stopping");
    drop(stop);
    started.stop(if options.is_in_cluster() { STOP_TIMEOUT_IN_CLUSTER } else { STOP_TIMEOUT }).await;
    if let Some(data) = data {
        // the disk may be slow, and the promised end must come all the same
        let closing = tokio::task::spawn_blocking(move || data.close());
        if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            tracing::warn!("the data folder could not be closed in time; nothing that took effect is lost")
        }
    }
    if let Some(server) = http_server {
        // dropping the runtime closes connections that are still open
        let _ = tokio::time::timeout(Duration::from_millis(500), server).await;
    }

    Ok(())
}

/// Prints the apps, the addresses in use, and the commands that connect a switch.
fn print_banner(
    name: &str,
    options: &Options,
    switches: &[SocketAddr],
    without_tls: &[SocketAddr],
    http: Option<SocketAddr>,
) {
    let tls = options.credentials.is_some();
    let list =
        |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let apps: Vec<_> = options.apps.iter().map(|app| app.name()).collect();
    let mut text = Vec::new();
    let (version, apps) = (env!("CARGO_PKG_VERSION"), apps.join(", then "));
    text.push(match name {
        "beehive controller" => format!("beehive {version} runs {apps}"),
        own => format!("{own} (beehive {version}) runs {apps}"),
    });
    let secured = if tls { ", TLS" } else { "" };
    text.push(format!("  switches (OpenFlow 1.0 to 1.5{secured}) on {}", list(switches)));
    if !without_tls.is_empty() {
        text.push(format!("  switches without TLS on {}", list(without_tls)));
    }

    match http {
        Some(address) => text.push(format!("  http://{address}/api/v1/status, /metrics, /health")),
        None => text.push("  no HTTP".to_string()),
    }
    #[cfg(feature = "cluster")]
    if let Some(cluster) = &options.cluster {
        text.push(format!("  hive {} of a cluster of {}", cluster.hive, cluster.hives))
    }
    text.push(match &options.data {
        Some(folder) => format!("  state in {}", folder.display()),
        None if options.is_in_cluster() => {
            "  state in the memory of all hives (--data DIR keeps it on disk)".to_string()
        }
        None => "  state in memory only: a restart loses it (--data DIR keeps it)".to_string(),
    });

    let (host, port) = match switches.first() {
        Some(address) if address.ip().is_unspecified() => ("127.0.0.1".to_string(), address.port()),
        Some(SocketAddr::V6(address)) => (format!("[{}]", address.ip()), address.port()),
        Some(address) => (address.ip().to_string(), address.port()),
        // unreachable, because there is at least one address
        None => return,
    };

    if tls {
        text.push("  Open vSwitch:  ovs-vsctl set-ssl KEY CERTIFICATE CA-OF-THIS-CONTROLLER".to_string());
        text.push(format!("                 ovs-vsctl set-controller BRIDGE ssl:{host}:{port}"));
    } else {
        text.push(format!("  Open vSwitch:  ovs-vsctl set-controller BRIDGE tcp:{host}:{port}"));
        text.push(format!("  mininet:       mn --controller=remote,ip={host},port={port}"));
    }

    text.extend(apps::warnings(&options.apps, &options.settings).map(|words| format!("  {words}")));
    // a closed pipe does not stop the controller
    let _ = writeln!(std::io::stdout(), "{}", text.join("\n"));
}
