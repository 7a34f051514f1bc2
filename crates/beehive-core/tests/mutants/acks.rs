//! Acknowledgments between two logs: what a sender's log forgets, the receiver's log knows.

use crate::directed::{check, wait};
use crate::findings::{Checker, Finding, Watched};
use crate::log_checks::replay;
use beehive_core::journal::{LaneId, LogState, Part, Seq};
use beehive_core::testing::{Mutant, TestJournal};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::time::{Duration, Instant};

/// Sends [`Look`].
#[derive(Message)]
struct Say(u64);
/// Looks at a cell, and changes nothing.
#[derive(Message)]
struct Look(u64);

#[derive(App)]
#[app(name = "teller")]
struct Teller {
    said: Dict<u64, u64>,
}
#[handlers]
impl Teller {
    #[rcv(sharded)]
    fn say(&mut self, msg: &Say, ctx: &mut Ctx) {
        *self.said.entry(msg.0).or_default() += 1;
        ctx.emit(Look(msg.0))
    }
}

#[derive(App)]
#[app(name = "watcher")]
struct Watcher {
    seen: Dict<u64, u64>,
}
#[handlers]
impl Watcher {
    #[rcv(sharded)]
    fn look(&mut self, msg: &Look) {
        let _ = self.seen.get(&msg.0);
    }
}

/// Returns the messages that no log knows: they are neither in the sender's outbox nor in the table of any bee that has handled
/// them.
fn unknown(sender: &LogState, receiver: &LogState) -> Vec<(LaneId, Seq)> {
    let senders = sender.bees.iter().map(|((app, bee), image)| (LaneId::of_bee(*app, *bee), image.next_seq));
    let sent = senders.flat_map(|(lane, next)| (0..next.0).map(move |seq| (lane, Seq(seq))));
    let is_waiting =
        |(lane, seq): (LaneId, Seq)| sender.outbox.keys().any(|id| (id.lane, id.seq) == (lane, seq));
    let is_handled = |(lane, seq): (LaneId, Seq)| {
        receiver.bees.values().any(|bee| bee.seen.contains(lane, seq, Part::WHOLE))
    };
    sent.filter(|sent| !is_waiting(*sent) && !is_handled(*sent)).collect()
}

/// A message without effect is handled while the log of its receiver commits nothing, and the log of its sender commits. If the
/// process ended now, the sender would not send the message again, and the receiver would take a late copy for a new message.
#[test]
fn an_acknowledgment_of_a_message_without_effect_that_no_entry_names() {
    check(Mutant::AckFromMemory, Checker::Emits, |mutant| {
        Watched::new(2).run(async move {
            let [of_teller, of_watcher] = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
            let builder = Hive::builder().app::<Teller>().app::<Watcher>().seed(3).mutant(mutant);
            let builder = builder.journal_of(["teller"], of_teller.clone(), LogState::default());
            let hive =
                builder.journal_of(["watcher"], of_watcher.clone(), LogState::default()).start().unwrap();
            hive.emit(Say(1)).await;
            hive.idle().await;

            of_watcher.stall(true);
            hive.emit(Say(1)).await;
            let began = Instant::now();
            let looked = || {
                let status = hive.status();
                status.apps[1].handlers.iter().any(|handler| handler.name == "look" && handler.messages == 2)
            };
            while !looked() {
                wait("the message is handled", began).await?
            }
            // some times as long as acknowledgments wait for their record
            tokio::time::sleep(Duration::from_millis(500)).await;
            of_teller.stop();
            of_watcher.stop();
            let unknown = unknown(&replay(&of_teller.log()), &replay(&of_watcher.log()));
            hive.stop(Duration::ZERO).await;
            match unknown.first() {
                None => Ok(()),
                Some(message) => {
                    Err(Finding::new(Checker::Emits, format!("no log knows the message {message:?}")))
                }
            }
        })?
    })
}
