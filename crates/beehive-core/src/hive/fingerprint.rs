//! Describes the apps of a hive, so that the hives of a cluster can compare them.

use crate::app::Handlers;
use crate::state::ConfigSource;
use crate::state::any::AnyState;

/// A function that describes an app. It gets the settings of all apps, by app name.
pub(in crate::hive) type Describe = fn(&toml::Table) -> String;

/// Describes an app: its handlers, and the shapes of its dictionaries. If the app refuses its settings, the shapes are left out:
/// the start of the hive reports the error.
pub(in crate::hive) fn describe<A: Handlers>(settings: &toml::Table) -> String {
    let mut text = format!("app {:?}\n", A::NAME);
    for handler in A::REPORT {
        text += &format!("handler {:?} {:?} {:?}\n", handler.name, handler.message, handler.answer)
    }

    let table = settings.get(A::NAME).and_then(toml::Value::as_table).cloned().unwrap_or_default();
    if let Ok(mut app) = A::configured(&ConfigSource::new(A::NAME, table)) {
        for (name, shape) in AnyState::shapes(&mut app) {
            text += &format!("dictionary {name:?} {shape}\n")
        }
    }
    text
}
