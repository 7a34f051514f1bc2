//! The names of actions, which of them have no argument, and the order of instructions.

use super::error::{Fault, Problem};
use super::token::Token;

/// The place of the actions that are done at once among the instructions.
pub(super) const APPLY: u8 = 1;

/// The places of the two instructions that 1.0 has, as Nicira's actions.
pub(super) const METADATA: u8 = 4;
pub(super) const GOTO: u8 = 5;

/// The place of an instruction among those of a flow: they are done in this order, and 1.1 has each once.
pub(super) fn place(name: &str) -> u8 {
    match name {
        "meter" => 0,
        "clear_actions" => 2,
        "write_actions" => 3,
        "write_metadata" => METADATA,
        "goto_table" => GOTO,
        _ => APPLY,
    }
}

/// The names of actions, which Open vSwitch takes in any case.
const NAMES: &[&str] = &[
    "output",
    "controller",
    "enqueue",
    "group",
    "bundle",
    "bundle_load",
    "set_vlan_vid",
    "set_vlan_pcp",
    "mod_vlan_vid",
    "mod_vlan_pcp",
    "push_vlan",
    "mod_dl_src",
    "mod_dl_dst",
    "mod_nw_src",
    "mod_nw_dst",
    "mod_nw_tos",
    "mod_nw_ecn",
    "mod_nw_ttl",
    "set_nw_ttl",
    "mod_tp_src",
    "mod_tp_dst",
    "set_field",
    "load",
    "move",
    "push",
    "pop",
    "dec_ttl",
    "set_mpls_label",
    "set_mpls_tc",
    "set_mpls_ttl",
    "push_mpls",
    "pop_mpls",
    "set_tunnel",
    "set_tunnel64",
    "set_queue",
    "fin_timeout",
    "resubmit",
    "learn",
    "conjunction",
    "multipath",
    "note",
    "clone",
    "sample",
    "ct",
    "nat",
    "meter",
    "write_actions",
    "write_metadata",
    "goto_table",
    "encap",
    "decap",
    "delete_field",
    "check_pkt_larger",
];

/// The names of those that have no argument.
const ALONE: &[&str] = &[
    "drop",
    "strip_vlan",
    "pop_vlan",
    "dec_mpls_ttl",
    "pop_queue",
    "exit",
    "ct_clear",
    "dec_nsh_ttl",
    "clear_actions",
    "copy_ttl_out",
    "copy_ttl_in",
    "pop_pbb",
];

/// Whether an action has this name.
pub(super) fn is_action(name: &str) -> bool {
    NAMES.contains(&name)
}

/// An action with its name in small letters, and without the argument that it cannot have.
pub(super) fn known(token: Token<'_>) -> Result<Token<'_>, Fault<'_>> {
    let same = |name: &&&str| name.eq_ignore_ascii_case(token.name);
    let name = NAMES.iter().chain(ALONE).find(same).copied().unwrap_or(token.name);
    let token = Token { name, ..token };
    if !token.rest.is_empty() && name != "check_pkt_larger" {
        return Err(token.fault(Problem::Parentheses));
    }
    match token.value {
        Some("") if token.parenthesised && ALONE.contains(&name) => Ok(Token { value: None, ..token }),
        Some(value) if ALONE.contains(&name) => Err(Fault::new(value, Problem::Value)),
        _ => Ok(token),
    }
}
