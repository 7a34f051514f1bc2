//! Splits statistics and multipart messages that exceed the maximum length into parts. All but the last part
//! have the flag that announces another part.

use bytes::BytesMut;

use super::message::Message;
use super::multipart::{ReplyBody, RequestBody};
use super::number::{MultipartFlags, MultipartKind};
use crate::encode::EncodeError;
use crate::limits::MESSAGE_LENGTH_MAX;
use crate::schema::{List, Tagged, Value, Writer};
use crate::version::Version;

/// Passes the list in a body to `Parts::append`.
macro_rules! parts {
    ($body:expr, $parts:ident, { $($name:ident :: $variant:ident . $field:ident),* $(,)? }) => {
        match $body {
            $( $name::$variant(body) => Some($parts.append(&body.$field)), )*
            _ => None,
        }
    };
}

impl Message<'_> {
    /// Appends the encoded message to `out`. A statistics or multipart message whose list is too long is
    /// split into several messages. Returns the number of messages.
    ///
    /// ```
    /// use beehive_of::message::{FlowEntry, Flows, Message, Multipart, ReplyBody};
    /// use beehive_of::{Frames, Version};
    /// use bytes::BytesMut;
    ///
    /// let flows = vec![FlowEntry::default(); 2_000];
    /// let reply = ReplyBody::Flow(Flows { flows: (&flows[..]).into() });
    /// let message = Message::MultipartReply(Multipart { body: reply, ..Default::default() });
    /// let mut out = BytesMut::new();
    /// assert!(message.encode_into(Version::V1_3, 1, &mut out).is_err());
    /// assert_eq!(message.encode_parts_into(Version::V1_3, 1, &mut out), Ok(2));
    /// assert_eq!(Frames::new(&out).count(), 2);
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`Message::encode_into`]. A single element, or a message of another kind, may still be too
    /// long.
    pub fn encode_parts_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<usize, EncodeError> {
        match self.encode_into(version, xid, out) {
            Err(EncodeError::TooLong) => {}
            other => return other.map(|()| 1),
        }

        let start = out.len();
        let count = match self {
            Self::MultipartRequest(request) => {
                let mut parts = Parts::new(self, &request.body, request.flags, version, xid, out)?;
                parts!(request.body, parts, {
                    RequestBody::TableFeatures.tables,
                    RequestBody::FlowMonitor.monitors,
                })
            }
            Self::MultipartReply(reply) => {
                let mut parts = Parts::new(self, &reply.body, reply.flags, version, xid, out)?;
                parts!(reply.body, parts, {
                    ReplyBody::Flow.flows,
                    ReplyBody::Table.tables,
                    ReplyBody::Port.ports,
                    ReplyBody::Queue.queues,
                    ReplyBody::Group.groups,
                    ReplyBody::GroupDescription.groups,
                    ReplyBody::Meter.meters,
                    ReplyBody::MeterConfig.meters,
                    ReplyBody::TableFeatures.tables,
                    ReplyBody::PortDescription.ports,
                    ReplyBody::TableDescription.tables,
                    ReplyBody::QueueDescription.queues,
                    ReplyBody::FlowMonitor.updates,
                    ReplyBody::FlowStatistics.flows,
                    ReplyBody::ControllerStatus.controllers,
                })
            }
            _ => None,
        };

        match count {
            Some(Ok(count)) => Ok(count),
            Some(Err(error)) => {
                out.truncate(start);
                Err(error)
            }
            None => Err(EncodeError::TooLong),
        }
    }
}

/// The state while the parts of a message are written.
struct Parts<'w> {
    out: &'w mut BytesMut,
    version: Version,
    message_type: u8,
    kind: u16,
    flags: MultipartFlags,
    xid: u32,
}

impl<'w> Parts<'w> {
    fn new<'a, B: Tagged<'a>>(
        message: &Message<'_>,
        body: &B,
        flags: MultipartFlags,
        version: Version,
        xid: u32,
        out: &'w mut BytesMut,
    ) -> Result<Self, EncodeError> {
        let missing = || EncodeError::unsupported(version, message.name());
        let message_type = message.kind(version).and_then(|kind| u8::try_from(kind).ok());
        Ok(Self {
            out,
            version,
            message_type: message_type.ok_or_else(missing)?,
            kind: body.kind(version).ok_or_else(missing)?,
            flags,
            xid,
        })
    }

    /// Appends the head of a part. Returns the position where the part starts.
    fn open(&mut self) -> Result<usize, EncodeError> {
        let start = self.out.len();
        let [x0, x1, x2, x3] = self.xid.to_be_bytes();
        self.out.extend_from_slice(&[self.version.wire(), self.message_type, 0, 0, x0, x1, x2, x3]);
        let mut writer = Writer::new(self.version, self.out);
        MultipartKind(self.kind).write(&mut writer)?;
        self.flags.with(MultipartFlags::MORE).write(&mut writer)?;
        if self.version != Version::V1_0 {
            writer.zeros(4);
        }

        Ok(start)
    }

    /// Appends the elements. Returns the number of parts.
    fn append<'a, T: Value<'a>>(&mut self, elements: &List<'a, T>) -> Result<usize, EncodeError> {
        let mut start = self.open()?;
        let mut head = self.out.len() - start;
        let mut count = 1;
        for element in elements.iter() {
            let at = self.out.len();
            element?.write(&mut Writer::new(self.version, self.out))?;
            if self.out.len() - start <= MESSAGE_LENGTH_MAX {
                continue;
            }

            // The element does not fit, so start another part with it.
            let element = self.out.split_off(at);
            if at == start + head || head + element.len() > MESSAGE_LENGTH_MAX {
                return Err(EncodeError::TooLong);
            }

            self.close(start)?;
            start = self.open()?;
            head = self.out.len() - start;
            self.out.extend_from_slice(&element);
            count += 1;
        }

        self.close(start)?;

        // No other part follows the last part, so give it the original flags, without the added `MORE`.
        if let Some(flags) = self.out.get_mut(start + 10..).and_then(<[u8]>::first_chunk_mut::<2>) {
            *flags = self.flags.0.to_be_bytes();
        }

        Ok(count)
    }

    fn close(&mut self, start: usize) -> Result<(), EncodeError> {
        crate::encode::patch_length(self.out, start, start + 2)
    }
}
