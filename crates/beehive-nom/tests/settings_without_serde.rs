//! Tests that a crate can declare settings without a dependency on serde.
#![allow(missing_docs)]

// in this crate, the name `serde` refers to a crate that has none of serde's items
extern crate std as serde;

beehive_nom::settings! {
    /// Settings of the doorman.
    pub struct DoormanSettings {
        /// Maximum number of guests that are let in.
        pub guests_max: u32 [1..=1_000] = 40,
        /// Text with which guests are greeted.
        pub greeting: String = "welcome".into(),
    }
}

#[test]
fn settings_are_read_without_a_dependency_on_serde() {
    let settings: DoormanSettings = toml::from_str("guests_max = 50").unwrap();
    assert_eq!((settings.guests_max, settings.greeting.as_str()), (50, "welcome"));
    let unknown = toml::from_str::<DoormanSettings>("guest_max = 50").unwrap_err();
    assert!(unknown.message().contains("unknown field `guest_max`"), "{unknown}");
}
