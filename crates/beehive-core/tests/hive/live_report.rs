//! The status of a hive is correct for known traffic: the busiest bees, the pairs that exchange the most
//! messages, which messages cause which other messages, and which handler merges bees. The counters survive
//! merges.

use crate::load::on_workers;
use beehive_core::testing::merge_two;
use beehive_core::{App, BeeStatus, Ctx, Dict, Hive, Message, handlers};
use std::time::Duration;

#[derive(Message)]
struct Packet {
    key: u64,
    weight: usize,
}
#[derive(Message)]
struct Out(u64);
#[derive(Message)]
struct Flow(u64);
#[derive(Message)]
struct Unite(u64, u64);

#[derive(App)]
struct Switch {
    seen: Dict<u64, Vec<u8>>,
}
#[handlers]
impl Switch {
    #[rcv(sharded)]
    fn packet(&mut self, msg: &Packet, ctx: &mut Ctx) {
        self.seen.entry(msg.key).or_default().resize(msg.weight, 0);
        ctx.emit(Out(msg.key));
        if msg.key == 1 {
            ctx.emit(Out(msg.key));
            ctx.emit(Flow(msg.key))
        }
    }
    #[rcv(joins)]
    fn unite(&mut self, msg: &Unite) {
        self.seen.entry(msg.0).or_default();
        self.seen.entry(msg.1).or_default();
    }
}

#[derive(App)]
struct Driver {
    out: Dict<u64, u64>,
}
#[handlers]
impl Driver {
    #[rcv(sharded)]
    fn out(&mut self, Out(key): &Out) {
        *self.out.entry(*key).or_default() += 1
    }
    #[rcv(sharded)]
    fn flow(&mut self, Flow(key): &Flow) {
        *self.out.entry(*key).or_default() += 1
    }
}

const KEYS: u64 = 5;
/// Number of packets of key 1, and of each other key.
const MOST: u64 = 500;
const FEW: u64 = 20;

fn messages(bees: &[BeeStatus]) -> Vec<u64> {
    bees.iter().map(|bee| bee.messages).collect()
}

fn sent_by(bee: &BeeStatus, app: Option<&str>) -> u64 {
    bee.from.iter().filter(|peer| peer.app == app).map(|peer| peer.messages).sum()
}

/// Returns the status once all bees are idle.
async fn at_rest(hive: &Hive) -> beehive_core::Status {
    loop {
        hive.idle().await;
        let status = hive.status_with_sizes();
        if status.apps.iter().all(|app| app.busiest.len() == app.bees.min(8)) {
            return status;
        }
        tokio::task::yield_now().await
    }
}

#[test]
fn status_reports_known_traffic() {
    on_workers(3, async {
        let hive = Hive::builder().app::<Switch>().app::<Driver>().start().unwrap();
        let mut io = hive.io();
        for n in 0..MOST {
            io.emit(Packet { key: 1, weight: 10_000 });
            if n < FEW {
                (2..=KEYS).for_each(|key| io.emit(Packet { key, weight: 10 }))
            }
            io.flush().await
        }

        let status = at_rest(&hive).await;
        let [switch, driver] = &status.apps[..] else { panic!("two apps") };

        // The busiest bees, by messages and by state size.
        assert_eq!(messages(&switch.busiest), [MOST, FEW, FEW, FEW, FEW]);
        assert_eq!(messages(&driver.busiest), [3 * MOST, FEW, FEW, FEW, FEW]);

        let bytes: Vec<u64> = switch.busiest.iter().filter_map(|bee| bee.state_bytes).collect();
        assert!(bytes[0] > 10_000 && bytes[1..].iter().all(|bytes| (10..100).contains(bytes)), "{bytes:?}");
        assert!(switch.busiest[0].nanoseconds_per_message.is_some_and(|ns| ns > 0));

        // The pairs that exchange the most messages.
        assert_eq!(sent_by(&switch.busiest[0], None), MOST);

        let from = &driver.busiest[0].from;
        assert_eq!((from.len(), from[0].app, from[0].messages), (1, Some("switch"), 3 * MOST));
        assert_eq!(from[0].bee, Some(switch.busiest[0].bee));

        // Which messages cause which other messages.
        let caused = |message: &str| {
            let name = format!("beehive-core::{message}");
            let of_message: Vec<_> = status.emits.iter().filter(|emit| emit.message == name).collect();
            assert!(of_message.iter().all(|emit| (emit.app, emit.handler) == ("switch", "packet")));
            of_message.iter().map(|emit| emit.count).sum::<u64>()
        };

        assert_eq!((caused("Out"), caused("Flow")), (2 * MOST + FEW * (KEYS - 1), MOST));
        assert!(status.emits.iter().all(|emit| emit.upon == "beehive-core::Packet" || emit.upon == "Packet"));

        // Merges, and the handlers that cause them.
        assert_eq!((switch.bees, switch.bees_created, switch.bees_merged), (5, 5, 0));

        io.emit(Unite(1, 2));
        io.emit(Unite(2, 3));
        io.flush().await;
        let status = at_rest(&hive).await;
        let switch = &status.apps[0];

        assert_eq!((switch.bees, switch.bees_created, switch.bees_merged), (3, 5, 2));
        let waited: Vec<_> =
            switch.handlers.iter().map(|handler| (handler.name, handler.waited > 0)).collect();
        assert_eq!(waited, [("packet", false), ("unite", true)]);
        hive.stop(Duration::from_secs(1)).await;
    })
}

/// A bee that takes over the cells of another one also takes over its counters.
#[test]
fn traffic_counters_survive_a_merge() {
    on_workers(3, async {
        let hive = Hive::builder().app::<Switch>().app::<Driver>().start().unwrap();
        let mut io = hive.io();
        for key in 1..=KEYS {
            (0..100).for_each(|_| io.emit(Packet { key, weight: 1 }));
            io.flush().await
        }

        let before = at_rest(&hive).await;
        let mut chance = 0;
        while hive.status().apps.iter().any(|app| app.bees > 1) {
            chance += 1;
            merge_two(&hive, chance).await
        }

        let after = at_rest(&hive).await;
        for (before, after) in before.apps.iter().zip(&after.apps) {
            let all = messages(&before.busiest).iter().sum::<u64>();
            assert_eq!(messages(&after.busiest), [all], "{}", after.name);
            let app = (after.name == "driver").then_some("switch");
            assert_eq!(sent_by(&after.busiest[0], app), all, "{}", after.name);
        }

        hive.stop(Duration::from_secs(1)).await;
    })
}
