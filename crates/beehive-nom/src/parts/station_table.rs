//! A bridge's address table, with aging and a quota for each port.

use crate::object::{FoundFlow, PortNo, Station};
use crate::parts::{PortQuota, QuotaTable, extend, seconds};
use beehive::{Rows, Time};
use std::time::Duration;

/// Margin by which an address outlives the flows that lead to it, because switches do not expire flows to the exact
/// second.
const FLOW_END_SLACK: Duration = Duration::from_secs(2);

/// Limits of a station table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StationLimits {
    /// Time after its latest packet at which a station is forgotten.
    pub age: Duration,
    /// Maximum number of stations.
    pub quota: PortQuota,
}

impl StationLimits {
    /// Creates limits from settings: the age in seconds, and the maximum numbers of stations per port and per switch.
    pub fn of(age_s: u32, per_port_max: u32, per_node_max: u32) -> StationLimits {
        StationLimits { age: seconds(age_s), quota: PortQuota { per_port_max, per_node_max } }
    }
}

/// The information that a packet reveals about the station that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learned {
    /// The station is behind this port. It was known to be there, or has just been learned.
    Here,
    /// The station was behind a different port.
    Moved {
        /// The previous port.
        from: PortNo,
        /// Whether the station was learned behind the new port. `false` if a quota is used up.
        kept: bool,
    },
    /// The station is unknown, and cannot be learned because a quota is used up.
    Full,
}

impl Learned {
    /// Returns whether the table now records the station behind the packet's port.
    #[inline]
    pub fn is_known(self) -> bool {
        matches!(self, Learned::Here | Learned::Moved { kept: true, .. })
    }
}

/// One switch's stations, with each station's port and the time until which it is remembered.
///
/// If a station's deadline is unknown (after a fail-over, if deadlines are `#[volatile]`), the station is treated as if
/// its latest packet had just arrived.
///
/// ```
/// use beehive_core::{OwnedRows, Time};
/// use beehive_nom::object::{Mac, PortNo, Station, Vlan};
/// use beehive_nom::parts::{Learned, PortQuota, StationTable, StationLimits};
/// use std::time::Duration;
///
/// // in an app, these tables are `self.ports.at(node)`, `self.until.at(node)` and `self.port_counts.at(node)`
/// let (mut ports, mut until, mut port_counts) = (OwnedRows::default(), OwnedRows::default(), OwnedRows::default());
/// let quota = PortQuota { per_port_max: 2, per_node_max: 1_000 };
/// let limits = StationLimits { age: Duration::from_secs(300), quota };
/// let mut stations = StationTable::new(&mut ports, &mut until, &mut port_counts, limits, Time::ZERO);
/// let host = |last| Station::new(Vlan::NONE, Mac([2, 0, 0, 0, 0, last]));
/// assert_eq!(stations.learn(host(1), PortNo(1)), Learned::Here);
/// assert_eq!(stations.learn(host(1), PortNo(2)), Learned::Moved { from: PortNo(1), kept: true });
/// assert_eq!(stations.port(host(1)), Some(PortNo(2)));
/// stations.learn(host(2), PortNo(2));
/// assert_eq!(stations.learn(host(3), PortNo(2)), Learned::Full);
/// ```
#[derive(Debug)]
pub struct StationTable<'a> {
    ports: &'a mut Rows<Station, PortNo>,
    until: &'a mut Rows<Station, Time>,
    port_counts: &'a mut Rows<PortNo, u32>,
    limits: StationLimits,
    now: Time,
}

impl<'a> StationTable<'a> {
    /// Creates the table from the `ports` of stations, the number of stations behind each port, and the deadlines
    /// `until`. All of them must belong to the same switch, and must be changed only through this type.
    #[inline]
    pub fn new(
        ports: &'a mut Rows<Station, PortNo>,
        until: &'a mut Rows<Station, Time>,
        port_counts: &'a mut Rows<PortNo, u32>,
        limits: StationLimits,
        now: Time,
    ) -> Self {
        StationTable { ports, until, port_counts, limits, now }
    }

    /// Learns from a packet from `station` that arrived at `port`. From now on, the station is recorded behind this
    /// port, unless a quota is used up.
    #[inline]
    pub fn learn(&mut self, station: Station, port: PortNo) -> Learned {
        let heard = if self.ports.get(&station) == Some(&port) {
            Learned::Here
        } else {
            self.relocate(station, port)
        };
        if heard.is_known() {
            extend(self.until, station, self.now + self.limits.age);
        }

        heard
    }

    fn relocate(&mut self, station: Station, port: PortNo) -> Learned {
        let mut table = QuotaTable::new(self.ports, self.port_counts);
        // the station has left the old port, whether or not it can be learned at the new one
        let old = table.remove(&station);
        let kept = table.put(station, port, self.limits.quota);

        if !kept {
            self.until.remove(&station);
        }

        match old {
            Some(from) => Learned::Moved { from, kept },
            None if kept => Learned::Here,
            None => Learned::Full,
        }
    }

    /// Returns the port behind which a station is located.
    #[inline]
    pub fn port(&self, station: Station) -> Option<PortNo> {
        self.ports.get(&station).copied()
    }

    /// Remembers a station for at least `longest`, the remaining lifetime of a flow that leads to it. Otherwise the
    /// station could move after it was forgotten, and the flow would still lead to its old port.
    #[inline]
    pub fn keep_at_least(&mut self, station: Station, longest: Duration) {
        extend(self.until, station, self.now + longest + FLOW_END_SLACK);
    }

    /// Learns from a flow between two stations that the switch already has. Returns `false` if the flow should be
    /// withdrawn, because it contradicts the table, a quota is used up, or the flow has no hard timeout.
    pub fn adopt(&mut self, found: &FoundFlow) -> bool {
        let Some(ends) = found.endpoints().filter(|_| found.hard_s != 0) else { return false };

        let good = ends.iter().all(|(station, port)| match self.ports.get(station) {
            Some(known) => known == port,
            None => QuotaTable::new(self.ports, self.port_counts).put(*station, *port, self.limits.quota),
        });
        for (station, _) in ends.into_iter().filter(|_| good) {
            self.until.entry(station).or_insert(self.now + self.limits.age);
            self.keep_at_least(station, found.remaining()); // the flow may have been installed with other settings
        }

        good
    }

    /// Forgets the stations behind a port.
    pub fn forget_port(&mut self, port: PortNo) {
        for (station, _) in QuotaTable::new(self.ports, self.port_counts).take_if(|_, at| *at == port) {
            self.until.remove(&station);
        }
    }

    /// Forgets the stations whose deadlines have passed.
    pub fn expire(&mut self) {
        let (now, until, unknown) = (self.now, &mut *self.until, self.now + self.limits.age);
        let mut table = QuotaTable::new(self.ports, self.port_counts);
        for (station, _) in table.take_if(|station, _| *until.entry(*station).or_insert(unknown) < now) {
            until.remove(&station);
        }
    }

    /// Forgets all stations.
    pub fn clear(&mut self) {
        self.ports.clear();
        self.until.clear();
        self.port_counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Actions, AddFlow, Cause, Mac, NodeId, Owner, PacketIn, PacketInReason, Vlan};
    use beehive::OwnedRows;
    use bytes::Bytes;

    #[derive(Default)]
    struct Table {
        ports: OwnedRows<Station, PortNo>,
        until: OwnedRows<Station, Time>,
        port_counts: OwnedRows<PortNo, u32>,
    }

    impl Table {
        fn at(&mut self, seconds: u64) -> StationTable<'_> {
            let limits = StationLimits {
                age: Duration::from_secs(100),
                quota: PortQuota { per_port_max: 2, per_node_max: 3 },
            };
            let now = Time::from_nanoseconds(seconds * 1_000_000_000);
            StationTable::new(&mut self.ports, &mut self.until, &mut self.port_counts, limits, now)
        }
    }

    fn host(last: u8) -> Station {
        Station::new(Vlan::NONE, Mac([2, 0, 0, 0, 0, last]))
    }

    #[test]
    fn who_is_silent_is_forgotten_and_makes_room() {
        let mut table = Table::default();
        table.at(0).learn(host(1), PortNo(1));
        table.at(50).learn(host(2), PortNo(1));
        table.at(101).expire();
        assert_eq!((table.at(101).port(host(1)), table.at(101).port(host(2))), (None, Some(PortNo(1))));
        assert_eq!(table.at(101).learn(host(3), PortNo(1)), Learned::Here);
        assert_eq!(table.at(101).learn(host(4), PortNo(1)), Learned::Full);
        assert_eq!(table.until.get(&host(4)), None);

        // after a fail-over the deadlines are unknown
        table.until = OwnedRows::default();
        table.at(200).expire();
        assert_eq!(table.ports.len(), 2);
        table.at(301).expire();

        assert!(table.ports.is_empty() && table.port_counts.is_empty() && table.until.is_empty());
    }

    #[test]
    fn who_moves_to_where_there_is_no_room_is_not_where_it_was() {
        let mut table = Table::default();
        for (number, port) in [(1, 1), (2, 2), (3, 2)] {
            assert_eq!(table.at(0).learn(host(number), PortNo(port)), Learned::Here);
        }

        let heard = table.at(1).learn(host(1), PortNo(2));
        assert_eq!(heard, Learned::Moved { from: PortNo(1), kept: false });
        assert!(!heard.is_known());
        assert_eq!((table.at(1).port(host(1)), table.until.get(&host(1))), (None, None));
        table.at(1).forget_port(PortNo(2));

        assert!(table.ports.is_empty() && table.port_counts.is_empty() && table.until.is_empty());
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
            flags: None,
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
        table.at(280).expire(); // the flow may live until then
        assert_eq!(table.ports.len(), 2);

        table.at(280).learn(host(2), PortNo(3));
        assert!(!table.at(280).adopt(&found), "the station is behind another port");
        assert!(!table.at(280).adopt(&FoundFlow { hard_s: 0, ..found.clone() }), "it would stay forever");
        assert!(!table.at(280).adopt(&FoundFlow { actions: Actions::None, ..found }));
    }
}
