//! Describes the apps of a hive before it starts: for the hives of a cluster, which compare them, and for the check of a log.

use crate::app::Handlers;
use crate::hive::consensus::journal::AppShapes;
use crate::hive::dispatch::types::message_types::Types;
use crate::hive::registration::Registrar;
use crate::state::any::AnyState;
use crate::state::{ConfigError, ConfigSource};

/// The functions that describe an app. They get the settings of all apps, by app name.
pub(in crate::hive) struct Describe {
    /// Returns a text with its handlers and the shapes of its dictionaries.
    pub(in crate::hive) text: fn(&toml::Table) -> String,
    /// Returns the shapes of its dictionaries, and adds the types of its messages.
    pub(in crate::hive) shapes: fn(&toml::Table, &Types) -> Result<AppShapes, ConfigError>,
}

impl Describe {
    pub(in crate::hive) fn of<A: Handlers>() -> Describe {
        Describe { text: text::<A>, shapes: shapes::<A> }
    }
}

/// Describes an app: its handlers, and the shapes of its dictionaries. If the app refuses its settings, the shapes are left out:
/// the start of the hive reports the error.
fn text<A: Handlers>(settings: &toml::Table) -> String {
    let mut text = format!("app {:?}\n", A::NAME);
    for handler in A::REPORT {
        text += &format!("handler {:?} {:?} {:?}\n", handler.name, handler.message, handler.answer)
    }
    for (name, shape) in dictionaries::<A>(settings).into_iter().flatten() {
        text += &format!("dictionary {name:?} {shape}\n")
    }
    text
}

fn shapes<A: Handlers>(settings: &toml::Table, types: &Types) -> Result<AppShapes, ConfigError> {
    Registrar::<A>::describe(types);
    Ok(AppShapes { name: A::NAME.to_string(), dictionaries: dictionaries::<A>(settings)? })
}

fn dictionaries<A: Handlers>(
    settings: &toml::Table,
) -> Result<Vec<(String, beehive_protocol::Shape)>, ConfigError> {
    let table = settings.get(A::NAME).and_then(toml::Value::as_table).cloned().unwrap_or_default();
    Ok(AnyState::shapes(&mut A::configured(&ConfigSource::new(A::NAME, table))?))
}
