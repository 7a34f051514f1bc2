//! The folder in which a hive keeps its state.

use crate::error::OpenError;
use crate::files::{Files, RealFiles};
use crate::identity::Identity;
use crate::limits;
use crate::log::recovery::{Found, Recovered, recover};
use crate::log::shared::{Colony, Continued, Log, LogStatus, Sizes};
use crate::log::witness::{End, Witness};
use crate::log::writer::Writer;
use crate::place::{self, Place};
use beehive_core::journal::{Journal, LogState};
use beehive_core::{Builder, HiveId};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a folder is opened.
#[derive(Clone, Debug)]
pub struct Options {
    files: Arc<dyn Files>,
    hive: Option<HiveId>,
    logs: Option<u16>,
    sizes: Sizes,
}

impl Default for Options {
    fn default() -> Self {
        Options { files: Arc::new(RealFiles), hive: None, logs: None, sizes: Sizes::default() }
    }
}

impl Options {
    /// Sets the files. The default is the file system of the machine.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn Files>) -> Options {
        self.files = files;
        self
    }

    /// Sets the number of the hive in its cluster. A folder of another hive is refused. The default is the number in
    /// the folder, and 0 for a new folder.
    #[must_use]
    pub fn hive(mut self, hive: HiveId) -> Options {
        self.hive = Some(hive);
        self
    }

    /// Sets the number of logs over which the hive spreads its bees. All of them are in the same files. The default is
    /// the number in the folder, and 1 for a new folder.
    ///
    /// # Panics
    ///
    /// Panics if the number is 0 or above [`limits::LOGS_MAX`].
    #[must_use]
    pub fn logs(mut self, logs: u16) -> Options {
        assert!((1..=limits::LOGS_MAX).contains(&logs), "a hive has 1 to {} logs", limits::LOGS_MAX);
        self.logs = Some(logs);
        self
    }

    /// Sets the length at which the log begins a new segment, and the length of the log behind the last checkpoint at which
    /// the next one is made. The defaults are [`limits::SEGMENT_BYTES`] and [`limits::CHECKPOINT_AFTER_BYTES`].
    #[must_use]
    pub fn sizes(mut self, segment_bytes: u64, checkpoint_after_bytes: u64) -> Options {
        self.sizes =
            Sizes { segment_bytes: segment_bytes.min(limits::SEGMENT_BYTES), checkpoint_after_bytes };
        self
    }

    /// Opens a folder, or makes a new one.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A folder that cannot be opened is not changed.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Data, OpenError> {
        Data::with(self, folder.as_ref())
    }
}

/// An open folder: what a hive has kept, and where it goes on.
///
/// The log is written by threads of its own. It closes when this value and the hive's are dropped, or in
/// [`Data::close`].
///
/// ```
/// # extern crate beehive_core as beehive;
/// use beehive::{App, Dict, Hive, Message, handlers};
/// use beehive_raft::Data;
///
/// #[derive(Message)]
/// #[message(reply = u64)]
/// struct Add(u64);
///
/// #[derive(App)]
/// struct Sum {
///     sums: Dict<String, u64>,
/// }
///
/// #[handlers]
/// impl Sum {
///     #[rcv]
///     fn add(&mut self, Add(number): &Add) -> u64 {
///         self.sums.update("sum".to_string(), |sum| {
///             *sum += number;
///             *sum
///         })
///     }
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("beehive-doc-{}", std::process::id()));
///     let second = std::time::Duration::from_secs(1);
///     for sum in [2, 4] {
///         let data = Data::open(&folder)?;
///         let hive = data.attach(Hive::builder().app::<Sum>()).start()?;
///         // the answer arrives when the change is on disk
///         assert_eq!(hive.request(Add(2)).await?, sum);
///         hive.stop(second).await;
///         data.close();
///     }
/// # std::fs::remove_dir_all(&folder)?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Data {
    log: Arc<Log>,
    identity: Identity,
    found: Arc<Found>,
    states: Arc<Mutex<Option<Vec<LogState>>>>,
    folder: PathBuf,
}

impl Data {
    /// Opens a folder, or makes a new one, with the default [`Options`].
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Data, OpenError> {
        Options::default().open(folder)
    }

    fn with(options: Options, folder: &Path) -> Result<Data, OpenError> {
        let place = Place { files: options.files, folder: folder.to_path_buf() };
        let failed = |doing| move |error| OpenError::io(folder, doing, error);
        place.files.create_folder(folder).map_err(failed("create the folder"))?;
        let lock = place.files.lock(&place::lock(folder)).map_err(failed("lock the folder"))?;
        let lock = lock.ok_or_else(|| OpenError::InUse { folder: folder.to_path_buf() })?;

        let mut identity = match Identity::read(&place)? {
            Some(identity) => check(identity, options.hive, options.logs, folder)?,
            None => begin(&place, options.hive, options.logs)?,
        };
        let key = (identity.folder_id, identity.logs);
        let recovered = recover(&place, key, identity.incarnation == 0, true)?;
        let Recovered { states, end, lengths, found } = recovered;
        if let Some(cut) = &found.cut {
            tracing::warn!(file = %cut.file.display(), offset = cut.offset, bytes = cut.bytes, what = cut.what,
                "cut off the end of the log, which had not been acknowledged")
        }

        // From here on, an end that is lost is noticed. Only then a segment follows.
        let witness =
            Witness::create(&place, identity.folder_id, end).map_err(failed("write the witness"))?;
        identity.incarnation += 1;
        identity.write(&place)?;
        let start = (identity.folder_id, identity.incarnation);
        let writer = Writer::begin(&place, start, end, options.sizes.segment_bytes)
            .map_err(failed("begin a segment"))?;
        let first = end.segment + 1 - lengths.len() as u64;
        let finished = (first..).zip(lengths).map(|(segment, length)| End { segment, length, ..end });
        let log = Log::start(Continued {
            place,
            folder_id: identity.folder_id,
            sizes: options.sizes,
            lock,
            writer,
            witness,
            last: states.iter().map(|state| state.last).collect(),
            finished: finished.collect(),
            checkpoint_bytes: found.checkpoint_bytes,
        });
        Ok(Data {
            log: Arc::new(log.map_err(failed("start a thread for the log"))?),
            identity,
            found: Arc::new(found),
            states: Arc::new(Mutex::new(Some(states))),
            folder: folder.to_path_buf(),
        })
    }

    /// Gives a hive the state in the folder, and makes it append to the log. Also sets the hive's number and seed.
    ///
    /// The hive compares its apps with those in the log when it starts. A hive that refuses to start has changed no
    /// state, but opening the folder has counted as a start, and has settled the end of the log.
    ///
    /// # Panics
    ///
    /// Panics if a hive has been attached before: one folder is for one hive. Close the folder and open it again.
    pub fn attach(&self, builder: Builder) -> Builder {
        let logs = self.journals();
        builder.id(HiveId(self.identity.hive)).seed(self.identity.seed).journals(logs)
    }

    /// Returns the logs, each with the state from which it goes on.
    ///
    /// # Panics
    ///
    /// See [`Data::attach`].
    pub fn journals(&self) -> Vec<(Arc<dyn Journal>, LogState)> {
        let states = self.states.lock().take();
        let states = states.expect("a folder is for one hive, and one has been attached to this");
        let colony = |number| Arc::new(Colony { log: self.log.clone(), number }) as Arc<dyn Journal>;
        states.into_iter().enumerate().map(|(number, state)| (colony(number), state)).collect()
    }

    /// Writes what waits, and closes the folder, so that it can be opened again. Entries that the hive appends later
    /// are refused, so stop the hive first.
    pub fn close(&self) {
        self.log.close()
    }

    /// Returns the identity of the folder.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns what was found when the folder was opened.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Returns what the log does at the moment.
    pub fn status(&self) -> LogStatus {
        self.log.shared.status()
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the rules that a test can break.
    #[cfg(feature = "testing")]
    pub fn mutation(&self) -> &crate::log::Mutation {
        &self.log.shared.mutation
    }
}

/// Checks that the folder is the one that is wanted.
fn check(
    identity: Identity,
    hive: Option<HiveId>,
    logs: Option<u16>,
    folder: &Path,
) -> Result<Identity, OpenError> {
    let folder = folder.to_path_buf();
    match (hive, logs) {
        (Some(HiveId(wanted)), _) if wanted != identity.hive => {
            Err(OpenError::OtherHive { folder, found: identity.hive, wanted })
        }
        (_, Some(wanted)) if wanted != identity.logs => {
            Err(OpenError::OtherLogs { folder, found: identity.logs, wanted })
        }
        _ => Ok(identity),
    }
}

/// Makes the identity of a new folder.
fn begin(place: &Place, hive: Option<HiveId>, logs: Option<u16>) -> Result<Identity, OpenError> {
    let listing = place.list().map_err(|error| OpenError::io(&place.folder, "list the folder", error))?;
    let ours = listing.segments.first().map(|number| place::segment(&place.folder, *number));
    let ours = ours.or_else(|| listing.checkpoints.first().map(|at| place::checkpoint(&place.folder, *at)));
    let ours = ours.or_else(|| listing.has_witness.then(|| place::witness(&place.folder)));
    if let Some(ours) = ours {
        let why = format!("`{}` is there", ours.display());
        return Err(OpenError::Missing { file: place::identity(&place.folder), why });
    }
    // some file systems have such a folder at their root
    if let Some(found) = listing.foreign.into_iter().find(|name| name != "lost+found") {
        return Err(OpenError::NoHive { folder: place.folder.clone(), found });
    }

    let hive = hive.unwrap_or_default().0;
    let [folder_id, seed] = [random(), random()];
    let identity = Identity { folder_id, hive, seed, logs: logs.unwrap_or(1), incarnation: 0 };
    identity.write(place)?;
    Ok(identity)
}

/// Returns a random number.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "ids of new folders, nothing that runs"
)]
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
