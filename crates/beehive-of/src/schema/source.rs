//! Named values that messages are composed from.

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
}
