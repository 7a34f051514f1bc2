//! Counters in the status of a hive: answers, waits for merges, time, bytes, and the senders of each bee.

use beehive_core::{App, BeeStatus, Ctx, Dict, HandlerStatus, Hive, Message, Status, handlers};
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
struct Put {
    key: u64,
    value: u64,
}
/// A request that is not answered if the key is odd.
#[derive(Message)]
#[message(reply = u64)]
struct Get(u64);
#[derive(Message)]
struct Seen(u64);
#[derive(Message)]
struct Swap(u64, u64);

#[derive(App)]
struct Store {
    values: Dict<u64, u64>,
}

#[handlers]
impl Store {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put, ctx: &mut Ctx) -> u64 {
        self.values.put(msg.key, msg.value);
        ctx.emit(Seen(msg.key));
        msg.value
    }
    #[rcv(sharded)]
    fn get(&mut self, msg: &Get) -> Option<u64> {
        self.values.get(&msg.0).copied().filter(|_| msg.0.is_multiple_of(2))
    }
    #[rcv(joins)]
    fn swap(&mut self, msg: &Swap) {
        let (one, other) = (self.values.remove(&msg.0), self.values.remove(&msg.1));
        self.values.put(msg.0, other.unwrap_or(0));
        self.values.put(msg.1, one.unwrap_or(0));
    }
}

#[derive(App)]
struct Log {
    seen: Dict<u64, u64>,
}

#[handlers]
impl Log {
    #[rcv(sharded)]
    fn seen(&mut self, msg: &Seen) {
        *self.seen.entry(msg.0).or_default() += 1;
    }
}

fn handler<'s>(status: &'s Status, name: &str) -> &'s HandlerStatus {
    let mut handlers = status.apps.iter().flat_map(|app| &app.handlers);
    handlers.find(|h| h.name == name).expect("a handler")
}

fn busiest(status: &Status, app: &str) -> BeeStatus {
    let app = status.apps.iter().find(|a| a.name == app).expect("an app");
    app.busiest.first().expect("a bee that is idle").clone()
}

#[tokio::test]
async fn status_counters_match_the_traffic() {
    let hive = Hive::builder().app::<Log>().app::<Store>().start().expect("starts");
    for value in 0..200 {
        hive.request(Put { key: 2, value }).await.expect("is answered");
    }

    hive.request(Put { key: 3, value: 7 }).await.expect("is answered");
    assert!(hive.request(Get(2)).await.is_ok());
    assert!(hive.request(Get(3)).await.is_err());
    assert_eq!(handler(&hive.status(), "swap").waited, 0);

    hive.request(Swap(2, 3)).await.expect("is handled");

    let status = hive.status();
    let (put, get) = (handler(&status, "put"), handler(&status, "get"));
    assert_eq!((put.messages, put.answered, put.answer, put.waited), (201, 201, "u64", 0));
    assert_eq!((get.messages, get.answered, get.answer), (2, 1, "u64"));

    let (swap, seen) = (handler(&status, "swap"), handler(&status, "seen"));
    assert_eq!((swap.answer, swap.waited, seen.answer), ("", 1, ""));
    hive.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn the_busiest_bee_is_measured() {
    let hive = Hive::builder().app::<Log>().app::<Store>().start().expect("starts");
    for value in 0..200 {
        hive.request(Put { key: 2, value }).await.expect("is answered");
    }

    hive.request(Put { key: 4, value: 7 }).await.expect("is answered");
    // The app `Log` handles its message slightly later.
    for _ in 0..1000 {
        if handler(&hive.status(), "seen").messages == 201 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    tokio::time::sleep(Duration::from_millis(20)).await;
    let status = hive.status();
    let (store, log) = (busiest(&status, "store"), busiest(&status, "log"));
    assert_eq!((store.messages, store.cells, store.waiting), (200, 1, 0));
    assert!(store.nanoseconds_per_message.is_some_and(|n| n < 1_000_000_000), "{store:?}");
    assert_eq!(store.state_bytes, None, "nobody asked for it");
    assert_eq!((store.from[0].bee, store.from[0].app, store.from[0].messages), (None, None, 200));
    assert_eq!(
        (log.from[0].bee, log.from[0].app, log.from[0].messages),
        (Some(store.bee), Some("store"), 200)
    );

    let bytes = busiest(&hive.status_with_sizes(), "store").state_bytes;
    assert!(bytes.is_some_and(|bytes| (2..=32).contains(&bytes)), "{bytes:?}");
    hive.stop(Duration::from_secs(1)).await;
}
