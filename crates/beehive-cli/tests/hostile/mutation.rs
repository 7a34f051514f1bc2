//! Tests every truncation and every changed byte of every message of a switch, and lengths of zero in nested structures.

use crate::bystander::Bystander;
use crate::daemon::Daemon;
use crate::switch::{Received, Switch, TIMEOUT};
use crate::wire::{self, V1_0, V1_3};
use crate::{exclusive, is_long};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Maximum time until the controller answers a broken message with an error and closes, or ignores it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum growth of memory, in bytes. The memory of short-lived connections stays below it.
const GROWTH_MAX: u64 = 64 << 20;

/// Returns the values that replace a byte.
fn changes(was: u8) -> Vec<u8> {
    match is_long() {
        true => (0..=255).filter(|to| *to != was).collect(),
        false => vec![was ^ 0x01, was ^ 0x80, 0, 0xff].into_iter().filter(|to| *to != was).collect(),
    }
}

/// Returns the message with one byte changed. If its length field grew, zeros are appended up to that length. If it shrank, the
/// rest becomes the start of another message, and zeros are appended for its longest possible length.
fn changed(message: &[u8], at: usize, to: u8) -> Vec<u8> {
    let mut bytes = message.to_vec();
    bytes[at] = to;
    let says = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    let rest = if (8..bytes.len()).contains(&says) { usize::from(u16::MAX) } else { 0 };
    bytes.resize(bytes.len().max(says) + rest, 0);
    bytes
}

/// How the controller treated a switch that sent a broken message.
#[derive(PartialEq, Eq, Debug)]
enum Outcome {
    /// The connection stayed open.
    Served,
    /// The connection was closed.
    Closed {
        /// Whether an error message arrived before the end.
        told: bool,
        /// Whether it ended with a reset.
        reset: bool,
    },
}

/// Reads until a message satisfies `is_served` or the connection ends. Panics after [`RESPONSE_TIMEOUT`].
fn outcome(switch: &mut Switch, what: &dyn Fn() -> String, is_served: impl Fn(&[u8]) -> bool) -> Outcome {
    let began = Instant::now();
    let mut told = false;
    loop {
        assert!(began.elapsed() < RESPONSE_TIMEOUT, "{}: neither served nor closed", what());
        match switch.receive() {
            Received::Message(heard) if is_served(&heard) => return Outcome::Served,
            Received::Message(heard) => {
                told |= heard[1] == wire::ERROR;
                switch.answer(&heard)
            }
            Received::End { reset } => return Outcome::Closed { told, reset },
            Received::Nothing => panic!("{}: no word within {TIMEOUT:?}", what()),
        }
    }
}

#[derive(Default, Debug)]
struct Tally {
    served: u64,
    closed: u64,
    /// Closed by a reset, because unread data was still in flight to the controller.
    reset: u64,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome, what: &dyn Fn() -> String) {
        match outcome {
            Outcome::Served => self.served += 1,
            Outcome::Closed { reset: true, .. } => self.reset += 1,
            Outcome::Closed { told, .. } => {
                assert!(*told, "{}: closed without an error message", what());
                self.closed += 1
            }
        }
    }
}

/// A connected switch, replaced by a new one when its connection was closed.
struct Joined {
    controller: SocketAddr,
    version: u8,
    node: u64,
    switch: Option<Switch>,
    echo: u32,
    tally: Tally,
}

impl Joined {
    fn send(&mut self, bytes: &[u8], what: &dyn Fn() -> String) {
        let Joined { controller, version, .. } = *self;
        let mut switch = self.switch.take().unwrap_or_else(|| {
            self.node += 1;
            Switch::connect_ready(controller, version, self.node)
        });

        self.echo += 1;
        let mark = [b"mark".as_slice(), &self.echo.to_be_bytes()].concat();
        let echo = wire::message(version, wire::ECHO_REQUEST, self.echo, &mark);
        switch.send(&[bytes, &echo].concat());
        let outcome =
            outcome(&mut switch, what, |heard| heard[1] == wire::ECHO_REPLY && heard.get(8..) == Some(&mark));
        self.tally.count(&outcome, what);

        if outcome == Outcome::Served {
            self.switch = Some(switch)
        }
    }
}

#[test]
fn every_changed_byte_of_a_switch_that_is_set_up() {
    let _exclusive = exclusive();
    let mut daemon = Daemon::start();
    let bystander = Bystander::start(daemon.switches);
    daemon.watch_memory();

    let mut cases = 0u64;
    for version in [V1_0, V1_3] {
        let mut joined = Joined {
            controller: daemon.switches,
            version,
            node: u64::from(version) << 32,
            switch: None,
            echo: 0,
            tally: Tally::default(),
        };

        for (name, message) in wire::all(version) {
            for at in 0..message.len() {
                for to in changes(message[at]) {
                    let what = || format!("{name} of version {version}, byte {at} is {to:#04x}");
                    joined.send(&changed(&message, at, to), &what);
                    cases += 1;
                }

                // truncated here, with a matching length field
                if at >= 8 {
                    let mut bytes = message[..at].to_vec();
                    bytes[2..4].copy_from_slice(&(at as u16).to_be_bytes());
                    joined.send(&bytes, &|| format!("{name} of version {version}, cut off at {at}"));
                    cases += 1;
                }
            }

            // the unchanged message is accepted
            joined.send(&message, &|| format!("{name} of version {version}, whole"));
            assert!(joined.switch.is_some(), "{name} of version {version} ends the connection");
        }

        println!("version {version}: {:?}", joined.tally);
        assert!(joined.tally.closed > 100 && joined.tally.served > 100, "{:?}", joined.tally);
    }

    bystander.end("changed bytes");
    let (grown, first) = daemon.memory_growth();
    println!("changed bytes: {cases} cases, memory of {first} grew by {grown}");
    assert!(grown < GROWTH_MAX, "memory grew by {grown}");
    daemon.end()
}

#[test]
fn every_changed_byte_of_the_handshake() {
    let _exclusive = exclusive();
    let mut daemon = Daemon::start();
    let bystander = Bystander::start(daemon.switches);
    daemon.watch_memory();

    let (mut tally, mut node) = (Tally::default(), 0u64);
    for version in [V1_0, V1_3] {
        let hello = wire::hello(version);
        for at in 0..hello.len() {
            for to in changes(hello[at]) {
                let what = || format!("hello of version {version}, byte {at} is {to:#04x}");
                let mut switch = Switch::connect(daemon.switches, version);
                switch.send(&changed(&hello, at, to));
                let outcome = outcome(&mut switch, &what, |heard| heard[1] == wire::FEATURES_REQUEST);
                // errors are not answered with errors
                if (at, to) != (1, wire::ERROR) {
                    tally.count(&outcome, &what)
                }
            }
        }

        let length = wire::features(version, 0, 0).len();
        for at in 0..length {
            let was = wire::features(version, 0, 0)[at];
            // any datapath id is valid
            let values = if (8..16).contains(&at) { vec![0xff] } else { changes(was) };
            let mut cases: Vec<Option<u8>> = values.into_iter().map(Some).collect();

            // truncated here, with a matching length field
            cases.extend((at >= 8).then_some(None));
            for to in cases {
                let what = || format!("features of version {version}, byte {at} is {to:x?}");
                let (mut switch, xid) = Switch::connect_greeted(daemon.switches, version);
                node += 1;

                let features = wire::features(version, (u64::from(version) << 48) + node, xid);
                let sent = match to {
                    Some(to) => changed(&features, at, to),
                    None => {
                        let mut sent = features[..at].to_vec();
                        sent[2..4].copy_from_slice(&(at as u16).to_be_bytes());
                        sent
                    }
                };

                // if the handshake goes on, the echo request is answered
                let echo = wire::message(version, wire::ECHO_REQUEST, 1, b"mark");
                switch.send(&[sent, echo].concat());
                let outcome = outcome(&mut switch, &what, |heard| heard[1] == wire::ECHO_REPLY);
                if (at, to) != (1, Some(wire::ERROR)) {
                    tally.count(&outcome, &what)
                }
            }
        }
    }

    println!("handshake: {tally:?}");
    assert!(tally.closed > 50 && tally.served > 50);
    bystander.end("changed bytes of the handshake");
    let (grown, _) = daemon.memory_growth();
    println!("handshake: memory grew by {grown}");
    assert!(grown < GROWTH_MAX, "memory grew by {grown}");

    daemon.end()
}

#[test]
fn every_connection_that_ends_within_a_message() {
    let _exclusive = exclusive();
    let mut daemon = Daemon::start();
    let bystander = Bystander::start(daemon.switches);
    daemon.watch_memory();

    let mut node = 0x7000;
    for version in [V1_0, V1_3] {
        for (_, message) in wire::all(version) {
            for at in (1..message.len()).step_by(if is_long() { 1 } else { 9 }) {
                node += 1;
                let mut switch = Switch::connect_ready(daemon.switches, version, node);
                switch.send(&message[..at]);
                if at % 2 == 0 {
                    // close by a reset
                    socket2::SockRef::from(&switch.stream).set_linger(Some(Duration::ZERO)).expect("lingers");
                }
            }
        }
    }

    daemon.until("they are gone", TIMEOUT, |daemon| daemon.metric("beehive_connections") == 1);
    bystander.end("connections that end");
    let (grown, _) = daemon.memory_growth();
    println!("{} connections ended within a message, memory grew by {grown}", node - 0x7000);
    assert!(grown < GROWTH_MAX, "memory grew by {grown}");

    daemon.end()
}

#[test]
fn lengths_of_zero_within_messages() {
    let _exclusive = exclusive();
    let daemon = Daemon::start();
    let bystander = Bystander::start(daemon.switches);
    let multipart = |kind: u8, entry: &[u8]| {
        wire::message(V1_3, 19, 1, &[&[0, kind, 0, 0, 0, 0, 0, 0][..], entry].concat())
    };
    let statistics =
        |kind: u8, entry: &[u8]| wire::message(V1_0, 17, 1, &[&[0, kind, 0, 0][..], entry].concat());

    let cases = [
        ("a match", V1_3, wire::message(V1_3, wire::PACKET_IN, 0, &[0; 64])),
        ("a field of a match", V1_3, {
            let mut message = wire::packet_in(V1_3, 1, &wire::frame([2; 6], 0));
            message[31] = 0;
            message
        }),
        ("a removed flow's match", V1_3, wire::message(V1_3, wire::FLOW_REMOVED, 0, &[0; 48])),
        ("an entry of flows", V1_3, multipart(1, &[0; 64])),
        ("an instruction", V1_3, {
            let matching = [0, 1, 0, 4, 0, 0, 0, 0];
            multipart(1, &[&[0, 64, 0, 0][..], &[0; 44], &matching, &[0, 4, 0, 0, 0, 0, 0, 0]].concat())
        }),
        ("an entry of groups", V1_3, multipart(6, &[0; 40])),
        ("a bucket", V1_3, multipart(7, &[&[0, 24, 0, 0, 0, 0, 0, 1][..], &[0; 16]].concat())),
        ("an entry of meters", V1_3, multipart(9, &[0; 48])),
        ("a band of a meter", V1_3, multipart(10, &[&[0, 24, 0, 0, 0, 0, 0, 1][..], &[0; 16]].concat())),
        ("a property of a table", V1_3, multipart(12, &[&[0, 72][..], &[0; 70]].concat())),
        ("a queue", V1_3, wire::message(V1_3, 23, 1, &[&[0, 0, 0, 1, 0, 0, 0, 0][..], &[0; 16]].concat())),
        ("an entry of flows of 1.0", V1_0, statistics(1, &[0; 88])),
        (
            "an action",
            V1_0,
            statistics(1, &[&[0, 96, 0, 0][..], &[0; 84], &[0, 0, 0, 0, 0, 0, 0, 0]].concat()),
        ),
        (
            "a queue of 1.0",
            V1_0,
            wire::message(V1_0, 21, 1, &[&[0, 1, 0, 0, 0, 0, 0, 0][..], &[0; 8]].concat()),
        ),
    ];

    for (at, (name, version, message)) in cases.iter().enumerate() {
        let mut joined = Joined {
            controller: daemon.switches,
            version: *version,
            node: 0x9000 + at as u64,
            switch: None,
            echo: 0,
            tally: Tally::default(),
        };
        joined.send(message, &|| format!("{name} of length zero"))
    }

    let mut stranger = Switch::connect(daemon.switches, V1_3);
    stranger.send(&wire::message(V1_3, wire::HELLO, 1, &[0, 1, 0, 0]));
    let ended = outcome(&mut stranger, &|| "an element of hello of length zero".into(), |_| false);
    assert_eq!(ended, Outcome::Closed { told: true, reset: false });
    bystander.end("lengths of zero");

    daemon.end()
}
