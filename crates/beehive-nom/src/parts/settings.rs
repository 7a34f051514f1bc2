//! Declares app settings. Each setting's declaration contains its default and its range.

use serde::{Deserialize, Deserializer, de};

/// For the macro, so that a crate that declares settings does not have to depend on serde.
#[doc(hidden)]
pub use serde;

/// Declares an app's settings as a struct for [`Config`](beehive::Config). Each field has a default and, in brackets,
/// an optional range.
///
/// Missing keys get their defaults. Unknown keys and out-of-range numbers are errors; no value is silently adjusted.
/// The macro adds the default and the range to each field's documentation.
///
/// ```
/// beehive_nom::settings! {
///     /// Settings of the doorman: the table `[apps.doorman]`.
///     pub struct DoormanSettings {
///         /// Maximum number of guests that are let in.
///         pub guests_max: u32 [1..=1_000] = 40,
///         /// Text with which guests are greeted.
///         pub greeting: String = "welcome".into(),
///     }
/// }
///
/// let settings: DoormanSettings = toml::from_str("guests_max = 50").unwrap();
/// assert_eq!((settings.guests_max, settings.greeting.as_str()), (50, "welcome"));
/// let refused = toml::from_str::<DoormanSettings>("guests_max = 0").unwrap_err();
/// assert_eq!(refused.message(), "0 is out of range (expected 1 to 1000)");
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$about:meta])*
        $reach:vis struct $name:ident {
            $(
                $(#[$words:meta])*
                pub $key:ident: $type:ty $([$least:literal..=$most:literal])? = $default:expr
            ),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $reach struct $name {
            $(
                $(#[$words])*
                #[doc = concat!("\n\nDefault `", stringify!($default), "`" $(, "; ", $least, " to ", $most)?, ".")]
                pub $key: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($key: $default),* }
            }
        }

        impl<'de> $crate::parts::settings::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::parts::settings::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                // a separate name, which cannot be ambiguous in a crate that also depends on serde
                use $crate::parts::settings::serde as serde_of_settings;

                #[derive(serde_of_settings::Deserialize)]
                #[serde(crate = "serde_of_settings", deny_unknown_fields)]
                struct Written {
                    $($key: Option<$crate::settings!(@written $type $(, $least, $most)?)>,)*
                }
                let written: Written = serde_of_settings::Deserialize::deserialize(deserializer)?;
                ::std::result::Result::Ok($name {
                    $($key: written.$key.map_or_else(|| $default, |value| {
                        $crate::settings!(@value value $(, $least, $most)?)
                    }),)*
                })
            }
        }
    };
    (@written $type:ty) => { $type };
    (@written $type:ty, $least:literal, $most:literal) => { $crate::parts::settings::Within<$type, $least, $most> };
    (@value $value:ident) => { $value };
    (@value $value:ident, $least:literal, $most:literal) => { $value.0 };
}

/// A number that is refused on deserialization unless it is from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug)]
pub struct Within<T, const LEAST: i64, const MOST: i64>(pub T);

impl<'de, T: TryFrom<i64>, const LEAST: i64, const MOST: i64> Deserialize<'de> for Within<T, LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        match T::try_from(number) {
            Ok(value) if (LEAST..=MOST).contains(&number) => Ok(Within(value)),
            _ => Err(de::Error::custom(format!("{number} is out of range (expected {LEAST} to {MOST})"))),
        }
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
            let words = format!("{number} is out of range (expected {least} to {most})");
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
