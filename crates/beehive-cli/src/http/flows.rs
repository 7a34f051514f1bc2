//! `/api/v1/flows`: what switches have and what they should have, side by side; and `/flows/verify`, which has them put
//! right at once.

use crate::api::{self, Failure, FlowState, Flows, Reading, Refused, Verified};
use crate::http::Served;
use crate::http::switches::{node, query};
use crate::http::turns::{Turn, ask_each, next};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use beehive_core::{Address, Hive, RequestError};
use beehive_nom::object::{
    Action, Actions, Cause, DescribeNode, Flow, FlowKey, FlowMatch, FlowState as Became, FlowsRead,
    FoundFlow, IntendedFlow, NodeDescription, NodeId, Owner, ReadFlows, Tag, VerifyFlows,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;
use utoipa::IntoParams;

/// Flows that are told at once; beyond that one switch at a time has to be asked for.
const FLOWS_MAX: usize = 100_000;
/// How long the switches may take, all together.
const PATIENCE: Duration = Duration::from_secs(8);
/// Which flows are asked about.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Those of this switch; none: of all.
    switch: Option<String>,
    /// Only those where what is there and what should be there differ, and those of others.
    #[serde(default)]
    drift: bool,
}

/// The flows of the switches: what is there, what should be there, which app wants it and what for.
#[utoipa::path(get, path = "/api/v1/flows", params(Which), responses((status = 200, body = Flows), Failure))]
pub(super) async fn flows(
    State(served): State<Served>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Flows>, Failure> {
    let Which { switch, drift } = query(which)?;
    let deadline = Instant::now() + PATIENCE;
    let names = Names::of(&served.hive);
    let mut answer = Flows::default();
    let mut asked = ask_each(nodes(&served, switch.as_deref())?, |node, mut turn| {
        let hive = served.hive.clone();
        async move {
            turn.begin().await;
            let Some(described) = describe(&hive, node).await? else { return Ok(None) };
            let intended = described.flows.iter().map(|intended| intended.flow.key()).collect();
            let found = match described.driver {
                Some(driver) => found(&hive, driver, Told::besides(intended), &mut turn, deadline).await,
                None => None,
            };
            // with its turn: what waits to be compared is bounded, too
            Ok(Some((described, found, turn)))
        }
    });
    while let Some((node, told)) = next(&mut asked).await? {
        let Some((described, found, _turn)) = told else { continue };
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
            matching: failure.flow.as_ref().map(|(_, matching)| match_words(matching, None)),
            why: failure.why.clone(),
        }));
        let mut compared = match found {
            Some(Told { flows, cut, .. }) => {
                answer.truncated |= cut;
                compare(node, described, flows, &names)
            }
            None => described.flows.into_iter().map(|intended| unknown(node, intended, &names)).collect(),
        };
        compared.retain(|flow| !drift || !flow.state.is_wanted());
        answer.flows.append(&mut compared);
        if answer.flows.len() > FLOWS_MAX {
            answer.flows.truncate(FLOWS_MAX);
            answer.truncated = true;
            break;
        }
    }
    // each came when its switch had told it; within one they are in order
    answer.flows.sort_by(|a, b| a.switch.cmp(&b.switch));
    answer.refused.sort_by(|a, b| a.switch.cmp(&b.switch));
    answer.unread.sort();
    Ok(Json(answer))
}

/// Has flows put right at once.
#[utoipa::path(post, path = "/api/v1/flows/verify", params(super::switches::Which), responses((status = 200, body = Verified), Failure))]
pub(super) async fn verify(
    State(served): State<Served>,
    which: Result<Query<super::switches::Which>, QueryRejection>,
) -> Result<Json<Verified>, Failure> {
    let switch = query(which)?.into_switch();
    let deadline = Instant::now() + PATIENCE;
    let mut answer = Verified::default();
    let mut asked = ask_each(nodes(&served, switch.as_deref())?, |node, turn| {
        put_right(served.hive.clone(), node, turn, deadline)
    });
    while let Some((node, put_right)) = next(&mut asked).await? {
        let switch = node.to_string();
        match put_right {
            PutRight::Gone => {}
            PutRight::Untold => answer.unread.push(switch),
            PutRight::Done(r) => answer.switches.push(Reading {
                switch,
                kept: r.kept,
                adopted: r.adopted,
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

/// What became of the flows of one switch.
enum PutRight {
    /// It is not there.
    Gone,
    /// It does not tell its flows, or has left meanwhile.
    Untold,
    Done(beehive_nom::object::Reading),
}

async fn put_right(hive: Hive, node: NodeId, mut turn: Turn, deadline: Instant) -> Result<PutRight, Failure> {
    turn.begin().await;
    let Some(before) = describe(&hive, node).await? else { return Ok(PutRight::Gone) };
    match hive.request(VerifyFlows { node }).await {
        Ok(()) => {}
        Err(RequestError::Handler(_)) => return Ok(PutRight::Untold),
        Err(error) => return Err(Failure::unavailable(error)),
    }
    loop {
        match describe(&hive, node).await? {
            Some(now) if now.reading.complete && now.reading.number > before.reading.number => {
                return Ok(PutRight::Done(now.reading));
            }
            _ if Instant::now() >= deadline => return Ok(PutRight::Untold),
            _ => tokio::time::sleep(turn.look()).await,
        }
    }
}

/// The switches that are meant.
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

async fn describe(hive: &Hive, node: NodeId) -> Result<Option<NodeDescription>, Failure> {
    match hive.request(DescribeNode { node }).await {
        Ok(described) => Ok(Some(described)),
        Err(RequestError::NoAnswer { .. }) => Ok(None),
        Err(error) => Err(Failure::unavailable(error)),
    }
}

/// What the switch has, by way of its driver; none: it does not tell in time.
async fn found(
    hive: &Hive,
    driver: Address,
    mut told: Told,
    turn: &mut Turn,
    deadline: Instant,
) -> Option<Told> {
    let mut io = hive.io();
    let asker = io.address();
    io.send(driver, ReadFlows { reading: 0, asker: Some(asker) });
    tokio::time::timeout_at(deadline, io.flush()).await.ok()?;
    loop {
        let mail = match told.flows.is_empty() {
            true => turn.unless_silent(deadline, io.receive()).await?,
            // it keeps its turn: what it has told is in memory
            false => tokio::time::timeout_at(deadline, io.receive()).await.ok()?,
        };
        for part in mail.messages::<FlowsRead>().into_iter().flatten() {
            told.take(&part.flows);
            if part.last {
                return Some(told);
            }
        }
    }
}

/// What a switch has told, as far as it is kept.
struct Told {
    /// The first flows, and of the others those that should be there: they must not seem to be missing.
    flows: Vec<FoundFlow>,
    intended: HashSet<FlowKey>,
    /// Whether there are more.
    cut: bool,
}

impl Told {
    fn besides(intended: HashSet<FlowKey>) -> Told {
        Told { flows: Vec::new(), intended, cut: false }
    }

    fn take(&mut self, part: &[FoundFlow]) {
        for flow in part {
            if self.flows.len() < FLOWS_MAX || self.intended.remove(&flow.key()) {
                self.flows.push(flow.clone())
            } else {
                self.cut = true
            }
        }
    }
}

/// Names of what switches keep numbers of.
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

    /// The app; its number if it does not run.
    fn app(&self, owner: Owner) -> Option<String> {
        Some(self.apps.get(&owner).map_or_else(|| format!("#{:08x}", owner.number()), ToString::to_string))
    }

    /// The message; its number if no app that runs handles it.
    fn cause(&self, cause: Cause) -> Option<String> {
        let name = self.messages.get(&cause).map(ToString::to_string);
        name.or_else(|| (cause != Cause::UNKNOWN).then(|| format!("#{:04x}", cause.number())))
    }
}

fn compare(node: NodeId, described: NodeDescription, found: Vec<FoundFlow>, names: &Names) -> Vec<api::Flow> {
    let mut wanted: BTreeMap<FlowKey, IntendedFlow> =
        described.flows.into_iter().map(|intended| (intended.flow.key(), intended)).collect();
    let mut list = Vec::with_capacity(found.len());
    for found in found {
        // what is in another table, or cannot be said here, is not in the place of one of ours
        let sayable = found.table == 0 && found.more.is_none();
        let intended = if sayable { wanted.remove(&found.key()) } else { None };
        let (state, why) = match (&intended, found.ours()) {
            (Some(intended), _) if found.is(&intended.flow) => (FlowState::Intended, None),
            (Some(intended), _) => (FlowState::Different, Some(should_be(intended, names))),
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
            matching: match_words(&found.matching, found.more.as_deref()),
            actions: action_words(&found.actions),
            idle_s: found.idle_s,
            hard_s: found.hard_s,
            age_s: Some(found.age_s),
            packets: found.packets,
            bytes: found.bytes,
            cookie: Some(format!("{:#x}", found.cookie)),
            why,
        })
    }
    let missing =
        |IntendedFlow { flow, state }| not_seen(node, FlowState::Missing, flow, became(&state), names);
    list.extend(wanted.into_values().map(missing));
    list.sort_by(|a, b| {
        let by_priority = (a.table, b.priority).cmp(&(b.table, a.priority));
        by_priority.then_with(|| a.matching.cmp(&b.matching))
    });
    list
}

/// A flow that should be in a switch which has not told what it has.
fn unknown(node: NodeId, IntendedFlow { flow, state }: IntendedFlow, names: &Names) -> api::Flow {
    let why = match state {
        Became::Confirmed => "it was there; the switch does not tell its flows".to_string(),
        state => became(&state),
    };
    not_seen(node, FlowState::Unknown, flow, why, names)
}

/// A flow as it should be.
fn not_seen(node: NodeId, state: FlowState, flow: Flow, why: String, names: &Names) -> api::Flow {
    api::Flow {
        switch: node.to_string(),
        state,
        app: names.app(flow.owner),
        cause: names.cause(flow.cause),
        table: 0,
        priority: flow.priority,
        matching: match_words(&flow.matching, None),
        actions: action_words(&flow.actions),
        idle_s: flow.idle_s,
        hard_s: flow.hard_s,
        age_s: None,
        packets: 0,
        bytes: 0,
        cookie: None,
        why: Some(why),
    }
}

fn should_be(intended: &IntendedFlow, names: &Names) -> String {
    let app = names.app(intended.flow.owner).unwrap_or_default();
    format!("{app} wants {}", action_words(&intended.flow.actions))
}

fn became(state: &Became) -> String {
    match state {
        Became::Waiting => "the switch has not been told yet".into(),
        Became::Sent => "the switch has been told, and has not confirmed it".into(),
        Became::Confirmed => "it was there, and has gone".into(),
        Became::Refused { why, times } => format!("refused {times} times: {why}"),
        other => format!("{other:?}"),
    }
}

fn match_words(m: &FlowMatch, more: Option<&str>) -> String {
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

fn action_words(actions: &Actions) -> String {
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
            age_s: 0,
            packets: 0,
            bytes: 0,
        }
    }

    #[test]
    fn what_should_be_there_is_found_among_however_many() {
        let last = FLOWS_MAX as u32 + 500;
        let (priority, matching) = found(last).key();
        let mut told = Told::besides([(priority, matching.clone())].into());
        let all: Vec<_> = (1..=last).map(found).collect();
        // a switch may say anything twice
        all.chunks(600).chain([&all[all.len() - 1..]]).for_each(|part| told.take(part));
        assert_eq!((told.cut, told.flows.len()), (true, FLOWS_MAX + 1));
        let flow =
            beehive_nom::object::AddFlow::new(NodeId(1), Owner::named("x"), matching, Actions::None).flow;
        let flow = Flow { priority, ..flow };
        let described = NodeDescription {
            driver: None,
            reading: beehive_nom::object::Reading::default(),
            flows: vec![IntendedFlow { flow, state: Became::Confirmed }],
            failures: Vec::new(),
        };
        let names = Names { apps: HashMap::new(), messages: HashMap::new() };
        let compared = compare(NodeId(1), described, told.flows, &names);
        assert!(compared.iter().all(|flow| !matches!(flow.state, FlowState::Missing)));
        assert_eq!(compared.iter().filter(|flow| matches!(flow.state, FlowState::Different)).count(), 1);
    }
}
