//! Reads the CPU time of a process from `/proc`.

use std::fs;
use std::time::Duration;

/// Unit of the times in `/proc/<pid>/stat`. `USER_HZ` is 100 on all Linux platforms that Rust supports.
const TICK: Duration = Duration::from_millis(10);

/// Returns the sum of the user and system time of all threads of a process, or `None` if the process does not exist
/// or the system is not Linux.
pub(super) fn of_process(process: u32) -> Option<Duration> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses fields 14 and 15 (see proc(5)). The second field is a file name in parentheses, which may itself contain spaces and
/// parentheses.
fn parse(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    TICK.checked_mul(user.checked_add(system)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_and_brackets_do_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1 0 100";
        assert_eq!(parse(stat), Some(Duration::from_millis(1_750)));
        assert_eq!(parse("42 (a) S 1 2"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_uses_time() {
        let before = of_process(std::process::id()).unwrap();
        let begun = std::time::Instant::now();
        let mut sum = 0_u64;
        while begun.elapsed() < Duration::from_millis(100) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(of_process(std::process::id()).unwrap() > before);
    }
}
