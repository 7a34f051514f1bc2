//! The encoding of all data in logs and between hives: the format of bincode 2. Only this folder knows it.

mod serializer;
mod sinks;

use self::serializer::{Encoder, Stop};
use self::sinks::{Append, Compare};
use crate::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::DerefMut;

/// The reason why bytes could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The kind of value, such as "a log entry".
    pub what: &'static str,
    /// The reason.
    pub why: String,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot decode {}: {}", self.what, self.why)
    }
}
impl std::error::Error for DecodeError {}

/// The integers of keys, rows, values and messages have a fixed width.
const FIXED: bool = false;

/// Most integers in records and images are small. There, an integer takes one byte up to 250, and otherwise one byte
/// more than the next larger integer type.
const VARIABLE: bool = true;

fn fixed_integers() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<{ limits::ENCODED_BYTES_MAX }>()
}

fn variable_integers() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<{ limits::ENCODED_BYTES_MAX }>()
}

/// Encodes one key, row, value or message for a log or a peer.
///
/// # Panics
///
/// Panics if the value cannot be encoded, either because its `Serialize` fails (as for a path that is not UTF-8), or
/// because it takes more than [`RECORD_BYTES_MAX`](limits::RECORD_BYTES_MAX) bytes. Like any other panic, this one
/// rolls back the transaction, so that no code continues as if the value had been logged.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    encode_with(value, |bytes| bytes.to_vec())
}

/// Same as [`encode`], but passes the bytes to `make` and returns its result, without an allocation for the bytes.
pub(crate) fn encode_with<T: Serialize + ?Sized, R>(value: &T, make: impl FnOnce(&[u8]) -> R) -> R {
    must(value, in_buffer(value, limits::RECORD_BYTES_MAX, make))
}

/// Encodes a record or the image of a bee. Integers take fewer bytes than with [`encode`], and the limit is
/// [`ENCODED_BYTES_MAX`](limits::ENCODED_BYTES_MAX) bytes.
///
/// # Panics
///
/// See [`encode`].
pub fn encode_many<T: Serialize + ?Sized>(values: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_many_into(values, &mut bytes);
    bytes
}

fn must<T: ?Sized, R>(_: &T, result: Result<R, String>) -> R {
    result.unwrap_or_else(|why| {
        panic!("a value of type `{}` cannot be encoded: {why}", std::any::type_name::<T>())
    })
}

/// Same as [`encode`], with the given limit, and with an error instead of a panic.
///
/// # Errors
///
/// Returns an error if the value cannot be encoded, or takes more than `bytes_max` bytes.
pub fn try_encode<T: Serialize + ?Sized>(value: &T, bytes_max: usize) -> Result<Vec<u8>, String> {
    in_buffer(value, bytes_max, |bytes| bytes.to_vec())
}

/// Checks whether [`encode`] would encode a value as `bytes`. Encodes the value up to the first difference.
///
/// # Panics
///
/// Panics if a part of the value that is reached cannot be encoded (see [`encode`]).
pub fn encodes_as<T: Serialize + ?Sized>(value: &T, bytes: &[u8]) -> bool {
    let mut compare = Compare { expected: Some(bytes) };
    match value.serialize(Encoder::<_, FIXED>(&mut compare)) {
        Ok(()) => compare.expected.is_some_and(<[u8]>::is_empty),
        Err(Stop::Full) => false,
        Err(Stop::Unable(why)) => must(value, Err(why.into())),
    }
}

/// Same as [`encode_many`], but appends the encoded value to a buffer, which the caller can reuse.
///
/// # Panics
///
/// See [`encode`].
pub fn encode_many_into<T: Serialize + ?Sized>(values: &T, bytes: &mut Vec<u8>) {
    must(values, write_with::<_, _, VARIABLE>(values, bytes, limits::ENCODED_BYTES_MAX))
}

/// Encodes a value into a buffer kept by the thread and passes the bytes to `look`. A new buffer would be reallocated
/// several times as it grew.
fn in_buffer<T: Serialize + ?Sized, R>(
    value: &T,
    bytes_max: usize,
    look: impl FnOnce(&[u8]) -> R,
) -> Result<R, String> {
    /// Maximum capacity of the buffer kept by a thread. Without this limit, one large value would take up memory
    /// permanently.
    const KEPT_BYTES_MAX: usize = 64 << 10;
    thread_local! {
        // The buffer is taken out while in use, because a value's `Serialize` may encode another value.
        static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    buffer.clear();
    let encoded = write_with::<_, _, FIXED>(value, &mut buffer, bytes_max);
    let result = encoded.map(|()| look(&buffer));

    if buffer.capacity() <= KEPT_BYTES_MAX {
        // Does nothing if the thread is shutting down.
        let _ = BUFFER.try_with(|kept| kept.set(buffer));
    }
    result
}

/// A growing buffer of bytes.
pub trait Buffer: DerefMut<Target = [u8]> {
    /// Appends a byte.
    fn push(&mut self, byte: u8);
    /// Appends bytes.
    fn extend_from_slice(&mut self, bytes: &[u8]);
    /// Shortens the buffer to `length` bytes.
    fn truncate(&mut self, length: usize);
}

impl Buffer for Vec<u8> {
    fn push(&mut self, byte: u8) {
        Vec::push(self, byte)
    }
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        Vec::extend_from_slice(self, bytes)
    }
    fn truncate(&mut self, length: usize) {
        Vec::truncate(self, length)
    }
}

impl<const N: usize> Buffer for SmallVec<[u8; N]> {
    fn push(&mut self, byte: u8) {
        SmallVec::push(self, byte)
    }
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        SmallVec::extend_from_slice(self, bytes)
    }
    fn truncate(&mut self, length: usize) {
        SmallVec::truncate(self, length)
    }
}

/// Appends an integer in the fewest bytes: one byte up to 250.
pub fn append_integer(integer: u64, bytes: &mut impl Buffer) {
    match u8::try_from(integer) {
        Ok(byte) if byte <= 250 => bytes.push(byte),
        _ => must(&integer, write_with::<_, _, VARIABLE>(&integer, bytes, size_of::<u64>() + 1)),
    }
}

/// Splits off the integer at the front of `bytes`, as [`append_integer`] encodes it. Returns the integer and the
/// remaining bytes, or `None` if the bytes do not begin with an integer.
pub fn split_integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes.split_first()? {
        (byte, rest) if *byte <= 250 => Some((u64::from(*byte), rest)),
        _ => {
            let (integer, used) = bincode::serde::decode_from_slice(bytes, variable_integers()).ok()?;
            Some((integer, bytes.get(used..)?))
        }
    }
}

/// Appends the length of an encoded value, and the value as [`encode`] encodes it.
///
/// # Panics
///
/// See [`encode`]. After a panic, `bytes` may end with a partial value.
pub(crate) fn append_with_length<T: Serialize + ?Sized>(value: &T, bytes: &mut impl Buffer) {
    // nearly all values are short enough for a length of one byte; a longer one is moved
    let start = bytes.len();
    bytes.push(0);
    must(value, write_with::<_, _, FIXED>(value, bytes, limits::RECORD_BYTES_MAX));

    let length = bytes.len() - start - 1;
    match bytes.get_mut(start) {
        Some(byte) if length <= 250 => *byte = length as u8,
        _ => {
            let end = bytes.len();
            append_integer(length as u64, bytes);
            let width = bytes.len() - end;
            bytes[start..].rotate_right(width);
            // the rotation has moved the placeholder to just after the length
            bytes[start + width..].rotate_left(1);
            bytes.truncate(end + width - 1)
        }
    }
}

/// Appends an encoded value. Stops as soon as the value exceeds `bytes_max` bytes.
fn write_with<T: Serialize + ?Sized, B: Buffer, const WIDTH: bool>(
    value: &T,
    bytes: &mut B,
    bytes_max: usize,
) -> Result<(), String> {
    let mut append = Append::new(bytes, bytes_max);
    let encoded = value.serialize(Encoder::<_, WIDTH>(&mut append));
    append.flush();
    encoded.map_err(|stop| match stop {
        Stop::Full => format!("it takes more than the {bytes_max} bytes that are allowed"),
        Stop::Unable(why) => why.into(),
    })
}

/// Decodes a value encoded by [`encode`]. `what` names the kind of value in the error.
///
/// # Errors
///
/// Returns an error if the bytes are not exactly one `T`.
pub fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, DecodeError> {
    decode_with(what, bytes, fixed_integers())
}

/// Decodes a value encoded by [`encode_many`]. `what` names the kind of value in the error.
///
/// # Errors
///
/// Returns an error if the bytes are not exactly one `T`.
pub fn decode_many<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, DecodeError> {
    decode_with(what, bytes, variable_integers())
}

/// Decodes a value at the front of `bytes`, as [`encode_many`] encodes it. Returns the value and the remaining bytes, or
/// `None` if the bytes do not begin with a `T`.
pub(crate) fn decode_front<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (value, used) = bincode::serde::decode_from_slice(bytes, variable_integers()).ok()?;
    Some((value, bytes.get(used..)?))
}

fn decode_with<T: DeserializeOwned>(
    what: &'static str,
    bytes: &[u8],
    configuration: impl bincode::config::Config,
) -> Result<T, DecodeError> {
    match bincode::serde::decode_from_slice(bytes, configuration) {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        Ok((_, used)) => {
            Err(DecodeError { what, why: format!("{} bytes are left over", bytes.len() - used) })
        }
        Err(error) => Err(DecodeError { what, why: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serializer;

    /// A value whose `Serialize` encodes another value.
    struct Nested(u32);

    impl Serialize for Nested {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            (self.0, encode(&vec![self.0; 3])).serialize(serializer)
        }
    }

    #[test]
    fn a_value_may_encode_another_one() {
        assert_eq!(encode(&Nested(7)), encode(&(7u32, encode(&[7u32; 3].to_vec()))));
        assert!(encodes_as(&Nested(7), &encode(&Nested(7))) && !encodes_as(&Nested(7), &encode(&Nested(8))));
    }

    #[test]
    fn what_is_appended_is_what_is_returned() {
        let mut bytes = vec![1, 2];
        encode_many_into("text", &mut bytes);
        assert_eq!(bytes, [&[1, 2][..], &encode_many("text")].concat());
    }

    #[test]
    fn a_value_that_is_too_large_is_refused_with_its_size() {
        let error = try_encode(&[0u8; 9], 8).unwrap_err();
        assert_eq!(error, "it takes more than the 8 bytes that are allowed");
        assert_eq!(try_encode(&[0u8; 8], 8), Ok(vec![0; 8]), "the buffer still contains the previous value");
    }

    /// A sequence that counts how many of its elements are encoded.
    struct Counted<'a>(&'a Cell<usize>);

    impl Serialize for Counted<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq((0..1_000u64).inspect(|_| self.0.set(self.0.get() + 1)))
        }
    }

    #[test]
    fn a_value_that_is_too_large_is_not_encoded_to_its_end() {
        let encoded = Cell::new(0);
        assert!(try_encode(&Counted(&encoded), 100).is_err());
        assert!((10..20).contains(&encoded.get()), "{} elements of eight bytes", encoded.get());
    }
}
