//! A log's schema, which describes how values are encoded, and the check that a program can read them.

use crate::{LogState, MessageTypeId, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A log's schema: how the program that writes the log encodes dictionaries and messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shapes {
    /// The apps. Their order matters, because records refer to an app by its position.
    pub apps: Vec<AppShapes>,
    /// The messages handled by at least one app, by type name.
    pub messages: BTreeMap<String, Shape>,
    /// The names of the types of logged messages (see [`MessageTypeId::name`]).
    pub names: BTreeMap<MessageTypeId, String>,
}

/// An app's dictionaries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppShapes {
    /// The app's name.
    pub name: String,
    /// Name and shape of each dictionary. Their order matters, because redo operations refer to a dictionary by its
    /// position.
    pub dictionaries: Vec<(String, Shape)>,
}

const REMEDY: &str = "start the program that wrote the log, or give this program the same fields in the same order. \
    A renamed field or dictionary can keep its old name in the log with `#[serde(rename = \"..\")]`; new variants may be \
    added at the end of an enumeration; put other new data into a new dictionary or message";

impl Shapes {
    /// Returns the name of a message type, or `None` if the log does not name it.
    pub fn name_of(&self, message_type: MessageTypeId) -> Option<&str> {
        self.names.get(&message_type).map(String::as_str)
    }

    /// Checks that a program with these shapes can read the contents of a log. Dictionaries and messages that the log
    /// does not contain may have any shape.
    ///
    /// # Errors
    ///
    /// Returns an error that describes the first value that the program cannot read, and how to fix the
    /// problem.
    pub fn read(&self, state: &LogState) -> Result<(), String> {
        let wrote = &state.shapes;
        for ((app, _), bee) in &state.bees {
            // A log without shapes cannot be checked.
            let Some(old) = wrote.apps.get(app.index()) else { continue };
            let Some(new) = self.apps.get(app.index()) else {
                return Err(format!(
                    "it contains bees of the app `{}`, which this program does not have",
                    old.name
                ));
            };
            if new.name != old.name {
                return Err(format!(
                    "app number {} is `{}` in the log and `{}` in this program: add the apps in the same order, new ones last",
                    app.0, old.name, new.name
                ));
            }

            let mut last = None;
            for dict in bee.state.dictionaries().filter(|dict| last.replace(*dict) != Some(*dict)) {
                self.reads_dictionary(old, new, dict as usize)?
            }
        }

        let waiting = state.outbox.values().chain(state.sweeps.values().map(|sweep| &sweep.waiting));
        for waiting in waiting {
            // A log without shapes cannot be checked.
            let number = &waiting.emit.message_type;
            let Some(name) = wrote.names.get(number) else { continue };
            if let Some(other) = self.names.get(number).filter(|other| *other != name) {
                return Err(format!(
                    "an unhandled message `{name}` has the same type number as `{other}` of this program: rename `{other}`"
                ));
            }

            let name = name.split('@').next().unwrap_or_default();
            if let (Some(old), Some(new)) = (wrote.messages.get(name), self.messages.get(name)) {
                new.reads(old).map_err(|differs| {
                    format!("an unhandled message `{name}` cannot be read: {differs}. {REMEDY}")
                })?
            }
        }
        Ok(())
    }

    fn reads_dictionary(&self, old: &AppShapes, new: &AppShapes, dict: usize) -> Result<(), String> {
        let (app, Some((name, old))) = (&old.name, old.dictionaries.get(dict)) else { return Ok(()) };
        match new.dictionaries.get(dict) {
            Some((same, new)) if same == name => new.reads(old).map_err(|differs| {
                format!("the dictionary `{name}` of app `{app}` cannot be read: {differs}. {REMEDY}")
            }),
            Some((other, _)) => Err(format!(
                "dictionary number {dict} of app `{app}` is `{name}` in the log and `{other}` in this program: keep them in the same order, \
                 and add new ones after them"
            )),
            None => Err(format!("the dictionary `{name}` of app `{app}` no longer exists")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppId, BeeId, BeeImage, Op};

    fn shapes(dictionaries: &[(&str, Shape)]) -> Shapes {
        let dictionaries =
            dictionaries.iter().map(|(name, shape)| (name.to_string(), shape.clone())).collect();
        Shapes { apps: vec![AppShapes { name: "bank".into(), dictionaries }], ..Shapes::default() }
    }

    fn state(shapes: Shapes, dicts: &[u32]) -> LogState {
        let mut bee = BeeImage::default();
        for dict in dicts {
            bee.state.apply(Op { dict: *dict, key: &[1], row: None, value: Some(&[2]) })
        }
        LogState {
            shapes,
            bees: BTreeMap::from([((AppId(0), BeeId(1)), Box::new(bee))]),
            ..LogState::default()
        }
    }

    #[test]
    fn what_a_log_holds_must_be_as_it_was_and_nothing_else() {
        let (number, text) = (Shape::of::<u64>(), Shape::of::<String>());
        let old = shapes(&[("accounts", number.clone()), ("names", text.clone())]);
        assert_eq!(old.read(&state(old.clone(), &[0, 1])), Ok(()));

        let changed = shapes(&[("accounts", text.clone()), ("names", text.clone())]);
        let why = changed.read(&state(old.clone(), &[0])).unwrap_err();
        assert!(why.starts_with(
            "the dictionary `accounts` of app `bank` cannot be read: was u64 and is str. start"
        ));
        assert_eq!(changed.read(&state(old.clone(), &[1])), Ok(()), "the changed dictionary has no cells");

        let between =
            shapes(&[("accounts", number.clone()), ("new", number.clone()), ("names", text.clone())]);
        assert!(between.read(&state(old.clone(), &[1])).unwrap_err().contains("keep them in the same order"));

        let behind = shapes(&[("accounts", number.clone()), ("names", text), ("new", number.clone())]);
        assert_eq!(behind.read(&state(old.clone(), &[0, 1])), Ok(()));

        let fewer = shapes(&[("accounts", number)]);
        assert!(
            fewer
                .read(&state(old.clone(), &[1]))
                .unwrap_err()
                .contains("`names` of app `bank` no longer exists")
        );

        let mut renamed = old.clone();
        renamed.apps[0].name = "shop".into();
        assert!(
            renamed
                .read(&state(old.clone(), &[0]))
                .unwrap_err()
                .contains("is `bank` in the log and `shop` in this program")
        );
        assert_eq!(renamed.read(&state(Shapes::default(), &[0])), Ok(()), "a log without shapes");
    }
}
