//! The networks that everybody tries first: everybody reaches everybody, a question to all ends, and a link that dies is
//! replaced. The large ones run where there is time for them: with `BEEHIVE_LONG=1`.

use std::net::{IpAddr, Ipv4Addr};
use std::thread::sleep;
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Protocols, eventually};

/// How long the first answers may take: switches join, ports open two seconds later, and what machines add.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// How soon hosts reach each other again once a switch has seen that a link is down.
const REPAIR_LIMIT: Duration = Duration::from_secs(1);

/// How long a switch may take to look at its links.
const LINK_LIMIT: Duration = Duration::from_secs(10);

/// How long frames are counted after a question to everybody.
const WATCH: Duration = Duration::from_secs(2);

/// Where a controller serves HTTP unless it is told otherwise.
const HTTP: &str = "127.0.0.1:8653";

/// The number that the first cable of a switch has; those of hosts are below.
const FIRST_CABLE: u16 = 11;

/// Switches by number, and who is wired to whom.
struct Plan {
    switches: u8,
    /// The switch of each host.
    hosts: Vec<u8>,
    /// Pairs of switches.
    cables: Vec<(u8, u8)>,
}

impl Plan {
    /// As mininet's `single,n`.
    fn single(hosts: u8) -> Plan {
        Plan { switches: 1, hosts: vec![1; hosts.into()], cables: Vec::new() }
    }

    /// As mininet's `linear,n`: switches in a row, with a host each.
    fn linear(switches: u8) -> Plan {
        Plan {
            switches,
            hosts: (1..=switches).collect(),
            cables: (1..switches).map(|n| (n, n + 1)).collect(),
        }
    }

    /// As mininet's `tree,2`: a root, two switches below, two hosts at each.
    fn tree() -> Plan {
        Plan { switches: 3, hosts: vec![2, 2, 3, 3], cables: vec![(1, 2), (1, 3)] }
    }

    /// As mininet's `torus,n,n`: a grid whose edges meet, with a host at each switch.
    fn torus(side: u8) -> Plan {
        let at = |row: u8, column: u8| (row % side) * side + column % side + 1;
        let grid = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
        let cables = grid.flat_map(|(row, column)| {
            [(at(row, column), at(row, column + 1)), (at(row, column), at(row + 1, column))]
        });
        Plan { switches: side * side, hosts: (1..=side * side).collect(), cables: cables.collect() }
    }
}

struct Network<'lab> {
    bridges: Vec<Bridge<'lab>>,
    hosts: Vec<Host<'lab>>,
    /// The switch and the interface of one end of each cable.
    cables: Vec<(usize, String)>,
}

fn address(number: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number as u8))
}

impl<'lab> Network<'lab> {
    fn build(lab: &'lab Lab, plan: &Plan, protocols: Protocols) -> Network<'lab> {
        let bridges: Vec<_> =
            (1..=plan.switches).map(|n| Bridge::new(lab, &format!("s{n}"), n.into(), protocols)).collect();
        let mut next = vec![FIRST_CABLE; bridges.len()];
        let mut cables = Vec::new();
        for (one, other) in &plan.cables {
            let (one, other) = (usize::from(one - 1), usize::from(other - 1));
            bridges[one].join(next[one], &bridges[other], next[other]);
            cables.push((one, format!("s{}-{}", one + 1, next[one])));
            next[one] += 1;
            next[other] += 1;
        }
        let mut ports = vec![1; bridges.len()];
        let hosts = plan.hosts.iter().enumerate().map(|(number, switch)| {
            let (number, switch) = (number + 1, usize::from(switch - 1));
            let mac = format!("02:00:00:00:00:{number:02x}");
            let host = Host::wire(&bridges[switch], &format!("h{number}"), ports[switch], &mac);
            ports[switch] += 1;
            host.add_address(&format!("{}/24", address(number)));
            host
        });
        let hosts = hosts.collect();
        bridges.iter().for_each(|bridge| bridge.point_at(Controller::PORT));
        bridges.iter().for_each(Bridge::wait_connected);
        Network { bridges, hosts, cables }
    }

    /// Everybody pings everybody: the first answer comes in time, and from then on none is lost.
    fn ping_all(&self, limit: Duration) {
        std::thread::scope(|scope| {
            for (number, from) in (1..).zip(&self.hosts) {
                scope.spawn(move || {
                    for to in (1..=self.hosts.len()).filter(|to| *to != number) {
                        from.ping(address(to)).until_answered(limit);
                        from.ping(address(to)).assert_answered(2);
                    }
                });
            }
        });
    }

    /// What `beehive hosts` and `beehive links` say is what is there.
    fn is_known(&self, lab: &Lab) {
        let program = lab.controller().to_string_lossy().into_owned();
        let told = |what: &str| lab.succeed(&[&program, what, "--http", HTTP]);
        let (hosts, links) = (told("hosts"), told("links"));
        assert_eq!(hosts.lines().count(), 1 + self.hosts.len(), "{hosts}");
        for number in 1..=self.hosts.len() {
            let line = hosts.lines().find(|line| line.starts_with(&format!("02:00:00:00:00:{number:02x} ")));
            assert!(line.is_some_and(|line| line.ends_with(&format!(" {}", address(number)))), "{hosts}");
        }
        assert_eq!(
            links.lines().filter(|line| line.contains("both ways")).count(),
            self.cables.len(),
            "{links}"
        );
        let flooded = links.lines().filter(|line| line.ends_with("yes")).count();
        assert_eq!(flooded, self.bridges.len() - 1, "a tree\n{links}");
    }

    /// A question that nobody answers goes to everybody, and then it is over.
    fn ask_for_nobody(&self) {
        let frames = || self.hosts.iter().map(Host::received_frames);
        let before: Vec<_> = frames().collect();
        self.hosts[0].ping(address(99)).assert_unanswered(1);
        sleep(WATCH);
        // the question is asked a few times; hosts ask each other, and probes go out each second
        let most = 60 + 10 * self.hosts.len() as u64;
        for (now, before) in frames().zip(before) {
            assert!(now - before <= most, "a host received {} frames", now - before);
        }
    }

    /// A cable is pulled: whoever reached each other does so by another way, and again when it is back.
    fn pull(&self, lab: &Lab, (switch, interface): &(usize, String)) {
        lab.succeed(&["ip", "link", "set", interface, "down"]);
        eventually("the link is down", LINK_LIMIT, || {
            (!self.bridges[*switch].link_is_up(interface)).then_some(())
        });
        self.ping_all(REPAIR_LIMIT);
        lab.succeed(&["ip", "link", "set", interface, "up"]);
        self.ping_all(REPAIR_LIMIT);
    }
}

fn everybody_reaches_everybody(test: &str, plan: &Plan, protocols: Protocols, apps: &str, pulled: usize) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start_with(&lab, apps, "");
    let network = Network::build(&lab, plan, protocols);
    network.ping_all(FIRST_ANSWER_LIMIT);
    network.ask_for_nobody();
    if apps.contains("hosts") {
        network.is_known(&lab)
    }
    for cable in network.cables.iter().step_by(1 + network.cables.len() / pulled.max(1)).take(pulled) {
        network.pull(&lab, cable);
    }
    for bridge in &network.bridges {
        assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    }
    controller.assert_running();
    controller.stop();
}

fn is_long(test: &str) -> bool {
    let long = std::env::var_os("BEEHIVE_LONG").is_some();
    if !long {
        println!("SKIPPED {test}: it takes long; BEEHIVE_LONG=1 runs it");
    }
    long
}

#[test]
fn single_3() {
    let (plan, protocols, apps) = (Plan::single(3), Protocols::Default, "discovery,hosts,learning-switch");
    everybody_reaches_everybody("single_3", &plan, protocols, apps, 0);
}

#[test]
fn tree_2() {
    let (plan, protocols) = (Plan::tree(), Protocols::OpenFlow10);
    everybody_reaches_everybody("tree_2", &plan, protocols, "learning-switch", 0);
}

#[test]
fn linear_8() {
    if is_long("linear_8") {
        let (plan, protocols) = (Plan::linear(8), Protocols::OpenFlow13);
        everybody_reaches_everybody("linear_8", &plan, protocols, "learning-switch", 0);
    }
}

#[test]
fn linear_8_with_shortest_paths() {
    if is_long("linear_8_with_shortest_paths") {
        let (plan, apps) = (Plan::linear(8), "discovery,hosts,forwarding");
        everybody_reaches_everybody("linear_8_with_shortest_paths", &plan, Protocols::OpenFlow13, apps, 0);
    }
}

#[test]
fn torus_3_3_of_learning_switches() {
    if is_long("torus_3_3_of_learning_switches") {
        let (plan, apps) = (Plan::torus(3), "discovery,learning-switch");
        everybody_reaches_everybody("torus_3_3_of_learning_switches", &plan, Protocols::OpenFlow13, apps, 4);
    }
}

#[test]
fn torus_3_3_with_shortest_paths() {
    if is_long("torus_3_3_with_shortest_paths") {
        let (plan, apps) = (Plan::torus(3), "discovery,hosts,forwarding");
        everybody_reaches_everybody("torus_3_3_with_shortest_paths", &plan, Protocols::OpenFlow13, apps, 4);
    }
}
