//! The canonical form of matches and actions: equal meaning gives equal bytes, independent of version and
//! notation.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::BytesMut;

use super::action::Actions;
use super::canonical_field::Field;
use super::canonical_instructions;
use super::canonical_sequence::Sequence;
use super::instruction::Instructions;
use super::match_::Match;
use crate::any;
use crate::encode::EncodeError;
use crate::oxm::OxmField;
use crate::schema::{List, Value, Writer};
use crate::version::Version;

/// The canonical form of a match, or of the actions and instructions of a flow. Use it to compare flow tables
/// and as a hash key.
///
/// Equivalent actions have the same form, even if one of them is an experimenter's action or uses another
/// notation:
///
/// * `set_field`, `set_*`, `mod_*`, Nicira's `load`, `set_tunnel` and `write_metadata`, and the instruction
///   `write_metadata` (which comes after all applied actions) all set fields. The order of settings without
///   another action in between does not matter; the last setting of a bit counts; a wide register is split
///   into its parts.
/// * Nicira's and the ONF's `move` are `copy_field`. In every action, bits within one part of a wide register
///   are addressed as bits of that part.
/// * Nicira's `dec_ttl`, even with the controller list `[0]`, is `dec_ttl`. Its actions that 1.0 lacks (MPLS,
///   groups, queues) are those of 1.1. `resubmit` with a port is `resubmit` with that port in the current
///   table (255).
/// * The instruction `meter` is the action `meter` before all others, as in 1.5.
/// * A selected queue stays selected until the next selection, so only the queue at each other action counts.
///   `enqueue` selects a queue for one output and then restores the previous one: that of a `set_queue` in
///   the same actions, or as by `pop_queue`.
/// * Written actions are a set: the last action of each kind counts, and an output is ignored if there is a
///   group.
///
/// The following have different forms, because their effect differs or may differ:
///
/// * `set_queue` and `output` without `pop_queue`, compared with `enqueue`: later outputs use the queue of
///   the former.
/// * `mod_vlan_vid` and `mod_vlan_pcp` in 1.0, and the same text from 1.1 on: 1.0 adds a missing tag, for
///   which later versions need a `push_vlan`. Only the match tells whether the packet has a tag.
/// * The actions of 1.0 and 1.1 that set a transport port, and `set_field` of the port of a protocol: only
///   the match tells the protocol.
/// * `copy_field` of a whole field and any `set_field`; `goto_table` and `resubmit` with a table;
///   `controller` and an output to the controller, because the reasons in their packet-ins may differ.
/// * In a set, masked settings of the same field where the later mask does not cover the earlier one: the
///   specification keeps only the later setting, and Open vSwitch keeps both. A mix of `set_field`, copies
///   and experimenters' actions keeps its order, because the specification does not define one.
///
/// ```
/// use beehive_of::Version;
/// use beehive_of::text::Flow;
///
/// let canonical = |text: &str, version| {
///     let flow = Flow::parse(text, version).unwrap();
///     (flow.canonical_match().unwrap(), flow.canonical_program().unwrap())
/// };
/// assert_eq!(
///     canonical("tcp,dl_vlan=7,tp_dst=80 actions=mod_dl_src:02:00:00:00:00:01,output:2", Version::V1_0),
///     canonical("tp_dst=80,dl_vlan=7,tcp actions=set_field:02:00:00:00:00:01->eth_src,2", Version::V1_5),
/// );
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Canonical(Box<[u8]>);

impl Canonical {
    /// Returns the bytes of the form. Their format may change with the version of this crate.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the form of a match.
    ///
    /// # Errors
    ///
    /// Fails if the match is malformed or has a field twice.
    pub fn of_match(fields: &Match<'_>) -> Result<Self, EncodeError> {
        match fields {
            Match::Fields(fields) | Match::Fields1_1(fields) => Self::of_fields(fields.0),
            other => {
                let general = other.generalize()?;
                if general.other != 0 {
                    // The general match does not model all fields. Use the raw bytes, so that matches that
                    // differ in such a field have different forms.
                    let mut raw = BytesMut::new();
                    let version = if matches!(other, Match::V1_0(_)) { Version::V1_0 } else { Version::V1_1 };
                    other.write(&mut Writer::new(version, &mut raw))?;
                    return Ok(Self(raw.to_vec().into()));
                }

                let mut out = BytesMut::new();
                any::write_match(&general.with_tag(), &mut Writer::new(Version::V1_5, &mut out))?;
                let length =
                    out.get(2..4).and_then(|length| length.try_into().ok()).map_or(0, u16::from_be_bytes);

                Self::of_fields(List::of_bytes(Version::V1_5, out.get(4..usize::from(length)).unwrap_or(&[])))
            }
        }
    }

    fn of_fields<'a>(list: List<'a, OxmField<'a>>) -> Result<Self, EncodeError> {
        let mut fields = Vec::new();
        for field in list.iter() {
            Field::put(&field?, &mut fields);
        }

        fields.sort();
        if fields.windows(2).any(|two| matches!(two, [one, next] if one.is_of(next))) {
            return Err(EncodeError::Value { field: "duplicate match field" });
        }

        let mut bytes = Vec::new();
        fields.iter().for_each(|field| field.write(&mut bytes));
        Ok(Self(bytes.into()))
    }

    /// Returns the form of a list of actions.
    ///
    /// # Errors
    ///
    /// Fails if an action is malformed.
    pub fn of_actions(actions: &Actions<'_>, version: Version) -> Result<Self, EncodeError> {
        let mut sequence = Sequence::default();
        sequence.actions(actions, version)?;
        Ok(Self(sequence.finish().into()))
    }

    /// Returns the form of a flow's actions (1.0) or instructions (since 1.1). Instructions are in the order
    /// in which switches execute them.
    ///
    /// # Errors
    ///
    /// Fails if an action or instruction is malformed or an instruction is duplicated.
    pub fn of_instructions(
        actions: &Actions<'_>,
        instructions: &Instructions<'_>,
        version: Version,
    ) -> Result<Self, EncodeError> {
        canonical_instructions::form(actions, instructions, version).map(|bytes| Self(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Action, SetField};
    use crate::oxm::{OxmFields, class};
    use alloc::vec;

    fn set(class: u16, number: u8, value: &[u8]) -> Action<'_> {
        let field = OxmField { class, number, experimenter: 0, value, mask: None };
        Action::SetField(SetField { field })
    }

    /// A list whose form can be parsed as an action: one of an unknown type, whose length field happens to be
    /// its length.
    #[test]
    fn the_form_of_some_actions_is_not_that_of_another_one() {
        let mut actions = vec![set(class::BASIC, 2, &[0, 0, 0, 0, 0, 0, 0, 1]); 3];
        actions.extend(vec![set(class::NXM_NX, 0, &[0, 0, 0, 1]); 1487]);
        let form = Canonical::of_actions(&Actions::from(&actions[..]), Version::V1_3).unwrap();
        let other = List::of_bytes(Version::V1_3, form.as_bytes());
        assert_ne!(Canonical::of_actions(&other, Version::V1_3).ok(), Some(form));
    }

    #[test]
    fn a_match_that_says_something_twice_has_none() {
        let of = |types: &[[u8; 2]]| {
            let field =
                |value| OxmField { class: class::BASIC, number: 5, experimenter: 0, value, mask: None };
            let fields: Vec<_> = types.iter().map(|value| field(&value[..])).collect();
            Canonical::of_match(&Match::Fields(OxmFields(List::new(&fields))))
        };

        assert!(of(&[[8, 0]]).is_ok());
        assert!(of(&[[8, 0], [8, 0]]).is_err());
        assert!(of(&[[8, 0], [0x86, 0xdd]]).is_err());
    }
}
