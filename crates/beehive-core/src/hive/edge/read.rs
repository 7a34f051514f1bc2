//! A look at an app's snapshots from outside of its handlers: for HTTP, and for tools.

use crate::app::Handlers;
use crate::hive::bee::app::AppRuntime;
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::message::{Error, ErrorKind};
use crate::state::guard::Violation;
use crate::{panics, view};
use std::panic::AssertUnwindSafe;

/// Why nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The app is not on this hive. Add it to the builder.
    NoSuchApp {
        /// Its name.
        app: &'static str,
    },
    /// A dictionary that was looked at has no snapshots: no handler of its app reads them, and its field does not say
    /// `#[shared]`.
    NotShared(Error),
    /// What there is is older than its dictionary allows. It may succeed later.
    Stale(Error),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::NoSuchApp { app } => write!(f, "app `{app}` is not on this hive"),
            ReadError::NotShared(error) | ReadError::Stale(error) => write!(f, "{error}"),
        }
    }
}
impl std::error::Error for ReadError {}

impl Hive {
    /// Looks at the snapshots of app `A`: `look` may say `.shared()` on its dictionaries, and has one version of all of them.
    /// It waits for no handler and holds none up, so it can be called from anywhere, also where nothing may block. It holds a
    /// copy while it runs: it should take what it needs and return.
    ///
    /// Those dictionaries have snapshots that some handler of the app reads, and those whose field says `#[shared]`. What was
    /// committed on this hive before is there, unless readers hold on to old versions; how old it may be then, `#[shared(max_age
    /// = "..")]` says. In a cluster it has what other hives have told.
    ///
    /// ```
    /// # extern crate beehive_core as beehive;
    /// # use beehive::{App, Dict, Hive, Message, handlers};
    /// # #[derive(Message)]
    /// # #[message(reply = ())]
    /// # struct Put { key: String, value: String }
    /// #[derive(App)]
    /// struct Store {
    ///     #[shared]
    ///     values: Dict<String, String>,
    /// }
    /// # #[handlers]
    /// # impl Store {
    /// #     #[rcv]
    /// #     fn put(&mut self, msg: &Put) { self.values.put(msg.key.clone(), msg.value.clone()); }
    /// # }
    ///
    /// // what an HTTP handler says
    /// fn find(hive: &Hive, key: &str) -> Result<Option<String>, beehive::ReadError> {
    ///     hive.read(|store: &Store| store.values.shared().get(key).cloned())
    /// }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let hive = Hive::builder().app::<Store>().start().unwrap();
    /// hive.request(Put { key: "colour".into(), value: "red".into() }).await.unwrap();
    /// assert_eq!(find(&hive, "colour").unwrap().as_deref(), Some("red"));
    /// # });
    /// ```
    ///
    /// # Panics
    /// When `look` does, and when it looks at a dictionary without `.shared()`: what is there belongs to bees.
    pub fn read<A: Handlers, R>(&self, look: impl FnOnce(&A) -> R) -> Result<R, ReadError> {
        let apps = self.inner().apps.read().clone();
        let none = ReadError::NoSuchApp { app: A::NAME };
        let app = apps.iter().find_map(|app| app.as_any().downcast_ref::<AppRuntime<A>>()).ok_or(none)?;
        let now = self.now();
        let opened = app.snapshots.as_ref().map(|snapshots| {
            snapshots.publish(now);
            view::open(snapshots, now)
        });
        let result = match &opened {
            Some(_) => panics::catch(AssertUnwindSafe(|| look(&app.fresh()))),
            None => {
                let text = format!(
                    "there are no snapshots of `{}`: no handler of it says `.shared()`, and no field `#[shared]`",
                    A::NAME
                );
                return Err(ReadError::NotShared(Error::of(ErrorKind::Limit, text)));
            }
        };
        drop(opened);
        result.or_else(|panic| match panic.downcast::<Error>() {
            Ok(error) if error.kind() == ErrorKind::Stale => Err(ReadError::Stale(*error)),
            Ok(error) => Err(ReadError::NotShared(*error)),
            Err(panic) => match panic.downcast::<Violation>() {
                Ok(violation) => panic!(
                    "`{}` was looked at outside of a handler; say `.shared()` first: `app.dictionary.shared().get(..)`",
                    violation.cell
                ),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        })
    }
}

impl HiveInner {
    /// Publishes all that was committed, in the snapshots of all apps.
    #[cfg(feature = "testing")]
    pub(crate) fn publish_snapshots(&self) {
        let now = self.now();
        self.apps.read().iter().filter_map(|app| app.snapshots()).for_each(|snapshots| snapshots.publish(now))
    }
}
