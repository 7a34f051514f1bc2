//! What two hives must agree on before they talk, and what each says if they do not.

use super::tls::Shown;
use beehive_core::HiveId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The versions of the protocol that this program speaks, from the lowest to the highest. They include the calls between hives.
pub(super) const VERSIONS: (u16, u16) = (3, 3);

/// What a hive says about itself when it connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) cluster: String,
    pub(super) seed: u64,
    /// A hash of the apps and the shapes.
    pub(super) apps: [u8; 32],
    pub(super) hive: HiveId,
    pub(super) incarnation: u64,
    /// A random number of the process.
    pub(super) process: [u8; 16],
}

/// The reason why one of two hives refuses the other. Both have the same reason, and each tells it in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Refusal {
    Token,
    Versions {
        lowest: u16,
        highest: u16,
    },
    Cluster,
    Seed,
    Apps,
    /// The hive that connects expected another one at this address.
    Expected(HiveId),
    /// Both have the same id.
    OwnHive,
    /// A later process of the hive is known.
    Outdated {
        known: u64,
        found: u64,
    },
    /// Another process of the hive is connected.
    TwoProcesses(HiveId),
    TooManyHives,
    /// The certificate of the hive that connects is that of another one.
    Certificate(HiveId),
}

/// Returns the reason to refuse another hive, if there is one. `expected` is the hive that the one that connects expects.
pub(super) fn compare(
    ours: &Identity,
    theirs: &Identity,
    found: HiveId,
    expected: HiveId,
) -> Result<(), Refusal> {
    if ours.cluster != theirs.cluster {
        return Err(Refusal::Cluster);
    }
    if ours.hive == theirs.hive {
        return Err(Refusal::OwnHive);
    }
    if found != expected {
        return Err(Refusal::Expected(expected));
    }
    if ours.seed != theirs.seed {
        return Err(Refusal::Seed);
    }
    if ours.apps != theirs.apps {
        return Err(Refusal::Apps);
    }
    Ok(())
}

/// The two ends of a connection, for messages about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub(super) ours: &'a Identity,
    /// The other hive, if it has shown that it has the join token.
    pub(super) theirs: Option<&'a Identity>,
    /// The address of the other hive.
    pub(super) address: SocketAddr,
    /// The certificate of the other hive, if it has connected with TLS.
    pub(super) shown: Option<&'a Shown>,
}

fn short(hash: &[u8; 32]) -> String {
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Refusal {
    /// Whether the two hives refuse each other until somebody changes something. The other reasons end when a process ends, or say
    /// nothing about the hive, because somebody else has taken its number.
    pub(super) fn is_misfit(self) -> bool {
        !matches!(
            self,
            Refusal::Outdated { .. }
                | Refusal::TwoProcesses(_)
                | Refusal::TooManyHives
                | Refusal::Certificate(_)
        )
    }

    /// Says the reason and the remedy.
    pub(super) fn text(self, ends: Ends<'_>) -> String {
        let Ends { ours, theirs, address, shown } = ends;
        let (our_hive, (lowest, highest)) = (ours.hive, VERSIONS);
        let them = match theirs {
            Some(theirs) => format!("{} at {address}", theirs.hive),
            None => format!("hive {address}"),
        };
        match self {
            Refusal::Token => format!(
                "{them} has another join token than this hive, or only one of the two has one: give all hives of the cluster \
                 the same `token`"
            ),
            Refusal::Versions { lowest: their_lowest, highest: their_highest } => format!(
                "{them} speaks the versions {their_lowest} to {their_highest} of the protocol, this hive {lowest} to \
                 {highest}: update the older program"
            ),
            Refusal::Cluster => format!(
                "hive {address} belongs to cluster `{}`, this hive to `{}`: give both the same `name`, hives and number of \
                 logs, or correct the address of the peer",
                theirs.map_or("?", |theirs| &theirs.cluster).escape_debug(),
                ours.cluster.escape_debug()
            ),
            Refusal::Seed => format!(
                "{them} has the hash seed {:#x}, this hive {:#x}: cells would have different owners; give both the seed with \
                 which the cluster began; if the folder of one of them was made by a start that failed, with another token or name, and \
                 it has never been in the cluster, remove that folder",
                theirs.map_or(0, |theirs| theirs.seed),
                ours.seed
            ),
            Refusal::Apps => format!(
                "{them} has other apps or shapes (fingerprint {}) than this hive ({}): start the same program with the same \
                 apps, in the same order, on both",
                theirs.map_or_else(String::new, |theirs| short(&theirs.apps)),
                short(&ours.apps)
            ),
            Refusal::Expected(expected) => format!(
                "{them} is connected with this one, {our_hive}, at the address of {expected}: correct the address of {expected} in \
                 the peers of the hive that connects"
            ),
            Refusal::OwnHive => format!(
                "{address} is {our_hive}, and so is this hive: give each hive a number of its own, and no hive its own address \
                 as that of a peer"
            ),
            Refusal::Outdated { known, found } => format!(
                "between {them} and this one, {our_hive}: a process with incarnation {found} connects, and a later process of \
                 the same hive, with incarnation {known}, has been here: stop the outdated process"
            ),
            Refusal::TwoProcesses(hive) => format!(
                "two processes run as {hive}; one is connected, and the other one connects ({address}, and this one, \
                 {our_hive}): stop one of them, or start it with another number"
            ),
            Refusal::TooManyHives => format!(
                "{them} and this hive cannot connect: one of them knows {} hives, which is the limit: remove those that are \
                 gone",
                crate::limits::wire::PEERS_MAX
            ),
            Refusal::Certificate(hive) => match shown {
                Some(shown) => format!(
                    "somebody says to be {hive} at {address}, and shows a certificate for {}: give each hive a certificate with its own \
                     name, `hive-{}`; if all have that, somebody else has the key of that certificate",
                    shown.names(hive),
                    hive.0
                ),
                None => format!(
                    "{them} refuses this hive, because its certificate is not that of {hive}: give it one with the name `hive-{}`",
                    hive.0
                ),
            },
        }
    }
}
