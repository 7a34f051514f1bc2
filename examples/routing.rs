//! Distance-vector routing over a simulated network. `cargo run --example routing`
//!
//! A router is a cell. No handler accesses two routers: they exchange what they know by messages.
#![allow(missing_docs)]

use beehive::prelude::*;
use std::collections::BTreeSet;

/// A change of a link, as seen from one end; a link without a cost is down.
#[derive(Message)]
pub(crate) struct Link {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) cost: Option<u32>,
}

/// A router's advertisement to a neighbor: its cost to reach the target, or `None` if it knows no route.
#[derive(Message)]
struct Advert {
    from: u32,
    to: u32,
    target: u32,
    cost: Option<u32>,
}

/// Asks for the routes of a router. The answer lists the target, the next router and the cost of each.
#[derive(Message)]
#[message(reply = Vec<(u32, u32, u32)>)]
pub(crate) struct Routes(pub(crate) u32);

/// Targets at this cost or more are unreachable; after a failure, routing loops count up to it and then
/// disappear.
const INFINITY: u32 = 32;

#[derive(App)]
pub(crate) struct Routing {
    neighbors: Table<u32, u32, u32>,
    /// The cost that each neighbor advertised for each target, ordered by target.
    heard: Table<u32, (u32, u32), u32>,
    /// The next router and the cost.
    routes: Table<u32, u32, (u32, u32)>,
}

#[handlers]
impl Routing {
    #[rcv(sharded)]
    fn link(&mut self, msg: &Link, ctx: &mut Ctx) {
        let mut known: BTreeSet<u32> = self.routes.at(msg.from).keys().copied().collect();
        known.extend(self.heard.at(msg.from).keys().map(|(target, _)| *target));
        if let Some(cost) = msg.cost {
            self.neighbors.at(msg.from).insert(msg.to, cost);
            let all = self.routes.at(msg.from).iter().map(|(target, (_, cost))| (*target, *cost));
            for (target, cost) in all.chain([(msg.from, 0)]) {
                ctx.emit(Advert { from: msg.from, to: msg.to, target, cost: Some(cost) });
            }
        } else {
            self.neighbors.at(msg.from).remove(&msg.to);
            self.heard.at(msg.from).retain(|(_, by), _| *by != msg.to);
        }

        for target in known {
            self.choose(msg.from, target, ctx);
        }
    }

    #[rcv(sharded)]
    fn advert(&mut self, msg: &Advert, ctx: &mut Ctx) {
        let heard = self.heard.at(msg.to);
        match msg.cost {
            Some(cost) => heard.insert((msg.target, msg.from), cost),
            None => heard.remove(&(msg.target, msg.from)),
        };
        self.choose(msg.to, msg.target, ctx);
    }

    #[rcv(sharded)]
    fn routes(&mut self, Routes(router): &Routes) -> Vec<(u32, u32, u32)> {
        self.routes.at(*router).iter().map(|(target, (next, cost))| (*target, *next, *cost)).collect()
    }

    /// Chooses the best route from `me` to a target, and advertises it to the neighbors if it changed.
    fn choose(&mut self, me: u32, target: u32, ctx: &mut Ctx) {
        let neighbors = self.neighbors.at(me);
        let ways = self.heard.at(me).range((target, 0)..=(target, u32::MAX));
        let ways = ways.filter_map(|((_, by), cost)| Some((cost + neighbors.get(by)?, *by)));
        let best = ways.filter(|(cost, _)| *cost < INFINITY && target != me).min();
        let routes = self.routes.at(me);
        let old = match best {
            Some((cost, next)) => routes.insert(target, (next, cost)),
            None => routes.remove(&target),
        };

        let changed = old != best.map(|(cost, next)| (next, cost));
        for neighbor in neighbors.keys().filter(|n| changed && **n != target) {
            // split horizon: no route back for the next router, or packets could go in circles
            let cost = best.filter(|(_, next)| next != neighbor).map(|(cost, _)| cost);
            ctx.emit(Advert { from: me, to: *neighbor, target, cost });
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hive = Hive::builder().app::<Routing>().start()?;
    let mut io = hive.io();
    let all = io.credits();

    // a ring of five, with one slow link
    let ring = [(1, 2, Some(1)), (2, 3, Some(1)), (3, 4, Some(1)), (4, 5, Some(1)), (5, 1, Some(5))];
    for (what, links) in [("ring", &ring[..]), ("2-3 down", &[(2, 3, None)]), ("2-3 up", &ring[1..2])] {
        for &(a, b, cost) in links {
            io.emit(Link { from: a, to: b, cost });
            io.emit(Link { from: b, to: a, cost });
        }

        io.flush().await;
        // a credit is returned when everything that the message caused is done
        while io.credits() < all {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }

        println!("{what}: router 1 reaches");
        for (target, next, cost) in hive.request(Routes(1)).await? {
            println!("  {target} by way of {next}, cost {cost}");
        }
    }

    hive.stop(Duration::from_secs(1)).await;
    Ok(())
}
