//! The interface of named values that messages are composed from.

/// The `field` of the error for an unknown name of a match field, from 1.2 on.
pub(crate) const NAME_OF_FIELD: &str = "name of a match field";
/// The `field` of the error for an unknown name of a match field in 1.0.
pub(crate) const NAME_OF_FIELD_10: &str = "name of a match field of 1.0";
/// The `field` of the error for an unknown name of a match field in 1.1.
pub(crate) const NAME_OF_FIELD_11: &str = "name of a match field of 1.1";

/// A value to compose from: a number, text, a boolean, a list or a record. Implement this trait for another
/// tree type, such as a JSON value.
pub trait Source {
    /// Returns the field with this name in a record; `None` if there is no such field or this is not a
    /// record.
    fn field(&self, name: &str) -> Option<&dyn Source>;

    /// Returns the field of a record at this index, with its name.
    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)>;

    /// Returns the element of a list at this index.
    fn item(&self, index: usize) -> Option<&dyn Source>;

    /// Returns the number. Text is parsed as a number: decimal, or hexadecimal after `0x`.
    fn number(&self) -> Option<u64>;

    /// Returns the text; `None` if this is something else.
    fn text(&self) -> Option<&str>;

    /// Returns the boolean; `None` if this is something else.
    fn flag(&self) -> Option<bool> {
        None
    }

    /// Returns whether [`entry`](Self::entry) and [`item`](Self::item) enumerate all values. If so, values
    /// that the message does not use are refused. A source that generates values on demand returns `false`.
    fn is_closed(&self) -> bool {
        true
    }
}
