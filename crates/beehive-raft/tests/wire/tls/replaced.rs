//! Certificates that expire or are replaced while hives run.

use super::{Log, in_turn, secured};
use crate::certificates::{Authority, valid_for, write};
use crate::hives::*;
use beehive_core::HiveId;
use beehive_raft::cluster::transport::Channel;
use beehive_raft::cluster::wire::WireOptions;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::sleep;

/// Lets a hive forget another one, and connect anew.
fn reconnect(first: &Hive, second: &Hive) {
    first.wire.remove_peer(second.id);
    first.knows(second)
}

fn is_connected(first: &Hive, second: &Hive) -> bool {
    first.peer(second.id).is_some_and(|peer| peer.connected_for.is_some())
}

#[test]
fn a_certificate_that_expires_while_its_hive_runs_is_replaced_without_a_restart() {
    let _turn = in_turn();
    waiting();
    let authority = Authority::new();
    runtime().block_on(async {
        let log = Log::begin();
        let time = Duration::from_secs(4);
        let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + time;
        let short = authority.files_with(2, &authority.sign("hive-2", valid_for(time)));
        let first = Hive::start(secured("expires", 1, &authority)).await;
        let second = Hive::start(WireOptions { tls: Some(short.clone()), ..options("expires", 2) }).await;
        first.knows(&second);
        second.knows(&first);
        first.connected(second.id).await;
        second.connected(first.id).await;

        // what is connected stays
        while SystemTime::now().duration_since(UNIX_EPOCH).unwrap() <= end + Duration::from_secs(1) {
            sleep(Duration::from_millis(20)).await
        }
        assert_eq!(first.call(&second, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
        assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));

        // and is refused when it connects again, in both directions
        reconnect(&first, &second);
        reconnect(&second, &first);
        let begun = std::time::Instant::now();
        until("refused", || first.why(2).is_some() && second.why(1).is_some()).await;
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        let text = "its certificate has expired: give that hive a new one, or correct the clock of this machine";
        assert_eq!(first.why(2), Some(format!("hive 2 at {}: {text}", second.address())));
        assert_eq!(
            second.why(1),
            Some(format!(
                "hive 1 at {}: it refuses this hive's certificate ({}), because it has expired, or is not valid yet: make a new \
                 one, or correct the clocks of both machines",
                first.address(),
                short.certificate.display()
            ))
        );
        assert!(first.peer(second.id).unwrap().misfit.is_some());
        assert!(second.peer(first.id).unwrap().misfit.is_some());
        // each also says what it thinks of the connection that the other has made
        until("said", || log.has(&["a connection was refused: hive 127.0.0.1:", text])).await;
        until("said", || {
            log.has(&["a connection was refused: hive 127.0.0.1:", "because it has expired, or is not valid yet"])
        })
        .await;

        let new = authority.files(2);
        assert_eq!(new, short);
        first.connected(second.id).await;
        second.connected(first.id).await;
        assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
        assert!(log.has(&["read the changed certificates of hive 2"]), "{}", log.text());
        assert_eq!(first.peer(second.id).unwrap().misfit, None)
    })
}

#[test]
fn files_that_are_wrong_change_nothing_and_another_ca_can_take_over() {
    let _turn = in_turn();
    waiting();
    let (old, new) = (Authority::new(), Authority::new());
    runtime().block_on(async {
        let log = Log::begin();
        let first = Hive::start(secured("takes over", 1, &old)).await;
        let second = Hive::start(secured("takes over", 2, &old)).await;
        first.knows(&second);
        first.connected(second.id).await;
        let later = || sleep(Duration::from_millis(1_100));
        let connects_again = async || {
            reconnect(&first, &second);
            first.connected(second.id).await
        };

        // the certificate of another hive
        old.files_with(2, &old.sign("hive-3", |_| ()));
        later().await;
        connects_again().await;
        let refused = "the changed certificates are not used, and the previous ones stay: ";
        assert!(log.has(&[refused, "the certificate is for hive-3, and not for hive-2"]), "{}", log.text());

        // first all trust both CAs, then all get new certificates, and then the old CA goes
        write(&old.ca(), &format!("{}{}", old.pem(), new.pem()));
        old.files(2);
        later().await;
        connects_again().await;
        for hive in [1, 2] {
            old.files_with(hive, &new.sign(&format!("hive-{hive}"), |_| ()));
            later().await;
            connects_again().await
        }
        write(&old.ca(), &new.pem());
        later().await;
        connects_again().await;

        // who has a certificate of the old one only is out
        let late = Authority::new();
        write(&late.ca(), &old.pem());
        let files = late.files_with(2, &old.sign("hive-2", |_| ()));
        let third = Hive::start(WireOptions { tls: Some(files), ..options("takes over", 2) }).await;
        first.wire.set_peer(HiveId(2), third.address());
        until("refused", || first.why(2).is_some()).await;
        assert!(!is_connected(&first, &third));
        assert!(
            first.why(2).unwrap().contains("its certificate was not signed by a CA in "),
            "{:?}",
            first.why(2)
        )
    })
}
