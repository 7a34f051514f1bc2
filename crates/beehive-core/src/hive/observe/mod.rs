//! Observation: the status and the dead letters, for people, and access to apps, for tests.

#[cfg(feature = "testing")]
pub(crate) mod app_access;
pub(crate) mod dead_letters;
pub(crate) mod status;
