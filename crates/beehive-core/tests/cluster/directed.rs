//! Directed tests: each one needs one rule of the messages between hives, and fails if a hive breaks it.

use crate::bank::{Account, Audited, Auditor, Bank, Look, Pay};
use beehive_core::testing::{Cluster, ClusterSetup, Mutant, NetworkFaults};
use beehive_core::{App, Ctx, Dict, ErrorKind, Message, RequestError, handlers};
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Count(pub(crate) u64);

/// Forgets the count of a key.
#[derive(Message)]
pub(crate) struct Forget(pub(crate) u64);

/// Counts a key later, by way of a handler without state.
#[derive(Message)]
pub(crate) struct CountLater {
    pub(crate) by: u64,
    pub(crate) key: u64,
}

#[derive(Message)]
struct Later(u64);

#[derive(App)]
#[app(name = "counters")]
struct Counters {
    counters: Dict<u64, u64>,
    later: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    fn count(&mut self, msg: &Count) -> u64 {
        let counter = self.counters.entry(msg.0).or_default();
        *counter += 1;
        *counter
    }

    #[rcv]
    fn forget(&mut self, msg: &Forget) {
        self.counters.remove(&msg.0);
    }

    #[rcv]
    fn count_later(&mut self, msg: &CountLater, ctx: &mut Ctx) {
        *self.later.entry(msg.by).or_default() += 1;
        ctx.after(Duration::from_millis(1), Later(msg.key))
    }

    #[rcv(stateless)]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        ctx.emit(Count(msg.0))
    }
}

/// A network that does nothing to packets except delay them.
pub(crate) const QUIET: NetworkFaults =
    NetworkFaults { lose_one_in: 0, double_one_in: 0, delay_max: Duration::from_micros(100) };

pub(crate) fn counters(mutant: Option<Mutant>) -> ClusterSetup {
    Cluster::of::<Counters>().network(QUIET).mutant(mutant)
}

/// Lets hive `hive` count a key.
#[track_caller]
pub(crate) fn count(cluster: &mut Cluster, hive: usize, key: u64) -> Result<u64, RequestError> {
    let hive = cluster.hive(hive).clone();
    cluster.drive(hive.request(Count(key)))
}

/// Runs a test that passes without the mutant, and fails with it.
fn notices(mutant: Mutant, test: impl Fn(Option<Mutant>) -> Result<(), String>) {
    test(None).unwrap_or_else(|found| panic!("without the mutant: {found}"));
    let found = test(Some(mutant)).expect_err("the test does not notice the mutant");
    println!("{mutant:?}: {found}")
}

#[test]
fn a_request_is_answered_by_the_hive_that_owns_the_cells() {
    let mut cluster = Cluster::of::<Bank>().app::<Auditor>().network(QUIET).start(1);
    let hives = [0, 1, 2].map(|hive| cluster.hive(hive).clone());
    let ask = |hive: usize| hives[hive].clone();
    let pay = |number, amount| Pay { number, from: 1, to: 2, amount };
    assert_eq!(cluster.drive(ask(0).request(pay(1, 5))), Ok(1));
    assert_eq!(cluster.drive(ask(1).request(pay(2, 5))), Ok(2));
    assert_eq!(cluster.drive(ask(2).request(pay(3, 5))), Ok(3));
    // the answers say nothing of the other account, to which the money is under way
    cluster.advance(Duration::from_millis(50));
    for hive in 0..3 {
        let account = cluster.drive(ask(hive).request(Look(2))).unwrap();
        assert_eq!((account.balance, account.faults), (15, vec![]));
        assert_eq!(cluster.drive(ask(hive).request(Audited(2))), Ok(15));
        let none: Result<Account, _> = cluster.drive(ask(hive).request(Look(9)));
        assert!(matches!(none, Err(RequestError::NoAnswer { .. })), "{none:?}");
        let refused = cluster.drive(ask(hive).request(pay(4, -1)));
        assert_eq!(refused.as_ref().map_err(RequestError::kind), Err(Some(ErrorKind::Handler)));
        assert_eq!(refused.unwrap_err().to_string(), "-1 is not an amount");
    }
}

/// The hive that handled a message crashes before its acknowledgment arrives, and starts again on its log.
fn resent(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).start(2);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 7)), (Ok(1), Ok(2)));
    cluster.stall(0, true);
    cluster.hive(1).try_emit(Count(7)).map_err(|busy| format!("{busy:?}"))?;
    // the message arrives, but no acknowledgment comes back
    cluster.advance(Duration::from_millis(5));
    cluster.cut(0, 1, true);
    cluster.stall(0, false);
    cluster.advance(Duration::from_millis(50));
    cluster.crash(0);
    cluster.restart(0);
    // the bee wakes before the message is sent again
    assert_eq!(count(&mut cluster, 2, 7), Ok(4));
    cluster.cut(0, 1, false);
    cluster.advance(Duration::from_secs(1));
    match count(&mut cluster, 2, 7) {
        Ok(5) => Ok(()),
        other => Err(format!("the counter is at {other:?}")),
    }
}

#[test]
fn a_message_that_is_sent_again_after_a_restart_is_handled_once() {
    notices(Mutant::RestartRetiresForeign, resent);
    notices(Mutant::ForeignForgotten, resent)
}

/// A process crashes. The next one begins its term, and only then the log receives what the first one had appended.
#[test]
fn late_entries_of_an_earlier_term_have_no_effect() {
    let mut cluster = counters(None).start(21);
    for term in 1..=4 {
        let state = &cluster.log_states(0)[0];
        assert_eq!((state.last.term(), state.bees.len()), (term, usize::from(term > 1)));
        assert_eq!(count(&mut cluster, 0, 7), Ok(term), "one more than in the term before");

        cluster.stall(0, true);
        for _ in 0..5 {
            cluster.hive(0).try_emit(Count(7)).unwrap();
            cluster.advance(Duration::from_millis(5));
        }
        let late = cluster.late_entries();
        cluster.crash(0);
        cluster.restart(0);
        assert!(cluster.late_entries() > late, "there are none in term {term}");
    }
}

/// A floor above a message that is under way makes its receiver take it for a duplicate.
fn answered(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).start(3);
    for counted in 1..=4 {
        let hive = counted as usize % 2;
        match count(&mut cluster, hive, 7) {
            Ok(so_far) if so_far == counted => {}
            other => return Err(format!("hive {hive}: {other:?}")),
        }
    }
    Ok(())
}

#[test]
fn the_floor_does_not_pass_a_message_that_is_under_way() {
    notices(Mutant::ForeignFloorTooHigh, answered)
}

/// Handlers without state send from two hives to one cell of a third one.
fn from_two_hives(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).start(4);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    for hive in 1..3 {
        let by = hive as u64;
        cluster.hive(hive).try_emit(CountLater { by, key: 7 }).map_err(|busy| format!("{busy:?}"))?
    }
    cluster.advance(Duration::from_secs(1));
    match count(&mut cluster, 0, 7) {
        Ok(4) => Ok(()),
        other => Err(format!("the counter is at {other:?}")),
    }
}

#[test]
fn handlers_without_state_number_their_messages_in_each_hive() {
    notices(Mutant::SameAppLane, from_two_hives)
}

/// The credit of a message to another hive is not free until that hive has handled the message.
fn credit(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).credits(1).start(5);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.cut(0, 1, true);
    let hive = cluster.hive(1).clone();
    hive.try_emit(Count(7)).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(500));
    if hive.try_emit(Count(8)).is_ok() {
        return Err("the credit is free, although the message has not arrived".into());
    }
    cluster.cut(0, 1, false);
    cluster.advance(Duration::from_millis(500));
    hive.try_emit(Count(8)).map_err(|_| "the credit is not free, although the message is handled")?;
    Ok(())
}

#[test]
fn a_credit_returns_when_the_other_hive_has_handled_the_message() {
    notices(Mutant::CreditAtSend, credit)
}

/// The registry gives a cell to a hive that crashes before its log says anything about the bee.
fn missing(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).start(6);
    cluster.stall(0, true);
    cluster.hive(0).try_emit(Count(7)).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(50));
    assert_eq!(cluster.registry(|state| state.bees()), 1);
    cluster.crash(0);
    cluster.restart(0);
    match count(&mut cluster, 1, 7) {
        Ok(1) => Ok(()),
        other => Err(format!("the counter is at {other:?}")),
    }
}

#[test]
fn a_restart_creates_the_bees_that_the_registry_has_assigned() {
    notices(Mutant::MissingNotCreated, missing)
}

/// A bee ends, and its hive crashes before the registry knows. The next process is asked for the bee's cell at once.
#[test]
fn a_bee_that_ended_before_a_crash_is_not_created_again() {
    let mut asked_in_time = 0;
    for seed in 0..40 {
        let mut cluster = counters(None).replicas_late(Duration::from_millis(20)).start(seed);
        assert_eq!(count(&mut cluster, 0, 7), Ok(1));
        cluster.hive(0).try_emit(Forget(7)).unwrap();
        while cluster.log_states(0)[0].untold.is_empty() {
            cluster.advance(Duration::from_millis(1))
        }
        cluster.crash(0);
        asked_in_time += cluster.registry(|state| state.bees());
        cluster.restart(0);
        assert_eq!(count(&mut cluster, 0, 7), Ok(1), "seed {seed}: a new bee");
        cluster.advance(Duration::from_secs(1));
        assert_eq!(count(&mut cluster, 1, 7), Ok(2), "seed {seed}: the cell has one owner");
        assert_eq!(count(&mut cluster, 0, 7), Ok(3), "seed {seed}: for all hives");
    }
    assert!(asked_in_time > 10, "the registry knew of the end in all but {asked_in_time} of 40 runs")
}

/// A request to a hive that is cut off ends with a timeout, and the hive handles the message when it can.
#[test]
fn a_request_that_cannot_arrive_ends_and_its_message_arrives_later() {
    let mut cluster = counters(None).start(7);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.cut(0, 1, true);
    assert!(matches!(count(&mut cluster, 1, 7), Err(RequestError::Timeout { .. })));
    cluster.cut(0, 1, false);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(count(&mut cluster, 1, 7), Ok(3));
}

/// A request whose hive crashes after it has committed the answer has an unknown outcome. Nothing is handled twice.
#[test]
fn a_request_ends_when_the_hive_that_handles_it_crashes() {
    let mut cluster = counters(None).start(8);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 7)), (Ok(1), Ok(2)));
    cluster.stall(0, true);
    let hive = cluster.hive(1).clone();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(None));
    let (answer, asking) = (asked.clone(), hive.clone());
    beehive_core::seams::Platform::spawn(
        cluster.platform(),
        Box::pin(async move {
            let answered = asking.request(Count(7)).await;
            *answer.lock().unwrap() = Some(answered)
        }),
    );
    cluster.advance(Duration::from_millis(5));
    cluster.cut(0, 1, true);
    cluster.stall(0, false);
    cluster.advance(Duration::from_millis(50));
    cluster.crash(0);
    cluster.restart(0);
    cluster.cut(0, 1, false);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(*asked.lock().unwrap(), Some(Err(RequestError::Unavailable)));
    assert_eq!(count(&mut cluster, 1, 7), Ok(4));
}

/// Two hives claim the same cell at the same time; the loser finds the winner's bee.
#[test]
fn hives_that_claim_a_cell_at_the_same_time_find_one_owner() {
    for seed in 0..20 {
        let mut cluster = Cluster::of::<Counters>().replicas_late(Duration::from_millis(20)).start(seed);
        for key in 0..5 {
            (0..3).for_each(|hive| cluster.hive(hive).try_emit(Count(key)).unwrap())
        }
        cluster.advance(Duration::from_secs(1));
        for key in 0..5 {
            assert_eq!(count(&mut cluster, key as usize % 3, key), Ok(4), "seed {seed}, key {key}");
        }
    }
}

/// Bees without state end, although other hives have sent them messages.
#[test]
fn what_other_hives_sent_is_forgotten_when_its_sender_has_moved_on() {
    let mut cluster = Cluster::of::<Bank>().app::<Auditor>().network(QUIET).start(9);
    let hives = [0, 1, 2].map(|hive| cluster.hive(hive).clone());
    let ask = |hive: usize| hives[hive].clone();
    for account in 0..20 {
        // the account does not exist, so its bee is empty
        let _ = cluster.drive(ask(0).request(Look(account)));
        let _ = cluster.drive(ask(1).request(Look(account)));
    }
    assert!(cluster.registry(|state| state.bees()) > 10);
    cluster.advance(Duration::from_secs(5));
    assert_eq!(cluster.registry(|state| state.bees()), 0);
    for hive in 0..3 {
        let states = cluster.log_states(hive);
        assert!(states.iter().all(|state| state.bees.is_empty() && state.untold.is_empty()))
    }
}

#[derive(Message)]
struct Burst {
    /// Number of messages.
    count: u64,
    /// Size of each, in bytes.
    bytes: usize,
}

#[derive(Message)]
struct Part {
    number: u64,
    content: Vec<u8>,
}

/// Sends many large messages from one bee to another one.
#[derive(App)]
struct Bursts {
    bursts: Dict<u64, u64>,
    parts: Dict<u64, Vec<u64>>,
}

#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Parts;

#[handlers]
impl Bursts {
    #[rcv(centralized)]
    fn burst(&mut self, msg: &Burst, ctx: &mut Ctx) {
        *self.bursts.entry(0).or_default() += 1;
        for number in 0..msg.count {
            ctx.emit(Part { number, content: vec![7; msg.bytes] })
        }
    }

    #[rcv(centralized)]
    fn part(&mut self, msg: &Part) {
        assert!(msg.content.iter().all(|byte| *byte == 7));
        self.parts.entry(0).or_default().push(msg.number)
    }

    #[rcv(centralized)]
    fn parts(&mut self, _: &Parts) -> Vec<u64> {
        self.parts.entry(0).or_default().clone()
    }
}

/// A packet has a bounded size, so messages that are sent together go in several packets, in order.
#[test]
fn large_messages_go_to_another_hive_in_several_packets() {
    let mut cluster = Cluster::of::<Bursts>().network(QUIET).start(4);
    let hives = [0, 1, 2].map(|hive| cluster.hive(hive).clone());
    let hive = |at: usize| hives[at].clone();
    assert_eq!(cluster.drive(hive(1).request(Parts)), Ok(vec![]));
    hive(0).try_emit(Burst { count: 40, bytes: 200 << 10 }).unwrap();
    cluster.advance(Duration::from_secs(1));
    assert_eq!(cluster.drive(hive(2).request(Parts)), Ok((0..40).collect()));
    assert!(cluster.largest_packet() < 2 << 20, "{} bytes", cluster.largest_packet());
}

#[derive(Message)]
struct Clear;

#[derive(App)]
struct Swept {
    values: Dict<u64, u64>,
}

#[handlers]
impl Swept {
    #[rcv(each = values)]
    fn clear(&mut self, key: &u64, _: &Clear) {
        self.values.remove(key);
    }
}

#[test]
#[should_panic(expected = "`beehive-core::Clear` visits all cells of a dictionary of `swept`")]
fn an_app_whose_messages_sweep_is_refused() {
    drop(Cluster::of::<Swept>().start(1))
}
