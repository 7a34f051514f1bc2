//! Tests a port that sends each packet from another forged address, as fast as possible.

use crate::bystander::Bystander;
use crate::daemon::Daemon;
use crate::switch::{Received, Switch};
use crate::wire::{self, V1_0};
use crate::{exclusive, is_long};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Number of packets per write.
const PACKETS_PER_WRITE: u64 = 512;

/// Discards messages until the connection ends. Returns the number of packet-outs.
fn read_answers(mut stream: TcpStream) -> u64 {
    let (mut answers, mut have, mut buffer) = (0, 0, vec![0; 256 * 1024]);
    loop {
        match stream.read(&mut buffer[have..]) {
            Ok(0) | Err(_) => return answers,
            Ok(bytes) => have += bytes,
        }

        let mut at = 0;
        while let Some(header) = buffer[at..have].first_chunk::<8>() {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            if have - at < length {
                break;
            }
            answers += u64::from(header[1] == wire::PACKET_OUT);
            at += length
        }

        buffer.copy_within(at..have, 0);
        have -= at
    }
}

#[test]
fn millions_of_forged_addresses_fill_nothing() {
    let _exclusive = exclusive();
    let mut daemon = Daemon::start();
    let mut bystander = Bystander::start(daemon.switches);
    bystander.baseline(500);
    let packets: u64 = if is_long() { 10_000_000 } else { 200_000 };
    let switch = Switch::connect_ready(daemon.switches, V1_0, 0xf0);
    switch.stream.set_read_timeout(None).expect("no timeout");
    let (mut write, read) = (switch.stream.try_clone().expect("a copy"), switch.stream);
    write.set_write_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    let reading = std::thread::spawn(move || read_answers(read));
    daemon.watch_memory();
    let began = Instant::now();
    let packet_ins = |daemon: &Daemon| daemon.metric("beehive_switch_packet_ins_total");
    let mut chunk = Vec::new();
    for first in (0..packets).step_by(PACKETS_PER_WRITE as usize) {
        chunk.clear();
        for number in first..(first + PACKETS_PER_WRITE).min(packets) {
            let [_, _, _, b, c, d, e, f] = number.to_be_bytes();
            chunk.extend(wire::packet_in(V1_0, 1, &wire::frame([2, b, c, d, e, f], number)))
        }
        write.write_all(&chunk).expect("it goes on reading")
    }

    let sent_in = began.elapsed();
    daemon.until("all have come up", Duration::from_secs(60), |daemon| {
        // any message keeps the connection alive
        write.write_all(&wire::message(V1_0, wire::ECHO_REQUEST, 0, b"")).expect("it goes on reading");
        packet_ins(daemon) >= packets
    });

    let took = began.elapsed();
    let shed = daemon.metric("beehive_switch_packet_ins_shed_total");
    let dropped = daemon.metric("beehive_switch_packet_outs_dropped_total");

    // another port is still learned and served
    let mut neighbor = Switch::connect_ready(daemon.switches, V1_0, 0xf1);
    neighbor.send(&wire::packet_in(V1_0, 2, &wire::frame([2, 0xcc, 0, 0, 0, 1], 7)));
    assert!(neighbor.until(|m| m[1] == wire::PACKET_OUT).is_some(), "nobody else is served");
    assert!(!matches!(neighbor.receive(), Received::End { .. }));
    let served = bystander.end("forged addresses");
    let (grown, first) = daemon.memory_growth();
    write.shutdown(std::net::Shutdown::Write).expect("is open");

    let answers = reading.join().expect("reads");
    println!(
        "{packets} forged addresses in {sent_in:?}, done in {took:?}: {answers} answered, {shed} shed, {dropped} answers \
         dropped; memory of {first} grew by {grown}; bystander's p99 {:?}, {:?} before",
        served.p99, served.p99_before
    );
    assert!(answers + shed + dropped >= packets, "{answers} answered and {shed} shed of {packets}");

    // one port may have 4 096 learned stations, and reads and packets in flight are bounded
    assert!(grown < 96 << 20, "memory grew by {grown}");
    daemon.end()
}
