//! A run that changes and sends nothing has no log entry of its own, and its effects wait until everything
//! that it has read is committed. If its messages may arrive again, a later entry records them as handled.

use crate::load::{Chance, eventually, on_workers};
use beehive_core::journal::{Entry, Input, LaneId, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, BeeId, Dict, Error, Hive, Message, RequestError, Table, handlers};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
struct Add(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Get(u64);
/// A message whose handler changes its cell and then fails, so the change is rolled back.
#[derive(Message)]
#[message(reply = u64)]
struct Fail(u64);
/// A message whose handler stores the value that the cell already has.
#[derive(Message)]
#[message(reply = u64)]
struct Refresh(u64);
/// Changes its cell or only reads it.
#[derive(Message)]
struct Touch {
    key: u64,
    change: bool,
}
#[derive(App)]
struct Counter {
    counts: Dict<u64, u64>,
    rows: Table<u64, u64, u64>,
}
#[handlers]
impl Counter {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) -> u64 {
        let count = self.counts.entry(msg.0).or_default();
        *count += 1;
        *count
    }
    #[rcv(sharded)]
    fn get(&mut self, msg: &Get) -> u64 {
        self.counts.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn touch(&mut self, msg: &Touch) {
        let count = self.counts.get(&msg.key).copied().unwrap_or(0);
        if msg.change {
            self.counts.put(msg.key, count + 1);
        }
    }
    #[rcv(sharded)]
    fn refresh(&mut self, msg: &Refresh) -> u64 {
        let count = self.counts.get(&msg.0).copied().unwrap_or(0);
        if count > 0 {
            self.counts.put(msg.0, 0);
            self.counts.put(msg.0, count);
        }
        let rows = self.rows.at(msg.0);
        rows.insert(1, 1);
        rows.remove(&1);
        count
    }
    #[rcv(sharded)]
    fn fail(&mut self, msg: &Fail) -> Result<u64, Error> {
        *self.counts.entry(msg.0).or_default() += 1;
        Err("as asked")?
    }
}

/// Returns a hive on a journal that refuses one entry in `refuse_one_in`.
fn start(refuse_one_in: u64) -> (Hive, Arc<TestJournal>) {
    let journal = TestJournal::start(7, refuse_one_in, 0);
    let hive = Hive::builder().app::<Counter>().journal(journal.clone(), LogState::default());
    (hive.start().unwrap(), journal)
}

#[test]
fn a_run_that_changes_and_sends_nothing_has_no_entry() {
    on_workers(2, async {
        let (hive, journal) = start(0);
        assert_eq!(hive.request(Add(1)).await, Ok(1));
        let logged = journal.log().len();

        for _ in 0..50 {
            assert_eq!(hive.request(Get(1)).await, Ok(1));
            assert_eq!(hive.request(Refresh(1)).await, Ok(1));
            assert!(matches!(hive.request(Fail(1)).await, Err(RequestError::Handler(_))));
        }

        let mut io = hive.io();
        for key in 0..200 {
            io.emit(Get(key % 4))
        }
        io.flush().await;

        let mut answers = 0;
        while answers < 200 {
            let some = io.receive().await.into_answers::<Get>().ok().unwrap();
            answers += some.into_iter().map(|answer| assert!(answer.unwrap() <= 1)).count()
        }

        // bees that were created for reads of missing keys retire, and the log has never contained them
        eventually("retired", Duration::from_secs(10), || hive.status().apps[0].bees == 1).await;
        assert_eq!((journal.log().len(), journal.waiting()), (logged, 0));
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn a_read_is_answered_only_when_what_it_has_read_is_committed() {
    on_workers(2, async {
        let (hive, journal) = start(0);
        assert_eq!(hive.request(Add(1)).await, Ok(1));
        journal.stall(true);

        let adding = tokio::spawn({
            let hive = hive.clone();
            async move { hive.request(Add(1)).await }
        });
        eventually("the change is in flight", Duration::from_secs(5), || journal.waiting() > 0).await;

        let limit = Duration::from_millis(100);
        assert_eq!(
            hive.request_within(limit, Get(1)).await,
            Err(RequestError::Timeout { after: limit }),
            "the change may still be refused"
        );

        let reading = tokio::spawn({
            let hive = hive.clone();
            async move { hive.request(Get(1)).await }
        });
        journal.stall(false);
        assert_eq!((adding.await.unwrap(), reading.await.unwrap()), (Ok(2), Ok(2)));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// The journal first refuses every entry. A read that has seen a refused change is executed again, and then
/// sees the change that is committed.
#[test]
fn a_read_of_a_refused_change_is_run_again() {
    on_workers(2, async {
        let (hive, journal) = start(1);
        let mut io = hive.io();
        for _ in 0..20 {
            io.emit(Add(1));
        }
        for _ in 0..20 {
            io.emit(Get(1));
        }
        io.flush().await;

        eventually("refused", Duration::from_secs(5), || journal.refused() > 3).await;
        assert!(io.try_receive().is_none(), "nothing is committed");
        journal.accept_all();

        let (mut added, mut read) = (Vec::new(), Vec::new());
        while added.len() + read.len() < 40 {
            match io.receive().await.into_answers::<Add>() {
                Ok(answers) => added.extend(answers.into_iter().map(Result::unwrap)),
                Err(mail) => {
                    read.extend(mail.into_answers::<Get>().ok().unwrap().into_iter().map(Result::unwrap))
                }
            }
        }

        assert_eq!(added, (1..=20).collect::<Vec<u64>>());
        assert_eq!(read, [20; 20], "a sender's read comes after its changes");
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Returns, for each entry of a log, the bee, lane and number of each message that the entry records as
/// handled.
fn said(log: &[Vec<u8>]) -> Vec<Vec<(BeeId, LaneId, u64)>> {
    let numbers = |bee: BeeId, inputs: &[Input]| {
        let all = inputs.iter().flat_map(|input| input.messages().map(|(seq, _)| (input.lane, seq.0)));
        all.map(|(lane, seq)| (bee, lane, seq)).collect::<Vec<_>>()
    };
    let of_entry = |bytes: &Vec<u8>| match Entry::decode(bytes).expect("is an entry").record {
        Record::Turn(works) => works.iter().flat_map(|work| numbers(work.bee, &work.inputs)).collect(),
        Record::Consumed(all) => all.iter().flat_map(|one| numbers(one.bee, &one.inputs)).collect(),
        _ => Vec::new(),
    };
    log.iter().map(of_entry).collect()
}

/// A sender that may continue its lane after a crash may resend a read. One entry records many such reads.
#[test]
fn reads_that_may_be_sent_again_are_logged_together() {
    on_workers(2, async {
        let (hive, journal) = start(0);
        for key in 0..4 {
            assert_eq!(hive.request(Add(key)).await, Ok(1));
        }
        let logged = journal.log().len();

        let mut io = hive.io();
        io.resume(5, 0);
        (0..200).for_each(|n| io.emit(Get(n % 4)));
        io.flush().await;

        let said = || said(&journal.log()[logged..]);
        let all = || said().concat().len() == 200;
        eventually("the log knows that the reads were handled", Duration::from_secs(5), all).await;
        assert!(said().len() < 20, "{} entries", said().len());
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A log cannot record handled messages for a bee that it does not contain. Therefore the first message of a
/// bee is logged together with the bee's cells, even if it has no effect.
#[test]
fn a_read_of_a_new_bee_that_may_be_sent_again_is_logged_at_once() {
    on_workers(2, async {
        let (hive, journal) = start(0);
        let mut io = hive.io();
        io.resume(5, 0);
        io.emit(Get(9));
        io.flush().await;
        io.receive().await;
        assert_eq!(said(&journal.log()).concat().len(), 1);
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// After a crash, messages that are not recorded in the log are handled again. None of them may then take
/// effect after a later message of the same sender to the same bee. Therefore each entry must list all
/// earlier messages of the sender that the bee has handled and that no earlier entry lists. This also holds
/// if entries are refused in between.
#[test]
fn an_entry_says_what_its_bee_has_handled_before() {
    for seed in 0..3 {
        on_workers(2, async {
            let journal = TestJournal::start(seed, 4, 0);
            let builder = Hive::builder().app::<Counter>().journal(journal.clone(), LogState::default());
            let hive = builder.start().unwrap();
            let (keys, count) = (3, 1_000);

            let mut io = hive.io();
            io.resume(5, 0);
            let mut chance = Chance(seed + 1);
            let (mut key_of, mut next) = (HashMap::new(), 0);
            for _ in 0..count / 10 {
                for _ in 0..10 {
                    let key = chance.below(keys);
                    key_of.insert(next, key);
                    next += 1;
                    io.emit(Touch { key, change: chance.below(3) == 0 })
                }
                io.flush().await
            }

            let total = || said(&journal.log()).concat().len();
            eventually("everything is logged", Duration::from_secs(20), || total() >= count as usize).await;
            journal.stop();

            let lane = LaneId::lasting(5);
            let (mut known, mut highest) = (HashSet::new(), HashMap::<u64, u64>::new());
            for entry in said(&journal.log()) {
                let new: Vec<u64> =
                    entry.into_iter().filter(|(_, l, _)| *l == lane).map(|(.., seq)| seq).collect();
                for seq in &new {
                    assert!(known.insert(*seq), "{seq} twice");
                }
                for seq in new {
                    let high = highest.entry(key_of[&seq]).or_default();
                    *high = seq.max(*high);
                    let missing = (0..*high).find(|s| key_of[s] == key_of[&seq] && !known.contains(s));
                    assert_eq!(missing, None, "seed {seed}: {seq} is in the log before it");
                }
            }
            hive.stop(Duration::ZERO).await;
        })
    }
}

/// If an app passes a message on, the log contains it until the next app of the chain has consumed it, even
/// if that app only reads.
#[test]
fn a_read_of_a_message_that_another_app_has_passed_on_leaves_the_outbox() {
    #[derive(Message)]
    #[message(reply = u64)]
    struct Look(u64);
    #[derive(App)]
    struct First {
        looks: Dict<u64, u64>,
    }
    #[handlers]
    impl First {
        #[rcv(sharded)]
        fn look(&mut self, msg: &Look) -> Option<u64> {
            *self.looks.entry(msg.0).or_default() += 1;
            None
        }
    }
    #[derive(App)]
    struct Second {
        answers: Dict<u64, u64>,
    }
    #[handlers]
    impl Second {
        #[rcv(sharded)]
        fn look(&mut self, msg: &Look) -> u64 {
            self.answers.get(&msg.0).copied().unwrap_or(7)
        }
    }

    on_workers(2, async {
        let journal = TestJournal::start(7, 5, 0);
        let builder = Hive::builder().app::<First>().app::<Second>();
        let hive = builder.journal(journal.clone(), LogState::default()).start().unwrap();
        for key in 0..50 {
            assert_eq!(hive.request(Look(key % 5)).await, Ok(7));
        }

        let state = || LogState::replay(journal.log().iter().map(Vec::as_slice)).expect("is whole");
        eventually("handled", Duration::from_secs(5), || state().outbox.is_empty()).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// While a log commits nothing, its reads go on, and the notes that they leave do not pile up: at most one entry of notes
/// waits for the log, and notes that the floor of the sender has passed are dropped.
#[test]
fn the_notes_about_reads_are_bounded_while_the_log_is_stalled() {
    on_workers(2, async {
        let (hive, journal) = start(0);
        for key in 0..4 {
            assert_eq!(hive.request(Add(key)).await, Ok(1));
        }
        journal.stall(true);

        let mut io = hive.io();
        io.resume(5, 0);
        let (rounds, size) = (500, 100);
        for round in 0..rounds {
            (0..size).for_each(|n| io.emit(Get(n % 4)));
            io.flush().await;
            let done = || io.floor() == (round + 1) * size;
            eventually("the reads are answered", Duration::from_secs(10), done).await;
            while io.try_receive().is_some() {}
        }
        // one entry of notes, and one for the time
        assert!(journal.waiting() <= 2, "{} entries wait", journal.waiting());

        let logged = journal.log().len();
        journal.stall(false);
        let said = || said(&journal.log()[logged..]).concat();
        let last = |said: Vec<(BeeId, LaneId, u64)>| said.iter().map(|(.., seq)| *seq).max();
        let all = || last(said()) == Some(rounds * size - 1);
        eventually("the log knows the last reads", Duration::from_secs(5), all).await;
        let count = said().len() as u64;
        assert!(count < rounds * size / 5, "{count} of {} messages are named", rounds * size);
        hive.stop(Duration::from_secs(5)).await;
    })
}
