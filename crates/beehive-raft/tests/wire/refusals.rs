//! Hives that do not fit are refused, and both say why and what to do.

use crate::hives::*;
use beehive_core::HiveId;
use beehive_raft::cluster::transport::{Channel, Transport};
use beehive_raft::cluster::wire::{Wire, WireError, WireOptions};
use beehive_raft::limits::wire as limits;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Connects the first hive with the second one. Returns what each of the two says. The second one has only its log, which
/// names the first one's port in one of the lines.
async fn refused(first: WireOptions, second: WireOptions, expected: u32) -> (String, Vec<String>) {
    let (first, second) = (Hive::start(first).await, Hive::start(second).await);
    let expected = HiveId(expected);
    first.wire.set_peer(expected, second.address());
    let text = || first.peer(expected).and_then(|peer| peer.last_refusal);
    until("refused", || text().is_some()).await;
    let text = text().unwrap();
    assert!(logged().contains(&format!("no connection: {text}")), "the hive that connects does not log it");
    until("the other side knows", || {
        second.wire.status().strangers_refused > 0 || {
            second.peer(first.id).is_some_and(|peer| peer.last_refusal.is_some())
        }
    })
    .await;
    // nothing was delivered
    first.wire.send(expected, Channel::Links, vec![1]);
    assert!(first.wire.call(expected, Channel::Raft, vec![ECHO]).await.is_err());
    assert_eq!(second.echo.packets_count.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(second.echo.calls_count.load(std::sync::atomic::Ordering::SeqCst), 0);
    let status = second.peer(first.id).and_then(|peer| peer.last_refusal);
    first.wire.stop().await;
    second.wire.stop().await;
    let log = logged();
    let address = second.address();
    let lines = log.lines().filter(|line| !line.contains(&address)).map(str::to_string);
    (text.replace(&address, "ADDRESS"), lines.chain(status).collect())
}

/// Checks what the hive that connects says, and that a line of the other one's log contains all of the words.
async fn check(first: WireOptions, second: WireOptions, expected: u32, text: &str, other: &[&str]) {
    let (found, lines) = refused(first, second, expected).await;
    assert_eq!(found, text);
    let is_there = lines.iter().any(|line| other.iter().all(|word| line.contains(word)));
    assert!(is_there, "no line with {other:?} in\n{}", lines.join("\n"))
}

const TOKEN: &str = "sixteen random bytes, and more";

#[test]
fn another_cluster() {
    let _turn = beside();
    runtime().block_on(check(
        options("orchard", 1),
        options("meadow", 2),
        2,
        "hive ADDRESS belongs to cluster `meadow`, this hive to `orchard`: give both the same `name`, \
         hives and number of logs, or correct the address of the peer",
        &["belongs to cluster `orchard`, this hive to `meadow`: give both the same `name`, hives"],
    ))
}

#[test]
fn another_seed() {
    let _turn = beside();
    let first = WireOptions { seed: 0x51, ..options("seed", 1) };
    let second = WireOptions { seed: 0x52, ..options("seed", 2) };
    runtime().block_on(check(
        first,
        second,
        2,
        "hive 2 at ADDRESS has the hash seed 0x52, this hive 0x51: cells would have different owners; give both the seed \
         with which the cluster began; if the folder of one of them was made by a start that failed, with another token or name, and \
         it has never been in the cluster, remove that folder",
        &["hive 1 at ", "has the hash seed 0x51, this hive 0x52"],
    ))
}

#[test]
fn other_apps() {
    let _turn = beside();
    let first = WireOptions { fingerprint: b"these".to_vec(), ..options("apps", 1) };
    let second = WireOptions { fingerprint: b"those".to_vec(), ..options("apps", 2) };
    runtime().block_on(async {
        let (text, lines) = refused(first, second, 2).await;
        assert!(text.starts_with("hive 2 at ADDRESS has other apps or shapes (fingerprint "), "{text}");
        assert!(
            text.ends_with("): start the same program with the same apps, in the same order, on both"),
            "{text}"
        );
        assert!(
            lines.iter().any(|line| line.contains("hive 1 at ") && line.contains("has other apps or shapes"))
        )
    })
}

#[test]
fn another_token_or_none() {
    let _turn = beside();
    let text = "hive ADDRESS has another join token than this hive, or only one of the two has one: give all hives of the \
                cluster the same `token`";
    let with = |hive, token: Option<&str>| WireOptions {
        token: token.map(str::to_string),
        ..options("token", hive)
    };
    runtime().block_on(async {
        let other: &[&str] = &["has another join token than this hive"];
        check(with(1, Some(TOKEN)), with(2, Some("another one, as long as that")), 2, text, other).await;
        check(with(1, None), with(2, Some(TOKEN)), 2, text, other).await;
        check(with(1, Some(TOKEN)), with(2, None), 2, text, other).await
    });
    assert!(!logged().contains(TOKEN), "the token is in the log");
    assert!(!format!("{:?}", with(1, Some(TOKEN))).contains(TOKEN), "the options show the token")
}

#[test]
fn the_same_token() {
    let _turn = beside();
    runtime().block_on(async {
        let with = |hive| WireOptions { token: Some(TOKEN.into()), ..options("same token", hive) };
        let (first, second) = (Hive::start(with(1)).await, Hive::start(with(2)).await);
        first.knows(&second);
        first.connected(second.id).await;
        assert_eq!(first.call(&second, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]))
    })
}

#[test]
fn another_hive_at_the_address() {
    let _turn = beside();
    runtime().block_on(check(
        options("address", 1),
        options("address", 3),
        2,
        "hive 3 at ADDRESS is connected with this one, hive 1, at the address of hive 2: correct the address of hive 2 in the \
         peers of the hive that connects",
        &["hive 1 at ", "this one, hive 3, at the address of hive 2: correct the address of hive 2"],
    ))
}

#[test]
fn the_same_hive_id_at_the_address() {
    let _turn = beside();
    runtime().block_on(check(
        options("own", 1),
        options("own", 1),
        2,
        "ADDRESS is hive 1, and so is this hive: give each hive a number of its own, and no hive its own address as that of a \
         peer",
        &["is hive 1, and so is this hive: give each hive a number of its own"],
    ))
}

#[test]
fn two_processes_of_one_hive() {
    let _turn = beside();
    runtime().block_on(async {
        let first = Hive::start(options("twice", 1)).await;
        let second = Hive::start(options("twice", 2)).await;
        second.knows(&first);
        second.connected(first.id).await;

        let again = Hive::start(options("twice", 2)).await;
        again.knows(&first);
        let text = |hive: &Hive, of| hive.peer(of).and_then(|peer| peer.last_refusal);
        until("refused", || text(&again, first.id).is_some()).await;
        for text in [text(&again, first.id).unwrap(), text(&first, second.id).unwrap()] {
            assert!(
                text.starts_with(
                    "two processes run as hive 2; one is connected, and the other one connects ("
                ),
                "{text}"
            );
            assert!(text.ends_with("): stop one of them, or start it with another number"), "{text}")
        }
        assert_eq!(
            second.call(&first, Channel::Raft, vec![ECHO]).await,
            Ok(vec![ECHO]),
            "the first one stays"
        );

        // when the first one has stopped, the other one may connect
        second.wire.stop().await;
        again.connected(first.id).await
    })
}

#[test]
fn an_outdated_process_of_a_hive() {
    let _turn = beside();
    runtime().block_on(async {
        let with = |incarnation| WireOptions { incarnation, ..options("outdated", 2) };
        let first = Hive::start(options("outdated", 1)).await;
        let old = Hive::start(with(4)).await;
        old.knows(&first);
        old.connected(first.id).await;

        let new = Hive::start(with(5)).await;
        new.knows(&first);
        new.connected(first.id).await;
        let text = |hive: &Hive, of| hive.peer(of).and_then(|peer| peer.last_refusal);
        until("refused", || text(&old, first.id).is_some()).await;
        for (text, start) in [
            (text(&old, first.id).unwrap(), format!("between hive 1 at {} and this one, hive 2: ", first.address())),
            (text(&first, HiveId(2)).unwrap(), "between hive 2 at 127.0.0.1:".into()),
        ] {
            assert!(text.starts_with(&start), "{text}");
            assert!(
                text.ends_with(
                    "a process with incarnation 4 connects, and a later process of the same hive, with incarnation 5, has been \
                     here: stop the outdated process"
                ),
                "{text}"
            )
        }
        assert_eq!(new.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));

        // also when it is the older one's address that is known, and when the newer one has gone
        new.wire.stop().await;
        first.knows(&old);
        let is_refused = || text(&first, HiveId(2)).is_some_and(|text| text.contains(&old.address()));
        until("refused when dialed", is_refused).await;
        assert!(first.peer(HiveId(2)).unwrap().connected_for.is_none())
    })
}

#[test]
fn a_later_process_of_the_same_incarnation_replaces_one_that_has_gone() {
    let _turn = beside();
    runtime().block_on(async {
        let first = Hive::start(options("gone", 1)).await;
        for _ in 0..3 {
            let second = Hive::start(options("gone", 2)).await;
            second.knows(&first);
            second.connected(first.id).await;
            second.wire.stop().await
        }
    })
}

#[test]
fn more_hives_than_a_wire_knows() {
    let _turn = beside();
    runtime().block_on(async {
        let first = Hive::start(options("many", 1)).await;
        let second = Hive::start(options("many", 2)).await;
        for hive in 0..=limits::PEERS_MAX as u32 {
            first.wire.set_peer(HiveId(1_000 + hive), "127.0.0.1:1")
        }
        assert_eq!(first.wire.status().peers.len(), limits::PEERS_MAX);
        assert!(logged().contains("hive 1256 is not added: 256 hives are known, which is the limit"));
        second.knows(&first);
        let text = || second.peer(first.id).and_then(|peer| peer.last_refusal);
        until("refused", || text().is_some()).await;
        assert!(
            text()
                .unwrap()
                .ends_with("one of them knows 256 hives, which is the limit: remove those that are gone")
        );

        first.wire.remove_peer(HiveId(1_000));
        second.connected(first.id).await
    })
}

#[test]
fn a_wire_that_others_can_reach_needs_a_token() {
    let _turn = beside();
    runtime().block_on(async {
        let open = |token: Option<&str>, cluster: &str| WireOptions {
            listen: "0.0.0.0:0".parse().unwrap(),
            token: token.map(str::to_string),
            ..options(cluster, 1)
        };
        let error = async |options| Wire::bind(options).await.unwrap_err();
        let refused = error(open(None, "reach")).await;
        assert!(matches!(refused, WireError::NoToken { .. }));
        assert_eq!(
            refused.to_string(),
            "0.0.0.0:0 can be reached from other machines, and this hive has no join token and no certificate: set \
             `token` to the secret of the cluster (at least 16 bytes) or `tls` to its certificates, or listen on 127.0.0.1"
        );
        assert_eq!(
            error(open(Some("fifteen bytes.."), "reach")).await.to_string(),
            "the join token has 15 bytes, and could be guessed: make a random one of at least 16 bytes"
        );
        assert_eq!(
            error(open(Some(TOKEN), &"x".repeat(257))).await.to_string(),
            "the name of the cluster has 257 bytes: give it a `name` of 1 to 256 bytes"
        );
        let wire = Wire::bind(open(Some(TOKEN), &"x".repeat(256))).await.expect("binds");
        let taken = WireOptions { listen: wire.address(), ..open(Some(TOKEN), "reach") };
        let taken = error(taken).await.to_string();
        assert!(taken.ends_with("; stop the process that uses the port, or name another port"), "{taken}")
    })
}

#[test]
fn who_says_nothing_is_disconnected_and_holds_nobody_up() {
    waiting();
    runtime().block_on(async {
        let first = Hive::start(options("silent", 1)).await;
        let second = Hive::start(options("silent", 2)).await;
        let begun = Instant::now();
        let mut silent = Vec::new();
        for _ in 0..3 * limits::STRANGERS_MAX {
            silent.push(TcpStream::connect(first.wire.address()).await.expect("connects"))
        }
        until("too many", || first.wire.status().strangers_refused >= 2 * limits::STRANGERS_MAX as u64).await;
        assert_eq!(first.wire.status().strangers, limits::STRANGERS_MAX);
        second.knows(&first);
        second.connected(first.id).await;
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());

        // the oldest of them was closed at once, and the youngest after the time for a handshake
        let mut youngest = silent.pop().unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(9), youngest.read_to_end(&mut rest)).await;
        closed.expect("closed in time").ok();
        let elapsed = begun.elapsed();
        assert!(elapsed >= limits::HANDSHAKE_TIME_MAX, "{elapsed:?}");
        until("no stranger", || first.wire.status().strangers == 0).await;
        assert!(logged().contains("the handshake was not finished within 5s"));
        assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]))
    })
}
