//! What a log says about the types of what is in it, and whether a program can read it.

use crate::{Colony, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The apps of the program that writes a log, by number, and its messages, by name: what they are encoded like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shapes {
    /// The apps, in order: a log calls them by their number.
    pub apps: Vec<AppShapes>,
    /// The messages that some app handles.
    pub messages: BTreeMap<String, Shape>,
}

/// What an app keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppShapes {
    /// Its name.
    pub name: String,
    /// Its dictionaries, in order: a log calls them by their number.
    pub dictionaries: Vec<(String, Shape)>,
}

const REMEDY: &str = "start the program that wrote the log, or give this one what it had: the same fields in the same \
    order. A field or dictionary that is called otherwise now may keep its name in the log with `#[serde(rename = \"..\")]`; \
    variants may be added at the end of an enumeration; what else is new belongs in a dictionary or message of its own";

impl Shapes {
    /// Whether a program with these shapes can read what is in a log; else what is in the way, and what to do about it.
    ///
    /// What a log does not hold may have changed as it likes.
    pub fn read(&self, colony: &Colony) -> Result<(), String> {
        let wrote = &colony.shapes;
        for ((number, _), bee) in &colony.bees {
            // a log from before shapes were kept says nothing
            let Some(old) = wrote.apps.get(usize::from(*number)) else { continue };
            let Some(new) = self.apps.get(usize::from(*number)) else {
                return Err(format!("it has bees of the app `{}`, which is not there", old.name));
            };
            if new.name != old.name {
                return Err(format!(
                    "its app number {number} is `{}`, and here it is `{}`: add the apps in the same order, new ones last",
                    old.name, new.name
                ));
            }
            let mut last = None;
            for dict in bee.state.dictionaries().filter(|dict| last.replace(*dict) != Some(*dict)) {
                self.reads_dictionary(old, new, dict as usize)?
            }
        }
        let waiting = colony.outbox.values().chain(colony.sweeps.values().map(|sweep| &sweep.waiting));
        for waiting in waiting {
            let name = waiting.emit.name.split('@').next().unwrap_or_default();
            if let (Some(old), Some(new)) = (wrote.messages.get(name), self.messages.get(name)) {
                new.reads(old).map_err(|differs| {
                    format!("a message `{name}` that waits in it cannot be read: {differs}. {REMEDY}")
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
                "dictionary number {dict} of app `{app}` is `{name}` there and `{other}` here: keep them in the same order, \
                 and add new ones behind them"
            )),
            None => Err(format!("the dictionary `{name}` of app `{app}` is not there any more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BeeId, BeeImage, Op};

    fn shapes(dictionaries: &[(&str, Shape)]) -> Shapes {
        let dictionaries =
            dictionaries.iter().map(|(name, shape)| (name.to_string(), shape.clone())).collect();
        Shapes { apps: vec![AppShapes { name: "bank".into(), dictionaries }], messages: BTreeMap::new() }
    }

    fn colony(shapes: Shapes, dicts: &[u32]) -> Colony {
        let mut bee = BeeImage::default();
        for dict in dicts {
            bee.state.apply(&Op { dict: *dict, key: vec![1], row: None, value: Some(vec![2]) })
        }
        Colony { shapes, bees: BTreeMap::from([((0, BeeId(1)), bee)]), ..Colony::default() }
    }

    #[test]
    fn what_a_log_holds_must_be_as_it_was_and_nothing_else() {
        let (number, text) = (Shape::of::<u64>(), Shape::of::<String>());
        let old = shapes(&[("accounts", number.clone()), ("names", text.clone())]);
        assert_eq!(old.read(&colony(old.clone(), &[0, 1])), Ok(()));
        let changed = shapes(&[("accounts", text.clone()), ("names", text.clone())]);
        let why = changed.read(&colony(old.clone(), &[0])).unwrap_err();
        assert!(why.starts_with(
            "the dictionary `accounts` of app `bank` cannot be read: was u64 and is str. start"
        ));
        assert_eq!(
            changed.read(&colony(old.clone(), &[1])),
            Ok(()),
            "nothing is in the one that has changed"
        );
        let between =
            shapes(&[("accounts", number.clone()), ("new", number.clone()), ("names", text.clone())]);
        assert!(
            between.read(&colony(old.clone(), &[1])).unwrap_err().contains("keep them in the same order")
        );
        let behind = shapes(&[("accounts", number.clone()), ("names", text), ("new", number.clone())]);
        assert_eq!(behind.read(&colony(old.clone(), &[0, 1])), Ok(()));
        let fewer = shapes(&[("accounts", number)]);
        assert!(
            fewer
                .read(&colony(old.clone(), &[1]))
                .unwrap_err()
                .contains("`names` of app `bank` is not there")
        );
        let mut renamed = old.clone();
        renamed.apps[0].name = "shop".into();
        assert!(
            renamed
                .read(&colony(old.clone(), &[0]))
                .unwrap_err()
                .contains("is `bank`, and here it is `shop`")
        );
        assert_eq!(renamed.read(&colony(Shapes::default(), &[0])), Ok(()), "a log that says nothing");
    }
}
