//! Stations: the address table of a bridge, with ageing and a limit for each port.

use crate::object::{FoundFlow, PortNo, Station};
use crate::parts::{Crowd, Room, extend, seconds};
use beehive::{Rows, Time};
use std::time::Duration;

/// A flow and an address that it leads to do not end at the same time to the second.
const SPARE: Duration = Duration::from_secs(2);

/// What holds for the stations of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// How long a station is remembered without a packet from it.
    pub age: Duration,
    /// How many there may be.
    pub room: Room,
}

impl Terms {
    /// For stations that are remembered for `age_s` seconds: so many behind one port, and so many at a switch.
    pub fn of(age_s: u32, per_port_max: u32, per_node_max: u32) -> Terms {
        Terms { age: seconds(age_s), room: Room { per_port_max, per_node_max } }
    }
}

/// What a packet says about the station that it is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It is behind this port, as was known, or is learned now.
    Here,
    /// It was behind the other port until now. `kept`: there was room for it behind this one.
    Moved {
        /// Behind which.
        from: PortNo,
        /// Whether it is known to be here now.
        kept: bool,
    },
    /// There is no room for it.
    NoRoom,
}

impl Heard {
    /// Whether it is known to be where it was heard.
    #[inline]
    pub fn is_known(self) -> bool {
        matches!(self, Heard::Here | Heard::Moved { kept: true, .. })
    }
}

/// The stations of one switch: behind which port each is, and until when it is remembered.
///
/// A deadline that is not known (after a fail-over, if deadlines are `#[volatile]`) is as if the station had been heard
/// just now.
///
/// ```
/// use beehive_core::{Rows, Time};
/// use beehive_nom::object::{Mac, PortNo, Station, Vlan};
/// use beehive_nom::parts::{Heard, Room, Stations, Terms};
/// use std::time::Duration;
///
/// // in an app these are `self.ports.at(node)`, `self.until.at(node)` and `self.crowds.at(node)`
/// let (mut ports, mut until, mut crowds) = (Rows::default(), Rows::default(), Rows::default());
/// let room = Room { per_port_max: 2, per_node_max: 1_000 };
/// let terms = Terms { age: Duration::from_secs(300), room };
/// let mut stations = Stations::new(&mut ports, &mut until, &mut crowds, terms, Time::ZERO);
/// let host = |last| Station::new(Vlan::NONE, Mac([2, 0, 0, 0, 0, last]));
/// assert_eq!(stations.hear(host(1), PortNo(1)), Heard::Here);
/// assert_eq!(stations.hear(host(1), PortNo(2)), Heard::Moved { from: PortNo(1), kept: true });
/// assert_eq!(stations.port(host(1)), Some(PortNo(2)));
/// stations.hear(host(2), PortNo(2));
/// assert_eq!(stations.hear(host(3), PortNo(2)), Heard::NoRoom);
/// ```
#[derive(Debug)]
pub struct Stations<'a> {
    ports: &'a mut Rows<Station, PortNo>,
    until: &'a mut Rows<Station, Time>,
    crowds: &'a mut Rows<PortNo, u32>,
    terms: Terms,
    now: Time,
}

impl<'a> Stations<'a> {
    /// `ports` of stations, which `crowds` counts, and `until` when each is remembered: all of one switch, and changed
    /// together only.
    #[inline]
    pub fn new(
        ports: &'a mut Rows<Station, PortNo>,
        until: &'a mut Rows<Station, Time>,
        crowds: &'a mut Rows<PortNo, u32>,
        terms: Terms,
        now: Time,
    ) -> Self {
        Stations { ports, until, crowds, terms, now }
    }

    /// A packet of `station` came in on `port`. It is there from now on, if there is room.
    #[inline]
    pub fn hear(&mut self, station: Station, port: PortNo) -> Heard {
        let heard =
            if self.ports.get(&station) == Some(&port) { Heard::Here } else { self.learn(station, port) };
        if heard.is_known() {
            extend(self.until, station, self.now + self.terms.age);
        }
        heard
    }

    fn learn(&mut self, station: Station, port: PortNo) -> Heard {
        let mut crowd = Crowd::new(self.ports, self.crowds);
        // it is there no longer, whether or not there is room for it here
        let old = crowd.remove(&station);
        let kept = crowd.put(station, port, self.terms.room);
        if !kept {
            self.until.remove(&station);
        }
        match old {
            Some(from) => Heard::Moved { from, kept },
            None if kept => Heard::Here,
            None => Heard::NoRoom,
        }
    }

    /// The port that a station is behind.
    #[inline]
    pub fn port(&self, station: Station) -> Option<PortNo> {
        self.ports.get(&station).copied()
    }

    /// Remembers a station while a flow that leads to it may live, which is `longest`: else it could move after it is
    /// forgotten, and nobody would know that flows lead to where it was.
    #[inline]
    pub fn keep(&mut self, station: Station, longest: Duration) {
        extend(self.until, station, self.now + longest + SPARE);
    }

    /// Learns from a flow between two stations that is in the switch already. False if that contradicts what is known, or
    /// there is no room, or no end to the flow: then it should go.
    pub fn adopt(&mut self, found: &FoundFlow) -> bool {
        let Some(ends) = found.ends().filter(|_| found.hard_s != 0) else { return false };
        let good = ends.iter().all(|(station, port)| match self.ports.get(station) {
            Some(known) => known == port,
            None => Crowd::new(self.ports, self.crowds).put(*station, *port, self.terms.room),
        });
        for (station, _) in ends.into_iter().filter(|_| good) {
            self.until.entry(station).or_insert(self.now + self.terms.age);
            self.keep(station, found.left()); // it may be of other settings
        }
        good
    }

    /// Forgets the stations behind a port.
    pub fn forget_port(&mut self, port: PortNo) {
        for (station, _) in Crowd::new(self.ports, self.crowds).take_if(|_, at| *at == port) {
            self.until.remove(&station);
        }
    }

    /// Forgets the stations that were not heard for long.
    pub fn forget_silent(&mut self) {
        let (now, until, unknown) = (self.now, &mut *self.until, self.now + self.terms.age);
        let mut crowd = Crowd::new(self.ports, self.crowds);
        for (station, _) in crowd.take_if(|station, _| *until.entry(*station).or_insert(unknown) < now) {
            until.remove(&station);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.ports.clear();
        self.until.clear();
        self.crowds.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Actions, AddFlow, Cause, Mac, NodeId, Owner, PacketIn, PacketInReason, Vlan};
    use bytes::Bytes;

    #[derive(Default)]
    struct Table {
        ports: Rows<Station, PortNo>,
        until: Rows<Station, Time>,
        crowds: Rows<PortNo, u32>,
    }

    impl Table {
        fn at(&mut self, seconds: u64) -> Stations<'_> {
            let terms =
                Terms { age: Duration::from_secs(100), room: Room { per_port_max: 2, per_node_max: 3 } };
            let now = Time::from_nanoseconds(seconds * 1_000_000_000);
            Stations::new(&mut self.ports, &mut self.until, &mut self.crowds, terms, now)
        }
    }

    fn host(last: u8) -> Station {
        Station::new(Vlan::NONE, Mac([2, 0, 0, 0, 0, last]))
    }

    #[test]
    fn who_is_silent_is_forgotten_and_makes_room() {
        let mut table = Table::default();
        table.at(0).hear(host(1), PortNo(1));
        table.at(50).hear(host(2), PortNo(1));
        table.at(101).forget_silent();
        assert_eq!((table.at(101).port(host(1)), table.at(101).port(host(2))), (None, Some(PortNo(1))));
        assert_eq!(table.at(101).hear(host(3), PortNo(1)), Heard::Here);
        assert_eq!(table.at(101).hear(host(4), PortNo(1)), Heard::NoRoom);
        assert_eq!(table.until.get(&host(4)), None);
        // after a fail-over nobody knows until when
        table.until = Rows::default();
        table.at(200).forget_silent();
        assert_eq!(table.ports.len(), 2);
        table.at(301).forget_silent();
        assert!(table.ports.is_empty() && table.crowds.is_empty() && table.until.is_empty());
    }

    #[test]
    fn who_moves_to_where_there_is_no_room_is_not_where_it_was() {
        let mut table = Table::default();
        for (number, port) in [(1, 1), (2, 2), (3, 2)] {
            assert_eq!(table.at(0).hear(host(number), PortNo(port)), Heard::Here);
        }
        let heard = table.at(1).hear(host(1), PortNo(2));
        assert_eq!(heard, Heard::Moved { from: PortNo(1), kept: false });
        assert!(!heard.is_known());
        assert_eq!((table.at(1).port(host(1)), table.until.get(&host(1))), (None, None));
        table.at(1).forget_port(PortNo(2));
        assert!(table.ports.is_empty() && table.crowds.is_empty() && table.until.is_empty());
    }

    #[test]
    fn flows_of_an_earlier_life_are_learned_from_unless_they_contradict() {
        let frame = Bytes::from_static(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        let packet = PacketIn {
            node: NodeId(1),
            port: PortNo(1),
            reason: PacketInReason::Miss,
            length: 14,
            buffer: None,
            data: frame,
        };
        let flow =
            AddFlow::between(Owner::named("x"), &packet, PortNo(2)).hard(Duration::from_secs(300)).flow;
        let found = FoundFlow {
            table: 0,
            owner: Some(flow.owner),
            cause: Cause::UNKNOWN,
            cookie: 0,
            priority: flow.priority,
            matching: flow.matching,
            actions: flow.actions,
            more: None,
            idle_s: 0,
            hard_s: 300,
            age_s: 20,
            packets: 0,
            bytes: 0,
        };
        let mut table = Table::default();
        assert!(table.at(0).adopt(&found));
        assert_eq!(
            (table.at(0).port(host(1)), table.at(0).port(host(2))),
            (Some(PortNo(1)), Some(PortNo(2)))
        );
        table.at(280).forget_silent(); // the flow may live until then
        assert_eq!(table.ports.len(), 2);
        table.at(280).hear(host(2), PortNo(3));
        assert!(!table.at(280).adopt(&found), "it is elsewhere");
        assert!(!table.at(280).adopt(&FoundFlow { hard_s: 0, ..found.clone() }), "it would stay for ever");
        assert!(!table.at(280).adopt(&FoundFlow { actions: Actions::None, ..found }));
    }
}
