//! Ranges of numbers in the settings of apps: what makes no sense is refused, not made another number.

use serde::{Deserialize, Deserializer, de};

/// Reads a number from `LEAST` to `MOST`.
pub(super) fn within<'de, D: Deserializer<'de>, T: TryFrom<i64>, const LEAST: i64, const MOST: i64>(
    deserializer: D,
) -> Result<T, D::Error> {
    let number = i64::deserialize(deserializer)?;
    match T::try_from(number) {
        Ok(value) if (LEAST..=MOST).contains(&number) => Ok(value),
        _ => Err(de::Error::custom(format!("{number} is out of range: it can be {LEAST} to {MOST}"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::apps::firewall::FirewallSettings;
    use crate::apps::{ForwardingSettings, HostsSettings, LearningSettings, LoopGuardSettings};
    use serde::de::DeserializeOwned;

    fn has_range<T: DeserializeOwned>(key: &str, least: i64, most: i64) {
        let read = |number: i64| toml::from_str::<T>(&format!("{key} = {number}")).map(drop);
        assert_eq!((read(least), read(most)), (Ok(()), Ok(())), "{key}");
        for number in [least - 1, most + 1, -1, i64::MIN, i64::MAX] {
            let why = read(number).expect_err(key);
            let words = format!("{number} is out of range: it can be {least} to {most}");
            assert_eq!(why.message(), words, "{key}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        has_range::<LearningSettings>("age_s", 4, 131_070);
        has_range::<LearningSettings>("idle_s", 1, 65_535);
        has_range::<LearningSettings>("stations_per_port_max", 1, 1_000_000);
        has_range::<LearningSettings>("stations_per_node_max", 1, 1_000_000);
        has_range::<LoopGuardSettings>("settle_ms", 0, 600_000);
        has_range::<LoopGuardSettings>("quarantine_s", 1, 86_400);
        has_range::<LoopGuardSettings>("blame_max", 1, 1_000_000);
        has_range::<HostsSettings>("age_s", 60, 604_800);
        has_range::<HostsSettings>("hosts_per_port_max", 1, 1_000_000);
        has_range::<ForwardingSettings>("idle_s", 1, 65_535);
        has_range::<ForwardingSettings>("age_s", 1, 65_535);
        has_range::<FirewallSettings>("idle_s", 1, 65_535);
        has_range::<FirewallSettings>("open_per_port_max", 1, 1_000_000);
        has_range::<FirewallSettings>("open_per_node_max", 1, 1_000_000);
    }
}
