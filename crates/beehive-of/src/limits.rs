//! The limits of the codec.

/// Length of the header that starts every message, in bytes (specification 1.3.5, 7.1).
pub const HEADER_LENGTH: usize = 8;

/// Maximum length of a message in bytes; the length field of the header has 16 bits.
pub const MESSAGE_LENGTH_MAX: usize = u16::MAX as usize;

/// Space that a [`FrameBuffer`](crate::FrameBuffer) reserves for its first reads, in bytes. It is small
/// because idle connections reserve it, too.
pub const READ_LENGTH_MIN: usize = 2 * 1024;

/// Maximum space that a [`FrameBuffer`](crate::FrameBuffer) reserves for a read, in bytes. At this size, one
/// read of a busy connection returns hundreds of packet-ins.
pub const READ_LENGTH_MAX: usize = 64 * 1024;

/// Length of a port name on the wire, padded with zeros, in bytes (`OFP_MAX_PORT_NAME_LEN`).
pub const PORT_NAME_LENGTH: usize = 16;

/// Largest VLAN identifier (IEEE 802.1Q: 12 bits).
pub const VLAN_ID_MAX: u16 = 0x0fff;

/// Largest VLAN priority (IEEE 802.1Q: 3 bits).
pub const VLAN_PRIORITY_MAX: u8 = 7;

/// Largest differentiated services code point (6 bits).
pub const DSCP_MAX: u8 = 63;

/// Maximum nesting depth of actions in a decoded message: enough for real use, and small enough for recursion
/// on any stack.
pub const ACTION_DEPTH_MAX: u8 = 16;

/// Maximum number of fields in a match whose meaning is checked. The check takes quadratic time, and there
/// are fewer registered fields than this.
pub const MATCH_FIELDS_MAX: usize = 256;
