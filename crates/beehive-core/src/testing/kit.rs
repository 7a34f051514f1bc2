//! `Kit`: apps on a hive whose time and randomness are controlled by a test.

use crate::app::{Handlers, Handles};
use crate::cell::CellSet;
use crate::failure::RequestError;
use crate::hive::dispatch::inner::{AnyApp, Hive};
use crate::hive::edge::io_bee::Io;
use crate::hive::message::batch::Address;
use crate::hive::message::render;
use crate::hive::{DeadLetter, ReconfigureError, Shared};
use crate::message::{Message, Reply};
use crate::panics;
use crate::seams::Platform;
use crate::state::{ConfigError, ConfigSource};
use crate::testing::hooks::inspect::{CellWords, Inspect};
use crate::testing::hooks::outbox::{Outbox, Sent};
use crate::testing::maps;
use crate::testing::maps::Mapped;
use crate::testing::platform::{Chance, VirtualPlatform};
use crate::testing::setup::Setup;
use crate::testing::state_copy::StateCopy;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of random merges and delays per app in one step.
const INTERVENTIONS_MAX: usize = 8;

/// Maximum length, in bytes, of the message in the description of a step.
const STEP_WORDS_BYTES_MAX: usize = 200;

/// A record of one step of a test, as text.
#[derive(Debug)]
pub(crate) struct Step {
    /// The action of the test.
    pub(crate) what: String,
    /// The answers to this action.
    pub(crate) answers: Vec<String>,
    /// The messages sent by apps: name, encoding and text. They are sorted, because there is no order between different
    /// cells.
    pub(crate) sent: Vec<(&'static str, Vec<u8>, String)>,
}

/// Apps on a hive that runs in the test's own thread. Nothing runs unless the test makes it run, time stands still
/// until the test advances it, and two runs of a test are identical. Created by [`Kit::of`].
///
/// The hive is the same as in production, with its guards, transactions, merges, timers and sweeps. Only the platform
/// below it differs: it is a [`VirtualPlatform`].
///
/// Views (`.shared()`) are frozen during a step: a handler sees the state committed before the step began or, while
/// time advances, before the moment at which the handler runs. Its view therefore does not depend on how cells are
/// distributed over bees.
///
/// If a handler panics or touches a cell not named by its map, the current step fails the test, unless
/// [`Setup::failures_allowed`] is set. A handler that returns an error does not fail the test, because an error is an
/// answer. The panic message contains the line of the step in the test, the step, and the message with its content as
/// JSON:
///
/// ```text
/// thread 'prices' panicked at tests/prices.rs:31:9:
/// step 2 (emit shop::Sell {"item":7}): `sell` of app `shop`, given shop::Sell {"item":7}: the handler panicked
/// ```
pub struct Kit {
    io: Io,
    hive: Hive,
    platform: VirtualPlatform,
    outbox: Arc<Outbox>,
    settings: toml::Table,
    seed: u64,
    failures_allowed: bool,
    /// Source of random merges; `None` if bees do not merge at random.
    merging: Option<Chance>,
    /// Messages sent by apps that the test has not fetched yet.
    sent: Vec<Sent>,
    /// The steps so far, if this run will be compared with another.
    steps: Option<Vec<Step>>,
    /// Number of steps that have begun.
    steps_begun: u64,
    /// Description of the current or latest step, for panic messages.
    step: String,
    /// Number of messages that [`Kit::add`] has added to the next step.
    added: u64,
}

impl std::fmt::Debug for Kit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kit")
            .field("steps", &self.steps_begun)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

impl Kit {
    /// Begins the setup of a test with one app. More apps can be added.
    pub fn of<A: Handlers>() -> Setup {
        Setup::new().app::<A>()
    }

    #[track_caller]
    pub(crate) fn new(
        hive: Hive,
        platform: VirtualPlatform,
        outbox: Arc<Outbox>,
        setup: &Setup,
        merging: Option<Chance>,
        compared: bool,
    ) -> Kit {
        let kit = Kit {
            io: hive.io(),
            hive,
            platform,
            outbox,
            settings: setup.settings.clone(),
            seed: setup.seed,
            failures_allowed: setup.failures_allowed,
            merging,
            sent: Vec::new(),
            steps: compared.then(Vec::new),
            steps_begun: 0,
            step: "start".to_string(),
            added: 0,
        };

        kit.run_until_idle();
        kit
    }

    /// Emits a message from outside and runs everything caused by it except timers that are due later.
    #[track_caller]
    pub fn emit<M: Message>(&mut self, message: M) -> &mut Self {
        self.emit_all([message])
    }

    /// Emits several messages from outside at the same time. Messages to different cells may be handled in any order.
    #[track_caller]
    pub fn emit_all<M: Message>(&mut self, messages: impl IntoIterator<Item = M>) -> &mut Self {
        let mut first = None;
        let mut more = std::mem::take(&mut self.added);
        for message in messages {
            match first {
                None => first = Some(words(&message)),
                Some(_) => more += 1,
            }
            self.io.emit(message)
        }

        self.name_step(|| {
            let first = first.unwrap_or_default();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("emit {} {first}{more}", M::NAME)
        });
        self.hand_over();
        let mut answers = Vec::new();
        while let Some(mail) = self.io.try_receive() {
            // If this is not an answer, it is a message sent to this address, which the probe has already recorded.
            let Ok(of_messages) = mail.into_answers::<M>() else { continue };
            if self.steps.is_some() {
                answers.extend(of_messages.into_iter().map(|answer| match answer {
                    Ok(value) => value.words(),
                    Err(error) => format!("error: {error}"),
                }))
            }
        }

        // Each answer comes from a cell, and there is no order between different cells.
        answers.sort_unstable();
        self.end_step(|| format!("emit {}", M::NAME), answers);
        self
    }

    /// Adds a message to be handed over together with those of the next emit. Use this to emit messages of several
    /// types at the same time.
    pub fn add<M: Message>(&mut self, message: M) -> &mut Self {
        self.io.emit(message);
        self.added += 1;
        self
    }

    /// Sends a request from outside and runs everything until it is answered. Advances time if necessary, by at most
    /// five seconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is not answered.
    #[track_caller]
    pub fn request<M: Message>(&mut self, message: M) -> Result<M::Reply, RequestError<M::Error>> {
        self.name_step(|| format!("request {} {}", M::NAME, words(&message)));
        self.begin_step();
        let answer = self.drive(self.hive.request(message));
        self.run_until_idle();
        let in_words = match (&self.steps, &answer) {
            (None, _) => String::new(),
            (Some(_), Ok(value)) => value.words(),
            (Some(_), Err(error)) => format!("error: {error}"),
        };

        self.end_step(|| format!("request {}", M::NAME), vec![in_words]);
        answer
    }

    /// Advances time by `duration`. Ticks, timers set with `after`, and sweeps that become due in that time run in
    /// order, each at its own time.
    #[track_caller]
    pub fn advance(&mut self, duration: Duration) -> &mut Self {
        self.name_step(|| format!("advance by {duration:?}"));
        self.begin_step();
        if let Err(stuck) = self.platform.try_advance(duration) {
            self.fail(stuck)
        }
        self.end_step(|| format!("advance by {duration:?}"), Vec::new());
        self
    }

    /// Applies new settings, as [`Hive::reconfigure`] does, and runs everything they cause.
    ///
    /// # Errors
    ///
    /// See [`Hive::reconfigure`].
    #[track_caller]
    pub fn reconfigure(&mut self, apps: toml::Table) -> Result<Vec<&'static str>, ReconfigureError> {
        self.name_step(|| "reconfigure".to_string());
        self.begin_merges();
        let changed = self.drive(self.hive.reconfigure(apps.clone()))?;
        self.settings = apps;
        self.run_until_idle();
        self.end_step(|| "reconfigure".to_string(), Vec::new());
        Ok(changed)
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.platform.now()
    }

    /// Returns the messages of type `T` that apps have sent to any receiver since the last call, in order. A delayed
    /// message appears once it is due.
    pub fn sent<T: Message>(&mut self) -> Vec<Shared<T>> {
        self.sent.extract_if(.., |sent| sent.is::<T>()).filter_map(|sent| sent.as_message()).collect()
    }

    /// Returns the result of `A`'s map for `message`.
    #[track_caller]
    pub fn map<A: Handlers + Handles<M>, M: Message>(&self, message: &M) -> Mapped {
        maps::describe::<A, M>(message)
    }

    /// Returns a copy of the current state of app `A`, which later steps do not change.
    ///
    /// # Panics
    ///
    /// Panics if the app is not part of this test.
    #[track_caller]
    pub fn state_copy<A: Handlers>(&self) -> StateCopy<A> {
        let Some(images) = self.app(A::NAME).images() else { panic!("{AT_WORK}") };
        let empty = match self.instance::<A>() {
            Ok(empty) => empty,
            Err(error) => panic!("{error}"),
        };
        StateCopy::new(&empty, self.seed, &images)
    }

    fn instance<A: Handlers>(&self) -> Result<A, ConfigError> {
        let own = self.settings.get(A::NAME).and_then(|own| own.as_table()).cloned().unwrap_or_default();
        A::configured(&ConfigSource::new(A::NAME, own))
    }

    /// Passes the current state of app `A` to `look`.
    ///
    /// # Panics
    ///
    /// Panics if the app is not part of this test.
    #[track_caller]
    pub fn look<A: Handlers, R>(&self, look: impl FnOnce(&mut A) -> R) -> R {
        self.state_copy::<A>().look(look)
    }

    /// Returns the number of bees of app `A`. A sharded app has several, but no handler may rely on their number.
    ///
    /// # Panics
    ///
    /// Panics if the app is not part of this test.
    #[track_caller]
    pub fn bees<A: Handlers>(&self) -> usize {
        self.app(A::NAME).status(false, &[]).bees
    }

    /// Returns the test's own address. Messages sent to it by apps are available through [`Kit::sent`].
    pub fn address(&self) -> Address {
        self.io.address()
    }

    /// Returns the dead letters: messages that could not be handled. The hive keeps the newest
    /// [`limits::DEAD_LETTERS_MAX`](crate::limits::DEAD_LETTERS_MAX); `kit.hive().status().dead_letters` counts all.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.hive.dead_letters()
    }

    /// Returns the hive, for operations not offered by this kit. Work given directly to the hive runs with the next
    /// step.
    pub fn hive(&self) -> &Hive {
        &self.hive
    }

    /// Returns the platform below the hive.
    pub fn platform(&self) -> &VirtualPlatform {
        &self.platform
    }

    #[track_caller]
    fn app(&self, name: &str) -> Arc<dyn AnyApp> {
        let apps = self.hive.inner().apps.read();
        match apps.iter().find(|app| app.name() == name) {
            Some(app) => app.clone(),
            None => panic!("app `{name}` is not in this test; add it: `Kit::of::<..>().app::<..>()`"),
        }
    }

    #[track_caller]
    fn hand_over(&mut self) {
        self.hive.inner().publish_views();
        if let Err(stuck) = self.platform.try_drive(self.io.flush()) {
            self.fail(stuck)
        }
        self.begin_merges();
        self.run_until_idle();
    }

    #[track_caller]
    fn run_until_idle(&self) {
        if let Err(stuck) = self.platform.try_run_until_idle() {
            self.fail(stuck)
        }
    }

    #[track_caller]
    fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        match self.platform.try_drive(future) {
            Ok(value) => value,
            Err(stuck) => self.fail(stuck),
        }
    }

    /// Begins the next step. Panic messages describe it as `what`.
    fn name_step(&mut self, what: impl FnOnce() -> String) {
        self.steps_begun += 1;
        self.step = format!("step {} ({})", self.steps_begun, what());
    }

    /// Fails the test in the current step.
    #[track_caller]
    fn fail(&self, why: impl std::fmt::Display) -> ! {
        panic!("{}: {why}", self.step)
    }

    fn begin_step(&mut self) {
        self.hive.inner().publish_views();
        self.begin_merges()
    }

    /// Starts random merges and delays of bees, which run while the step's messages are in flight.
    fn begin_merges(&mut self) {
        let Some(chance) = &mut self.merging else { return };
        let inner = self.hive.inner();
        let apps = inner.apps.read().clone();

        for app in apps {
            let owned = app.owned_cells();
            for _ in 0..owned.len().min(INTERVENTIONS_MAX) {
                let mut any = || owned.get(chance.below(owned.len())).copied();
                let (Some(one), Some(other)) = (any(), any()) else { break };
                let (app, pause) = (app.clone(), self.platform.let_others_go_first(1 + chance.below(16)));
                match chance.below(4) {
                    0 => self.platform.spawn(app.unite_cells(CellSet::from_slice(&[one, other]), inner)),
                    1 | 2 => self.platform.spawn(app.hold_up(one, pause, inner)),
                    _ => {}
                }
            }
        }
    }

    #[track_caller]
    fn end_step(&mut self, what: impl FnOnce() -> String, answers: Vec<String>) {
        let sent = self.outbox.take();
        if let Some(steps) = &mut self.steps {
            let mut sent: Vec<_> = sent.iter().map(Sent::describe).collect();
            sent.sort_unstable();
            steps.push(Step { what: what(), answers, sent })
        }

        self.sent.extend(sent);
        let failures = self.outbox.take_failures();
        if self.failures_allowed {
            return;
        }

        // report the first failure, because the others may be its consequences
        if let Some(letter) = failures.first {
            let DeadLetter { handler, app, message, words, error, .. } = letter;
            let more = failures.count - 1;
            let more = if more == 0 { String::new() } else { format!("; {more} more messages failed") };
            self.fail(format_args!("`{handler}` of app `{app}`, given {message} {words}: {error}{more}"))
        }
    }

    /// Returns the recorded steps, and all cells of every app in the final state.
    pub(crate) fn into_account(mut self) -> (Vec<Step>, Vec<(&'static str, Vec<CellWords>)>) {
        let apps = self.hive.inner().apps.read().clone();
        let state = apps
            .iter()
            .map(|app| match app.cells_in_words() {
                Some(cells) => (app.name(), cells),
                None => panic!("{AT_WORK}"),
            })
            .collect();

        (self.steps.take().unwrap_or_default(), state)
    }
}

/// Returns the content of a message for the description of a step.
pub(super) fn words<M: Message>(message: &M) -> String {
    panics::harmless(|| render::bounded(message, STEP_WORDS_BYTES_MAX)).unwrap_or_default()
}

const AT_WORK: &str = "a bee is still running; was this called from inside a handler?";

impl Drop for Kit {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.platform.drive(self.hive.stop(Duration::ZERO));
        }
        self.platform.clear()
    }
}
