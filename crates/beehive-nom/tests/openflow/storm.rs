//! Tests a reconnect storm: all switches connect in one moment, as after a restart of the controller. All of them are set
//! up, and silent connections among them do not keep them out.

use crate::peer::{Controller, Peer, eventually};
use beehive_nom::driver::openflow::ListenerSettings;
use beehive_of::Version;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Number of switches, many times as many as handshakes that may be in progress.
const SWITCHES: u64 = 200;
const HALF_OPEN_MAX: usize = 8;

/// Connects all switches at once, and returns when all of them are set up. Fails if one of them is disconnected.
async fn storm(controller: &Arc<Controller>) -> Vec<Peer> {
    let mut joining = JoinSet::new();
    for node in 1..=SWITCHES {
        let controller = controller.clone();
        let version = if node % 2 == 0 { Version::V1_0 } else { Version::V1_3 };
        joining.spawn(async move { controller.join(version, node).await });
    }

    let mut joined = Vec::new();
    while let Some(peer) = joining.join_next().await {
        joined.push(peer.expect("is set up"))
    }
    joined
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_switches_is_set_up_and_none_is_refused() {
    let settings = ListenerSettings { half_open_max: HALF_OPEN_MAX, ..ListenerSettings::default() };
    let controller = Arc::new(Controller::with(settings).await);
    let switches = storm(&controller).await;

    assert!(eventually(|| controller.directory.nodes() as u64 == SWITCHES).await);
    assert_eq!(controller.directory.ended(), (0, 0), "no connection was closed");
    drop(switches)
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_before_a_storm_are_evicted_and_no_switch_is() {
    let settings = ListenerSettings { half_open_max: HALF_OPEN_MAX, ..ListenerSettings::default() };
    let controller = Arc::new(Controller::with(settings).await);
    let mut silent = Vec::new();
    for _ in 0..HALF_OPEN_MAX {
        silent.push(controller.connect().await);
    }
    let connections = || (controller.directory.len(), controller.directory.waiting());
    assert!(eventually(|| connections() == (HALF_OPEN_MAX, 0)).await, "{:?}", connections());
    let one_more = controller.connect().await;
    assert!(eventually(|| connections() == (HALF_OPEN_MAX, 1)).await, "{:?}", connections());
    drop(one_more);

    let began = Instant::now();
    let switches = storm(&controller).await;
    // well before the time limit of the handshake
    assert!(began.elapsed() < Duration::from_secs(4), "they waited for {:?}", began.elapsed());
    assert!(eventually(|| controller.directory.nodes() as u64 == SWITCHES).await);
    let (ended, _) = controller.directory.ended();
    // one of them is the one that was closed while it waited
    assert!((2..=HALF_OPEN_MAX as u64 + 1).contains(&ended), "{ended} connections were closed");
    assert_eq!(controller.directory.waiting(), 0);
    drop((switches, silent))
}
