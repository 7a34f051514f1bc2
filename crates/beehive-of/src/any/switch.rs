//! Features, configuration and role of a switch.

use bytes::{BufMut, BytesMut};

use super::port::Ports;
use crate::encode::{self, EncodeError};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be16, be32, be64, fixed};
use crate::frame::Frame;
use crate::message;
use crate::schema::{Value, Writer};
use crate::version::Version;

/// The features of a switch (features reply).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Features<'a> {
    /// The identity that the switch claims. It is only as trustworthy as the connection.
    pub datapath_id: u64,
    /// Number of packets that the switch can buffer.
    pub buffers: u32,
    /// Number of flow tables.
    pub tables: u8,
    /// The identifier of this connection of the switch: 0 is the main connection. Since 1.3.
    pub auxiliary_id: u8,
    /// Optional capabilities.
    pub capabilities: Capabilities,
    /// The supported actions, bit n for action type n. 1.0 only.
    pub actions: u32,
    /// The ports. Up to 1.2; later versions list them in [`PortDescription`](super::PortDescription).
    pub ports: Ports<'a>,
}

/// Capability bits (`ofp_capabilities`). A bit has the same meaning in every version, unless stated
/// otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// The switch keeps statistics per flow.
    pub const FLOW_STATISTICS: u32 = 1;
    /// The switch keeps statistics per table.
    pub const TABLE_STATISTICS: u32 = 1 << 1;
    /// The switch keeps statistics per port.
    pub const PORT_STATISTICS: u32 = 1 << 2;
    /// The switch keeps statistics per group. Since 1.1; in 1.0, the bit means that the switch supports the
    /// spanning tree protocol.
    pub const GROUP_STATISTICS: u32 = 1 << 3;
    /// The switch can reassemble IP fragments.
    pub const IP_REASSEMBLY: u32 = 1 << 5;
    /// The switch keeps statistics per queue.
    pub const QUEUE_STATISTICS: u32 = 1 << 6;
}

impl Features<'_> {
    /// Appends a features reply.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express a field: auxiliary connections exist from 1.3 on, ports are in
    /// this message up to 1.2, and actions in 1.0 only.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let unsupported = |field| Err(EncodeError::unsupported(version, field));
        if version != Version::V1_0 && self.actions != 0 {
            return unsupported("the actions of a features reply");
        }
        if version >= Version::V1_3 && !self.ports.is_empty() {
            return unsupported("the ports of a features reply");
        }
        if version < Version::V1_3 && self.auxiliary_id != 0 {
            return unsupported("an auxiliary connection");
        }

        let features = message::Features {
            datapath_id: self.datapath_id,
            n_buffers: self.buffers,
            n_tables: self.tables,
            auxiliary_id: self.auxiliary_id,
            capabilities: message::Capabilities(self.capabilities.0),
            actions: self.actions,
            ports: message::Ports::EMPTY,
        };

        encode::message(out, version.wire(), FEATURES_REPLY, xid, |out| {
            let mut writer = Writer::new(version, out);
            features.write(&mut writer)?;
            // Up to 1.2, the ports are at the end of the message.
            self.ports.append(&mut writer)
        })
    }
}

impl<'a> Features<'a> {
    pub(super) fn generalize(features: &message::Features<'a>) -> Self {
        Self {
            datapath_id: features.datapath_id,
            buffers: features.n_buffers,
            tables: features.n_tables,
            auxiliary_id: features.auxiliary_id,
            capabilities: Capabilities(features.capabilities.0),
            actions: features.actions,
            ports: features.ports.reinterpret(),
        }
    }
}

/// The message types, the same in every version that has them.
const FEATURES_REPLY: u8 = 6;
const GET_CONFIG_REPLY: u8 = 8;
const SET_CONFIG: u8 = 9;
const ROLE_REQUEST: u8 = 24;
const ROLE_REPLY: u8 = 25;

/// A switch's handling of IP fragments and table misses (get-config reply and set-config).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwitchConfig {
    /// `ofp_config_flags`: 0 treats IP fragments like other packets, 1 drops them, 2 reassembles them.
    pub flags: u16,
    /// Number of bytes of a packet that the switch sends to the controller on a table miss; 0xffff sends the
    /// whole packet.
    pub miss_send_len: u16,
}

impl SwitchConfig {
    pub(crate) fn parse(frame: Frame<'_>) -> Result<Self, Error> {
        let (body, _) = fixed::<4>(frame.body(), Part::Message, 8, "switch config")?;
        Ok(Self { flags: be16::<0, _>(body), miss_send_len: be16::<2, _>(body) })
    }

    /// Appends a set-config.
    ///
    /// # Errors
    ///
    /// Currently never fails.
    pub fn encode_set_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        self.encode(version, SET_CONFIG, xid, out)
    }

    /// Appends a get-config reply.
    ///
    /// # Errors
    ///
    /// Currently never fails.
    pub fn encode_reply_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version, GET_CONFIG_REPLY, xid, out)
    }

    /// Appends the message with this type.
    fn encode(
        &self,
        version: Version,
        message_type: u8,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        encode::message(out, version.wire(), message_type, xid, |out| {
            out.put_u16(self.flags);
            out.put_u16(self.miss_send_len);
            Ok(())
        })
    }
}

/// A controller's role at a switch (specification 1.3.5, 6.3.4). Since 1.2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Role {
    /// Queries the role without changing it.
    NoChange = 0,
    /// Full access, shared with other controllers. The default.
    Equal = 1,
    /// Full access, for at most one controller at a time.
    Master = 2,
    /// Read-only access.
    Slave = 3,
}

/// A role request or its reply. Since 1.2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoleMessage {
    /// The role.
    pub role: Role,
    /// The number of the election that assigned the role. A switch refuses a number that is older than the
    /// latest one it has seen.
    pub generation_id: u64,
}

impl RoleMessage {
    pub(crate) fn parse(frame: Frame<'_>) -> Result<Self, Error> {
        let (body, _) = fixed::<16>(frame.body(), Part::Role, 8, "role")?;
        let role = match be32::<0, _>(body) {
            0 => Role::NoChange,
            1 => Role::Equal,
            2 => Role::Master,
            3 => Role::Slave,
            _ => return Err(Error::new(ErrorKind::Value, Part::Role, 8, "role")),
        };

        Ok(Self { role, generation_id: be64::<8, _>(body) })
    }

    /// Appends a role request.
    ///
    /// # Errors
    ///
    /// Fails before 1.2, where roles do not exist.
    pub fn encode_request_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version, ROLE_REQUEST, xid, out)
    }

    /// Appends a role reply.
    ///
    /// # Errors
    ///
    /// Fails before 1.2, where roles do not exist.
    pub fn encode_reply_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version, ROLE_REPLY, xid, out)
    }

    fn encode(
        &self,
        version: Version,
        message_type: u8,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        if version < Version::V1_2 {
            return Err(EncodeError::unsupported(version, "role"));
        }
        encode::message(out, version.wire(), message_type, xid, |out| {
            out.put_u32(self.role as u32);
            out.put_u32(0);
            out.put_u64(self.generation_id);
            Ok(())
        })
    }
}
