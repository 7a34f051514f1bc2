//! What the controller is asked to do: flags, then environment, then file, then defaults.

use super::Failure;
use super::choice::{self, AppChoice};
use super::configuration::{self, Configuration};
use beehive_core::StartError;
use beehive_nom::driver::Admission;
use beehive_nom::driver::openflow::{ListenerSettings, SessionSettings};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Runs the controller.
///
/// Without any flag: a learning switch, listening on port 6653 of all addresses for switches, and on loopback for HTTP.
#[derive(Args, Debug)]
pub(crate) struct ControllerArgs {
    /// Apps that decide what becomes of packets, in this order: the first that answers decides
    ///
    /// learning-switch, hub: forward. firewall: in front of one of them. discovery: finds links between switches and keeps
    /// packets from running in circles; goes before all others. hosts: looks on. forwarding: on shortest paths, with
    /// discovery and hosts before it.
    #[arg(long, env = "BEEHIVE_APP", value_name = "NAME,..", value_delimiter = ',')]
    app: Vec<String>,

    /// Where to listen for switches; may be given several times [default: 0.0.0.0:6653 and [::]:6653]
    #[arg(long, env = "BEEHIVE_LISTEN", value_name = "ADDRESS:PORT", value_delimiter = ',')]
    listen: Vec<String>,

    /// Where to listen for HTTP, or `off` [default: 127.0.0.1:8653, another port if that is taken]
    #[arg(long, env = "BEEHIVE_HTTP", value_name = "ADDRESS:PORT")]
    http: Option<String>,

    /// Allow HTTP on an address that others can reach, although nothing protects it
    #[arg(long, env = "BEEHIVE_HTTP_INSECURE")]
    http_insecure: bool,

    /// Names, besides localhost and plain addresses, under which HTTP is asked for; may be given several times
    #[arg(long, env = "BEEHIVE_HTTP_HOST", value_name = "NAME", value_delimiter = ',')]
    http_host: Vec<String>,

    /// Settings, in TOML: tables [controller] and [apps.<name>]; flags and environment go before them
    #[arg(long, env = "BEEHIVE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// What to log to standard error: error, warn, info, debug, trace, or by module [default: info]
    #[arg(long, env = "BEEHIVE_LOG", value_name = "LEVEL")]
    log: Option<String>,
}

/// Where to listen for HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HttpAddress {
    pub(super) address: SocketAddr,
    /// Nobody asked for this port: another one will do.
    pub(super) any_port: bool,
}

/// Everything decided.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) apps: Vec<AppChoice>,
    pub(super) listen: Vec<SocketAddr>,
    pub(super) http: Option<HttpAddress>,
    pub(super) http_hosts: Vec<String>,
    pub(super) log: String,
    pub(super) settings: toml::Table,
    /// The file that the settings are from.
    config: Option<PathBuf>,
    controller: Configuration,
}

const LISTEN_DEFAULT: [&str; 2] = ["0.0.0.0:6653", "[::]:6653"];
const HTTP_DEFAULT: &str = "127.0.0.1:8653";
/// Descriptors that are not for switches: log, HTTP, the runtime's own.
const DESCRIPTORS_RESERVED: u64 = 64;

impl Options {
    /// `own`: apps that run, in this order, if nobody says otherwise.
    pub(super) fn of(arguments: ControllerArgs, own: &[AppChoice]) -> Result<Options, Failure> {
        let (controller, settings) = match &arguments.config {
            Some(file) => configuration::read(file, own)?,
            None => Default::default(),
        };
        let own_names: Vec<_> = own.iter().map(|app| app.name()).collect();
        let usual = if own.is_empty() { &["learning-switch"][..] } else { &own_names };
        let names = first_of(arguments.app, controller.apps.clone(), usual);
        let mut apps: Vec<AppChoice> = Vec::new();
        for name in &names {
            let app = AppChoice::named(name, own)?;
            if apps.contains(&app) {
                return Err(format!("app `{name}` is named twice").into());
            }
            apps.push(app)
        }
        choice::check(&apps)?;
        let mut settings = configuration::settings_of(settings, &apps)?;
        choice::complete(&mut settings, &apps)?;
        let listen = first_of(arguments.listen, controller.listen.clone(), &LISTEN_DEFAULT);
        let listen = listen.iter().map(|text| address("--listen", text)).collect::<Result<Vec<_>, _>>()?;
        let asked = arguments.http.or(controller.http.clone());
        let http = match asked.as_deref() {
            Some("off") => None,
            Some(text) => Some(HttpAddress { address: address("--http", text)?, any_port: false }),
            None => Some(HttpAddress { address: address("--http", HTTP_DEFAULT)?, any_port: true }),
        };
        let insecure = arguments.http_insecure || controller.http_insecure.unwrap_or(false);
        if let Some(HttpAddress { address, .. }) = http
            && !address.ip().is_loopback()
            && !insecure
        {
            return Err(format!(
                "--http {address} can be reached by others, and nothing protects it: whoever reaches it sees the \
                 network. Use a loopback address (127.0.0.1:{}) and a tunnel or proxy in front, or say \
                 --http-insecure if the network around is trusted",
                address.port()
            )
            .into());
        }
        let http_hosts = first_of(arguments.http_host, controller.http_hosts.clone(), &[]);
        let log = arguments.log.or(controller.log.clone()).unwrap_or_else(|| "info".into());
        let config = arguments.config;
        Ok(Options { apps, listen, http, http_hosts, log, settings, config, controller })
    }

    /// Why a hive with these settings did not start, with the file if that is to be changed.
    pub(super) fn not_started(&self, why: StartError) -> Failure {
        match (&why, &self.config) {
            (StartError::Settings(_), Some(file)) => format!("{}: {why}", file.display()).into(),
            _ => why.into(),
        }
    }

    /// Settings of the listener; `descriptors` are those that this process may have open.
    pub(super) fn listener(&self, descriptors: u64) -> ListenerSettings {
        let defaults = ListenerSettings::default();
        let c = &self.controller;
        let possible = descriptors.saturating_sub(DESCRIPTORS_RESERVED).max(1);
        let connections_max =
            c.connections_max.unwrap_or(defaults.connections_max as u64).clamp(1, possible) as usize;
        let milliseconds =
            |value: Option<u64>, default: Duration| value.map_or(default, Duration::from_millis);
        ListenerSettings {
            connections_max,
            half_open_max: (c.half_open_max.unwrap_or(defaults.half_open_max as u64) as usize)
                .clamp(1, connections_max),
            session: SessionSettings {
                echo_interval: milliseconds(c.echo_interval_ms, defaults.session.echo_interval),
                echo_misses: c.echo_misses.unwrap_or(defaults.session.echo_misses),
                handshake: milliseconds(c.handshake_ms, defaults.session.handshake),
                versions: defaults.session.versions,
            },
            admission: Admission {
                patience: milliseconds(c.packet_patience_ms, defaults.admission.patience),
            },
        }
    }
}

fn first_of(flags: Vec<String>, file: Option<Vec<String>>, defaults: &[&str]) -> Vec<String> {
    match (flags.is_empty(), file) {
        (false, _) => flags,
        (true, Some(file)) => file,
        (true, None) => defaults.iter().map(ToString::to_string).collect(),
    }
}

fn address(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        format!("{flag} {text}: not an address with a port; write 127.0.0.1:6653, 0.0.0.0:6653 or [::1]:6653")
            .into()
    })
}
