//! Sweeps and the messages behind them, if bees may be in several logs: a hive that starts again delivers the messages of
//! each sender in order, whichever logs they are in.

use crate::load::on_workers;
use beehive_core::journal::{Entry, Journal, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

#[derive(Message)]
struct Plant(u64);
#[derive(Message)]
struct All(u64);
#[derive(Message)]
struct After(u64);
#[derive(Message)]
struct Begin(u64);
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Turns(u64);

#[derive(App)]
struct Field {
    turns: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Field {
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        self.turns.entry(msg.0).or_default();
    }
    #[rcv(each = turns)]
    fn all(&mut self, key: &u64, msg: &All) {
        self.turns.entry(*key).or_default().push(msg.0)
    }
    #[rcv(sharded)]
    fn after(&mut self, msg: &After) {
        self.turns.entry(msg.0).or_default().push(1)
    }
    #[rcv(sharded)]
    fn turns(&mut self, msg: &Turns) -> Vec<u64> {
        self.turns.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[derive(App)]
struct Farmer {
    begun: Dict<u64, u64>,
}
#[handlers]
impl Farmer {
    #[rcv(centralized)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        *self.begun.entry(0).or_default() += 1;
        ctx.emit(All(0));
        for key in 0..msg.0 {
            ctx.emit(After(key))
        }
    }
}

const KEYS: u64 = 3_000;

#[test]
fn a_senders_messages_stay_behind_its_sweep_after_a_crash() {
    for count in [1_u64, 2, 4] {
        let mut worst = 0;
        for run in 0..3_u64 {
            let mut logs: Vec<Vec<Vec<u8>>> = vec![Vec::new(); count as usize];
            for life in 0..2u64 {
                let early = on_workers(3, async {
                    let (mut journals, mut all) = (Vec::new(), Vec::new());
                    for (at, log) in logs.iter().enumerate() {
                        let mut state = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
                        state.marker = None;
                        let journal = TestJournal::start(run * 10 + life + 3 * at as u64 + 1, 0, state.last);
                        journals.push(journal.clone());
                        all.push((journal as Arc<dyn Journal>, state))
                    }
                    let hive =
                        Hive::builder().app::<Field>().app::<Farmer>().seed(3).journals(all).start().unwrap();
                    let mut early = 0;
                    if life == 0 {
                        let mut io = hive.io();
                        for key in 0..KEYS {
                            io.emit(Plant(key));
                            if key % 500 == 0 {
                                io.flush().await
                            }
                        }
                        io.flush().await;
                        hive.idle().await;
                        io.emit(Begin(KEYS));
                        io.flush().await;
                        // until the sweep has taken its first step
                        let steps = |bytes: &Vec<u8>| {
                            matches!(Entry::decode(bytes).unwrap().record, Record::Expand { .. })
                        };
                        while !journals[0].log().iter().rev().take(50).any(steps) {
                            tokio::time::sleep(Duration::from_micros(200)).await
                        }
                        tokio::time::sleep(Duration::from_micros(200 * run)).await;
                    } else {
                        hive.idle().await;
                        tokio::time::sleep(Duration::from_millis(500)).await;
                        hive.idle().await;
                        for key in 0..KEYS {
                            let turns = hive.request(Turns(key)).await.unwrap();
                            match turns[..] {
                                [] | [0, 1] => {}
                                [1, 0] => early += 1,
                                _ => panic!("cell {key}: {turns:?}"),
                            }
                        }
                    }
                    journals.iter().for_each(|journal| journal.stop());
                    hive.stop(Duration::ZERO).await;
                    for (journal, log) in journals.iter().zip(&mut logs) {
                        log.extend(journal.log())
                    }
                    early
                });
                worst = worst.max(early)
            }
        }
        println!("{count} logs: at most {worst} overtaken");
        assert_eq!(worst, 0, "{count} logs");
    }
}
