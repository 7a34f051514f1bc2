//! Encodes the messages of switches without the codec under test (OpenFlow 1.0.0 section 5, 1.3.5 section 7).

/// Wire version of OpenFlow 1.0.
pub(crate) const V1_0: u8 = 1;
/// Wire version of OpenFlow 1.3.
pub(crate) const V1_3: u8 = 4;

pub(crate) const HELLO: u8 = 0;
pub(crate) const ERROR: u8 = 1;
pub(crate) const ECHO_REQUEST: u8 = 2;
pub(crate) const ECHO_REPLY: u8 = 3;
pub(crate) const EXPERIMENTER: u8 = 4;
pub(crate) const FEATURES_REQUEST: u8 = 5;
pub(crate) const FEATURES_REPLY: u8 = 6;
pub(crate) const GET_CONFIG_REPLY: u8 = 8;
pub(crate) const PACKET_IN: u8 = 10;
pub(crate) const FLOW_REMOVED: u8 = 11;
pub(crate) const PORT_STATUS: u8 = 12;
pub(crate) const PACKET_OUT: u8 = 13;
pub(crate) const FLOW_MOD: u8 = 14;

/// Returns the message type of barrier requests; that of replies is one higher.
pub(crate) const fn barrier_request(version: u8) -> u8 {
    if version == V1_0 { 18 } else { 20 }
}

/// Returns the message type of statistics replies (1.0) or multipart replies (1.3).
pub(crate) const fn multipart_reply(version: u8) -> u8 {
    if version == V1_0 { 17 } else { 19 }
}

/// Returns whether the message requests flow statistics.
pub(crate) fn asks_for_flows(version: u8, message: &[u8]) -> bool {
    message[1] + 1 == multipart_reply(version) && message.get(8..10) == Some(&[0, 1])
}

/// Returns the flow statistics reply of a switch without flows.
pub(crate) fn no_flows(version: u8, xid: u32) -> Vec<u8> {
    let body: &[u8] = if version == V1_0 { &[0, 1, 0, 0] } else { &[0, 1, 0, 0, 0, 0, 0, 0] };
    message(version, multipart_reply(version), xid, body)
}

/// Returns a message with a header and this body.
pub(crate) fn message(version: u8, kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    [&[version, kind][..], &length.to_be_bytes(), &xid.to_be_bytes(), body].concat()
}

pub(crate) fn hello(version: u8) -> Vec<u8> {
    match version {
        V1_0 => message(version, HELLO, 1, &[]),
        _ => message(version, HELLO, 1, &[0, 1, 0, 8, 0, 0, 0, 0x12]),
    }
}

fn port(version: u8, number: u8, down: bool) -> Vec<u8> {
    let mut name = [0; 16];
    name[..4].copy_from_slice(b"eth0");
    let rest = [[0, 0, 0, 0], [0, 0, 0, u8::from(down)], [0, 0, 0, 0x40], [0; 4], [0; 4], [0; 4]].concat();
    match version {
        V1_0 => [&[0, number][..], &[2, 9, 0, 0, 0, number], &name, &rest].concat(),
        _ => [&[0, 0, 0, number, 0, 0, 0, 0][..], &[2, 9, 0, 0, 0, number, 0, 0], &name, &rest, &[0; 8]]
            .concat(),
    }
}

fn ports(version: u8) -> Vec<u8> {
    (1..=4).flat_map(|number| port(version, number, false)).collect()
}

pub(crate) fn features(version: u8, node: u64, xid: u32) -> Vec<u8> {
    let fixed = [&node.to_be_bytes()[..], &[0, 0, 1, 0], &[1, 0, 0, 0], &[0; 8]].concat();
    let ports = if version == V1_0 { ports(version) } else { Vec::new() };
    message(version, FEATURES_REPLY, xid, &[fixed, ports].concat())
}

pub(crate) fn port_description(xid: u32) -> Vec<u8> {
    message(V1_3, multipart_reply(V1_3), xid, &[&[0, 13, 0, 0, 0, 0, 0, 0][..], &ports(V1_3)].concat())
}

/// Returns a broadcast frame from `source`.
pub(crate) fn frame(source: [u8; 6], payload: u64) -> Vec<u8> {
    [&[0xff; 6][..], &source, &[8, 0], &payload.to_be_bytes(), &[0; 38]].concat()
}

fn matching(port: u8) -> [u8; 16] {
    [0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, port, 0, 0, 0, 0]
}

pub(crate) fn packet_in(version: u8, port: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    let head = match version {
        V1_0 => [&[0xff; 4][..], &length, &[0, port, 0, 0]].concat(),
        _ => [&[0xff; 4][..], &length, &[0, 0], &[0; 8], &matching(port), &[0, 0]].concat(),
    };
    message(version, PACKET_IN, 0, &[&head, data].concat())
}

/// Returns the frame of a packet-out.
pub(crate) fn packet_out_data(message: &[u8]) -> Option<&[u8]> {
    let (actions_bytes_at, actions_at) = if message.first() == Some(&V1_0) { (14, 16) } else { (16, 24) };
    let actions = u16::from_be_bytes(*message.get(actions_bytes_at..)?.first_chunk()?);
    message.get(actions_at + usize::from(actions)..)
}

/// Returns one message of each type that a switch may send after the handshake, with its name.
pub(crate) fn all(version: u8) -> Vec<(&'static str, Vec<u8>)> {
    let cookie = [0xbe, 0xe1, 0, 0, 0, 1, 0, 0];
    let counts = [[0; 8], [0; 8]].concat();
    let flow_removed = match version {
        V1_0 => [&[0xff; 4][..], &[0; 36], &cookie, &[0, 5, 2, 0], &[0; 8], &[0, 9, 0, 0], &counts].concat(),
        _ => [&cookie[..], &[0, 5, 2, 0], &[0; 8], &[0, 9, 0, 9], &counts, &matching(1)].concat(),
    };

    let reason = [2, 0, 0, 0, 0, 0, 0, 0];
    let flow_mod = message(version, FLOW_MOD, 3, &[0; 48]);
    let mut all = vec![
        ("hello", hello(version)),
        ("error", message(version, ERROR, 3, &[&[0, 3, 0, 0][..], &flow_mod].concat())),
        ("echo request", message(version, ECHO_REQUEST, 4, b"abc")),
        ("echo reply", message(version, ECHO_REPLY, 5, b"")),
        ("experimenter", message(version, EXPERIMENTER, 6, &[0, 0, 0x23, 0x20, 0, 0, 0, 1, 2, 3])),
        ("features", features(version, 77, 7)),
        ("configuration", message(version, GET_CONFIG_REPLY, 8, &[0, 0, 0xff, 0xff])),
        ("packet-in", packet_in(version, 1, &frame([2, 0, 0, 0, 0, 1], 0))),
        ("flow removed", message(version, FLOW_REMOVED, 0, &flow_removed)),
        ("port status", message(version, PORT_STATUS, 0, &[&reason[..], &port(version, 2, false)].concat())),
        ("barrier", message(version, barrier_request(version) + 1, 9, &[])),
    ];

    if version == V1_0 {
        // one flow entry of 88 bytes
        let entry = [&[0, 88, 0, 0][..], &[0; 84]].concat();
        all.push(("flow statistics", message(version, 17, 10, &[&[0, 1, 0, 0][..], &entry].concat())))
    } else {
        all.push(("port description", port_description(10)));
        let entry = [&[0, 72, 0, 0][..], &[0; 44], &matching(1), &[0, 4, 0, 8, 0, 0, 0, 0]].concat();
        all.push((
            "flow statistics",
            message(version, 19, 11, &[&[0, 1, 0, 0, 0, 0, 0, 0][..], &entry].concat()),
        ));
        all.push(("role", message(version, 25, 12, &[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])));
    }

    all
}
