//! Measures the time per message that framing, checked decoding, dispatch and encoding take, each separately
//! and over a full read buffer.

mod samples;

use std::hint::black_box;

use beehive_of::any::{Action, Message, PacketIn, PacketInReason, PacketOut};
use beehive_of::{Frame, Frames, PortNo, Version, message};
use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use samples::{learning_flow, packet_in, used};

const VERSIONS: [(Version, &str); 3] =
    [(Version::V1_0, "1.0"), (Version::V1_3, "1.3"), (Version::V1_5, "1.5")];

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for (version, name) in VERSIONS {
        let bytes = packet_in(version);
        group.bench_function(format!("packet-in {name}, complete"), |bencher| {
            bencher.iter(|| {
                let frame = Frame::whole(black_box(&bytes)).expect("ours");
                match message::Message::parse(frame) {
                    Ok(message::Message::PacketIn(packet)) => packet.data.len(),
                    _ => 0,
                }
            });
        });
        group.bench_function(format!("packet-in {name}, any"), |bencher| {
            bencher.iter(|| {
                let frame = Frame::whole(black_box(&bytes)).expect("ours");
                PacketIn::parse(black_box(version), frame).map(|packet| used(&packet)).ok()
            });
        });
        let mut flow = BytesMut::new();
        learning_flow(&[Action::output(PortNo(4))], version, &mut flow);
        group.bench_function(format!("flow-mod {name}, any"), |bencher| {
            bencher.iter(|| {
                let frame = Frame::whole(black_box(&flow)).expect("ours");
                match Message::parse(frame) {
                    Ok(Message::FlowMod(flow)) => {
                        u32::from(flow.priority) ^ u32::from(flow.match_fields.other)
                    }
                    _ => 0,
                }
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("a read of 64 KiB");
    for (version, name) in VERSIONS {
        let message = packet_in(version);
        let count = 65_536 / message.len();
        let stream = message.repeat(count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("frames of packet-ins {name}"), |bencher| {
            bencher.iter(|| {
                Frames::new(black_box(&stream)).flatten().map(|frame| frame.xid()).fold(0, u32::wrapping_add)
            });
        });
        group.bench_function(format!("frames and dispatch of packet-ins {name}"), |bencher| {
            bencher.iter(|| {
                let mut sum = 0;
                for frame in Frames::new(black_box(&stream)).flatten() {
                    if let Ok(Message::PacketIn(packet)) = Message::parse(frame) {
                        sum += packet.data.len() + packet.in_port.0 as usize;
                    }
                }
                sum
            });
        });
    }
    group.finish();
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    let mut out = BytesMut::with_capacity(65_536);
    for (version, name) in VERSIONS {
        let actions = [Action::output(PortNo(4))];
        group.bench_function(format!("flow-mod {name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                learning_flow(black_box(&actions), version, &mut out);
                out.len()
            });
        });
        let data = [0xab; 64];
        group.bench_function(format!("packet-out {name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let packet = PacketOut {
                    buffer_id: None,
                    in_port: PortNo(3),
                    actions: black_box(&actions).into(),
                    data: black_box(&data),
                };
                packet.encode_into(version, 7, &mut out).expect("both versions can express the message");
                out.len()
            });
        });
        group.bench_function(format!("packet-in {name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let packet = PacketIn {
                    buffer_id: None,
                    total_len: 64,
                    in_port: PortNo(3),
                    reason: PacketInReason::NoMatch,
                    table_id: 0,
                    cookie: None,
                    data: black_box(&data),
                };
                packet.encode_into(version, 7, &mut out).expect("both versions can express the message");
                out.len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
