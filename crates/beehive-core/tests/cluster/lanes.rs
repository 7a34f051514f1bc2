//! Senders that move leave three things behind: late copies of their messages, receivers that remember their lanes, and
//! outputs of handlers without state.

use crate::directed::QUIET;
use beehive_core::testing::{Cluster, ClusterSetup, Mutant};
use beehive_core::{App, BeeId, Ctx, Dict, Message, handlers};
use std::time::Duration;

/// Lets the relay `by` send something to a counter.
#[derive(Message)]
struct Relay {
    by: u64,
    to: u64,
}

/// Lets the relay send something to a counter later, by way of a handler without state.
#[derive(Message)]
struct RelayLater {
    by: u64,
    to: u64,
    after: Duration,
}

#[derive(Message)]
struct Through {
    to: u64,
    after: Duration,
}

/// Ends the relay.
#[derive(Message)]
struct End(u64);

#[derive(Message)]
struct Bump(u64);

#[derive(Message)]
#[message(reply = u64)]
struct Read(u64);

/// Sets a counter to zero, so that its bee can end.
#[derive(Message)]
struct Clear(u64);

#[derive(App)]
#[app(name = "relays")]
struct Relays {
    relays: Dict<u64, u64>,
}

#[handlers]
impl Relays {
    #[rcv]
    fn relay(&mut self, msg: &Relay, ctx: &mut Ctx) {
        *self.relays.entry(msg.by).or_default() += 1;
        ctx.emit(Bump(msg.to))
    }

    #[rcv]
    fn relay_later(&mut self, msg: &RelayLater, ctx: &mut Ctx) {
        *self.relays.entry(msg.by).or_default() += 1;
        ctx.after(msg.after, Through { to: msg.to, after: Duration::ZERO })
    }

    #[rcv(stateless)]
    fn through(&mut self, msg: &Through, ctx: &mut Ctx) {
        match msg.after {
            Duration::ZERO => ctx.emit(Bump(msg.to)),
            after => ctx.after(after, Through { to: msg.to, after: Duration::ZERO }),
        }
    }

    #[rcv]
    fn end(&mut self, msg: &End) {
        self.relays.remove(&msg.0);
    }
}

#[derive(App)]
#[app(name = "counters")]
struct Counters {
    counters: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv]
    fn bump(&mut self, msg: &Bump) {
        *self.counters.entry(msg.0).or_default() += 1
    }

    #[rcv]
    fn read(&mut self, msg: &Read) -> u64 {
        self.counters.get(&msg.0).copied().unwrap_or_default()
    }

    #[rcv]
    fn clear(&mut self, msg: &Clear) {
        self.counters.remove(&msg.0);
    }
}

fn relays(mutant: Option<Mutant>) -> ClusterSetup {
    Cluster::of::<Relays>().app::<Counters>().network(QUIET).mutant(mutant)
}

fn read(cluster: &mut Cluster, hive: usize, counter: u64) -> u64 {
    let hive = cluster.hive(hive).clone();
    cluster.drive(hive.request(Read(counter))).unwrap()
}

/// Creates a counter in a hive.
fn counter(cluster: &mut Cluster, hive: usize, counter: u64) {
    cluster.hive(hive).try_emit(Bump(counter)).unwrap();
    cluster.advance(Duration::from_millis(50))
}

fn bee_of(cluster: &mut Cluster, app: &str) -> (BeeId, usize) {
    let bees = cluster.bees(app);
    assert_eq!(bees.len(), 1, "{bees:?}");
    bees[0]
}

/// Hive 0 sends a message of the relay to hive 1, from which it is cut off. The relay moves to hive 2, which sends the message
/// as well. The relay ends, and hive 1 forgets it. Then the first copy arrives. Returns how often the message counted.
fn late_copy(mutant: Option<Mutant>, seed: u64) -> u64 {
    let mut cluster = relays(mutant).start(seed);
    counter(&mut cluster, 1, 7);
    cluster.cut(0, 1, true);
    cluster.hive(0).try_emit(Relay { by: 1, to: 7 }).unwrap();
    cluster.advance(Duration::from_millis(50));
    let (relay, at) = bee_of(&mut cluster, "relays");
    assert_eq!((at, read(&mut cluster, 1, 7)), (0, 1), "the message is under way");
    cluster.move_bee(relay, 2).unwrap();
    cluster.advance(Duration::from_millis(500));
    assert_eq!(read(&mut cluster, 1, 7), 2);
    cluster.hive(2).try_emit(End(1)).unwrap();
    cluster.advance(Duration::from_secs(2));
    assert_eq!(cluster.bees("relays"), [], "the relay has ended");
    let of_relay = |state: &beehive_core::journal::LogState| {
        state.bees.values().flat_map(|bee| bee.seen.floors()).filter(|(lane, _)| lane.bee().is_some()).count()
    };
    let remembered: usize = cluster.log_states(1).iter().map(of_relay).sum();
    assert_eq!(remembered, 0, "hive 1 has forgotten its lane");
    assert_eq!(read(&mut cluster, 1, 7), 2, "its bee forgets it when it handles something");
    cluster.cut(0, 1, false);
    cluster.advance(Duration::from_secs(1));
    read(&mut cluster, 1, 7) - 1
}

#[test]
fn a_copy_that_arrives_after_its_sender_has_ended_has_no_effect() {
    for seed in 0..10 {
        assert_eq!(late_copy(None, seed), 1, "seed {seed}")
    }
    assert_eq!(late_copy(Some(Mutant::RetiredUnheard), 0), 2, "the test does not notice the mutant")
}

/// A receiver and its sender move. The receiver ends when it is empty, because the hive that has the sender tells its hive
/// that everything is handled.
#[test]
fn a_receiver_that_has_moved_learns_that_everything_is_handled() {
    for moves in 0..4 {
        let mut cluster = relays(None).start(moves);
        counter(&mut cluster, 1, 7);
        cluster.hive(0).try_emit(Relay { by: 1, to: 7 }).unwrap();
        cluster.advance(Duration::from_millis(50));
        assert_eq!(read(&mut cluster, 1, 7), 2);
        let (receiver, _) = bee_of(&mut cluster, "counters");
        let (sender, _) = bee_of(&mut cluster, "relays");
        cluster.move_bee(receiver, 2).unwrap();
        match moves {
            1 => cluster.move_bee(sender, 1).unwrap(),
            2 => cluster.move_bee(sender, 2).unwrap(),
            3 => {
                // it starts again, and does not know to whom it has sent
                cluster.crash(0);
                cluster.restart(0)
            }
            _ => {}
        }
        cluster.advance(Duration::from_millis(500));
        cluster.hive(0).try_emit(Clear(7)).unwrap();
        cluster.advance(Duration::from_secs(3));
        assert_eq!(cluster.bees("counters"), [], "case {moves}: the receiver has ended");
        assert_eq!(cluster.bees("relays").len(), 1, "the sender has not");
    }
}

/// A bee whose timer runs a handler without state moves. What the handler has sent, and cannot be delivered yet, stays in the
/// hive in which the handler ran.
#[test]
fn outputs_of_handlers_without_state_stay_when_the_bee_moves() {
    for seed in 0..10 {
        let mut cluster = relays(None).start(seed);
        counter(&mut cluster, 1, 7);
        cluster.cut(0, 1, true);
        let after = Duration::from_millis(5);
        for _ in 0..3 {
            cluster.hive(0).try_emit(RelayLater { by: 1, to: 7, after }).unwrap()
        }
        cluster.advance(Duration::from_millis(50));
        assert_eq!(
            read(&mut cluster, 1, 7),
            1,
            "the first message is under way, and the others wait behind it"
        );
        let (relay, at) = bee_of(&mut cluster, "relays");
        assert_eq!(at, 0);
        cluster.move_bee(relay, 2).unwrap();
        cluster.cut(0, 1, false);
        cluster.advance(Duration::from_secs(1));
        assert_eq!(read(&mut cluster, 1, 7), 4, "seed {seed}: each once");
    }
}

/// A bee moves while its timers are about to fire. Each of them fires once.
#[test]
fn each_timer_of_a_bee_that_moves_fires_once() {
    for seed in 0..20 {
        let mut cluster = relays(None).start(seed);
        counter(&mut cluster, 1, 7);
        for timer in 0..40 {
            let after = Duration::from_micros(500 + timer * 300);
            cluster.hive(0).try_emit(RelayLater { by: 1, to: 7, after }).unwrap()
        }
        cluster.advance(Duration::from_millis(2));
        let (relay, _) = bee_of(&mut cluster, "relays");
        for to in [2, 0, 1] {
            cluster.move_bee(relay, to).unwrap()
        }
        cluster.advance(Duration::from_secs(1));
        assert_eq!(read(&mut cluster, 1, 7), 41, "seed {seed}");
    }
}

/// The target of a move can no longer be reached when the bee is frozen. The bee waits, stays, and handles messages again.
#[test]
fn a_bee_stays_if_its_target_cannot_be_reached() {
    let mut cluster = relays(None).start(3);
    counter(&mut cluster, 0, 7);
    let (bee, _) = bee_of(&mut cluster, "counters");
    let is_frozen = |cluster: &Cluster| cluster.log_states(0)[0].bees.values().any(|image| image.is_frozen());
    assert!(cluster.aim(bee, 2));
    for _ in 0..1_000 {
        if is_frozen(&cluster) {
            break;
        }
        cluster.advance(Duration::from_micros(20))
    }
    cluster.cut(0, 2, true);
    cluster.advance(Duration::from_secs(1));
    cluster.hive(1).try_emit(Bump(7)).unwrap();
    cluster.advance(Duration::from_secs(2));
    assert!(is_frozen(&cluster), "it waits");
    cluster.advance(Duration::from_secs(12));
    assert_eq!(bee_of(&mut cluster, "counters"), (bee, 0));
    assert_eq!(read(&mut cluster, 1, 7), 2, "what was sent meanwhile");
    // the move can be tried again
    cluster.cut(0, 2, false);
    cluster.advance(Duration::from_secs(12));
    cluster.move_bee(bee, 2).unwrap();
    cluster.hive(0).try_emit(Bump(7)).unwrap();
    assert_eq!((read(&mut cluster, 0, 7), bee_of(&mut cluster, "counters").1), (3, 2));
}
