//! A network in memory: it cuts pairs of hives, delays, loses answers, and ends hives.

use beehive::HiveId;
use beehive::seams::BoxFuture;
use beehive_raft::cluster::transport::{Channel, Receiver, Transport, Unanswered};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The runtime of a hive, and the receiver of its packets.
type Process = (Handle, Arc<dyn Receiver>);

/// The network of all hives.
#[derive(Default)]
pub(crate) struct Net {
    ports: Mutex<BTreeMap<HiveId, Process>>,
    cuts: Mutex<BTreeSet<(HiveId, HiveId)>>,
    /// Pairs of hives, the first of which does not reach the second one's groups.
    deaf: Mutex<BTreeSet<(HiveId, HiveId)>>,
    /// Time that each packet, request and answer takes, in microseconds.
    delay: AtomicU64,
    /// Whether the answer to the next call to the registry is lost.
    loses_answer: AtomicBool,
    /// Number of answers that were lost.
    pub(crate) lost: AtomicU64,
}

/// One hive's end of the network.
pub(crate) struct Port {
    net: Arc<Net>,
    hive: HiveId,
    runtime: Handle,
}

impl Net {
    pub(crate) fn port(self: &Arc<Net>, hive: HiveId, runtime: Handle) -> Arc<Port> {
        Arc::new(Port { net: self.clone(), hive, runtime })
    }

    /// Nothing goes from one hive to another any more, in this direction.
    pub(crate) fn cut(&self, from: HiveId, to: HiveId) {
        self.cuts.lock().unwrap().insert((from, to));
    }

    /// The groups of a hive hear nothing from another one any more. Everything else arrives.
    pub(crate) fn deafen(&self, to: HiveId, from: HiveId) {
        self.deaf.lock().unwrap().insert((from, to));
    }

    /// Cuts a hive off, in both directions.
    pub(crate) fn isolate(&self, hive: HiveId, others: &[HiveId]) {
        others.iter().for_each(|other| {
            self.cut(hive, *other);
            self.cut(*other, hive)
        })
    }

    pub(crate) fn heal(&self) {
        self.cuts.lock().unwrap().clear()
    }

    /// The process of a hive ends.
    pub(crate) fn end(&self, hive: HiveId) {
        self.ports.lock().unwrap().remove(&hive);
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.delay.store(delay.as_micros() as u64, Ordering::Relaxed)
    }

    /// Loses the answer to the next call to the registry.
    pub(crate) fn lose_answer(&self) {
        self.loses_answer.store(true, Ordering::Relaxed)
    }

    fn is_cut(&self, from: HiveId, to: HiveId) -> bool {
        self.cuts.lock().unwrap().contains(&(from, to))
    }

    fn receiver(&self, hive: HiveId) -> Option<Process> {
        self.ports.lock().unwrap().get(&hive).cloned()
    }

    async fn pass(&self) {
        let delay = self.delay.load(Ordering::Relaxed);
        if delay > 0 {
            tokio::time::sleep(Duration::from_micros(delay)).await
        }
    }
}

impl Transport for Port {
    fn send(&self, to: HiveId, channel: Channel, packet: Vec<u8>) {
        let (net, from) = (self.net.clone(), self.hive);
        // a hive that has ended sends nothing
        if net.is_cut(from, to) || net.receiver(from).is_none() {
            return;
        }
        let Some((runtime, receiver)) = net.receiver(to) else { return };
        runtime.spawn(async move {
            net.pass().await;
            receiver.packet(from, channel, packet)
        });
    }

    fn call(&self, to: HiveId, channel: Channel, request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, Unanswered>> {
        let (net, from) = (self.net.clone(), self.hive);
        Box::pin(async move {
            let refused = |why: &str| Err(Unanswered { why: why.to_string() });
            let is_deaf = channel == Channel::Raft && net.deaf.lock().unwrap().contains(&(from, to));
            if is_deaf || net.is_cut(from, to) {
                // as in a network that drops everything
                return std::future::pending().await;
            }
            let (Some(_), Some((runtime, receiver))) = (net.receiver(from), net.receiver(to)) else {
                return refused("the process has ended");
            };
            let (sender, answer) = oneshot::channel();
            let other = net.clone();
            runtime.spawn(async move {
                other.pass().await;
                let answer = receiver.call(from, channel, request).await;
                other.pass().await;
                let _ = sender.send(answer);
            });
            let answer = answer.await;
            if net.is_cut(to, from) {
                return std::future::pending().await;
            }
            if channel == Channel::Registry && net.loses_answer.swap(false, Ordering::Relaxed) {
                net.lost.fetch_add(1, Ordering::Relaxed);
                return refused("the connection broke");
            }
            match answer {
                Ok(Some(answer)) => Ok(answer),
                Ok(None) => refused("refused"),
                Err(_) => refused("the process has ended"),
            }
        })
    }

    fn attach(&self, receiver: Arc<dyn Receiver>) {
        self.net.ports.lock().unwrap().insert(self.hive, (self.runtime.clone(), receiver));
    }
}
