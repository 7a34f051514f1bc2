//! Strangers at the port of a hive with certificates.

use super::{in_turn, secured};
use crate::certificates::Authority;
use crate::hives::*;
use beehive_raft::cluster::transport::Channel;
use beehive_raft::limits::wire as limits;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The beginning of a TLS connection: a record that announces 512 bytes of a client hello, and has some of them.
const HALF_HELLO: [u8; 12] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 7];

#[test]
fn a_thousand_half_open_handshakes_keep_nobody_out() {
    let _turn = in_turn();
    waiting();
    let authority = Authority::new();
    runtime().block_on(async {
        let first = Hive::start(secured("half", 1, &authority)).await;
        let second = Hive::start(secured("half", 2, &authority)).await;
        let third = Hive::start(secured("half", 3, &authority)).await;
        second.knows(&first);
        second.connected(first.id).await;
        let begun = Instant::now();
        let mut half_open = Vec::new();
        for number in 0..1_000 {
            let mut socket = TcpStream::connect(first.wire.address()).await.expect("connects");
            let bytes = &HALF_HELLO[..number % HALF_HELLO.len()];
            // it may be closed already
            let _ = socket.write_all(bytes).await;
            half_open.push(socket)
        }
        // also before any of them has had its time
        assert!(first.wire.status().strangers <= limits::STRANGERS_MAX, "{:?}", first.wire.status());
        until("too many", || first.wire.status().strangers_refused >= 1_000 - limits::STRANGERS_MAX as u64)
            .await;
        let tried = Instant::now();
        third.knows(&first);
        third.connected(first.id).await;
        assert!(tried.elapsed() < Duration::from_secs(4), "{:?}", tried.elapsed());
        assert_eq!(third.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
        assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));

        // the youngest one has the time of a handshake, and not more
        let mut rest = Vec::new();
        let closed = timeout(Duration::from_secs(9), half_open.pop().unwrap().read_to_end(&mut rest)).await;
        closed.expect("closed in time").ok();
        assert!(begun.elapsed() >= limits::HANDSHAKE_TIME_MAX, "{:?}", begun.elapsed());
        until("no stranger", || first.wire.status().strangers == 0).await
    })
}

#[test]
fn garbage_is_answered_with_an_alert_at_most() {
    let _turn = in_turn();
    waiting();
    let authority = Authority::new();
    runtime().block_on(async {
        let first = Hive::start(secured("garbage", 1, &authority)).await;
        let second = Hive::start(secured("garbage", 2, &authority)).await;
        second.knows(&first);
        second.connected(first.id).await;
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 56) as u8
        };
        let http = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let mut rounds = tokio::task::JoinSet::new();
        for round in 0..300 {
            let mut bytes = match round % 3 {
                0 => http.to_vec(),
                1 => vec![0x16, 3, 1, 0, random()],
                _ => Vec::new(),
            };
            bytes.extend((0..=random()).map(|_| random()));
            let to = first.wire.address();
            rounds.spawn(async move {
                let Ok(mut socket) = TcpStream::connect(to).await else { return };
                if socket.write_all(&bytes).await.is_err() || socket.shutdown().await.is_err() {
                    return;
                }
                let mut answer = Vec::new();
                let ended = timeout(Duration::from_secs(9), socket.read_to_end(&mut answer)).await;
                assert!(ended.is_ok(), "the connection stays open");
                assert!(answer.first().is_none_or(|kind| *kind == 0x15), "answered with {answer:?}")
            });
            if round % 30 == 0 {
                assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
            }
        }
        while let Some(ended) = rounds.join_next().await {
            ended.unwrap()
        }
        // one whose task had panicked would remain
        until("no stranger", || first.wire.status().strangers == 0).await;
        assert_eq!(first.wire.status().peers.len(), 1, "the other hive");
        assert_eq!(first.echo.packets_count.load(Ordering::SeqCst), 0);
        assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
    })
}
