//! Implements a flow table with priorities, matches and timeouts.

use crate::object::{
    Actions, Cause, Conversation, Ethernet, Flow, FlowFlags, FlowKey, FlowRemovedReason, FoundFlow, PortNo,
    WithdrawFlows,
};
use beehive::Time;
use std::time::Duration;

/// A switch's flows.
#[derive(Debug, Default)]
pub struct FlowTable {
    /// The flows, highest priority first.
    flows: Vec<Installed>,
}

#[derive(Debug)]
struct Installed {
    flow: Flow,
    /// Whether another system installed the flow.
    foreign: bool,
    since: Time,
    used: Time,
    packets: u64,
    bytes: u64,
}

/// A flow that was removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The flow.
    pub flow: Flow,
    /// The reason.
    pub reason: FlowRemovedReason,
    /// Number of packets that the flow matched.
    pub packets: u64,
    /// Number of bytes that the flow matched.
    pub bytes: u64,
}

impl FlowTable {
    /// Installs a flow, replacing any flow with the same priority and match.
    pub fn install(&mut self, flow: &Flow, now: Time) {
        self.put(flow, false, now)
    }

    /// Installs another system's flow. The flow's owner is ignored.
    pub fn install_foreign(&mut self, flow: &Flow, now: Time) {
        self.put(flow, true, now)
    }

    fn put(&mut self, flow: &Flow, foreign: bool, now: Time) {
        self.flows.retain(|i| i.flow.priority != flow.priority || i.flow.matching != flow.matching);
        let at = self.flows.partition_point(|i| i.flow.priority >= flow.priority);
        let flow = flow.clone();
        self.flows.insert(at, Installed { flow, foreign, since: now, used: now, packets: 0, bytes: 0 });
    }

    /// Removes flows. If `knows_owners` is false, ignores the owner, as in OpenFlow 1.0.
    pub fn withdraw(&mut self, wanted: &WithdrawFlows, knows_owners: bool) -> Vec<Gone> {
        self.remove(|i| {
            let theirs =
                !knows_owners || !i.foreign && wanted.owner.is_none_or(|owner| owner == i.flow.owner);
            (theirs && wanted.scope.contains(&i.flow)).then_some(FlowRemovedReason::Withdrawn)
        })
    }

    /// Removes a flow without a report. Returns whether it existed.
    pub fn remove_silently(&mut self, key: FlowKey) -> bool {
        !self.remove(|i| (i.flow.key() == key).then_some(FlowRemovedReason::Withdrawn)).is_empty()
    }

    /// Returns the flows as a switch reports them.
    pub fn describe(&self, now: Time) -> Vec<FoundFlow> {
        let found = |Installed { flow, foreign, since, packets, bytes, .. }: &Installed| FoundFlow {
            table: 0,
            owner: (!foreign).then_some(flow.owner),
            cause: if *foreign { Cause::UNKNOWN } else { flow.cause },
            cookie: 0,
            priority: flow.priority,
            matching: flow.matching.clone(),
            actions: flow.actions.clone(),
            more: None,
            idle_s: flow.idle_s,
            hard_s: flow.hard_s,
            flags: Some(FlowFlags { reports_removal: !flow.is_soft(), ..FlowFlags::default() }),
            age_s: now.since(*since).as_secs().min(u64::from(u32::MAX)) as u32,
            packets: *packets,
            bytes: *bytes,
        };

        self.flows.iter().map(found).collect()
    }

    /// Removes expired flows.
    pub fn expire(&mut self, now: Time) -> Vec<Gone> {
        let over = |since: Time, seconds: u16| {
            seconds != 0 && now.since(since) >= Duration::from_secs(seconds.into())
        };
        self.remove(|i| {
            if over(i.since, i.flow.hard_s) {
                return Some(FlowRemovedReason::Hard);
            }
            over(i.used, i.flow.idle_s).then_some(FlowRemovedReason::Idle)
        })
    }

    fn remove(&mut self, why: impl Fn(&Installed) -> Option<FlowRemovedReason>) -> Vec<Gone> {
        let mut gone = Vec::new();
        self.flows.retain(|i| {
            let Some(reason) = why(i) else { return true };
            gone.push(Gone { flow: i.flow.clone(), reason, packets: i.packets, bytes: i.bytes });
            false
        });
        gone
    }

    /// Returns the actions of the flow that matches a packet, and counts the packet. Returns `None` if no flow
    /// matches.
    pub fn lookup(
        &mut self,
        port: PortNo,
        header: &Ethernet,
        conversation: Option<Conversation>,
        length: usize,
        now: Time,
    ) -> Option<Actions> {
        let taking = self.flows.iter_mut().find(|i| {
            let matching = &i.flow.matching;
            let fits =
                matching.conversation.is_none() || matching.conversation.as_deref() == conversation.as_ref();
            fits && matching.matches(port, header)
        })?;

        taking.used = now;
        taking.packets += 1;
        taking.bytes += length as u64;
        Some(taking.flow.actions.clone())
    }

    /// Iterates over the flows, highest priority first.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().map(|i| &i.flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Action, AddFlow, FlowMatch, FlowScope, NodeId, Owner};

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn flow(owner: &str, priority: u16, out: u32) -> AddFlow {
        let actions = Actions::One(Action::Output(PortNo(out)));
        AddFlow::new(NodeId(1), Owner::named(owner), FlowMatch::ANY, actions).priority(priority)
    }

    fn taken(table: &mut FlowTable, now: Time) -> Option<Actions> {
        let header = Ethernet::read(&[0; 20]).unwrap();
        table.lookup(PortNo(1), &header, None, 20, now)
    }

    #[test]
    fn the_highest_priority_wins_and_the_same_one_is_replaced() {
        let mut table = FlowTable::default();
        table.install(&flow("a", 5, 1).flow, at(0));
        table.install(&flow("a", 9, 2).flow, at(0));
        table.install(&flow("a", 7, 3).flow, at(0));
        table.install(&flow("a", 9, 4).flow, at(0));
        assert_eq!(table.flows().map(|f| f.priority).collect::<Vec<_>>(), [9, 7, 5]);
        assert!(taken(&mut table, at(0)).unwrap().output_to(PortNo(4)));
    }

    #[test]
    fn timeouts() {
        let mut table = FlowTable::default();
        table.install(
            &flow("a", 1, 1).idle(Duration::from_secs(10)).hard(Duration::from_secs(15)).flow,
            at(0),
        );
        assert!(table.expire(at(9)).is_empty() && taken(&mut table, at(9)).is_some());
        assert!(table.expire(at(14)).is_empty());
        assert_eq!(table.expire(at(15))[0].reason, FlowRemovedReason::Hard);

        table.install(&flow("a", 1, 1).idle(Duration::from_secs(10)).flow, at(20));
        assert_eq!(table.expire(at(30))[0].reason, FlowRemovedReason::Idle);
        assert!(taken(&mut table, at(30)).is_none());
    }

    #[test]
    fn owners_keep_what_is_theirs() {
        let mut table = FlowTable::default();
        table.install(&flow("a", 1, 1).flow, at(0));
        table.install(&flow("b", 2, 1).flow, at(0));
        let of_a = WithdrawFlows { owner: Some(Owner::named("a")), scope: FlowScope::All };
        assert_eq!(table.withdraw(&of_a, true).len(), 1);
        assert_eq!(table.withdraw(&of_a, false).len(), 1, "a switch that does not know owners");
    }
}
