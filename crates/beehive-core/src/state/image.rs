//! Encoded state (see `beehive_protocol`), and values as text.

pub use beehive_protocol::{CellImage, DecodeError, EncodedCells, Op, Redo};

pub(crate) use beehive_protocol::codec::{decode, encode, try_encode};
#[cfg(feature = "testing")]
pub(crate) use beehive_protocol::codec::{decode_many, encode_many};

use crate::limits;
use serde::Serialize;

/// Renders a value as JSON or, if JSON cannot represent it, as the bytes of its encoding.
pub(crate) fn words<T: Serialize + ?Sized>(value: &T) -> String {
    let bytes = || try_encode(value, limits::ENCODED_BYTES_MAX).map(|bytes| format!("{bytes:02x?}"));
    serde_json::to_string(value).unwrap_or_else(|_| bytes().unwrap_or_else(|why| format!("({why})")))
}
