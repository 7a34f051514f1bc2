//! Messages to cells without a known owner: many such messages share one proposal to the registry, and a
//! message that waits for a merge does not delay any other message.

use crate::merge_storm::on_workers;
use crate::registry::{Counted, Counts, Effect, LateRegistry};
use beehive_core::registry::{LocalRegistry, Registry};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Message)]
struct Append {
    keys: Vec<u64>,
    number: u64,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Read(u64);
/// Makes the bee of a key send a message to another, new key.
#[derive(Message)]
struct Forward(u64);

#[derive(App)]
struct Lists {
    lists: Dict<u64, Vec<u64>>,
}
static APPENDED: AtomicU64 = AtomicU64::new(0);
#[handlers]
impl Lists {
    #[rcv(joins)]
    fn append(&mut self, msg: &Append) {
        for key in &msg.keys {
            self.lists.entry(*key).or_default().push(msg.number)
        }
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        APPENDED.fetch_add(1, Ordering::Relaxed);
    }
    #[rcv(sharded)]
    fn read(&mut self, msg: &Read) -> Vec<u64> {
        self.lists.get(&msg.0).cloned().unwrap_or_default()
    }
}
#[derive(App)]
struct Relays {
    forwarded: Dict<u64, u64>,
}
#[handlers]
impl Relays {
    #[rcv(sharded)]
    fn forward(&mut self, msg: &Forward, ctx: &mut Ctx) {
        *self.forwarded.entry(msg.0).or_default() += 1;
        ctx.emit(append(&[msg.0], 0));
        ctx.emit(append(&[msg.0], 1))
    }
}

fn append(keys: &[u64], number: u64) -> Append {
    Append { keys: keys.to_vec(), number, milliseconds: 0 }
}

/// Returns one registry that answers at once, and three that answer late.
fn registries() -> Vec<(&'static str, Arc<Counts>, Arc<dyn Registry>)> {
    let late = |effect, refuse| {
        let counts = Arc::new(Counts::default());
        (counts.clone(), Arc::new(LateRegistry::counted(effect, refuse, counts)) as Arc<dyn Registry>)
    };

    let counts = Arc::new(Counts::default());
    let at_once: Arc<dyn Registry> = Arc::new(Counted(LocalRegistry::default(), counts.clone()));
    let mut all = vec![("at once", counts, at_once)];

    for (name, effect, refuse) in [
        ("with the answer", Effect::WithTheAnswer, 0),
        ("before the answer", Effect::BeforeTheAnswer, 0),
        ("refusing", Effect::BeforeTheAnswer, 3),
    ] {
        let (counts, registry) = late(effect, refuse);
        all.push((name, counts, registry))
    }

    all
}

async fn all_read(hive: &Hive, what: &str, keys: std::ops::Range<u64>, want: &[u64]) {
    for key in keys {
        let (began, mut got) = (Instant::now(), Vec::new());
        while got.len() < want.len() && began.elapsed() < Duration::from_secs(20) {
            got = hive.request(Read(key)).await.unwrap()
        }
        assert_eq!(got, want, "{what}: key {key}");
    }
}

/// The tests run one at a time, because they count the work of all bees of the process.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

const KEYS: u64 = 1_000;

#[test]
fn a_thousand_fresh_keys_of_one_batch_are_a_few_proposals() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for (name, counts, registry) in registries() {
        on_workers(2, async {
            let hive = Hive::builder().app::<Lists>().registry(registry.clone()).start().unwrap();
            let mut io = hive.io();
            for number in 0..2 {
                for key in 0..KEYS {
                    io.emit(append(&[key], number))
                }
            }

            let before = APPENDED.load(Ordering::Relaxed);
            io.flush().await;
            let began = Instant::now();

            while APPENDED.load(Ordering::Relaxed) < before + 2 * KEYS {
                assert!(began.elapsed() < Duration::from_secs(20), "{name}: not all are handled");
                tokio::time::sleep(Duration::from_millis(1)).await
            }

            let (rounds, claims) = counts.read();
            println!("{name}: {} messages, {claims} claims in {rounds} proposals", 2 * KEYS);
            assert!(rounds <= 16 && claims >= KEYS, "{name}: {claims} claims in {rounds} proposals");
            assert!(name != "at once" || (rounds, claims) == (1, KEYS), "{claims} in {rounds}");
            all_read(&hive, name, 0..KEYS, &[0, 1]).await;
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// Each bee is a separate sender. Misses that arrive while a proposal is in flight are batched into the next
/// proposal.
#[test]
fn misses_of_a_thousand_bees_on_a_late_registry_are_a_few_proposals() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for (name, counts, registry) in registries().split_off(1) {
        on_workers(2, async {
            let apps = Hive::builder().app::<Relays>().app::<Lists>();
            let hive = apps.registry(registry.clone()).start().unwrap();
            let mut io = hive.io();
            for key in 0..KEYS {
                io.emit(Forward(key))
            }

            let before = APPENDED.load(Ordering::Relaxed);
            io.flush().await;
            let began = Instant::now();

            while APPENDED.load(Ordering::Relaxed) < before + 2 * KEYS {
                assert!(began.elapsed() < Duration::from_secs(20), "{name}: not all are handled");
                tokio::time::sleep(Duration::from_millis(1)).await
            }

            let (rounds, claims) = counts.read();
            println!("{name}: {KEYS} senders, {claims} claims in {rounds} proposals");
            assert!(rounds <= KEYS / 10, "{name}: {claims} claims in {rounds} proposals");
            all_read(&hive, name, 0..KEYS, &[0, 1]).await;
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// A merge takes as long as the handler that one of its bees runs.
#[test]
fn a_merge_that_takes_long_holds_up_only_messages_to_its_own_cells() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for (name, _, registry) in registries() {
        on_workers(2, async {
            let hive = Hive::builder().app::<Lists>().registry(registry.clone()).start().unwrap();
            for key in 0..6 {
                hive.emit(append(&[key], 0)).await;
            }

            all_read(&hive, name, 0..6, &[0]).await;
            hive.emit(Append { keys: vec![0], number: 1, milliseconds: 1_500 }).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut io = hive.io();

            // The second and the fourth message wait for the handler. Messages that merge other bees or need
            // new cells do not wait.
            for keys in [&[2, 3][..], &[0, 1], &[4, 5], &[1], &[7], &[3], &[8, 9]] {
                io.emit(append(keys, 2))
            }

            io.flush().await;
            let began = Instant::now();
            all_read(&hive, name, 2..3, &[0, 2]).await;
            all_read(&hive, name, 3..4, &[0, 2, 2]).await;
            all_read(&hive, name, 4..6, &[0, 2]).await;
            all_read(&hive, name, 7..10, &[2]).await;

            assert!(began.elapsed() < Duration::from_millis(700), "{name}: {:?}", began.elapsed());
            assert_eq!(hive.request(Read(1)).await, Ok(vec![0]), "{name}: waits");

            all_read(&hive, name, 1..2, &[0, 2, 2]).await;
            assert!(began.elapsed() > Duration::from_secs(1), "{name}: nothing was held up");
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}
