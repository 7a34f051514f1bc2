//! Errors as texts.

use std::error::Error;
use tonic::Status;

/// Maximum length of a text that another process may have written, in characters.
const CHARACTERS_MAX: usize = 300;

/// Makes a text from outside fit for a log: on one line, and not too long.
pub(super) fn tame(text: &str) -> String {
    text.escape_debug().take(CHARACTERS_MAX).collect()
}

/// An error and its causes.
pub(super) fn of_error(error: &dyn Error) -> String {
    with_causes(error.to_string(), error.source())
}

/// The reason why a stream has ended.
pub(super) fn of_status(status: &Status) -> String {
    with_causes(tame(status.message()), status.source().and_then(Error::source))
}

fn with_causes(mut text: String, mut cause: Option<&(dyn Error + 'static)>) -> String {
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
