//! Messages to the IO bees of other hives: each arrives once and in order, and holds the credits of its cause until it is read.

use crate::directed::QUIET;
use beehive_core::testing::{Cluster, ClusterSetup, NetworkFaults};
use beehive_core::{Address, App, Busy, Ctx, Dict, Io, Message, handlers};
use std::time::Duration;

/// Asks for `count` papers, to be sent to an address, or else to the sender.
#[derive(Message)]
struct Order {
    shelf: u64,
    count: u64,
    to: Option<Address>,
}

/// Has no handler.
#[derive(Message)]
struct Paper {
    number: u64,
    text: String,
}

/// Has no handler either.
#[derive(Message)]
struct Receipt(u64);

#[derive(App)]
#[app(name = "archive")]
struct Archive {
    shelves: Dict<u64, u64>,
}

#[handlers]
impl Archive {
    #[rcv]
    fn order(&mut self, msg: &Order, ctx: &mut Ctx) {
        let taken = self.shelves.entry(msg.shelf).or_default();
        let to = msg.to.unwrap_or(ctx.sender());
        for _ in 0..msg.count {
            *taken += 1;
            ctx.send(to, Paper { number: *taken, text: format!("from shelf {}", msg.shelf) })
        }
        ctx.send(to, Receipt(*taken))
    }
}

fn archive() -> ClusterSetup {
    Cluster::of::<Archive>().network(QUIET)
}

/// Lets a hive have a shelf, and take `count` papers from it that nobody gets.
fn fill(cluster: &mut Cluster, hive: usize, shelf: u64, count: u64) {
    let mut io = cluster.hive(hive).io();
    io.emit(Order { shelf, count, to: Some(Address::Outside) });
    cluster.drive(io.flush());
    cluster.advance(Duration::from_millis(50))
}

/// Reads all mail: the numbers of the papers, and those of the receipts.
fn read(io: &mut Io) -> (Vec<u64>, Vec<u64>) {
    let (mut papers, mut receipts) = (Vec::new(), Vec::new());
    while let Some(mail) = io.try_receive() {
        match (mail.messages::<Paper>(), mail.messages::<Receipt>()) {
            (Some(some), None) => {
                assert!(mail.name().is_some_and(|name| name.ends_with("Paper")), "{mail:?}");
                assert!(some.iter().all(|paper| paper.text.starts_with("from shelf ")));
                papers.extend(some.iter().map(|paper| paper.number))
            }
            (None, Some(some)) => receipts.extend(some.iter().map(|receipt| receipt.0)),
            _ => panic!("{mail:?}"),
        }
    }
    (papers, receipts)
}

#[test]
fn what_a_bee_sends_to_an_io_bee_of_another_hive_arrives_once_and_in_order() {
    let faults = NetworkFaults { lose_one_in: 4, double_one_in: 4, delay_max: Duration::from_millis(5) };
    for seed in 0..10 {
        let mut cluster = archive().network(faults).start(seed);
        fill(&mut cluster, 0, 7, 1);
        let mut io = cluster.hive(1).io();
        (0..50).for_each(|_| io.emit(Order { shelf: 7, count: 3, to: None }));
        cluster.drive(io.flush());
        cluster.advance(Duration::from_secs(2));
        let (papers, receipts) = read(&mut io);
        assert_eq!(papers, (2..152).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(receipts, (0..50).map(|order| 4 + 3 * order).collect::<Vec<_>>(), "seed {seed}")
    }
}

/// The reader's hive ends and starts again. Another IO bee has the place, and does not get the mail of the first one.
#[test]
fn mail_for_an_io_bee_that_has_ended_with_its_hive_is_dropped() {
    let mut cluster = archive().start(3);
    fill(&mut cluster, 0, 7, 1);
    let to = cluster.hive(1).io().address();
    cluster.crash(1);
    cluster.restart(1);
    let mut io = cluster.hive(1).io();
    let mut from = cluster.hive(0).io_with_credits(2);
    for _ in 0..3 {
        from.emit(Order { shelf: 7, count: 1, to: Some(to) });
        cluster.drive(from.flush());
        cluster.advance(Duration::from_millis(50))
    }
    assert_eq!((from.credits(), read(&mut io)), (2, (vec![], vec![])))
}

/// Returns an IO bee of hive 0 whose only credit is held by mail for an IO bee of hive 1, and that one.
fn unread(cluster: &mut Cluster) -> (Io, Io) {
    fill(cluster, 0, 7, 1);
    let reader = cluster.hive(1).io();
    let mut from = cluster.hive(0).io_with_credits(1);
    from.emit(Order { shelf: 7, count: 1, to: Some(reader.address()) });
    assert_eq!(from.try_flush(), Ok(()));
    cluster.advance(Duration::from_secs(1));
    from.emit(Order { shelf: 7, count: 1, to: Some(reader.address()) });
    assert_eq!(from.try_flush(), Err(Busy), "the mail is not read");
    (from, reader)
}

#[test]
fn mail_to_another_hive_holds_the_credits_of_its_sender_until_it_is_read() {
    let mut cluster = archive().start(4);
    let (mut from, mut reader) = unread(&mut cluster);
    assert_eq!(read(&mut reader), (vec![2], vec![2]));
    cluster.advance(Duration::from_millis(50));
    assert_eq!(from.try_flush(), Ok(()));
    cluster.advance(Duration::from_millis(50));
    assert_eq!(read(&mut reader), (vec![3], vec![3]))
}

#[test]
fn credits_held_by_unread_mail_return_when_its_io_bee_or_hive_ends() {
    let mut cluster = archive().start(5);
    let (mut from, reader) = unread(&mut cluster);
    drop(reader);
    cluster.advance(Duration::from_millis(50));
    assert_eq!(from.try_flush(), Ok(()));

    let mut cluster = archive().start(6);
    let (mut from, _reader) = unread(&mut cluster);
    cluster.crash(1);
    cluster.restart(1);
    cluster.advance(Duration::from_millis(50));
    assert_eq!(from.try_flush(), Ok(()))
}
