//! A start with journals in another order is refused, because a hive that took another log for the first one would handle
//! messages twice.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::{Entry, LogPlace, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, StartError, handlers};
use std::sync::Arc;
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);

#[derive(App)]
struct Places {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Places {
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) -> u64 {
        let count = self.counts.entry(msg.0).or_default();
        *count += 1;
        *count
    }
}

/// Starts a hive on these logs, without a journal that was used before.
fn start(logs: &[LogState]) -> Result<(Hive, Vec<Arc<TestJournal>>), StartError> {
    let journals: Vec<_> = logs.iter().map(|state| TestJournal::start(3, 0, state.last)).collect();
    let builder = Hive::builder().app::<Places>().seed(7);
    let hive = builder.journals(
        journals.iter().cloned().zip(logs.iter().cloned()).map(|(journal, state)| (journal as _, state)),
    );
    Ok((hive.start()?, journals))
}

/// Counts each number once, and returns the logs after that, behind those before.
async fn live(before: &[LogState], logs: &mut Vec<Vec<Vec<u8>>>, count: u64) -> Vec<LogState> {
    let (hive, journals) = start(before).unwrap();
    for number in 0..20 {
        assert_eq!(hive.request(Count(number)).await, Ok(count))
    }
    hive.idle().await;
    let of = before.len() as u32;
    let said = || {
        journals.iter().zip(0..).zip(before).all(|((journal, number), before)| {
            let place = Some(LogPlace { number, of });
            let says = |bytes: &Vec<u8>| {
                Entry::decode(bytes).unwrap().record == Record::Place(LogPlace { number, of })
            };
            before.place == place || journal.log().iter().any(says)
        })
    };
    eventually("the logs know their places", Duration::from_secs(5), said).await;
    hive.stop(Duration::from_secs(5)).await;
    logs.resize(before.len(), Vec::new());
    for (log, journal) in logs.iter_mut().zip(&journals) {
        log.extend(journal.log())
    }
    logs.iter().map(|log| killed(log)).collect()
}

fn refusal(logs: &[LogState]) -> String {
    match start(logs) {
        Err(StartError::Log { why }) => why,
        Err(other) => panic!("{other}"),
        Ok((hive, _)) => {
            drop(hive);
            panic!("the hive has started")
        }
    }
}

#[test]
fn a_start_with_logs_in_another_order_is_refused() {
    on_workers(2, async {
        let mut logs = Vec::new();
        let one = live(&[LogState::default()], &mut logs, 1).await;
        let in_front = [LogState::default(), one[0].clone()];
        let expected = "log number 1 of 2 was log number 0 of 1 before: give the hive all its journals, in the same order, new \
                        ones last";
        assert_eq!(refusal(&in_front), expected);

        // a new one may come last
        let two = live(&[one[0].clone(), LogState::default()], &mut logs, 2).await;
        assert_eq!(two[0].place, Some(LogPlace { number: 0, of: 2 }));
        let swapped = [two[1].clone(), two[0].clone()];
        assert!(refusal(&swapped).starts_with("log number 0 of 2 was log number 1 of 2 before: give"));
        let why = refusal(&two[..1]);
        assert!(why.starts_with("log number 0 was one of 2 logs before, and is now one of 1: give"), "{why}");
        assert!(refusal(&two[1..]).starts_with("log number 0 of 1 was log number 1 of 2 before"));

        let again = live(&two, &mut logs, 3).await;
        assert_eq!(
            again.iter().map(|state| state.place).collect::<Vec<_>>(),
            two.iter().map(|state| state.place).collect::<Vec<_>>()
        );
    })
}

/// A crash may come before a log has learned its place, and logs of early versions do not contain any.
#[test]
fn a_log_that_says_nothing_about_its_place_may_be_anywhere() {
    on_workers(2, async {
        let mut logs = Vec::new();
        let two = live(&[LogState::default(), LogState::default()], &mut logs, 1).await;
        for said in [[true, false], [false, true], [false, false]] {
            let logs: Vec<_> = two
                .iter()
                .zip(said)
                .map(|(state, said)| LogState { place: state.place.filter(|_| said), ..state.clone() })
                .collect();
            let (hive, journals) = start(&logs).unwrap();
            assert_eq!(hive.request(Count(1)).await, Ok(2));
            for ((journal, said), number) in journals.iter().zip(said).zip(0..) {
                let place = LogPlace { number, of: 2 };
                let says = |bytes: &Vec<u8>| Entry::decode(bytes).unwrap().record == Record::Place(place);
                let is_said = || journal.log().iter().any(says);
                eventually("it is said once", Duration::from_secs(5), || said || is_said()).await;
                assert_eq!(is_said(), !said)
            }
            hive.stop(Duration::from_secs(5)).await;
        }
    })
}
