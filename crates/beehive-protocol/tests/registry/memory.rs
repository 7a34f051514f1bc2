//! The memory of the registry: 24 bytes a cell and 32 a bee. Every allocation of this test binary is counted.

use beehive_protocol::{AppId, BeeId, CellHasher, CellId, ColonyId, Epoch, RegistryState, Restored};
use beehive_protocol::{CellSet, Proposal};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Number of bytes that this thread has allocated and not freed.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: i64) {
    // Does nothing while the thread ends.
    let _ = BYTES.try_with(|all| all.set(all.get() + bytes));
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns a cell as a program has them: a hash.
fn cell(number: u64) -> CellId {
    let mut hasher = CellHasher::new(1);
    hasher.word(number);
    CellId(hasher.finish())
}

fn bytes() -> f64 {
    BYTES.with(Cell::get) as f64
}

/// Numbers at which the memory is measured: each is 1.06 times as large as the one before.
fn sizes(max: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(20_000), |size| Some(size + size / 16)).take_while(move |size| *size <= max)
}

/// Adds cells by `add`, and returns the lowest, the average and the highest number of bytes for each of them.
fn measured(max: usize, mut add: impl FnMut(&mut RegistryState, usize)) -> [f64; 3] {
    let before = bytes();
    let mut state = RegistryState::alone(1, [], 0);
    let (mut done, mut all) = (0, Vec::new());
    for size in sizes(max) {
        while done < size {
            add(&mut state, done);
            done += 1
        }
        all.push((bytes() - before) / size as f64)
    }
    let average = all.iter().sum::<f64>() / all.len() as f64;
    [all.iter().copied().fold(f64::MAX, f64::min), average, all.iter().copied().fold(0.0, f64::max)]
}

fn claim(state: &mut RegistryState, cells: &[u64]) {
    let cells: CellSet = cells.iter().map(|number| cell(*number)).collect();
    state.apply(&Proposal::Claim { app: AppId(0), cells, colony: ColonyId(1) });
}

fn max() -> usize {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 4_000_000 } else { 200_000 }
}

#[test]
fn a_cell_takes_24_bytes_and_a_bee_32() {
    // All cells belong to one bee.
    let cells = measured(max(), |state, number| match number {
        0 => claim(state, &[0]),
        _ => claim(state, &[0, number as u64]),
    });
    // Each cell has a bee of its own.
    let both = measured(max(), |state, number| claim(state, &[number as u64]));
    println!("bytes a cell: {cells:.1?}; bytes a cell with its bee: {both:.1?} (lowest, average, highest)");

    assert!(cells[1] <= 24.5 && cells[2] <= 26.0, "bytes a cell: {cells:.1?}");
    assert!(both[1] <= 57.0 && both[2] <= 59.0, "bytes a cell with its bee: {both:.1?}");
    assert!(cells[0] > 16.0 && both[0] > 16.0 + 24.0, "something was not counted");
}

/// Entries of bees that end are used again.
#[test]
fn bees_that_come_and_go_leave_nothing() {
    let mut state = RegistryState::alone(1, [], 0);
    let mut at_first = 0.0;
    for round in 0..20u64 {
        for number in 0..1_000 {
            claim(&mut state, &[round * 1_000 + number])
        }
        let bees: Vec<BeeId> = state.bees_at(ColonyId(1)).collect();
        for pair in bees.chunks(2) {
            if let [from, into] = pair {
                state.apply(&Proposal::Fused { from: *from, into: *into });
                state.apply(&Proposal::Release { bee: *into });
            }
        }
        assert_eq!((state.bees(), state.cells()), (0, 0));
        drop(bees);
        match round {
            1 => at_first = bytes(),
            _ => assert!(round == 0 || bytes() <= at_first * 1.5, "round {round}: {} bytes", bytes()),
        }
    }
}

/// A registry restored from logs is as small.
#[test]
fn a_restored_registry_is_as_small() {
    let before = bytes();
    let bees = (1..=50_000).map(|bee| Restored {
        bee: BeeId(bee),
        app: AppId(0),
        colony: ColonyId(1),
        epoch: Epoch(0),
        lanes: Vec::new(),
        cells: vec![cell(bee)],
    });
    let state = RegistryState::alone(1, bees, 0);
    let each = (bytes() - before) / state.bees() as f64;
    assert!((40.0..59.0).contains(&each), "{each} bytes");
}
