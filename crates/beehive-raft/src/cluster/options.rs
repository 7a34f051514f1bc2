//! The settings of a hive in a cluster, and the reasons why it cannot start.

use super::wire::WireError;
use crate::error::OpenError;
use crate::files::{Files, RealFiles};
use crate::limits;
use beehive_core::{HiveId, StartError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a hive in a cluster. All hives of the cluster have the same ones, except for [`hive`](Self::hive) and
/// [`peers`](Self::peers).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterOptions {
    /// The number of the hive.
    pub hive: HiveId,
    /// The other hives.
    pub peers: Vec<HiveId>,
    /// Number of colonies that each hive leads at first. At least 1; the default is 2.
    pub logs: u32,
    /// The seed for cell ids.
    pub seed: u64,
    /// How often the hive pings each other one. The default is 20 ms.
    pub ping_every: Duration,
    /// A hive from which no ping came for so long is suspected: others become the leaders of its colonies. It remains a
    /// member. The default is 100 ms.
    pub suspect_after: Duration,
    /// A hive from which no ping came for so long is declared dead, and stops if it lives. The default is 10 s.
    pub dead_after: Duration,
    /// How often the leader of a group that has nothing to do confirms that it leads. The default is 500 ms.
    pub heartbeat: Duration,
    /// A leader that was not confirmed for so long accepts no entries. The default is 3 s, and the minimum is four times
    /// [`heartbeat`](Self::heartbeat).
    pub lease: Duration,
    /// A group makes a snapshot after this number of entries. The default is 5000.
    pub snapshot_after: u64,
    /// Number of entries of a snapshot that remain in the log for members that are behind. The default is 1000.
    pub entries_kept: u64,
    /// How long the start waits for the other hives. The default is 30 s.
    pub start_within: Duration,
    /// The folder in which the hive keeps its logs, so that it may return after it has ended. Each hive has its own. The default
    /// is `None`: the logs are in memory.
    pub folder: Option<PathBuf>,
    /// Whether the hive takes the place of its earlier life if the others know one whose logs it does not have: its folder is lost,
    /// or it had none. It gets everything from the others, a majority of which has to run. If the hive is new, or has its folder, this
    /// has no effect. The default is `false`: a hive that is started with a wrong folder by mistake is refused.
    pub replaces: bool,
    /// The files. The default is the file system of the machine.
    pub files: Arc<dyn Files>,
    /// The length at which the log in the folder begins a new segment, in bytes. The default, and the maximum, is
    /// [`SEGMENT_BYTES`](crate::limits::SEGMENT_BYTES).
    pub segment_bytes: u64,
    /// The length of the finished segments at which a checkpoint replaces them, in bytes. The default is
    /// [`CHECKPOINT_AFTER_BYTES`](crate::limits::CHECKPOINT_AFTER_BYTES).
    pub checkpoint_after_bytes: u64,
}

impl ClusterOptions {
    /// Returns the default settings.
    pub fn new(hive: HiveId, peers: impl IntoIterator<Item = HiveId>, seed: u64) -> ClusterOptions {
        ClusterOptions {
            hive,
            peers: peers.into_iter().filter(|peer| *peer != hive).collect(),
            logs: 2,
            seed,
            ping_every: Duration::from_millis(20),
            suspect_after: Duration::from_millis(100),
            dead_after: Duration::from_secs(10),
            heartbeat: Duration::from_millis(500),
            lease: Duration::from_secs(3),
            snapshot_after: 5000,
            entries_kept: 1000,
            start_within: Duration::from_secs(30),
            folder: None,
            replaces: false,
            files: Arc::new(RealFiles),
            segment_bytes: limits::SEGMENT_BYTES,
            checkpoint_after_bytes: limits::CHECKPOINT_AFTER_BYTES,
        }
    }

    /// Returns all hives of the cluster, in ascending order.
    pub(crate) fn hives(&self) -> Vec<HiveId> {
        let mut hives: Vec<HiveId> = self.peers.iter().copied().chain([self.hive]).collect();
        hives.sort_unstable();
        hives.dedup();
        hives
    }

    /// Returns openraft's configuration for a group.
    pub(crate) fn raft(&self) -> Result<openraft::Config, ClusterError> {
        let milliseconds = |duration: Duration| duration.as_millis() as u64;
        if self.logs == 0 || self.lease < self.heartbeat * 4 {
            let why = "a hive needs a log, and a lease of at least four heartbeats";
            return Err(ClusterError::Settings { why: why.to_string() });
        }
        if self.segment_bytes > limits::SEGMENT_BYTES {
            let why = format!("a segment is too long: the maximum is {} bytes", limits::SEGMENT_BYTES);
            return Err(ClusterError::Settings { why });
        }
        let config = openraft::Config {
            cluster_name: "beehive".to_string(),
            heartbeat_interval: milliseconds(self.heartbeat),
            // the lease is the maximum
            election_timeout_min: milliseconds(self.lease) * 2 / 3,
            election_timeout_max: milliseconds(self.lease),
            enable_pre_vote: Some(true),
            // A member that returns would lead on in its term. Entries that it has not committed may be in its log, behind those
            // that are applied, and the hive would use their numbers again
            enable_leader_restore: Some(false),
            // A member answers when what it has got is on disk, and one with an old copy of its folder is refused. If a log ends
            // before what was acknowledged all the same, committed entries may be lost, and the leader must not go on as if
            // nothing had happened
            allow_log_reversion: None,
            // a member takes this time at most to load a snapshot
            install_snapshot_timeout: milliseconds(self.start_within),
            snapshot_policy: openraft::SnapshotPolicy::LogsSinceLast(self.snapshot_after),
            max_in_snapshot_log_to_keep: self.entries_kept,
            replication_lag_threshold: self.snapshot_after.saturating_add(self.entries_kept),
            // the defaults take megabytes per group
            api_channel_size: Some(1024),
            notification_channel_size: Some(1024),
            state_machine_channel_size: Some(256),
            ..openraft::Config::default()
        };
        config.validate().map_err(|error| ClusterError::Settings { why: error.to_string() })
    }
}

/// The reason why a hive does not start in a cluster.
#[non_exhaustive]
pub enum ClusterError {
    /// The settings contradict each other.
    Settings {
        /// The reason.
        why: String,
    },
    /// Another hive did not answer in time, or there was no majority. Start the other hives, too.
    Alone {
        /// What the hive waited for.
        why: String,
    },
    /// The cluster knows the hive by an earlier life, in which it has promised what it does not remember. It may not take part:
    /// it could break these promises. Start it with the folder of that life. If there is none, let it
    /// [replace](ClusterOptions::replaces) that life.
    Forgotten {
        /// A hive that knows the earlier life.
        peer: HiveId,
    },
    /// Another life of the hive has taken the place of the one in the folder, which turned up later. Nobody trusts the folder any
    /// more. Start the hive with its newer folder, or with an empty one.
    Replaced {
        /// A hive that knows the later life.
        peer: HiveId,
    },
    /// The hive is to replace its earlier life, and another hive hears that one: it runs. Stop it first.
    Runs {
        /// The hive that hears it.
        peer: HiveId,
    },
    /// The address of this hive cannot be resolved.
    Address {
        /// The address.
        address: String,
        /// The reason.
        why: String,
    },
    /// The hive cannot open its end of the connections.
    Wire(WireError),
    /// Another hive does not fit: it has another token, or other apps, for example.
    Refused {
        /// The other hive.
        peer: HiveId,
        /// The reason, with what to do.
        why: String,
    },
    /// A consensus group has failed.
    Group {
        /// The reason.
        why: String,
    },
    /// The folder cannot be opened.
    Folder(OpenError),
    /// The folder is older than what the hive has promised to another one: a vote or entries are missing. The hive may not take
    /// part with it: it could break these promises. Start it with an empty folder, and let it [replace](ClusterOptions::replaces)
    /// its earlier life.
    RolledBack {
        /// A hive that knows the promise.
        peer: HiveId,
        /// What is missing.
        what: String,
    },
    /// The hive itself does not start.
    Hive(StartError),
}

impl std::fmt::Display for ClusterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClusterError::Settings { why } => write!(f, "wrong settings of the cluster: {why}"),
            ClusterError::Alone { why } => {
                write!(f, "{why}: start the other hives of the cluster, too, or correct their addresses")
            }
            ClusterError::Forgotten { peer } => write!(
                f,
                "hive {} knows an earlier life of this hive, whose logs this one does not have: it cannot return without them while \
                 the others run; start it with its folder; if that is lost, start it with an empty one, or none, and let it replace \
                 its earlier life (`replaces`): it gets everything from the others",
                peer.0
            ),
            ClusterError::Replaced { peer } => write!(
                f,
                "hive {} knows a later life of this hive, which has taken the place of the one in this folder: start the hive with its \
                 newer folder; if that is lost, remove what is in this one, and let the hive replace its earlier life (`replaces`)",
                peer.0
            ),
            ClusterError::Runs { peer } => write!(
                f,
                "hive {} hears another process that is this hive, so it is not replaced: stop that process, or correct the number \
                 of this one",
                peer.0
            ),
            ClusterError::Address { address, why } => write!(
                f,
                "the address of this hive, `{address}`, cannot be resolved: {why}; correct it, or name an address of this machine \
                 to listen on"
            ),
            ClusterError::Wire(error) => error.fmt(f),
            ClusterError::Refused { why, .. } => f.write_str(why),
            ClusterError::Group { why } => write!(f, "a consensus group has failed: {why}"),
            ClusterError::Folder(error) => error.fmt(f),
            ClusterError::RolledBack { peer, what } => write!(
                f,
                "the folder is an old copy: hive {} knows that this hive has promised more: {what}; never start a hive with a \
                 copy: start it with the folder that it had last; if that is lost, with an empty one, and let it replace its earlier life \
                 (`replaces`)",
                peer.0
            ),
            ClusterError::Hive(error) => error.fmt(f),
        }
    }
}

beehive_protocol::debug_is_display!(ClusterError);

impl std::error::Error for ClusterError {}

impl From<WireError> for ClusterError {
    fn from(error: WireError) -> ClusterError {
        ClusterError::Wire(error)
    }
}

impl From<OpenError> for ClusterError {
    fn from(error: OpenError) -> ClusterError {
        ClusterError::Folder(error)
    }
}

impl From<StartError> for ClusterError {
    fn from(error: StartError) -> ClusterError {
        ClusterError::Hive(error)
    }
}
