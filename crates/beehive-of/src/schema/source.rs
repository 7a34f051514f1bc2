//! Named values that messages are composed from.

/// The field in an error of a name that no field of a match has, from 1.2 on.
pub(crate) const NAME_OF_FIELD: &str = "name of a match field";
/// That of a match of 1.0.
pub(crate) const NAME_OF_FIELD_10: &str = "name of a match field of 1.0";
/// That of the fixed match of 1.1.
pub(crate) const NAME_OF_FIELD_11: &str = "name of a match field of 1.1";

/// A value that is told: a number, text, a list or a record. Others implement it for their own trees, such as JSON.
pub trait Source {
    /// The field of a record with this name; `None` when there is none, or when this is no record.
    fn field(&self, name: &str) -> Option<&dyn Source>;

    /// The field of a record at this place, with its name.
    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)>;

    /// The element of a list at this place.
    fn item(&self, index: usize) -> Option<&dyn Source>;

    /// The number, or the number that text is: decimal, or hexadecimal after `0x`.
    fn number(&self) -> Option<u64>;

    /// The text.
    fn text(&self) -> Option<&str>;

    /// Whether it is true or false; `None` when it is something else.
    fn flag(&self) -> Option<bool> {
        None
    }

    /// Whether [`entry`](Self::entry) and [`item`](Self::item) tell all that there is. If so, what no message asks for is refused.
    /// A source that has an answer to whatever it is asked says `false`.
    fn is_closed(&self) -> bool {
        true
    }
}
