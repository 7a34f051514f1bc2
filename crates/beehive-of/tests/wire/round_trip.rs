//! Checks that decode(encode(x)) = x for arbitrary messages, and that encoding the decoded message results in
//! the same bytes.

use beehive_of::any::*;
use beehive_of::{Frame, Version, VersionSet};
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::strategies::*;

fn check(message: Message<'_>, version: Version, xid: u32) -> Result<(), TestCaseError> {
    // The previous contents of the buffer must be preserved, and lengths must be relative to the start of the
    // message.
    let mut out = BytesMut::from(&b"before"[..]);
    message.encode_into(version, xid, &mut out).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&out[..6], b"before");
    let frame = Frame::whole(&out[6..]).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(frame.xid(), xid);
    let decoded = Message::parse(frame).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(decoded.check_lists(), Ok(()));
    prop_assert_eq!(decoded, message);
    let mut again = BytesMut::new();
    decoded.encode_into(version, xid, &mut again).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&again[..], &out[6..]);
    Ok(())
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn session(bits in any::<u32>(), bitmap in any::<bool>(), version in version(), xid: u32, code: (u16, u16), data in payload()) {
        let versions = (bitmap && version >= Version::V1_3).then(|| VersionSet::from_bits(bits));
        check(Message::Hello(Hello { version: version.wire(), versions }), version, xid)?;
        check(Message::EchoRequest(Echo { data: &data }), version, xid)?;
        check(Message::EchoReply(Echo { data: &data }), version, xid)?;
        check(Message::Error(ErrorMessage { error_type: code.0, code: code.1, data: &data }), version, xid)?;
    }

    #[test]
    fn without_a_body(version in version(), xid: u32) {
        for message in [
            Message::FeaturesRequest,
            Message::GetConfigRequest,
            Message::BarrierRequest,
            Message::BarrierReply,
        ] {
            check(message, version, xid)?;
        }
        if version >= Version::V1_3 {
            check(Message::PortDescriptionRequest, version, xid)?;
        }
    }

    #[test]
    fn switch(
        (version, ports) in version().prop_flat_map(|version| (Just(version), vec(port(version), 0..5))),
        xid: u32, numbers: (u64, u32, u8, u8), more: bool,
        bits: (u32, u32, u16, u16),
        role in prop::sample::select(vec![Role::NoChange, Role::Equal, Role::Master, Role::Slave]),
    ) {
        let old = version == Version::V1_0;
        let features = Features {
            datapath_id: numbers.0,
            buffers: numbers.1,
            tables: numbers.2,
            auxiliary_id: if version < Version::V1_3 { 0 } else { numbers.3 },
            capabilities: Capabilities(bits.0),
            actions: if old { bits.1 } else { 0 },
            ports: if version < Version::V1_3 { (&ports[..]).into() } else { Ports::EMPTY },
        };

        check(Message::FeaturesReply(features), version, xid)?;
        let config = SwitchConfig { flags: bits.2, miss_send_len: bits.3 };
        check(Message::SetConfig(config), version, xid)?;
        check(Message::GetConfigReply(config), version, xid)?;
        if version >= Version::V1_3 {
            let description = PortDescription { more, ports: (&ports[..]).into() };
            check(Message::PortDescriptionReply(description), version, xid)?;
        }
        if version >= Version::V1_2 {
            let role = RoleMessage { role, generation_id: numbers.0 };
            check(Message::RoleRequest(role), version, xid)?;
            check(Message::RoleReply(role), version, xid)?;
        }

        if let Some(port) = ports.first() {
            for reason in [PortReason::Add, PortReason::Delete, PortReason::Modify, PortReason::Other(9)] {
                check(Message::PortStatus(PortStatus { reason, port: *port }), version, xid)?;
            }
        }
    }

    #[test]
    fn packet_in(
        (version, in_port) in version().prop_flat_map(|version| (Just(version), port_number(version))),
        xid: u32, buffer_id in buffer_id(), numbers: (u16, u8), cookie in option::of(0..u64::MAX), data in payload(),
        reason in prop::sample::select(vec![PacketInReason::NoMatch, PacketInReason::Action, PacketInReason::Other(7)]),
    ) {
        let old = version == Version::V1_0;
        let packet = PacketIn {
            buffer_id,
            total_len: numbers.0,
            in_port,
            reason,
            table_id: if old { 0 } else { numbers.1 },
            cookie: if version < Version::V1_3 { None } else { cookie },
            data: &data,
        };

        check(Message::PacketIn(packet), version, xid)?;
    }

    #[test]
    fn packet_out(
        (version, in_port, actions) in
            version().prop_flat_map(|version| (Just(version), port_number(version), actions(version))),
        xid: u32, buffer_id in buffer_id(), data in payload(),
    ) {
        check(Message::PacketOut(PacketOut { buffer_id, in_port, actions: (&actions[..]).into(), data: &data }), version, xid)?;
    }

    #[test]
    fn flow_mod(
        (version, match_fields, actions, out_port) in version().prop_flat_map(|version| {
            (Just(version), match_fields(version), actions(version), port_number(version))
        }),
        xid: u32, command in command(), buffer_id in buffer_id(), numbers: (u16, u16, u16, u64, u64),
        table_id: u8, flags in 0..4u16, goto_table in option::of(any::<u8>()), out_group in option::of(0..u32::MAX),
    ) {
        let old = version == Version::V1_0;
        let flow = FlowMod {
            command,
            table_id: if old { 0 } else { table_id },
            priority: numbers.0,
            idle_timeout: numbers.1,
            hard_timeout: numbers.2,
            cookie: numbers.3,
            cookie_mask: if old { 0 } else { numbers.4 },
            buffer_id,
            out_port,
            out_group: if old { None } else { out_group },
            flags: FlowFlags(flags),
            match_fields,
            actions: (&actions[..]).into(),
            goto_table: if old { None } else { goto_table },
            other_instructions: 0,
        };
        check(Message::FlowMod(flow), version, xid)?;
    }

    #[test]
    fn flow_removed(
        (version, match_fields) in version().prop_flat_map(|version| (Just(version), match_fields(version))),
        xid: u32, numbers: (u64, u16, u16, u16, u64, u64), table_id: u8, duration in duration(),
        reason in prop::sample::select(vec![FlowRemovedReason::IdleTimeout, FlowRemovedReason::HardTimeout, FlowRemovedReason::Delete]),
    ) {
        let old = version == Version::V1_0;
        let flow = FlowRemoved {
            match_fields,
            cookie: numbers.0,
            priority: numbers.1,
            reason,
            table_id: if old { 0 } else { table_id },
            duration,
            idle_timeout: numbers.2,
            hard_timeout: if version < Version::V1_2 { 0 } else { numbers.3 },
            packet_count: numbers.4,
            byte_count: numbers.5,
        };

        check(Message::FlowRemoved(flow), version, xid)?;
    }

    #[test]
    fn flow_statistics(
        (version, flows, out_port) in version().prop_flat_map(|version| {
            let flow = (match_fields(version), actions(version), duration());
            (Just(version), vec(flow, 0..4), port_number(version))
        }),
        xid: u32, numbers: (u8, u16, u16, u16, u64, u64, u64), goto_table in option::of(any::<u8>()), more: bool,
    ) {
        let old = version == Version::V1_0;
        let entries: Vec<FlowEntry<'_>> = flows
            .iter()
            .map(|(match_fields, actions, duration)| FlowEntry {
                table_id: numbers.0,
                duration: *duration,
                priority: numbers.1,
                idle_timeout: numbers.2,
                hard_timeout: numbers.3,
                flags: FlowFlags(if version < Version::V1_3 { 0 } else { numbers.1 }),
                cookie: numbers.4,
                packet_count: numbers.5,
                byte_count: numbers.6,
                match_fields: *match_fields,
                actions: (&actions[..]).into(),
                goto_table: if old { None } else { goto_table },
                other_instructions: 0,
            })
            .collect();
        check(Message::FlowStatisticsReply(FlowStatistics { more, entries: (&entries[..]).into() }), version, xid)?;
        let request = FlowStatisticsRequest {
            table_id: numbers.0,
            out_port,
            out_group: if old { None } else { Some(7) },
            cookie: if old { 0 } else { numbers.4 },
            cookie_mask: if old { 0 } else { numbers.5 },
            match_fields: flows.first().map_or(Match::ANY, |flow| flow.0),
        };
        check(Message::FlowStatisticsRequest(request), version, xid)?;
    }

    #[test]
    fn others(version in version(), xid: u32, kind in 2..12u16, flags: u16, body in payload(), message_type in 36..=255u8) {
        check(Message::MultipartRequest(Multipart { version, kind, flags, body: &body }), version, xid)?;
        check(Message::MultipartReply(Multipart { version, kind, flags, body: &body }), version, xid)?;
        check(Message::Unknown(Unknown { version, message_type, body: &body }), version, xid)?;
    }
}
