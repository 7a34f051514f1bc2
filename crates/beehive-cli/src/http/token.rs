//! The bearer token of the HTTP interface. Client and server read it from a file.

use axum::http::{HeaderMap, header};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Allowed lengths of a token, in bytes.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=1024;
/// Permission bits of users other than the owner and the group.
const OTHERS: u32 = 0o007;

/// Reads a token from a file. White space around it is ignored.
///
/// # Errors
///
/// Returns an error if the file cannot be read, if other users can read or change it, or if its content is not a
/// token. The text states the reason.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    let open = || {
        let file = std::fs::File::open(file)?;
        let mode = file.metadata()?.permissions().mode();
        let mut text = String::new();
        file.take(2 * *LENGTH.end() as u64).read_to_string(&mut text)?;
        std::io::Result::Ok((mode, text))
    };

    let (mode, text) = open().map_err(|error| error.to_string())?;
    if mode & OTHERS != 0 {
        return Err("other users can read or change it; run `chmod o= FILE`".into());
    }

    let token = text.trim();
    if !LENGTH.contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let (least, most) = LENGTH.into_inner();
        return Err(format!(
            "not a token (expected {least} to {most} printable characters without spaces on one line); `openssl rand -hex 32` generates one"
        ));
    }

    Ok(token.to_string())
}

/// Hash of the token; the server does not keep the token itself.
#[derive(Clone, Copy)]
pub(crate) struct Token(blake3::Hash);

impl Token {
    pub(crate) fn new(text: &str) -> Token {
        Token(blake3::hash(text.as_bytes()))
    }

    /// Returns whether a request's headers contain `Authorization: Bearer ..` with this token. The comparison takes
    /// constant time.
    pub(super) fn authorizes(self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let shown = value.and_then(|value| {
            let (scheme, rest) = value.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(rest)
        });
        // `blake3::Hash` compares in constant time
        shown.is_some_and(|shown| blake3::hash(shown) == self.0)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_authorizes() {
        let token = Token::new("0123456789abcdef");
        let shows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a value"));
            token.authorizes(&headers)
        };

        assert!(shows("Bearer 0123456789abcdef") && shows("bearer 0123456789abcdef"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcdee",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer  0123456789abcdef",
        ] {
            assert!(!shows(wrong), "{wrong}");
        }

        assert!(!token.authorizes(&HeaderMap::new()));
        assert_eq!(format!("{token:?}"), "Token", "a log must not contain the token");
    }

    #[test]
    fn files_without_a_valid_token_are_refused_with_a_reason() {
        let file = std::env::temp_dir().join(format!("beehive-token-{}", std::process::id()));
        let with = |text: &str, mode: u32| {
            std::fs::write(&file, text).expect("writes");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("is ours");
            read(&file)
        };

        assert_eq!(with(" 0123456789abcdef\n", 0o600).as_deref(), Ok("0123456789abcdef"));
        assert!(with("0123456789abcdef", 0o644).unwrap_err().contains("chmod"));
        for wrong in
            ["", "short", "0123456789 abcdef", "0123456789abcdef\n0123456789abcdef", &"a".repeat(4000)]
        {
            assert!(with(wrong, 0o600).unwrap_err().contains("16 to 1024"), "{wrong}");
        }

        std::fs::remove_file(&file).expect("was written");
        assert!(read(&file).unwrap_err().contains("No such file"));
    }
}
