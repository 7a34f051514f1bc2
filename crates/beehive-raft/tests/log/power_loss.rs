//! The power fails at every operation, also while the log is being opened again. `BEEHIVE_POWER_SEEDS=100 cargo test -p beehive-raft
//! --test log power_loss` tries more histories.

use crate::client::{LOGS, clients, open};
use beehive_raft::files::{Fault, SimulatedFiles};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of checkpoints that were made in all runs.
static CHECKPOINTS: AtomicU64 = AtomicU64::new(0);

/// A rule of durability that the run breaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// Syncs of files do nothing.
    Syncs,
    /// Syncs of folders do nothing.
    FolderSyncs,
    /// Entries are released before they are written.
    Release,
}

/// A pseudo-random number (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

/// Opens the log, appends for a while, and closes it; several times, until the power fails. Notes what is released.
fn lives(
    files: &SimulatedFiles,
    broken: Broken,
    random: &mut u64,
    acknowledged: &mut [u64],
) -> Result<(), String> {
    for _ in 0..4 {
        let data = match open(files) {
            Ok(data) => data,
            Err(_) if files.is_off() => return Ok(()),
            Err(why) => return Err(why.to_string()),
        };
        if broken == Broken::Release {
            data.mutation().release_early()
        }

        let mut clients = clients(&data, acknowledged)?;
        for _ in 0..8 + next(random) % 8 {
            let log = next(random) as usize % LOGS;
            (0..1 + next(random) % 4).for_each(|_| clients[log].append());
            if !next(random).is_multiple_of(3) {
                let last = clients[log].last;
                // the log may fail while this waits
                while !files.is_off() && !clients[log].reports.wait(last, Duration::from_millis(2)) {
                    if data.status().failed.is_some() {
                        break;
                    }
                }
            }
            if files.is_off() {
                break;
            }
        }
        if next(random).is_multiple_of(2) {
            data.close()
        }
        CHECKPOINTS.fetch_add(data.status().checkpoints, Ordering::Relaxed);
        for (log, client) in clients.iter().enumerate() {
            acknowledged[log] = acknowledged[log].max(client.reports.released_upto())
        }
        drop(clients);
        data.close();
    }
    Ok(())
}

/// Runs some lives until operation `at`, and checks what is left. Returns whether the power failed.
fn power_fails_at(seed: u64, at: u64, broken: Broken) -> Result<bool, String> {
    let files = SimulatedFiles::new(seed);
    files.drop_syncs(broken == Broken::Syncs);
    files.drop_folder_syncs(broken == Broken::FolderSyncs);
    files.fail_at(at, Fault::PowerLoss);
    let mut random = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let mut acknowledged = [0; LOGS];
    lives(&files, broken, &mut random, &mut acknowledged)?;
    let failed = files.is_off();
    files.power_off();

    // the power may fail again while the log is being repaired
    files.power_on();
    if next(&mut random).is_multiple_of(2) {
        files.fail_at(files.operations() + 1 + next(&mut random) % 40, Fault::PowerLoss);
        if let Ok(data) = open(&files) {
            data.close()
        }
        files.power_off();
        files.power_on();
    }

    files.drop_syncs(false);
    files.drop_folder_syncs(false);
    let data = open(&files).map_err(|why| why.to_string())?;
    let mut left = clients(&data, &acknowledged)?;
    left.iter_mut().for_each(|client| client.commit());
    let last: Vec<u64> = left.iter().map(|client| client.last).collect();
    data.close();
    drop(left);
    let data = open(&files).map_err(|why| why.to_string())?;
    clients(&data, &last).map(|_| failed)
}

#[test]
fn what_was_acknowledged_outlives_a_power_loss_at_every_operation() {
    let rounds = std::env::var("BEEHIVE_POWER_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    for seed in 1..=rounds {
        let mut at = 1;
        while power_fails_at(seed, at, Broken::Nothing)
            .unwrap_or_else(|why| panic!("seed {seed}, operation {at}: {why}"))
        {
            at += 1
        }
        assert!(at > 100, "the power failed at {at} operations only");
    }
    assert!(CHECKPOINTS.load(Ordering::Relaxed) > 0, "no run made a checkpoint");
}

/// The checks above notice a log that does not keep its promise.
#[test]
fn a_log_without_syncs_or_that_releases_early_is_noticed() {
    for broken in [Broken::Syncs, Broken::FolderSyncs, Broken::Release] {
        let noticed = (30..90).filter(|at| power_fails_at(1, *at, broken).is_err()).count();
        assert!(noticed > 5, "noticed in {noticed} of 60 runs");
    }
}
