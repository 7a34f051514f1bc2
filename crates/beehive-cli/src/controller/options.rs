//! What the controller is asked to do: flags, then environment, then file, then defaults.

use super::Failure;
use super::apps::{self, AppChoice};
use super::configuration::{self, Configuration};
use crate::http::{self, Token};
use beehive_core::StartError;
use beehive_nom::driver::Admission;
use beehive_nom::driver::openflow::{
    Access, CERTIFICATE, Credentials, KEY, ListenerSettings, SWITCHES_CA, SessionSettings,
};
use beehive_nom::object::NodeId;
use clap::Args;
use clap::builder::BoolishValueParser;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Runs the controller.
///
/// Without any flag: a learning switch, listening on port 6653 of all addresses for switches, and on loopback for HTTP.
#[derive(Args, Clone, Debug)]
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

    /// Speak TLS with switches, on all of --listen and nothing else there: a folder with cert.pem and key.pem, the
    /// controller's own, and ca.pem, who signs the certificates of switches
    ///
    /// Switches have to show a certificate that is signed there. The files are read again when they change; connections
    /// that are there stay.
    #[arg(long, env = "BEEHIVE_SWITCH_TLS_DIR", value_name = "DIR")]
    switch_tls_dir: Option<PathBuf>,

    /// Let in a switch only if its certificate names it: a name in it (CN, or an alternative name) has the datapath
    /// identifier, 16 hexadecimal digits, as one of its words
    #[arg(long, env = "BEEHIVE_SWITCH_TLS_BIND", value_parser = BoolishValueParser::new())]
    switch_tls_bind: bool,

    /// Where to listen for switches without TLS, besides --listen with it; may be given several times
    #[arg(long, env = "BEEHIVE_LISTEN_PLAIN", value_name = "ADDRESS:PORT", value_delimiter = ',')]
    listen_plain: Vec<String>,

    /// Let in these switches only, by datapath identifier; may be given several times
    ///
    /// Without TLS a switch can say to be any of them.
    #[arg(long, env = "BEEHIVE_SWITCH_ALLOW", value_name = "DATAPATH,..", value_delimiter = ',')]
    switch_allow: Vec<String>,

    /// Let in switches from these addresses and networks only; may be given several times
    #[arg(long, env = "BEEHIVE_SWITCH_ALLOW_FROM", value_name = "ADDRESS[/BITS],..", value_delimiter = ',')]
    switch_allow_from: Vec<String>,

    /// Where to listen for HTTP, or `off` [default: 127.0.0.1:8653, another port if that is taken]
    #[arg(long, env = "BEEHIVE_HTTP", value_name = "ADDRESS:PORT")]
    http: Option<String>,

    /// Answer HTTP only to who shows the token in this file, as `Authorization: Bearer ..`; /health needs none
    ///
    /// `openssl rand -hex 32` makes one. Whoever can read the file can use it, and so can whoever sees it on the way: in a
    /// network that is not trusted, put a proxy with TLS in front. `beehive switches` and its like read the same file.
    #[arg(long, env = "BEEHIVE_HTTP_TOKEN_FILE", value_name = "FILE")]
    http_token_file: Option<PathBuf>,

    /// Allow HTTP without a token on an address that others can reach, although nothing protects it
    #[arg(long, env = "BEEHIVE_HTTP_INSECURE", value_parser = BoolishValueParser::new())]
    http_insecure: bool,

    /// Names, besides localhost and plain addresses, under which HTTP is asked for; may be given several times
    #[arg(long, env = "BEEHIVE_HTTP_HOST", value_name = "NAME", value_delimiter = ',')]
    http_host: Vec<String>,

    /// Settings, in TOML: tables [controller] and [apps.<name>]; flags and environment go before them. `beehive
    /// reload`, or SIGHUP, has the tables of the apps read again
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
    /// Without TLS, besides.
    pub(super) listen_plain: Vec<SocketAddr>,
    pub(super) credentials: Option<Arc<Credentials>>,
    allowed: Vec<NodeId>,
    allowed_from: Vec<IpNet>,
    pub(super) http: Option<HttpAddress>,
    pub(super) http_hosts: Vec<String>,
    pub(super) http_token: Option<Token>,
    pub(super) log: String,
    pub(super) settings: toml::Table,
    /// Apps that the file has settings of, and that do not run.
    pub(super) unused: Vec<String>,
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
    pub(super) fn new(arguments: ControllerArgs, custom: &[AppChoice]) -> Result<Options, Failure> {
        Options::resolve(None, arguments, custom)
    }

    /// As [`Options::new`], while what was decided `before` runs: settings are for the apps that run, and what was chosen by
    /// chance is kept.
    pub(super) fn resolve(
        running: Option<&Options>,
        arguments: ControllerArgs,
        custom: &[AppChoice],
    ) -> Result<Options, Failure> {
        let (controller, settings) = match &arguments.config {
            // it would be empty now, and all settings what they are without any
            Some(file) if running.is_some() && std::fs::metadata(file).is_ok_and(|data| !data.is_file()) => {
                return Err(format!("{}: it is no file that can be read twice", file.display()).into());
            }
            Some(file) => configuration::read(file, custom)?,
            None => Default::default(),
        };
        let custom_names: Vec<_> = custom.iter().map(|app| app.name()).collect();
        let usual = if custom.is_empty() { &["learning-switch"][..] } else { &custom_names };
        let names = first_of(arguments.app, controller.apps.clone(), usual);
        let mut apps: Vec<AppChoice> = Vec::new();
        for name in &names {
            let app = AppChoice::named(name, custom)?;
            if apps.contains(&app) {
                return Err(format!("app `{name}` is named twice").into());
            }
            apps.push(app)
        }
        apps::check(&apps)?;
        let running_apps = running.map_or(&apps, |running| &running.apps);
        let (mut settings, unused) = configuration::settings_of(settings, running_apps);
        apps::fill_defaults(&mut settings, running_apps, running.map(|running| &running.settings))?;
        let listen = first_of(arguments.listen, controller.listen.clone(), &LISTEN_DEFAULT);
        let listen = listen.iter().map(|text| address("--listen", text)).collect::<Result<Vec<_>, _>>()?;
        let listen_plain = first_of(arguments.listen_plain, controller.listen_plain.clone(), &[]);
        let listen_plain =
            listen_plain.iter().map(|text| address("--listen-plain", text)).collect::<Result<Vec<_>, _>>()?;
        let folder = arguments.switch_tls_dir.or(controller.switch_tls_dir.clone());
        let binds = arguments.switch_tls_bind || controller.switch_tls_bind.unwrap_or(false);
        let credentials = match folder {
            Some(folder) => Some(Arc::new(credentials(&folder, binds)?)),
            None if binds => return Err("--switch-tls-bind is of no use without --switch-tls-dir".into()),
            None if !listen_plain.is_empty() => {
                return Err("--listen-plain is of no use without --switch-tls-dir: --listen is plain".into());
            }
            None => None,
        };
        let allowed = first_of(arguments.switch_allow, controller.switch_allow.clone(), &[]);
        let allowed = allowed.iter().map(|text| node(text)).collect::<Result<Vec<_>, _>>()?;
        let allowed_from = first_of(arguments.switch_allow_from, controller.switch_allow_from.clone(), &[]);
        let allowed_from = allowed_from.iter().map(|text| network(text)).collect::<Result<Vec<_>, _>>()?;
        let asked = arguments.http.or(controller.http.clone());
        let http = match asked.as_deref() {
            Some("off") => None,
            Some(text) => Some(HttpAddress { address: address("--http", text)?, any_port: false }),
            None => Some(HttpAddress { address: address("--http", HTTP_DEFAULT)?, any_port: true }),
        };
        let token_file = arguments.http_token_file.or(controller.http_token_file.clone());
        let http_token = token_file.map(|file| token(&file)).transpose()?;
        let insecure = arguments.http_insecure || controller.http_insecure.unwrap_or(false);
        if let Some(HttpAddress { address, .. }) = http
            && !address.ip().is_loopback()
            && http_token.is_none()
            && !insecure
        {
            return Err(format!(
                "--http {address} can be reached by others, and nothing protects it: whoever reaches it sees the \
                 network. Use a loopback address (127.0.0.1:{}) and a tunnel or proxy in front, or ask for a token \
                 (--http-token-file FILE), or say --http-insecure if the network around is trusted",
                address.port()
            )
            .into());
        }
        let http_hosts = first_of(arguments.http_host, controller.http_hosts.clone(), &[]);
        if let Some(name) = http_hosts.iter().find(|name| !is_host_name(name)) {
            return Err(
                format!("--http-host `{name}`: no name of a host; write sdn.example, and no port").into()
            );
        }
        let places: Vec<_> =
            listen.iter().chain(&listen_plain).copied().chain(http.map(|http| http.address)).collect();
        let twice = |(at, place): &(usize, &SocketAddr)| place.port() != 0 && places[..*at].contains(place);
        if let Some((_, place)) = places.iter().enumerate().find(twice) {
            return Err(format!(
                "{place} is named twice: each --listen, --listen-plain and --http is another one"
            )
            .into());
        }
        let log = arguments.log.or(controller.log.clone()).unwrap_or_else(|| "info".into());
        let config = arguments.config;
        Ok(Options {
            apps,
            listen,
            listen_plain,
            credentials,
            allowed,
            allowed_from,
            http,
            http_hosts,
            http_token,
            log,
            settings,
            unused,
            config,
            controller,
        })
    }

    /// Whether there is a file to be read again.
    pub(super) fn has_file(&self) -> bool {
        self.config.is_some()
    }

    /// What is decided otherwise in `new`, settings of apps aside: the names of the keys in the file.
    pub(super) fn differences(&self, new: &Options) -> Vec<&'static str> {
        let mut keys = self.controller.differences(&new.controller);
        if self.apps != new.apps && !keys.contains(&"apps") {
            keys.push("apps")
        }
        keys
    }

    /// Why a hive with these settings did not start, with the file if that is to be changed.
    pub(super) fn start_error(&self, why: StartError) -> Failure {
        match (&why, &self.config) {
            (StartError::Settings(_), Some(_)) => self.settings_error(&why),
            _ => why.into(),
        }
    }

    /// What is wrong with settings, with the name of the file.
    pub(super) fn settings_error(&self, why: &dyn std::fmt::Display) -> Failure {
        match &self.config {
            Some(file) => format!("{}: {why}", file.display()).into(),
            None => why.to_string().into(),
        }
    }

    /// Which switches may connect: all, where none are named.
    pub(super) fn access(&self) -> Access {
        let mut access = Access::default();
        if !self.allowed.is_empty() {
            access = access.nodes(self.allowed.iter().copied());
        }
        if !self.allowed_from.is_empty() {
            access = access.addresses(self.allowed_from.iter().copied());
        }
        access
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

fn credentials(folder: &Path, binds: bool) -> Result<Credentials, Failure> {
    Credentials::read(folder, binds).map_err(|why| {
        let [own, key, ca] = [CERTIFICATE, KEY, SWITCHES_CA];
        format!("--switch-tls-dir {}: {why}; it has {own}, {key} and {ca}, in PEM", folder.display()).into()
    })
}

fn token(file: &Path) -> Result<Token, Failure> {
    let read = http::token::read(file);
    let text = read.map_err(|why| format!("--http-token-file {}: {why}", file.display()))?;
    Ok(Token::new(&text))
}

fn node(text: &str) -> Result<NodeId, Failure> {
    http::node(text).map_err(|failure| format!("--switch-allow {}", failure.message).into())
}

fn network(text: &str) -> Result<IpNet, Failure> {
    beehive_nom::object::network(text).map_err(|why| format!("--switch-allow-from {why}").into())
}

fn first_of(flags: Vec<String>, file: Option<Vec<String>>, defaults: &[&str]) -> Vec<String> {
    match (flags.is_empty(), file) {
        (false, _) => flags,
        (true, Some(file)) => file,
        (true, None) => defaults.iter().map(ToString::to_string).collect(),
    }
}

/// Whether this can be what a request says that it is for, without its port.
fn is_host_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

fn address(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        let instead = match flag {
            "--http" => "127.0.0.1:8653, or `off`",
            _ => "127.0.0.1:6653, 0.0.0.0:6653 or [::1]:6653",
        };
        format!("{flag} {text}: not an address with a port (1 to 65535); write {instead}").into()
    })
}
