//! Packets and calls between hives that fit.

use crate::hives::*;
use beehive_core::HiveId;
use beehive_raft::cluster::transport::{Channel, Transport};
use beehive_raft::limits::wire as limits;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn packets_and_calls_go_both_ways_under_load() {
    let _turn = beside();
    runtime().block_on(async {
        let hives = Arc::new(Hive::cluster("load", 2).await);
        let mut callers = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            for caller in 0..8u8 {
                let hives = hives.clone();
                callers.push(tokio::spawn(async move {
                    let (from, to) = (&hives[from], &hives[to]);
                    let channels = [Channel::Raft, Channel::Registry, Channel::Links, Channel::Detector];
                    for round in 0..100u8 {
                        let channel = channels[usize::from(round) % 4];
                        let lengths =
                            [2, 100, 10_000, if channel == Channel::Detector { 9 } else { 300_000 }];
                        let length = lengths[usize::from(round / 4) % 4];
                        let mut request = vec![caller; length];
                        request[0] = ECHO;
                        request[1] = round;
                        let answer = from.call(to, channel, request.clone()).await;
                        assert_eq!(answer, Ok(request), "{channel:?}, {length} bytes");
                        from.wire.send(to.id, channel, vec![caller, round])
                    }
                }))
            }
        }
        for caller in callers {
            caller.await.expect("the caller ends")
        }

        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (&hives[from], &hives[to]);
            until("all packets", || to.echo.packets_count.load(Ordering::SeqCst) == 800).await;
            let mut packets = to.echo.packets.lock().clone();
            packets.sort_by(|a, b| a.2.cmp(&b.2));
            let expected = (0..8u8).flat_map(|caller| (0..100u8).map(move |round| vec![caller, round]));
            assert!(packets.iter().map(|packet| &packet.2).eq(expected.collect::<Vec<_>>().iter()));
            assert!(packets.iter().all(|packet| packet.0 == from.id));
            let status = from.peer(to.id).unwrap();
            assert_eq!((status.packets_dropped, status.calls_in_flight), (0, 0));
            assert!(
                status.is_heard && status.bytes_out > 1_000_000 && status.bytes_in > 1_000_000,
                "{status:?}"
            )
        }
    })
}

#[test]
fn answers_come_in_any_order() {
    let _turn = beside();
    runtime().block_on(async {
        let hives = Hive::cluster("order", 2).await;
        let begun = Instant::now();
        let slow = hives[0].call(&hives[1], Channel::Raft, vec![LATER, 200]);
        let fast = async {
            for _ in 0..10 {
                hives[0].call(&hives[1], Channel::Raft, vec![ECHO]).await.expect("answers");
            }
            begun.elapsed()
        };
        let (slow, fast) = tokio::join!(slow, fast);
        assert_eq!(slow, Ok(vec![LATER, 200]));
        assert!(fast < Duration::from_millis(150), "ten calls took {fast:?} beside a slow one")
    })
}

#[test]
fn a_call_that_is_refused_or_fails_has_a_reason() {
    let _turn = beside();
    runtime().block_on(async {
        let hives = Hive::cluster("reasons", 2).await;
        let why = async |request| hives[0].call(&hives[1], Channel::Raft, request).await.unwrap_err().why;
        assert_eq!(why(vec![REFUSE]).await, "the hive refuses the call");
        assert_eq!(why(vec![PANIC]).await, "the hive failed to answer the call");
        assert_eq!(why(vec![LONG, 65]).await, "the answer is too long");
        // and the connection is as it was
        assert_eq!(hives[0].call(&hives[1], Channel::Raft, vec![ECHO, 1]).await, Ok(vec![ECHO, 1]));

        let unknown = hives[0].wire.call(HiveId(9), Channel::Raft, vec![ECHO]).await;
        assert_eq!(unknown.unwrap_err().why, "hive 9 is not known");
        hives[0].wire.set_peer(HiveId(8), "127.0.0.1:1");
        until("an error", || hives[0].peer(HiveId(8)).is_some_and(|peer| peer.last_refusal.is_some())).await;
        let unreachable = hives[0].wire.call(HiveId(8), Channel::Raft, vec![ECHO]).await.unwrap_err().why;
        assert!(
            unreachable.starts_with("hive 8 is not connected; cannot connect with 127.0.0.1:1: "),
            "{unreachable}"
        );
        hives[0].wire.send(HiveId(8), Channel::Links, vec![1]);
        assert_eq!(hives[0].peer(HiveId(8)).unwrap().packets_dropped, 1)
    })
}

#[test]
fn a_call_of_64_mib_passes_and_a_longer_one_is_refused() {
    let _turn = alone();
    runtime().block_on(async {
        let hives = Hive::cluster("long", 2).await;
        let mut request: Vec<u8> = (0..64 << 20).map(|index: u32| (index >> 10) as u8).collect();
        request[0] = ECHO;
        let memory = Memory::measure();
        let answer = hives[0].call(&hives[1], Channel::Raft, request.clone()).await;
        assert!(answer == Ok(request), "the answer is not the request");
        // the request, its parts at the other side, and the answer in the same way
        let most = memory.most();
        assert!(most < 280 << 20, "{} MiB", most >> 20);

        let error = hives[0].call(&hives[1], Channel::Raft, vec![ECHO; 65 << 20]).await.unwrap_err();
        assert_eq!(
            error.why,
            format!(
                "a call of {} bytes is too long: at most {} are carried (Raft)",
                65 << 20,
                limits::MESSAGE_BYTES_MAX
            )
        );
        let long = vec![ECHO; limits::DETECTOR_BYTES_MAX + 1];
        let error = hives[0].call(&hives[1], Channel::Detector, long.clone()).await.unwrap_err();
        assert!(error.why.contains("at most 65536 are carried"), "{}", error.why);
        hives[0].wire.send(hives[1].id, Channel::Detector, long);
        assert_eq!(hives[0].peer(hives[1].id).unwrap().packets_dropped, 1);
        // the longest answer
        let answer = hives[0].call(&hives[1], Channel::Raft, vec![LONG, 64]).await.unwrap();
        assert_eq!(answer.len(), 64 << 20)
    })
}

#[test]
fn only_so_many_calls_are_served_at_once_and_given_up_ones_make_room() {
    let _turn = beside();
    runtime().block_on(async {
        let hives = Arc::new(Hive::cluster("served", 2).await);
        let mut calls = Vec::new();
        for _ in 0..3 * limits::CALLS_SERVED_MAX {
            let hives = hives.clone();
            calls.push(tokio::spawn(
                async move { hives[0].call(&hives[1], Channel::Registry, vec![NEVER]).await },
            ))
        }
        let serving = || hives[1].echo.serving.load(Ordering::SeqCst);
        until("all slots taken", || serving() == limits::CALLS_SERVED_MAX).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(hives[1].echo.serving_max.load(Ordering::SeqCst), limits::CALLS_SERVED_MAX);

        // other channels go on
        let answer = hives[0].call(&hives[1], Channel::Raft, vec![ECHO]);
        let answer = tokio::time::timeout(Duration::from_secs(2), answer).await;
        assert_eq!(answer.expect("in time"), Ok(vec![ECHO]));

        // The callers give up. Most of their calls are not even read yet.
        for call in &calls {
            call.abort()
        }
        let answer = hives[0].call(&hives[1], Channel::Registry, vec![ECHO]);
        let answer = tokio::time::timeout(Duration::from_secs(2), answer).await;
        assert_eq!(answer.expect("in time"), Ok(vec![ECHO]));
        until("nothing is served", || serving() == 0).await;
        assert_eq!(hives[0].peer(hives[1].id).unwrap().calls_in_flight, 0)
    })
}

#[test]
fn the_bytes_of_calls_that_are_served_at_once_are_limited() {
    let _turn = alone();
    runtime().block_on(async {
        let hives = Arc::new(Hive::cluster("bytes", 2).await);
        let mut calls = Vec::new();
        for _ in 0..40 {
            let hives = hives.clone();
            calls.push(tokio::spawn(async move {
                let mut request = vec![0; 1 << 20];
                request[0] = NEVER;
                hives[0].call(&hives[1], Channel::Raft, request).await
            }))
        }
        let served_max = limits::SERVED_BYTES_MAX >> 20;
        until("all room taken", || hives[1].echo.serving.load(Ordering::SeqCst) == served_max).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(hives[1].echo.serving_max.load(Ordering::SeqCst), served_max);
        for call in &calls {
            call.abort()
        }
    })
}

#[test]
fn the_calls_of_a_connection_that_breaks_end_at_once() {
    let _turn = beside();
    runtime().block_on(async {
        let other = runtime();
        let first = Arc::new(Hive::start(options("breaks", 1)).await);
        let second = Arc::new(other.spawn(Hive::start(options("breaks", 2))).await.unwrap());
        first.knows(&second);
        first.connected(second.id).await;
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (first, second) = (first.clone(), second.clone());
            calls.spawn(async move { first.call(&second, Channel::Raft, vec![NEVER]).await });
        }
        until("called", || first.peer(second.id).is_some_and(|peer| peer.calls_in_flight == 100)).await;
        until("served", || second.echo.serving.load(Ordering::SeqCst) == limits::CALLS_SERVED_MAX).await;

        let begun = Instant::now();
        // as if the process were killed
        other.shutdown_background();
        while let Some(ended) = calls.join_next().await {
            let why = ended.unwrap().unwrap_err().why;
            assert!(why.starts_with("hive 2 at 127.0.0.1:"), "{why}")
        }
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed())
    })
}
