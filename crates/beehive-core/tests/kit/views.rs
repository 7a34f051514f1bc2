//! Views as a handler sees them: they show the committed state of one version, never the handler's own
//! changes and never an earlier version than before, and they are the same for every distribution of cells.

use beehive_core::testing::Kit;
use beehive_core::{
    App, Ctx, Dict, ErrorKind, Key, Mapper, Message, ReadError, RequestError, Table, attempt, handlers,
    limits,
};
use std::cell::Cell;
use std::time::Duration;

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node(u64);

#[derive(Message, Clone)]
#[message(reply = (u64, u64))]
struct Link {
    from: Node,
    to: u64,
    cost: u64,
    fail: bool,
}
#[derive(Message)]
#[message(reply = ())]
struct Cut {
    from: Node,
    to: u64,
}
#[derive(Message)]
#[message(reply = (u64, Vec<(u64, u64, u64)>))]
struct Survey;
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Between(u64, u64);
#[derive(Message)]
#[message(reply = u64)]
struct Total;
#[derive(Message)]
#[message(reply = u64)]
struct ByHand(Node);
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Tried(Node);
/// Answered with the number of earlier joins.
#[derive(Message)]
#[message(reply = u64)]
struct Join(Node);
#[derive(Message)]
struct Seen {
    links: u64,
}

#[derive(App)]
struct Net {
    /// Number of links of a node; always equal to its number of rows.
    degrees: Dict<Node, u64>,
    links: Table<Node, u64, u64>,
    #[shared(max_age = "2s")]
    names: Dict<String, u64>,
    unread: Dict<u64, u64>,
    joined: Dict<Node, u64>,
}

thread_local! {
    /// Number of times that a total was computed. It can be thread-local, because the apps of a test run on
    /// the test's thread.
    static TOTALS: Cell<usize> = const { Cell::new(0) };
}

fn by_hand(msg: &ByHand, mapper: &mut Mapper) {
    mapper.cell(Net::__bh_degrees, &msg.0);
}

#[handlers]
impl Net {
    /// Answers with the number of links in the cell, and with that in the view.
    #[rcv(sharded)]
    fn link(&mut self, msg: &Link) -> Result<(u64, u64), beehive_core::Error> {
        self.links.at(msg.from).insert(msg.to, msg.cost);
        let own = self.links.at(msg.from).len() as u64;
        self.degrees.put(msg.from, own);
        let shared = self.links.shared().at(msg.from).len() as u64;
        if msg.fail {
            return Err("as asked".into());
        }
        Ok((own, shared))
    }
    #[rcv(sharded)]
    fn cut(&mut self, msg: &Cut) {
        self.links.at(msg.from).remove(&msg.to);
        let left = self.links.at(msg.from).len() as u64;
        match left {
            0 => self.degrees.remove(&msg.from),
            left => self.degrees.put(msg.from, left),
        };
    }
    /// Only reads views, so it needs no cells.
    #[rcv(stateless)]
    fn survey(&mut self, _: &Survey) -> (u64, Vec<(u64, u64, u64)>) {
        let degrees = self.degrees.shared();
        let links = self.links.shared();
        assert_eq!(degrees.version(), links.version());
        let count = degrees.values().sum();
        assert_eq!(count, links.iter().count() as u64, "one version of all dictionaries");
        assert_eq!(degrees.len(), links.len());
        (count, links.iter().map(|(node, to, cost)| (node.0, *to, *cost)).collect())
    }
    #[rcv(stateless)]
    fn between(&mut self, msg: &Between) -> Vec<u64> {
        let mut nodes: Vec<u64> =
            self.degrees.shared().range(Node(msg.0)..Node(msg.1)).map(|(n, _)| n.0).collect();
        let (degrees, links) = (self.degrees.shared(), self.links.shared());

        // Backwards and empty ranges are allowed.
        assert!(degrees.range(Node(9)..Node(3)).next().is_none());
        assert!(links.at(Node(99)).is_empty() && links.at(Node(99)).first().is_none());
        assert!(
            degrees.range(Node(msg.0)..Node(msg.1)).rev().map(|(n, _)| n.0).eq(nodes.iter().rev().copied())
        );

        for (_, rows) in links.range(Node(msg.0)..Node(msg.1)) {
            nodes.extend(rows.range(5..).map(|(to, _)| *to))
        }

        nodes
    }
    #[rcv(stateless)]
    fn total(&mut self, _: &Total) -> u64 {
        *self.links.shared().derive(|links| {
            TOTALS.set(TOTALS.get() + 1);
            links.iter().map(|(_, _, cost)| cost).sum::<u64>()
        })
    }
    #[rcv(map = by_hand)]
    fn by_hand(&mut self, msg: &ByHand) -> u64 {
        self.unread_names() + self.degrees.get(&msg.0).copied().unwrap_or(0)
    }
    fn unread_names(&mut self) -> u64 {
        self.names.shared().len() as u64
    }
    /// Changes that are rolled back never appear in the view, and the view survives a failed attempt.
    #[rcv(sharded)]
    fn tried(&mut self, msg: &Tried, ctx: &mut Ctx) -> Vec<u64> {
        let done = attempt! {
            self.links.at(msg.0).insert(77, 7);
            self.degrees.update(msg.0, |d| *d += 1);
            ctx.emit(Seen { links: 0 });
            if self.links.shared().at(msg.0).len() < 100 {
                return_err()?
            }
            Ok(())
        };

        assert!(done.is_err());
        self.links.shared().at(msg.0).keys().copied().collect()
    }
    #[rcv(sharded)]
    fn join(&mut self, msg: &Join) -> u64 {
        self.joined.update(msg.0, |times| *times += 1);
        self.joined.shared().len() as u64
    }
    #[rcv(stateless)]
    fn seen(&mut self, msg: &Seen) {
        let _ = msg.links;
        assert!(self.names.shared().is_empty());
    }
}

fn return_err() -> beehive_core::Result<()> {
    Err("as asked".into())
}

fn link(from: u64, to: u64, cost: u64) -> Link {
    Link { from: Node(from), to, cost, fail: false }
}

#[test]
fn a_view_shows_committed_state_and_never_the_current_transaction() {
    let mut kit = Kit::of::<Net>().start();
    assert_eq!(kit.request(link(1, 2, 10)), Ok((1, 0)));
    assert_eq!(kit.request(link(1, 3, 20)), Ok((2, 1)));
    assert_eq!(kit.request(link(2, 5, 30)), Ok((1, 0)));

    let failed = Link { fail: true, ..link(1, 4, 40) };
    assert!(matches!(kit.request(failed), Err(RequestError::Handler(_))));
    assert_eq!(kit.request(Survey), Ok((3, vec![(1, 2, 10), (1, 3, 20), (2, 5, 30)])));
    assert_eq!(kit.request(Tried(Node(1))), Ok(vec![2, 3]));
    assert_eq!(kit.request(Survey), Ok((3, vec![(1, 2, 10), (1, 3, 20), (2, 5, 30)])));

    kit.request(Cut { from: Node(2), to: 5 }).unwrap();
    kit.request(Cut { from: Node(1), to: 2 }).unwrap();
    assert_eq!(kit.request(Survey), Ok((1, vec![(1, 3, 20)])));
}

#[test]
fn ranges_come_in_key_order() {
    let mut kit = Kit::of::<Net>().start();
    for from in [9, 3, 7, 1, 5] {
        kit.emit(link(from, from + 1, 1));
    }
    assert_eq!(kit.request(Between(3, 9)), Ok(vec![3, 5, 7, 6, 8]));
    assert_eq!(kit.request(Between(9, 3)), Ok(vec![]));
}

#[test]
fn a_derived_value_is_computed_once_until_its_dictionary_changes() {
    let mut kit = Kit::of::<Net>().start();
    kit.emit(link(1, 2, 10)).emit(link(2, 3, 20));
    let before = TOTALS.get();
    for _ in 0..5 {
        assert_eq!(kit.request(Total), Ok(30));
    }

    assert_eq!(TOTALS.get(), before + 1);
    kit.emit(link(1, 3, 5));
    assert_eq!(kit.request(Total), Ok(35));
    assert_eq!(kit.request(Total), Ok(35));
    assert_eq!(TOTALS.get(), before + 2);
}

#[test]
fn a_step_sees_the_state_before_it_for_every_distribution() {
    // Without this rule, it would depend on the order of bees which messages see the changes of which other
    // messages.
    let scenario = |kit: &mut Kit| {
        for round in 0..6u64 {
            kit.emit_all((0..8).map(|from| link(from, round, from * round)));
            kit.emit_all((0..4).map(|from| Cut { from: Node(from), to: round / 2 }));
            kit.emit_all((0..6).map(|node| Join(Node(round * 6 + node))));
            let _ = kit.request(Survey);
            let _ = kit.request(Total);
        }
    };

    Kit::of::<Net>().check(scenario)
}

#[test]
fn hive_read_sees_one_version_and_no_cells() {
    let mut kit = Kit::of::<Net>().start();
    kit.emit(link(1, 2, 10)).emit(link(4, 2, 20));
    let hive = kit.hive().clone();
    let seen = hive.read(|net: &Net| (net.degrees.shared().len(), net.links.shared().iter().count()));

    assert_eq!(seen, Ok((2, 2)));
    let age = hive.read(|net: &Net| net.links.shared().age());
    assert_eq!(age, Ok(Duration::ZERO));

    let unread = hive.read(|net: &Net| net.unread.shared().len()).unwrap_err();
    assert!(
        matches!(&unread, ReadError::NotShared(error) if error.text().contains("put `#[shared]` on the field")),
        "{unread}"
    );

    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        hive.read(|net: &Net| net.degrees.get(&Node(1)).copied())
    }));
    let text = panicked.unwrap_err().downcast::<String>().unwrap();

    assert!(text.contains("read its view: `app.dictionary.shared()"), "{text}");
    // The hive continues after that.
    assert_eq!(hive.read(|net: &Net| net.degrees.shared().get(&Node(1)).copied()), Ok(Some(1)));
    assert!(matches!(hive.read(|_: &Alone| ()), Err(ReadError::NoSuchApp { app: "alone" })));
    let kit = Kit::of::<Alone>().start();
    assert!(matches!(kit.hive().read(|_: &Alone| ()), Err(ReadError::NotShared(_))));
}

#[derive(Message)]
struct Nothing(u64);
#[derive(App)]
struct Alone {
    cells: Dict<u64, u64>,
}
#[handlers]
impl Alone {
    #[rcv]
    fn nothing(&mut self, msg: &Nothing) {
        self.cells.put(msg.0, 1);
    }
}

#[test]
#[should_panic(expected = "outside a handler; use `hive.read(")]
fn reading_a_view_outside_a_handler_panics() {
    let instance = beehive_core::testing::maps::instance::<Net>(Default::default()).unwrap();
    let _ = instance.links.shared();
}

#[test]
fn kit_look_provides_views_of_the_state() {
    let mut kit = Kit::of::<Net>().start();
    kit.emit(link(1, 2, 10));
    assert_eq!(kit.look::<Net, _>(|net| net.links.shared().at(Node(1)).get(&2).copied()), Some(10));
    assert_eq!(kit.look::<Net, _>(|net| net.degrees.shared().get(&Node(1)).copied()), Some(1));
}

/// Holds old versions in nested reads until no new version can be published.
fn hold(kit: &mut Kit, depth: usize, then: &mut dyn FnMut(&mut Kit)) {
    if depth == 0 {
        return then(kit);
    }

    let hive = kit.hive().clone();
    let held = hive.read(|net: &Net| {
        let links = net.links.shared();
        let before = links.iter().count();
        kit.emit(link(1, depth as u64, depth as u64));
        kit.advance(limits::VIEW_PATIENCE);
        hold(kit, depth - 1, then);
        assert_eq!(links.iter().count(), before, "what is held stays as it is");
    });

    assert_eq!(held, Ok(()));
}

#[test]
fn a_view_that_is_too_old_is_refused_until_it_is_fresh_again() {
    let mut kit = Kit::of::<Net>().start();
    let depth = limits::VIEW_COPIES_HELD_MAX + 4;
    hold(&mut kit, depth, &mut |kit| {
        let (count, _) = kit.request(Survey).unwrap();
        assert!(count < depth as u64, "readers hold everything: {count}");
        assert_eq!(kit.request(ByHand(Node(1))).unwrap(), depth as u64);

        // The maximum age of `names` is two seconds. The other dictionaries have the default of ten seconds.
        kit.advance(Duration::from_secs(3));
        let Err(RequestError::Stale(error)) = kit.request(ByHand(Node(1))) else { panic!("it is too old") };
        assert_eq!(error.kind(), ErrorKind::Stale);
        assert!(
            error.text().contains("view of `names`") && error.text().contains("`max_age` is 2s"),
            "{error}"
        );

        let read = kit.hive().read(|net: &Net| net.names.shared().len());
        assert!(matches!(read, Err(ReadError::Stale(_))), "{read:?}");
        assert_eq!(kit.request(Survey).unwrap().0, count);

        let age = kit.hive().read(|net: &Net| net.links.shared().age()).unwrap();
        assert!(age >= Duration::from_secs(3), "{age:?}");

        kit.advance(Duration::from_secs(8));
        let Err(RequestError::Stale(error)) = kit.request(Survey) else { panic!("it is too old") };
        assert_eq!(error.kind(), ErrorKind::Stale);

        // A stale view is not a bug, so it causes no dead letter and no panic.
        assert!(kit.dead_letters().is_empty());

        let app = &kit.hive().status().apps[0];
        assert!(app.handlers.iter().all(|h| h.panics == 0));

        let views = app.views.as_ref().unwrap();
        assert_eq!(views.stale, 3);
        assert!(views.copies <= limits::VIEW_COPIES_HELD_MAX + 3, "{views:?}");
    });

    assert_eq!(kit.request(Survey).unwrap().0, depth as u64);
    assert_eq!(kit.request(ByHand(Node(1))).unwrap(), depth as u64);
    assert!(kit.hive().status().apps[0].views.as_ref().unwrap().copies <= 2);
}

#[test]
fn the_report_names_the_views_that_a_handler_reads() {
    use beehive_core::Handlers;
    let of = |name: &str| Net::REPORT.iter().find(|r| r.name == name).map(|r| (r.kind, r.views)).unwrap();
    assert_eq!(of("link"), ("sharded", "links"));
    assert_eq!(of("survey"), ("stateless", "degrees, links"));
    assert_eq!(of("cut"), ("sharded", ""));
    assert_eq!(of("seen"), ("stateless", "names"));
    assert!(Net::map_report().contains("reads views of degrees, links"));
}
