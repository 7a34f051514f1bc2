//! The watchdog: a message that holds its thread for too long is counted, and is listed in the status while
//! it holds the thread.

use crate::load::{eventually, on_workers};
use beehive_core::{App, Dict, Hive, Io, Message, Status, StuckStatus, handlers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A message whose handler spins or blocks until the test releases it.
#[derive(Message, Clone)]
struct Hold {
    place: u64,
    gate: usize,
    spins: bool,
}
/// A message whose handler takes a millisecond.
#[derive(Message)]
struct Brief(u64);
#[derive(Message)]
struct HoldStateless(usize);
#[derive(Message)]
#[message(reply = u64)]
struct Quick(u64);

static LET_GO: [AtomicBool; 4] = [const { AtomicBool::new(false) }; 4];

/// Releases the handler when dropped, even if an assertion fails. Otherwise the runtime would wait for the
/// handler's thread forever.
struct LetsGo(usize);
impl Drop for LetsGo {
    fn drop(&mut self) {
        LET_GO[self.0].store(true, Ordering::Release)
    }
}

fn wait(gate: usize, spins: bool) {
    while !LET_GO[gate].load(Ordering::Acquire) {
        match spins {
            true => std::hint::spin_loop(),
            false => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[derive(App)]
struct Holder {
    held: Dict<u64, u64>,
}
#[handlers]
impl Holder {
    #[rcv(sharded)]
    fn hold(&mut self, msg: &Hold) {
        *self.held.entry(msg.place).or_default() += 1;
        wait(msg.gate, msg.spins)
    }
    #[rcv(stateless)]
    fn hold_stateless(&mut self, msg: &HoldStateless) {
        wait(msg.0, false)
    }
    #[rcv(sharded)]
    fn brief(&mut self, msg: &Brief) {
        *self.held.entry(msg.0).or_default() += 1;
        std::thread::sleep(Duration::from_millis(1))
    }
    #[rcv(sharded)]
    fn quick(&mut self, msg: &Quick) -> u64 {
        self.held.get(&msg.0).copied().unwrap_or(0)
    }
}

const STUCK_AFTER: Duration = Duration::from_millis(100);

fn start() -> Hive {
    Hive::builder().app::<Holder>().stuck_after(STUCK_AFTER).start().unwrap()
}

fn stuck(status: &Status, handler: &str) -> u64 {
    status.apps[0].handlers.iter().find(|h| h.name == handler).unwrap().stuck
}

async fn seen(hive: &Hive) -> StuckStatus {
    eventually("seen", Duration::from_secs(20), || !hive.status().stuck.is_empty()).await;
    hive.status().stuck.remove(0)
}

async fn unseen(hive: &Hive) {
    eventually("over", Duration::from_secs(20), || hive.status().stuck.is_empty()).await
}

#[test]
fn a_message_that_holds_its_handler_is_named_while_it_does() {
    for (gate, spins) in [(0, false), (1, true)] {
        on_workers(2, async {
            let (hive, lets_go) = (start(), LetsGo(gate));
            let began = Instant::now();
            hive.emit(Hold { place: 7, gate, spins }).await;
            let named = seen(&hive).await;

            assert!(began.elapsed() >= STUCK_AFTER, "{:?}", began.elapsed());
            assert_eq!((named.app, named.handler, named.message), ("holder", "hold", "Hold"));
            assert_eq!((named.chain.len(), named.cell.as_ref().map(String::len)), (16, Some(16)));
            assert!(u128::from(named.milliseconds) >= STUCK_AFTER.as_millis());

            // Other messages are handled, and the stuck message is reported once.
            assert_eq!(hive.request(Quick(8)).await, Ok(0));

            tokio::time::sleep(STUCK_AFTER).await;
            let later = hive.status();
            assert_eq!((later.stuck.len(), stuck(&later, "hold"), stuck(&later, "quick")), (1, 1, 0));
            assert!(later.stuck[0].milliseconds > named.milliseconds);

            drop(lets_go);
            unseen(&hive).await;
            assert_eq!(stuck(&hive.status(), "hold"), 1);

            // From now on the text of the message is shown as well.
            LET_GO[gate].store(false, Ordering::Release);
            let lets_go = LetsGo(gate);
            hive.emit(Hold { place: 9, gate, spins }).await;

            let named = seen(&hive).await;
            assert_eq!(named.words, format!("{{\"place\":9,\"gate\":{gate},\"spins\":{spins}}}"));

            drop(lets_go);
            unseen(&hive).await;
            assert_eq!(stuck(&hive.status(), "hold"), 2);
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

#[test]
fn a_stateless_handler_is_named_without_a_cell() {
    on_workers(2, async {
        let (hive, lets_go) = (start(), LetsGo(2));
        let mut io: Io = hive.io();
        io.emit(HoldStateless(2));
        io.flush().await;

        let named = seen(&hive).await;
        assert_eq!((named.handler, named.cell), ("hold_stateless", None));

        drop(lets_go);
        unseen(&hive).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// The watchdog measures a single message, not a run of them.
#[test]
fn many_messages_that_take_little_each_are_not_too_long() {
    on_workers(2, async {
        let hive = Hive::builder().app::<Holder>().stuck_after(Duration::from_secs(2)).start().unwrap();
        let mut io = hive.io();
        let began = Instant::now();
        (0..3_000).for_each(|_| io.emit(Brief(1)));
        io.flush().await;
        hive.idle().await;

        assert!(began.elapsed() > Duration::from_secs(3), "{:?}", began.elapsed());
        assert_eq!(stuck(&hive.status(), "brief"), 0);
        hive.stop(Duration::from_secs(5)).await;
    })
}
