//! The names of actions, the actions without an argument, and the order of instructions.

use super::error::{Fault, Problem};
use super::token::Token;

/// The position of applied actions among the instructions.
pub(super) const APPLY: u8 = 1;

/// The positions of the two instructions that also exist in 1.0, where they are Nicira actions.
pub(super) const METADATA: u8 = 4;
pub(super) const GOTO: u8 = 5;

/// Returns the position of an instruction in the order of execution. From 1.1 on, a flow has each instruction
/// at most once.
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

/// The names of the actions with an argument. Open vSwitch ignores their case.
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

/// The names of the actions without an argument.
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

/// Returns whether an action with an argument has this name.
pub(super) fn is_action(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Returns the token with its name in lower case. Fails if the action cannot have the argument of the token.
pub(super) fn known(token: Token<'_>) -> Result<Token<'_>, Fault<'_>> {
    let same = |name: &&&str| name.eq_ignore_ascii_case(token.name);
    let name = NAMES.iter().chain(ALONE).find(same).copied().unwrap_or(token.name);
    let token = Token { name, ..token };
    if !token.rest.is_empty() && name != "check_pkt_larger" {
        return Err(token.fault(Problem::Parentheses));
    }

    match token.value {
        Some("") if token.parenthesized && ALONE.contains(&name) => Ok(Token { value: None, ..token }),
        Some(value) if ALONE.contains(&name) => Err(Fault::new(value, Problem::Value)),
        _ => Ok(token),
    }
}
