//! What matches and does the same has the same bytes, whatever version and notation it came in.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::BytesMut;

use super::action::{Action, Actions};
use super::instruction::{Instruction, Instructions};
use super::match_::Match;
use crate::any;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::oxm::{OxmField, class};
use crate::port_number::PortNo;
use crate::schema::{List, Value, Writer};
use crate::version::Version;

/// A match, or what a flow does, in one form: to compare flows of tables, and to find them by hash.
///
/// ```
/// use beehive_of::message::Canonical;
/// use beehive_of::text::Flow;
/// use beehive_of::{message, Version};
///
/// let canonical = |text: &str, version| {
///     let flow = Flow::parse(text, version).unwrap();
///     let message::Message::FlowMod(flow) = flow.message() else { unreachable!() };
///     (
///         Canonical::of_match(&flow.match_fields).unwrap(),
///         Canonical::of_instructions(&flow.actions, &flow.instructions, version).unwrap(),
///     )
/// };
/// assert_eq!(
///     canonical("tcp,dl_vlan=7,tp_dst=80 actions=mod_dl_src:02:00:00:00:00:01,output:2", Version::V1_0),
///     canonical("tp_dst=80,dl_vlan=7,tcp actions=set_field:02:00:00:00:00:01->eth_src,2", Version::V1_5),
/// );
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Canonical(Box<[u8]>);

/// The fields of Nicira's that the specification has, too: class and number, and the specification's number.
const SAME: &[(u16, u8, u8)] = &[
    (class::NXM_OF, 1, 3),
    (class::NXM_OF, 2, 4),
    (class::NXM_OF, 3, 5),
    (class::NXM_OF, 6, 10),
    (class::NXM_OF, 7, 11),
    (class::NXM_OF, 8, 12),
    (class::NXM_OF, 9, 13),
    (class::NXM_OF, 10, 14),
    (class::NXM_OF, 11, 15),
    (class::NXM_OF, 12, 16),
    (class::NXM_OF, 13, 19),
    (class::NXM_OF, 14, 20),
    (class::NXM_OF, 15, 21),
    (class::NXM_OF, 16, 22),
    (class::NXM_OF, 17, 23),
    (class::NXM_NX, 16, 38),
    (class::NXM_NX, 17, 24),
    (class::NXM_NX, 18, 25),
    (class::NXM_NX, 19, 26),
    (class::NXM_NX, 20, 27),
    (class::NXM_NX, 21, 29),
    (class::NXM_NX, 22, 30),
    (class::NXM_NX, 23, 31),
    (class::NXM_NX, 24, 32),
    (class::NXM_NX, 25, 33),
    (class::NXM_NX, 27, 28),
    (class::NXM_NX, 28, 9),
];

/// A field whose bits outside of the mask are zero.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Field {
    class: u16,
    experimenter: u32,
    number: u8,
    value: Vec<u8>,
    mask: Vec<u8>,
}

impl Field {
    /// The field in one form; `None` when none of its bits count.
    fn of(field: &OxmField<'_>) -> Option<Self> {
        let all = |length| alloc::vec![0xff; length];
        let mut mask = field.mask.map_or_else(|| all(field.value.len()), <[u8]>::to_vec);
        let mut value: Vec<u8> = field.value.iter().zip(&mask).map(|(value, mask)| value & mask).collect();
        if field.mask.is_some() && mask.iter().all(|byte| *byte == 0) {
            return None;
        }
        let (mut class, mut number) = (field.class, field.number);
        if let Some((_, _, same)) = SAME.iter().find(|(of, known, _)| (*of, *known) == (class, number)) {
            (class, number) = (class::BASIC, *same);
        } else if let (class::NXM_OF, 0, &[high, low]) = (class, number, &value[..]) {
            // The port is wider in the specification.
            let port = PortNo::from_v10(u16::from_be_bytes([high, low]));
            (class, number, value, mask) = (class::BASIC, 0, port.0.to_be_bytes().to_vec(), all(4));
        } else if let (class::NXM_OF, 5, &[tos]) = (class, number, &value[..]) {
            (class, number, value, mask) = (class::BASIC, 8, alloc::vec![tos >> 2], all(1));
        }
        Some(Self { class, experimenter: field.experimenter, number, value, mask })
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.class.to_be_bytes());
        to.extend(self.experimenter.to_be_bytes());
        to.extend([self.number, self.value.len() as u8]);
        to.extend(&self.value);
        to.extend(&self.mask);
    }
}

impl Canonical {
    /// The bytes; what they say may change with the version of this crate.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Which packets.
    ///
    /// # Errors
    ///
    /// The match is malformed, or says something twice.
    pub fn of_match(fields: &Match<'_>) -> Result<Self, EncodeError> {
        match fields {
            Match::Fields(fields) => Self::of_fields(fields.0),
            other => {
                let general = other.generalise()?;
                let mut out = BytesMut::new();
                // What has no name there is not lost: it makes the match another one.
                let known = any::Match { other: 0, ..general };
                any::write_match(&known, &mut Writer::new(Version::V1_5, &mut out))?;
                let length =
                    out.get(2..4).and_then(|length| length.try_into().ok()).map_or(0, u16::from_be_bytes);
                let list = out.get(4..usize::from(length)).unwrap_or(&[]);
                if general.other == 0 {
                    return Self::of_fields(List::of_bytes(Version::V1_5, list));
                }
                let mut raw = BytesMut::new();
                let version = if matches!(other, Match::V1_0(_)) { Version::V1_0 } else { Version::V1_1 };
                other.write(&mut Writer::new(version, &mut raw))?;
                Ok(Self(raw.to_vec().into()))
            }
        }
    }

    fn of_fields<'a>(list: List<'a, OxmField<'a>>) -> Result<Self, EncodeError> {
        let mut fields: Vec<Field> = list
            .iter()
            .filter_map(|field| field.map(|field| Field::of(&field)).transpose())
            .collect::<Result<_, Error>>()?;
        fields.sort();
        let mut bytes = Vec::new();
        fields.iter().for_each(|field| field.write(&mut bytes));
        Ok(Self(bytes.into()))
    }

    /// What is done with packets, in order.
    ///
    /// # Errors
    ///
    /// An action is malformed.
    pub fn of_actions(actions: &Actions<'_>, version: Version) -> Result<Self, EncodeError> {
        let mut bytes = Vec::new();
        write_actions(actions, version, &mut bytes)?;
        Ok(Self(bytes.into()))
    }

    /// What a flow does: its actions in 1.0, its instructions from 1.1 on. Instructions are in the order in which switches
    /// execute them.
    ///
    /// # Errors
    ///
    /// An action or instruction is malformed.
    pub fn of_instructions(
        actions: &Actions<'_>,
        instructions: &Instructions<'_>,
        version: Version,
    ) -> Result<Self, EncodeError> {
        let mut parts: Vec<(u8, Vec<u8>)> = Vec::new();
        if !actions.is_empty() {
            let mut bytes = Vec::new();
            write_actions(actions, version, &mut bytes)?;
            parts.push((1, bytes));
        }
        for instruction in instructions.iter() {
            let instruction = instruction?;
            let (order, list) = match instruction {
                Instruction::Meter(_) => (0, None),
                Instruction::ApplyActions(apply) => (1, Some(apply.actions)),
                Instruction::ClearActions(_) => (2, None),
                Instruction::WriteActions(write) => (3, Some(write.actions)),
                Instruction::WriteMetadata(_) => (4, None),
                Instruction::GotoTable(_) => (5, None),
                _ => (6, None),
            };
            let mut bytes = Vec::new();
            match list {
                Some(list) => write_actions(&list, version, &mut bytes)?,
                None => {
                    let mut raw = BytesMut::new();
                    instruction.write(&mut Writer::new(version, &mut raw))?;
                    bytes.extend(&raw);
                }
            }
            // To do no actions is to do nothing.
            if order != 1 || !bytes.is_empty() {
                parts.push((order, bytes));
            }
        }
        parts.sort();
        let mut bytes = Vec::new();
        for (order, part) in parts {
            bytes.push(order);
            bytes.extend((part.len() as u32).to_be_bytes());
            bytes.extend(part);
        }
        Ok(Self(bytes.into()))
    }
}

fn write_actions(actions: &Actions<'_>, version: Version, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    for action in actions.iter() {
        let action = action?;
        let mut raw = BytesMut::new();
        let general = any::Action::of(&action, version)?;
        let same = match general {
            any::Action::Other(_) | any::Action::Enqueue { .. } => None,
            // How much of a packet goes along counts for the controller only.
            any::Action::Output { port, .. } if port != PortNo::CONTROLLER => {
                Some(any::Action::Output { port, max_len: 0 })
            }
            other => Some(other),
        };
        match same {
            Some(general) => general.write(&mut Writer::new(Version::V1_5, &mut raw))?,
            None => write_own(&action, version, &mut raw)?,
        }
        bytes.extend(&raw);
    }
    Ok(())
}

fn write_own(action: &Action<'_>, version: Version, raw: &mut BytesMut) -> Result<(), EncodeError> {
    action.write(&mut Writer::new(version, raw))
}
