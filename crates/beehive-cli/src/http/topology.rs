//! `/api/v1/links` and `/api/v1/hosts`: the links and hosts that the apps have discovered.

use crate::api::{Failure, FailureCode, Host, Hosts, Link, Links};
use crate::http::Served;
use crate::http::switches::{SwitchQuery, node, query};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use beehive_core::{Hive, Message, RequestError};
use beehive_nom::object::{FindHost, KnownLink, ListHosts, ListLinks, NodeId, Vlan};

/// Maximum number of hosts in an answer. To see more hosts, a client queries one switch at a time.
const HOSTS_MAX: usize = 10_000;

/// Lists the links between switches that discovery has found.
#[utoipa::path(get, path = "/api/v1/links", params(SwitchQuery), responses((status = 200, body = Links), Failure))]
pub(super) async fn links(
    State(served): State<Served>,
    which: Result<Query<SwitchQuery>, QueryRejection>,
) -> Result<Json<Links>, Failure> {
    let wanted = query(which)?.into_switch().as_deref().map(node).transpose()?;
    require_app(
        &served.hive,
        "topology",
        "the app `discovery`, which finds links, is not running: start the controller with --app discovery,learning-switch",
    )?;
    let known: Vec<KnownLink> = request(&served.hive, ListLinks).await?.unwrap_or_default();
    let at = |known: &KnownLink, node: NodeId| known.link.from.node == node || known.link.to.node == node;
    let links = known.into_iter().filter(|known| wanted.is_none_or(|node| at(known, node)));

    let to_api = |KnownLink { link, both_ways, in_tree }| Link {
        switch: link.from.node.to_string(),
        port: link.from.port.to_string(),
        other_switch: link.to.node.to_string(),
        other_port: link.to.port.to_string(),
        both_ways,
        flooded: in_tree,
    };

    Ok(Json(Links { links: links.map(to_api).collect() }))
}

/// Lists the hosts with their locations and announced IP addresses.
#[utoipa::path(get, path = "/api/v1/hosts", params(SwitchQuery), responses((status = 200, body = Hosts), Failure))]
pub(super) async fn hosts(
    State(served): State<Served>,
    which: Result<Query<SwitchQuery>, QueryRejection>,
) -> Result<Json<Hosts>, Failure> {
    let wanted = query(which)?.into_switch().as_deref().map(node).transpose()?;
    if let Some(node) = wanted
        && !served.directory.contains(node)
    {
        return Err(Failure::unknown_switch(node));
    }

    require_app(
        &served.hive,
        "hosts",
        "the app `hosts`, which tracks hosts, is not running: start the controller with --app hosts,learning-switch",
    )?;
    let mut answer = Hosts::default();
    let status = served.directory.status(served.hive.now());
    let main = status.iter().filter(|status| status.ready && !status.auxiliary);
    let nodes = main.filter_map(|status| node(status.node.as_deref()?).ok());
    for node in nodes.filter(|node| wanted.is_none_or(|wanted| wanted == *node)) {
        for (station, port) in request(&served.hive, ListHosts(node)).await?.unwrap_or_default() {
            if answer.hosts.len() >= HOSTS_MAX {
                answer.truncated = true;
                return Ok(Json(answer));
            }

            // the host may have left or moved since the list was made
            let Some(host) = request(&served.hive, FindHost(station)).await? else { continue };
            if (host.at.node, host.at.port) == (node, port) {
                answer.hosts.push(Host {
                    address: station.mac().to_string(),
                    vlan: Some(station.vlan()).filter(|vlan| *vlan != Vlan::NONE).map(|vlan| vlan.0),
                    switch: node.to_string(),
                    port: port.to_string(),
                    internet_addresses: host.addresses.iter().map(ToString::to_string).collect(),
                })
            }
        }
    }

    Ok(Json(answer))
}

/// Fails with the message `remedy` if an app is not running.
fn require_app(hive: &Hive, app: &str, remedy: &str) -> Result<(), Failure> {
    if hive.status().apps.iter().any(|running| running.name == app) {
        return Ok(());
    }
    Err(Failure { code: FailureCode::AppNotRunning, message: remedy.to_string() })
}

/// Sends a request to the apps. Returns `None` if no handler answers.
async fn request<M: Message>(hive: &Hive, message: M) -> Result<Option<M::Reply>, Failure> {
    match hive.request(message).await {
        Ok(answer) => Ok(Some(answer)),
        Err(RequestError::NoAnswer { .. }) => Ok(None),
        Err(error) => Err(Failure::of_request(error)),
    }
}
