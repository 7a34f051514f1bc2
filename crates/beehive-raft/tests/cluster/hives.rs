//! Hives with an app that counts, and what the tests know about the counts.

use crate::net::Net;
use beehive::registry::ColonyId;
use beehive::{App, Builder, Dict, Hive, HiveId, Message, RequestError, handlers};
use beehive_raft::cluster::{ClusterError, ClusterOptions, Member};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Increments the count of a key. Answers with the new count.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Count(pub(crate) u64);

/// Answers with the count of a key.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Counted(pub(crate) u64);

#[derive(App)]
pub(crate) struct Counters {
    #[shared]
    pub(crate) counters: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    fn count(&mut self, msg: &Count) -> u64 {
        self.counters.update(msg.0, |counter| {
            *counter += 1;
            *counter
        })
    }
    #[rcv]
    fn counted(&mut self, msg: &Counted) -> u64 {
        self.counters.get(&msg.0).copied().unwrap_or_default()
    }
}

pub(crate) const ALL: [HiveId; 3] = [HiveId(0), HiveId(1), HiveId(2)];

/// Time within which anything has to happen that has no limit of its own.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Three hives.
pub(crate) struct Hives {
    pub(crate) net: Arc<Net>,
    members: Vec<Option<(Runtime, Member)>>,
    /// The runtimes of the members that were dropped.
    ended: Vec<Runtime>,
    tweak: Box<Tweak>,
    apps: fn() -> Builder,
}

/// Changes the settings of a hive.
type Tweak = dyn Fn(&mut ClusterOptions) + Send + Sync;

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Starts a hive. Blocks the thread.
fn start(
    net: &Arc<Net>,
    hive: HiveId,
    tweak: &(dyn Fn(&mut ClusterOptions) + Send + Sync),
    apps: fn() -> Builder,
) -> (Runtime, Result<Member, ClusterError>) {
    let runtime = runtime();
    let mut options = ClusterOptions::new(hive, ALL, 7);
    tweak(&mut options);
    let port = net.port(hive, runtime.handle().clone());
    let member = runtime.block_on(Member::start(apps(), options, port));
    (runtime, member)
}

fn counters() -> Builder {
    Hive::builder().app::<Counters>()
}

impl Hives {
    pub(crate) fn start() -> Hives {
        Hives::with(|_| ())
    }

    pub(crate) fn with(tweak: impl Fn(&mut ClusterOptions) + Send + Sync + 'static) -> Hives {
        Hives::of(counters, tweak)
    }

    /// Starts hives with these apps.
    pub(crate) fn of(
        apps: fn() -> Builder,
        tweak: impl Fn(&mut ClusterOptions) + Send + Sync + 'static,
    ) -> Hives {
        let log = tracing_subscriber::EnvFilter::from_default_env();
        // fails if another test has set it
        let _ = tracing_subscriber::fmt().with_env_filter(log).with_test_writer().try_init();
        let net = Arc::new(Net::default());
        net.delay(Duration::from_micros(100));
        let members = ALL.iter().map(|_| None).collect();
        let mut hives = Hives { members, ended: Vec::new(), net, tweak: Box::new(tweak), apps };
        hives.start_all();
        hives
    }

    /// Starts all hives at once.
    pub(crate) fn start_all(&mut self) {
        self.members = std::thread::scope(|scope| {
            let started = ALL.map(|hive| {
                let (net, tweak, apps) = (&self.net, &*self.tweak, self.apps);
                scope.spawn(move || start(net, hive, tweak, apps))
            });
            let members = started.map(|thread| {
                let (runtime, member) = thread.join().unwrap();
                Some((runtime, member.unwrap()))
            });
            members.into()
        })
    }

    /// The hives run this program from their next start on.
    pub(crate) fn runs(&mut self, apps: fn() -> Builder) {
        self.apps = apps
    }

    /// Starts all hives that do not run at once. Returns for each what prevents it.
    pub(crate) fn try_start_all(&mut self) -> Vec<Option<ClusterError>> {
        let started = std::thread::scope(|scope| {
            let missing: Vec<usize> = (0..ALL.len()).filter(|hive| self.members[*hive].is_none()).collect();
            let (net, tweak, apps) = (&self.net, &*self.tweak, self.apps);
            let started: Vec<_> = missing
                .into_iter()
                .map(|hive| (hive, scope.spawn(move || start(net, ALL[hive], tweak, apps))))
                .collect();
            started.into_iter().map(|(hive, thread)| (hive, thread.join().unwrap())).collect::<Vec<_>>()
        });
        let mut refused: Vec<Option<ClusterError>> = ALL.iter().map(|_| None).collect();
        for (hive, (runtime, started)) in started {
            match started {
                Ok(member) => self.members[hive] = Some((runtime, member)),
                Err(error) => {
                    self.net.end(ALL[hive]);
                    runtime.shutdown_background();
                    refused[hive] = Some(error)
                }
            }
        }
        refused
    }

    /// Starts a hive that has ended again. Returns what prevents it.
    pub(crate) fn start_again(&mut self, hive: usize) -> Result<(), ClusterError> {
        let (runtime, started) = start(&self.net, ALL[hive], &*self.tweak, self.apps);
        match started {
            Ok(member) => self.members[hive] = Some((runtime, member)),
            Err(error) => {
                self.net.end(ALL[hive]);
                runtime.shutdown_background();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Starts a hive beside what the others do. [`Hives::add`] takes it.
    pub(crate) fn start_alone(&self, hive: usize) -> (Runtime, Member) {
        let (runtime, started) = start(&self.net, ALL[hive], &*self.tweak, self.apps);
        (runtime, started.unwrap())
    }

    pub(crate) fn add(&mut self, hive: usize, member: (Runtime, Member)) {
        self.members[hive] = Some(member)
    }

    /// Begins to start a hive, and ends it without a word after some time.
    pub(crate) fn start_for(&mut self, hive: usize, time: Duration) {
        let runtime = runtime();
        let mut options = ClusterOptions::new(ALL[hive], ALL, 7);
        (self.tweak)(&mut options);
        let port = self.net.port(ALL[hive], runtime.handle().clone());
        let starting = Member::start((self.apps)(), options, port);
        let started = runtime.block_on(async { tokio::time::timeout(time, starting).await });
        self.net.end(ALL[hive]);
        runtime.shutdown_background();
        drop(started)
    }

    /// Starts a process that shares nothing with the others but the folders. Returns what prevents it.
    pub(crate) fn start_another(
        &self,
        hive: HiveId,
        tweak: impl Fn(&mut ClusterOptions) + Send + Sync,
    ) -> ClusterError {
        let (runtime, started) = start(&Arc::default(), hive, &tweak, self.apps);
        runtime.shutdown_background();
        started.unwrap_err()
    }

    /// Stops a hive, and waits for it.
    pub(crate) fn stop(&mut self, hive: usize) {
        self.stop_within(hive, Duration::from_millis(200))
    }

    /// Stops a hive with a grace period, and waits for it.
    pub(crate) fn stop_within(&mut self, hive: usize, grace: Duration) {
        let (runtime, member) = self.members[hive].take().unwrap();
        runtime.block_on(member.stop(grace));
        self.net.end(ALL[hive]);
        runtime.shutdown_background()
    }

    pub(crate) fn member(&self, hive: usize) -> &Member {
        &self.members[hive].as_ref().unwrap().1
    }

    pub(crate) fn hive(&self, hive: usize) -> &Hive {
        self.member(hive).hive()
    }

    pub(crate) fn runtime(&self, hive: usize) -> &Runtime {
        &self.members[hive].as_ref().unwrap().0
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..ALL.len()).filter(|hive| self.members[*hive].is_some())
    }

    /// A process ends without a word.
    pub(crate) fn kill(&mut self, hive: usize) {
        self.net.end(ALL[hive]);
        let (runtime, member) = self.members[hive].take().unwrap();
        runtime.shutdown_background();
        drop(member)
    }

    /// Drops a member in a process that lives on.
    pub(crate) fn drop_member(&mut self, hive: usize) {
        let (runtime, member) = self.members[hive].take().unwrap();
        drop(member);
        self.ended.push(runtime)
    }

    /// Returns the colonies that a hive leads, as another one knows.
    pub(crate) fn led_by(&self, hive: usize, seen_by: usize) -> Vec<ColonyId> {
        let leaders = self.member(seen_by).leaders();
        leaders
            .into_iter()
            .filter(|(_, leader)| *leader == Some(ALL[hive]))
            .map(|(colony, _)| colony)
            .collect()
    }

    /// Returns the leaders of all colonies and their terms, as a hive knows.
    pub(crate) fn terms(&self, seen_by: usize) -> Vec<(ColonyId, u64, Option<HiveId>)> {
        let mut terms = Vec::new();
        self.member(seen_by).registry().read(&mut |state| {
            terms = state.colonies().map(|(colony, entry)| (colony, entry.term, entry.leader)).collect()
        });
        terms
    }

    /// Waits until all running hives have replicas that are equal to the byte, and returns the chunks by colony.
    pub(crate) fn equal_replicas(&self) -> BTreeMap<ColonyId, Vec<Vec<u8>>> {
        let colonies = self.member(self.running().next().unwrap()).leaders();
        let equal = |colony: ColonyId| {
            let mut replicas: Vec<(u64, Vec<Vec<u8>>)> = Vec::new();
            until("the replicas have the same index", || {
                replicas = self
                    .running()
                    .map(|hive| {
                        let (index, state) = self.member(hive).replica(colony).unwrap();
                        (index, state.chunks(4096).collect())
                    })
                    .collect();
                replicas.windows(2).all(|pair| pair[0].0 == pair[1].0)
            });
            assert!(replicas.windows(2).all(|pair| pair[0] == pair[1]), "replicas of {colony:?} differ");
            replicas.swap_remove(0).1
        };
        colonies.into_iter().map(|(colony, _)| (colony, equal(colony))).collect()
    }
}

impl Drop for Hives {
    fn drop(&mut self) {
        for (hive, member) in self.members.iter_mut().enumerate() {
            if let Some((runtime, member)) = member.take() {
                if !std::thread::panicking() {
                    runtime.block_on(member.stop(Duration::from_millis(200)));
                }
                self.net.end(ALL[hive]);
                runtime.shutdown_background()
            }
        }
        self.ended.drain(..).for_each(Runtime::shutdown_background)
    }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2))
    }
    start.elapsed()
}

/// What was asked for, and what was answered. All clones share it.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<u64, Key>>>);

#[derive(Default)]
struct Key {
    asked: u64,
    answers: BTreeSet<u64>,
}

impl Ledger {
    /// Increments a count through a hive. Returns whether it was answered in time.
    #[track_caller]
    pub(crate) fn count(&self, hive: &Hive, key: u64, limit: Duration) -> bool {
        self.0.lock().unwrap().entry(key).or_default().asked += 1;
        match hive.request_blocking_within(limit, Count(key)) {
            Ok(count) => {
                let is_new = self.0.lock().unwrap().entry(key).or_default().answers.insert(count);
                assert!(is_new, "two increments of key {key} have made it {count}");
                true
            }
            Err(
                error @ (RequestError::Timeout { .. }
                | RequestError::Unavailable
                | RequestError::Overloaded { .. }),
            ) => {
                println!("key {key}: {error}");
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Same as [`Ledger::count`], through a hive that is about to end: any error is as good as no answer.
    pub(crate) fn count_until(&self, hive: &Hive, key: u64, limit: Duration, is_over: &AtomicBool) {
        self.0.lock().unwrap().entry(key).or_default().asked += 1;
        match hive.request_blocking_within(limit, Count(key)) {
            Ok(count) => {
                let is_new = self.0.lock().unwrap().entry(key).or_default().answers.insert(count);
                assert!(is_new, "two increments of key {key} have made it {count}")
            }
            Err(_) if is_over.load(Ordering::Relaxed) => {}
            // it may be that the hives are just ending
            Err(error) => println!("key {key}: {error}"),
        }
    }

    /// Increments a count through a hive, again and again until it is answered: on a machine that is busy with other things, a
    /// hive may be suspected wrongly, and then the outcome of a request is unknown.
    #[track_caller]
    pub(crate) fn must_count(&self, hive: &Hive, key: u64) {
        until("a count is answered", || self.count(hive, key, Duration::from_secs(2)));
    }

    pub(crate) fn answered(&self) -> usize {
        self.0.lock().unwrap().values().map(|key| key.answers.len()).sum()
    }

    /// Checks through each hive that every answered increment is there exactly once.
    #[track_caller]
    pub(crate) fn check(&self, hives: &Hives) {
        hives.running().for_each(|hive| self.check_at(hives.hive(hive)))
    }

    /// Checks through a hive that every answered increment is there exactly once.
    #[track_caller]
    pub(crate) fn check_at(&self, hive: &Hive) {
        for (key, Key { asked, answers }) in &*self.0.lock().unwrap() {
            let mut counted = 0;
            until("a count is read", || {
                let answer = hive.request_blocking_within(Duration::from_secs(2), Counted(*key));
                counted = answer.as_ref().copied().unwrap_or_default();
                answer.is_ok()
            });
            let answered = answers.len() as u64;
            let newest = answers.last().copied().unwrap_or_default();
            assert!(
                counted >= answered.max(newest) && counted <= *asked,
                "key {key} counts {counted}; {asked} were asked for, {answered} answered, the last with {newest}"
            )
        }
    }
}
