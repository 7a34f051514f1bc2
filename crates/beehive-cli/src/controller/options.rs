//! The options of the controller. Flags override environment variables, environment variables override the
//! configuration file, and the file overrides the defaults.

use super::Failure;
use super::apps::{self, AppChoice};
#[cfg(feature = "cluster")]
use super::cluster::{ClusterArguments, ClusterOptions};
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
/// Without flags it runs a learning switch, listens for switches on port 6653 of all addresses, and serves HTTP on loopback.
#[derive(Args, Clone, Debug)]
pub(crate) struct ControllerArgs {
    /// Apps that handle packets, in this order: the first app that answers a packet decides what happens to it
    ///
    /// learning-switch, hub: forward packets. firewall: filters packets; must come before an app that forwards
    /// packets. discovery: finds links between switches and prevents forwarding loops; must come first. hosts: tracks
    /// hosts. forwarding: forwards packets along shortest paths; needs discovery and hosts before it.
    #[arg(long, env = "BEEHIVE_APP", value_name = "NAME,..", value_delimiter = ',')]
    app: Vec<String>,

    /// Address to listen on for switches; can be given several times [default: 0.0.0.0:6653 and [::]:6653]
    #[arg(long, env = "BEEHIVE_LISTEN", value_name = "ADDRESS:PORT", value_delimiter = ',')]
    listen: Vec<String>,

    /// Require TLS on all addresses of --listen, with the files cert.pem and key.pem (of the controller) and ca.pem
    /// (the CA of the switches) in this folder
    ///
    /// Switches need a certificate that this CA has signed. The files are reloaded when they change; existing
    /// connections stay open.
    #[arg(long, env = "BEEHIVE_SWITCH_TLS_DIR", value_name = "DIR")]
    switch_tls_dir: Option<PathBuf>,

    /// Accept a switch only if its certificate contains its datapath id: 16 hexadecimal digits as a word of the common name or
    /// of a subject alternative name
    #[arg(long, env = "BEEHIVE_SWITCH_TLS_BIND", value_parser = BoolishValueParser::new())]
    switch_tls_bind: bool,

    /// Address to listen on for switches without TLS, in addition to --listen; can be given several times
    #[arg(long, env = "BEEHIVE_LISTEN_PLAIN", value_name = "ADDRESS:PORT", value_delimiter = ',')]
    listen_plain: Vec<String>,

    /// Accept only switches with these datapath ids; can be given several times
    ///
    /// Without TLS a switch can claim any datapath id.
    #[arg(long, env = "BEEHIVE_SWITCH_ALLOW", value_name = "DATAPATH,..", value_delimiter = ',')]
    switch_allow: Vec<String>,

    /// Accept only switches from these IP addresses and networks; can be given several times
    #[arg(long, env = "BEEHIVE_SWITCH_ALLOW_FROM", value_name = "ADDRESS[/BITS],..", value_delimiter = ',')]
    switch_allow_from: Vec<String>,

    /// Address to serve HTTP on, or `off` [default: 127.0.0.1:8653, or a free port if that is taken]
    #[arg(long, env = "BEEHIVE_HTTP", value_name = "ADDRESS:PORT")]
    http: Option<String>,

    /// Require the token in this file for HTTP, as `Authorization: Bearer ..`, except for /health
    ///
    /// `openssl rand -hex 32` generates a token. Anyone who can read the file or the traffic can use the token, so in
    /// an untrusted network put a proxy with TLS in front. Commands such as `beehive switches` read the same file.
    #[arg(long, env = "BEEHIVE_HTTP_TOKEN_FILE", value_name = "FILE")]
    http_token_file: Option<PathBuf>,

    /// Allow HTTP without a token on an address that other machines can reach
    #[arg(long, env = "BEEHIVE_HTTP_INSECURE", value_parser = BoolishValueParser::new())]
    http_insecure: bool,

    /// Host name to accept in HTTP requests, in addition to localhost and IP addresses; can be given several times
    #[arg(long, env = "BEEHIVE_HTTP_HOST", value_name = "NAME", value_delimiter = ',')]
    http_host: Vec<String>,

    /// Configuration file in TOML with the tables [controller] and [apps.<name>]; flags and environment variables
    /// override it. `beehive reload` and SIGHUP reload the tables of the apps
    #[arg(long, env = "BEEHIVE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Folder in which the controller keeps its state, so that the state outlives the process; it is created if it does not
    /// exist [default: state in memory only]
    ///
    /// Everything that an app has decided is on disk before it takes effect. Connections, ports and statistics are read from
    /// the switches again after a restart. `beehive data show DIR` shows what the folder contains.
    #[arg(long, env = "BEEHIVE_DATA", value_name = "DIR")]
    data: Option<PathBuf>,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: ClusterArguments,

    /// Log level on standard error: error, warn, info, debug, trace or off, for all modules or per module [default: info]
    #[arg(long, env = "BEEHIVE_LOG", value_name = "LEVEL")]
    log: Option<String>,
}

/// Address to serve HTTP on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HttpAddress {
    pub(super) address: SocketAddr,
    /// Whether the port is the default port. If it is taken, any free port may be used instead.
    pub(super) any_port: bool,
}

/// The options in force, after all checks.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) apps: Vec<AppChoice>,
    pub(super) listen: Vec<SocketAddr>,
    /// Addresses without TLS, in addition to `listen`.
    pub(super) listen_plain: Vec<SocketAddr>,
    pub(super) credentials: Option<Arc<Credentials>>,
    allowed: Vec<NodeId>,
    allowed_from: Vec<IpNet>,
    pub(super) http: Option<HttpAddress>,
    pub(super) http_hosts: Vec<String>,
    pub(super) http_token: Option<Token>,
    pub(super) log: String,
    /// The folder in which state is kept. Without one, state is in memory only.
    pub(super) data: Option<PathBuf>,
    /// The cluster to which this controller belongs.
    #[cfg(feature = "cluster")]
    pub(super) cluster: Option<ClusterOptions>,
    pub(super) settings: toml::Table,
    /// Apps that have settings in the file but are not running.
    pub(super) unused: Vec<String>,
    /// Path of the configuration file.
    config: Option<PathBuf>,
    controller: Configuration,
}

const LISTEN_DEFAULT: [&str; 2] = ["0.0.0.0:6653", "[::]:6653"];
const HTTP_DEFAULT: &str = "127.0.0.1:8653";
/// Number of file descriptors reserved for the log, HTTP and the runtime, and therefore not available for switches.
const DESCRIPTORS_RESERVED: u64 = 64;

impl Options {
    /// Resolves the options at startup. The controller runs the `custom` apps, in this order, unless the flags, the
    /// environment or the file selects others.
    pub(super) fn new(arguments: ControllerArgs, custom: &[AppChoice]) -> Result<Options, Failure> {
        Options::resolve(None, arguments, custom)
    }

    /// Resolves the options at startup, or on a reload while the options `running` are in force. A reload uses the
    /// settings of the running apps and keeps the generated secret.
    ///
    /// # Errors
    ///
    /// Returns an error if an option is invalid or contradicts another one. The text names the option and a remedy.
    pub(super) fn resolve(
        running: Option<&Options>,
        arguments: ControllerArgs,
        custom: &[AppChoice],
    ) -> Result<Options, Failure> {
        let (controller, settings) = match &arguments.config {
            // a pipe would be empty when read a second time, which would reset all settings
            Some(file) if running.is_some() && std::fs::metadata(file).is_ok_and(|data| !data.is_file()) => {
                return Err(format!("{}: not a regular file; it cannot be reloaded", file.display()).into());
            }
            Some(file) => configuration::read(file, custom)?,
            None => Default::default(),
        };

        let config = arguments.config;
        let place = |flag, key| Place { flag, key, table: "controller", file: config.as_deref() };
        #[cfg(feature = "cluster")]
        let cluster = {
            let place = |flag, key| Place { flag, key, table: "cluster", file: config.as_deref() };
            ClusterOptions::resolve(arguments.cluster, &controller.cluster, place)?
        };

        let custom_names: Vec<_> = custom.iter().map(|app| app.name()).collect();
        let usual = if custom.is_empty() { &["learning-switch"][..] } else { &custom_names };
        let (names, from) = place("", "apps").first_of(arguments.app, controller.apps.clone(), usual);
        let mut apps: Vec<AppChoice> = Vec::new();
        for name in &names {
            let app = AppChoice::named(name, custom).map_err(|why| from.refusal(why))?;
            if apps.contains(&app) {
                return Err(from.refusal(format!("app `{name}` is given twice")));
            }
            apps.push(app)
        }

        apps::check(&apps).map_err(|why| from.refusal(why))?;
        let running_apps = running.map_or(&apps, |running| &running.apps);
        let (mut settings, unused) = configuration::settings_of(settings, running_apps);
        #[cfg(feature = "cluster")]
        if cluster.is_some() {
            apps::check_shared_settings(&settings, running_apps)?
        }
        apps::fill_defaults(&mut settings, running_apps, running.map(|running| &running.settings))?;
        let listen = place("--listen", "listen");
        let (texts, from) = listen.first_of(arguments.listen, controller.listen.clone(), &LISTEN_DEFAULT);
        let listen = texts.iter().map(|text| address(from, text)).collect::<Result<Vec<_>, _>>()?;
        let listen_plain = place("--listen-plain", "listen_plain");
        let (texts, from) =
            listen_plain.first_of(arguments.listen_plain, controller.listen_plain.clone(), &[]);
        let listen_plain = texts.iter().map(|text| address(from, text)).collect::<Result<Vec<_>, _>>()?;

        let tls = place("--switch-tls-dir", "switch_tls_dir");
        let (folder, from) = tls.either(arguments.switch_tls_dir, controller.switch_tls_dir.clone());
        let binds = arguments.switch_tls_bind || controller.switch_tls_bind.unwrap_or(false);
        let credentials = match folder {
            Some(folder) => Some(Arc::new(credentials(from, &folder, binds)?)),
            None if binds => return Err("--switch-tls-bind requires --switch-tls-dir".into()),
            None if !listen_plain.is_empty() => {
                return Err(
                    "--listen-plain requires --switch-tls-dir: without it, --listen has no TLS either".into(),
                );
            }
            None => None,
        };

        let allow = place("--switch-allow:", "switch_allow");
        let (texts, from) = allow.first_of(arguments.switch_allow, controller.switch_allow.clone(), &[]);
        let allowed = texts.iter().map(|text| node(from, text)).collect::<Result<Vec<_>, _>>()?;
        let allow_from = place("--switch-allow-from", "switch_allow_from");
        let (texts, from) =
            allow_from.first_of(arguments.switch_allow_from, controller.switch_allow_from.clone(), &[]);
        let allowed_from = texts.iter().map(|text| network(from, text)).collect::<Result<Vec<_>, _>>()?;
        let (asked, from_http) = place("--http", "http").either(arguments.http, controller.http.clone());
        let http = match asked.as_deref() {
            Some("off") => None,
            Some(text) => Some(HttpAddress { address: address(from_http, text)?, any_port: false }),
            None => Some(HttpAddress { address: address(from_http, HTTP_DEFAULT)?, any_port: true }),
        };

        let token_file = place("--http-token-file", "http_token_file");
        let (file, from) = token_file.either(arguments.http_token_file, controller.http_token_file.clone());
        let http_token = file.map(|file| token(from, &file)).transpose()?;
        let insecure = arguments.http_insecure || controller.http_insecure.unwrap_or(false);
        if let Some(HttpAddress { address, .. }) = http
            && !address.ip().is_loopback()
            && http_token.is_none()
            && !insecure
        {
            return Err(from_http.refusal(format!(
                "{address} would let other machines query the controller without authentication. Use a loopback \
                 address (127.0.0.1:{}) with a tunnel or proxy in front, require a token (--http-token-file FILE), or \
                 pass --http-insecure if the network is trusted",
                address.port()
            )));
        }

        let hosts = place("--http-host", "http_hosts");
        let (http_hosts, from) = hosts.first_of(arguments.http_host, controller.http_hosts.clone(), &[]);
        if let Some(name) = http_hosts.iter().find(|name| !is_host_name(name)) {
            return Err(from.refusal(format!(
                "`{name}`: not a host name (expected a name without a port, such as sdn.example)"
            )));
        }

        let places: Vec<_> =
            listen.iter().chain(&listen_plain).copied().chain(http.map(|http| http.address)).collect();
        let twice = |(at, place): &(usize, &SocketAddr)| place.port() != 0 && places[..*at].contains(place);
        if let Some((_, place)) = places.iter().enumerate().find(twice) {
            return Err(format!(
                "{place} is given twice: --listen, --listen-plain and --http need different addresses"
            )
            .into());
        }

        let (data, _) = place("--data", "data").either(arguments.data, controller.data.clone());
        let (log, from) = place("--log", "log").either(arguments.log, controller.log.clone());
        let log = log.unwrap_or_else(|| "info".into());
        check_log(from, &log)?;

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
            data,
            #[cfg(feature = "cluster")]
            cluster,
            settings,
            unused,
            config,
            controller,
        })
    }

    /// Returns whether this controller belongs to a cluster.
    pub(super) fn is_in_cluster(&self) -> bool {
        #[cfg(feature = "cluster")]
        return self.cluster.is_some();
        #[cfg(not(feature = "cluster"))]
        false
    }

    /// Returns whether there is a configuration file to reload.
    pub(super) fn has_file(&self) -> bool {
        self.config.is_some()
    }

    /// Returns the keys of `[controller]` that differ in `new`.
    pub(super) fn differences(&self, new: &Options) -> Vec<&'static str> {
        let mut keys = self.controller.differences(&new.controller);
        if self.apps != new.apps && !keys.contains(&"apps") {
            keys.push("apps")
        }
        keys
    }

    /// Describes why the hive did not start. Names the configuration file if its settings are the reason.
    pub(super) fn start_error(&self, why: StartError) -> Failure {
        match (&why, &self.config) {
            (StartError::Settings(_), Some(_)) => self.settings_error(&why),
            _ => why.into(),
        }
    }

    /// Describes an error in the settings, with the name of the configuration file.
    pub(super) fn settings_error(&self, why: &dyn std::fmt::Display) -> Failure {
        match &self.config {
            Some(file) => format!("{}: {why}", file.display()).into(),
            None => why.to_string().into(),
        }
    }

    /// Returns the rules that decide which switches may connect. Without a list, all switches may connect.
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

    /// Returns the listener's settings. `descriptors` is the maximum number of files that this process may have open.
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

/// Names the origin of an option in error messages: its flag, or its key in the configuration file.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The flag, with which error messages begin. Empty if the messages name the flag themselves.
    flag: &'static str,
    /// The key in the configuration file.
    key: &'static str,
    /// The table with the key.
    table: &'static str,
    /// The configuration file. In the results of [`Place::first_of`] and [`Place::either`], it is `None` unless the
    /// value comes from the file.
    file: Option<&'a Path>,
}

impl Place<'_> {
    /// Returns the values of the first source that has any, in the order flags (or environment), file, defaults. Also
    /// returns where they come from.
    pub(super) fn first_of(
        self,
        flags: Vec<String>,
        file: Option<Vec<String>>,
        defaults: &[&str],
    ) -> (Vec<String>, Self) {
        match (flags.is_empty(), file) {
            (false, _) => (flags, Place { file: None, ..self }),
            (true, Some(file)) => (file, self),
            (true, None) => {
                (defaults.iter().map(ToString::to_string).collect(), Place { file: None, ..self })
            }
        }
    }

    /// Like [`Place::first_of`], for a single value without a default.
    pub(super) fn either<T>(self, flag: Option<T>, file: Option<T>) -> (Option<T>, Self) {
        match (flag, file) {
            (None, Some(value)) => (Some(value), self),
            (value, _) => (value, Place { file: None, ..self }),
        }
    }

    /// Returns the error `why` together with the flag, or with the file, table and key.
    pub(super) fn refusal(self, why: impl std::fmt::Display) -> Failure {
        let Place { flag, key, table, .. } = self;
        match self.file {
            Some(file) => format!("{}: [{table}]: {why}, in `{key}`", file.display()).into(),
            None if flag.is_empty() => why.to_string().into(),
            None => format!("{flag} {why}").into(),
        }
    }
}

fn credentials(from: Place, folder: &Path, binds: bool) -> Result<Credentials, Failure> {
    Credentials::read(folder, binds).map_err(|why| {
        let [own, key, ca] = [CERTIFICATE, KEY, SWITCHES_CA];
        from.refusal(format!("{}: {why} (expected the PEM files {own}, {key} and {ca})", folder.display()))
    })
}

fn token(from: Place, file: &Path) -> Result<Token, Failure> {
    let read = http::token::read(file);
    let text = read.map_err(|why| from.refusal(format!("{}: {why}", file.display())))?;
    Ok(Token::new(&text))
}

fn node(from: Place, text: &str) -> Result<NodeId, Failure> {
    http::node(text).map_err(|failure| from.refusal(failure.message))
}

fn network(from: Place, text: &str) -> Result<IpNet, Failure> {
    beehive_nom::object::network(text).map_err(|why| from.refusal(why))
}

/// Returns whether a directive of `--log` is a level or names a module. The filter would take a misspelled level for a
/// module name, and would then disable the logs of all other modules.
fn is_log_directive(word: &str) -> bool {
    use tracing_subscriber::filter::LevelFilter;
    word.contains(['=', '[']) || word.starts_with("beehive") || word.parse::<LevelFilter>().is_ok()
}

fn check_log(from: Place, log: &str) -> Result<(), Failure> {
    if let Some(word) = log.split(',').map(str::trim).find(|word| !is_log_directive(word)) {
        return Err(from.refusal(format!(
            "{log}: unknown log level `{word}` (expected error, warn, info, debug, trace or off; per module as in \
             `warn,beehive_nom=debug`)"
        )));
    }

    let filter = tracing_subscriber::EnvFilter::try_new(log);
    filter.map(drop).map_err(|error| {
        from.refusal(format!("{log}: {error} (expected, for example, `info` or `warn,beehive_nom=debug`)"))
    })
}

/// Returns whether `name` can be the host name in a `Host` header, without a port.
fn is_host_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

fn address(from: Place, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        let instead = match from.flag {
            "--http" => "for example 127.0.0.1:8653, or `off`",
            _ => "for example 127.0.0.1:6653, 0.0.0.0:6653 or [::1]:6653",
        };
        from.refusal(format!("{text}: not an address with a port (expected {instead})"))
    })
}
