//! Parses hexadecimal digits in the forms that people paste. Errors give the position of the mistake.

use std::fmt;

/// The reason why a line cannot be parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HexError {
    /// A character is neither a digit nor white space.
    InvalidDigit {
        /// The offending byte.
        byte: u8,
        /// The position of the byte in the line, counted from 1.
        column: usize,
    },
    /// The number of digits is odd.
    OddLength {
        /// The number of digits.
        digits: usize,
    },
}

impl fmt::Display for HexError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidDigit { byte, column } => {
                write!(formatter, "'{}' at column {column} is not a hexadecimal digit", byte.escape_ascii())
            }
            Self::OddLength { digits } => {
                write!(formatter, "odd number of hexadecimal digits ({digits})")
            }
        }
    }
}

/// Parses a line into bytes. Ignores white space between digits, and `0x` at the start of a word.
pub(super) fn parse(line: &[u8]) -> Result<Vec<u8>, HexError> {
    let mut bytes = Vec::with_capacity(line.len() / 2);
    let mut high = None;
    let mut digits = 0;
    let mut column = 0;
    for word in line.split(u8::is_ascii_whitespace) {
        let start = if word.starts_with(b"0x") || word.starts_with(b"0X") { 2 } else { 0 };
        for (at, byte) in word.iter().enumerate().skip(start) {
            let digit = (*byte as char).to_digit(16);
            let Some(digit) = digit.and_then(|digit| u8::try_from(digit).ok()) else {
                return Err(HexError::InvalidDigit { byte: *byte, column: column + at + 1 });
            };

            digits += 1;
            high = match high {
                None => Some(digit),
                Some(high) => {
                    bytes.push(high << 4 | digit);
                    None
                }
            };
        }

        column += word.len() + 1;
    }

    if high.is_some() { Err(HexError::OddLength { digits }) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_white_space_are_ignored() {
        for line in ["01ab02", "0x01AB02", "01 ab 02\r\n", "\t0x01 0Xab 0x02 ", "0 1 a b 0 2"] {
            assert_eq!(parse(line.as_bytes()), Ok(vec![1, 0xab, 2]), "{line:?}");
        }
        assert_eq!(parse(b"0x"), Ok(vec![]));
    }

    #[test]
    fn errors_point_at_the_place() {
        assert_eq!(parse(b"01 ag"), Err(HexError::InvalidDigit { byte: b'g', column: 5 }));
        assert_eq!(parse(b"0x01 0y"), Err(HexError::InvalidDigit { byte: b'y', column: 7 }));
        assert_eq!(parse(b"01x2"), Err(HexError::InvalidDigit { byte: b'x', column: 3 }));
        assert_eq!(parse(b"012"), Err(HexError::OddLength { digits: 3 }));
        assert_eq!(parse(b"\xff").unwrap_err().to_string(), "'\\xff' at column 1 is not a hexadecimal digit");
    }
}
