//! Counts the instructions per message with callgrind, which reveals regressions even on a noisy machine.
//!
//! The program runs itself under valgrind twice: once with a number of rounds of an operation, and once with
//! twice as many rounds. The difference is the cost of the rounds. The program fails if an operation exceeds
//! its limit. Without valgrind, it prints a note and exits.

mod samples;

use std::hint::black_box;
use std::process::{Command, ExitCode};

use beehive_of::any::{Action, Message, PacketIn};
use beehive_of::{Frame, Frames, PortNo, Version};
use bytes::BytesMut;

use samples::{learning_flow, packet_in, used};

/// The name, the maximum number of instructions per round, and the operation.
type Operation = (&'static str, u64, fn(usize));

const OPERATIONS: &[Operation] = &[
    ("packet-in 1.0, checked decode", 70, |rounds| decode_packets(Version::V1_0, rounds)),
    ("packet-in 1.3, checked decode with match walk", 175, |rounds| decode_packets(Version::V1_3, rounds)),
    ("flow-mod 1.3, encode", 305, encode_flows),
    ("framing and dispatch 1.0, a message of a 64 KiB read", 150, |rounds| dispatch(Version::V1_0, rounds)),
    ("framing and dispatch 1.3, a message of a 64 KiB read", 255, |rounds| dispatch(Version::V1_3, rounds)),
    ("flow-mod 1.3, decode", 1_850, decode_flows),
];

const ROUNDS: usize = 20_000;

fn decode_packets(version: Version, rounds: usize) {
    let bytes = packet_in(version);
    for _ in 0..rounds {
        let frame = Frame::whole(black_box(&bytes)).expect("ours");
        black_box(PacketIn::parse(black_box(version), frame).map_or(0, |packet| used(&packet)));
    }
}

fn dispatch(version: Version, rounds: usize) {
    let bytes = packet_in(version);
    let count = 65_536 / bytes.len();
    let stream = bytes.repeat(count);
    let mut left = rounds;
    while left > 0 {
        for frame in Frames::new(black_box(&stream)).flatten().take(left) {
            if let Ok(Message::PacketIn(packet)) = Message::parse(frame) {
                black_box(used(&packet));
            }
        }
        left = left.saturating_sub(count);
    }
}

fn encode_flows(rounds: usize) {
    let actions = [Action::output(PortNo(4))];
    let mut out = BytesMut::with_capacity(1_024);
    for _ in 0..rounds {
        out.clear();
        learning_flow(black_box(&actions), Version::V1_3, &mut out);
        black_box(out.len());
    }
}

fn decode_flows(rounds: usize) {
    let mut bytes = BytesMut::new();
    learning_flow(&[Action::output(PortNo(4))], Version::V1_3, &mut bytes);
    for _ in 0..rounds {
        let frame = Frame::whole(black_box(&bytes)).expect("ours");
        if let Ok(Message::FlowMod(flow)) = Message::parse(frame) {
            black_box(u32::from(flow.priority) ^ u32::from(flow.match_fields.other));
        }
    }
}

/// Returns the number of instructions that this program executes for this many rounds of an operation; `None`
/// if valgrind is not installed.
fn counted(operation: usize, rounds: usize) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--do", &operation.to_string(), &rounds.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = report.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, operation, rounds] = &arguments[..]
        && flag == "--do"
    {
        let (_, _, run) = OPERATIONS[operation.parse::<usize>().expect("a number")];
        run(rounds.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let mut within = true;
    for (index, (name, limit, _)) in OPERATIONS.iter().enumerate() {
        let (Some(once), Some(twice)) = (counted(index, ROUNDS), counted(index, 2 * ROUNDS)) else {
            println!("SKIPPED: valgrind is not installed, so no instructions are counted");
            return ExitCode::SUCCESS;
        };
        let each = twice.saturating_sub(once) / ROUNDS as u64;
        let verdict = if each <= *limit { "" } else { " TOO MANY" };
        println!("{name}: {each} instructions (at most {limit}){verdict}");
        within &= each <= *limit;
    }
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
