//! What a test does with a simulated cluster: it asks, sends, and lets time pass, while faults happen.

use super::trace::Kind;
use super::{Cluster, Trace};
use crate::failure::RequestError;
use crate::hive::dispatch::inner::Hive;
use crate::limits::CLUSTER_WAIT_MAX;
use crate::message::{Message, Reply};
use crate::seams::Platform;
use crate::testing::kit;
use crate::testing::platform::Stuck;
use crate::time::Time;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// The pause between two looks for a hive that runs.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Cluster {
    /// Sends a request to a [random hive](Cluster::any_hive), as a client would, and runs everything until it is answered.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is not answered. After [`RequestError::Unavailable`] (the hive has crashed) and
    /// [`RequestError::Timeout`], it is not known whether the message was handled.
    ///
    /// # Panics
    ///
    /// Panics like [`Cluster::drive`].
    #[track_caller]
    pub fn request<M: Message>(&mut self, message: M) -> Result<M::Reply, RequestError<M::Error>> {
        let hive = self.any_hive();
        let at = hive.id().0 as usize;
        self.tell(Kind::Ask, Some(at), format_args!("{} {}", M::NAME, kit::words(&message)));
        let answer = self.wait(hive.request(message));
        match &answer {
            Ok(value) => self.tell(Kind::Answer, Some(at), format_args!("{}: {}", M::NAME, value.words())),
            Err(error) => self.tell(Kind::Answer, Some(at), format_args!("{}: error: {error}", M::NAME)),
        }
        self.fail_if_a_handler_failed();
        answer
    }

    /// Emits a message from outside at a [random hive](Cluster::any_hive), and does not wait until it is handled. A message
    /// from outside is lost if its hive crashes before a log contains it.
    ///
    /// # Panics
    ///
    /// Panics like [`Cluster::drive`].
    #[track_caller]
    pub fn emit<M: Message>(&mut self, message: M) -> &mut Self {
        let hive = self.any_hive();
        self.drive(hive.emit(message));
        self
    }

    /// Returns a hive that runs and is not paused; the seed decides which one. Lets time pass if there is none and a fault will
    /// end soon.
    ///
    /// # Panics
    ///
    /// Panics if all hives are down and nothing will start one.
    #[track_caller]
    pub fn any_hive(&mut self) -> Hive {
        for _ in 0..CLUSTER_WAIT_MAX.as_millis() / LOOK_AGAIN.as_millis() {
            let up: Vec<usize> = self.awake().collect();
            if !up.is_empty() {
                let one = up[self.chance.below(up.len())];
                return self.hive(one).clone();
            }
            let all_down = (0..self.hives()).all(|hive| !self.is_running(hive));
            assert!(
                !all_down || self.next_strike().is_some(),
                "all hives are down; `restart` one, or `heal` the cluster"
            );
            self.advance(LOOK_AGAIN)
        }
        panic!("no hive is running for {CLUSTER_WAIT_MAX:?}")
    }

    /// Returns a random number below `bound`, which the seed decides. Returns 0 if `bound` is 0.
    pub fn random(&mut self, bound: u64) -> u64 {
        self.chance.next() % bound.max(1)
    }

    /// Runs everything until a future completes, such as a function of the program that gets a [`Hive`]. Time advances to the
    /// next event whenever nothing else is left to do. Faults happen meanwhile.
    ///
    /// # Panics
    ///
    /// Panics if the future does not complete within ten minutes of virtual time, if messages cause one another without
    /// end, and if a handler has panicked or touched a cell outside its map (unless
    /// [`failures_allowed`](super::ClusterSetup::failures_allowed) is set).
    #[track_caller]
    pub fn drive<T>(&mut self, future: impl Future<Output = T>) -> T {
        let value = self.wait(future);
        self.fail_if_a_handler_failed();
        value
    }

    #[track_caller]
    fn wait<T>(&mut self, future: impl Future<Output = T>) -> T {
        let late = self.platform.now() + CLUSTER_WAIT_MAX;
        // the test may run inside a tokio runtime, whose cooperative budget would not be refilled here
        let mut future = pin!(tokio::task::coop::unconstrained(future));
        loop {
            let strike = self.next_strike();
            let end = strike.map_or(late, |strike| strike.min(late));
            match self.platform.try_drive_until(future.as_mut(), Some(end)) {
                Ok(Some(value)) => return value,
                Ok(None) if end == late => panic!("the future is pending after {CLUSTER_WAIT_MAX:?}"),
                Ok(None) => self.strike(),
                Err(stuck) => panic!("{stuck}"),
            }
        }
    }

    /// Runs everything until a future completes. No fault happens meanwhile.
    #[track_caller]
    pub(super) fn settle<T>(&self, future: impl Future<Output = T>) -> T {
        let future = pin!(tokio::task::coop::unconstrained(future));
        let late = self.platform.now() + CLUSTER_WAIT_MAX;
        match self.platform.try_drive_until(future, Some(late)) {
            Ok(Some(value)) => value,
            Ok(None) => panic!(
                "the hive has not finished after {CLUSTER_WAIT_MAX:?}; is it cut off, paused or stalled?"
            ),
            Err(stuck) => panic!("{stuck}"),
        }
    }

    /// Lets time pass. Faults happen meanwhile.
    ///
    /// # Panics
    ///
    /// Panics like [`Cluster::drive`].
    #[track_caller]
    pub fn advance(&mut self, duration: Duration) {
        let end = self.platform.now() + duration;
        let advance = |cluster: &Cluster, to| -> Result<(), Stuck> {
            let now = cluster.platform.now();
            cluster.platform.try_advance(if to > now { to - now } else { Duration::ZERO })
        };
        loop {
            let strike = self.next_strike().filter(|strike| *strike < end);
            if let Err(stuck) = advance(self, strike.unwrap_or(end)) {
                panic!("{stuck}")
            }
            match strike {
                Some(_) => self.strike(),
                None => break,
            }
        }
        self.fail_if_a_handler_failed()
    }

    /// Returns the current time. The clock of a hive may be ahead of it ([`Cluster::skew_clock`]).
    pub fn now(&self) -> Time {
        self.platform.now()
    }

    /// Returns what happened so far.
    pub fn trace(&self) -> Trace {
        self.log.trace()
    }

    #[track_caller]
    pub(super) fn fail_if_a_handler_failed(&mut self) {
        if let Some((what, chain)) = self.log.take_failure()
            && !self.setup.failures_allowed
        {
            self.failure = Some(chain);
            panic!("{what}")
        }
    }
}
