//! Numbers, identifiers and sets of bits of the protocol that have names.
//!
//! Values without a name are kept as they are. Where versions differ, the constant's comment says so.

use crate::schema::{bits, named};

named! {
    /// Where a switch keeps a packet.
    pub struct BufferId(u32) { NONE = 0xffff_ffff }
}

named! {
    /// A flow table.
    pub struct TableId(u8) { ALL = 0xff }
}

named! {
    /// A group.
    pub struct GroupId(u32) { ALL = 0xffff_fffc, ANY = 0xffff_ffff }
}

named! {
    /// A meter.
    pub struct MeterId(u32) { SLOWPATH = 0xffff_fffd, CONTROLLER = 0xffff_fffe, ALL = 0xffff_ffff }
}

named! {
    /// A queue of a port.
    pub struct QueueId(u32) { ALL = 0xffff_ffff }
}

named! {
    /// A bucket of a group (1.5).
    pub struct BucketId(u32) { FIRST = 0xffff_fffd, LAST = 0xffff_fffe, ALL = 0xffff_ffff }
}

named! {
    /// How many bytes of a packet go to the controller.
    pub struct PacketLength(u16) { NO_BUFFER = 0xffff }
}

named! {
    /// Whose extension: an OUI, or a number of the ONF's.
    pub struct ExperimenterId(u32) { NICIRA = 0x0000_2320, ONF = 0x4f4e_4600 }
}

named! {
    /// Why a packet is sent to the controller; in 1.0 and 1.1 0 and 1 only.
    pub struct PacketInReason(u8) {
        NO_MATCH = 0, ACTION = 1, INVALID_TTL = 2, ACTION_SET = 3, GROUP = 4, PACKET_OUT = 5,
    }
}

named! {
    /// What a flow modification does.
    pub struct FlowModCommand(u16) { ADD = 0, MODIFY = 1, MODIFY_STRICT = 2, DELETE = 3, DELETE_STRICT = 4 }
}

bits! {
    /// Options of a flow.
    pub struct FlowModFlags(u16) {
        SEND_FLOW_REMOVED = 1, CHECK_OVERLAP = 2,
        /// In 1.0 this bit makes the flow an emergency one.
        RESET_COUNTS = 4,
        NO_PACKET_COUNTS = 8, NO_BYTE_COUNTS = 16,
    }
}

named! {
    /// Why a flow is gone; 1.0 and 1.1 know the first three and four.
    pub struct FlowRemovedReason(u8) {
        IDLE_TIMEOUT = 0, HARD_TIMEOUT = 1, DELETE = 2, GROUP_DELETE = 3, METER_DELETE = 4, EVICTION = 5,
    }
}

named! {
    /// Why a port-status is sent.
    pub struct PortReason(u8) { ADD = 0, DELETE = 1, MODIFY = 2 }
}

bits! {
    /// What the controller configured at a port.
    pub struct PortConfig(u32) {
        PORT_DOWN = 1,
        /// 1.0 only.
        NO_STP = 1 << 1,
        NO_RECV = 1 << 2,
        /// 1.0 only.
        NO_RECV_STP = 1 << 3,
        /// 1.0 only.
        NO_FLOOD = 1 << 4,
        NO_FWD = 1 << 5, NO_PACKET_IN = 1 << 6,
    }
}

bits! {
    /// What a switch can do. Bit 3 is the spanning tree protocol in 1.0, bit 8 blocks looping ports from 1.2 on.
    pub struct Capabilities(u32) {
        FLOW_STATS = 1, TABLE_STATS = 1 << 1, PORT_STATS = 1 << 2, GROUP_STATS = 1 << 3, IP_REASM = 1 << 5,
        QUEUE_STATS = 1 << 6, ARP_MATCH_IP = 1 << 7, PORT_BLOCKED = 1 << 8, BUNDLES = 1 << 9,
        FLOW_MONITORING = 1 << 10,
    }
}

bits! {
    /// How a switch treats fragments; 4 sends packets with a bad time to live to the controller (1.1 and 1.2).
    pub struct ConfigFlags(u16) { FRAG_DROP = 1, FRAG_REASM = 2, INVALID_TTL_TO_CONTROLLER = 4 }
}

named! {
    /// A controller's role at a switch.
    pub struct ControllerRole(u32) { NO_CHANGE = 0, EQUAL = 1, MASTER = 2, SLAVE = 3 }
}

named! {
    /// Why a role changed.
    pub struct RoleReason(u8) { MASTER_REQUEST = 0, CONFIG = 1, EXPERIMENTER = 2 }
}

named! {
    /// What a group modification does; inserting and removing buckets is 1.5's.
    pub struct GroupCommand(u16) { ADD = 0, MODIFY = 1, DELETE = 2, INSERT_BUCKET = 3, REMOVE_BUCKET = 5 }
}

named! {
    /// Which of its buckets a group uses.
    pub struct GroupType(u8) { ALL = 0, SELECT = 1, INDIRECT = 2, FAST_FAILOVER = 3 }
}

bits! {
    /// Sets of group types.
    pub struct GroupTypes(u32) { ALL = 1, SELECT = 2, INDIRECT = 4, FAST_FAILOVER = 8 }
}

bits! {
    /// What groups can do.
    pub struct GroupCapabilities(u32) {
        SELECT_WEIGHT = 1, SELECT_LIVENESS = 2, CHAINING = 4, CHAINING_CHECKS = 8,
    }
}

named! {
    /// What a meter modification does.
    pub struct MeterCommand(u16) { ADD = 0, MODIFY = 1, DELETE = 2 }
}

bits! {
    /// How a meter counts.
    pub struct MeterFlags(u16) { KBPS = 1, PKTPS = 2, BURST = 4, STATS = 8 }
}

bits! {
    /// How meters can count.
    pub struct MeterCapabilities(u32) { KBPS = 1, PKTPS = 2, BURST = 4, STATS = 8 }
}

bits! {
    /// Sets of kinds of meter bands.
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
    /// What a table does with packets, and which events it tells (1.4 on); bits 0 and 1 are those of 1.1 and 1.2.
    pub struct TableConfig(u32) { MISS_CONTINUE = 1, MISS_DROP = 2, EVICTION = 4, VACANCY_EVENTS = 8 }
}

bits! {
    /// Which flows a table evicts first.
    pub struct EvictionFlags(u32) { OTHER = 1, IMPORTANCE = 2, LIFETIME = 4 }
}

named! {
    /// Why a table-status is sent.
    pub struct TableReason(u8) { VACANCY_DOWN = 3, VACANCY_UP = 4 }
}

named! {
    /// What a table features request does (1.5).
    pub struct TableFeaturesCommand(u8) { REPLACE = 0, MODIFY = 1, ENABLE = 2, DISABLE = 3 }
}

bits! {
    /// What else a table can do (1.5).
    pub struct TableFeatureFlags(u32) { INGRESS_TABLE = 1, EGRESS_TABLE = 2, FIRST_EGRESS = 16 }
}

named! {
    /// What a bundle control does.
    pub struct BundleControlType(u16) {
        OPEN_REQUEST = 0, OPEN_REPLY = 1, CLOSE_REQUEST = 2, CLOSE_REPLY = 3, COMMIT_REQUEST = 4, COMMIT_REPLY = 5,
        DISCARD_REQUEST = 6, DISCARD_REPLY = 7,
    }
}

bits! {
    /// How a bundle is committed.
    pub struct BundleFlags(u16) { ATOMIC = 1, ORDERED = 2, TIME = 4 }
}

named! {
    /// What a flow monitor request does.
    pub struct FlowMonitorCommand(u8) { ADD = 0, MODIFY = 1, DELETE = 2 }
}

bits! {
    /// What a flow monitor tells.
    pub struct FlowMonitorFlags(u16) {
        INITIAL = 1, ADD = 2, REMOVED = 4, MODIFY = 8, INSTRUCTIONS = 16, NO_ABBREV = 32, ONLY_OWN = 64,
    }
}

named! {
    /// What happened to a flow that is monitored.
    pub struct FlowEvent(u16) {
        INITIAL = 0, ADDED = 1, REMOVED = 2, MODIFIED = 3, ABBREV = 4, PAUSED = 5, RESUMED = 6,
    }
}

named! {
    /// Why a flow statistics entry is sent (1.5).
    pub struct FlowStatsReason(u8) { STATS_REQUEST = 0, STAT_TRIGGER = 1 }
}

named! {
    /// Why a controller-status is sent.
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
    /// When a statistics trigger fires.
    pub struct StatTriggerFlags(u32) { PERIODIC = 1, ONLY_FIRST = 2 }
}

named! {
    /// A controller's role, as Nicira numbers it (before 1.2).
    pub struct NiciraRole(u32) { EQUAL = 0, MASTER = 1, SLAVE = 2 }
}

named! {
    /// The format of packet-ins that Open vSwitch sends.
    pub struct PacketInFormat(u32) { STANDARD = 0, NICIRA = 1, NICIRA2 = 2 }
}

named! {
    /// What a change of the numbers of tunnel options does.
    pub struct TlvTableCommand(u16) { ADD = 0, DELETE = 1, CLEAR = 2 }
}

named! {
    /// What happened to a flow that is monitored by Nicira's or the ONF's means (before 1.4).
    pub struct NiciraFlowEvent(u16) { ADDED = 0, DELETED = 1, MODIFIED = 2, ABBREV = 3 }
}

named! {
    /// Why a flow that is monitored by Nicira's or the ONF's means is gone.
    pub struct MonitorReason(u16) {
        IDLE_TIMEOUT = 0, HARD_TIMEOUT = 1, DELETE = 2, GROUP_DELETE = 3, METER_DELETE = 4, EVICTION = 5,
    }
}

bits! {
    /// What the connection tracker does with a packet.
    pub struct ConnectionFlags(u16) { COMMIT = 1, FORCE = 2 }
}

bits! {
    /// Which end of a connection is translated, and how its port is chosen.
    pub struct NatFlags(u16) { SRC = 1, DST = 2, PERSISTENT = 4, PROTO_HASH = 8, PROTO_RANDOM = 16 }
}

bits! {
    /// Which parts of a range of addresses and ports there are.
    pub struct NatRange(u16) {
        IPV4_MIN = 1, IPV4_MAX = 2, IPV6_MIN = 4, IPV6_MAX = 8, PORT_MIN = 16, PORT_MAX = 32,
    }
}

bits! {
    /// Options of learned flows.
    pub struct LearnFlags(u16) { SEND_FLOW_REMOVED = 1, DELETE_LEARNED = 2, WRITE_RESULT = 4 }
}

named! {
    /// In which direction packets are sampled.
    pub struct SampleDirection(u8) { DEFAULT = 0, INGRESS = 1, EGRESS = 2 }
}
