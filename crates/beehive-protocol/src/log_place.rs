//! The place of a log among the logs of its hive, as the log itself says it.

use serde::{Deserialize, Serialize};

/// The place of a log among the logs of a hive that decides alone.
///
/// The lanes of stateless handlers and of sweeps, and the messages that these have handled, are in the first log of an app. If
/// the next process took another log for the first one, messages would be handled twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    /// Number of logs before this one.
    pub number: u32,
    /// Number of logs of the hive.
    pub of: u32,
}

impl LogPlace {
    /// Checks that a log that says this about its place may be at `now`. A log that says nothing may be anywhere.
    ///
    /// # Errors
    ///
    /// Returns a description of the mismatch, and how to fix it.
    pub fn check(said: Option<LogPlace>, now: LogPlace) -> Result<(), String> {
        const REMEDY: &str = "give the hive all its journals, in the same order, new ones last";
        match said {
            Some(LogPlace { number, of }) if number != now.number => Err(format!(
                "log number {} of {} was log number {number} of {of} before: {REMEDY}",
                now.number, now.of
            )),
            Some(LogPlace { number, of }) if of > now.of => Err(format!(
                "log number {number} was one of {of} logs before, and is now one of {}: {REMEDY}",
                now.of
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_keep_their_numbers_and_none_is_missing() {
        let at = |number, of| LogPlace { number, of };
        assert_eq!(LogPlace::check(None, at(1, 2)), Ok(()), "a new log, or one of an early version");
        assert_eq!(LogPlace::check(Some(at(1, 2)), at(1, 2)), Ok(()));
        assert_eq!(LogPlace::check(Some(at(1, 2)), at(1, 3)), Ok(()), "there is one more");
        let error = LogPlace::check(Some(at(0, 2)), at(1, 2)).unwrap_err();
        assert_eq!(
            error,
            "log number 1 of 2 was log number 0 of 2 before: give the hive all its journals, in the same order, new ones last"
        );
        let error = LogPlace::check(Some(at(0, 2)), at(0, 1)).unwrap_err();
        assert!(
            error.starts_with("log number 0 was one of 2 logs before, and is now one of 1: give"),
            "{error}"
        );
    }
}
