//! The encoding of everything in a log and between hives. No other file knows which library writes the bytes.

use crate::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why bytes could not be decoded.
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

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<{ limits::ENCODED_BYTES_MAX }>()
}

/// Encodes one key, row, value or message for a log or a peer.
///
/// # Panics
///
/// If the value cannot be encoded: its `Serialize` refuses it (a path that is not UTF-8), or it takes more than
/// [`RECORD_BYTES_MAX`](limits::RECORD_BYTES_MAX) bytes. The panic rolls the transaction back like any other, so nothing
/// continues as if the value had been logged.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    must_encode(value, limits::RECORD_BYTES_MAX)
}

/// As [`encode`], for a record or the image of a bee: at most [`ENCODED_BYTES_MAX`](limits::ENCODED_BYTES_MAX) bytes.
///
/// # Panics
///
/// As [`encode`].
pub fn encode_many<T: Serialize + ?Sized>(values: &T) -> Vec<u8> {
    must_encode(values, limits::ENCODED_BYTES_MAX)
}

fn must_encode<T: Serialize + ?Sized>(value: &T, bytes_max: usize) -> Vec<u8> {
    try_encode(value, bytes_max).unwrap_or_else(|why| {
        panic!("a value of type `{}` cannot be encoded: {why}", std::any::type_name::<T>())
    })
}

/// As [`encode`], with a given limit, and with an error instead of a panic.
///
/// # Errors
///
/// If the value cannot be encoded, or takes more than `bytes_max` bytes.
pub fn try_encode<T: Serialize + ?Sized>(value: &T, bytes_max: usize) -> Result<Vec<u8>, String> {
    let bytes = bincode::serde::encode_to_vec(value, configuration()).map_err(|error| error.to_string())?;
    match bytes.len() <= bytes_max {
        true => Ok(bytes),
        false => Err(format!("it takes {} bytes, more than the {bytes_max} that are allowed", bytes.len())),
    }
}

/// Decodes what [`encode`] encoded. `what` names the kind of value in the error.
///
/// # Errors
///
/// If the bytes are not exactly one `T`.
pub fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, DecodeError> {
    match bincode::serde::decode_from_slice(bytes, configuration()) {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        Ok((_, used)) => {
            Err(DecodeError { what, why: format!("{} bytes are left over", bytes.len() - used) })
        }
        Err(error) => Err(DecodeError { what, why: error.to_string() }),
    }
}
