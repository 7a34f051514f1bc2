//! Parses the actions `ct` (connection tracking) and `nat` (network address translation).

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use bytes::BytesMut;

use super::action_parse::{Program, put};
use super::error::{Fault, Problem};
use super::subfield::Subfield;
use super::token::{Token, Tokens};
use super::value::{decimal, ipv4, small};
use crate::message::*;
use crate::schema::List;

impl Program {
    /// Appends `ct(..)`.
    pub(super) fn connection<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        // Check the depth even if the action contains no nested actions.
        self.check_depth(token.whole)?;
        let mut tracked = ConnectionTracking::default();
        let mut bytes = BytesMut::new();
        let mut seen = Vec::new();

        // The part that requires `commit`, if any part does.
        let mut committed = None;
        for part in Tokens(token.value.unwrap_or("")) {
            let part = part?;
            if matches!(part.name, "table" | "zone" | "alg" | "nat") && seen.contains(&part.name) {
                return Err(part.fault(Problem::Twice));
            }

            seen.push(part.name);
            let wrong = Fault::new(part.value.unwrap_or(part.whole), Problem::Value);
            match (part.name, part.value) {
                ("commit", None) => tracked.flags = tracked.flags.with(ConnectionFlags::COMMIT),
                ("force", None) => {
                    tracked.flags = tracked.flags.with(ConnectionFlags::FORCE);
                    committed = Some(part);
                }
                ("table", Some(text)) => {
                    // 255 means "no table".
                    let table = decimal(text).map(TableId).filter(|table| *table != TableId::ALL);
                    tracked.recirc_table = table.ok_or(wrong)?;
                }
                ("zone", Some(text)) => match small(text) {
                    Some(zone) => tracked.zone = zone,
                    None => {
                        let source = Subfield::parse(text)?;
                        let bits = source.packed().filter(|_| source.count == 16).ok_or(wrong)?;
                        (tracked.zone_source, tracked.zone) = (source.field, bits);
                    }
                },
                ("alg", Some("ftp")) => tracked.alg = 21,
                ("alg", Some("tftp")) => tracked.alg = 69,
                ("nat", text) => {
                    if text.is_some_and(|text| !text.is_empty()) {
                        committed = Some(part);
                    }
                    self.nat(&part, &mut bytes)?;
                }
                ("exec", Some(text)) => {
                    let before = bytes.len();
                    self.tracked(text, &mut bytes)?;
                    if bytes.len() > before {
                        committed = Some(part);
                    }
                }
                ("commit" | "force" | "alg", Some(_)) => return Err(wrong),
                _ => return Err(part.fault(Problem::Name)),
            }
        }

        if let Some(part) = committed.filter(|_| !tracked.flags.contains(ConnectionFlags::COMMIT)) {
            return Err(part.fault(Problem::Place));
        }

        tracked.actions = List::of_bytes(self.version, &bytes);
        let action = NiciraAction::ConnectionTracking(tracked);
        put(Action::Experimenter(Extended::Nicira(action)), out, self.version)
            .map_err(|error| token.fault(Problem::Version(error)))
    }

    /// Appends `nat(..)`, which is valid in `ct` only.
    pub(super) fn nat<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let action = NiciraAction::Nat(nat(token.value.unwrap_or(""))?);
        put(Action::Experimenter(Extended::Nicira(action)), out, self.version)
            .map_err(|error| token.fault(Problem::Version(error)))
    }
}

/// Parses `src=first-last:port-port,random`.
fn nat(text: &str) -> Result<Nat, Fault<'_>> {
    let mut nat = Nat::default();
    let ends = |nat: &Nat| nat.flags.contains(NatFlags::SRC) || nat.flags.contains(NatFlags::DST);
    for part in Tokens(text) {
        let part = part?;
        match (part.name, part.value) {
            ("src" | "dst", _) if ends(&nat) => return Err(part.fault(Problem::Twice)),
            ("src", None) => nat.flags = nat.flags.with(NatFlags::SRC),
            ("dst", None) => nat.flags = nat.flags.with(NatFlags::DST),
            ("src" | "dst", Some(range)) => {
                let end = if part.name == "src" { NatFlags::SRC } else { NatFlags::DST };
                nat.flags = nat.flags.with(end);
                nat_range(range, &mut nat).ok_or(Fault::new(range, Problem::Value))?;
            }
            ("persistent", None) => nat.flags = nat.flags.with(NatFlags::PERSISTENT),
            ("hash", None) => nat.flags = nat.flags.with(NatFlags::PROTO_HASH),
            ("random", None) => nat.flags = nat.flags.with(NatFlags::PROTO_RANDOM),
            _ => return Err(part.fault(Problem::Name)),
        }
    }

    // `hash`, `random` and `persistent` require `src` or `dst`, and `hash` excludes `random`.
    let both = nat.flags.contains(NatFlags::PROTO_HASH) && nat.flags.contains(NatFlags::PROTO_RANDOM);
    let none = nat.flags != NatFlags::default() && !ends(&nat);
    if both || none { Err(Fault::new(text, Problem::Place)) } else { Ok(nat) }
}

/// The address at the start of a range.
enum Address {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

fn address(text: &str) -> Option<(Address, &str)> {
    if let Some(inner) = text.strip_prefix('[') {
        let (inner, rest) = inner.split_once(']')?;
        return Some((Address::V6(inner.parse().ok()?), rest));
    }

    let until = |more: fn(char) -> bool| {
        let end = text.find(|letter| !more(letter)).unwrap_or(text.len());
        text.split_at_checked(end)
    };
    let (short, rest) = until(|letter| letter.is_ascii_digit() || letter == '.')?;
    if let Some(address) = ipv4(short) {
        return Some((Address::V4(address), rest));
    }

    let (long, rest) = until(|letter| letter.is_ascii_hexdigit() || matches!(letter, ':' | '.'))?;
    Some((Address::V6(long.parse().ok()?), rest))
}

/// Parses `first-last:port-port`. Both last values are optional and must not be less than the first.
fn nat_range(text: &str, nat: &mut Nat) -> Option<()> {
    let (first, rest) = address(text)?;
    let (last, rest) = match rest.strip_prefix('-') {
        Some(rest) => address(rest).map(|(last, rest)| (Some(last), rest))?,
        None => (None, rest),
    };

    match (first, last) {
        (Address::V4(first), None) => nat.ipv4_min = Some(first),
        (Address::V4(first), Some(Address::V4(last))) if first <= last => {
            (nat.ipv4_min, nat.ipv4_max) = (Some(first), Some(last));
        }
        (Address::V6(first), None) => nat.ipv6_min = Some(first),
        (Address::V6(first), Some(Address::V6(last))) if first <= last => {
            (nat.ipv6_min, nat.ipv6_max) = (Some(first), Some(last));
        }
        _ => return None,
    }

    let Some(ports) = rest.strip_prefix(':') else { return rest.is_empty().then_some(()) };
    let (first, last) = ports.split_once('-').map_or((ports, None), |(first, last)| (first, Some(last)));

    // Port 0 is invalid, because 0 means that there is no port.
    let first: u16 = decimal(first).filter(|port| *port != 0)?;
    nat.port_min = Some(first);
    nat.port_max = match last {
        Some(last) => Some(decimal(last).filter(|last| *last >= first)?),
        None => None,
    };

    Some(())
}
