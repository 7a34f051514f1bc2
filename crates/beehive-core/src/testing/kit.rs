//! `Kit`: apps on a hive whose time and chance are in a test's hands.

use crate::app::{Handlers, Handles};
use crate::cell::CellSet;
use crate::hive::observe::status::AnyApp;
use crate::hive::{Address, DeadLetter, Hive, Io, ReconfigureError, RequestError, Shared};
use crate::message::{Message, Reply};
use crate::seams::Platform;
use crate::state::{ConfigError, ConfigSource};
use crate::testing::hooks::inspect::{CellWords, Inspect};
use crate::testing::hooks::outbox::{Outbox, Sent};
use crate::testing::maps;
use crate::testing::maps::Mapped;
use crate::testing::platform::{Chance, VirtualPlatform};
use crate::testing::setup::Setup;
use crate::testing::snapshot::Snapshot;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// How often a step interferes with the bees of one app, at most.
const INTERVENTIONS_MAX: usize = 8;

/// What one step of a test did, in words.
#[derive(Debug)]
pub(crate) struct Step {
    /// What the test did.
    pub(crate) what: String,
    /// What it was answered.
    pub(crate) answers: Vec<String>,
    /// What apps sent: name, bytes, words. Sorted: between different cells there is no order.
    pub(crate) sent: Vec<(&'static str, Vec<u8>, String)>,
}

/// Apps on a hive that runs in the test's own thread: nothing happens but what the test makes happen, time stands still
/// unless it is moved, and two runs are the same. Made with [`Kit::of`].
///
/// It is the hive that programs run on, with its guards, transactions, merges, timers and sweeps; what is different lies
/// below it, in a [`VirtualPlatform`].
///
/// Snapshots (`.shared()`) are frozen for a step: a handler sees what was committed before the step began, or, while time is
/// moved, before the moment at which it runs. So what it sees does not depend on how cells are spread over bees.
///
/// A handler that panics, or touches a cell that its map does not name, fails the test at the step that made it, unless
/// [`Setup::failures_allowed`] was said. A handler that returns an error does not: that is an answer.
pub struct Kit {
    io: Io,
    hive: Hive,
    platform: VirtualPlatform,
    outbox: Arc<Outbox>,
    settings: toml::Table,
    seed: u64,
    failures_allowed: bool,
    failures_seen: u64,
    /// Makes bees merge, if they do.
    merging: Option<Chance>,
    /// What apps sent and the test has not asked for.
    sent: Vec<Sent>,
    /// What happened so far, if somebody will compare it.
    steps: Option<Vec<Step>>,
}

impl Kit {
    /// A test of one app; more can be added.
    pub fn of<A: Handlers>() -> Setup {
        Setup::new().app::<A>()
    }

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
            failures_seen: 0,
            merging,
            sent: Vec::new(),
            steps: compared.then(Vec::new),
        };
        kit.platform.run_until_idle();
        kit
    }

    /// Emits a message from outside, and runs everything that it causes except what is due later.
    pub fn emit<M: Message>(&mut self, message: M) -> &mut Self {
        self.emit_all([message])
    }

    /// Emits messages from outside at one moment: those to different cells may be handled in any order.
    pub fn emit_all<M: Message>(&mut self, messages: impl IntoIterator<Item = M>) -> &mut Self {
        for message in messages {
            self.io.emit(message)
        }
        self.hand_over();
        let mut answers = Vec::new();
        while let Some(mail) = self.io.try_receive() {
            // what was sent to this address has been recorded
            let Ok(of_messages) = mail.into_answers::<M>() else { continue };
            if self.steps.is_some() {
                answers.extend(of_messages.into_iter().map(|answer| match answer {
                    Ok(value) => value.words(),
                    Err(error) => format!("error: {error}"),
                }))
            }
        }
        // each is the answer of a cell, and between different cells there is no order
        answers.sort_unstable();
        self.end_step(|| format!("emit {}", M::NAME), answers);
        self
    }

    /// Adds a message to those that the next emit hands over at the same moment: for messages of several types.
    pub fn add<M: Message>(&mut self, message: M) -> &mut Self {
        self.io.emit(message);
        self
    }

    /// Asks a question from outside and runs everything until it is answered, moving time if need be; five seconds pass
    /// at most.
    pub fn request<M: Message>(&mut self, message: M) -> Result<M::Reply, RequestError> {
        self.begin_step();
        let answer = self.platform.drive(self.hive.request(message));
        self.platform.run_until_idle();
        let in_words = match (&self.steps, &answer) {
            (None, _) => String::new(),
            (Some(_), Ok(value)) => value.words(),
            (Some(_), Err(error)) => format!("error: {error}"),
        };
        self.end_step(|| format!("request {}", M::NAME), vec![in_words]);
        answer
    }

    /// Moves the time forward. What becomes due on the way (ticks, what was asked for with `after`, sweeps) happens when
    /// it is due, in order.
    pub fn advance(&mut self, duration: Duration) -> &mut Self {
        self.begin_step();
        self.platform.advance(duration);
        self.end_step(|| format!("advance by {duration:?}"), Vec::new());
        self
    }

    /// Puts other settings in force, as [`Hive::reconfigure`] does, and runs what that causes.
    ///
    /// # Errors
    ///
    /// Those of [`Hive::reconfigure`].
    pub fn reconfigure(&mut self, apps: toml::Table) -> Result<Vec<&'static str>, ReconfigureError> {
        self.begin_merges();
        let changed = self.platform.drive(self.hive.reconfigure(apps.clone()))?;
        self.settings = apps;
        self.platform.run_until_idle();
        self.end_step(|| "reconfigure".to_string(), Vec::new());
        Ok(changed)
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.platform.now()
    }

    /// Messages of type `T` that apps sent, to whomever, in the order in which they left; those since the last time this
    /// was asked. What is to be sent later is there when it is due.
    pub fn sent<T: Message>(&mut self) -> Vec<Shared<T>> {
        self.sent.extract_if(.., |sent| sent.is::<T>()).filter_map(|sent| sent.as_message()).collect()
    }

    /// What the map of `A` says about `message`.
    pub fn map<A: Handlers + Handles<M>, M: Message>(&self, message: &M) -> Mapped {
        maps::describe::<A, M>(message)
    }

    /// The state of app `A` as it is now. It stays as it is whatever happens next.
    ///
    /// # Panics
    /// When the app is not one of this test.
    pub fn snapshot<A: Handlers>(&self) -> Snapshot<A> {
        let Some(images) = self.app(A::NAME).images() else { panic!("{AT_WORK}") };
        let empty = match self.instance::<A>() {
            Ok(empty) => empty,
            Err(error) => panic!("{error}"),
        };
        Snapshot::new(&empty, self.seed, &images)
    }

    fn instance<A: Handlers>(&self) -> Result<A, ConfigError> {
        let own = self.settings.get(A::NAME).and_then(|own| own.as_table()).cloned().unwrap_or_default();
        A::configured(&ConfigSource::new(A::NAME, own))
    }

    /// Looks at the state of app `A` as it is now.
    ///
    /// # Panics
    /// When the app is not one of this test.
    pub fn look<A: Handlers, R>(&self, look: impl FnOnce(&mut A) -> R) -> R {
        self.snapshot::<A>().look(look)
    }

    /// Number of bees that app `A` has. They are what a report calls sharded, and nothing that a handler may rely on.
    ///
    /// # Panics
    /// When the app is not one of this test.
    pub fn bees<A: Handlers>(&self) -> usize {
        self.app(A::NAME).status(false, &[]).bees
    }

    /// Where apps reach the test: what they send there can be asked for with [`Kit::sent`].
    pub fn address(&self) -> Address {
        self.io.address()
    }

    /// Messages that could not be handled.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.hive.dead_letters()
    }

    /// The hive, for whatever this kit has no word for. What is done to it directly runs with the next step.
    pub fn hive(&self) -> &Hive {
        &self.hive
    }

    /// The machine below the hive.
    pub fn platform(&self) -> &VirtualPlatform {
        &self.platform
    }

    fn app(&self, name: &str) -> Arc<dyn AnyApp> {
        let apps = self.hive.inner().apps.read();
        match apps.iter().find(|app| app.name() == name) {
            Some(app) => app.clone(),
            None => panic!("app `{name}` is not in this test; add it: `Kit::of::<..>().app::<..>()`"),
        }
    }

    fn hand_over(&mut self) {
        self.hive.inner().publish_snapshots();
        self.platform.drive(self.io.flush());
        self.begin_merges();
        self.platform.run_until_idle();
    }

    fn begin_step(&mut self) {
        self.hive.inner().publish_snapshots();
        self.begin_merges()
    }

    /// Has some bees merge, and some be held up, while what was handed over is on its way.
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

    fn end_step(&mut self, what: impl FnOnce() -> String, answers: Vec<String>) {
        let sent = self.outbox.take();
        if let Some(steps) = &mut self.steps {
            let mut sent: Vec<_> = sent.iter().map(Sent::describe).collect();
            sent.sort_unstable();
            steps.push(Step { what: what(), answers, sent })
        }
        self.sent.extend(sent);
        let failures = self.hive.inner().dead_letters.total();
        if failures > std::mem::replace(&mut self.failures_seen, failures)
            && !self.failures_allowed
            && let Some(letter) = self.hive.dead_letters().last()
        {
            panic!("`{}` of app `{}`, given {}: {}", letter.handler, letter.app, letter.message, letter.error)
        }
    }

    /// What happened, and every cell of every app as it is in the end.
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

const AT_WORK: &str = "a bee is still at work; is this called from within a handler?";

impl Drop for Kit {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.platform.drive(self.hive.stop(Duration::ZERO));
        }
        self.platform.clear()
    }
}
