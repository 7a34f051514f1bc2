//! Parses the configuration file: the tables `[controller]` and `[apps.<name>]`. Unknown keys are refused.

use super::Failure;
use super::apps::{self, AppChoice};
#[cfg(feature = "cluster")]
use super::cluster::{self, ClusterConfiguration};
use beehive_core::nearest_name;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The table `[controller]`. Missing keys have their default values.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub(super) struct Configuration {
    /// The same as the flag `--app`.
    pub(super) apps: Option<Vec<String>>,
    /// The same as the flag `--listen`.
    pub(super) listen: Option<Vec<String>>,
    /// The same as the flag `--switch-tls-dir`.
    pub(super) switch_tls_dir: Option<PathBuf>,
    /// The same as the flag `--switch-tls-bind`.
    pub(super) switch_tls_bind: Option<bool>,
    /// The same as the flag `--listen-plain`.
    pub(super) listen_plain: Option<Vec<String>>,
    /// The same as the flag `--switch-allow`.
    pub(super) switch_allow: Option<Vec<String>>,
    /// The same as the flag `--switch-allow-from`.
    pub(super) switch_allow_from: Option<Vec<String>>,
    /// The same as the flag `--http`.
    pub(super) http: Option<String>,
    /// The same as the flag `--http-insecure`.
    pub(super) http_insecure: Option<bool>,
    /// The same as the flag `--http-host`.
    pub(super) http_hosts: Option<Vec<String>>,
    /// The same as the flag `--http-token-file`.
    pub(super) http_token_file: Option<PathBuf>,
    /// The same as the flag `--log`.
    pub(super) log: Option<String>,
    /// The same as the flag `--data`.
    pub(super) data: Option<PathBuf>,
    /// Maximum number of connections of switches. Default: 16384. Range: 1 to 1 000 000, and at most the number of
    /// file descriptors that the system allows, minus a reserve.
    pub(super) connections_max: Option<u64>,
    /// Maximum number of connections whose handshake is in progress; further connections wait for their turn.
    /// Default: 512. Range: 1 to 1 000 000, and at most `connections_max`.
    pub(super) half_open_max: Option<u64>,
    /// Milliseconds without a message after which the controller sends an echo request. Default: 1000. Range: 100 to
    /// 3 600 000.
    pub(super) echo_interval_ms: Option<u64>,
    /// Number of unanswered echo requests after which the connection is closed. Default: 3. Range: 1 to 1000.
    pub(super) echo_misses: Option<u32>,
    /// Timeout of the handshake in milliseconds. Default: 5000. Range: 100 to 600 000.
    pub(super) handshake_ms: Option<u64>,
    /// Milliseconds for which a packet-in is queued while the hive is overloaded, before it is dropped. Default: 200.
    /// Range: 0 to 60 000; with 0 no packet-in is queued.
    pub(super) packet_patience_ms: Option<u64>,
    /// The table `[cluster]`.
    #[cfg(feature = "cluster")]
    #[serde(skip)]
    pub(super) cluster: ClusterConfiguration,
}

impl Configuration {
    /// Returns the keys whose values differ in `new`.
    pub(super) fn differences(&self, new: &Configuration) -> Vec<&'static str> {
        let Configuration {
            apps,
            listen,
            switch_tls_dir,
            switch_tls_bind,
            listen_plain,
            switch_allow,
            switch_allow_from,
            http,
            http_insecure,
            http_hosts,
            http_token_file,
            log,
            data,
            connections_max,
            half_open_max,
            echo_interval_ms,
            echo_misses,
            handshake_ms,
            packet_patience_ms,
            #[cfg(feature = "cluster")]
            cluster,
        } = self;

        let same = [
            *apps == new.apps,
            *listen == new.listen,
            *switch_tls_dir == new.switch_tls_dir,
            *switch_tls_bind == new.switch_tls_bind,
            *listen_plain == new.listen_plain,
            *switch_allow == new.switch_allow,
            *switch_allow_from == new.switch_allow_from,
            *http == new.http,
            *http_insecure == new.http_insecure,
            *http_hosts == new.http_hosts,
            *http_token_file == new.http_token_file,
            *log == new.log,
            *data == new.data,
            *connections_max == new.connections_max,
            *half_open_max == new.half_open_max,
            *echo_interval_ms == new.echo_interval_ms,
            *echo_misses == new.echo_misses,
            *handshake_ms == new.handshake_ms,
            *packet_patience_ms == new.packet_patience_ms,
        ];

        let different = KEYS.into_iter().zip(same).filter(|(_, same)| !same).map(|(key, _)| key);
        #[cfg(feature = "cluster")]
        let different = different.chain((*cluster != new.cluster).then_some("[cluster]"));
        different.collect()
    }

    /// Checks lists and ranges.
    ///
    /// # Errors
    ///
    /// Returns an error if a list is empty or a number is out of range. The text names the key and the allowed values.
    fn check(&self) -> Result<(), Failure> {
        let lists = [
            ("apps", &self.apps),
            ("listen", &self.listen),
            ("switch_allow", &self.switch_allow),
            ("switch_allow_from", &self.switch_allow_from),
        ];

        for (key, list) in lists {
            if list.as_ref().is_some_and(Vec::is_empty) {
                return Err(
                    format!("[controller]: {key} = [] is empty: remove `{key}` to use the default").into()
                );
            }
        }

        let numbers = [
            ("connections_max", self.connections_max, 1..=1_000_000),
            ("half_open_max", self.half_open_max, 1..=1_000_000),
            ("echo_interval_ms", self.echo_interval_ms, 100..=3_600_000),
            ("echo_misses", self.echo_misses.map(u64::from), 1..=1_000),
            ("handshake_ms", self.handshake_ms, 100..=600_000),
            ("packet_patience_ms", self.packet_patience_ms, 0..=60_000),
        ];

        for (key, number, range) in numbers {
            if let Some(number) = number.filter(|number| !range.contains(number)) {
                let (least, most) = range.into_inner();
                return Err(format!(
                    "[controller]: {number} is out of range (expected {least} to {most}), in `{key}`"
                )
                .into());
            }
        }

        Ok(())
    }
}

#[cfg(not(feature = "cluster"))]
const TABLES: [&str; 2] = ["controller", "apps"];
#[cfg(feature = "cluster")]
const TABLES: [&str; 3] = ["controller", "apps", "cluster"];
const KEYS: [&str; 19] = [
    "apps",
    "listen",
    "switch_tls_dir",
    "switch_tls_bind",
    "listen_plain",
    "switch_allow",
    "switch_allow_from",
    "http",
    "http_insecure",
    "http_hosts",
    "http_token_file",
    "log",
    "data",
    "connections_max",
    "half_open_max",
    "echo_interval_ms",
    "echo_misses",
    "handshake_ms",
    "packet_patience_ms",
];
/// Maximum length of the file, in bytes.
const LENGTH_MAX: u64 = 1024 * 1024;

/// Reads the file. Returns the table `[controller]` and the tables of the apps. Tables of `custom` apps are also
/// allowed.
pub(super) fn read(file: &Path, custom: &[AppChoice]) -> Result<(Configuration, toml::Table), Failure> {
    let name = file.display();
    let mut bytes = Vec::new();
    // a pipe or a device has no length, so reads at most one byte more than allowed
    let begun = File::open(file).map(|file| file.take(LENGTH_MAX + 1));
    let length = begun.and_then(|mut begun| begun.read_to_end(&mut bytes));
    if length.map_err(|error| format!("{name}: {error}"))? as u64 > LENGTH_MAX {
        return Err(format!("{name}: the configuration file is too long (at most {LENGTH_MAX} bytes)").into());
    }

    // checks the encoding only after the length, because reading may cut the last character of a file that is too long
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = valid.split(|byte| *byte == b'\n').count();
        format!("{name}: line {line} is not UTF-8 text")
    })?;

    parse(&text, custom).map_err(|error| format!("{name}: {error}").into())
}

fn parse(text: &str, custom: &[AppChoice]) -> Result<(Configuration, toml::Table), Failure> {
    let mut file: toml::Table = text.parse().map_err(|error| syntax_error(text, &error))?;
    check_names("table", "", file.keys(), &TABLES)?;
    let controller: Configuration = table("controller", &KEYS, file.remove("controller"))?;
    controller.check()?;
    #[cfg(feature = "cluster")]
    let controller =
        Configuration { cluster: table("cluster", &cluster::KEYS, file.remove("cluster"))?, ..controller };

    let apps = match file.remove("apps") {
        Some(toml::Value::Table(table)) => table,
        Some(_) => return Err("`apps` must be a table of tables: [apps.learning-switch]".into()),
        None => toml::Table::new(),
    };

    check_names("app", "[apps]: ", apps.keys(), &apps::tables(custom))?;
    Ok((controller, apps))
}

/// Parses a table with these keys.
fn table<T: DeserializeOwned + Default>(
    name: &str,
    keys: &[&str],
    value: Option<toml::Value>,
) -> Result<T, Failure> {
    match value {
        Some(toml::Value::Table(table)) => {
            check_names("key", &format!("[{name}]: "), table.keys(), keys)?;
            let parsed = toml::Value::Table(table).try_into().map_err(|error: toml::de::Error| {
                let words = error.to_string().trim().replace("\nin ", ", in ");
                format!("[{name}]: {}", words.replace("a sequence", "a list such as [\"..\"]"))
            });
            Ok(parsed?)
        }
        Some(_) => Err(format!("`{name}` must be a table: [{name}]").into()),
        None => Ok(T::default()),
    }
}

/// Describes a syntax error by line and column. Does not show the line itself, which may contain a secret.
fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let (line, rest) = (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or_default());
    let column = rest.chars().count() + 1;
    format!("syntax error at line {line}, column {column}: {}", error.message().replace('\n', ", "))
}

/// Returns the settings of the running apps, and the names of the apps that have settings but are not running.
pub(super) fn settings_of(settings: toml::Table, apps: &[AppChoice]) -> (toml::Table, Vec<String>) {
    let runs = |name: &str| apps.iter().any(|app| app.has_settings(name));
    let (running, unused): (toml::Table, toml::Table) =
        settings.into_iter().partition(|(name, _)| runs(name));
    (running, unused.into_iter().map(|(name, _)| name).collect())
}

/// Checks that all names are known.
///
/// # Errors
///
/// Returns an error if a name is unknown. The text suggests the nearest known name, or lists all of them.
fn check_names<'a>(
    what: &str,
    place: &str,
    keys: impl Iterator<Item = &'a String>,
    known: &[&str],
) -> Result<(), Failure> {
    for key in keys {
        if !known.contains(&key.as_str()) {
            return Err(match nearest_name(key, known) {
                Some(near) => format!("{place}unknown {what} `{key}`; did you mean `{near}`?").into(),
                None => format!("{place}unknown {what} `{key}` (expected {})", known.join(", ")).into(),
            });
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text, &[]).expect_err("accepted").to_string()
    }

    #[test]
    fn unknown_keys_are_refused_with_a_suggestion() {
        assert!(refusal("[controler]\n").contains("did you mean `controller`?"));
        assert!(
            refusal("[controller]\nlissten = []\n")
                .contains("[controller]: unknown key `lissten`; did you mean `listen`?")
        );
        assert!(refusal("[controller]\nfrobnicate = 1\n").contains("`frobnicate` (expected apps, listen,"));
        assert!(refusal("[apps.learning_switch]\n").contains("did you mean `learning-switch`?"));
        assert!(refusal("[controller]\nlisten = 5\n").contains("[controller]"));

        assert!(
            refusal("[controller]\napps = \"hub\"\n").contains("expected a list such as [\"..\"], in `apps`")
        );
    }

    #[test]
    fn syntax_errors_have_a_position_and_do_not_show_the_line() {
        assert!(refusal("[controller\n").contains("syntax error at line 1, column 12: "));
        let words = refusal("[controller]\nlog = \"info\"\n[apps.discovery]\nsecret = \"hush, hush\n");
        assert!(words.contains("syntax error at line 4, column ") && !words.contains("hush"), "{words}");
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range_and_the_key() {
        let (mut allowed, range) = (
            String::from("[controller]\n"),
            [
                ("connections_max", 1, 1_000_000),
                ("half_open_max", 1, 1_000_000),
                ("echo_interval_ms", 100, 3_600_000),
                ("echo_misses", 1, 1_000),
                ("handshake_ms", 100, 600_000),
                ("packet_patience_ms", 0, 60_000),
            ],
        );

        for (key, least, most) in range {
            let words = format!("{} is out of range (expected {least} to {most}), in `{key}`", most + 1);
            assert!(refusal(&format!("[controller]\n{key} = {}\n", most + 1)).contains(&words));
            // if the number is negative, its type refuses it, and that error also names the key
            assert!(
                refusal(&format!("[controller]\n{key} = {}\n", least - 1)).contains(&format!("in `{key}`"))
            );
            allowed += &format!("{key} = {least}\n");
        }

        assert!(parse(&allowed, &[]).is_ok());
        for key in ["apps", "listen", "switch_allow", "switch_allow_from"] {
            assert!(refusal(&format!("[controller]\n{key} = []\n")).contains(&format!("{key} = []")));
        }
    }

    #[test]
    fn a_file_that_is_too_long_or_not_text_is_refused_as_such() {
        let file = std::env::temp_dir().join(format!("beehive-configuration-{}", std::process::id()));
        let refusal = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            read(&file, &[]).expect_err("accepted").to_string()
        };

        // the limit falls inside a character
        let long = format!("# {}", "\u{e9}".repeat(LENGTH_MAX as usize));
        for long in [long.as_bytes(), &long.as_bytes()[1..]] {
            assert!(refusal(long).contains("too long (at most 1048576 bytes)"), "{}", refusal(long));
        }
        let words = refusal(b"[controller]\nlog = \"info\"\n# caf\xe9\n");
        assert!(
            words.contains("line 3 is not UTF-8 text") && words.contains("beehive-configuration-"),
            "{words}"
        );
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn every_key_is_known() {
        let text = "[controller]\napps = [\"hub\"]\nlisten = [\"127.0.0.1:1\"]\nhttp = \"off\"\nhttp_insecure = true\n\
            switch_tls_dir = \"tls\"\nswitch_tls_bind = true\nlisten_plain = [\"127.0.0.1:2\"]\nswitch_allow = [\"1\"]\n\
            switch_allow_from = [\"10.0.0.0/8\"]\nhttp_hosts = [\"a\"]\nhttp_token_file = \"t\"\nlog = \"debug\"\ndata = \"d\"\nconnections_max = 5\nhalf_open_max = 4\necho_interval_ms = 100\n\
            echo_misses = 2\nhandshake_ms = 1000\npacket_patience_ms = 5\n[apps.hub]\n";
        let (c, apps) = parse(text, &[]).unwrap();
        assert_eq!((c.connections_max, c.echo_misses, apps.len()), (Some(5), Some(2), 1));
        for key in KEYS {
            assert!(text.contains(&format!("{key} =")), "{key} is not in this test");
        }
    }
}
