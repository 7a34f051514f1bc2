//! A hive that is told to lead a colony and cannot: nothing of the colony begins in it, and it may try again.

use crate::directed::{count, counters};
use beehive_core::cluster::LeadError;
use beehive_core::journal::{Entry, EntryNumber, Journal, JournalEvents, LogState};
use beehive_core::registry::{ColonyId, Proposal};
use beehive_core::seams::Platform;
use beehive_core::testing::{Cluster, TestJournal};
use beehive_core::{HiveId, limits};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The colony of hive 0.
const COLONY: ColonyId = ColonyId(1);

/// A journal that cannot begin.
struct Full;

impl Journal for Full {
    fn append(&self, _: Arc<Entry>) {
        panic!("the journal has not begun")
    }

    fn begin(&self) -> std::io::Result<()> {
        Err(std::io::Error::other("the disk is full"))
    }

    fn attach(&self, _: Arc<dyn JournalEvents>) {}
}

/// A journal that commits when it is told to.
#[derive(Default)]
struct Patient {
    events: Mutex<Option<Arc<dyn JournalEvents>>>,
    newest: Mutex<Option<EntryNumber>>,
}

impl Patient {
    fn commit(&self) {
        let (events, newest) = (self.events.lock().unwrap().clone(), *self.newest.lock().unwrap());
        let (Some(events), Some(newest)) = (events, newest) else { panic!("nothing was appended") };
        events.released(newest)
    }
}

impl Journal for Patient {
    fn append(&self, entry: Arc<Entry>) {
        *self.newest.lock().unwrap() = Some(entry.number)
    }

    fn attach(&self, events: Arc<dyn JournalEvents>) {
        *self.events.lock().unwrap() = Some(events)
    }
}

fn state(term: u64) -> LogState {
    let mut state = LogState::default();
    state.begin_term(term);
    state
}

/// Tells hive 1 to lead the colony.
fn lead(
    cluster: &mut Cluster,
    term: u64,
    journal: Arc<dyn Journal>,
    state: LogState,
) -> Result<(), LeadError> {
    let hive = cluster.hive(1).clone();
    cluster.drive(async move { hive.lead(COLONY, term, journal, state).await })
}

#[test]
fn a_hive_that_cannot_lead_goes_on_and_so_does_the_leader() {
    let mut cluster = counters(None).start(11);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let journal = || TestJournal::start(1, 0, 0);
    let other_term = lead(&mut cluster, 9, journal(), state(8));
    assert!(matches!(other_term, Err(LeadError::Log { .. })), "{other_term:?}");
    for _ in 0..=limits::COLONIES_TAKEN_MAX {
        let full = lead(&mut cluster, 9, Arc::new(Full), state(9));
        assert!(matches!(full, Err(LeadError::Journal { .. })), "{full:?}")
    }

    let members = vec![HiveId(0), HiveId(2)];
    cluster.decide(&[Proposal::Members { colony: COLONY, version: 1, members, is_replicated: true }]);
    assert_eq!(lead(&mut cluster, 9, journal(), state(9)), Err(LeadError::NoMember));
    assert_eq!((count(&mut cluster, 1, 7), count(&mut cluster, 2, 8)), (Ok(2), Ok(1)))
}

/// The registry learns of a later leader while a hive waits for its journal, which is that of an earlier term by now.
#[test]
fn a_hive_gives_up_a_term_that_is_over() {
    let mut cluster = counters(None).start(12);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let journal = TestJournal::start(1, 0, 0);
    journal.stop();
    let led = Arc::<Mutex<Option<Result<(), LeadError>>>>::default();
    let (hive, noted) = (cluster.hive(1).clone(), led.clone());
    cluster.platform().spawn(Box::pin(async move {
        let result = hive.lead(COLONY, 9, journal, state(9)).await;
        *noted.lock().unwrap() = Some(result)
    }));
    cluster.advance(Duration::from_millis(100));
    assert_eq!(*led.lock().unwrap(), None, "the crash marker is not committed");
    assert_eq!(lead(&mut cluster, 10, Arc::new(Full), state(10)), Err(LeadError::Led));
    cluster.decide(&[Proposal::Leader { colony: COLONY, term: 10, hive: HiveId(0) }]);
    cluster.advance(Duration::from_millis(100));
    assert_eq!(*led.lock().unwrap(), Some(Err(LeadError::Superseded)));
    assert_eq!((count(&mut cluster, 1, 7), count(&mut cluster, 2, 8)), (Ok(2), Ok(1)));
    let again = lead(&mut cluster, 11, Arc::new(Full), state(11));
    assert!(matches!(again, Err(LeadError::Journal { .. })), "it may try again: {again:?}")
}

/// A hive is elected, loses the term before its crash marker is committed, and is elected again. Nobody else has led the colony in
/// between, so the registry knows nothing of that.
#[test]
fn a_hive_that_is_deposed_while_it_begins_gives_up_the_term() {
    let mut cluster = counters(None).start(15);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let journal = TestJournal::start(1, 0, 0);
    journal.stop();
    let led = Arc::<Mutex<Option<Result<(), LeadError>>>>::default();
    let (hive, noted, of_hive) = (cluster.hive(1).clone(), led.clone(), journal.clone());
    cluster.platform().spawn(Box::pin(async move {
        let result = hive.lead(COLONY, 9, of_hive, state(9)).await;
        *noted.lock().unwrap() = Some(result)
    }));
    cluster.advance(Duration::from_millis(100));
    assert_eq!(*led.lock().unwrap(), None, "the crash marker is not committed");
    journal.tell_deposed();
    cluster.advance(Duration::from_millis(100));
    assert_eq!(*led.lock().unwrap(), Some(Err(LeadError::Superseded)));
    let again = lead(&mut cluster, 11, Arc::new(Full), state(11));
    assert!(matches!(again, Err(LeadError::Journal { .. })), "it may try again: {again:?}")
}

/// The registry refuses a hive that did not know yet that another one leads the colony in a later term.
#[test]
fn a_hive_that_the_registry_refuses_has_begun_nothing() {
    let mut cluster = counters(None).start(13);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let journal = Arc::<Patient>::default();
    let led = Arc::<Mutex<Option<Result<(), LeadError>>>>::default();
    let (hive, noted, of_hive) = (cluster.hive(1).clone(), led.clone(), journal.clone());
    cluster.platform().spawn(Box::pin(async move {
        let result = hive.lead(COLONY, 9, of_hive, state(9)).await;
        *noted.lock().unwrap() = Some(result)
    }));
    cluster.advance(Duration::from_millis(100));
    cluster.hold_replica(1, Duration::from_millis(500));
    cluster.decide(&[Proposal::Leader { colony: COLONY, term: 10, hive: HiveId(0) }]);
    journal.commit();
    cluster.advance(Duration::from_millis(100));
    assert_eq!(*led.lock().unwrap(), None, "the replica is late");
    cluster.advance(Duration::from_secs(1));
    assert_eq!(*led.lock().unwrap(), Some(Err(LeadError::Superseded)));
    assert_eq!((count(&mut cluster, 1, 7), count(&mut cluster, 2, 8)), (Ok(2), Ok(1)))
}
