//! Tests connections without a complete handshake: thousands that send nothing, and some that send one byte at a time.

use crate::bystander::Bystander;
use crate::daemon::Daemon;
use crate::switch::{Received, Switch};
use crate::wire::{self, V1_0, V1_3};
use crate::{exclusive, is_long};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::{Duration, Instant};

/// Default maximum number of connections whose handshake is in progress. Further ones wait, and silent ones are evicted.
const HALF_OPEN_MAX: u64 = 512;

fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .expect("may be raised");
}

#[test]
fn thousands_of_half_open_connections_keep_nobody_out() {
    let _exclusive = exclusive();
    raise_descriptors();
    let mut daemon = Daemon::start();
    let bystander = Bystander::start(daemon.switches);
    daemon.watch_memory();

    let count = if is_long() { 10_000 } else { 1_500 };
    let (mut open, mut slowest) = (Vec::new(), Duration::ZERO);
    for number in 0..count {
        let mut switch = Switch::connect(daemon.switches, V1_0);
        // nothing, part of a hello, or a whole one
        switch.send(&wire::hello(V1_0)[..[0, 0, 5, 8][number % 4]]);
        open.push(switch);

        if number % 500 == 499 {
            let began = Instant::now();
            drop(Switch::connect_ready(daemon.switches, V1_3, number as u64));
            slowest = slowest.max(began.elapsed());
            let [open, waiting] = daemon.metrics(["beehive_connections", "beehive_connections_waiting"]);
            // a handshake may begin between the two numbers
            assert!(
                open <= waiting + HALF_OPEN_MAX + 16,
                "{open} connections after {number}, {waiting} of them wait"
            );
        }
    }

    bystander.end("half-open connections");
    let (grown, first) = daemon.memory_growth();
    println!(
        "{count} half-open connections: others joined within {slowest:?}, memory of {first} grew by {grown}"
    );
    assert!(slowest < Duration::from_secs(1), "a newcomer waited for {slowest:?}");
    assert!(grown < 64 << 20, "memory grew by {grown}");

    // the handshake timeout closes the remaining connections
    daemon.until("they are gone", Duration::from_secs(8), |daemon| daemon.metric("beehive_connections") == 0);
    drop(open);
    daemon.end()
}

#[test]
fn those_that_say_a_byte_at_a_time_are_given_up() {
    let _exclusive = exclusive();
    let daemon = Daemon::with("handshake_ms = 1000");
    let bystander = Bystander::start(daemon.switches);
    let began = Instant::now();

    let drips: Vec<_> = (0..40u64)
        .map(|number| {
            let controller = daemon.switches;
            std::thread::spawn(move || {
                let (mut switch, message) = match number % 2 {
                    0 => (Switch::connect(controller, V1_3), wire::message(V1_3, wire::HELLO, 0, &[0; 200])),
                    _ => {
                        let (switch, xid) = Switch::connect_greeted(controller, V1_3);
                        (switch, wire::features(V1_3, number, xid))
                    }
                };

                for byte in message {
                    if !switch.send(&[byte]) {
                        return true;
                    }
                    std::thread::sleep(Duration::from_millis(100))
                }

                loop {
                    match switch.receive() {
                        Received::End { .. } => return true,
                        Received::Nothing => return false,
                        Received::Message(_) => {}
                    }
                }
            })
        })
        .collect();
    for drip in drips {
        assert!(drip.join().expect("drips"), "a drip was let go on")
    }
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    bystander.end("drips");

    daemon.end()
}

/// HTTP connections that never complete their request take no resources from switches and are closed.
#[test]
fn half_asked_questions_keep_nobody_out() {
    use std::io::{Read, Write};
    let _exclusive = exclusive();
    raise_descriptors();

    let daemon = Daemon::start();
    let mut open = Vec::new();
    for _ in 0..600 {
        let Ok(mut stream) = std::net::TcpStream::connect(&daemon.http) else { break };
        stream.write_all(b"GET /hea").expect("is there");
        open.push(stream)
    }

    std::thread::sleep(Duration::from_millis(200));
    let descriptors = daemon.descriptors();
    assert!(descriptors < 200, "{descriptors} descriptors are open");
    drop(Switch::connect_ready(daemon.switches, V1_3, 7));

    // the first connection was evicted, or its header timeout closes it
    let mut first = open.remove(0);
    first.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
    drop(open);
    assert!(daemon.metric("beehive_connections") <= 1);

    daemon.end()
}
