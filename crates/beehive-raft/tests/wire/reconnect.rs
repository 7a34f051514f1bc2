//! A hive that restarts, moves, or cannot be reached.

use crate::hives::*;
use beehive_core::HiveId;
use beehive_raft::cluster::transport::Channel;
use beehive_raft::cluster::wire::WireOptions;
use beehive_raft::limits::wire as limits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[test]
fn a_hive_that_restarts_on_another_port_is_found() {
    let _turn = beside();
    runtime().block_on(async {
        let first = Hive::start(options("moves", 1)).await;
        for incarnation in 1..4 {
            let second = Hive::start(WireOptions { incarnation, ..options("moves", 2) }).await;
            first.knows(&second);
            second.knows(&first);
            first.connected(second.id).await;
            second.connected(first.id).await;
            assert_eq!(first.call(&second, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
            assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
            second.wire.stop().await;
            until("noticed", || first.peer(second.id).unwrap().connected_for.is_none()).await;
            assert!(first.call(&second, Channel::Raft, vec![ECHO]).await.is_err())
        }
    })
}

#[test]
fn a_hive_that_restarts_on_the_same_port_is_found_without_help() {
    waiting();
    runtime().block_on(async {
        let first = Hive::start(options("returns", 1)).await;
        let second = Hive::start(options("returns", 2)).await;
        first.knows(&second);
        first.connected(second.id).await;
        let listen = second.wire.address();
        second.wire.stop().await;
        until("noticed", || first.peer(second.id).unwrap().connected_for.is_none()).await;

        let begun = Instant::now();
        let second = Hive::start(WireOptions { listen, ..options("returns", 2) }).await;
        first.connected(second.id).await;
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_eq!(first.call(&second, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]))
    })
}

#[test]
fn a_hive_that_cannot_be_reached_is_tried_with_pauses() {
    waiting();
    runtime().block_on(async {
        // accepts connections and closes them
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = attempts.clone();
        let closing = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let first = Hive::start(options("pauses", 1)).await;
        first.wire.set_peer(HiveId(2), address);
        tokio::time::sleep(Duration::from_secs(2)).await;
        // pauses of 50, 100, 200, 400 and 800 ms, and then of a second, each varied by half
        let attempts = attempts.load(Ordering::SeqCst);
        assert!((4..=10).contains(&attempts), "{attempts} attempts in two seconds");

        // a new address is tried at once
        let second = Hive::start(options("pauses", 2)).await;
        let begun = Instant::now();
        first.knows(&second);
        first.connected(second.id).await;
        assert!(begun.elapsed() < Duration::from_millis(400), "{:?}", begun.elapsed());
        closing.abort()
    })
}

#[test]
fn a_hive_that_is_removed_is_disconnected_and_can_return() {
    let _turn = beside();
    runtime().block_on(async {
        let hives = Hive::cluster("removed", 2).await;
        hives[0].wire.remove_peer(HiveId(2));
        assert!(hives[0].peer(HiveId(2)).is_none());
        let why = hives[0].call(&hives[1], Channel::Raft, vec![ECHO]).await.unwrap_err().why;
        assert_eq!(why, "hive 2 is not known");
        hives[0].knows(&hives[1]);
        hives[0].connected(HiveId(2)).await;
        hives[1].connected(HiveId(1)).await;
        assert_eq!(hives[0].call(&hives[1], Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
        assert_eq!(hives[1].call(&hives[0], Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]))
    })
}

/// Forwards connections until it is told to stall: then nothing more passes through those that are open.
async fn proxy(to: SocketAddr, stalls: watch::Receiver<bool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut stalls = stalls.clone();
            tokio::spawn(async move {
                let Ok(mut far) = TcpStream::connect(to).await else { return };
                let is_over = async { stalls.wait_for(|stalls| *stalls).await.is_ok() };
                let stalled = tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => false,
                    stalled = is_over => stalled,
                };
                if stalled {
                    std::future::pending().await
                }
            });
        }
    });
    address
}

#[test]
fn a_connection_that_carries_nothing_more_is_noticed_and_replaced() {
    waiting();
    runtime().block_on(async {
        let first = Hive::start(options("stalls", 1)).await;
        let second = Hive::start(options("stalls", 2)).await;
        let (stall, stalls) = watch::channel(false);
        let proxy = proxy(second.wire.address(), stalls).await;
        first.wire.set_peer(second.id, proxy.to_string());
        first.connected(second.id).await;
        let begun = Instant::now();
        let call = first.call(&second, Channel::Raft, vec![NEVER]);
        let stalled = async {
            until("served", || second.echo.serving.load(Ordering::SeqCst) == 1).await;
            stall.send(true).unwrap()
        };
        let (ended, ()) = tokio::join!(call, stalled);
        assert!(ended.is_err(), "a call without an answer is answered");
        let elapsed = begun.elapsed();
        assert!(
            elapsed < limits::PROBE_EVERY + limits::PROBE_TIME_MAX + Duration::from_secs(1),
            "{elapsed:?}"
        );
        // the other side has noticed too
        until("no longer served", || second.echo.serving.load(Ordering::SeqCst) == 0).await;

        stall.send(false).unwrap();
        first.connected(second.id).await;
        assert_eq!(first.call(&second, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]))
    })
}
