//! The protocol's identifiers, enumerations and bit sets.
//!
//! Values without a name are preserved. If the meaning of a constant depends on the version, its
//! documentation says so.

use crate::schema::{bits, named};

named! {
    /// The identifier of a packet in the switch's buffer.
    pub struct BufferId(u32) { NONE = 0xffff_ffff }
}

named! {
    /// The number of a flow table.
    pub struct TableId(u8) { ALL = 0xff }
}

named! {
    /// The number of a group.
    pub struct GroupId(u32) { ALL = 0xffff_fffc, ANY = 0xffff_ffff }
}

named! {
    /// The number of a meter.
    pub struct MeterId(u32) { SLOWPATH = 0xffff_fffd, CONTROLLER = 0xffff_fffe, ALL = 0xffff_ffff }
}

named! {
    /// The number of a queue of a port.
    pub struct QueueId(u32) { ALL = 0xffff_ffff }
}

named! {
    /// The number of a bucket of a group (1.5).
    pub struct BucketId(u32) { FIRST = 0xffff_fffd, LAST = 0xffff_fffe, ALL = 0xffff_ffff }
}

named! {
    /// Number of bytes of a packet to send to the controller.
    pub struct PacketLength(u16) { NO_BUFFER = 0xffff }
}

named! {
    /// The identifier of an experimenter: an OUI, or a number assigned by the ONF.
    pub struct ExperimenterId(u32) { NICIRA = 0x0000_2320, ONF = 0x4f4e_4600 }
}

named! {
    /// The reason why a packet is sent to the controller. 1.0 and 1.1 have only the reasons 0 and 1.
    pub struct PacketInReason(u8) {
        NO_MATCH = 0, ACTION = 1, INVALID_TTL = 2, ACTION_SET = 3, GROUP = 4, PACKET_OUT = 5,
    }
}

named! {
    /// The command of a flow modification.
    pub struct FlowModCommand(u16) { ADD = 0, MODIFY = 1, MODIFY_STRICT = 2, DELETE = 3, DELETE_STRICT = 4 }
}

bits! {
    /// The options of a flow.
    pub struct FlowModFlags(u16) {
        SEND_FLOW_REMOVED = 1, CHECK_OVERLAP = 2,
        /// In 1.0, this bit marks an emergency flow.
        RESET_COUNTS = 4,
        NO_PACKET_COUNTS = 8, NO_BYTE_COUNTS = 16,
    }
}

named! {
    /// The reason why a flow was removed; 1.0 has the first three, 1.1 the first four.
    pub struct FlowRemovedReason(u8) {
        IDLE_TIMEOUT = 0, HARD_TIMEOUT = 1, DELETE = 2, GROUP_DELETE = 3, METER_DELETE = 4, EVICTION = 5,
    }
}

named! {
    /// The kind of change that a port-status reports.
    pub struct PortReason(u8) { ADD = 0, DELETE = 1, MODIFY = 2 }
}

bits! {
    /// The configuration of a port.
    pub struct PortConfig(u32) {
        PORT_DOWN = 1,
        /// Present in 1.0 only.
        NO_STP = 1 << 1,
        NO_RECV = 1 << 2,
        /// Present in 1.0 only.
        NO_RECV_STP = 1 << 3,
        /// Present in 1.0 only.
        NO_FLOOD = 1 << 4,
        NO_FWD = 1 << 5, NO_PACKET_IN = 1 << 6,
    }
}

bits! {
    /// The capabilities of a switch. In 1.0, bit 3 means that the switch supports the spanning tree protocol.
    /// From 1.2 on, bit 8 means that the switch blocks ports that form loops.
    pub struct Capabilities(u32) {
        FLOW_STATS = 1, TABLE_STATS = 1 << 1, PORT_STATS = 1 << 2, GROUP_STATS = 1 << 3, IP_REASM = 1 << 5,
        QUEUE_STATS = 1 << 6, ARP_MATCH_IP = 1 << 7, PORT_BLOCKED = 1 << 8, BUNDLES = 1 << 9,
        FLOW_MONITORING = 1 << 10,
    }
}

bits! {
    /// A switch's handling of IP fragments. In 1.1 and 1.2, bit 2 sends packets with an invalid time to live to the
    /// controller.
    pub struct ConfigFlags(u16) { FRAG_DROP = 1, FRAG_REASM = 2, INVALID_TTL_TO_CONTROLLER = 4 }
}

named! {
    /// A controller's role at a switch.
    pub struct ControllerRole(u32) { NO_CHANGE = 0, EQUAL = 1, MASTER = 2, SLAVE = 3 }
}

named! {
    /// The reason why a role changed.
    pub struct RoleReason(u8) { MASTER_REQUEST = 0, CONFIG = 1, EXPERIMENTER = 2 }
}

named! {
    /// The command of a group modification; inserting and removing buckets is possible in 1.5 only.
    pub struct GroupCommand(u16) { ADD = 0, MODIFY = 1, DELETE = 2, INSERT_BUCKET = 3, REMOVE_BUCKET = 5 }
}

named! {
    /// The type of a group, which determines the buckets that it executes.
    pub struct GroupType(u8) { ALL = 0, SELECT = 1, INDIRECT = 2, FAST_FAILOVER = 3 }
}

bits! {
    /// A set of group types.
    pub struct GroupTypes(u32) { ALL = 1, SELECT = 2, INDIRECT = 4, FAST_FAILOVER = 8 }
}

bits! {
    /// The capabilities of groups.
    pub struct GroupCapabilities(u32) {
        SELECT_WEIGHT = 1, SELECT_LIVENESS = 2, CHAINING = 4, CHAINING_CHECKS = 8,
    }
}

named! {
    /// The command of a meter modification.
    pub struct MeterCommand(u16) { ADD = 0, MODIFY = 1, DELETE = 2 }
}

bits! {
    /// The options of a meter.
    pub struct MeterFlags(u16) { KBPS = 1, PKTPS = 2, BURST = 4, STATS = 8 }
}

bits! {
    /// The options that meters support.
    pub struct MeterCapabilities(u32) { KBPS = 1, PKTPS = 2, BURST = 4, STATS = 8 }
}

bits! {
    /// A set of meter band types.
    pub struct BandTypes(u32) { DROP = 2, DSCP_REMARK = 4 }
}

named! {
    /// The kind of a statistics or multipart message.
    pub struct MultipartKind(u16) {
        DESCRIPTION = 0, FLOW = 1, AGGREGATE = 2, TABLE = 3, PORT = 4, QUEUE = 5, GROUP = 6, GROUP_DESCRIPTION = 7,
        GROUP_FEATURES = 8, METER = 9, METER_CONFIG = 10, METER_FEATURES = 11, TABLE_FEATURES = 12,
        PORT_DESCRIPTION = 13, TABLE_DESCRIPTION = 14, QUEUE_DESCRIPTION = 15, FLOW_MONITOR = 16,
        FLOW_STATISTICS = 17, CONTROLLER_STATUS = 18, BUNDLE_FEATURES = 19, EXPERIMENTER = 0xffff,
    }
}

bits! {
    /// Flags of a statistics or multipart message.
    pub struct MultipartFlags(u16) { MORE = 1 }
}

bits! {
    /// The configuration of a table: in 1.1 and 1.2, what it does on a table miss (bits 0 and 1); from 1.4
    /// on, eviction and vacancy events.
    pub struct TableConfig(u32) { MISS_CONTINUE = 1, MISS_DROP = 2, EVICTION = 4, VACANCY_EVENTS = 8 }
}

bits! {
    /// The criteria by which a table evicts flows.
    pub struct EvictionFlags(u32) { OTHER = 1, IMPORTANCE = 2, LIFETIME = 4 }
}

named! {
    /// The event that a table-status reports.
    pub struct TableReason(u8) { VACANCY_DOWN = 3, VACANCY_UP = 4 }
}

named! {
    /// The command of a table features request (1.5).
    pub struct TableFeaturesCommand(u8) { REPLACE = 0, MODIFY = 1, ENABLE = 2, DISABLE = 3 }
}

bits! {
    /// The flags of a table's features (1.5).
    pub struct TableFeatureFlags(u32) { INGRESS_TABLE = 1, EGRESS_TABLE = 2, FIRST_EGRESS = 16 }
}

named! {
    /// The type of a bundle-control message.
    pub struct BundleControlType(u16) {
        OPEN_REQUEST = 0, OPEN_REPLY = 1, CLOSE_REQUEST = 2, CLOSE_REPLY = 3, COMMIT_REQUEST = 4, COMMIT_REPLY = 5,
        DISCARD_REQUEST = 6, DISCARD_REPLY = 7,
    }
}

bits! {
    /// The flags of a bundle, which determine how it is committed.
    pub struct BundleFlags(u16) { ATOMIC = 1, ORDERED = 2, TIME = 4 }
}

named! {
    /// The command of a flow monitor request.
    pub struct FlowMonitorCommand(u8) { ADD = 0, MODIFY = 1, DELETE = 2 }
}

bits! {
    /// The events and details that a flow monitor reports.
    pub struct FlowMonitorFlags(u16) {
        INITIAL = 1, ADD = 2, REMOVED = 4, MODIFY = 8, INSTRUCTIONS = 16, NO_ABBREV = 32, ONLY_OWN = 64,
    }
}

named! {
    /// The event of a monitored flow.
    pub struct FlowEvent(u16) {
        INITIAL = 0, ADDED = 1, REMOVED = 2, MODIFIED = 3, ABBREV = 4, PAUSED = 5, RESUMED = 6,
    }
}

named! {
    /// The reason why a flow statistics entry is sent (1.5).
    pub struct FlowStatsReason(u8) { STATS_REQUEST = 0, STAT_TRIGGER = 1 }
}

named! {
    /// The event that a controller-status reports.
    pub struct ControllerStatusReason(u8) {
        REQUEST = 0, CHANNEL_STATUS = 1, ROLE = 2, CONTROLLER_ADDED = 3, CONTROLLER_REMOVED = 4, SHORT_ID = 5,
        EXPERIMENTER = 6,
    }
}

named! {
    /// Whether a controller's connection is up.
    pub struct ChannelStatus(u8) { UP = 0, DOWN = 1 }
}

bits! {
    /// The conditions under which a statistics trigger fires.
    pub struct StatTriggerFlags(u32) { PERIODIC = 1, ONLY_FIRST = 2 }
}

named! {
    /// A controller's role in Nicira's numbering (before 1.2).
    pub struct NiciraRole(u32) { EQUAL = 0, MASTER = 1, SLAVE = 2 }
}

named! {
    /// The format of packet-ins that Open vSwitch sends.
    pub struct PacketInFormat(u32) { STANDARD = 0, NICIRA = 1, NICIRA2 = 2 }
}

named! {
    /// The command that changes the mapping of tunnel options.
    pub struct TlvTableCommand(u16) { ADD = 0, DELETE = 1, CLEAR = 2 }
}

named! {
    /// The event of a flow that is monitored by the Nicira or ONF extension (before 1.4).
    pub struct NiciraFlowEvent(u16) { ADDED = 0, DELETED = 1, MODIFIED = 2, ABBREV = 3 }
}

named! {
    /// The reason why a flow that is monitored by the Nicira or ONF extension was removed.
    pub struct MonitorReason(u16) {
        IDLE_TIMEOUT = 0, HARD_TIMEOUT = 1, DELETE = 2, GROUP_DELETE = 3, METER_DELETE = 4, EVICTION = 5,
    }
}

bits! {
    /// The options of the connection tracking action.
    pub struct ConnectionFlags(u16) { COMMIT = 1, FORCE = 2 }
}

bits! {
    /// The options of network address translation: which end is translated, and how its port is chosen.
    pub struct NatFlags(u16) { SRC = 1, DST = 2, PERSISTENT = 4, PROTO_HASH = 8, PROTO_RANDOM = 16 }
}

bits! {
    /// The set of bounds that a NAT range has.
    pub struct NatRange(u16) {
        IPV4_MIN = 1, IPV4_MAX = 2, IPV6_MIN = 4, IPV6_MAX = 8, PORT_MIN = 16, PORT_MAX = 32,
    }
}

bits! {
    /// The options of learned flows.
    pub struct LearnFlags(u16) { SEND_FLOW_REMOVED = 1, DELETE_LEARNED = 2, WRITE_RESULT = 4 }
}

named! {
    /// The direction in which packets are sampled.
    pub struct SampleDirection(u8) { DEFAULT = 0, INGRESS = 1, EGRESS = 2 }
}
