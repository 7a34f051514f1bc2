//! Groups (1.1 on; 1.3.5, 7.3.4.3 and 7.3.5.8; 1.5.1, 7.3.4.3).

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
        /// The bucket before which, or the one that, the command is about (1.5).
        command_bucket_id: BucketId = BucketId::ALL,
        buckets: Buckets<'a>,
        /// 1.5.
        properties: List<'a, ExperimenterProperty<'a>>,
    }
    1..=4 => [command, group_type, 1, group_id, buckets],
    5.. => [command, group_type, 1, group_id, size, 2, command_bucket_id, buckets as Sized, properties],
}

structure! {
    /// One way that packets of a group can go.
    pub struct Bucket<'a> in Group {
        /// Share of the packets, for groups that select; a property in 1.5.
        weight: u16,
        /// The port whose liveness is the bucket's; a property in 1.5.
        watch_port: PortNo = PortNo::ANY,
        /// The group whose liveness is the bucket's; a property in 1.5.
        watch_group: GroupId = GroupId::ANY,
        /// 1.5.
        bucket_id: BucketId,
        actions: Actions<'a>,
        /// 1.5.
        properties: List<'a, BucketProperty<'a>>,
    }
    1..=4 => [len, weight, watch_port, watch_group, 4, actions],
    5.. => [len, size, bucket_id, actions as Sized, properties],
}

/// Buckets in order.
pub type Buckets<'a> = List<'a, Bucket<'a>>;

tagged! {
    /// What else is known about a bucket (1.5).
    pub enum BucketProperty<'a> in Group, "bucket property length", padded true, minimum 4 {
        /// Share of the packets.
        Weight(Weight) "weight" = [0 in 5..],
        /// The port whose liveness is the bucket's.
        WatchPort(WatchPort) "watch_port" = [1 in 5..],
        /// The group whose liveness is the bucket's.
        WatchGroup(WatchGroup) "watch_group" = [2 in 5..],
        /// An experimenter's.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 5..],
    }
}

structure! {
    /// Share of the packets.
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
    /// Asks about a group, or all of them.
    pub struct GroupRequest in Group { group_id: GroupId = GroupId::ALL }
    1.. => [group_id, 4],
}

structure! {
    /// Asks how groups are set up; about one of them from 1.5 on.
    pub struct GroupDescriptionRequest in Group { group_id: GroupId = GroupId::ALL }
    1..=4 => [],
    5.. => [group_id, 4],
}

structure! {
    /// What a group counted.
    pub struct GroupStatistics<'a> in Group {
        group_id: GroupId,
        /// How many flows and groups use it.
        ref_count: u32,
        packet_count: u64,
        byte_count: u64,
        /// Whole seconds that it lives (1.3 on).
        duration_sec: u32,
        /// Nanoseconds beyond them (1.3 on).
        duration_nsec: u32,
        buckets: List<'a, BucketCounter>,
    }
    1..=2 => [len, 2, group_id, ref_count, 4, packet_count, byte_count, buckets],
    3.. => [len, 2, group_id, ref_count, 4, packet_count, byte_count, duration_sec, duration_nsec, buckets],
}

structure! {
    /// What a bucket counted.
    pub struct BucketCounter in Group {
        packet_count: u64,
        byte_count: u64,
    }
    _ => [packet_count, byte_count],
}

structure! {
    /// How a group is set up.
    pub struct GroupDescription<'a> in Group {
        group_type: GroupType,
        group_id: GroupId,
        buckets: Buckets<'a>,
        /// 1.5.
        properties: List<'a, ExperimenterProperty<'a>>,
    }
    1..=4 => [len, group_type, 1, group_id, buckets],
    5.. => [len, group_type, 1, group_id, size, 6, buckets as Sized, properties],
}

structure! {
    /// What groups can do (1.2 on); four numbers each for the types all, select, indirect and fast failover.
    pub struct GroupFeatures in Group {
        types: GroupTypes,
        capabilities: GroupCapabilities,
        max_groups_all: u32,
        max_groups_select: u32,
        max_groups_indirect: u32,
        max_groups_fast_failover: u32,
        /// Bit n for action type n.
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
