//! Every limit of the codec.

/// Length of the header that starts every message, in bytes (specification 1.3.5, 7.1).
pub const HEADER_LENGTH: usize = 8;

/// Longest message that the 16-bit length field can announce, in bytes.
pub const MESSAGE_LENGTH_MAX: usize = u16::MAX as usize;

/// Room that a [`FrameBuffer`](crate::FrameBuffer) makes for its first reads, in bytes: little, for a connection that
/// never says anything costs it too.
pub const READ_LENGTH_MIN: usize = 2 * 1024;

/// Room that a [`FrameBuffer`](crate::FrameBuffer) makes for a read at most, in bytes: one read of a busy connection
/// carries hundreds of packet-ins.
pub const READ_LENGTH_MAX: usize = 64 * 1024;

/// Longest port name, in bytes; names on the wire are padded with zeros to it (`OFP_MAX_PORT_NAME_LEN`).
pub const PORT_NAME_LENGTH: usize = 16;

/// Largest VLAN identifier that can name a VLAN (IEEE 802.1Q: 12 bits).
pub const VLAN_ID_MAX: u16 = 0x0fff;

/// Largest VLAN priority (IEEE 802.1Q: 3 bits).
pub const VLAN_PRIORITY_MAX: u8 = 7;

/// Largest differentiated services code point (6 bits).
pub const DSCP_MAX: u8 = 63;

/// How many actions an action of a decoded message can be inside of: enough for any use, and little enough for any stack.
pub const ACTION_DEPTH_MAX: u8 = 16;

/// How many fields the meaning of a match is checked for, each against those before it: more than have names.
pub const MATCH_FIELDS_MAX: usize = 256;
