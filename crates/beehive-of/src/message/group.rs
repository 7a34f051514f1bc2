//! Groups (since 1.1; 1.3.5, 7.3.4.3 and 7.3.5.8; 1.5.1, 7.3.4.3).

use super::action::Actions;
use super::experimenter::Experimenter;
use super::number::{BucketId, GroupCapabilities, GroupCommand, GroupId, GroupType, GroupTypes};
use super::switch::ExperimenterProperty;
use crate::port_number::PortNo;
use crate::schema::{List, Sized, structure, tagged};

structure! {
    /// Changes a group.
    pub struct GroupMod<'a> in Group {
        command: GroupCommand,
        group_type: GroupType,
        group_id: GroupId,
        /// The bucket that the command removes, or at which it inserts buckets (1.5).
        command_bucket_id: BucketId = BucketId::ALL,
        buckets: Buckets<'a>,
        /// Present since 1.5.
        properties: List<'a, ExperimenterProperty<'a>>,
    }
    1..=4 => [command, group_type, 1, group_id, buckets],
    5.. => [command, group_type, 1, group_id, size, 2, command_bucket_id, buckets as Sized, properties],
}

structure! {
    /// A bucket of a group: a list of actions that the group may execute.
    pub struct Bucket<'a> in Group {
        /// The relative weight, for groups of type select; a property in 1.5.
        weight: u16,
        /// The port whose liveness determines the liveness of the bucket; a property in 1.5.
        watch_port: PortNo = PortNo::ANY,
        /// The group whose liveness determines the liveness of the bucket; a property in 1.5.
        watch_group: GroupId = GroupId::ANY,
        /// Present since 1.5.
        bucket_id: BucketId,
        actions: Actions<'a>,
        /// Present since 1.5.
        properties: List<'a, BucketProperty<'a>>,
    }
    1..=4 => [len, weight, watch_port, watch_group, 4, actions],
    5.. => [len, size, bucket_id, actions as Sized, properties],
}

/// A list of buckets, in order.
pub type Buckets<'a> = List<'a, Bucket<'a>>;

tagged! {
    /// A property of a bucket (1.5).
    pub enum BucketProperty<'a> in Group, "bucket property length", padded true, minimum 4 {
        /// The relative weight.
        Weight(Weight) "weight" = [0 in 5..],
        /// The port whose liveness determines the liveness of the bucket.
        WatchPort(WatchPort) "watch_port" = [1 in 5..],
        /// The group whose liveness determines the liveness of the bucket.
        WatchGroup(WatchGroup) "watch_group" = [2 in 5..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 5..],
    }
}

structure! {
    /// The relative weight.
    pub struct Weight in Group { weight: u16 }
    _ => [weight, 2],
}

structure! {
    /// A port to watch.
    pub struct WatchPort in Group { watch_port: PortNo }
    _ => [watch_port],
}

structure! {
    /// A group to watch.
    pub struct WatchGroup in Group { watch_group: GroupId }
    _ => [watch_group],
}

structure! {
    /// Requests the statistics of a group, or of all groups.
    pub struct GroupRequest in Group { group_id: GroupId = GroupId::ALL }
    1.. => [group_id, 4],
}

structure! {
    /// Requests the configuration of all groups or, from 1.5 on, of one group.
    pub struct GroupDescriptionRequest in Group { group_id: GroupId = GroupId::ALL }
    1..=4 => [],
    5.. => [group_id, 4],
}

structure! {
    /// The counters of a group.
    pub struct GroupStatistics<'a> in Group {
        group_id: GroupId,
        /// Number of flows and groups that use the group.
        ref_count: u32,
        packet_count: u64,
        byte_count: u64,
        /// Lifetime of the group in whole seconds (since 1.3).
        duration_sec: u32,
        /// Lifetime of the group in nanoseconds beyond `duration_sec` (since 1.3).
        duration_nsec: u32,
        buckets: List<'a, BucketCounter>,
    }
    1..=2 => [len, 2, group_id, ref_count, 4, packet_count, byte_count, buckets],
    3.. => [len, 2, group_id, ref_count, 4, packet_count, byte_count, duration_sec, duration_nsec, buckets],
}

structure! {
    /// The counters of a bucket.
    pub struct BucketCounter in Group {
        packet_count: u64,
        byte_count: u64,
    }
    _ => [packet_count, byte_count],
}

structure! {
    /// The configuration of a group.
    pub struct GroupDescription<'a> in Group {
        group_type: GroupType,
        group_id: GroupId,
        buckets: Buckets<'a>,
        /// Present since 1.5.
        properties: List<'a, ExperimenterProperty<'a>>,
    }
    1..=4 => [len, group_type, 1, group_id, buckets],
    5.. => [len, group_type, 1, group_id, size, 6, buckets as Sized, properties],
}

structure! {
    /// The group features (since 1.2), with limits for each of the types all, select, indirect and fast
    /// failover.
    pub struct GroupFeatures in Group {
        types: GroupTypes,
        capabilities: GroupCapabilities,
        max_groups_all: u32,
        max_groups_select: u32,
        max_groups_indirect: u32,
        max_groups_fast_failover: u32,
        /// The supported actions: bit n stands for action type n.
        actions_all: u32,
        actions_select: u32,
        actions_indirect: u32,
        actions_fast_failover: u32,
    }
    2.. => [
        types, capabilities, max_groups_all, max_groups_select, max_groups_indirect, max_groups_fast_failover,
        actions_all, actions_select, actions_indirect, actions_fast_failover
    ],
}
