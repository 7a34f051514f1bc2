//! Traffic engineering as in Figures 1 to 4 of the Beehive paper: naive, decoupled, and both map reports.
//! `cargo run --example traffic_engineering`
#![allow(missing_docs)]

use beehive::Handlers;
use beehive::prelude::*;

#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Switch(pub(crate) u64);

#[derive(Message)]
pub(crate) struct SwitchJoined(pub(crate) Switch);
#[derive(Message)]
pub(crate) struct Poll;
#[derive(Message)]
struct StatQuery(Switch);
#[derive(Message)]
struct StatReply(Switch, u64);
#[derive(Message)]
struct TrafficSpike(Switch, u64);
#[derive(Message)]
struct Steer(Switch);

const ELEPHANT: u64 = 1000; // bytes between two polls

/// Route reads the statistics of all switches, so one bee owns all of them; the map report names the line.
#[derive(App)]
pub(crate) struct Naive {
    stats: Dict<Switch, (u64, u64)>,
}
#[handlers]
impl Naive {
    #[rcv(centralized)]
    fn init(&mut self, SwitchJoined(switch): &SwitchJoined) {
        self.stats.put(*switch, (0, 0));
    }
    #[rcv(centralized)]
    fn query(&mut self, _: &Poll, ctx: &mut Ctx) {
        self.stats.whole().keys().for_each(|switch| ctx.emit(StatQuery(*switch)));
    }
    #[rcv(centralized)]
    fn collect(&mut self, StatReply(switch, bytes): &StatReply, ctx: &mut Ctx) {
        self.stats.update(*switch, |(before, now)| (*before, *now) = (*now, *bytes));
        let grown = self.stats.whole().iter().map(|(switch, (before, now))| (now - before, *switch)).max();
        if let Some((_, switch)) = grown.filter(|(bytes, _)| *bytes > ELEPHANT) {
            ctx.emit(Steer(switch));
        }
    }
}

/// Collect sends a message to Route: one cell per switch, and one for the matrix, whose keys are no `Switch`.
#[derive(App)]
pub(crate) struct Decoupled {
    stats: Dict<Switch, u64>,
    matrix: Dict<u64, u64>,
}
#[handlers]
impl Decoupled {
    #[rcv(sharded)]
    fn init(&mut self, SwitchJoined(switch): &SwitchJoined) {
        self.stats.put(*switch, 0);
    }
    #[rcv(sharded, each = stats)]
    fn query(&mut self, switch: &Switch, _: &Poll, ctx: &mut Ctx) {
        ctx.emit(StatQuery(*switch));
    }
    #[rcv(sharded)]
    fn collect(&mut self, StatReply(switch, bytes): &StatReply, ctx: &mut Ctx) {
        let before = self.stats.put(*switch, *bytes).unwrap_or(0);
        if bytes - before > ELEPHANT {
            ctx.emit(TrafficSpike(*switch, bytes - before));
        }
    }
    #[rcv(centralized)]
    fn route(&mut self, TrafficSpike(switch, bytes): &TrafficSpike, ctx: &mut Ctx) {
        let mut matrix = self.matrix.whole();
        matrix.put(switch.0, *bytes);
        if matrix.values().max() == Some(bytes) {
            ctx.emit(Steer(*switch));
        }
    }
}

/// The simulated switches: the higher its number, the more bytes a switch carries.
#[derive(App)]
pub(crate) struct Network {
    bytes: Dict<Switch, u64>,
}
#[handlers]
impl Network {
    #[rcv(sharded)]
    fn stat_query(&mut self, StatQuery(switch): &StatQuery, ctx: &mut Ctx) {
        let bytes = self.bytes.entry(*switch).or_default();
        *bytes += 100 * switch.0;
        ctx.emit(StatReply(*switch, *bytes));
    }
}

async fn run<A: Handlers>() -> Result<(), Box<dyn std::error::Error>> {
    let hive = Hive::builder().app::<A>().app::<Network>().start()?;
    for number in 1..=16 {
        hive.request(SwitchJoined(Switch(number))).await?;
    }

    let (mut io, all) = (hive.io(), hive.io().credits());
    io.emit(Poll);
    io.flush().await;

    // a credit is returned when everything that the message caused is done
    while io.credits() < all {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    println!("{}{} bees for 16 switches\n", A::map_report(), hive.status().apps[0].bees);
    hive.stop(Duration::from_secs(1)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run::<Naive>().await?;
    run::<Decoupled>().await
}
