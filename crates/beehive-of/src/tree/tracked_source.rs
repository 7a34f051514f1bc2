//! A source that records which of its values are read, in order to refuse unused values and to find the path
//! of an error.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell, RefCell};

use super::compose_error::{ComposeError, ComposeProblem};
use super::nearest_name::nearest;
use crate::encode::EncodeError;
use crate::message::{MATCH_NAMES_10, MATCH_NAMES_11};
use crate::oxm::FIELDS;
use crate::schema::{NAME_OF_FIELD, NAME_OF_FIELD_10, NAME_OF_FIELD_11, Source};

/// The position of a value in its parent.
#[derive(Clone, Copy, PartialEq)]
enum Place<'t> {
    Root,
    Key(&'t str),
    Index(usize),
}

impl Place<'_> {
    /// Returns the path of this position in a parent with path `path`.
    fn below(self, path: &str) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(name) if path.is_empty() => String::from(name),
            Self::Key(name) => format!("{path}.{name}"),
            Self::Index(index) => format!("{path}[{index}]"),
        }
    }
}

/// A value of the source and the time of its last access.
pub(crate) struct TrackedSource<'t> {
    source: &'t dyn Source,
    place: Place<'t>,
    /// Logical clock shared by the whole tree; counts accesses.
    clock: &'t Cell<u64>,
    /// Time of the last access to this value; 0 if there was no access.
    used: Cell<u64>,
    /// Whether the number, text or flag of this value was read.
    read: Cell<bool>,
    values: OnceCell<Vec<TrackedSource<'t>>>,
    /// Names of the fields that were requested but are absent, with the latest request last.
    absent: RefCell<Vec<String>>,
    /// Time of the latest request for an absent field; 0 if there was no such request.
    missed: Cell<u64>,
}

impl<'t> TrackedSource<'t> {
    /// Wraps the root of a source. No access is recorded yet.
    pub(crate) fn new(source: &'t dyn Source, clock: &'t Cell<u64>) -> Self {
        Self::at(Place::Root, source, clock)
    }

    fn at(place: Place<'t>, source: &'t dyn Source, clock: &'t Cell<u64>) -> Self {
        Self {
            source,
            place,
            clock,
            used: Cell::new(0),
            read: Cell::new(false),
            values: OnceCell::new(),
            absent: RefCell::default(),
            missed: Cell::new(0),
        }
    }

    /// Returns the children. They are created on first access, so values that are never read may be nested to
    /// any depth.
    fn values(&self) -> &[Self] {
        self.values.get_or_init(|| {
            let entry = |index| self.source.entry(index);
            let item = |index| self.source.item(index);
            let entries = (0..).map_while(entry).map(|(name, value)| (Place::Key(name), value));
            let items = (0..).map_while(|index| Some((Place::Index(index), item(index)?)));
            entries.chain(items).map(|(place, value)| Self::at(place, value, self.clock)).collect()
        })
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    fn using(&self) -> &dyn Source {
        self.used.set(self.tick());
        self
    }

    fn reading(&self) -> &'t dyn Source {
        self.used.set(self.tick());
        self.read.set(true);
        self.source
    }

    /// Returns the child at a position.
    fn value(&self, place: Place<'_>) -> Option<&Self> {
        self.values().iter().find(|value| value.place == place)
    }

    /// Returns the error for the first value, in preorder, that was not read.
    pub(crate) fn unused(&self) -> Option<ComposeError> {
        self.unused_below("")
    }

    fn unused_below(&self, path: &str) -> Option<ComposeError> {
        let path = self.place.below(path);
        if !self.source.is_closed() {
            return None;
        }

        let values = self.values();
        if values.is_empty() && !self.read.get() && self.shown().is_some() {
            // The structure expected another type, for example a list.
            return Some(self.wrong(path));
        }

        values.iter().find_map(|value| match value.used.get() {
            0 => Some(self.unknown(value, &path)),
            _ => value.unused_below(&path),
        })
    }

    /// Returns the error for a child that was not read.
    fn unknown(&self, value: &Self, path: &str) -> ComposeError {
        let Place::Key(name) = value.place else {
            return value.wrong(value.place.below(path));
        };
        let twice = self.values().iter().any(|other| other.used.get() > 0 && other.place == value.place);
        let problem = match twice {
            true => ComposeProblem::Twice,
            false => ComposeProblem::Unknown {
                nearest: nearest(name, self.absent.borrow().iter().map(String::as_str)),
            },
        };

        ComposeError::new(value.place.below(path), problem)
    }

    /// Returns the value as text; `None` if it is null, a list or a record.
    fn shown(&self) -> Option<String> {
        let text = self.source.text().map(String::from);
        text.or_else(|| self.source.number().map(|number| number.to_string()))
            .or_else(|| self.source.flag().map(|flag| flag.to_string()))
    }

    fn wrong(&self, path: String) -> ComposeError {
        ComposeError::new(path, ComposeProblem::Value(self.shown()))
    }

    /// Adds a path to an error: the path of the value that was accessed last.
    pub(crate) fn blame(&self, error: EncodeError) -> ComposeError {
        let (mut at, mut path) = (self, String::new());
        while let Some(value) = at.last() {
            (at, path) = (value, value.place.below(&path));
        }

        let EncodeError::Value { field } = error else {
            return ComposeError::new(path, ComposeProblem::Encode(error));
        };
        let names = match field {
            NAME_OF_FIELD_10 => Some(MATCH_NAMES_10),
            NAME_OF_FIELD_11 => Some(MATCH_NAMES_11),
            _ => None,
        };
        let nearest_field = |name: &str| match names {
            Some(names) => nearest(name, names.iter().copied()),
            None => nearest(name, FIELDS.iter().map(|known| known.name)),
        };

        match (at.place, at.missed.get() > at.used.get()) {
            (Place::Key(name), false) if names.is_some() || field == NAME_OF_FIELD => {
                ComposeError::new(path, ComposeProblem::Unknown { nearest: nearest_field(name) })
            }
            (_, true) => at.missing(&path),
            _ => at.wrong(path),
        }
    }

    /// Returns the child that was accessed last, unless an absent field was requested after it.
    fn last(&self) -> Option<&Self> {
        let last = self.values.get()?.iter().max_by_key(|value| value.used.get())?;
        (last.used.get() > self.missed.get()).then_some(last)
    }

    /// Returns the error for the absent field that was requested last: an unknown key, if an unused key has a
    /// similar name, or else a missing key.
    fn missing(&self, path: &str) -> ComposeError {
        let absent = self.absent.borrow();
        let name = absent.last().map_or("", String::as_str);
        let misspelled = self.values().iter().find(|value| match value.place {
            Place::Key(key) if value.used.get() == 0 => nearest(key, [name].into_iter()).is_some(),
            _ => false,
        });

        match misspelled {
            Some(value) => {
                let nearest = Some(String::from(name));
                ComposeError::new(value.place.below(path), ComposeProblem::Unknown { nearest })
            }
            None => {
                let wanted = Place::Key(name).below(path);
                ComposeError::new(wanted, ComposeProblem::Missing)
            }
        }
    }
}

impl Source for TrackedSource<'_> {
    fn field(&self, name: &str) -> Option<&dyn Source> {
        if !self.source.is_closed() {
            return self.source.field(name);
        }

        let found = self.value(Place::Key(name));
        if found.is_none() {
            let mut absent = self.absent.borrow_mut();
            absent.retain(|known| known != name);
            absent.push(String::from(name));
            self.missed.set(self.tick());
        }

        found.map(Self::using)
    }

    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)> {
        if !self.source.is_closed() {
            return self.source.entry(index);
        }
        let value = self.values().get(index)?;
        match value.place {
            Place::Key(name) => Some((name, value.using())),
            _ => None,
        }
    }

    fn item(&self, index: usize) -> Option<&dyn Source> {
        if !self.source.is_closed() {
            return self.source.item(index);
        }
        let value = self.values().get(index)?;
        matches!(value.place, Place::Index(_)).then(|| value.using())
    }

    fn number(&self) -> Option<u64> {
        self.reading().number()
    }

    fn text(&self) -> Option<&str> {
        self.reading().text()
    }

    fn flag(&self) -> Option<bool> {
        self.reading().flag()
    }

    fn is_closed(&self) -> bool {
        self.source.is_closed()
    }
}
