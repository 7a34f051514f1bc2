//! Reloads the configuration file while the controller is running. The settings of apps take effect; other changed
//! keys are only reported.

use super::apps::AppChoice;
use super::options::{ControllerArgs, Options};
use crate::api::Reloaded;
use beehive_core::{Hive, ReconfigureError};
use tokio::sync::Mutex;

/// Reloads the configuration file. The command line and the environment are still those from startup.
pub(crate) struct Reloader {
    hive: Hive,
    arguments: ControllerArgs,
    custom: Vec<AppChoice>,
    /// The options in force.
    options: Mutex<Options>,
}

/// The reason why a reload changed nothing, or not everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReloadError {
    /// The controller was started without a configuration file.
    NoFile,
    /// The file has an error. The text names the file, the key and the allowed values.
    Configuration(String),
    /// The settings of some apps are not in force yet. The text names them; all other changes are in force.
    NotYet(String),
    /// The controller is stopping.
    Stopped,
    /// The controller is one hive of a cluster.
    InCluster,
}

impl std::fmt::Display for ReloadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReloadError::NoFile => formatter
                .write_str("no configuration file to reload; start the controller with --config FILE"),
            ReloadError::Configuration(why) | ReloadError::NotYet(why) => formatter.write_str(why),
            ReloadError::Stopped => formatter.write_str("the controller is stopping"),
            ReloadError::InCluster => formatter.write_str(
                "the hives of a cluster cannot reload settings: one hive would decide by other settings than the next \
                 one; stop all hives, and start them with the new file",
            ),
        }
    }
}

impl Reloader {
    /// Returns `None` if the controller was started without a configuration file.
    pub(super) fn new(
        hive: Hive,
        arguments: ControllerArgs,
        custom: &[AppChoice],
        options: Options,
    ) -> Option<Self> {
        let options = options.has_file().then(|| Mutex::new(options))?;
        Some(Reloader { hive, arguments, custom: custom.to_vec(), options })
    }

    /// Reloads the file, applies the settings of the running apps, and logs the outcome.
    ///
    /// # Errors
    ///
    /// Returns a [`ReloadError`] if the reload fails. In that case nothing has changed, except after [`ReloadError::NotYet`].
    pub(crate) async fn reload(&self) -> Result<Reloaded, ReloadError> {
        let outcome = self.reload_locked().await;
        match &outcome {
            Ok(Reloaded { apps, at_next_start, without_effect }) => {
                tracing::info!(settings = ?apps, "configuration reloaded");
                if !at_next_start.is_empty() {
                    tracing::warn!(keys = ?at_next_start, "changed keys of [controller] take effect at the next start");
                }
                if !without_effect.is_empty() {
                    tracing::warn!(apps = ?without_effect, "settings ignored: the apps are not running");
                }
            }
            Err(why @ ReloadError::NotYet(_)) => tracing::error!(%why, "configuration reloaded in part"),
            Err(why) => tracing::error!(%why, "configuration not reloaded"),
        }

        outcome
    }

    /// Reloads the file under the lock, so that concurrent reloads run one after another.
    async fn reload_locked(&self) -> Result<Reloaded, ReloadError> {
        let mut options = self.options.lock().await;
        if options.is_in_cluster() {
            return Err(ReloadError::InCluster);
        }
        let new = Options::resolve(Some(&options), self.arguments.clone(), &self.custom)
            .map_err(|why| ReloadError::Configuration(why.to_string()))?;
        let at_next_start = options.differences(&new);
        let outcome = self.hive.reconfigure(new.settings.clone()).await;
        if let Err(ReconfigureError::NotCommitted { .. }) = outcome {
            // they take effect later
            options.settings = new.settings.clone()
        }
        let apps = outcome.map_err(|why| match why {
            ReconfigureError::Stopped => ReloadError::Stopped,
            ReconfigureError::NotCommitted { .. } => ReloadError::NotYet(why.to_string()),
            _ => ReloadError::Configuration(options.settings_error(&why).to_string()),
        })?;

        options.settings = new.settings;
        let words = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        Ok(Reloaded { apps: words(apps), at_next_start: words(at_next_start), without_effect: new.unused })
    }
}
