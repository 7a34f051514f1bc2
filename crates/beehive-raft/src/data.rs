//! The folder in which a hive keeps its state.

use crate::error::OpenError;
use crate::files::{Files, RealFiles};
use crate::identity::Identity;
use crate::limits;
use crate::log::begin::{Beginning, begin_term};
use crate::log::recovery::{Found, Recovered, recover};
use crate::log::shared::{Colony, Continued, Log, LogStatus, Sizes};
use crate::log::witness::End;
use crate::place::{self, Listing, Place};
use beehive_core::journal::{Journal, LogState};
use beehive_core::{Builder, HiveId};
use parking_lot::Mutex;
use std::io;
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
    /// With 0, or more than [`limits::LOGS_MAX`], nothing is opened.
    #[must_use]
    pub fn logs(mut self, logs: u16) -> Options {
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
        if let Some(wanted) = options.logs.filter(|logs| !(1..=limits::LOGS_MAX).contains(logs)) {
            return Err(OpenError::NumberOfLogs { wanted });
        }
        let place = Place { files: options.files, folder: folder.to_path_buf() };
        // a folder that is another one's gets not even a lock
        let wanted = (options.hive, options.logs);
        identity_of(&place, wanted)?;
        let failed = |doing| move |error| OpenError::io(folder, doing, error);
        place.files.create_folder(folder).map_err(failed("create the folder"))?;
        let lock = place::lock(folder);
        let locked = place.files.lock(&lock).map_err(|error| OpenError::io(&lock, "lock", error))?;
        let lock = locked.ok_or_else(|| OpenError::InUse { folder: folder.to_path_buf() })?;

        // it may have changed before it was locked
        let (identity, is_new) = identity_of(&place, wanted)?;
        let key = (identity.folder_id, identity.logs);
        let Recovered { mut states, end, lengths, repairs, found } =
            recover(&place, key, identity.incarnation == 0)?;
        let (incarnation, blanks) = begin_term(&mut states, identity.incarnation)
            .ok_or_else(|| OpenError::NoMoreTerms { file: folder.to_path_buf() })?;
        let identity = Identity { incarnation, ..identity };

        let first = end.segment + 1 - lengths.len() as u64;
        let finished = (first..).zip(lengths).map(|(segment, length)| End { segment, length, ..end });
        let log = Log::open(Continued {
            sizes: options.sizes,
            lock,
            last: states.iter().map(|state| state.last).collect(),
            finished: finished.collect(),
            found: found.clone(),
            beginning: Beginning {
                place,
                identity,
                is_new,
                repairs,
                end,
                segment_bytes: options.sizes.segment_bytes,
                blanks,
            },
        });
        Ok(Data {
            log: Arc::new(log),
            identity,
            found: Arc::new(found),
            states: Arc::new(Mutex::new(Some(states))),
            folder: folder.to_path_buf(),
        })
    }

    /// Gives a hive the state in the folder, and makes it append to the log. Also sets the hive's number and seed.
    ///
    /// The hive compares its apps with those in the log when it starts. If it refuses to start, the folder is as it was,
    /// except that a new folder exists and is empty. (It has a file that locks it.)
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

    /// Carries out the start: makes the folder ready for the first entry. The hive that is attached does this when
    /// nothing refuses it. Call it only to use [`Data::journals`] without a hive.
    ///
    /// # Errors
    ///
    /// After an error, nothing can be appended, and the folder has to be opened again.
    pub fn begin(&self) -> Result<(), OpenError> {
        self.log.begin()
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

/// Returns the identity of a folder, or a new one if it is empty or does not exist. Also returns whether it is new.
/// Changes nothing.
fn identity_of(
    place: &Place,
    (hive, logs): (Option<HiveId>, Option<u16>),
) -> Result<(Identity, bool), OpenError> {
    if let Some(identity) = Identity::read(place)? {
        return Ok((check(identity, hive, logs, &place.folder)?, false));
    }
    check_unused(place)?;

    let hive = hive.unwrap_or_default().0;
    let [folder_id, seed] = [random(), random()];
    Ok((Identity { folder_id, hive, seed, logs: logs.unwrap_or(1), incarnation: 0 }, true))
}

/// Checks that a folder without an identity is empty, or does not exist.
pub(crate) fn check_unused(place: &Place) -> Result<(), OpenError> {
    let listing = match place.list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Listing::default(),
        listing => listing.map_err(|error| OpenError::io(&place.folder, "list the folder", error))?,
    };
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
    Ok(())
}

/// Returns a random number.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "ids of new folders, nothing that runs"
)]
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
