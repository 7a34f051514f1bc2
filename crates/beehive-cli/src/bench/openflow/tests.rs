//! End-to-end tests of the load generator, with sockets and threads, against small controllers defined here.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use clap::Parser;

use super::wire::{kind, u16_at, u32_at};
use super::*;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    openflow: OpenflowArgs,
}

/// The behavior of a test controller.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behavior {
    /// Answers with a flow-mod and a packet-out to the port of the destination.
    Learning,
    /// Answers with a flow-mod that releases the buffer.
    Releasing,
    /// Answers with a packet-out to all ports.
    Flooding,
    /// Sends every packet-out twice.
    Twice,
    /// Answers only every second packet-in.
    Lazy,
    /// Does not answer.
    Silent,
    /// Answers this number of packet-ins, then closes the connection.
    Leaving(u32),
    /// Sends something other than OpenFlow after the handshake.
    Babbling,
    /// Sends only a HELLO.
    Stuck,
}

/// Starts a controller that serves each connection in its own thread. Returns its address.
fn controller(version: u8, behavior: Behavior) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || serve(socket, version, behavior));
        }
    });
    address
}

fn serve(mut socket: TcpStream, version: u8, behavior: Behavior) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    socket.write_all(&[version, kind::HELLO, 0, 8, 0, 0, 0, 0]).ok()?;
    if behavior == Behavior::Stuck {
        // read until the other side closes the connection
        return std::io::copy(&mut socket, &mut std::io::sink()).map(drop).ok();
    }

    let mut input = Vec::new();
    let mut chunk = [0; 65_536];
    let mut answered = 0;
    loop {
        let read = socket.read(&mut chunk).ok().filter(|read| *read > 0)?;
        input.extend_from_slice(&chunk[..read]);
        let (mut used, mut out) = (0, Vec::new());
        while let Some(length) =
            u16_at(&input[used..], 2).map(usize::from).filter(|l| input.len() - used >= *l)
        {
            let message = &input[used..used + length];
            used += length;
            match message[1] {
                kind::HELLO => out.extend([version, kind::FEATURES_REQUEST, 0, 8, 0, 0, 0, 1]),
                kind::FEATURES_REPLY if behavior == Behavior::Babbling => {
                    out.extend(b"+OK POP3 ready, have a nice day\r\n")
                }
                kind::FEATURES_REPLY => {
                    if version == 4 {
                        out.extend(table_miss());
                    }
                    out.extend([version, kind::ECHO_REQUEST, 0, 8, 0, 0, 0, 3]);
                }
                kind::ECHO_REQUEST => {
                    out.extend([version, kind::ECHO_REPLY]);
                    out.extend_from_slice(&message[2..]);
                }
                kind::PACKET_IN => {
                    if behavior == Behavior::Leaving(answered) {
                        return None;
                    }
                    answered += 1;
                    answer(version, behavior, answered, message, &mut out);
                }
                _ => {}
            }
        }

        input.drain(..used);
        socket.write_all(&out).ok()?;
    }
}

/// A flow-mod of OpenFlow 1.3 with priority 0, an empty match and no instructions.
fn table_miss() -> Vec<u8> {
    let mut flow = vec![0; 56];
    flow[..4].copy_from_slice(&[4, kind::FLOW_MOD, 0, 56]);
    flow[32..36].fill(255);
    flow[48..52].copy_from_slice(&[0, 1, 0, 4]);
    flow
}

fn answer(version: u8, behavior: Behavior, number: u32, message: &[u8], out: &mut Vec<u8>) {
    let (in_port, frame) = match version {
        1 => (u32::from(u16_at(message, 14).unwrap()), &message[18..]),
        _ => (u32_at(message, 32).unwrap(), &message[42..]),
    };

    assert!(in_port > 0 && frame.len() == frame::FRAME_BYTES);
    let buffer = &message[8..12];
    // host `n` is at port `n % 16 + 1`; the test controllers compute the port instead of learning it
    let broadcast = frame[0] & 1 == 1;
    let port =
        if broadcast || behavior == Behavior::Flooding { 0xffff_fffb } else { u32::from(frame[5] % 16) + 1 };

    let packet_out = packet_out(version, in_port, port, frame);
    match behavior {
        _ if broadcast => out.extend(packet_out),
        Behavior::Learning | Behavior::Leaving(_) => {
            out.extend(flow_mod(version, &[255; 4]));
            out.extend(packet_out);
        }
        Behavior::Releasing => out.extend(flow_mod(version, buffer)),
        Behavior::Flooding => out.extend(packet_out),
        Behavior::Twice => out.extend(packet_out.repeat(2)),
        Behavior::Lazy if number.is_multiple_of(2) => out.extend(packet_out),
        Behavior::Lazy | Behavior::Silent | Behavior::Babbling | Behavior::Stuck => {}
    }
}

fn flow_mod(version: u8, buffer: &[u8]) -> Vec<u8> {
    let (length, buffer_at) = if version == 1 { (80, 64) } else { (56, 32) };
    let mut flow = vec![0; length];
    flow[..4].copy_from_slice(&[version, kind::FLOW_MOD, 0, length as u8]);
    flow[buffer_at..buffer_at + 4].copy_from_slice(buffer);
    if version == 4 {
        flow[30..32].copy_from_slice(&[0, 9]);
        flow[48..52].copy_from_slice(&[0, 1, 0, 4]);
    }

    flow
}

fn packet_out(version: u8, in_port: u32, port: u32, frame: &[u8]) -> Vec<u8> {
    let mut out = vec![version, kind::PACKET_OUT, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255];
    if version == 1 {
        out.extend((in_port as u16).to_be_bytes());
        out.extend([0, 8, 0, 0, 0, 8]);
        out.extend((port as u16).to_be_bytes());
        out.extend([0, 0]);
    } else {
        out.extend(in_port.to_be_bytes());
        out.extend([0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16]);
        out.extend(port.to_be_bytes());
        out.extend([0; 8]);
    }

    out.extend_from_slice(frame);
    out[3] = out.len() as u8;
    out
}

fn measure_at(address: SocketAddr, words: &str) -> Result<Report, Failure> {
    let address = address.to_string();
    let mut line = format!("bench --controller {address} {words}");
    for (option, value) in [("--seconds", "0.4"), ("--warmup", "0.1"), ("--timeout", "0.2")] {
        if !words.contains(option) {
            line += &format!(" {option} {value}");
        }
    }

    let args = CommandLine::try_parse_from(line.split(' ').filter(|word| !word.is_empty())).unwrap().openflow;
    measure(&args, &mut io::sink())
}

fn measure_against(version: u8, behavior: Behavior, words: &str) -> Report {
    measure_at(controller(version, behavior), words).unwrap()
}

#[test]
fn every_packet_in_is_answered_once_in_both_versions_and_modes() {
    for (version, of, name) in [(1, "1.0", "1.0"), (4, "1.3", "1.3"), (1, "1.3", "1.0")] {
        for (mode, window) in [("throughput", 2_048), ("latency", 1)] {
            let report = measure_against(
                version,
                Behavior::Learning,
                // The timeouts are long, because on a slow machine late answers would count as lost and a thread might
                // start its measurement late.
                &format!("--of {of} --mode {mode} --switches 3 --threads 2 --timeout 10 --seconds 1"),
            );
            let context = format!("{version} {of} {mode}: {report:?}");
            assert!(report.is_sound() && report.answered > 100, "{context}");
            assert_eq!((report.openflow, report.window, report.threads), (name, window, 2), "{context}");
            assert_eq!((report.unanswered, report.repeated, report.foreign), (0, 0, 0), "{context}");
            assert_eq!((report.flooded, report.misdirected, report.unknown_requests), (0, 0, 0), "{context}");
            assert!((report.packet_outs_per_answer - 1.0).abs() < 0.05, "{context}");
            assert!((report.flow_mods_per_answer - 1.0).abs() < 0.05, "{context}");
            assert_eq!(report.switches_with_table_miss, 3, "{context}");
            let latency = &report.latency_ns;
            assert!(
                0 < latency.min && latency.min <= latency.p50 && latency.p50 <= latency.p99_9,
                "{context}"
            );
            assert!(latency.p99_9 <= latency.max, "{context}");
            let fair = &report.fairness;
            assert!(
                fair.slowest_to_mean > 0.0 && fair.slowest_to_mean <= 1.0 && fair.fastest_to_mean >= 1.0,
                "{context}"
            );
            let share = report.rate_per_second.mean / 3.0;
            assert!(
                fair.slowest_per_second <= share * 1.001 && share <= fair.fastest_per_second * 1.001,
                "{context}"
            );

            let counted = report.rate_per_second.mean * report.seconds;
            assert!(
                (counted / report.answered as f64 - 1.0).abs() < 0.1 && report.seconds >= 0.35,
                "{context}"
            );
        }
    }
}

#[test]
fn a_released_buffer_is_an_answer() {
    for version in [1, 4] {
        let report = measure_against(version, Behavior::Releasing, "--switches 2 --buffers --window 50");
        assert!(report.is_sound() && report.answered > 100, "{report:?}");
        assert!(
            (report.flow_mods_per_answer - 1.0).abs() < 0.05 && report.packet_outs_per_answer < 0.05,
            "{report:?}"
        );
        assert_eq!(report.repeated, 0, "{report:?}");
    }
}

#[test]
fn two_packet_outs_for_one_packet_in_are_one_answer() {
    let report = measure_against(1, Behavior::Twice, "--switches 1 --window 16");
    assert!((report.packet_outs_per_answer - 2.0).abs() < 0.1, "{report:?}");
    let difference = report.answered.abs_diff(report.repeated);
    assert!(report.answered > 100 && difference <= 32, "{report:?}");
}

#[test]
fn flooding_is_noticed() {
    let report = measure_against(4, Behavior::Flooding, "--switches 2 --window 16");
    assert_eq!(report.flooded, report.answered);
    let args = CommandLine::parse_from(["bench"]).openflow;
    assert!(report.warnings(&args).iter().any(|words| words.contains("flooded")), "{report:?}");
}

#[test]
fn what_was_answered_before_measuring_does_not_count() {
    let report = measure_against(1, Behavior::Learning, "--switches 1 --window 8 --warmup 0.5 --seconds 0.2");
    // the per-switch and per-thread counters start with the measurement and must agree
    let (mean, only) = (report.rate_per_second.mean, report.fairness.slowest_per_second);
    assert!(mean > 0.0 && (mean / only - 1.0).abs() < 1e-9, "{report:?}");
    // the rates of single seconds do not include answers from the warm-up
    assert!(report.rate_per_second.min > mean / 5.0, "{report:?}");
}

#[test]
fn lost_packet_ins_are_counted_and_do_not_stop_the_flow() {
    let report = measure_against(4, Behavior::Lazy, "--switches 1 --window 8 --macs 4");
    assert!(report.answered >= 4 && report.unanswered >= 8, "{report:?}");
}

#[test]
fn a_silent_controller_is_no_sound_result() {
    let report = measure_against(1, Behavior::Silent, "--switches 1 --window 8 --macs 4");
    assert_eq!(report.answered, 0);
    assert!(report.unanswered >= 8 && !report.is_sound(), "{report:?}");
    assert!(serde_json::to_value(&report).unwrap()["latency_ns"]["mean"].is_number(), "no NaN");
}

#[test]
fn what_is_outstanding_at_the_end_is_awaited_and_then_counted_as_lost() {
    let report = measure_against(
        4,
        Behavior::Silent,
        "--switches 3 --window 8 --macs 4 --warmup 0 --seconds 0.3 --timeout 0.6",
    );
    assert_eq!((report.answered, report.unanswered), (0, 3 * 8));
}

#[test]
fn connections_that_end_are_told_with_their_reason() {
    let words = "--switches 2 --window 8 --macs 4";
    let gone = measure_at(controller(1, Behavior::Leaving(300)), words).unwrap_err().to_string();
    assert!(gone.contains("all switches lost") && gone.contains("closed the connection"), "{gone}");
    let babble = measure_at(controller(1, Behavior::Babbling), words).unwrap_err().to_string();
    assert!(babble.contains("other than OpenFlow") && babble.contains("2b 4f 4b"), "{babble}");
}

#[test]
fn a_controller_that_is_not_there_or_does_not_go_on_is_told() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = measure_at(nobody, "").unwrap_err().to_string();
    assert!(refused.contains("refused"), "{refused}");
    let stuck = measure_at(controller(4, Behavior::Stuck), "--connect-timeout 0.3 --switches 2")
        .unwrap_err()
        .to_string();
    assert!(stuck.contains("0 of 2 switches finished the handshake"), "{stuck}");
}

#[test]
fn hundreds_of_switches_share_one_thread() {
    let report = measure_against(4, Behavior::Learning, "--switches 300 --macs 4 --window 4");
    assert!(report.is_sound() && report.fairness.slowest_per_second > 0.0, "{report:?}");
}

#[test]
fn full_sockets_are_answered_once_and_have_echoes() {
    for (version, of) in [(1, "1.0"), (4, "1.3")] {
        // longer than the interval of the echoes, so that one of each switch is answered
        let words = "--switches 3 --threads 2 --window none --timeout 10 --seconds 2";
        let report = measure_against(version, Behavior::Learning, &format!("--of {of} {words}"));
        let context = format!("{of}: {report:?}");
        assert!(report.is_sound() && report.full_sockets && report.answered > 8_191, "{context}");
        assert_eq!((report.openflow, report.window), (of, 8_191), "{context}");
        assert_eq!((report.unanswered, report.repeated, report.foreign), (0, 0, 0), "{context}");
        assert_eq!((report.flooded, report.misdirected, report.unknown_requests), (0, 0, 0), "{context}");
        let fair = &report.fairness;
        assert!(1.0 / 3.0 <= fair.jain && fair.jain <= 1.0 && fair.slowest_to_mean > 0.0, "{context}");
        let echoes = report.echoes.as_ref().unwrap();
        assert!(echoes.answered >= 3 && echoes.unanswered == 0 && echoes.waited_ns.p50 > 0, "{context}");
    }
}

#[test]
fn a_full_socket_has_more_unanswered_than_any_buffer_and_counts_what_is_lost() {
    let report =
        measure_against(1, Behavior::Silent, "--switches 2 --macs 4 --window none --warmup 0 --seconds 0.8");
    // with a time-out of 0.2 s, the whole window is lost at least once
    assert!(report.unanswered >= 2 * 8_191 && report.answered == 0, "{report:?}");
    assert_eq!(report.unanswered_ratio, 1.0);
    let lazy = measure_against(4, Behavior::Lazy, "--switches 1 --macs 4 --window none --seconds 0.8");
    assert!(lazy.answered > 100 && (0.2..0.8).contains(&lazy.unanswered_ratio), "{lazy:?}");
    assert!(lazy.to_string().contains("full sockets, up to 8191 outstanding"), "{lazy}");
}

#[test]
fn bystanders_are_measured_apart() {
    let report =
        measure_against(1, Behavior::Learning, "--switches 2 --window 8 --bystanders 3 --seconds 0.7");
    let bystanders = report.bystanders.as_ref().unwrap();
    // three of them, and six packets each at most
    assert!((3..=3 * 8).contains(&bystanders.answered) && bystanders.unanswered == 0, "{report:?}");
    assert_eq!(
        (report.switches, report.switches_with_table_miss, report.unanswered),
        (2, 2, 0),
        "{report:?}"
    );
    // the slowest of the two switches, not a bystander
    assert!(report.fairness.slowest_per_second > 100.0, "{report:?}");
    assert!(report.to_string().contains("bystanders   p50"), "{report}");
}

#[test]
fn a_storm_connects_all_at_once_and_those_that_are_refused_come_again() {
    let (refused, switches) = (5, 40);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, socket) in listener.incoming().flatten().enumerate() {
            match number < refused {
                true => drop(socket),
                false => drop(thread::spawn(move || serve(socket, 4, Behavior::Learning))),
            }
        }
    });

    let report = measure_at(address, &format!("--switches {switches} --macs 2 --window 4 --storm")).unwrap();
    let storm = report.storm.as_ref().unwrap();
    assert_eq!((storm.retried, storm.ready.switches, storm.table_miss.switches), (5, 40, 40), "{storm:?}");
    let ready = storm.ready;
    assert!(ready.first_s < 1.0 && ready.first_s <= ready.median_s && ready.last_s >= 1.0, "{storm:?}");
    assert_eq!(storm.flows_read.switches, 0, "nobody has asked for flows");
    assert!(report.to_string().contains("5 refused or reset, and tried again"), "{report}");
}

#[test]
fn the_result_reads_well() {
    let report = measure_against(1, Behavior::Learning, "--switches 1 --window 8");
    let text = report.to_string();
    for words in ["OpenFlow 1.0, 1 switches", "answered", "p99.9", "slowest", "flow-mods", "unanswered 0"] {
        assert!(text.contains(words), "{text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((json["answered"].as_u64(), json["openflow"].as_str()), (Some(report.answered), Some("1.0")));
}
