//! `/api/v1/flows` compares the flows of switches with the intended ones; `/api/v1/flows/verify` reconciles
//! them immediately.

use crate::api::{self, Failure, FlowState, Flows, Reading, Refused, Verified};
use crate::http::Served;
use crate::http::fan_out::{QuerySlot, next, query_each};
use crate::http::ofctl;
use crate::http::switches::{SwitchQuery, node, query};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use beehive_core::{Address, Hive, RequestError};
use beehive_nom::object::{
    Action, Actions, Cause, DescribeNode, Flow, FlowKey, FlowMatch, FlowState as IntendedState, FlowsRead,
    FoundFlow, IntendedFlow, NodeDescription, NodeId, Owner, ReadFlows, Tag, VerifyFlows,
};
use beehive_of::Version;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;
use utoipa::IntoParams;

/// Maximum number of flows in an answer. To see more flows, a client queries one switch at a time.
const FLOWS_MAX: usize = 100_000;
/// Time within which all switches must have reported their flows.
const SWITCHES_TIMEOUT: Duration = Duration::from_secs(8);
/// The query parameters of `/api/v1/flows`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowsQuery {
    /// Datapath id of a switch. Default: all switches.
    switch: Option<String>,
    /// Return only flows that differ from the intended ones, and flows of other controllers.
    #[serde(default)]
    drift: bool,
    /// Also return each flow in the syntax of `ovs-ofctl`.
    #[serde(default)]
    ofctl: bool,
}

/// Lists the flows of the switches: installed and intended ones, with their apps and causes.
#[utoipa::path(get, path = "/api/v1/flows", params(FlowsQuery), responses((status = 200, body = Flows), Failure))]
pub(super) async fn flows(
    State(served): State<Served>,
    which: Result<Query<FlowsQuery>, QueryRejection>,
) -> Result<Json<Flows>, Failure> {
    let FlowsQuery { switch, drift, ofctl } = query(which)?;
    let deadline = Instant::now() + SWITCHES_TIMEOUT;
    let names = Names::of(&served.hive);
    let versions = if ofctl { versions(&served) } else { HashMap::new() };
    let mut answer = Flows::default();

    let mut queries = query_each(nodes(&served, switch.as_deref())?, |node, mut slot| {
        let hive = served.hive.clone();
        async move {
            slot.acquire().await;
            let Some(described) = describe(&hive, node).await? else { return Ok(None) };
            let intended = described.flows.iter().map(|intended| intended.flow.key()).collect();
            let found = match described.driver {
                Some(driver) => {
                    found(&hive, driver, CollectedFlows::keeping(intended), &mut slot, deadline).await
                }
                None => None,
            };

            // the slot is held until the flows have been compared, which bounds the number of lists in memory
            Ok(Some((described, found, slot)))
        }
    });

    while let Some((node, told)) = next(&mut queries).await? {
        let Some((described, found, _slot)) = told else { continue };
        if found.is_none() {
            answer.unread.push(node.to_string())
        }

        let now = served.hive.now();
        answer.refused.extend(described.failures.iter().map(|failure| Refused {
            switch: node.to_string(),
            seconds_ago: now.since(failure.at).as_secs(),
            app: names.app(failure.owner),
            cause: names.cause(failure.cause),
            priority: failure.flow.as_ref().map(|(priority, _)| *priority),
            matching: failure.flow.as_ref().map(|(_, matching)| match_text(matching, None)),
            why: failure.why.clone(),
        }));

        let version = versions.get(&node).copied();
        let mut compared = match found {
            Some(CollectedFlows { flows, truncated, .. }) => {
                answer.truncated |= truncated;
                compare(node, described, flows, &names, version)
            }
            None => {
                described.flows.into_iter().map(|intended| unknown(node, intended, &names, version)).collect()
            }
        };

        compared.retain(|flow| !drift || !flow.state.is_wanted());
        answer.flows.append(&mut compared);
        if answer.flows.len() > FLOWS_MAX {
            answer.flows.truncate(FLOWS_MAX);
            answer.truncated = true;
            break;
        }
    }

    // switches answer in any order; the flows of each switch are already sorted
    answer.flows.sort_by(|a, b| a.switch.cmp(&b.switch));
    answer.refused.sort_by(|a, b| a.switch.cmp(&b.switch));
    answer.unread.sort();
    Ok(Json(answer))
}

/// Reconciles the flows of switches at once.
#[utoipa::path(post, path = "/api/v1/flows/verify", params(SwitchQuery), responses((status = 200, body = Verified), Failure))]
pub(super) async fn verify(
    State(served): State<Served>,
    which: Result<Query<SwitchQuery>, QueryRejection>,
) -> Result<Json<Verified>, Failure> {
    let switch = query(which)?.into_switch();
    let deadline = Instant::now() + SWITCHES_TIMEOUT;
    let mut answer = Verified::default();
    let mut queries = query_each(nodes(&served, switch.as_deref())?, |node, slot| {
        verify_switch(served.hive.clone(), node, slot, deadline)
    });

    while let Some((node, put_right)) = next(&mut queries).await? {
        let switch = node.to_string();
        match put_right {
            Verification::Disconnected => {}
            Verification::Unread => answer.unread.push(switch),
            Verification::Done(r) => answer.switches.push(Reading {
                switch,
                kept: r.kept,
                soft: r.soft,
                installed: r.installed,
                withdrawn: r.withdrawn,
                foreign: r.foreign,
            }),
        }
    }

    answer.switches.sort_by(|a, b| a.switch.cmp(&b.switch));
    answer.unread.sort();
    Ok(Json(answer))
}

/// Outcome of reconciling one switch's flows.
enum Verification {
    /// The switch is not connected.
    Disconnected,
    /// The switch did not report its flows in time, or disconnected meanwhile.
    Unread,
    /// The flows were compared and corrected.
    Done(beehive_nom::object::Reading),
}

/// Starts a reconciliation and polls the node app until it is complete.
async fn verify_switch(
    hive: Hive,
    node: NodeId,
    mut slot: QuerySlot,
    deadline: Instant,
) -> Result<Verification, Failure> {
    slot.acquire().await;
    let Some(before) = describe(&hive, node).await? else { return Ok(Verification::Disconnected) };
    match hive.request(VerifyFlows { node }).await {
        Ok(()) => {}
        Err(RequestError::Handler(_)) => return Ok(Verification::Unread),
        Err(error) => return Err(Failure::of_request(error)),
    }

    loop {
        match describe(&hive, node).await? {
            Some(now) if now.reading.complete && now.reading.number > before.reading.number => {
                return Ok(Verification::Done(now.reading));
            }
            _ if Instant::now() >= deadline => return Ok(Verification::Unread),
            _ => tokio::time::sleep(slot.poll_interval()).await,
        }
    }
}

/// Returns the OpenFlow version of each connected switch.
fn versions(served: &Served) -> HashMap<NodeId, Version> {
    let status = served.directory.status(served.hive.now()).into_iter().filter(|status| !status.auxiliary);
    status
        .filter_map(|status| Some((node(status.node.as_deref()?).ok()?, ofctl::version(status.protocol))))
        .collect()
}

/// Returns the switch with this datapath id, or all connected switches.
fn nodes(served: &Served, switch: Option<&str>) -> Result<Vec<NodeId>, Failure> {
    if let Some(text) = switch {
        let node = node(text)?;
        return if served.directory.contains(node) {
            Ok(vec![node])
        } else {
            Err(Failure::unknown_switch(node))
        };
    }

    let status = served.directory.status(served.hive.now());
    let main = status.iter().filter(|status| status.ready && !status.auxiliary);
    Ok(main.filter_map(|status| node(status.node.as_deref()?).ok()).collect())
}

/// Asks the node app about a switch. Returns `None` if the app does not know it.
async fn describe(hive: &Hive, node: NodeId) -> Result<Option<NodeDescription>, Failure> {
    match hive.request(DescribeNode { node }).await {
        Ok(described) => Ok(Some(described)),
        Err(RequestError::NoAnswer { .. }) => Ok(None),
        Err(error) => Err(Failure::of_request(error)),
    }
}

/// Reads a switch's flows through its driver. Returns `None` if the switch does not report them by
/// `deadline`.
async fn found(
    hive: &Hive,
    driver: Address,
    mut collected: CollectedFlows,
    slot: &mut QuerySlot,
    deadline: Instant,
) -> Option<CollectedFlows> {
    let mut io = hive.io();
    let asker = io.address();
    io.send(driver, ReadFlows { reading: 0, asker: Some(asker) });
    tokio::time::timeout_at(deadline, io.flush()).await.ok()?;

    loop {
        let mail = match collected.flows.is_empty() {
            true => slot.receive_or_release(deadline, io.receive()).await?,
            // keeps the slot, because the flows received so far are in memory
            false => tokio::time::timeout_at(deadline, io.receive()).await.ok()?,
        };

        for part in mail.messages::<FlowsRead>().into_iter().flatten() {
            collected.take(&part.flows);
            if part.last {
                return Some(collected);
            }
        }
    }
}

/// The flows reported by a switch, up to a limit.
struct CollectedFlows {
    /// The first [`FLOWS_MAX`] flows, and all intended flows beyond them, which would otherwise be reported
    /// as missing.
    flows: Vec<FoundFlow>,
    /// Intended flows not yet reported by the switch.
    intended: HashSet<FlowKey>,
    /// Whether some flows were left out.
    truncated: bool,
}

impl CollectedFlows {
    /// Returns an empty collection that keeps the `intended` flows even beyond the limit.
    fn keeping(intended: HashSet<FlowKey>) -> CollectedFlows {
        CollectedFlows { flows: Vec::new(), intended, truncated: false }
    }

    fn take(&mut self, part: &[FoundFlow]) {
        for flow in part {
            if self.flows.len() < FLOWS_MAX || self.intended.remove(&flow.key()) {
                self.flows.push(flow.clone())
            } else {
                self.truncated = true
            }
        }
    }
}

/// Maps the numbers in cookies to app and message type names.
struct Names {
    apps: HashMap<Owner, &'static str>,
    messages: HashMap<Cause, &'static str>,
}

impl Names {
    fn of(hive: &Hive) -> Names {
        let status = hive.status();
        let apps = status.apps.iter().map(|app| (Owner::named(app.name), app.name)).collect();
        let handlers = status.apps.iter().flat_map(|app| &app.handlers);
        let short = |name: &'static str| name.rsplit("::").next().unwrap_or(name);
        let messages = handlers.map(|h| (Cause::named(h.message), short(h.message))).collect();
        Names { apps, messages }
    }

    /// Returns the name of the app, or its number if the app is not running.
    fn app(&self, owner: Owner) -> Option<String> {
        Some(self.apps.get(&owner).map_or_else(|| format!("#{:08x}", owner.number()), ToString::to_string))
    }

    /// Returns the name of the message type, or its number if no running app handles it.
    fn cause(&self, cause: Cause) -> Option<String> {
        let name = self.messages.get(&cause).map(ToString::to_string);
        name.or_else(|| (cause != Cause::UNKNOWN).then(|| format!("#{:04x}", cause.number())))
    }
}

/// Compares the installed flows with the intended ones.
fn compare(
    node: NodeId,
    described: NodeDescription,
    found: Vec<FoundFlow>,
    names: &Names,
    version: Option<Version>,
) -> Vec<api::Flow> {
    let mut wanted: BTreeMap<FlowKey, IntendedFlow> =
        described.flows.into_iter().map(|intended| (intended.flow.key(), intended)).collect();
    let mut list = Vec::with_capacity(found.len());
    for found in found {
        // every intended flow is in table 0 and can be fully expressed by network objects
        let comparable = found.table == 0 && found.more.is_none();
        let intended = if comparable { wanted.remove(&found.key()) } else { None };
        let (state, why) = match (&intended, found.ours()) {
            (Some(intended), _) if found.is(&intended.flow) => (FlowState::Intended, None),
            (Some(intended), _) => (FlowState::Different, Some(intended_actions(intended, names))),
            (None, Some(_)) if found.is_soft() => (FlowState::Soft, None),
            (None, Some(_)) => (FlowState::Stray, None),
            (None, None) => (FlowState::Foreign, None),
        };

        list.push(api::Flow {
            switch: node.to_string(),
            state,
            app: found.owner.and_then(|owner| names.app(owner)),
            cause: names.cause(found.cause),
            table: found.table,
            priority: found.priority,
            matching: match_text(&found.matching, found.more.as_deref()),
            actions: actions_text(&found.actions),
            idle_s: found.idle_s,
            hard_s: found.hard_s,
            age_s: Some(found.age_s),
            packets: found.packets,
            bytes: found.bytes,
            cookie: Some(format!("{:#x}", found.cookie)),
            why,
            ofctl: version.and_then(|version| ofctl::found(&found, version)),
        })
    }

    let missing = |IntendedFlow { flow, state }| {
        intended_only(node, FlowState::Missing, flow, state_text(&state), names, version)
    };
    list.extend(wanted.into_values().map(missing));
    list.sort_by(|a, b| {
        let by_priority = (a.table, b.priority).cmp(&(b.table, a.priority));
        by_priority.then_with(|| a.matching.cmp(&b.matching))
    });

    list
}

/// Describes an intended flow of a switch that has not reported its flows.
fn unknown(
    node: NodeId,
    IntendedFlow { flow, state }: IntendedFlow,
    names: &Names,
    version: Option<Version>,
) -> api::Flow {
    let why = match state {
        IntendedState::Confirmed => "was installed earlier; the switch does not report its flows".to_string(),
        state => state_text(&state),
    };
    intended_only(node, FlowState::Unknown, flow, why, names, version)
}

/// Describes an intended flow that is not known to be installed.
fn intended_only(
    node: NodeId,
    state: FlowState,
    flow: Flow,
    why: String,
    names: &Names,
    version: Option<Version>,
) -> api::Flow {
    api::Flow {
        switch: node.to_string(),
        state,
        app: names.app(flow.owner),
        cause: names.cause(flow.cause),
        table: 0,
        priority: flow.priority,
        matching: match_text(&flow.matching, None),
        actions: actions_text(&flow.actions),
        idle_s: flow.idle_s,
        hard_s: flow.hard_s,
        age_s: None,
        packets: 0,
        bytes: 0,
        cookie: None,
        why: Some(why),
        ofctl: version.and_then(|version| ofctl::intended(&flow, version)),
    }
}

fn intended_actions(intended: &IntendedFlow, names: &Names) -> String {
    let app = names.app(intended.flow.owner).unwrap_or_default();
    format!("{app} wants {}", actions_text(&intended.flow.actions))
}

fn state_text(state: &IntendedState) -> String {
    match state {
        IntendedState::Waiting => "not sent to the switch yet".into(),
        IntendedState::Sent => "sent to the switch, but not confirmed yet".into(),
        IntendedState::Confirmed => "was installed, but has been removed".into(),
        IntendedState::Refused { why, times } => format!("refused {times} times: {why}"),
        other => format!("{other:?}"),
    }
}

fn match_text(m: &FlowMatch, more: Option<&str>) -> String {
    let tag = m.tag.map(|tag| match tag {
        Tag::Untagged => "vlan=none".to_string(),
        Tag::Id(vlan) => format!("vlan={}", vlan.0),
    });

    let spoken = m.conversation.as_deref();
    let fields = [
        m.port.map(|port| format!("in_port={port}")),
        m.source.map(|mac| format!("eth_src={mac}")),
        m.destination.map(|mac| format!("eth_dst={mac}")),
        tag,
        m.ethertype.map(|kind| format!("eth_type={kind:#06x}")),
        spoken.map(|c| format!("ip_protocol={},ip_src={},ip_dst={}", c.protocol, c.source, c.destination)),
        spoken.map(|c| format!("port_src={},port_dst={}", c.source_port, c.destination_port)),
        more.map(ToString::to_string),
    ];

    fields.into_iter().flatten().collect::<Vec<_>>().join(",")
}

fn actions_text(actions: &Actions) -> String {
    let word = |action: &Action| match action {
        Action::Output(port) => format!("output:{port}"),
        Action::SetSource(mac) => format!("set_eth_src:{mac}"),
        Action::SetDestination(mac) => format!("set_eth_dst:{mac}"),
        Action::PopTag => "pop_vlan".to_string(),
        other => format!("{other:?}"),
    };

    let words: Vec<String> = actions.as_slice().iter().map(word).collect();
    if words.is_empty() { "drop".into() } else { words.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: u32) -> FoundFlow {
        FoundFlow {
            table: 0,
            owner: None,
            cause: Cause::UNKNOWN,
            cookie: 0,
            priority: 1,
            matching: FlowMatch { port: Some(beehive_nom::object::PortNo(number)), ..FlowMatch::ANY },
            actions: Actions::None,
            more: None,
            idle_s: 0,
            hard_s: 0,
            flags: None,
            age_s: 0,
            packets: 0,
            bytes: 0,
        }
    }

    #[test]
    fn intended_flows_beyond_the_limit_are_not_missing() {
        let last = FLOWS_MAX as u32 + 500;
        let (priority, matching) = found(last).key();
        let mut collected = CollectedFlows::keeping([(priority, matching.clone())].into());
        let all: Vec<_> = (1..=last).map(found).collect();

        // the last part is reported twice
        all.chunks(600).chain([&all[all.len() - 1..]]).for_each(|part| collected.take(part));
        assert_eq!((collected.truncated, collected.flows.len()), (true, FLOWS_MAX + 1));
        let flow =
            beehive_nom::object::AddFlow::new(NodeId(1), Owner::named("x"), matching, Actions::None).flow;

        let flow = Flow { priority, ..flow };
        let described = NodeDescription {
            driver: None,
            reading: beehive_nom::object::Reading::default(),
            flows: vec![IntendedFlow { flow, state: IntendedState::Confirmed }],
            failures: Vec::new(),
        };

        let names = Names { apps: HashMap::new(), messages: HashMap::new() };
        let compared = compare(NodeId(1), described, collected.flows, &names, None);
        assert!(compared.iter().all(|flow| !matches!(flow.state, FlowState::Missing)));
        assert_eq!(compared.iter().filter(|flow| matches!(flow.state, FlowState::Different)).count(), 1);
    }
}
