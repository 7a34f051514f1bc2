//! Hives with certificates.

mod connects;
mod guide;
mod hostile;
mod refusals;
mod replaced;

use crate::certificates::Authority;
use crate::hives::{Hive, logged, options};
use beehive_raft::cluster::wire::WireOptions;
use parking_lot::{Mutex, MutexGuard};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// For a test that reads the log: no other one of this folder runs.
fn in_turn() -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    TURNS.lock()
}

/// Options of a hive with a certificate.
fn secured(cluster: &str, hive: u32, authority: &Authority) -> WireOptions {
    WireOptions { tls: Some(authority.files(hive)), ..options(cluster, hive) }
}

/// The log from here on.
struct Log(usize);

impl Log {
    fn begin() -> Log {
        Log(logged().len())
    }

    /// Whether a line has these words, where the addresses do not matter.
    fn has(&self, words: &[&str]) -> bool {
        logged()[self.0..].lines().any(|line| words.iter().all(|word| line.contains(word)))
    }

    fn text(&self) -> String {
        logged()[self.0..].to_string()
    }
}

/// Everything that passed a proxy, in both directions.
type Heard = Arc<Mutex<Vec<u8>>>;

/// Forwards connections, and listens.
async fn listening_proxy(to: SocketAddr) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Heard::default();
    let all = heard.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(to).await else { return };
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            for (mut from, mut to) in [(near_in, far_out), (far_in, near_out)] {
                let heard = all.clone();
                tokio::spawn(async move {
                    let mut bytes = vec![0; 64 << 10];
                    while let Ok(count @ 1..) = from.read(&mut bytes).await {
                        heard.lock().extend_from_slice(&bytes[..count]);
                        if to.write_all(&bytes[..count]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    (address, heard)
}

impl Hive {
    fn why(&self, hive: u32) -> Option<String> {
        self.peer(beehive_core::HiveId(hive)).and_then(|peer| peer.last_refusal)
    }
}
