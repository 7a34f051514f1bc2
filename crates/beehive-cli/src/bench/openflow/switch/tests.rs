//! Tests of the emulated switch with bytes from a controller, without sockets.

use std::time::Duration;

use clap::Parser;

use super::super::options::OpenflowArgs;
use super::*;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    openflow: OpenflowArgs,
}

fn plan(words: &[&str]) -> Plan {
    let line = CommandLine::try_parse_from([&["bench"], words].concat()).unwrap();
    Plan::new(&line.openflow, ([127, 0, 0, 1], 1).into(), 0x5eed_5eed)
}

/// A switch with its plan and counters; time does not advance.
struct Fixture {
    plan: Plan,
    switch: Switch,
    tally: Tally,
}

impl Fixture {
    fn new(words: &[&str]) -> Self {
        let plan = plan(words);
        Self { switch: Switch::new(&plan, 3), plan, tally: Tally::new() }
    }

    /// Returns a switch that has received this HELLO and completed the handshake.
    fn ready(words: &[&str], hello: &[u8]) -> Self {
        let mut bench = Self::new(words);
        bench.feed(hello).unwrap();
        let version = bench.switch.version().unwrap().byte();
        let reply = bench.feed(&[version, 5, 0, 8, 0, 0, 0, 9]).unwrap();
        assert_eq!(
            (reply[0], reply[1], &reply[4..16]),
            (version, 6, &[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4][..])
        );
        assert!(bench.switch.is_ready());

        bench
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        let used = self.switch.receive(&self.plan, bytes, 1_000, &mut out, &mut self.tally)?;
        assert_eq!(used, bytes.len());
        Ok(out)
    }

    fn offer(&mut self, offer: Load) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        self.switch.offer(&self.plan, offer, 400, &mut out);
        split(&out)
    }
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some(length) = wire::u16_at(bytes, 2) {
        let (message, rest) = bytes.split_at(usize::from(length));
        messages.push(message.to_vec());
        bytes = rest;
    }
    assert!(bytes.is_empty());
    messages
}

const HELLO_13: &[u8] = &[4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x12];
const HELLO_10: &[u8] = &[1, 0, 0, 8, 0, 0, 0, 1];

/// Returns the OpenFlow 1.0 packet-out that sends a packet-in's frame to a port.
fn packet_out_v10(packet_in: &[u8], port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    let frame = &packet_in[18..];
    let mut out = vec![
        1,
        13,
        0,
        24 + frame.len() as u8,
        0,
        0,
        0,
        0,
        255,
        255,
        255,
        255,
        0,
        1,
        0,
        8,
        0,
        0,
        0,
        8,
        high,
        low,
        0,
        0,
    ];
    out.extend_from_slice(frame);

    out
}

#[test]
fn requests_of_1_3_are_answered_with_their_transaction() {
    let mut bench = Fixture::ready(&[], HELLO_13);
    let multipart = |what: u8| [4, 18, 0, 16, 0, 0, 0, 7, 0, what, 0, 0, 0, 0, 0, 0];
    let cases: &[(&[u8], u8, usize)] = &[
        (&[4, 2, 0, 10, 0, 0, 0, 7, 0xab, 0xcd], kind::ECHO_REPLY, 10),
        (&[4, 7, 0, 8, 0, 0, 0, 7], kind::GET_CONFIG_REPLY, 12),
        (&[4, 20, 0, 8, 0, 0, 0, 7], kind::V13_BARRIER_REPLY, 8),
        (&[4, 22, 0, 16, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 0], kind::V13_QUEUE_CONFIG_REPLY, 16),
        (&[4, 26, 0, 8, 0, 0, 0, 7], kind::V13_ASYNC_REPLY, 32),
        (
            &[4, 24, 0, 24, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
            kind::V13_ROLE_REPLY,
            24,
        ),
        (&multipart(0), kind::V13_MULTIPART_REPLY, 16 + 1056),
        (&multipart(1), kind::V13_MULTIPART_REPLY, 16),
        (&multipart(2), kind::V13_MULTIPART_REPLY, 16 + 24),
        (&multipart(4), kind::V13_MULTIPART_REPLY, 16 + 16 * 112),
        (&multipart(8), kind::V13_MULTIPART_REPLY, 16 + 40),
        (&multipart(13), kind::V13_MULTIPART_REPLY, 16 + 16 * 64),
    ];

    for (request, kind, bytes) in cases {
        let reply = bench.feed(request).unwrap();
        assert_eq!(split(&reply).len(), 1, "{request:02x?}");
        assert_eq!(
            (reply[0], reply[1], reply.len(), &reply[4..8]),
            (4, *kind, *bytes, &[0, 0, 0, 7][..]),
            "{request:02x?}"
        );
    }

    assert_eq!(
        bench.feed(&[4, 2, 0, 10, 0, 0, 0, 7, 0xab, 0xcd]).unwrap()[8..],
        [0xab, 0xcd],
        "the echo's own bytes"
    );
    assert_eq!(bench.tally.counts.unknown, 0);
    assert!(bench.feed(&[4, 4, 0, 8, 0, 0, 0, 7]).unwrap().is_empty());

    assert_eq!(bench.tally.counts.unknown, 1, "an experimenter message is counted, not answered");
}

#[test]
fn requests_of_1_0_are_answered_with_their_transaction() {
    let mut bench = Fixture::ready(&["--of", "1.0"], HELLO_13);
    let statistics = |what: u8| [1, 16, 0, 12, 0, 0, 0, 7, 0, what, 0, 0];
    let cases: &[(&[u8], u8, usize)] = &[
        (&[1, 18, 0, 8, 0, 0, 0, 7], kind::V10_BARRIER_REPLY, 8),
        (&[1, 20, 0, 12, 0, 0, 0, 7, 0, 2, 0, 0], kind::V10_QUEUE_CONFIG_REPLY, 16),
        (&[1, 4, 0, 20, 0, 0, 0, 7, 0, 0, 0x23, 0x20, 0, 0, 0, 10, 0, 0, 0, 1], kind::EXPERIMENTER, 20),
        (&statistics(0), kind::V10_STATS_REPLY, 12 + 1056),
        (&statistics(4), kind::V10_STATS_REPLY, 12 + 16 * 104),
    ];

    for (request, kind, bytes) in cases {
        let reply = bench.feed(request).unwrap();
        assert_eq!(
            (reply[0], reply[1], reply.len(), &reply[4..8]),
            (1, *kind, *bytes, &[0, 0, 0, 7][..]),
            "{request:02x?}"
        );
    }
}

#[test]
fn a_slave_sends_no_packets_until_it_is_master_again() {
    let mut bench = Fixture::ready(&[], HELLO_13);
    let role = |role: u8| [4, 24, 0, 24, 0, 0, 0, 7, 0, 0, 0, role, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    bench.feed(&role(3)).unwrap();
    assert!(bench.offer(Load::Traffic).is_empty());
    assert_eq!(bench.feed(&role(0)).unwrap()[8..12], [0, 0, 0, 3], "asked for no change it tells its role");
    bench.feed(&role(2)).unwrap();
    assert!(!bench.offer(Load::Traffic).is_empty());
}

#[test]
fn an_answer_counts_once_and_makes_room_for_one_more() {
    let mut bench = Fixture::ready(&["--of", "1.0", "--window", "2"], HELLO_10);
    let sent = bench.offer(Load::Traffic);
    assert_eq!(sent.len(), 2);
    assert!(bench.offer(Load::Traffic).is_empty());
    let right = bench.switch.window.answer_port(&sent[0]);

    // a flow-mod without a buffer, the packet-out, and the packet-out again
    let flow_mod = [&[1, 14, 0, 72][..], &[0; 60], &[255; 4], &[0; 4]].concat();
    let answer = packet_out_v10(&sent[0], right);
    bench.feed(&[&flow_mod[..], &answer, &answer].concat()).unwrap();
    let counts = bench.tally.counts;
    assert_eq!((counts.answered, counts.repeated, counts.flow_mods, counts.packet_outs), (1, 1, 1, 2));
    assert_eq!((counts.misdirected, counts.flooded), (0, 0));
    assert_eq!(bench.tally.latencies().max(), 600);

    assert_eq!(bench.offer(Load::Traffic).len(), 1);
}

impl Window {
    /// Returns the destination port of an OpenFlow 1.0 packet-in.
    fn answer_port(&self, packet_in: &[u8]) -> u16 {
        let [high, low] = packet_in[22..24] else { panic!("two bytes") };
        u16::from_be_bytes([high, low]) % 16 + 1
    }
}

#[test]
fn answers_that_flood_or_go_astray_are_told_apart() {
    let mut bench = Fixture::ready(&["--of", "1.0", "--window", "3"], HELLO_10);
    let sent = bench.offer(Load::Traffic);
    let wrong = bench.switch.window.answer_port(&sent[1]) % 16 + 1;
    bench.feed(&packet_out_v10(&sent[0], 0xfffb)).unwrap();
    bench.feed(&packet_out_v10(&sent[1], wrong)).unwrap();
    let mut other_switch = packet_out_v10(&sent[2], 1);
    other_switch[24 + 49] ^= 1; // change the switch number in the stamp
    bench.feed(&other_switch).unwrap();
    bench.feed(&packet_out_v10(&[0; 82], 1)).unwrap(); // a packet that the controller created itself

    let counts = bench.tally.counts;
    assert_eq!((counts.answered, counts.flooded, counts.misdirected, counts.foreign), (2, 1, 1, 2));
}

#[test]
fn a_flow_mod_that_releases_the_buffer_is_an_answer() {
    let mut bench = Fixture::ready(&["--buffers"], HELLO_13);
    let sent = bench.offer(Load::Traffic);
    let flow_mod = [&[4, 14, 0, 56][..], &[0; 28], &sent[0][8..12], &[0; 20]].concat();
    bench.feed(&flow_mod).unwrap();
    bench.feed(&flow_mod).unwrap();
    assert_eq!((bench.tally.counts.answered, bench.tally.counts.repeated), (1, 1));
}

#[test]
fn hosts_are_announced_again_when_nobody_answers_and_at_last_taken_as_announced() {
    let mut bench = Fixture::ready(&["--macs", "40", "--of", "1.0"], HELLO_10);
    let mut rounds = 0;
    while !bench.switch.is_announced(&bench.plan) {
        let sent = bench.offer(Load::Announcements);
        assert!(sent.iter().all(|m| m[18..24] == [255; 6] && m[30..32] == [8, 6]));
        rounds += 1;
        bench.switch.expire(&bench.plan, Duration::MAX.as_nanos() as u64, &mut bench.tally);
    }

    assert_eq!(rounds, usize::from(limits::ANNOUNCEMENTS_MAX) + 1);
    assert_eq!(bench.tally.counts.unanswered, 0, "announcements are not measured");
}

#[test]
fn messages_may_come_in_pieces() {
    let mut bench = Fixture::ready(&["--of", "1.0", "--window", "2"], HELLO_10);
    let sent = bench.offer(Load::Traffic);
    let answers = [packet_out_v10(&sent[0], 1), packet_out_v10(&sent[1], 1)].concat();
    let (mut kept, mut out) = (Vec::new(), Vec::new());
    for byte in answers {
        kept.push(byte);
        let used = bench.switch.receive(&bench.plan, &kept, 1_000, &mut out, &mut bench.tally).unwrap();
        kept.drain(..used);
    }

    assert_eq!((bench.tally.counts.answered, kept.len()), (2, 0));
}

#[test]
fn what_is_no_openflow_is_said_to_be_so_at_once() {
    for (greeting, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "other than OpenFlow"),
        (&[4, 10, 0, 8, 0, 0, 0, 0], "other than OpenFlow"),
        (&[4, 0, 0, 7, 0, 0, 0, 0], "shorter than its header"),
        (&[3, 0, 0, 8, 0, 0, 0, 1], "try the other --of"),
        (&[4, 1, 0, 15, 0, 0, 0, 1, 0, 0, 0, 0, b'n', b'o', b'!'], "no!"),
    ] {
        let fault = Fixture::new(&[]).feed(greeting).unwrap_err().to_string();
        assert!(fault.contains(words), "{fault}");
    }
}

#[test]
fn no_truncation_and_no_changed_byte_panics() {
    let mut corpus: Vec<Vec<u8>> = Vec::new();
    let sent = Fixture::ready(&["--of", "1.0"], HELLO_10).offer(Load::Traffic);
    corpus.push(packet_out_v10(&sent[0], 1));
    corpus.push([&[1, 14, 0, 72][..], &[0; 68]].concat());
    corpus.push(vec![1, 16, 0, 12, 0, 0, 0, 7, 0, 4, 0, 0]);
    corpus.push(vec![1, 4, 0, 20, 0, 0, 0, 7, 0, 0, 0x23, 0x20, 0, 0, 0, 10, 0, 0, 0, 1]);
    corpus.push(HELLO_13.to_vec());

    let mut cases = 0;
    let mut bench = Fixture::new(&["--of", "1.0", "--window", "2", "--macs", "4"]);
    for message in &corpus {
        for at in 0..message.len() {
            let mut shorter = message[..at].to_vec();
            if let Some(length) = shorter.get_mut(3) {
                *length = at as u8;
            }

            let changes = (0..=255).map(|byte| {
                let mut changed = message.clone();
                changed[at] = byte;
                changed
            });

            for input in changes.chain([shorter]) {
                bench.switch = Switch::new(&bench.plan, 3);
                bench.feed(&[HELLO_10, &[1, 5, 0, 8, 0, 0, 0, 9]].concat()).unwrap();
                bench.offer(Load::Traffic);
                let mut out = Vec::new();
                let used = bench.switch.receive(&bench.plan, &input, 1, &mut out, &mut bench.tally);
                assert!(used.is_err() || used.is_ok_and(|used| used <= input.len()));
                cases += 1;
            }
        }
    }

    assert!(cases > 40_000);
}
