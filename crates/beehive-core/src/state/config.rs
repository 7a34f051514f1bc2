//! An app's typed settings, which handlers can only read and which are the same on all hives.

use crate::state::names;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The settings of an app, from the table `[apps.<name>]` of the configuration.
///
/// `Config<T>` dereferences to `T` and is cheap to clone. Only the hive makes one, so a handler cannot assign other
/// settings. Settings may change what a handler does, but never which cells it touches; otherwise a reload would have to
/// move cells.
#[derive(Debug)]
pub struct Config<T>(Arc<T>);

impl<T> Clone for Config<T> {
    fn clone(&self) -> Self {
        Config(self.0.clone())
    }
}
impl<T> std::ops::Deref for Config<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The source of an app's settings.
#[derive(Clone, Debug, Default)]
pub struct ConfigSource {
    app: &'static str,
    table: toml::Table,
}

/// Settings rejected by an app.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The table that contains the error, for example `apps.learning-switch`.
    pub table: String,
    /// A description of the error, with the valid names.
    pub why: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}]: {}", self.table, self.why)
    }
}
beehive_protocol::debug_is_display!(ConfigError);

impl std::error::Error for ConfigError {}

impl ConfigSource {
    /// Wraps the settings `table` of `app`.
    pub fn new(app: &'static str, table: toml::Table) -> Self {
        ConfigSource { app, table }
    }

    /// Returns an error unless the table is empty. Used for an app without settings.
    pub fn none(&self) -> Result<(), ConfigError> {
        match self.table.keys().next() {
            None => Ok(()),
            Some(key) => Err(ConfigError {
                table: format!("apps.{}", self.app),
                why: format!("unknown key `{key}`: this app has no settings"),
            }),
        }
    }

    /// Parses the settings. If `T` has defaults, missing keys take them.
    pub fn config<T: DeserializeOwned>(&self) -> Result<Config<T>, ConfigError> {
        toml::Value::Table(self.table.clone()).try_into().map(|settings| Config(Arc::new(settings))).map_err(
            |error| ConfigError {
                table: format!("apps.{}", self.app),
                why: match names::unknown(error.message()) {
                    Some((key, known)) => {
                        let refusal = names::refusal("key", key, &known);
                        // The second line of the error names the inner table, if there is one.
                        match error.to_string().trim().rsplit_once("\nin ") {
                            Some((_, inner)) => {
                                refusal.replacen(&format!("`{key}`"), &format!("`{key}` in {inner}"), 1)
                            }
                            None => refusal,
                        }
                    }
                    // The second line of the error names the key.
                    None => error.to_string().trim().replace("\nin ", ", in "),
                },
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug, Default)]
    #[serde(default, deny_unknown_fields)]
    #[allow(dead_code)]
    struct Rule {
        port: u16,
    }

    #[derive(Deserialize, Debug, Default)]
    #[serde(default, deny_unknown_fields)]
    #[allow(dead_code)]
    struct Rules {
        most: u8,
        default: Rule,
        rules: Vec<Rule>,
    }

    #[test]
    fn an_error_names_the_table_the_inner_table_and_the_key() {
        let refusal = |text: &str| {
            let source = ConfigSource::new("wall", text.parse().unwrap());
            source.config::<Rules>().expect_err("accepted").to_string()
        };

        assert_eq!(refusal("mots = 1"), "[apps.wall]: unknown key `mots`; did you mean `most`?");
        let inner = "[apps.wall]: unknown key `prt` in `default`; did you mean `port`?";
        assert_eq!(refusal("[default]\nprt = 1"), inner);
        assert!(
            refusal("[[rules]]\nprt = 1").contains("`prt` in `rules"),
            "{}",
            refusal("[[rules]]\nprt = 1")
        );
        assert!(refusal("most = 256").contains(", in `most`"), "{}", refusal("most = 256"));
        assert!(refusal("[default]\nport = \"1\"").contains(", in `default.port`"));
    }
}
