//! Tests connections that claim the datapath id of a connected switch.

use crate::peer::{Controller, eventually, features};
use beehive_of::Version;
use beehive_of::any::Message;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_is_refused_while_the_first_one_is_alive() {
    let controller = Controller::start().await;
    let mut first = controller.join(Version::V1_3, 1).await;
    let mut second = controller.connect().await;
    let xid = second.greet(Version::V1_3).await.unwrap();
    second.send(&features(Version::V1_3, 1, 0, xid)).await;

    let probed = first.until(|m, _| matches!(m, Message::EchoRequest(_)).then_some(()));
    tokio::time::timeout(Duration::from_millis(500), probed).await.expect("is probed at once").unwrap();
    assert!(controller.serves(&mut first).await);
    let told = second.closed().await.expect("is told why");
    assert_eq!((told.0, told.1), (1, 5), "bad request, not permitted");
    assert!(controller.serves(&mut first).await);

    assert_eq!(controller.directory.ended().1, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_one_yields() {
    let controller = Controller::start().await;
    let _silent = controller.join(Version::V1_0, 1).await;
    let mut second = controller.connect().await;
    let xid = second.greet(Version::V1_0).await.unwrap();
    second.send(&features(Version::V1_0, 1, 0, xid)).await;
    second.settle().await;
    assert!(controller.serves(&mut second).await);
    assert!(eventually(|| controller.directory.len() == 1).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn auxiliary_connections_are_no_duplicates() {
    let controller = Controller::start().await;
    let mut main = controller.join(Version::V1_3, 1).await;
    let mut auxiliary = controller.connect().await;
    let xid = auxiliary.greet(Version::V1_3).await.unwrap();
    auxiliary.send(&features(Version::V1_3, 1, 1, xid)).await;

    // this also answers the barrier
    let _ = tokio::time::timeout(Duration::from_millis(200), auxiliary.until(|_, _| None::<()>)).await;
    assert!(controller.serves(&mut main).await);
    assert_eq!((controller.directory.len(), controller.directory.nodes()), (2, 1));
    let mut orphan = controller.connect().await;
    let xid = orphan.greet(Version::V1_3).await.unwrap();

    orphan.send(&features(Version::V1_3, 99, 1, xid)).await;
    assert!(orphan.closed().await.is_some(), "is told why");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_set_of_features_changes_nothing() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_0, 1).await;
    peer.send(&features(Version::V1_0, 2, 0, 0)).await;
    peer.send(&[1, 0, 0, 8, 0, 0, 0, 1]).await; // and a second hello
    assert!(controller.serves(&mut peer).await);
    assert!(eventually(|| controller.directory.totals().messages_ignored == 2).await);
    let status = controller.directory.status(controller.hive.now());
    assert_eq!(status[0].node.as_deref(), Some("0000000000000001"));
}

/// While the controller probes the first connection, it reads only a bounded amount from the connection with
/// the same identity. Before a connection is identified, the controller answers only a bounded number of its
/// requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_that_floods_is_not_kept_in_memory() {
    const MEGABYTE: usize = 1 << 20;
    // echo requests
    let noise: Vec<u8> = std::iter::repeat_n([1, 2, 0, 8, 0, 0, 0, 9], MEGABYTE / 8).flatten().collect();
    let sent_by = async |controller: &Controller, identified: bool| {
        let mut stranger = controller.connect().await;
        let xid = stranger.greet(Version::V1_0).await.unwrap();
        if identified {
            stranger.send(&features(Version::V1_0, 1, 0, xid)).await;
        }

        let mut megabytes = 0;
        // the peer reads nothing
        while megabytes < 200 {
            let sent = tokio::time::timeout(Duration::from_millis(300), stranger.stream.write_all(&noise));
            match sent.await {
                Ok(Ok(())) => megabytes += 1,
                _ => break,
            }
        }

        megabytes
    };

    let controller = Controller::start().await;
    let _silent = controller.join(Version::V1_0, 1).await;
    for identified in [true, false] {
        // the socket buffers of both sides hold some megabytes
        let megabytes = sent_by(&controller, identified).await;
        assert!(megabytes < 30, "{megabytes} MB, identified: {identified}")
    }

    let mut other = controller.join(Version::V1_0, 2).await;
    assert!(controller.serves(&mut other).await);
}
