//! Decides what to do with a flow found in a switch.

use crate::object::{Action, Flow, FoundFlow, Owner, PortNo};

/// The decision about a flow found in a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The flow is the intended one.
    Kept,
    /// The flow differs from the intended one with this key.
    Different,
    /// The intended flow was sent after the read began, so the reported flow is outdated.
    Superseded,
    /// A soft flow over usable ports, owned by an app that adopts its soft flows. The app checks it.
    Adopted(Owner),
    /// A soft flow of an app that has not adopted its soft flows so far. The flow stays until it expires. This includes
    /// flows of apps that are not running, because the node app does not know which apps are running.
    NotAdopted,
    /// A flow without a timeout that no app has requested so far and that would stay forever.
    Unclaimed(Owner),
    /// A soft flow over a port that is down or missing, owned by an app that adopts its soft flows.
    Stray(Owner),
    /// Another system's flow, or a flow that Beehive cannot have installed.
    Foreign,
}

impl Verdict {
    /// Decides about `found`. `intended` is the intended flow with the same key, together with whether it was sent
    /// after the read began. `adopts` returns whether an owner adopts its soft flows, and `usable` returns whether a
    /// port exists and is up.
    pub(super) fn on(
        found: &FoundFlow,
        intended: Option<(&Flow, bool)>,
        adopts: impl Fn(&Owner) -> bool,
        usable: impl Fn(&PortNo) -> bool,
    ) -> Verdict {
        match intended {
            Some((_, true)) => return Verdict::Superseded,
            Some((flow, false)) if found.is(flow) => return Verdict::Kept,
            Some((_, false)) => return Verdict::Different,
            None => {}
        }

        let Some(owner) = found.ours() else { return Verdict::Foreign };

        match found.is_soft() {
            true if !adopts(&owner) => Verdict::NotAdopted,
            true if !leads_somewhere(found, usable) => Verdict::Stray(owner),
            true => Verdict::Adopted(owner),
            false => Verdict::Unclaimed(owner),
        }
    }
}

/// Returns whether all ordinary ports in the match and the actions are usable. Otherwise, the flow drops the packets it
/// matches.
fn leads_somewhere(found: &FoundFlow, usable: impl Fn(&PortNo) -> bool) -> bool {
    let ordinary = |port: &PortNo| *port <= PortNo::MAX;
    let outputs = found.actions.as_slice().iter().filter_map(|action| match action {
        Action::Output(port) => Some(port),
        _ => None,
    });
    found.matching.port.iter().chain(outputs).filter(|port| ordinary(port)).all(usable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Actions, AddFlow, FlowMatch, NodeId};

    fn flow() -> Flow {
        let matching = FlowMatch { port: Some(PortNo(1)), ..FlowMatch::ANY };
        let out = Actions::One(Action::Output(PortNo(2)));
        AddFlow::new(NodeId(1), Owner::named("x"), matching, out).because::<AddFlow>().flow
    }

    fn found(flow: &Flow) -> FoundFlow {
        FoundFlow {
            table: 0,
            owner: Some(flow.owner),
            cause: flow.cause,
            cookie: 0,
            priority: flow.priority,
            matching: flow.matching.clone(),
            actions: flow.actions.clone(),
            more: None,
            idle_s: flow.idle_s,
            hard_s: flow.hard_s,
            flags: None,
            age_s: 5,
            packets: 6,
            bytes: 7,
        }
    }

    fn on(found: &FoundFlow, intended: Option<(&Flow, bool)>) -> Verdict {
        Verdict::on(found, intended, |owner| *owner == Owner::named("x"), |port| port.0 < 3)
    }

    #[test]
    fn intended_flows_are_kept_if_nothing_differs() {
        let (wanted, same) = (flow(), found(&flow()));
        assert_eq!(on(&same, Some((&wanted, false))), Verdict::Kept);
        assert_eq!(on(&same, Some((&wanted, true))), Verdict::Superseded);
        let changes: [fn(&mut FoundFlow); 6] = [
            |f| f.actions = Actions::None,
            |f| f.owner = None,
            |f| f.owner = Some(Owner::named("y")),
            |f| f.cause = Cause::UNKNOWN,
            |f| f.idle_s = 9,
            |f| f.hard_s = 9,
        ];

        use crate::object::Cause;
        for change in changes {
            let mut other = same.clone();
            change(&mut other);
            assert_eq!(on(&other, Some((&wanted, false))), Verdict::Different, "{other:?}");
        }
    }

    #[test]
    fn a_flow_without_a_timeout_must_be_requested_and_a_soft_one_is_checked_if_its_app_adopts() {
        let owner = Owner::named("x");
        let stray = found(&flow());
        assert_eq!(on(&stray, None), Verdict::Unclaimed(owner));
        let soft = FoundFlow { idle_s: 5, ..stray.clone() };
        assert_eq!(on(&soft, None), Verdict::Adopted(owner));

        for (port, out) in [(1, 3), (3, 1)] {
            let matching = FlowMatch { port: Some(PortNo(port)), ..FlowMatch::ANY };
            let actions = Actions::One(Action::Output(PortNo(out)));
            let dead = FoundFlow { matching, actions, ..soft.clone() };
            assert_eq!(on(&dead, None), Verdict::Stray(owner), "a port is down");
            let of_another = FoundFlow { owner: Some(Owner::named("y")), ..dead };
            assert_eq!(on(&of_another, None), Verdict::NotAdopted);
        }

        let up = Actions::One(Action::Output(PortNo::CONTROLLER));
        assert_eq!(on(&FoundFlow { actions: up, ..soft.clone() }, None), Verdict::Adopted(owner));

        let of_another = FoundFlow { owner: Some(Owner::named("y")), ..soft };
        assert_eq!(on(&of_another, None), Verdict::NotAdopted);
        let forever = FoundFlow { idle_s: 0, ..of_another };
        assert_eq!(on(&forever, None), Verdict::Unclaimed(Owner::named("y")));
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let stray = found(&flow());
        for foreign in [
            FoundFlow { owner: None, ..stray.clone() },
            FoundFlow { table: 1, ..stray.clone() },
            FoundFlow { more: Some("ip_protocol=6".into()), ..stray },
        ] {
            assert_eq!(on(&foreign, None), Verdict::Foreign, "{foreign:?}");
        }
    }
}
