//! Parses Nicira's `learn` action.

use alloc::vec::Vec;

use bytes::BytesMut;

use super::action_parse::put;
use super::error::{Fault, Problem};
use super::match_parse::most;
use super::subfield::Subfield;
use super::token::{Token, Tokens};
use super::value::{Value, decimal, number, parse, wide as number_of_64_bits};
use crate::message::*;
use crate::schema::List;
use crate::version::Version;

/// A specification of a learned flow, which may own its constant.
enum Spec {
    Copy(LearnSpec<'static>),
    Value(u16, Vec<u8>, LearnDestination),
}

pub(super) fn learn<'t>(token: &Token<'t>, out: &mut BytesMut, version: Version) -> Result<(), Fault<'t>> {
    // Open vSwitch's default table for learned flows is 1.
    let mut flow = Learn2 { table_id: TableId(1), ..Learn2::default() };
    let mut specs = Vec::new();
    for part in Tokens(token.value.unwrap_or("")) {
        let part = part?;
        match (part.name, part.value) {
            ("table", Some(text)) => {
                let table = decimal(text).map(TableId).filter(|table| *table != TableId::ALL);
                flow.table_id = table.ok_or(Fault::new(text, Problem::Value))?;
            }
            ("priority", Some(_)) => flow.priority = plain(&part)?,
            ("idle_timeout", Some(_)) => flow.idle_timeout = plain(&part)?,
            ("hard_timeout", Some(_)) => flow.hard_timeout = plain(&part)?,
            ("fin_idle_timeout", Some(_)) => flow.fin_idle_timeout = plain(&part)?,
            ("fin_hard_timeout", Some(_)) => flow.fin_hard_timeout = plain(&part)?,
            ("cookie", Some(_)) => {
                let text = part.want()?;
                flow.cookie = number_of_64_bits(text).ok_or(Fault::new(text, Problem::Value))?;
            }
            ("send_flow_rem", None) => flow.flags = flow.flags.with(LearnFlags::SEND_FLOW_REMOVED),
            ("delete_learned", None) => flow.flags = flow.flags.with(LearnFlags::DELETE_LEARNED),
            ("limit", Some(_)) => flow.limit = plain(&part)?,
            ("result_dst", Some(text)) => {
                let result = Subfield::destination(text)?;
                if result.count != 1 {
                    return Err(Fault::new(text, Problem::Value));
                }
                flow.flags = flow.flags.with(LearnFlags::WRITE_RESULT);
                (flow.rest.result, flow.result_offset) = (Some(result.field), result.offset);
            }
            _ => learn_spec(&part, &mut specs)?,
        }
    }

    let list: Vec<LearnSpec<'_>> = specs
        .iter()
        .map(|spec| match spec {
            Spec::Copy(spec) => *spec,
            Spec::Value(bit_count, value, destination) => LearnSpec {
                bit_count: *bit_count,
                source: LearnSource::Value(value),
                destination: *destination,
            },
        })
        .collect();
    flow.rest.specs = List::new(&list);
    let action = if flow.limit != 0 || flow.rest.result.is_some() {
        NiciraAction::Learn2(flow)
    } else {
        NiciraAction::Learn(Learn {
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            priority: flow.priority,
            cookie: flow.cookie,
            flags: flow.flags,
            table_id: flow.table_id,
            fin_idle_timeout: flow.fin_idle_timeout,
            fin_hard_timeout: flow.fin_hard_timeout,
            specs: flow.rest.specs,
        })
    };

    put(Action::Experimenter(Extended::Nicira(action)), out, version)
        .map_err(|error| token.fault(Problem::Version(error)))
}

/// Parses a number that is always decimal, even with a leading `0`.
fn plain<'t, T: TryFrom<u128>>(part: &Token<'t>) -> Result<T, Fault<'t>> {
    let text = part.want()?;
    decimal(text).ok_or(Fault::new(text, Problem::Value))
}

/// Encodes a number of `bits` bits, right-aligned in a multiple of 16 bits.
fn wide(value: u128, bits: u16) -> Vec<u8> {
    let length = 2 * usize::from(bits.div_ceil(16));
    let mut bytes = alloc::vec![0; length.saturating_sub(16)];
    let number = value.to_be_bytes();
    bytes.extend_from_slice(number.get(16usize.saturating_sub(length)..).unwrap_or(&number));
    bytes
}

fn learn_spec<'t>(part: &Token<'t>, specs: &mut Vec<Spec>) -> Result<(), Fault<'t>> {
    match (part.name, part.value) {
        ("load", Some(text)) => {
            let (value, destination) = text.split_once("->").ok_or(Fault::new(text, Problem::Value))?;
            let to = Subfield::short(Subfield::destination(destination)?, destination)?;
            let destination = LearnDestination::Load(to.field, to.offset);
            match number(value.trim()) {
                Some(value) if to.count >= 128 || value >> to.count == 0 => {
                    specs.push(Spec::Value(to.count, wide(value, to.count), destination));
                }
                Some(_) => return Err(Fault::new(value, Problem::Value)),
                None => specs.push(copy(Subfield::parse(value)?, to, destination, text)?),
            }
        }
        ("output", Some(text)) => {
            let from = Subfield::parse(text)?;
            specs.push(copy(from, from, LearnDestination::Output, text)?);
        }
        (name, text) => {
            // Without a value, the whole part is the name, which may contain `[..]`.
            let (name, text) = match text {
                None => (part.whole, None),
                Some(text) => (name, Some(text)),
            };

            if text.is_some_and(str::is_empty) {
                return Err(part.fault(Problem::MissingValue));
            }

            let to = Subfield::short(Subfield::parse(name)?, name)?;
            let destination = LearnDestination::Match(to.field, to.offset);

            // A value for a whole field is parsed according to the kind of the field, and a value for some of
            // its bits as a number.
            let (most, value) = match (to.whole(), text) {
                (Some((_, kind)), Some(text)) => (most(to.field), parse(to.field, kind, text)),
                (None, Some(text)) if to.count < 128 => {
                    let value = number(text).map(|value| Value { value, mask: None });
                    ((1 << to.count) - 1, value)
                }
                _ => (u128::MAX, None),
            };

            match (text, value) {
                (None, _) => specs.push(copy(to, to, destination, part.whole)?),
                (Some(text), None) => specs.push(copy(Subfield::parse(text)?, to, destination, text)?),
                (Some(text), Some(value)) => {
                    if value.mask.is_some() {
                        return Err(Fault::new(text, Problem::Mask));
                    }
                    if value.value > most {
                        return Err(Fault::new(text, Problem::Value));
                    }
                    specs.push(Spec::Value(to.count, wide(value.value, to.count), destination));
                }
            }
        }
    }
    Ok(())
}

fn copy<'t>(
    from: Subfield,
    to: Subfield,
    destination: LearnDestination,
    text: &'t str,
) -> Result<Spec, Fault<'t>> {
    if from.count != to.count {
        return Err(Fault::new(text, Problem::Value));
    }
    let source = LearnSource::Field(from.field, from.offset);
    Ok(Spec::Copy(LearnSpec { bit_count: from.count, source, destination }))
}
