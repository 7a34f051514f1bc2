//! What matches and does the same has the same bytes, whatever version and notation it came in.

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

/// A match, or what a flow does, in one form: to compare flows of tables, and to find them by hash.
///
/// What an experimenter's action does as well as the specification's, or as another notation of it, has the form of the other:
///
/// * Setting a field is `set_field`, `set_*`, `mod_*`, Nicira's `load`, `set_tunnel` and `write_metadata`, and the instruction
///   `write_metadata`, which is the last of what is done at once. What is set without another action in between is set in no
///   order; bits that are set again are what they are set to last; a wide register is its parts.
/// * Nicira's and the ONF's `move` are `copy_field`. Bits that one part of a wide register has are that part's, in whatever
///   action.
/// * Nicira's `dec_ttl`, also that for controller 0 alone, is `dec_ttl`; its actions for what 1.0 lacks (MPLS, groups, queues)
///   are those of 1.1. `resubmit` of a port is one of that port in the current table (255).
/// * The instruction `meter` is the action `meter` before all others, as 1.5 has it.
/// * A queue is selected until another one is: only what it is when something is done counts. `enqueue` selects a queue for
///   one output and then the one from before: that which `set_queue` selected in the same actions, or `pop_queue` after it.
/// * Actions that are written are a set: of one kind the last counts, and an output beside a group does not.
///
/// Different forms have, because they do something else or may do so:
///
/// * `set_queue` and `output` without `pop_queue`, and `enqueue`: what comes later takes the queue of the former.
/// * `mod_vlan_vid` and `mod_vlan_pcp` of 1.0, and what the same text is from 1.1 on: 1.0 adds the tag where there is none, which later
///   versions do by a `push_vlan` before it. Whether there is one, only the match says.
/// * The ports that 1.0 and 1.1 set, and `set_field` of the port of a protocol: which one that is, only the match says.
/// * `copy_field` of all of a field and any `set_field`; `goto_table` and `resubmit` of a table; `controller` and an output
///   to the controller, which have other reasons.
/// * In a set, bits of a field that are set under masks of which the later does not cover the earlier: the specification keeps
///   the later alone, Open vSwitch both. What is set, copied and done by experimenters' actions keeps its order among each
///   other where it is not `set_field` throughout, for the specification has none.
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
            Match::Fields(fields) | Match::Fields1_1(fields) => Self::of_fields(fields.0),
            other => {
                let general = other.generalise()?;
                if general.other != 0 {
                    // What has no name there is not lost: it makes the match another one.
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
            return Err(EncodeError::Value { field: "a match that says something twice" });
        }
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
        let mut sequence = Sequence::default();
        sequence.actions(actions, version)?;
        Ok(Self(sequence.finish().into()))
    }

    /// What a flow does: its actions in 1.0, its instructions from 1.1 on. Instructions are in the order in which switches
    /// execute them.
    ///
    /// # Errors
    ///
    /// An action or instruction is malformed, or an instruction is there twice.
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

    /// A list whose form is an action itself: nobody knows it, and it is as long as its bytes say.
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
