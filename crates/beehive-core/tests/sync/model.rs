//! A model of the message path (mailbox, routes, sender queue, credits, freeze and fuse, retirement), whose
//! thread interleavings a scheduler explores. It follows the hive step by step and lock by lock, and uses the
//! hive's own state machine for ownership. For each check there is a seeded fault that the check must catch.

use beehive_core::registry::{ColonyId, Decision, Proposal, RegistryState};
use beehive_core::{AppId, BeeId, CellId, CellSet};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::sync::{Mutex, MutexGuard};
use shuttle::thread;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// A fault that a test seeds on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A bee retires although messages wait for it.
    RetireUnlooked,
    /// A bee retires while one of its handlers runs.
    RetireRunning,
    /// The messages of a merged bee are not moved.
    QueueLeft,
    /// The messages of a merged bee are moved in reverse order.
    QueueReversed,
    /// The state of a merged bee is not moved.
    StateLeft,
    /// Routes lead to the target before it has the messages waiting at the source.
    RoutesFirst,
    /// Later messages of a sender overtake one that waits for a merge.
    LaneIgnored,
    /// A blocked message is delivered although an earlier one for the same cells is still blocked.
    ParkedOvertakes,
    /// Messages to a frozen bee are dropped.
    FrozenDrops,
    /// Messages to a retired or merged bee are dropped.
    GoneDrops,
    /// A bee that becomes idle does not check whether messages have arrived in the meantime.
    QueueUnlooked,
    /// A credit is returned when the message is handed over, not when it is done.
    CreditEarly,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Active,
    Frozen,
    Gone,
}

/// Exists while a message from outside is in flight. Returns the message's credit when dropped.
struct Cause(Arc<AtomicUsize>);
impl Drop for Cause {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Delivery {
    cells: CellSet,
    sender: usize,
    number: usize,
    cause: Option<Cause>,
}

/// The cells with content. Every message to a cell fills or empties it.
type Body = BTreeSet<CellId>;

struct Mailbox {
    mode: Mode,
    scheduled: bool,
    cells: Vec<CellId>,
    body: Option<Body>,
    queue: VecDeque<Delivery>,
    freezers: Vec<Sender<Body>>,
}

struct Bee {
    id: BeeId,
    mailbox: Mutex<Mailbox>,
}

struct Queen {
    registry: RegistryState,
    bees: HashMap<BeeId, Arc<Bee>>,
}

#[derive(Default)]
struct Lane {
    parked: Vec<Delivery>,
}

/// The messages that each cell has handled, in order.
type History = BTreeMap<CellId, Vec<(usize, usize)>>;

struct Hive {
    fault: Fault,
    queen: Mutex<Queen>,
    routes: Mutex<HashMap<CellId, Arc<Bee>>>,
    woken: Mutex<VecDeque<Arc<Bee>>>,
    history: Mutex<History>,
    inside: Mutex<BTreeSet<CellId>>,
    credits: Arc<AtomicUsize>,
    handled: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl Hive {
    fn owner(&self, cells: &[CellId]) -> Option<Arc<Bee>> {
        let first = lock(&self.routes).get(&cells[0]).cloned()?;
        cells[1..]
            .iter()
            .all(|cell| lock(&self.routes).get(cell).is_some_and(|bee| Arc::ptr_eq(bee, &first)))
            .then_some(first)
    }

    /// Returns the owner of the cells, or the bees that must be merged first.
    fn claim(&self, cells: &CellSet) -> Result<Arc<Bee>, Option<(BeeId, Vec<BeeId>)>> {
        let mut queen = lock(&self.queen);
        let claim = Proposal::Claim { app: AppId(0), cells: cells.clone(), colony: ColonyId(1) };
        let decision = queen.registry.apply(&claim);
        let Decision::Owner { root, created, merging, .. } = decision else { return Err(None) };

        if created {
            let bee = Arc::new(Bee {
                id: root,
                mailbox: Mutex::new(Mailbox {
                    mode: Mode::Active,
                    scheduled: false,
                    cells: cells.to_vec(),
                    body: Some(Body::new()),
                    queue: VecDeque::new(),
                    freezers: Vec::new(),
                }),
            });

            queen.bees.insert(root, bee.clone());
            for cell in cells {
                lock(&self.routes).insert(*cell, bee.clone());
            }

            return Ok(bee);
        }

        let Some(bee) = queen.bees.get(&root).cloned() else { return Err(None) };
        if !merging.is_empty() {
            return Err(Some((root, merging)));
        }

        for cell in cells {
            let mut mailbox = lock(&bee.mailbox);
            if mailbox.mode == Mode::Gone {
                return Err(None);
            }

            if !mailbox.cells.contains(cell) {
                mailbox.cells.push(*cell)
            }

            drop(mailbox);
            lock(&self.routes).insert(*cell, bee.clone());
        }

        Ok(bee)
    }

    fn push(&self, bee: &Arc<Bee>, mut delivery: Delivery) -> Result<(), Delivery> {
        if self.fault == Fault::CreditEarly {
            delivery.cause = None
        }

        let mut mailbox = lock(&bee.mailbox);
        match mailbox.mode {
            Mode::Gone if self.fault == Fault::GoneDrops => return Ok(()),
            Mode::Gone => return Err(delivery),
            Mode::Frozen if self.fault == Fault::FrozenDrops => return Ok(()),
            Mode::Frozen => mailbox.queue.push_back(delivery),
            Mode::Active => {
                mailbox.queue.push_back(delivery);
                if !std::mem::replace(&mut mailbox.scheduled, true) {
                    drop(mailbox);
                    lock(&self.woken).push_back(bee.clone())
                }
            }
        }

        Ok(())
    }

    fn deliver(&self, lane: &Mutex<Lane>, mut delivery: Delivery) {
        let waits = |p: &Delivery| p.cells.iter().any(|cell| delivery.cells.contains(cell));
        if self.fault == Fault::LaneIgnored || !lock(lane).parked.iter().any(waits) {
            for _ in 0..3 {
                let owner = match self.owner(&delivery.cells) {
                    Some(bee) => Ok(bee),
                    None => self.claim(&delivery.cells),
                };

                let Ok(bee) = owner else { break };
                match self.push(&bee, delivery) {
                    Ok(()) => return,
                    Err(back) => delivery = back,
                }
            }
        }

        lock(lane).parked.push(delivery)
    }

    /// Requests owners for all messages that do not wait behind another one, delivers the messages that can
    /// be delivered, and merges the owners of the first remaining message. Returns whether any message
    /// remains.
    fn resolve(&self, lane: &Mutex<Lane>) -> bool {
        let mut merge = None;
        for cells in self.heads(&lock(lane).parked) {
            if let Err(Some(several)) = self.claim(&cells) {
                merge.get_or_insert(several);
            }
        }

        let left = self.retry(lane);
        let Some((root, merging)) = merge else { return left };
        for from in merging {
            self.fuse(from, root)
        }

        self.retry(lane)
    }

    fn heads(&self, parked: &[Delivery]) -> Vec<CellSet> {
        let behind = |at: usize| {
            parked[..at].iter().any(|p| p.cells.iter().any(|cell| parked[at].cells.contains(cell)))
        };
        (0..parked.len()).filter(|at| !behind(*at)).map(|at| parked[at].cells.clone()).collect()
    }

    /// Delivers blocked messages in order, as far as possible. Returns whether any message remains.
    fn retry(&self, lane: &Mutex<Lane>) -> bool {
        let mut lane = lock(lane);
        let mut left: Vec<Delivery> = Vec::new();
        for parked in std::mem::take(&mut lane.parked) {
            let behind = self.fault != Fault::ParkedOvertakes
                && left.iter().any(|p| p.cells.iter().any(|cell| parked.cells.contains(cell)));
            match if behind { None } else { self.owner(&parked.cells) } {
                Some(bee) => {
                    if let Err(back) = self.push(&bee, parked) {
                        left.push(back)
                    }
                }
                None => left.push(parked),
            }
        }

        lane.parked = left;
        !lane.parked.is_empty()
    }

    fn freeze(&self, bee: &Arc<Bee>) -> Option<Body> {
        let waiting: Receiver<Body> = {
            let mut mailbox = lock(&bee.mailbox);
            if mailbox.mode == Mode::Gone {
                return None;
            }

            if let Some(body) = mailbox.body.take() {
                mailbox.mode = Mode::Frozen;
                return Some(body);
            }

            let (sender, receiver) = channel();
            mailbox.freezers.push(sender);
            receiver
        };

        waiting.recv().ok()
    }

    fn pass(mailbox: &mut Mailbox, body: Body) -> Option<Body> {
        if mailbox.freezers.is_empty() {
            return Some(body);
        }
        mailbox.freezers.remove(0).send(body).unwrap();
        mailbox.mode = Mode::Frozen;
        mailbox.scheduled = false;
        None
    }

    fn thaw(&self, bee: &Arc<Bee>, body: Body) {
        let mut mailbox = lock(&bee.mailbox);
        let Some(body) = Self::pass(&mut mailbox, body) else { return };
        mailbox.mode = Mode::Active;
        mailbox.body = Some(body);
        mailbox.scheduled = !mailbox.queue.is_empty();
        if mailbox.scheduled {
            drop(mailbox);
            lock(&self.woken).push_back(bee.clone())
        }
    }

    fn fuse(&self, from: BeeId, into: BeeId) {
        let find = |id| lock(&self.queen).bees.get(&id).cloned();
        let (Some(source), Some(target)) = (find(from), find(into)) else { return };
        let (low, high) = if from < into { (&source, &target) } else { (&target, &source) };
        let Some(low_body) = self.freeze(low) else { return };
        let Some(high_body) = self.freeze(high) else { return self.thaw(low, low_body) };
        let (gone, mut body) = if from < into { (low_body, high_body) } else { (high_body, low_body) };
        {
            let mut queen = lock(&self.queen);
            if self.fault != Fault::StateLeft {
                body.extend(gone)
            }

            let moved = lock(&source.mailbox).cells.clone();
            if self.fault == Fault::RoutesFirst {
                for cell in &moved {
                    lock(&self.routes).insert(*cell, target.clone());
                }
                thread::yield_now()
            }

            let (cells, mut queue) = {
                let mut mailbox = lock(&source.mailbox);
                mailbox.mode = Mode::Gone;
                mailbox.freezers.clear();
                (std::mem::take(&mut mailbox.cells), std::mem::take(&mut mailbox.queue))
            };
            {
                let mut mailbox = lock(&target.mailbox);
                match self.fault {
                    Fault::QueueLeft => queue.clear(),
                    Fault::QueueReversed => mailbox.queue.extend(queue.into_iter().rev()),
                    _ => mailbox.queue.append(&mut queue),
                }
                mailbox.cells.extend(cells.iter().copied())
            }

            for cell in cells {
                lock(&self.routes).insert(cell, target.clone());
            }

            queen.bees.remove(&from);
            queen.registry.apply(&Proposal::Fused { from, into });
        }

        self.thaw(&target, body)
    }

    fn retire(&self, bee: &Arc<Bee>) {
        let mut queen = lock(&self.queen);
        let mut mailbox = lock(&bee.mailbox);
        let unlooked = self.fault == Fault::RetireUnlooked;
        let running = self.fault == Fault::RetireRunning && mailbox.body.is_none();

        if mailbox.mode != Mode::Active
            || !(unlooked || running) && (mailbox.scheduled || !mailbox.queue.is_empty())
            || !mailbox.freezers.is_empty()
            || !(running || mailbox.body.as_ref().is_some_and(Body::is_empty))
        {
            return;
        }

        queen.registry.apply(&Proposal::Release { bee: bee.id });
        for cell in &mailbox.cells {
            let mut routes = lock(&self.routes);
            if routes.get(cell).is_some_and(|owner| Arc::ptr_eq(owner, bee)) {
                routes.remove(cell);
            }
        }

        mailbox.mode = Mode::Gone;
        mailbox.body = None;
        queen.bees.remove(&bee.id);
    }

    fn handle(&self, body: &mut Body, delivery: Delivery) {
        for cell in &delivery.cells {
            assert!(lock(&self.inside).insert(*cell), "two handlers at once on {cell:?}");
        }

        thread::yield_now();
        for cell in &delivery.cells {
            lock(&self.history).entry(*cell).or_default().push((delivery.sender, delivery.number));
            if !body.remove(cell) {
                body.insert(*cell);
            }
            lock(&self.inside).remove(cell);
        }

        assert!(
            self.credits.load(Ordering::SeqCst) < CREDITS,
            "a message is handled, and all credits are free"
        );

        self.handled.fetch_add(1, Ordering::SeqCst);
    }

    /// Runs one scheduled bee until it is idle. Returns whether there was such a bee.
    fn run_one(&self) -> bool {
        let Some(bee) = lock(&self.woken).pop_front() else { return false };
        let (mut body, mut queue, mut waited_for) = {
            let mut mailbox = lock(&bee.mailbox);
            let Some(body) = mailbox.body.take() else { return true };
            (body, std::mem::take(&mut mailbox.queue), !mailbox.freezers.is_empty())
        };

        loop {
            while !waited_for && let Some(delivery) = queue.pop_front() {
                self.handle(&mut body, delivery)
            }

            let mut mailbox = lock(&bee.mailbox);
            if !queue.is_empty() {
                queue.append(&mut mailbox.queue);
                mailbox.queue = std::mem::take(&mut queue);
            }

            match Self::pass(&mut mailbox, body) {
                None => return true,
                Some(back) => body = back,
            }

            waited_for = false;
            if mailbox.queue.is_empty() || self.fault == Fault::QueueUnlooked {
                mailbox.scheduled = false;
                mailbox.body = Some(body);
                return true;
            }

            std::mem::swap(&mut queue, &mut mailbox.queue)
        }
    }
}

const CREDITS: usize = 8;

/// The messages of each sender, in order, each as the list of its cells.
const SENT: [&[&[u64]]; 3] =
    [&[&[1], &[2], &[1, 2], &[1], &[2]], &[&[2], &[2], &[3], &[2, 3], &[3]], &[&[1], &[1], &[3], &[3]]];

/// Runs the model once. Panics if a message is lost or reordered, or if two messages of one cell are handled
/// concurrently.
fn scenario(fault: Fault) {
    let hive = Arc::new(Hive {
        fault,
        queen: Mutex::new(Queen { registry: RegistryState::alone(1, [], 0), bees: HashMap::new() }),
        routes: Mutex::default(),
        woken: Mutex::default(),
        history: Mutex::default(),
        inside: Mutex::default(),
        credits: Arc::new(AtomicUsize::new(CREDITS)),
        handled: AtomicUsize::new(0),
    });

    let total: usize = SENT.iter().map(|sent| sent.len()).sum();
    let mut threads = Vec::new();
    for (sender, sent) in SENT.iter().enumerate() {
        let hive = hive.clone();
        threads.push(thread::spawn(move || {
            let lane = Mutex::new(Lane::default());
            for (number, cells) in sent.iter().enumerate() {
                while hive
                    .credits
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |free| free.checked_sub(1))
                    .is_err()
                {
                    hive.resolve(&lane);
                    hive.run_one();
                    thread::yield_now()
                }

                let cause = Some(Cause(hive.credits.clone()));
                let cells = cells.iter().map(|cell| CellId(*cell)).collect();
                hive.deliver(&lane, Delivery { cells, sender, number, cause });
                if number % 2 == 1 {
                    hive.run_one();
                }
            }

            for _ in 0..1_000 {
                let left = hive.resolve(&lane);
                let ran = hive.run_one();
                if !left && !ran {
                    return;
                }
                thread::yield_now()
            }

            panic!("something waits for ever")
        }))
    }

    let retiring = hive.clone();
    threads.push(thread::spawn(move || {
        for _ in 0..6 {
            let bees: Vec<_> = lock(&retiring.queen).bees.values().cloned().collect();
            bees.iter().for_each(|bee| retiring.retire(bee));
            thread::yield_now()
        }
    }));

    threads.into_iter().for_each(|thread| thread.join().unwrap());
    while hive.run_one() {}
    assert_eq!(hive.handled.load(Ordering::SeqCst), total, "lost or done twice");
    assert_eq!(hive.credits.load(Ordering::SeqCst), CREDITS, "credits are gone");

    let history = lock(&hive.history);
    for (cell, happened) in history.iter() {
        for sender in 0..SENT.len() {
            let numbers: Vec<_> = happened.iter().filter(|(s, _)| *s == sender).map(|(_, n)| *n).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{cell:?}: overtaken: {numbers:?} of {sender}");
        }
        let owner = lock(&hive.routes).get(cell).cloned();
        let filled =
            owner.is_some_and(|bee| lock(&bee.mailbox).body.as_ref().is_some_and(|body| body.contains(cell)));
        assert_eq!(filled, happened.len() % 2 == 1, "{cell:?}: its content is lost or was made up");
    }
}

fn explore(fault: Fault, runs: usize) {
    shuttle::check_pct(move || scenario(fault), runs / 2, 3);
    shuttle::check_random(move || scenario(fault), runs / 2)
}

#[test]
fn nothing_is_lost_overtaken_or_done_by_two_at_once() {
    explore(Fault::None, 2_000)
}

#[test]
fn every_seeded_fault_is_caught() {
    let faults = [
        Fault::RetireUnlooked,
        Fault::RetireRunning,
        Fault::QueueLeft,
        Fault::QueueReversed,
        Fault::StateLeft,
        Fault::RoutesFirst,
        Fault::LaneIgnored,
        Fault::ParkedOvertakes,
        Fault::FrozenDrops,
        Fault::GoneDrops,
        Fault::QueueUnlooked,
        Fault::CreditEarly,
    ];

    for fault in faults {
        let caught = std::panic::catch_unwind(|| explore(fault, 4_000));
        assert!(caught.is_err(), "{fault:?} is not caught")
    }
}
