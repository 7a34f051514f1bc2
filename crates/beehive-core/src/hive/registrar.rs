//! What an app tells the hive about its handlers.

use crate::app::{Handlers, Handles};
use crate::hive::HiveInner;
use crate::hive::receiver::AppReceiver;
use crate::hive::runtime::AppRuntime;
use crate::hive::sweep::{EachReceiver, run_sweep};
use crate::hive::timers;
use crate::hive::types::Types;
use crate::key::Key;
use crate::message::{Each, Message, Tick};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Seal = Box<dyn FnOnce(&Types)>;
pub(crate) type Start = Box<dyn FnOnce(&Arc<HiveInner>)>;

/// Takes an app's handlers; called by the derived code.
pub struct Registrar<'a, A: Handlers> {
    hive: &'a Arc<HiveInner>,
    app: &'a Arc<AppRuntime<A>>,
    /// By handler: the dictionary it sweeps.
    swept: Vec<Option<u32>>,
    seal: Vec<Seal>,
    start: Vec<Start>,
}

impl<'a, A: Handlers> Registrar<'a, A> {
    pub(crate) fn new(hive: &'a Arc<HiveInner>, app: &'a Arc<AppRuntime<A>>) -> Self {
        Registrar { hive, app, swept: vec![None; A::REPORT.len()], seal: Vec::new(), start: Vec::new() }
    }

    pub(crate) fn finish(self) -> (Vec<Option<u32>>, Vec<Seal>, Vec<Start>) {
        (self.swept, self.seal, self.start)
    }

    fn receive<M: Message>(&mut self, receiver: Arc<dyn crate::hive::types::Receiver<M>>) {
        self.hive.types.receive::<M>(receiver);
        self.seal.push(Box::new(|types| types.seal::<M>()));
    }

    /// A handler of messages of type `M`.
    pub fn rcv<M: Message>(&mut self)
    where
        A: Handles<M>,
    {
        self.receive::<M>(AppReceiver::<A, M>::new(self.app.clone()));
    }

    /// A handler of messages of type `M` for each cell of dictionary `dict`.
    pub fn each<K: Key, M: Message>(&mut self, dict: u32)
    where
        A: Handles<Each<K, M>>,
    {
        self.note_swept::<K, M>(dict);
        let kind = std::marker::PhantomData::<fn(K, M)>;
        self.receive::<M>(Arc::new(EachReceiver { app: self.app.clone(), run: run_sweep::<A, K, M>, kind }));
    }

    /// Timer `N`.
    pub fn every<const N: u32>(&mut self, period: Duration)
    where
        A: Handles<Tick<N>>,
    {
        self.receive::<Tick<N>>(AppReceiver::<A, Tick<N>>::new(self.app.clone()));
        let app = self.app.clone();
        self.start.push(Box::new(move |hive| timers::every::<A, N>(hive, app, period)));
    }

    /// Timer `N`, for each cell of dictionary `dict`.
    pub fn every_each<K: Key, const N: u32>(&mut self, period: Duration, dict: u32)
    where
        A: Handles<Each<K, Tick<N>>>,
    {
        self.note_swept::<K, Tick<N>>(dict);
        let app = self.app.clone();
        self.start.push(Box::new(move |hive| {
            timers::every_each::<A, N>(hive, app, period, run_sweep::<A, K, Tick<N>>)
        }));
    }

    fn note_swept<K: Key, M: Message>(&mut self, dict: u32)
    where
        A: Handles<Each<K, M>>,
    {
        if let Some(slot) = self.swept.get_mut(<A as Handles<Each<K, M>>>::HANDLER) {
            *slot = Some(dict)
        }
    }
}
