//! Admission: how much work from outside is in flight, and which of it may still be resent.

pub(crate) mod credits;
pub(crate) mod deferred_wakes;
pub(crate) mod lifecycle;
pub(crate) mod outside_lanes;
pub(crate) mod timer_wheel;
