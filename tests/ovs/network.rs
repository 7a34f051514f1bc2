//! Networks of several switches, and the checks that each must pass: all hosts reach each other, each broadcast arrives
//! once and does not circulate, and pulling a cable interrupts traffic for at most a second.

use std::net::{IpAddr, Ipv4Addr};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::harness::{Bridge, Controller, Host, Lab, Protocols, Talk, eventually};

/// Time limit for the first answers: switches join, ports open two seconds later, and the machine adds some
/// delay.
pub(crate) const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Time limit within which hosts must reach each other again once a switch has noticed that a link is down or
/// up.
const REPAIR_LIMIT: Duration = Duration::from_secs(1);

/// Time limit for a switch to notice a change of a link.
const LINK_LIMIT: Duration = Duration::from_secs(10);

/// Time for which frames are counted.
const WATCH: Duration = Duration::from_secs(3);

/// Pause between two broadcasts.
const BREATH: Duration = Duration::from_millis(500);

/// Time for which hosts talk before and after a cable is pulled, and after it is plugged in again.
const TALK: Duration = Duration::from_millis(1_500);

/// The default address on which a controller serves HTTP.
const HTTP: &str = "127.0.0.1:8653";

/// Time limit for an answer of the controller over HTTP.
const TOLD_LIMIT: Duration = Duration::from_secs(15);

/// Port number of the first cable of a switch. Hosts have lower port numbers.
const FIRST_CABLE: u16 = 11;

/// The plan of a network: its switches, by number, its hosts, and its cables.
pub(crate) struct Plan {
    switches: u8,
    /// For each host, the switch that it is connected to.
    hosts: Vec<u8>,
    /// The cables, as pairs of switches.
    cables: Vec<(u8, u8)>,
}

impl Plan {
    /// Like mininet's `single,n`: all hosts at one switch.
    pub(crate) fn single(hosts: u8) -> Plan {
        Plan { switches: 1, hosts: vec![1; hosts.into()], cables: Vec::new() }
    }

    /// Like mininet's `linear,n`: switches in a row, with one host each.
    pub(crate) fn linear(switches: u8) -> Plan {
        Plan {
            switches,
            hosts: (1..=switches).collect(),
            cables: (1..switches).map(|n| (n, n + 1)).collect(),
        }
    }

    /// Like mininet's `tree,2`: a root, two switches below it, and two hosts at each of these.
    pub(crate) fn tree() -> Plan {
        Plan { switches: 3, hosts: vec![2, 2, 3, 3], cables: vec![(1, 2), (1, 3)] }
    }

    /// A triangle of switches with one host each, and a second cable between the first two switches.
    pub(crate) fn triangle() -> Plan {
        Plan { switches: 3, hosts: vec![1, 2, 3], cables: vec![(1, 2), (1, 2), (2, 3), (3, 1)] }
    }

    /// Like mininet's `torus,n,n`: a grid whose opposite edges are connected, with one host at each switch.
    pub(crate) fn torus(side: u8) -> Plan {
        let at = |row: u8, column: u8| (row % side) * side + column % side + 1;
        let grid = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
        let cables = grid.flat_map(|(row, column)| {
            [(at(row, column), at(row, column + 1)), (at(row, column), at(row + 1, column))]
        });
        Plan { switches: side * side, hosts: (1..=side * side).collect(), cables: cables.collect() }
    }

    /// Returns whether any one cable may be pulled without disconnecting a host. In each of these plans, this holds
    /// either for all cables or for none.
    fn is_redundant(&self) -> bool {
        self.cables.len() >= usize::from(self.switches)
    }
}

/// A network that was built from a plan.
pub(crate) struct Network<'lab> {
    lab: &'lab Lab,
    bridges: Vec<Bridge<'lab>>,
    hosts: Vec<Host<'lab>>,
    /// For one end of each cable, the switch and the interface.
    cables: Vec<(usize, String)>,
    is_redundant: bool,
}

fn address(number: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number as u8))
}

fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl<'lab> Network<'lab> {
    pub(crate) fn build(lab: &'lab Lab, plan: &Plan, protocols: Protocols) -> Network<'lab> {
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
        Network { lab, bridges, hosts, cables, is_redundant: plan.is_redundant() }
    }

    /// Returns up to `most` cables, spread over the network, each as the number of a switch and the interface
    /// of the cable there.
    pub(crate) fn cables(&self, most: usize) -> impl Iterator<Item = &(usize, String)> {
        self.cables.iter().step_by((self.cables.len() / most.max(1)).max(1)).take(most)
    }

    /// Returns the log lines about messages that the switches have refused.
    pub(crate) fn refusals(&self) -> Vec<String> {
        self.bridges.iter().flat_map(Bridge::refusals).collect()
    }

    /// Makes every host ping every other host: the first answer must arrive in time, and after that no answer
    /// may be lost.
    pub(crate) fn ping_all(&self, limit: Duration) {
        std::thread::scope(|scope| {
            for (number, from) in (1..).zip(&self.hosts) {
                scope.spawn(move || {
                    for to in (1..=self.hosts.len()).filter(|to| *to != number) {
                        from.ping(address(to)).until_answered(limit);
                        let answered = from.ping(address(to)).answered(2);
                        // show how many packets were shed, and whether a link has changed in the meantime
                        let told = || format!("{}\n{}", self.told("switches"), self.told("links"));
                        answered.unwrap_or_else(|lost| panic!("{lost}\n{}", told()));
                    }
                });
            }
        });
    }

    /// Returns the answer of the controller to a query, or the reason why there is none.
    fn told(&self, what: &str) -> String {
        let words = [&*self.lab.controller().to_string_lossy(), what, "--http", HTTP];
        let told = self.lab.run(&words, TOLD_LIMIT);
        told.output + &told.error
    }

    /// Checks that `beehive hosts` and `beehive links` list exactly the hosts and links of the network.
    pub(crate) fn is_known(&self) {
        let (hosts, links) = (self.told("hosts"), self.told("links"));
        assert_eq!(hosts.lines().count(), 1 + self.hosts.len(), "{hosts}");
        for number in 1..=self.hosts.len() {
            let line = hosts.lines().find(|line| line.starts_with(&format!("02:00:00:00:00:{number:02x} ")));
            assert!(line.is_some_and(|line| line.ends_with(&format!(" {}", address(number)))), "{hosts}");
        }
        self.has_a_tree(&links);
    }

    fn has_a_tree(&self, links: &str) {
        let found = links.lines().filter(|line| line.contains("both ways")).count();
        assert_eq!(found, self.cables.len(), "{links}");
        let flooded = links.lines().filter(|line| line.ends_with("yes")).count();
        assert_eq!(flooded, self.bridges.len() - 1, "a tree\n{links}");
    }

    /// Returns the number of frames that switches have sent so far, over cables and to hosts.
    fn frames(&self) -> u64 {
        let table = self.lab.succeed(&["cat", "/proc/net/dev"]);
        let sent = |line: &str| {
            let (interface, counters) = line.trim_start().split_once(':')?;
            let is_port =
                interface.starts_with("to-") || (interface.starts_with('s') && interface.contains('-'));
            is_port.then(|| counters.split_whitespace().nth(9)?.parse::<u64>().ok()).flatten()
        };
        table.lines().filter_map(sent).sum()
    }

    fn frames_while_watching(&self) -> u64 {
        let before = self.frames();
        sleep(WATCH);
        self.frames() - before
    }

    /// Checks that a broadcast arrives exactly once at every host, that it causes only a few frames, and that the
    /// network is then silent.
    pub(crate) fn broadcasts_arrive_once_and_end(&self) {
        const FRAMES: u64 = 3;
        // hosts that have just talked may send ARP requests to each other; wait until they no longer do
        self.hosts.iter().for_each(Host::forget_neighbors);
        let probes = self.frames_while_watching();
        let arrived = || self.hosts[1..].iter().map(Host::received_broadcasts).collect::<Vec<_>>();
        let (before, sent) = (arrived(), self.frames());
        for _ in 0..FRAMES {
            self.hosts[0].broadcast("10.0.0.255");
            sleep(BREATH);
        }
        sleep(WATCH.saturating_sub(BREATH * FRAMES as u32));
        let (after, sent) = (arrived(), self.frames() - sent);
        let copies: Vec<_> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        assert_eq!(copies, vec![FRAMES; before.len()], "each was to arrive once at each host");
        // a broadcast crosses each cable at most once in each direction, and reaches each host once. In addition,
        // each port sends one probe per second while frames are counted
        let once = (2 * self.cables.len() + self.hosts.len()) as u64;
        let most = FRAMES * once + 2 * probes + 20;
        println!(
            "{FRAMES} frames to everybody: {sent} were sent; {probes} are sent by themselves; {most} at most"
        );
        assert!(sent <= most, "{sent} frames were sent, {most} at most were to be");
        let silence = self.frames_while_watching();
        assert!(silence <= 2 * probes + 20, "{silence} frames after that, {probes} before");
    }

    /// Pulls a cable and plugs it in again while every host pings a neighbor every `interval_s` seconds. If there is
    /// another path, no host may miss answers for more than a second. If there is none, the hosts must reach each
    /// other a second after the cable is plugged in again.
    pub(crate) fn pull(&self, (switch, interface): &(usize, String), interval_s: &str) {
        let talks: Vec<Talk> = self
            .hosts
            .iter()
            .enumerate()
            .map(|(number, host)| host.talk_to(address((number + 1) % self.hosts.len() + 1), interval_s))
            .collect();
        // only the machine delays a host that pings itself, and it delays the measured hosts by as much
        let machine = self.hosts[0].talk_to(IpAddr::V4(Ipv4Addr::LOCALHOST), interval_s);
        sleep(TALK);
        let set = |state: &str| {
            let begun = clock();
            self.lab.succeed(&["ip", "link", "set", interface, state]);
            // the switch checks its links only from time to time, so the controller's time limit starts when
            // the switch has noticed the change
            eventually(&format!("{interface} is {state}"), LINK_LIMIT, || {
                (self.bridges[*switch].link_is_up(interface) == (state == "up")).then_some(())
            });
            (begun, clock())
        };
        let (pulled, seen_down) = set("down");
        sleep(TALK);
        let (plugged, seen_up) = set("up");
        sleep(REPAIR_LIMIT + TALK);
        let ended = clock();
        let told: Vec<_> = talks.into_iter().map(Talk::end).collect();
        let machine = machine.end();
        let limit = |begun: Duration, seen: Duration, until: Duration| {
            seen - begun + machine.longest_gap(begun, until) + REPAIR_LIMIT
        };
        let (down, up) = (limit(pulled, seen_down, plugged), limit(plugged, seen_up, ended));
        let mut longest = Duration::ZERO;
        for answers in &told {
            let outage = if self.is_redundant {
                answers.longest_gap(pulled, plugged)
            } else {
                answers.first_after(plugged)
            };
            let most = if self.is_redundant { down } else { up };
            assert!(
                outage <= most,
                "{interface}: {answers} waited for {outage:?}, {most:?} at most\n{}",
                self.told("links")
            );
            longest = longest.max(outage);
            if self.is_redundant {
                let outage = answers.longest_gap(plugged, ended);
                assert!(outage <= up, "{interface} is back, and {answers} waited for {outage:?}");
                longest = longest.max(outage);
            }
        }
        println!(
            "{interface}: nobody waited for more than {longest:?}; the switch took {:?} to see it down, {:?} up; the machine \
             stood still for {:?}",
            seen_down - pulled,
            seen_up - plugged,
            machine.longest_gap(pulled, ended)
        );
    }
}
