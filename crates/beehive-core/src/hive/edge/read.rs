//! Reads of an app's views from outside its handlers, for example by HTTP servers and tools.

use crate::app::Handlers;
use crate::hive::bee::app::AppRuntime;
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::message::{Error, ErrorKind};
use crate::panics::Refusal;
use crate::state::any;
use crate::state::guard::Violation;
use crate::{panics, view};
use std::any::Any;
use std::panic::AssertUnwindSafe;

/// The reason why a read failed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The hive does not have this app. Add it to the builder.
    NoSuchApp {
        /// The app's name.
        app: &'static str,
    },
    /// The read used a dictionary that has no view. No handler of its app reads it through `.shared()`, and
    /// its field is not marked `#[shared]`.
    NotShared(Error),
    /// The view is older than its dictionary allows. A later attempt may succeed.
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
beehive_protocol::debug_is_display!(ReadError);

impl std::error::Error for ReadError {}

impl Hive {
    /// Reads the views of app `A`. `look` may call `.shared()` on the app's dictionaries, and sees the same
    /// version of all of them. The call neither waits for a handler nor delays one, so you can make it
    /// anywhere, even where blocking is not allowed. While `look` runs, it holds one version of the views,
    /// so it should copy what it needs and return.
    ///
    /// A dictionary has a view if one of the app's handlers reads it through `.shared()`, or if its field is
    /// marked `#[shared]`. The view contains everything committed on this hive before the call. If readers
    /// still hold old versions, the view may be older; `#[shared(max_age = "..")]` bounds its age in that
    /// case. In a cluster, the view also contains what this hive's replicas know of the logs of other hives.
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
    /// // the body of an HTTP handler
    /// fn find(hive: &Hive, key: &str) -> Result<Option<String>, beehive::ReadError> {
    ///     hive.read(|store: &Store| store.values.shared().get(key).cloned())
    /// }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let hive = Hive::builder().app::<Store>().start().unwrap();
    /// hive.request(Put { key: "color".into(), value: "red".into() }).await.unwrap();
    /// assert_eq!(find(&hive, "color").unwrap().as_deref(), Some("red"));
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `look` panics, or if `look` uses a dictionary without `.shared()`, because only the owning
    /// bees may access the cells themselves.
    pub fn read<A: Handlers, R>(&self, look: impl FnOnce(&A) -> R) -> Result<R, ReadError> {
        let apps = self.inner().apps.read().clone();
        let none = ReadError::NoSuchApp { app: A::NAME };
        let of_type = |app: &&AppRuntime| app.settings.with(|instance, _| (instance as &dyn Any).is::<A>());
        let runtimes = apps.iter().filter_map(|app| app.as_any().downcast_ref::<AppRuntime>());
        let app = { runtimes }.find(of_type).ok_or(none)?;
        let now = self.now();
        let opened = app.views.as_ref().map(|views| {
            views.publish(now);
            view::open(views, now)
        });

        let result = match &opened {
            Some(_) => panics::catch(AssertUnwindSafe(|| look(any::of(&mut *app.fresh())))),
            None => {
                let text = format!(
                    "`{}` has no views: call `.shared()` in a handler, or put `#[shared]` on a field",
                    A::NAME
                );
                return Err(ReadError::NotShared(Error::of(ErrorKind::Limit, text)));
            }
        };

        drop(opened);
        result.or_else(|panic| match panic.downcast::<Refusal>().map(|Refusal(error)| error) {
            Ok(error) if error.kind() == ErrorKind::Stale => Err(ReadError::Stale(error)),
            Ok(error) => Err(ReadError::NotShared(error)),
            Err(panic) => match panic.downcast::<Violation>() {
                Ok(violation) => panic!(
                    "`{}` was accessed outside a handler; read its view: `app.dictionary.shared().get(..)`",
                    violation.cell
                ),
                Err(panic) => panic.resume(),
            },
        })
    }
}

impl HiveInner {
    /// Makes everything committed so far visible in the views of all apps.
    #[cfg(feature = "testing")]
    pub(crate) fn publish_views(&self) {
        let now = self.now();
        self.apps.read().iter().filter_map(|app| app.views()).for_each(|views| views.publish(now))
    }
}
