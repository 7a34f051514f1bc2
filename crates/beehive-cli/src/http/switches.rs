//! `/api/v1/switches` and `/api/v1/ports`: the connected switches and their ports.

use crate::api::{Failure, Port, Ports, Switch, Switches};
use crate::http::Served;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use beehive_nom::object::NodeId;
use serde::Deserialize;
use utoipa::IntoParams;

/// Selects a switch.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchQuery {
    /// Datapath id of the switch. Default: all switches.
    switch: Option<String>,
}

impl SwitchQuery {
    /// Returns the datapath id, or `None` for all switches.
    pub(super) fn into_switch(self) -> Option<String> {
        self.switch
    }
}

/// Parses a datapath id: up to 16 hexadecimal digits, with optional colons and `0x`.
pub(crate) fn node(text: &str) -> Result<NodeId, Failure> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(':', "");
    let number = (1..=16).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match u64::from_str_radix(&digits, 16) {
        Ok(node) if number => Ok(NodeId(node)),
        _ => Err(Failure::bad_request(format!(
            "invalid datapath id `{text}` (expected up to 16 hexadecimal digits, such as 0000000000000001)"
        ))),
    }
}

/// Returns the query parameters, or an error that describes what is wrong with them.
pub(super) fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Failure> {
    query.map(|Query(query)| query).map_err(|rejection| Failure::bad_request(rejection.body_text()))
}

/// Lists the connections of switches.
#[utoipa::path(get, path = "/api/v1/switches", responses((status = 200, body = Switches), Failure))]
pub(super) async fn switches(State(Served { hive, directory, .. }): State<Served>) -> Json<Switches> {
    let switch = |status: beehive_nom::driver::NodeStatus| Switch {
        switch: status.node,
        address: status.address,
        protocol: status.protocol.to_string(),
        auxiliary: status.auxiliary,
        ready: status.ready,
        connected_seconds: status.connected_seconds,
        ports: status.ports.len(),
        ports_up: status.ports.iter().filter(|port| port.up).count(),
        packet_ins: status.counters.packet_ins,
        packet_ins_shed: status.counters.packet_ins_shed,
        packet_outs: status.counters.packet_outs,
        flows_installed: status.counters.flows_installed,
        errors: status.counters.errors,
    };

    Json(Switches { switches: directory.status(hive.now()).into_iter().map(switch).collect() })
}

/// Lists the ports of the switches.
#[utoipa::path(get, path = "/api/v1/ports", params(SwitchQuery), responses((status = 200, body = Ports), Failure))]
pub(super) async fn ports(
    State(Served { hive, directory, .. }): State<Served>,
    which: Result<Query<SwitchQuery>, QueryRejection>,
) -> Result<Json<Ports>, Failure> {
    let wanted = query(which)?.switch.as_deref().map(node).transpose()?;
    if let Some(node) = wanted
        && !directory.contains(node)
    {
        return Err(Failure::unknown_switch(node));
    }

    let wanted = wanted.map(|node| node.to_string());
    let mut ports = Vec::new();
    for status in directory.status(hive.now()) {
        let Some(switch) = status.node.filter(|_| !status.auxiliary) else { continue };
        if wanted.as_ref().is_some_and(|wanted| *wanted != switch) {
            continue;
        }

        ports.extend(status.ports.into_iter().map(|port| Port {
            switch: switch.clone(),
            port: port.number.to_string(),
            name: port.name,
            address: port.address.to_string(),
            up: port.up,
        }))
    }

    Ok(Json(Ports { ports }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datapath_identifiers() {
        for (text, number) in
            [("1", 1), ("0x1f", 31), ("00000000000000ff", 255), ("00:00:00:00:00:00:00:02", 2)]
        {
            assert_eq!(node(text).ok(), Some(NodeId(number)), "{text}");
        }
        for bad in ["", "g", "+1", "0x", "00000000000000001", "-1", "1 "] {
            assert!(node(bad).is_err(), "{bad}");
        }
    }
}
