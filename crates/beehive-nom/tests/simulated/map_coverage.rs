//! Checks the derived maps of this crate's handlers: for random messages and states, the map contains every
//! cell that the handler touches, by dictionary and key, before dictionaries are fused. An app with a wrong
//! map proves that the check works.

use crate::random::SeededRng;
use beehive_core::__private::{Each, Tick};
use beehive_core::testing::maps::{Delivered, Mapped, covers, deliver, describe, instance, record};
use beehive_core::{Address, Handlers, Handles, HiveId, Message, Outcome, Shared};
use beehive_nom::apps::{Hub, LearningSwitch, NodeController, ReadingOverdue};
use beehive_nom::object::{
    Action, Actions, AddFlow, AdoptFlows, BufferId, Cause, Conversation, DelFlows, DescribeNode, FlowFailed,
    FlowMatch, FlowRemoved, FlowRemovedReason, FlowScope, FlowsConfirmed, FlowsFound, FlowsRead, FoundFlow,
    Mac, MasterChanged, NodeId, NodeJoined, NodeLeft, Owner, PacketIn, PacketInReason, PathsChanged, Port,
    PortDown, PortNo, PortUp, SendPacket, Station, Tag, VerifyFlows, Vlan,
};
use beehive_nom::parts::OwnsFlows;
use beehive_nom::sim::frame;
use std::collections::BTreeMap;
use std::time::Duration;

// a small range of values, so random messages interact

impl SeededRng {
    pub(crate) fn node(&mut self) -> NodeId {
        NodeId(self.below(3))
    }

    pub(crate) fn port(&mut self) -> PortNo {
        self.one(&[PortNo(0), PortNo(1), PortNo(2), PortNo(3), PortNo::LOCAL, PortNo::CONTROLLER])
    }

    pub(crate) fn mac(&mut self) -> Mac {
        match self.below(8) {
            0 => Mac::ZERO,
            1 => Mac::BROADCAST,
            2 => Mac([0x01, 0x80, 0xc2, 0, 0, self.below(0x20) as u8]),
            n => Mac([2, 0, 0, 0, 0, n as u8]),
        }
    }

    pub(crate) fn tag(&mut self) -> Tag {
        self.one(&[Tag::Untagged, Tag::Untagged, Tag::Id(Vlan(0)), Tag::Id(Vlan(5))])
    }

    pub(crate) fn owner(&mut self) -> Owner {
        self.one(&[LearningSwitch::OWNER, Owner::named("a"), Owner::named("b")])
    }

    pub(crate) fn driver(&mut self) -> Address {
        self.one(&[Address::Io(HiveId(0), 1), Address::Io(HiveId(0), 2), Address::Outside])
    }

    pub(crate) fn packet_in(&mut self) -> PacketIn {
        let mut data = frame(self.mac(), self.mac(), self.tag(), b"some payload");
        if self.below(10) == 0 {
            data.truncate(self.below(18) as usize)
        }

        PacketIn {
            node: self.node(),
            port: self.port(),
            reason: self.one(&[PacketInReason::Miss, PacketInReason::Action, PacketInReason::Other]),
            length: data.len() as u16 + self.below(3) as u16 / 2,
            buffer: (self.below(4) == 0).then(|| BufferId(self.below(9) as u32)),
            data,
        }
    }

    pub(crate) fn matching(&mut self) -> FlowMatch {
        FlowMatch {
            port: (self.below(2) == 0).then(|| self.port()),
            source: (self.below(2) == 0).then(|| self.mac()),
            destination: (self.below(3) == 0).then(|| self.mac()),
            tag: (self.below(3) == 0).then(|| self.tag()),
            ethertype: (self.below(5) == 0).then_some(0x0800),
            conversation: (self.below(5) == 0).then(|| Conversation::MIN.into()),
        }
    }

    pub(crate) fn add_flow(&mut self) -> AddFlow {
        let actions = self.one(&[0, 1]);
        let actions = if actions == 0 { Actions::None } else { Actions::One(Action::Output(self.port())) };
        let flow =
            AddFlow::new(self.node(), self.owner(), self.matching(), actions).priority(self.below(3) as u16);
        if self.below(3) == 0 { flow.idle(Duration::from_secs(1 + self.below(9))) } else { flow }
    }

    pub(crate) fn found(&mut self) -> Vec<FoundFlow> {
        let count = self.below(4);
        (0..count)
            .map(|_| {
                let AddFlow { flow, .. } = self.add_flow();
                FoundFlow {
                    table: self.below(5) as u8 / 4,
                    owner: (self.below(5) > 0).then_some(flow.owner),
                    cause: flow.cause,
                    cookie: 0,
                    priority: flow.priority,
                    matching: flow.matching,
                    actions: flow.actions,
                    more: (self.below(8) == 0).then(|| "something else".into()),
                    idle_s: flow.idle_s,
                    hard_s: flow.hard_s,
                    flags: None,
                    age_s: 1,
                    packets: 1,
                    bytes: 60,
                }
            })
            .collect()
    }

    pub(crate) fn scope(&mut self) -> FlowScope {
        let station = Station::new(self.tag().vlan(), self.mac());
        match self.below(5) {
            0 => FlowScope::All,
            1 => FlowScope::Towards(station),
            2 => FlowScope::From(station, self.port()),
            3 => FlowScope::Through(self.port()),
            _ => FlowScope::Exactly(self.below(3) as u16, self.matching()),
        }
    }
}

pub(crate) fn up(number: PortNo) -> Port {
    Port {
        number,
        address: Mac([2, 0, 0, 0, 1, 1]),
        name: "a port".into(),
        up: true,
        floods: true,
        forwards: true,
    }
}

/// The results of the runs of one handler.
#[derive(Default)]
struct Tally {
    runs: u64,
    dropped: u64,
    /// For each dictionary in the map, the number of runs in which the handler needed it.
    needed: BTreeMap<String, u64>,
}

/// Runs every handler of an app on random messages and on the states that result from them.
struct Oracle<A> {
    app: A,
    chance: SeededRng,
    tallies: BTreeMap<&'static str, Tally>,
}

/// Returns the dictionary in the text form of a cell.
fn dictionary(word: &str) -> String {
    word.split('[').next().unwrap_or(word).to_string()
}

impl<A: Handlers> Oracle<A> {
    fn new(settings: &str, seed: u64) -> Self {
        let app = instance(settings.parse().unwrap()).unwrap();
        Oracle { app, chance: SeededRng::new(seed), tallies: BTreeMap::new() }
    }

    fn check<M: Message>(&mut self, message: M)
    where
        A: Handles<M>,
    {
        let handler = A::REPORT[<A as Handles<M>>::HANDLER].name;
        let mapped = describe::<A, M>(&message);
        let touched = record(&mut self.app, &message);
        assert!(covers(&mapped, &touched), "{handler}: mapped {:?}, touched {touched:?}", mapped.words);

        // to prove that the check works, remove each of the needed cells in turn: the check must report an
        // error
        let tally = self.tallies.entry(handler).or_default();
        for (at, word) in mapped.words.iter().enumerate() {
            let mut seeded: Mapped = mapped.clone();
            seeded.words.remove(at);
            let caught = !covers(&seeded, &touched);
            assert_eq!(caught, touched.contains(word));
            *tally.needed.entry(dictionary(word)).or_default() += u64::from(caught);
        }

        tally.runs += 1;
        let delivered = deliver(&mut self.app, &message);
        match mapped.outcome {
            Outcome::Drop => {
                tally.dropped += 1;
                assert_eq!(delivered, Delivered::Committed(0), "{handler}: dropped, but it does something");
            }
            _ => assert!(
                matches!(delivered, Delivered::Committed(_) | Delivered::Failed(_)),
                "{handler}: {delivered:?}"
            ),
        }
    }

    /// Checks that every handler was run and needed every dictionary in its map, that is, that no map is too
    /// large.
    fn finish(self) -> BTreeMap<&'static str, Tally> {
        for report in A::REPORT {
            let tally =
                self.tallies.get(report.name).unwrap_or_else(|| panic!("{} was not run", report.name));
            assert!(tally.runs > 100);
            assert!(tally.needed.values().all(|runs| *runs > 0), "{}: {:?}", report.name, tally.needed);
        }
        self.tallies
    }
}

const RUNS: u64 = 3_000;

#[test]
fn maps_of_the_learning_switch_cover_what_it_touches() {
    for settings in ["", "stations_per_port_max = 1\nstations_per_node_max = 2\nage_s = 4"] {
        let mut oracle = Oracle::<LearningSwitch>::new(settings, 1);
        for _ in 0..RUNS {
            let (packet, node, port, driver) = (
                oracle.chance.packet_in(),
                oracle.chance.node(),
                oracle.chance.port(),
                oracle.chance.driver(),
            );
            match oracle.chance.below(12) {
                10 => {
                    let (knows_owners, drops_misses) = (true, true);
                    oracle.check(NodeJoined { node, driver, ports: Vec::new(), knows_owners, drops_misses })
                }
                11 => {
                    let (owner, flows) = (LearningSwitch::OWNER, oracle.chance.found());
                    oracle.check(FlowsFound { node, owner, flows })
                }
                0 => oracle.check(PortDown { node, port, removed: port.0 == 1 }),
                1 => oracle.check(NodeLeft { node, driver }),
                2 => oracle.check(PathsChanged { node }),
                3 => oracle.check(Each { key: node, msg: Shared::new(Tick::<6>) }),
                _ => oracle.check(packet),
            }
        }

        let tallies = oracle.finish();
        let packet_in = &tallies["packet_in"];
        assert!(packet_in.dropped > 100, "frames for the bridge are dropped by the map");
        assert_eq!(packet_in.needed.keys().collect::<Vec<_>>(), ["macs", "port_counts", "until"]);
    }
}

#[test]
fn maps_of_the_node_controller_cover_what_it_touches() {
    let mut oracle = Oracle::<NodeController>::new("", 2);
    for _ in 0..5 * RUNS {
        let chance = &mut oracle.chance;
        let (node, owner, driver) = (chance.node(), chance.owner(), chance.driver());
        let reading = chance.below(4);
        match chance.below(19) {
            18 => {
                let (knows_owners, drops_misses) = (reading == 0, reading == 1);
                oracle.check(MasterChanged { node, driver, knows_owners, drops_misses })
            }
            6 => oracle.check(PortUp { node, port: up(PortNo(1)) }),
            7 => oracle.check(PortDown { node, port: PortNo(1), removed: false }),
            8 => oracle.check(AdoptFlows { node, owner }),
            9 => {
                let flows = chance.found().iter().map(FoundFlow::key).collect();
                oracle.check(FlowsConfirmed { node, flows })
            }
            10..=12 => {
                let (last, flows) = (chance.below(2) == 0, chance.found());
                oracle.check(FlowsRead { node, reading, last, flows })
            }
            13 => oracle.check(ReadingOverdue { node, reading, parts: reading % 2 }),
            14 => oracle.check(Each { key: node, msg: Shared::new(Tick::<13>) }),
            15 => oracle.check(VerifyFlows { node }),
            16 => oracle.check(DescribeNode { node }),
            0 => {
                let knows_owners = chance.below(2) == 0;
                oracle.check(NodeJoined {
                    node,
                    driver,
                    ports: Vec::new(),
                    knows_owners,
                    drops_misses: knows_owners,
                })
            }
            1 => oracle.check(NodeLeft { node, driver }),
            2 => {
                let message = chance.add_flow();
                oracle.check(message)
            }
            3 => {
                let message = DelFlows { node, owner, scope: chance.scope() };
                oracle.check(message)
            }
            4 => {
                let packet = chance.packet_in();
                oracle.check(SendPacket(packet.flood()))
            }
            5 => {
                let reasons =
                    [FlowRemovedReason::Idle, FlowRemovedReason::Withdrawn, FlowRemovedReason::Other];
                let message = FlowRemoved {
                    node,
                    owner,
                    priority: chance.below(3) as u16,
                    matching: chance.matching(),
                    reason: chance.one(&reasons),
                    packets: 1,
                    bytes: 60,
                };
                oracle.check(message)
            }
            _ => {
                let (cause, flow) = (Cause::UNKNOWN, Some((chance.below(3) as u16, chance.matching())));
                oracle.check(FlowFailed { node, owner, cause, flow, why: "the table is full".into() })
            }
        }
    }

    let tallies = oracle.finish();
    assert_eq!(tallies["del_flows"].needed.keys().collect::<Vec<_>>(), ["flows", "nodes", "unconfirmed"]);
}

#[test]
fn the_hub_touches_nothing() {
    let mut oracle = Oracle::<Hub>::new("", 3);
    for _ in 0..RUNS {
        let packet = oracle.chance.packet_in();
        oracle.check(packet)
    }
    let tallies = oracle.finish();
    assert!(tallies["packet_in"].needed.is_empty());
}

/// An app with a wrong map: its handler writes to the cells of source and destination, and the map lacks the
/// latter.
mod wrong {
    use beehive_core::{App, Dict, Mapper, handlers};
    use beehive_nom::object::{PacketIn, Station};

    #[derive(App)]
    #[app(name = "wrong")]
    pub(super) struct Wrong {
        seen: Dict<u64, u64>,
    }

    fn number(station: Station) -> u64 {
        station.mac().to_u64()
    }

    fn destination_lost(message: &PacketIn, mapper: &mut Mapper) {
        mapper.cell(Wrong::__bh_seen, &number(message.source()));
    }

    #[handlers]
    impl Wrong {
        #[rcv(map = destination_lost, observes)]
        fn packet_in(&mut self, msg: &PacketIn) {
            *self.seen.entry(number(msg.source())).or_default() += 1;
            *self.seen.entry(number(msg.destination())).or_default() += 1;
        }
    }
}

#[test]
fn a_wrong_map_is_caught() {
    let mut app: wrong::Wrong = instance(Default::default()).unwrap();
    let mut chance = SeededRng::new(4);
    let (mut caught, mut stopped, mut harmless) = (0, 0, 0);

    for _ in 0..RUNS {
        let packet = chance.packet_in();
        let mapped = describe::<wrong::Wrong, PacketIn>(&packet);
        let is_covered = covers(&mapped, &record(&mut app, &packet));
        let delivered = deliver(&mut app, &packet);
        assert_eq!(
            is_covered,
            !matches!(delivered, Delivered::Unmapped(_)),
            "the guard and the oracle agree"
        );
        match is_covered {
            true => harmless += 1, // the packet is addressed to its own source
            false => caught += 1,
        }
        stopped += u64::from(delivered != Delivered::Committed(0));
    }

    assert!(caught > RUNS / 2 && caught == stopped && harmless > 0, "{caught} {stopped} {harmless}");
}
