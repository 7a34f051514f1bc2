//! A driver's part in a cluster, where a switch may have several drivers: whether it is the master, and whom it suspects.

use crate::object::{DriverConnected, MasterSuspected, NodeId};
use beehive::{Address, HiveId};
use std::collections::BTreeSet;
use tokio::sync::watch;

/// The hives of the cluster that a majority of the hives suspects to be dead.
pub type Suspects = watch::Receiver<BTreeSet<HiveId>>;

/// A message that a driver has to send because of its standing.
pub(super) enum Wish {
    /// It asks for its role.
    Role(DriverConnected),
    /// It wants to take over from a master.
    Mastership(MasterSuspected),
}

/// The standing of a driver.
pub(super) struct Standing {
    suspects: Suspects,
    role: Role,
    /// The generation of the newest decision of which it was told. What it is told of older ones has been under way for long.
    told: u64,
}

enum Role {
    /// It has not been told.
    Unknown {
        /// Whether this driver has asked.
        has_asked: bool,
    },
    /// Another driver is the master.
    StandsBy {
        master: Address,
        /// Whether this driver has said that it suspects the master.
        has_said: bool,
    },
    /// The hives have decided that this driver is the master; the switch has not accepted it yet.
    Appointed,
    /// The switch has accepted this driver, with this generation.
    Master(u64),
}

impl Standing {
    pub(super) fn new(suspects: Suspects) -> Standing {
        Standing { suspects, role: Role::Unknown { has_asked: false }, told: 0 }
    }

    /// Waits until the hives that are suspected have changed. Cancel-safe.
    pub(super) async fn changed(&mut self) {
        if self.suspects.changed().await.is_err() {
            // nobody looks any more: the hive is about to stop
            std::future::pending().await
        }
        if let Role::Unknown { has_asked } = &mut self.role {
            // the hive that had to tell may be the one that is suspected
            *has_asked = false
        }
    }

    /// Returns the generation of the driver, if it is the master, and the switch has accepted it.
    pub(super) fn mastership(&self) -> Option<u64> {
        match self.role {
            Role::Master(generation) => Some(generation),
            Role::Unknown { .. } | Role::StandsBy { .. } | Role::Appointed => None,
        }
    }

    /// Returns the generation of the newest decision of which the driver was told.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Takes note of the generation of a decision. Returns whether there is no newer one.
    fn is_newest(&mut self, generation: u64) -> bool {
        let is_newest = generation >= self.told;
        self.told = self.told.max(generation);
        is_newest
    }

    /// The driver is told that another one is the master. Returns `false` if that decision is not the newest one.
    pub(super) fn stands_by(&mut self, master: Address, generation: u64) -> bool {
        if !self.is_newest(generation) {
            return false;
        }
        self.role = Role::StandsBy { master, has_said: false };
        true
    }

    /// The driver is told that it is the master. Returns `false` if that decision is not the newest one.
    pub(super) fn appointed(&mut self, generation: u64) -> bool {
        let is_newest = self.is_newest(generation);
        if is_newest && self.mastership().is_none() {
            self.role = Role::Appointed
        }
        is_newest
    }

    /// The switch has accepted the driver as the master. Returns whether the decision is the newest one.
    pub(super) fn accepted(&mut self, generation: u64) -> bool {
        let is_master = generation == self.told && matches!(self.role, Role::Appointed | Role::Master(_));
        if is_master {
            self.role = Role::Master(generation)
        }
        is_master
    }

    /// Looks at the suspects. Returns what the driver has to say.
    pub(super) fn wish(&mut self, node: NodeId, driver: Address) -> Option<Wish> {
        let suspects = self.suspects.borrow_and_update();
        match &mut self.role {
            Role::Unknown { has_asked } => {
                let is_news = !std::mem::replace(has_asked, true);
                is_news.then_some(Wish::Role(DriverConnected { node, driver, newest: self.told }))
            }
            Role::StandsBy { master, has_said } => {
                let is_suspected = matches!(*master, Address::Io(hive, _) if suspects.contains(&hive));
                let is_news = is_suspected && !*has_said;
                *has_said = is_suspected;
                let master = *master;
                is_news.then_some(Wish::Mastership(MasterSuspected { node, driver, master }))
            }
            Role::Appointed | Role::Master(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;

    const NODE: NodeId = NodeId(1);

    fn driver(hive: u32) -> Address {
        Address::Io(HiveId(hive), 1)
    }

    /// A hive that was cut off delivers its decisions late.
    #[test]
    fn decisions_that_are_older_than_the_newest_one_are_not_followed() {
        let mut standing = Standing::new(watch::channel(BTreeSet::new()).1);
        assert!(standing.appointed(3) && standing.accepted(3));
        assert!(!standing.stands_by(driver(2), 2));
        assert_eq!(standing.mastership(), Some(3));
        assert!(standing.stands_by(driver(2), 4) && !standing.appointed(3) && !standing.accepted(3));
        assert_eq!(standing.mastership(), None);
        // the switch has answered an earlier request
        assert!(standing.appointed(6) && !standing.accepted(5) && standing.accepted(6));
        assert_eq!(standing.told(), 6)
    }

    #[test]
    fn a_driver_that_does_not_know_its_role_asks_again_when_the_suspects_change() {
        let (suspects, seen) = watch::channel(BTreeSet::new());
        let mut standing = Standing::new(seen);
        let asks = |standing: &mut Standing| matches!(standing.wish(NODE, driver(1)), Some(Wish::Role(_)));
        assert!(asks(&mut standing) && !asks(&mut standing));
        suspects.send_replace(BTreeSet::from([HiveId(2)]));
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::pin::pin!(standing.changed()).poll(context).is_ready());
        assert!(asks(&mut standing) && !asks(&mut standing))
    }

    #[test]
    fn each_suspicion_is_said_once_for_each_decision() {
        let (suspects, seen) = watch::channel(BTreeSet::from([HiveId(2)]));
        let mut standing = Standing::new(seen);
        let claims =
            |standing: &mut Standing| matches!(standing.wish(NODE, driver(1)), Some(Wish::Mastership(_)));
        standing.stands_by(driver(2), 1);
        assert!(claims(&mut standing) && !claims(&mut standing));
        assert!(standing.appointed(2) && standing.accepted(2) && !claims(&mut standing));
        standing.stands_by(driver(2), 3);
        assert!(claims(&mut standing) && !claims(&mut standing));
        suspects.send_replace(BTreeSet::new());
        assert!(!claims(&mut standing));
        suspects.send_replace(BTreeSet::from([HiveId(2)]));
        assert!(claims(&mut standing))
    }
}
