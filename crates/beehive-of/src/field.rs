//! Big-endian fields at fixed offsets, with bounds checked at compile time.

use crate::error::{Error, ErrorKind, Part};

macro_rules! field {
    ($read:ident, $write:ident, $type:ty, $length:literal) => {
        #[inline(always)]
        pub(crate) fn $read<const AT: usize, const N: usize>(bytes: &[u8; N]) -> $type {
            <$type>::from_be_bytes(array::<AT, $length, N>(bytes))
        }

        #[inline(always)]
        pub(crate) fn $write<const AT: usize, const N: usize>(bytes: &mut [u8; N], value: $type) {
            set_array::<AT, $length, N>(bytes, value.to_be_bytes());
        }
    };
}

field!(be8, set8, u8, 1);
field!(be16, set16, u16, 2);
field!(be32, set32, u32, 4);
field!(be64, set64, u64, 8);

// Only these two functions index slices directly. The offset and both lengths are constants, and the
// assertion fails the build if the field does not fit.

/// Returns the `LENGTH` bytes at offset `AT`.
#[inline(always)]
#[allow(clippy::indexing_slicing)]
pub(crate) fn array<const AT: usize, const LENGTH: usize, const N: usize>(bytes: &[u8; N]) -> [u8; LENGTH] {
    const { assert!(AT + LENGTH <= N) };
    let mut copy = [0; LENGTH];
    copy.copy_from_slice(&bytes[AT..AT + LENGTH]);
    copy
}

/// Writes `LENGTH` bytes at offset `AT`.
#[inline(always)]
#[allow(clippy::indexing_slicing)]
pub(crate) fn set_array<const AT: usize, const LENGTH: usize, const N: usize>(
    bytes: &mut [u8; N],
    value: [u8; LENGTH],
) {
    const { assert!(AT + LENGTH <= N) };
    bytes[AT..AT + LENGTH].copy_from_slice(&value);
}

/// Splits off the first `N` bytes, which are the fixed part of a structure.
#[inline(always)]
pub(crate) fn fixed<'a, const N: usize>(
    bytes: &'a [u8],
    part: Part,
    offset: usize,
    field: &'static str,
) -> Result<(&'a [u8; N], &'a [u8]), Error> {
    match bytes.split_first_chunk::<N>() {
        Some(parts) => Ok(parts),
        None => Err(Error::new(ErrorKind::Truncated, part, offset + bytes.len(), field)),
    }
}

/// Splits off the first `length` bytes of a container; `length` must be at least `minimum`.
#[inline(always)]
pub(crate) fn bounded<'a>(
    bytes: &'a [u8],
    length: usize,
    minimum: usize,
    part: Part,
    offset: usize,
    field: &'static str,
) -> Result<(&'a [u8], &'a [u8]), Error> {
    if length < minimum {
        return Err(Error::new(ErrorKind::LengthTooSmall, part, offset, field));
    }
    match bytes.split_at_checked(length) {
        Some(parts) => Ok(parts),
        None => Err(Error::new(ErrorKind::LengthTooLarge, part, offset, field)),
    }
}

/// Rounds `length` up to a multiple of 8, to which the protocol pads most structures.
#[inline(always)]
pub(crate) const fn padded(length: usize) -> usize {
    (length + 7) & !7
}
