//! The log filters of commands that may run hives of a cluster.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Returns the filter `log`. Without naming openraft, it does not log openraft's steps: these are about a hundred lines a second while a
/// hive is down, and errors while one stops as it should. A hive itself logs what an operator has to know about its groups.
pub(crate) fn filter(log: &str) -> Result<EnvFilter, ParseError> {
    let quiet = if log.contains("openraft") { "" } else { ",openraft=off" };
    EnvFilter::try_new(format!("{log}{quiet}"))
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn openraft_is_quiet_unless_the_filter_names_it() {
        let shown = |log| filter(log).expect("a filter").to_string();
        assert!(shown("info").contains("openraft=off"), "{}", shown("info"));
        assert!(shown("beehive_raft=debug").contains("openraft=off"));
        assert!(!shown("info,openraft=warn").contains("openraft=off"));
        assert!(filter("beehive=nothing").is_err());
    }
}
