//! Payloads: a message that several apps handle is encoded once, and a record contains it once.

use crate::load::on_workers;
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use serde::{Serialize, Serializer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const BYTES: usize = 2_000;
const COUNT: u64 = 40;

static ENCODED: AtomicUsize = AtomicUsize::new(0);

/// Counts how often it is encoded.
fn counted<S: Serializer>(bytes: &Vec<u8>, serializer: S) -> Result<S::Ok, S::Error> {
    ENCODED.fetch_add(1, Ordering::Relaxed);
    bytes.serialize(serializer)
}

#[derive(Message)]
#[message(reply = u64)]
struct Start(u64);
#[derive(Message)]
struct Large {
    key: u64,
    #[serde(serialize_with = "counted")]
    bytes: Vec<u8>,
}

#[derive(App)]
struct Source {
    started: Dict<u64, u64>,
}
#[handlers]
impl Source {
    #[rcv(sharded)]
    fn start(&mut self, msg: &Start, ctx: &mut Ctx) -> u64 {
        self.started.put(msg.0, 1);
        (0..COUNT).for_each(|key| ctx.emit(Large { key, bytes: vec![key as u8; BYTES] }));
        COUNT
    }
}

macro_rules! receiver {
    ($app:ident) => {
        #[derive(App)]
        struct $app {
            lengths: Dict<u64, u64>,
        }
        #[handlers]
        impl $app {
            #[rcv(sharded)]
            fn large(&mut self, msg: &Large) {
                assert!(msg.bytes.iter().all(|byte| *byte == msg.key as u8));
                self.lengths.put(msg.key, msg.bytes.len() as u64);
            }
        }
    };
}
receiver!(One);
receiver!(Two);
receiver!(Three);

/// Drops every other message, so its messages are not a prefix of those of the other apps.
#[derive(App)]
struct Half {
    lengths: Dict<u64, u64>,
}
#[handlers]
impl Half {
    #[rcv(sharded)]
    fn large(&mut self, msg: &Large) {
        if msg.key.is_multiple_of(2) {
            return;
        }
        self.lengths.put(msg.key, msg.bytes.len() as u64);
    }
}

#[test]
fn a_payload_is_encoded_once_and_logged_once_for_all_apps() {
    on_workers(2, async {
        let journal = TestJournal::start(1, 0, 0);
        let hive = Hive::builder()
            .app::<Source>()
            .app::<One>()
            .app::<Half>()
            .app::<Two>()
            .app::<Three>()
            .journal(journal.clone(), Default::default())
            .start()
            .unwrap();
        assert_eq!(hive.request(Start(1)).await, Ok(COUNT));
        hive.stop(Duration::from_secs(10)).await;
        journal.stop();

        let log = journal.log();
        let largest = log.iter().map(Vec::len).max().unwrap();
        let payloads = COUNT as usize * BYTES;
        assert!(
            (payloads..payloads * 5 / 4).contains(&largest),
            "{largest} bytes for payloads of {payloads}"
        );
        assert_eq!(ENCODED.load(Ordering::Relaxed), COUNT as usize);

        let state = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        assert!(state.outbox.is_empty(), "{:?}", state.outbox.keys());
        let rows = state.bees.values().map(|bee| bee.state.images().count()).sum::<usize>();
        assert_eq!(rows as u64, 1 + 3 * COUNT + COUNT / 2, "each app has handled its messages");
    })
}
