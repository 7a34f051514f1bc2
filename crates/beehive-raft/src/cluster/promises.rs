//! What other members have promised to this one, so that one which returns with an old copy of its folder is noticed.
//!
//! A member that has forgotten a vote could vote twice in a term, and one that has forgotten entries could help to elect a leader
//! without them. Nobody can see in a folder that it is an old copy. But whoever got the vote, or led when the entries were
//! acknowledged, remembers it as long as it runs, and says so when the other one returns.

use super::types::{GroupId, LogId, MemberId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a member has promised in a group: it votes for nobody else in this term or an earlier one, and in this term, it has the
/// entries up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Promise {
    term: u64,
    last: Option<LogId>,
}

/// The promises to this member.
#[derive(Debug, Default)]
pub(crate) struct Promises(BTreeMap<(MemberId, GroupId), Promise>);

impl Promises {
    /// A member has voted for this one in a term, or has acknowledged the entries up to `last` to this one, which led in the
    /// term.
    pub(crate) fn note(&mut self, member: MemberId, group: GroupId, term: u64, last: Option<LogId>) {
        let promise = Promise { term, last };
        let newest = self.0.entry((member, group)).or_insert(promise);
        *newest = promise.max(*newest)
    }

    /// Forgets what earlier lives of these members have promised: they never take part again.
    pub(crate) fn forget_replaced(&mut self, members: &BTreeSet<MemberId>) {
        let has_other_life =
            |of: &MemberId| members.iter().any(|member| member.hive == of.hive && member != of);
        self.0.retain(|(of, _), _| !has_other_life(of))
    }

    /// Returns what a member has promised.
    pub(crate) fn of(&self, member: MemberId) -> Vec<(GroupId, Promise)> {
        let of_member = self.0.iter().filter(|((of, _), _)| *of == member);
        of_member.map(|((_, group), promise)| (*group, *promise)).collect()
    }
}

/// Where the log of a member of a group ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The term of the newest vote.
    pub(crate) term: u64,
    /// The last entry, or that of the snapshot if it is later.
    pub(crate) last: Option<LogId>,
}

impl Promise {
    /// Returns what is missing in the log of the member that has made this promise.
    ///
    /// Entries may be removed again only for the leader of a later term, and then the vote has this term.
    pub(crate) fn missing(&self, Position { term, last }: Position) -> Option<String> {
        if term < self.term {
            return Some(format!(
                "it has voted in term {}, and the newest vote in the folder is of term {term}",
                self.term
            ));
        }
        let promised = self.last.filter(|promised| term == self.term && Some(*promised) > last)?;
        let found = last.map_or("none".to_string(), |last| format!("entry {last}"));
        Some(format!("it has acknowledged entry {promised}, and the last one in the folder is {found}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_behind_a_promise_is_noticed() {
        let (member, group) = (MemberId::from(1), GroupId(2));
        let mut promises = Promises::default();
        promises.note(member, group, 3, Some(LogId::new_term_index(3, 1)));
        promises.note(member, group, 3, None);
        let [(found, promise)] = promises.of(member)[..] else { panic!("{promises:?}") };
        assert_eq!(found, group);
        assert!(promises.of(MemberId::from(2)).is_empty());

        promises.note(MemberId { life: 2, ..member }, group, 4, None);
        promises.forget_replaced(&BTreeSet::from([member, MemberId::from(2)]));
        assert_eq!(promises.of(member).len(), 1);
        assert!(promises.of(MemberId { life: 2, ..member }).is_empty(), "another life has its place");

        let missing = |term, (of_term, index)| {
            promise.missing(Position { term, last: Some(LogId::new_term_index(of_term, index)) })
        };
        assert!(missing(2, (2, 0)).unwrap().contains("term 3"), "a vote is missing");
        assert!(missing(3, (3, 0)).unwrap().contains("acknowledged"), "an entry is missing");
        assert!(missing(3, (2, 1)).is_some(), "another entry is there");
        assert_eq!(missing(3, (3, 1)), None);
        assert_eq!(missing(4, (2, 0)), None, "a later leader may have removed it");
    }
}
