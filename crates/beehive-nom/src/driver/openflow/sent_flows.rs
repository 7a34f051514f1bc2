//! Tracks the flows sent to a switch: their transaction ids, and whether they are confirmed.
//!
//! An error contains the transaction id of the message that caused it. A switch answers a barrier when it has
//! processed all messages before the barrier.

use crate::limits;
use crate::object::{Cause, Flow, FlowKey, Owner};
use std::collections::VecDeque;

/// A flow that was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SentFlow {
    xid: u32,
    pub(super) owner: Owner,
    pub(super) cause: Cause,
    pub(super) flow: FlowKey,
}

/// The flows in flight to the switch.
#[derive(Debug, Default)]
pub(super) struct SentFlows {
    /// The most recently sent flows, in a ring buffer.
    recent: Vec<SentFlow>,
    /// Index of the next entry to write in `recent`.
    next: usize,
    /// Intended flows not yet confirmed by a barrier, in sending order. A refused flow is `None`.
    unconfirmed: VecDeque<(u32, Option<FlowKey>)>,
    /// Transaction id of the barrier in flight.
    barrier: Option<u32>,
}

impl SentFlows {
    /// Records that a flow was encoded with the transaction id `xid`.
    #[inline]
    pub(super) fn sent(&mut self, xid: u32, flow: &Flow) {
        let sent = SentFlow { xid, owner: flow.owner, cause: flow.cause, flow: flow.key() };
        match self.recent.get_mut(self.next) {
            Some(oldest) => *oldest = sent,
            None => self.recent.push(sent),
        }

        self.next = (self.next + 1) % limits::SENT_FLOWS_MAX; // a power of two
        if !flow.is_soft() {
            self.expect_confirmation(xid, flow.key())
        }
    }

    #[cold]
    fn expect_confirmation(&mut self, xid: u32, flow: FlowKey) {
        if self.unconfirmed.len() >= limits::INTENDED_FLOWS_PER_NODE_MAX {
            // the switch does not answer barriers, so its flows are confirmed when they are read
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back((xid, Some(flow)));
    }

    /// Returns whether a barrier should be sent.
    #[inline]
    pub(super) fn wants_barrier(&self) -> bool {
        !self.unconfirmed.is_empty() && self.barrier.is_none()
    }

    /// Records that a barrier was encoded with the transaction id `xid`.
    pub(super) fn barrier(&mut self, xid: u32) {
        self.barrier = Some(xid)
    }

    /// Handles the reply to the barrier `xid`. Returns the flows that are now known to be installed, or `None` if
    /// that barrier is not in flight.
    pub(super) fn confirmed(&mut self, xid: u32) -> Option<Vec<FlowKey>> {
        if self.barrier != Some(xid) {
            return None;
        }
        self.barrier = None;
        let done = self.unconfirmed.partition_point(|(sent, _)| is_before(*sent, xid));
        Some(self.unconfirmed.drain(..done).filter_map(|(_, flow)| flow).collect())
    }

    /// Handles an error reported by the switch for the message `xid`. Returns whether that message was the
    /// barrier in flight. If so, the switch does not support barriers, and the flows sent so far are
    /// confirmed when they are read.
    pub(super) fn barrier_refused(&mut self, xid: u32) -> bool {
        let refused = self.barrier == Some(xid);
        if refused {
            self.barrier = None;
            self.unconfirmed.clear()
        }
        refused
    }

    /// Handles an error reported by the switch for the message `xid`. Returns the flow in that message, if it
    /// is still remembered.
    pub(super) fn refused(&mut self, xid: u32) -> Option<SentFlow> {
        let at = self.unconfirmed.partition_point(|(sent, _)| is_before(*sent, xid));
        if let Some((sent, flow)) = self.unconfirmed.get_mut(at)
            && *sent == xid
        {
            *flow = None
        }
        self.recent.iter().find(|sent| sent.xid == xid).cloned()
    }
}

/// Returns whether the transaction id `a` was assigned before `b`. Ids wrap around.
fn is_before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Actions, AddFlow, FlowMatch, NodeId};
    use std::time::Duration;

    fn flow(priority: u16) -> Flow {
        AddFlow::new(NodeId(1), Owner::named("x"), FlowMatch::ANY, Actions::None).priority(priority).flow
    }

    #[test]
    fn a_barrier_confirms_what_was_sent_before_it_and_was_not_refused() {
        for start in [1, u32::MAX - 1] {
            let mut commands = SentFlows::default();
            let xid = |n: u32| start.wrapping_add(n);
            (0..3).for_each(|n| commands.sent(xid(n), &flow(n as u16)));
            assert!(commands.wants_barrier());
            commands.barrier(xid(3));
            commands.sent(xid(4), &flow(4));
            assert!(!commands.wants_barrier(), "one at a time");
            assert_eq!(commands.refused(xid(1)).map(|sent| sent.flow.0), Some(1));
            assert_eq!(commands.confirmed(xid(7)), None, "no such barrier was sent");
            assert_eq!(commands.confirmed(xid(3)), Some(vec![flow(0).key(), flow(2).key()]));
            assert!(commands.wants_barrier(), "for the flow that was sent after the barrier");
        }
    }

    #[test]
    fn soft_flows_are_remembered_but_not_confirmed() {
        let mut commands = SentFlows::default();
        let soft = |n: u32| {
            let mut flow = flow(n as u16);
            flow.idle_s = 5;
            flow
        };
        let count = limits::SENT_FLOWS_MAX as u32 + 10;
        (0..count).for_each(|n| commands.sent(n, &soft(n)));
        assert!(!commands.wants_barrier());

        assert_eq!(commands.refused(count - 1).map(|sent| sent.flow.0), Some(count as u16 - 1));
        assert_eq!(commands.refused(5), None, "too long ago");
        assert_eq!(commands.recent.len(), limits::SENT_FLOWS_MAX);
    }

    #[test]
    fn a_switch_without_barriers_holds_nothing_up() {
        let mut commands = SentFlows::default();
        commands.sent(1, &flow(1));
        commands.barrier(2);
        assert!(!commands.barrier_refused(1) && commands.barrier_refused(2));
        assert!(!commands.wants_barrier());

        let begun = std::time::Instant::now();
        let most = limits::INTENDED_FLOWS_PER_NODE_MAX as u32;
        (3..most + 100).for_each(|xid| commands.sent(xid, &flow(1)));
        assert_eq!(commands.unconfirmed.len(), most as usize);
        assert!((3..most).all(|xid| commands.refused(xid).is_none() || xid + 600 > most));

        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
