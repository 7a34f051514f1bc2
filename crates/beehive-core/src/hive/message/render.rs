//! Renders values for people: messages as JSON. The output is cut at a given length, however large the value is.

use serde::Serialize;
use std::io::{Error, Write};

/// A writer that accepts `bytes_max` bytes and then fails.
struct Bounded {
    text: Vec<u8>,
    bytes_max: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let room = self.bytes_max - self.text.len();
        if room == 0 && !bytes.is_empty() {
            return Err(Error::other("enough"));
        }
        let taken = bytes.len().min(room);
        self.text.extend(bytes.iter().take(taken));
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Returns the JSON of a value, cut at a character boundary after at most `bytes_max` bytes. Appends `…` if
/// the JSON was cut or the value cannot be written as JSON.
pub(crate) fn bounded<T: Serialize + ?Sized>(value: &T, bytes_max: usize) -> String {
    bounded_by(bytes_max, |out| serde_json::to_writer(out, value).is_ok())
}

/// Returns the debug output of a value, cut as in [`bounded`].
#[cfg(feature = "testing")]
pub(crate) fn bounded_debug<T: std::fmt::Debug>(value: &T, bytes_max: usize) -> String {
    bounded_by(bytes_max, |out| write!(out, "{value:?}").is_ok())
}

/// Returns what `write` writes. It returns whether that is the whole.
fn bounded_by(bytes_max: usize, write: impl FnOnce(&mut Bounded) -> bool) -> String {
    let mut out = Bounded { text: Vec::new(), bytes_max };
    let whole = write(&mut out);
    let mut text = match String::from_utf8(out.text) {
        Ok(text) => text,
        // the last character was cut
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).unwrap_or_default()
        }
    };
    if !whole {
        text.push('…')
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_a_character() {
        assert_eq!(bounded(&("é", 7), 100), "[\"é\",7]");
        assert_eq!(bounded(&("é", 7), 8), "[\"é\",7]");
        assert_eq!(bounded(&("é", 7), 7), "[\"é\",7…");
        assert_eq!(bounded(&"éé", 4), "\"é…");
        assert_eq!(bounded(&vec![1u8; 1 << 20], 5), "[1,1,…");
        assert_eq!(bounded(&7, 0), "…");
    }
}
