//! Registers an app's handlers with a hive.

use crate::app::{Handlers, Handles};
use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::Sweep;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::types::handler::{LoggedName, is_built_in};
use crate::hive::dispatch::types::message_types::Types;
use crate::hive::route::receiver::AppReceiver;
use crate::hive::sweep::unlogged_sweep::{EachReceiver, run_sweep};
use crate::hive::sweep::{logged_sweep, ticks};
use crate::key::Key;
use crate::message::{Each, Message, Tick, is_result};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// An action that seals a message type's receivers, once all apps are registered.
pub(crate) type Seal = Box<dyn FnOnce(&Types)>;
/// An action that starts a timer when the hive starts.
pub(crate) type Start = Box<dyn FnOnce(&Arc<HiveInner>)>;

/// Collects an app's handlers. Generated code calls its methods.
#[expect(missing_debug_implementations, reason = "only generated code names this type")]
pub struct Registrar<'a, A: Handlers> {
    kind: PhantomData<fn(A)>,
    types: &'a Types,
    /// The app. `None` if only the types of its messages are collected.
    app: Option<&'a Arc<AppRuntime>>,
    /// For each handler, the dictionary it sweeps.
    swept: Vec<Option<u32>>,
    seal: Vec<Seal>,
    start: Vec<Start>,
    /// The first message whose reply is an undeclared `Result`: the message's name and the place of its declaration.
    result_reply: Option<(&'static str, &'static str)>,
    /// The first message, other than a timer's, that visits all cells of a dictionary.
    begins_sweep: Option<&'static str>,
}

impl<'a, A: Handlers> Registrar<'a, A> {
    /// Creates a registrar without handlers.
    pub(crate) fn new(types: &'a Types, app: &'a Arc<AppRuntime>) -> Self {
        Registrar::of(types, Some(app))
    }

    /// Adds the types of the app's messages to `types`, without their receivers.
    pub(crate) fn describe(types: &'a Types) {
        A::register(&mut Registrar::of(types, None))
    }

    fn of(types: &'a Types, app: Option<&'a Arc<AppRuntime>>) -> Self {
        let swept = vec![None; A::REPORT.len()];
        Registrar {
            kind: PhantomData,
            types,
            app,
            swept,
            seal: Vec::new(),
            start: Vec::new(),
            result_reply: None,
            begins_sweep: None,
        }
    }

    /// Returns the name and place of the first message whose reply is an undeclared `Result`. A handler that
    /// returns `Err` for it would commit.
    pub(crate) fn result_reply(&self) -> Option<(&'static str, &'static str)> {
        self.result_reply
    }

    /// Returns the name of the first message, other than a timer's, that visits all cells of a dictionary.
    pub(crate) fn begins_sweep(&self) -> Option<&'static str> {
        self.begins_sweep
    }

    /// Returns the dictionary swept by each handler, and the actions to be run later by the builder.
    pub(crate) fn finish(self) -> (Vec<Option<u32>>, Vec<Seal>, Vec<Start>) {
        (self.swept, self.seal, self.start)
    }

    /// Adds a receiver of messages of type `M`. `name` identifies the handler in a log.
    fn receive<M: Message>(
        &mut self,
        name: LoggedName,
        receiver: Arc<dyn crate::hive::dispatch::types::message_types::Receiver<M>>,
    ) {
        if !M::COMMITS_ERRORS && is_result::<M::Reply>() {
            self.result_reply.get_or_insert((M::NAME, M::PLACE));
        }
        self.types.receive::<M>(name, receiver);
        self.seal.push(Box::new(|types| types.seal::<M>()));
    }

    /// Registers a handler for messages of type `M`.
    pub fn rcv<M: Message>(&mut self)
    where
        A: Handles<M>,
    {
        let Some(app) = self.app else { return self.types.describe::<M>(LoggedName::of::<A, M>()) };
        self.receive::<M>(LoggedName::of::<A, M>(), AppReceiver::<A, M>::new(app.clone()));
    }

    /// Registers a handler of messages of type `M` that runs for each cell of dictionary `dict`.
    pub fn each<K: Key, M: Message>(&mut self, dict: u32)
    where
        A: Handles<Each<K, M>>,
    {
        let Some(app) = self.app else { return self.types.describe::<M>(LoggedName::of_sweep::<A, K, M>()) };
        self.note_swept::<K, M>(app, dict);
        if !is_built_in(M::NAME) {
            self.begins_sweep.get_or_insert(M::NAME);
        }
        let receiver = Arc::new(EachReceiver::<A, K, M>::of(app, run_sweep::<A, K, M>));
        self.receive::<M>(LoggedName::of_sweep::<A, K, M>(), receiver);
    }

    /// Registers the handler of timer `N`.
    pub fn every<const N: u32>(&mut self, period: Duration)
    where
        A: Handles<Tick<N>>,
    {
        // a tick contains nothing
        let Some(app) = self.app.cloned() else { return };
        self.receive::<Tick<N>>(LoggedName::of::<A, Tick<N>>(), AppReceiver::<A, Tick<N>>::new(app.clone()));
        self.start.push(Box::new(move |hive| ticks::every::<A, N>(hive, app, period)));
    }

    /// Registers the handler of timer `N` that runs for each cell of dictionary `dict`.
    pub fn every_each<K: Key, const N: u32>(&mut self, period: Duration, dict: u32)
    where
        A: Handles<Each<K, Tick<N>>>,
    {
        let Some(app) = self.app.cloned() else { return };
        self.note_swept::<K, Tick<N>>(&app, dict);
        self.start.push(Box::new(move |hive| {
            ticks::every_each::<A, K, N>(hive, app, period, run_sweep::<A, K, Tick<N>>)
        }));
    }

    /// Records that a handler sweeps dictionary `dict`, and registers the functions that resume its sweeps
    /// and visits from a log.
    fn note_swept<K: Key, M: Message>(&mut self, app: &Arc<AppRuntime>, dict: u32)
    where
        A: Handles<Each<K, M>>,
    {
        if let Some(slot) = self.swept.get_mut(<A as Handles<Each<K, M>>>::HANDLER) {
            *slot = Some(dict)
        }

        let (types, app, number) = (self.types, app.clone(), app.index);
        types
            .logged
            .add_receiver(LoggedName::of::<A, Each<K, M>>(), AppReceiver::<A, Each<K, M>>::new(app.clone()));
        let resume = move |log: usize, sweep: &Sweep, cx: &mut RouteContext| {
            let handler = LoggedName::of_sweep::<A, K, M>().number().into();
            logged_sweep::resume::<M>(&app, handler, (log, sweep), run_sweep::<A, K, M>, cx)
        };
        types.logged.add_sweep(number, LoggedName::of_sweep::<A, K, M>(), Box::new(resume));
    }
}
