//! The ONF's extensions of 1.3: bundles, flow monitors, role status, forwarded requests, and copying fields.

use super::nicira_message::MonitorCancel;
use super::nicira_statistics::NiciraUpdate;
use super::{Extension, Form};
use crate::message::bundle::{BundleAdd, BundleControl, RequestForward};
use crate::message::match_::Match;
use crate::message::number::{FlowMonitorFlags, TableId};
use crate::message::switch::RoleStatus;
use crate::message::symmetric::Empty;
use crate::oxm::FieldId;
use crate::port_number::PortNo;
use crate::schema::{List, choice, structure};

choice! {
    /// An ONF message.
    pub enum OnfMessage<'a> {
        /// Cancels a flow monitor.
        FlowMonitorCancel(MonitorCancel) "flow_monitor_cancel" = [1870 in 3],
        /// Reports that the switch paused a flow monitor, because there were too many updates.
        FlowMonitorPaused(Empty) "flow_monitor_paused" = [1871 in 3],
        /// Reports that the switch resumed a flow monitor.
        FlowMonitorResumed(Empty) "flow_monitor_resumed" = [1872 in 3],
        /// Reports that the controller's role changed.
        RoleStatus(RoleStatus<'a>) "role_status" = [1911 in 3],
        /// Opens, closes, commits or discards a bundle.
        BundleControl(BundleControl<'a>) "bundle_control" = [2300 in 3],
        /// Adds a message to a bundle.
        BundleAdd(BundleAdd<'a>) "bundle_add_message" = [2301 in 3],
        /// A forwarded request of another controller.
        RequestForward(RequestForward<'a>) "requestforward" = [2350 in 3],
    }
}

choice! {
    /// The body of an ONF multipart request.
    pub enum OnfRequest<'a> {
        /// Requests for notifications of changes to flows.
        FlowMonitor(OnfMonitors<'a>) "flow_monitor" = [1870 in 3],
    }
}

choice! {
    /// The body of an ONF multipart reply.
    pub enum OnfReply<'a> {
        /// Updates of monitored flows.
        FlowMonitor(OnfUpdates<'a>) "flow_monitor" = [1870 in 3],
    }
}

choice! {
    /// An ONF action.
    pub enum OnfAction<'a> {
        /// Copies bits of a field to another field.
        CopyField(OnfCopyField) "copy_field" = [3200 in 3..=4],
    }
}

impl<'a> Extension<'a> for OnfMessage<'a> {
    const FORM: Form = Form::Message;
}

impl<'a> Extension<'a> for OnfRequest<'a> {
    const FORM: Form = Form::Statistics;
}

impl<'a> Extension<'a> for OnfReply<'a> {
    const FORM: Form = Form::Statistics;
}

impl<'a> Extension<'a> for OnfAction<'a> {
    const FORM: Form = Form::Action;
}

structure! {
    /// Requests for notifications of changes to flows.
    pub struct OnfMonitors<'a> in Statistics { monitors: List<'a, OnfMonitorRequest<'a>> }
    _ => [monitors],
}

structure! {
    /// Requests notifications of changes to flows.
    pub struct OnfMonitorRequest<'a> in Statistics {
        monitor_id: u32,
        flags: FlowMonitorFlags,
        /// The length of the match in bytes. The match also contains its own length.
        match_len: u16,
        out_port: PortNo = PortNo::ANY,
        table_id: TableId = TableId::ALL,
        match_fields: Match<'a>,
    }
    _ => [monitor_id, flags, match_len, out_port, table_id, 3, match_fields],
}

structure! {
    /// Updates of monitored flows.
    pub struct OnfUpdates<'a> in Statistics { updates: List<'a, NiciraUpdate<'a>> }
    _ => [updates],
}

structure! {
    /// Copies bits of a field to another field.
    pub struct OnfCopyField in Action {
        bit_count: u16,
        source_offset: u16,
        destination_offset: u16,
        source: FieldId,
        destination: FieldId,
    }
    _ => [2, bit_count, source_offset, destination_offset, 2, source, destination, fill],
}
