//! A custom controller: a guard in front of the learning switch. Switches are simulated or, if an address to
//! listen on is given, real ones that speak OpenFlow.
//! `cargo run --example controller --features nom [-- 127.0.0.1:6653]`
#![allow(missing_docs)]

use beehive::nom::apps::{LearningSwitch, NodeController};
use beehive::nom::driver::Directory;
use beehive::nom::driver::openflow::{Listener, ListenerSettings};
use beehive::nom::object::{Mac, NodeId, PacketIn, PacketOut, PortNo, Tag};
use beehive::nom::sim::{SimulatedSwitch, frame};
use beehive::prelude::*;
use std::sync::Arc;

/// Blocks banned stations. The banned stations of a switch are the rows of one cell.
#[derive(App)]
pub(crate) struct Guard {
    banned: Table<NodeId, Mac, ()>,
    stopped: Dict<NodeId, u64>,
}

/// Bans a station. The answer is the number of packets that the guard has stopped at the switch so far.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Ban {
    pub(crate) node: NodeId,
    pub(crate) station: Mac,
}

#[handlers]
impl Guard {
    #[rcv(sharded)]
    fn ban(&mut self, msg: &Ban) -> u64 {
        self.banned.at(msg.node).insert(msg.station, ());
        self.stopped.get(&msg.node).copied().unwrap_or(0)
    }

    // the first app that answers decides what happens to a packet; `None` passes it on, here to the learning
    // switch
    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        let source = msg.ethernet()?.source;
        if !self.banned.at(msg.node).contains(&source) {
            return None;
        }
        *self.stopped.entry(msg.node).or_default() += 1;
        Some(msg.discard())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hive = Hive::builder().app::<NodeController>().app::<Guard>().app::<LearningSwitch>().start()?;
    match std::env::args().nth(1) {
        Some(address) => serve(&hive, &address).await?,
        None => simulate(&hive).await?,
    }
    hive.stop(Duration::from_secs(1)).await;
    Ok(())
}

/// Serves real switches until Ctrl-C.
async fn serve(hive: &Hive, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::new(hive, Arc::<Directory>::default(), ListenerSettings::default());
    listener.serve(tokio::net::TcpListener::bind(address).await?);
    println!("switches connect to {address}");
    Ok(tokio::signal::ctrl_c().await?)
}

/// Simulates three stations at one in-memory switch.
async fn simulate(hive: &Hive) -> Result<(), Box<dyn std::error::Error>> {
    let switch = SimulatedSwitch::new(hive, NodeId(1), 3, true);
    switch.connect();
    let station = |number: u32| Mac([2, 0, 0, 0, 0, number as u8]);
    let send = async |from: u32, to: u32| {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let ports = || switch.ports().into_iter().map(|port| port.number);
        ports().for_each(|port| drop(switch.sent(port)));
        switch.receive(PortNo(from), frame(station(to), station(from), Tag::Untagged, b"hello"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let out: Vec<u32> =
            ports().filter(|port| !switch.sent(*port).is_empty()).map(|port| port.0).collect();
        println!("from {from} to {to}: out of {out:?}");
    };

    send(1, 2).await;
    send(2, 1).await;
    hive.request(Ban { node: NodeId(1), station: station(3) }).await?;
    println!("station 3 is banned");
    send(3, 1).await;
    send(1, 3).await;

    let stopped = hive.request(Ban { node: NodeId(1), station: station(3) }).await?;
    println!("stopped: {stopped}");
    Ok(())
}
