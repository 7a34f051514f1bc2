//! A table whose entries belong to a switch's ports, with a quota for each port.
//!
//! An app that stores data for every address it sees in a packet needs a limit. Otherwise a single host that forges
//! addresses could fill the memory and the switch's flow tables. One limit for the whole switch is not enough, because
//! an attacker would use up the space of all other hosts. With a quota for each port, an attacker does not affect other
//! ports.

use crate::object::PortNo;
use beehive::{RowKey, Rows, Value};

/// A value that belongs to a port.
pub trait AtPort {
    /// Returns the port.
    fn port(&self) -> PortNo;
}

impl AtPort for PortNo {
    #[inline]
    fn port(&self) -> PortNo {
        *self
    }
}

/// Limits on the number of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortQuota {
    /// Maximum number of rows behind one port.
    pub per_port_max: u32,
    /// Maximum number of rows at one switch.
    pub per_node_max: u32,
}

/// The rows of a switch, each of which belongs to a port, and the number of rows behind each port.
///
/// ```
/// use beehive_core::OwnedRows;
/// use beehive_nom::object::PortNo;
/// use beehive_nom::parts::{QuotaTable, PortQuota};
///
/// // in an app, these tables are `self.places.at(node)` and `self.port_counts.at(node)`
/// let (mut places, mut port_counts) = (OwnedRows::<u64, PortNo>::default(), OwnedRows::default());
/// let quota = PortQuota { per_port_max: 2, per_node_max: 3 };
/// let mut table = QuotaTable::new(&mut places, &mut port_counts);
/// let (ann, bob, eve) = (1, 2, 3);
/// assert!(table.put(ann, PortNo(1), quota) && table.put(bob, PortNo(1), quota));
/// assert!(!table.put(eve, PortNo(1), quota)); // port 1 is full,
/// assert!(table.put(eve, PortNo(2), quota)); // but port 2 is not
/// assert!(table.put(ann, PortNo(2), quota)); // a move frees space at the old port
/// assert_eq!(places.get(&ann), Some(&PortNo(2)));
/// ```
#[derive(Debug)]
pub struct QuotaTable<'a, K: RowKey, V: Value> {
    rows: &'a mut Rows<K, V>,
    port_counts: &'a mut Rows<PortNo, u32>,
}

impl<'a, K: RowKey, V: Value + AtPort> QuotaTable<'a, K, V> {
    /// Creates the table from `rows`, and from `port_counts`, which counts the rows behind each port. Both must
    /// belong to the same switch, and must be changed only through this type.
    #[inline]
    pub fn new(rows: &'a mut Rows<K, V>, port_counts: &'a mut Rows<PortNo, u32>) -> Self {
        QuotaTable { rows, port_counts }
    }

    /// Inserts or replaces the value of `key`. If a quota is used up, changes nothing and returns `false`.
    pub fn put(&mut self, key: K, value: V, quota: PortQuota) -> bool {
        let (port, old) = (value.port(), self.rows.get(&key).map(AtPort::port));
        if old != Some(port) {
            let table = self.port_counts.get(&port).copied().unwrap_or(0);
            let others = self.rows.len() - usize::from(old.is_some());
            if table >= quota.per_port_max || others as u64 >= u64::from(quota.per_node_max) {
                return false;
            }
            self.port_counts.insert(port, table + 1);
            old.into_iter().for_each(|old| self.uncount(old));
        }

        self.rows.insert(key, value);
        true
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.rows.remove(key)?;
        self.uncount(value.port());
        Some(value)
    }

    /// Removes the rows for which `take` returns true, and returns them. Calls `take` in key order.
    pub fn take_if(&mut self, take: impl FnMut(&K, &V) -> bool) -> Vec<(K, V)> {
        let taken = self.rows.take_if(take);
        taken.iter().for_each(|(_, value)| self.uncount(value.port()));
        taken
    }

    fn uncount(&mut self, port: PortNo) {
        match self.port_counts.get(&port).copied() {
            Some(0 | 1) => drop(self.port_counts.remove(&port)),
            Some(table) => drop(self.port_counts.insert(port, table - 1)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive::OwnedRows;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_are_right_and_limits_hold(
            steps in proptest::collection::vec((0u8..12, 0u32..4, 0u8..4), 0..60),
        ) {
            let (mut rows, mut port_counts) = (OwnedRows::<u8, PortNo>::default(), OwnedRows::default());
            let quota = PortQuota { per_port_max: 3, per_node_max: 7 };
            for (key, port, what) in steps {
                let behind = |rows: &Rows<u8, PortNo>, port| rows.values().filter(|p| **p == port).count();
                let mut table = QuotaTable::new(&mut rows, &mut port_counts);
                match what {
                    0 => drop(table.remove(&key)),
                    1 => drop(table.take_if(|other, at| other % 5 == key % 5 && at.0 == port)),
                    _ => {
                        let old = rows.get(&key).copied();
                        let others = rows.len() - usize::from(old.is_some());
                        let fits = old == Some(PortNo(port)) || others < 7 && behind(&rows, PortNo(port)) < 3;
                        let put = QuotaTable::new(&mut rows, &mut port_counts).put(key, PortNo(port), quota);
                        prop_assert_eq!(put, fits);
                        prop_assert_eq!(rows.get(&key).copied(), if fits { Some(PortNo(port)) } else { old });
                    }
                }

                for port in (0..4).map(PortNo) {
                    let here = behind(&rows, port);
                    prop_assert_eq!(port_counts.get(&port).copied(), (here > 0).then_some(here as u32));
                }
            }
        }
    }
}
