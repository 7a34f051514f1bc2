//! The canonical form of matches and actions. Matches or actions with the same meaning have the same bytes in
//! this form, regardless of version and notation.

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
/// Equivalent actions have the same form, even if one of them is an experimenter action or uses another
/// notation:
///
/// * `set_field`, `set_*`, `mod_*`, Nicira's `load`, `set_tunnel` and `write_metadata`, and the instruction
///   `write_metadata` (which switches execute after all applied actions) all set fields. If no other action
///   comes between them, the order of field settings does not matter, except that the last setting of a bit
///   wins. A wide register is split into its 32-bit registers.
/// * Nicira's and the ONF's `move` are equivalent to `copy_field`. In every action, bits that lie within one
///   part of a wide register are addressed as bits of that part.
/// * Nicira's `dec_ttl`, even with the controller list `[0]`, is equivalent to the standard `dec_ttl`. The
///   Nicira actions for features that 1.0 lacks (MPLS, groups, queues) are equivalent to the actions of 1.1.
///   `resubmit` with only a port is equivalent to `resubmit` with that port and the current table (255).
/// * The instruction `meter` is equivalent to an action `meter` before all other actions, as in 1.5.
/// * A queue stays selected until another one is selected, so the form records only the queue that is
///   selected at each other action. `enqueue` selects a queue for one output and then restores the previous
///   queue: the one that an earlier `set_queue` in the same list selected or, without one, the packet's
///   original queue, as `pop_queue` does.
/// * Written actions form a set: only the last action of each kind counts, and an output is ignored if the
///   set has a group.
///
/// The following do not have the same form, because their effects differ or may differ:
///
/// * `set_queue` and `output` without `pop_queue`, compared with `enqueue`: after `set_queue`, later outputs
///   use that queue, too.
/// * `mod_vlan_vid` and `mod_vlan_pcp` in 1.0, compared with the same text from 1.1 on: 1.0 adds a missing
///   tag, whereas later versions need a `push_vlan` to add it. Only the match says whether the packet has a
///   tag.
/// * The actions of 1.0 and 1.1 that set a transport port, compared with `set_field` for the port of one
///   protocol: only the match says which protocol the packet has.
/// * `copy_field` of a whole field, compared with any `set_field`; `goto_table`, compared with `resubmit` to
///   a table; `controller`, compared with an output to the controller, because their packet-ins may state
///   different reasons.
/// * In a set of written actions, two masked settings of the same field, compared with their combination, if
///   the later mask does not cover the earlier one: the specification keeps only the later setting, whereas
///   Open vSwitch keeps both.
/// * Sets of written actions that have the same `set_field`, copy and experimenter actions in different
///   orders, because the specification does not define an order for them.
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
    /// Fails if the match is malformed or a field is duplicated.
    pub fn of_match(fields: &Match<'_>) -> Result<Self, EncodeError> {
        match fields {
            Match::Fields(fields) | Match::Fields1_1(fields) => Self::of_fields(fields.0),
            other => {
                let general = other.generalize()?;
                if general.other != 0 {
                    // The version-independent match does not model all fields of this match. Use the raw
                    // bytes so that matches that differ in such a field have different forms.
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

    /// Returns the form of a flow's actions (1.0) or instructions (since 1.1). The form has the instructions
    /// in the order in which switches execute them.
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

    /// The form of this list can be parsed as an action of an unknown type, because the bytes at the position of the
    /// length field happen to equal the length of the form.
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
