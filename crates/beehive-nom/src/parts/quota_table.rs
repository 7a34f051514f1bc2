//! Crowds: a table of what is behind the ports of a switch, so much behind each port at most.
//!
//! Whoever keeps something for every address that a packet names needs a limit, or one host that forges addresses fills
//! the memory and the switch's tables. One limit for the whole switch is not enough: then the forger takes everybody's
//! place. With one for each port, other ports do not notice.

use crate::object::PortNo;
use beehive::{RowKey, Rows, Value};

/// What is behind a port.
pub trait AtPort {
    /// Which one.
    fn port(&self) -> PortNo;
}

impl AtPort for PortNo {
    #[inline]
    fn port(&self) -> PortNo {
        *self
    }
}

/// How much room there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortQuota {
    /// Rows behind one port.
    pub per_port_max: u32,
    /// Rows at one switch.
    pub per_node_max: u32,
}

/// The rows of a switch, each behind a port, and how many are behind each.
///
/// ```
/// use beehive_core::Rows;
/// use beehive_nom::object::PortNo;
/// use beehive_nom::parts::{QuotaTable, PortQuota};
///
/// // in an app these are `self.places.at(node)` and `self.port_counts.at(node)`
/// let (mut places, mut port_counts) = (Rows::<u64, PortNo>::default(), Rows::default());
/// let quota = PortQuota { per_port_max: 2, per_node_max: 3 };
/// let mut table = QuotaTable::new(&mut places, &mut port_counts);
/// let (ann, bob, eve) = (1, 2, 3);
/// assert!(table.put(ann, PortNo(1), quota) && table.put(bob, PortNo(1), quota));
/// assert!(!table.put(eve, PortNo(1), quota)); // port 1 is full,
/// assert!(table.put(eve, PortNo(2), quota)); // and others are not
/// assert!(table.put(ann, PortNo(2), quota)); // who moves makes room where it was
/// assert_eq!(places.get(&ann), Some(&PortNo(2)));
/// ```
#[derive(Debug)]
pub struct QuotaTable<'a, K, V> {
    rows: &'a mut Rows<K, V>,
    port_counts: &'a mut Rows<PortNo, u32>,
}

impl<'a, K: RowKey, V: Value + AtPort> QuotaTable<'a, K, V> {
    /// `rows`, of which `port_counts` counts those behind each port. Both belong to the same switch, and are changed together
    /// only.
    #[inline]
    pub fn new(rows: &'a mut Rows<K, V>, port_counts: &'a mut Rows<PortNo, u32>) -> Self {
        QuotaTable { rows, port_counts }
    }

    /// Puts `value` in the place of `key`. False if there is no room behind its port; then all stays as it is.
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

    /// Removes `key`.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.rows.remove(key)?;
        self.uncount(value.port());
        Some(value)
    }

    /// Removes the rows for which `take` is true and returns them; asks in order.
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_are_right_and_limits_hold(
            steps in proptest::collection::vec((0u8..12, 0u32..4, 0u8..4), 0..60),
        ) {
            let (mut rows, mut port_counts) = (Rows::<u8, PortNo>::default(), Rows::default());
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
