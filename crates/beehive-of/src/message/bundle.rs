//! Bundles and forwarded requests, which contain other messages (since 1.4; 1.4.1, 7.3.9 and 7.4.6; 1.5.1,
//! 7.3.9).

use super::embedded::InnerMessage;
use super::experimenter::Experimenter;
use super::number::{BundleControlType, BundleFlags};
use crate::schema::{List, structure, tagged};

structure! {
    /// Opens, closes, commits or discards a bundle, or confirms one of these operations.
    pub struct BundleControl<'a> in Bundle {
        bundle_id: u32,
        control_type: BundleControlType,
        flags: BundleFlags,
        properties: List<'a, BundleProperty<'a>>,
    }
    3.. => [bundle_id, control_type, flags, properties],
}

structure! {
    /// Adds a message to a bundle.
    pub struct BundleAdd<'a> in Bundle {
        bundle_id: u32,
        flags: BundleFlags,
        message: InnerMessage<'a>,
        properties: List<'a, BundleProperty<'a>>,
    }
    3.. => [bundle_id, 2, flags, message, properties],
}

tagged! {
    /// A property of a bundle.
    pub enum BundleProperty<'a> in Property, "bundle property length", padded true, minimum 4 {
        /// The time at which to commit the bundle (1.5).
        Time(ScheduledTime) "time" = [1 in 5..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 3..],
    }
}

structure! {
    /// The time at which to commit a bundle.
    pub struct ScheduledTime in Bundle {
        seconds: u64,
        nanoseconds: u32,
    }
    _ => [4, seconds, nanoseconds, 4],
}

structure! {
    /// A request of another controller, forwarded to the controllers that subscribed to such requests.
    pub struct RequestForward<'a> in Message { request: InnerMessage<'a> }
    _ => [request],
}

structure! {
    /// Requests the bundle features (1.5).
    pub struct BundleFeaturesRequest<'a> in Bundle {
        feature_request_flags: u32,
        properties: List<'a, BundleFeaturesProperty<'a>>,
    }
    5.. => [feature_request_flags, 4, properties],
}

structure! {
    /// The bundle features (1.5).
    pub struct BundleFeatures<'a> in Bundle {
        capabilities: BundleFlags,
        properties: List<'a, BundleFeaturesProperty<'a>>,
    }
    5.. => [capabilities, 6, properties],
}

tagged! {
    /// A property of the bundle features.
    pub enum BundleFeaturesProperty<'a> in Property, "bundle features property length", padded true, minimum 4 {
        /// The accuracy and the range of scheduled commits.
        Time(TimeFeatures) "time" = [1 in 5..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 5..],
    }
}

structure! {
    /// The accuracy of scheduled commits, how far in the future and in the past they may be, and the switch's
    /// current time.
    pub struct TimeFeatures in Bundle {
        sched_accuracy: Time,
        sched_max_future: Time,
        sched_max_past: Time,
        timestamp: Time,
    }
    _ => [4, sched_accuracy, sched_max_future, sched_max_past, timestamp],
}

structure! {
    /// A point in time or a duration.
    pub struct Time in Bundle {
        seconds: u64,
        nanoseconds: u32,
    }
    _ => [seconds, nanoseconds, 4],
}
