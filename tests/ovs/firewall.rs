//! A firewall in front of the learning switch: only allowed hosts may open conversations, and answers pass.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Mirror, Protocols};

tests! {
    who_may_ask_whom_on_openflow_1_0,
    who_may_ask_whom_on_openflow_1_3,
    a_conversation_is_forwarded_by_the_switch_alone,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// The rules: Alice may ping, and everything else is denied.
const PING: &str =
    "[[apps.firewall.rules]]\naction = \"allow\"\nfrom = \"10.0.0.1/32\"\nprotocol = \"icmp\"\n";

/// Makes a host compute the checksums of the packets that it sends. There is no hardware between the host and a
/// userspace switch that could do so, and the receiver would drop packets without checksums. This is `ethtool --offload
/// eth0 tx off` for machines without `ethtool`.
const CHECKSUMS: &str = "import array, fcntl, socket, struct\n\
    order = array.array('B', struct.pack('II', 0x17, 0))\n\
    request = struct.pack('16sP', b'eth0', order.buffer_info()[0])\n\
    fcntl.ioctl(socket.socket(), 0x8946, request)\n";

/// Time limit for the first answer.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(5);

fn who_may_ask_whom(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start_with(&lab, "firewall,learning-switch", PING);
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    let alice = Host::wire(&bridge, "alice", 1, "02:00:00:00:00:0a");
    let bob = Host::wire(&bridge, "bob", 2, "02:00:00:00:00:0b");
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();
    alice.ping(BOB).until_answered(FIRST_ANSWER_LIMIT);
    alice.ping(BOB).assert_answered(5);
    let before = alice.received_frames();
    bob.ping(ALICE).assert_unanswered(3);
    // apart from an ARP request for its address, no packet may arrive
    assert!(alice.received_frames() - before <= 2, "packets that are denied arrive");
    assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    controller.assert_running();
    controller.stop();
}

fn who_may_ask_whom_on_openflow_1_0() {
    who_may_ask_whom("who_may_ask_whom_on_openflow_1_0", Protocols::OpenFlow10);
}

fn who_may_ask_whom_on_openflow_1_3() {
    who_may_ask_whom("who_may_ask_whom_on_openflow_1_3", Protocols::OpenFlow13);
}

/// A conversation with a server in `python3`, if that is installed: the switch forwards the packets of an
/// open conversation without the controller.
fn a_conversation_is_forwarded_by_the_switch_alone() {
    let Some(lab) = Lab::open("a_conversation_is_forwarded_by_the_switch_alone") else { return };
    let rules = "[[apps.firewall.rules]]\naction = \"allow\"\nfrom = \"10.0.0.1/32\"\nprotocol = \"tcp\"\n\
        to_port = 8000\n";
    let mut controller = Controller::start_with(&lab, "firewall,learning-switch", rules);
    let bridge = Bridge::new(&lab, "br0", 1, Protocols::OpenFlow13);
    let alice = Host::wire(&bridge, "alice", 1, "02:00:00:00:00:0a");
    let bob = Host::wire(&bridge, "bob", 2, "02:00:00:00:00:0b");
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();
    for host in [&alice, &bob] {
        assert!(
            lab.run(&host.words(&["python3", "-c", CHECKSUMS]), Duration::from_secs(10)).status.success()
        );
    }
    let mirror = Mirror::open(&bridge);
    let serve = "exec 3<>/dev/tcp/10.0.0.2/8000; for i in $(seq 20); do echo $i >&3; read -t 5 line <&3 || exit 1; \
        sleep 0.05; done";
    let echo = "import socket\nfor port in (8000, 8001):\n s = socket.create_server((\"\", port))\n \
        s.settimeout(20)\n c = s.accept()[0]\n [c.sendall(d) for d in iter(lambda: c.recv(99), b\"\")]\n";
    let _server = lab.daemon("server", &bob.words(&["python3", "-c", echo]));
    let limit = Duration::from_secs(20);
    let ask = format!(
        "for try in $(seq 40); do if ( {serve} ) 2>/dev/null; then exit 0; fi; sleep 0.1; done; exit 1"
    );
    let mark = mirror.mark();
    let asked = lab.run(&alice.words(&["bash", "-c", &ask]), limit);
    assert!(
        asked.status.success(),
        "no answers: {}{}; flows:\n{}",
        asked.output,
        asked.error,
        bridge.flows()
    );
    assert!(bridge.flows().contains("tp_dst=8000"), "no flow of the conversation:\n{}", bridge.flows());
    let up = mirror.packet_ins_since(mark);
    assert!(up < 40, "{up} packets came up, though the conversation was open");
    // another port of the same host stays blocked
    let other = ask.replace("8000", "8001").replace("seq 40", "seq 5");
    assert!(!lab.run(&alice.words(&["timeout", "5", "bash", "-c", &other]), limit).status.success());
    controller.assert_running();
    controller.stop();
}
