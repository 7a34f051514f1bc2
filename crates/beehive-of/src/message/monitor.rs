//! Flow monitors (1.4 on; 1.4.1, 7.3.5.17).

use super::instruction::Instructions;
use super::match_::Match;
use super::number::{FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowRemovedReason, GroupId, TableId};
use crate::encode::EncodeError;
use crate::error::{Error, Part};
use crate::port_number::PortNo;
use crate::schema::{Hex, Reader, Scalar, Sink, Source, Value, Writer, structure};
use crate::version::Version;

structure! {
    /// Asks to be told of changes of flows.
    pub struct FlowMonitorRequest<'a> in Statistics {
        monitor_id: u32,
        out_port: PortNo = PortNo::ANY,
        out_group: GroupId = GroupId::ANY,
        flags: FlowMonitorFlags,
        table_id: TableId = TableId::ALL,
        command: FlowMonitorCommand,
        match_fields: Match<'a>,
    }
    4.. => [monitor_id, out_port, out_group, flags, table_id, command, match_fields],
}

/// What happened to a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowUpdate<'a> {
    /// What happened.
    pub event: FlowEvent,
    /// More about it.
    pub body: FlowUpdateBody<'a>,
}

/// What is told about a change of a flow; what, depends on the event.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum FlowUpdateBody<'a> {
    /// The flow.
    Full(FullUpdate<'a>),
    /// The controller's own request did it.
    Abbreviated(AbbreviatedUpdate),
    /// The switch has too much to tell, or has told it all.
    Pause(Pause),
    /// Of another event.
    Unknown(&'a [u8]),
}

structure! {
    /// A flow that changed.
    pub struct FullUpdate<'a> in Statistics {
        table_id: TableId,
        reason: FlowRemovedReason,
        idle_timeout: u16,
        hard_timeout: u16,
        priority: u16,
        cookie: u64,
        match_fields: Match<'a>,
        instructions: Instructions<'a>,
    }
    _ => [table_id, reason, idle_timeout, hard_timeout, priority, 4, cookie as Hex, match_fields, instructions],
}

structure! {
    /// The transaction that changed a flow.
    pub struct AbbreviatedUpdate in Statistics { xid: u32 }
    _ => [xid],
}

structure! {
    /// Says no more.
    pub struct Pause in Statistics {}
    _ => [4],
}

impl Default for FlowUpdate<'_> {
    fn default() -> Self {
        Self { event: FlowEvent::PAUSED, body: FlowUpdateBody::Pause(Pause::default()) }
    }
}

impl<'a> Value<'a> for FlowUpdate<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let outer = reader.enter(Part::Statistics);
        let start = reader.offset();
        let length = usize::from(reader.name("flow update length").u16()?);
        let event = FlowEvent::read(reader.name("event"))?;
        let mut inner = reader.inner(length, 4, start, "flow update length")?;
        let body = match event {
            FlowEvent::INITIAL | FlowEvent::ADDED | FlowEvent::REMOVED | FlowEvent::MODIFIED => {
                FlowUpdateBody::Full(FullUpdate::read(&mut inner)?)
            }
            FlowEvent::ABBREV => FlowUpdateBody::Abbreviated(AbbreviatedUpdate::read(&mut inner)?),
            FlowEvent::PAUSED | FlowEvent::RESUMED => FlowUpdateBody::Pause(Pause::read(&mut inner)?),
            _ => FlowUpdateBody::Unknown(inner.take_rest()),
        };
        inner.finish()?;
        reader.enter(outer);
        Ok(Self { event, body })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let start = writer.position();
        let at = writer.reserve();
        self.event.write(writer)?;
        match &self.body {
            FlowUpdateBody::Full(body) => body.write(writer)?,
            FlowUpdateBody::Abbreviated(body) => body.write(writer)?,
            FlowUpdateBody::Pause(body) => body.write(writer)?,
            FlowUpdateBody::Unknown(body) => writer.put(body),
        }
        writer.patch(at, start)
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        sink.key("event");
        self.event.show(version, sink);
        match &self.body {
            FlowUpdateBody::Full(body) => body.show_fields(version, sink),
            FlowUpdateBody::Abbreviated(body) => body.show_fields(version, sink),
            FlowUpdateBody::Pause(_) => {}
            FlowUpdateBody::Unknown(body) => {
                sink.key("body");
                sink.bytes(body);
            }
        }
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let wrong = EncodeError::Value { field: "event" };
        let event = FlowEvent::parse(source.field("event").ok_or(wrong)?).ok_or(wrong)?;
        let start = writer.position();
        let at = writer.reserve();
        event.write(writer)?;
        match event {
            FlowEvent::INITIAL | FlowEvent::ADDED | FlowEvent::REMOVED | FlowEvent::MODIFIED => {
                FullUpdate::compose(source, writer)?;
            }
            FlowEvent::ABBREV => AbbreviatedUpdate::compose(source, writer)?,
            FlowEvent::PAUSED | FlowEvent::RESUMED => Pause::compose(source, writer)?,
            _ => {
                if let Some(body) = source.field("body") {
                    <&[u8] as Value<'_>>::compose(body, writer)?;
                }
            }
        }
        writer.patch(at, start)
    }
}
