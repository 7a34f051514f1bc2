//! What hives with certificates can do, and what others cannot read.

use super::{listening_proxy, secured};
use crate::certificates::Authority;
use crate::hives::*;
use beehive_core::HiveId;
use beehive_raft::cluster::transport::{Channel, Transport};
use beehive_raft::cluster::wire::{Wire, WireError, WireOptions};
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A call that is longer than what a handshake sends at once.
const LONG_CALL: usize = 6_000;

const SECRET: &[u8] = b"the combination is 7-31-4, and the vault is behind the painting";

/// Calls and sends through a proxy. Returns whether the secret could be heard there.
async fn is_heard(first: WireOptions, second: WireOptions) -> bool {
    let (first, second) = (Hive::start(first).await, Hive::start(second).await);
    let (proxy, heard) = listening_proxy(second.wire.address()).await;
    first.wire.set_peer(second.id, proxy.to_string());
    first.connected(second.id).await;
    for length in [SECRET.len(), 10_000, 1 << 20] {
        let mut request = vec![ECHO];
        while request.len() < length {
            request.extend(SECRET)
        }
        assert_eq!(first.call(&second, Channel::Raft, request.clone()).await, Ok(request));
    }
    first.wire.send(second.id, Channel::Links, SECRET.to_vec());
    until("arrived", || second.echo.packets_count.load(Ordering::SeqCst) == 1).await;
    assert_eq!(second.echo.packets.lock()[0].2, SECRET);
    let status = first.peer(second.id).unwrap();
    assert!(status.bytes_out > 1 << 20 && status.bytes_in > 1 << 20, "{status:?}");

    first.wire.stop().await;
    second.wire.stop().await;
    let heard = heard.lock();
    assert!(heard.len() > 2 << 20, "the proxy has heard {} bytes", heard.len());
    heard.windows(20).any(|bytes| bytes == &SECRET[..20])
}

#[test]
fn who_reads_the_network_reads_nothing() {
    let _turn = beside();
    let authority = Authority::new();
    runtime().block_on(async {
        let with = |hive| secured("unheard", hive, &authority);
        assert!(!is_heard(with(1), with(2)).await, "the calls can be read");
        assert!(is_heard(options("heard", 1), options("heard", 2)).await, "the proxy hears nothing")
    })
}

#[test]
fn a_changed_byte_ends_the_connection_and_reaches_nobody() {
    let _turn = beside();
    let authority = Authority::new();
    runtime().block_on(async {
        // without certificates, the change arrives
        assert_eq!(changed_answer(options("changed", 1), options("changed", 2)).await, Some(SECRET[0] ^ 1));
        let with = |hive| secured("changed", hive, &authority);
        assert_eq!(changed_answer(with(1), with(2)).await, None)
    })
}

/// Calls with the secret through a proxy that changes one bit of it, or one bit in its place. Returns the first byte that was
/// answered, if there was an answer.
async fn changed_answer(first: WireOptions, second: WireOptions) -> Option<u8> {
    let (first, second) = (Hive::start(first).await, Hive::start(second).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, to) = (listener.local_addr().unwrap(), second.wire.address());
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(to).await.unwrap();
        // it is the only one: another attempt does not get through
        drop(listener);
        let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut far_in, &mut near_out).await });
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = near_in.read(&mut bytes).await {
            let bytes = &mut bytes[..count];
            // the call is longer than anything before it
            let plain = bytes.windows(SECRET.len()).position(|part| part == SECRET);
            if let Some(at) = plain.or((count > LONG_CALL).then_some(count / 2)) {
                bytes[at] ^= 1
            }
            if far_out.write_all(bytes).await.is_err() {
                return;
            }
        }
    });
    first.wire.set_peer(second.id, address.to_string());
    first.connected(second.id).await;
    let mut request = vec![ECHO; LONG_CALL];
    request.extend(SECRET);
    let answer = first.call(&second, Channel::Raft, request).await.ok();
    let served = second.echo.calls_count.load(Ordering::SeqCst);
    assert_eq!(served, usize::from(answer.is_some()), "the changed call was served");
    first.wire.stop().await;
    second.wire.stop().await;
    answer.map(|answer| answer[LONG_CALL])
}

#[test]
fn a_token_counts_beside_certificates() {
    let _turn = beside();
    let authority = Authority::new();
    runtime().block_on(async {
        let with = |hive, token: &str| WireOptions {
            token: Some(token.into()),
            ..secured("both", hive, &authority)
        };
        let first = Hive::start(with(1, "sixteen random bytes, and more")).await;
        let second = Hive::start(with(2, "sixteen random bytes, and more")).await;
        let third = Hive::start(with(3, "another one, as long as that")).await;
        first.knows(&second);
        first.connected(second.id).await;
        first.knows(&third);
        until("refused", || first.why(3).is_some()).await;
        assert!(first.why(3).unwrap().contains("has another join token than this hive"))
    })
}

#[test]
fn hives_with_certificates_may_be_reached_from_other_machines_without_a_token() {
    let _turn = beside();
    let authority = Authority::new();
    runtime().block_on(async {
        let open = |options| WireOptions { listen: "0.0.0.0:0".parse().unwrap(), ..options };
        let refused = Wire::bind(open(options("open", 1))).await.unwrap_err();
        assert!(matches!(refused, WireError::NoToken { .. }), "{refused}");

        let first = Hive::start(open(secured("open", 1, &authority))).await;
        let second = Hive::start(secured("open", 2, &authority)).await;
        second.wire.set_peer(HiveId(1), format!("127.0.0.1:{}", first.wire.address().port()));
        second.connected(first.id).await
    })
}

#[test]
fn a_hive_that_restarts_is_found_again() {
    let _turn = beside();
    let authority = Authority::new();
    runtime().block_on(async {
        let first = Hive::start(secured("again", 1, &authority)).await;
        for incarnation in 1..4 {
            let second = WireOptions { incarnation, ..secured("again", 2, &authority) };
            let second = Hive::start(second).await;
            first.knows(&second);
            second.knows(&first);
            first.connected(second.id).await;
            second.connected(first.id).await;
            assert_eq!(first.call(&second, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
            assert_eq!(second.call(&first, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]));
            second.wire.stop().await;
            until("noticed", || first.peer(second.id).unwrap().connected_for.is_none()).await
        }
    })
}
