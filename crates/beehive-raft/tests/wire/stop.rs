//! A wire that stops: what has begun ends, and nothing is left.

use crate::hives::*;
use beehive_raft::cluster::transport::{Channel, Transport};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn calls_that_are_served_are_answered_and_packets_are_sent() {
    let _turn = beside();
    runtime().block_on(async {
        for stopped in [0, 1] {
            let hives = Arc::new(Hive::cluster(&format!("drains {stopped}"), 2).await);
            let (from, to) = (hives.clone(), hives.clone());
            let call =
                tokio::spawn(async move { from[0].call(&to[1], Channel::Raft, vec![LATER, 200]).await });
            until("served", || hives[1].echo.serving.load(Ordering::SeqCst) == 1).await;
            for _ in 0..100 {
                hives[0].wire.send(hives[1].id, Channel::Links, vec![0; 1_000])
            }
            if stopped == 1 {
                until("arrived", || hives[1].echo.packets_count.load(Ordering::SeqCst) == 100).await
            }
            let begun = Instant::now();
            hives[stopped].wire.stop().await;
            assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
            assert_eq!(call.await.unwrap(), Ok(vec![LATER, 200]), "hive {stopped} stops");
            assert_eq!(hives[1].echo.packets_count.load(Ordering::SeqCst), 100);

            let why = hives[stopped].call(&hives[1 - stopped], Channel::Raft, vec![ECHO]).await;
            assert!(why.is_err(), "a stopped wire calls")
        }
    })
}

#[test]
fn nothing_outlives_a_stop() {
    let _turn = alone();
    let runtime = runtime();
    runtime.block_on(async {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let hives = Arc::new(Hive::cluster("nothing", 3).await);
        let mut callers = Vec::new();
        for _ in 0..10 {
            let hives = hives.clone();
            callers
                .push(tokio::spawn(async move { hives[0].call(&hives[1], Channel::Raft, vec![NEVER]).await }))
        }
        until("served", || hives[1].echo.serving.load(Ordering::SeqCst) == 10).await;
        let begun = Instant::now();
        for hive in hives.iter() {
            hive.wire.stop().await;
            assert_eq!(Arc::strong_count(&hive.echo), 1, "the receiver of {} is kept", hive.id)
        }
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        for caller in callers {
            assert!(caller.await.unwrap().is_err(), "a call that nobody answers is answered")
        }
        // a call of a stopped wire is no longer served
        assert_eq!(hives[1].echo.serving.load(Ordering::SeqCst), 0);
        // a task still counts for a moment after it has been awaited
        until("no task", || tasks() == before).await;
        // the port is free
        let address = hives[0].wire.address();
        drop(std::net::TcpListener::bind(address).expect("the port is free"));
        hives[0].wire.stop().await
    })
}

#[test]
fn a_wire_that_is_dropped_ends_soon() {
    let _turn = alone();
    let runtime = runtime();
    runtime.block_on(async {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let hives = Hive::cluster("dropped", 2).await;
        drop(hives);
        until("no task", || tasks() == before).await
    })
}
