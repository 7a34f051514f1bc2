//! What a switch is and how it is set up: features, configuration, role.

use bytes::{BufMut, BytesMut};

use super::port::Ports;
use crate::encode::{EncodeError, message};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be16, be32, be64, fixed};
use crate::frame::Frame;
use crate::version::Version;
use crate::{v10, v13};

/// What a switch can do (features reply).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Features<'a> {
    /// The switch's identity; it says so itself, so trust it no further than its connection.
    pub datapath_id: u64,
    /// How many packets it can keep.
    pub buffers: u32,
    /// How many flow tables it has.
    pub tables: u8,
    /// Which of a switch's connections this is: 0 is the main one. 1.3 only.
    pub auxiliary_id: u8,
    /// What else it can do.
    pub capabilities: Capabilities,
    /// The actions that it can do, bit n for action type n. 1.0 only.
    pub actions: u32,
    /// Its ports. 1.0 only; 1.3 tells them in [`PortDescription`](super::PortDescription).
    pub ports: Ports<'a>,
}

/// Capability bits (`ofp_capabilities`); those that both versions have are the same in both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Counts per flow.
    pub const FLOW_STATISTICS: u32 = 1;
    /// Counts per table.
    pub const TABLE_STATISTICS: u32 = 1 << 1;
    /// Counts per port.
    pub const PORT_STATISTICS: u32 = 1 << 2;
    /// Counts per group. 1.3 only; in 1.0 the bit means the spanning tree protocol.
    pub const GROUP_STATISTICS: u32 = 1 << 3;
    /// Reassembles IP fragments.
    pub const IP_REASSEMBLY: u32 = 1 << 5;
    /// Counts per queue.
    pub const QUEUE_STATISTICS: u32 = 1 << 6;
}

impl Features<'_> {
    /// Appends a features reply.
    ///
    /// # Errors
    ///
    /// 1.0 has no auxiliary connections; 1.3 has neither actions nor ports in this message.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_features(self, xid, out),
            Version::V1_3 => v13::write_features(self, xid, out),
        }
    }
}

/// How a switch treats fragments and packets for the controller (get-config reply and set-config).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwitchConfig {
    /// `ofp_config_flags`: 0 treats IP fragments as any packet, 1 drops them, 2 reassembles them.
    pub flags: u16,
    /// How many bytes of a packet without a flow go to the controller; 0xffff is all of it.
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
    /// None today.
    pub fn encode_set_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        self.encode(version, v13::message_type::SET_CONFIG, xid, out)
    }

    /// Appends a get-config reply.
    ///
    /// # Errors
    ///
    /// None today.
    pub fn encode_reply_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version, v13::message_type::GET_CONFIG_REPLY, xid, out)
    }

    /// The type numbers of these messages are the same in both versions.
    fn encode(
        &self,
        version: Version,
        message_type: u8,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        message(out, version.wire(), message_type, xid, |out| {
            out.put_u16(self.flags);
            out.put_u16(self.miss_send_len);
            Ok(())
        })
    }
}

/// A controller's role at a switch (specification 1.3.5, 6.3.4). 1.3 only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Role {
    /// Ask without changing.
    NoChange = 0,
    /// Full access, like every other equal.
    Equal = 1,
    /// Full access, at most one.
    Master = 2,
    /// Reads only.
    Slave = 3,
}

/// A role request or its reply. 1.3 only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoleMessage {
    /// The role.
    pub role: Role,
    /// The election that the role comes from; a switch refuses older ones.
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
    /// 1.0 has no roles.
    pub fn encode_request_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version, v13::message_type::ROLE_REQUEST, xid, out)
    }

    /// Appends a role reply.
    ///
    /// # Errors
    ///
    /// 1.0 has no roles.
    pub fn encode_reply_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version, v13::message_type::ROLE_REPLY, xid, out)
    }

    fn encode(
        &self,
        version: Version,
        message_type: u8,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        if version == Version::V1_0 {
            return Err(EncodeError::unsupported(version, "role"));
        }
        message(out, version.wire(), message_type, xid, |out| {
            out.put_u32(self.role as u32);
            out.put_u32(0);
            out.put_u64(self.generation_id);
            Ok(())
        })
    }
}
