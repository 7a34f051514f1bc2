//! A switch over TCP that behaves well unless a test sends something else.

use crate::wire::{self, V1_3};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Timeout of reads and writes, and of waiting for a message.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) struct Switch {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
    pub(crate) version: u8,
}

/// Result of waiting for a message.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Vec<u8>),
    /// The connection was closed or reset.
    End {
        reset: bool,
    },
    /// Nothing arrived before the timeout.
    Nothing,
}

/// Connects from one of many loopback addresses so that many connections in a row do not exhaust the ports.
fn connect(controller: SocketAddr) -> TcpStream {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let source = Ipv4Addr::new(127, 1, (number % 7) as u8, 1 + (number % 50) as u8);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((source, 0)).into()).expect("an address of this machine");
    socket.connect(&controller.into()).expect("accepts");
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).expect("nodelay");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");

    stream
}

impl Switch {
    /// Connects and sends nothing.
    pub(crate) fn connect(controller: SocketAddr, version: u8) -> Switch {
        Switch { stream: connect(controller), received: Vec::new(), version }
    }

    /// Connects and exchanges hello. Returns the transaction id of the features request.
    pub(crate) fn connect_greeted(controller: SocketAddr, version: u8) -> (Switch, u32) {
        let mut switch = Switch::connect(controller, version);
        switch.send(&wire::hello(version));
        let question = switch.until(|m| m[1] == wire::FEATURES_REQUEST);
        let xid =
            question.expect("asks for features")[4..8].first_chunk().map(|xid| u32::from_be_bytes(*xid));
        (switch, xid.expect("a whole header"))
    }

    /// Connects and completes the handshake.
    pub(crate) fn connect_ready(controller: SocketAddr, version: u8, node: u64) -> Switch {
        let (mut switch, xid) = Switch::connect_greeted(controller, version);
        switch.send(&wire::features(version, node, xid));
        // the flow statistics request comes from the node app, so the driver is registered now
        let question = switch.until(|m| wire::asks_for_flows(version, m)).expect("is let in");
        switch.answer(&question);
        switch
    }

    /// Sends bytes. Returns `false` if the connection is closed; the next read shows how it ended.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Waits for the next message.
    pub(crate) fn receive(&mut self) -> Received {
        loop {
            if let Some(length) =
                self.received.get(2..4).and_then(|l| l.first_chunk()).map(|l| u16::from_be_bytes(*l))
                && self.received.len() >= usize::from(length)
            {
                let rest = self.received.split_off(usize::from(length));
                return Received::Message(std::mem::replace(&mut self.received, rest));
            }

            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Received::End { reset: false },
                Ok(bytes) => self.received.extend_from_slice(&chunk[..bytes]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Received::Nothing;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Received::End { reset: true },
            }
        }
    }

    /// Answers requests until a `wanted` message arrives. Returns `None` if the connection ends or the timeout passes.
    pub(crate) fn until(&mut self, mut wanted: impl FnMut(&[u8]) -> bool) -> Option<Vec<u8>> {
        let began = Instant::now();
        while began.elapsed() < TIMEOUT {
            let Received::Message(heard) = self.receive() else { return None };
            if wanted(&heard) {
                return Some(heard);
            }
            self.answer(&heard)
        }

        None
    }

    /// Answers echo, barrier, flow statistics and port description requests, and ignores other messages.
    pub(crate) fn answer(&mut self, heard: &[u8]) {
        let (version, xid) =
            (self.version, heard[4..8].first_chunk().map_or(0, |xid| u32::from_be_bytes(*xid)));
        let answer = match heard[1] {
            wire::ECHO_REQUEST => wire::message(version, wire::ECHO_REPLY, xid, &heard[8..]),
            kind if kind == wire::barrier_request(version) => wire::message(version, kind + 1, xid, &[]),
            _ if wire::asks_for_flows(version, heard) => wire::no_flows(version, xid),
            18 if version == V1_3 && heard.get(8..10) == Some(&[0, 13]) => wire::port_description(xid),
            _ => return,
        };

        self.send(&answer);
    }
}
