//! One hive of a cluster: the program of docs/cluster.md. `cargo run --example bank_hive -- 1 127.0.0.1:7101 ..`
#![allow(missing_docs)]

use beehive::cluster::Cluster;
use beehive::prelude::*;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Message)]
#[message(reply = u64)]
struct Deposit {
    account: u64,
    amount: u64,
}

#[derive(App)]
struct Bank {
    accounts: Dict<u64, u64>,
}

#[handlers]
impl Bank {
    #[rcv]
    fn deposit(&mut self, msg: &Deposit) -> u64 {
        let balance = self.accounts.entry(msg.account).or_default();
        *balance += msg.amount;
        *balance
    }
}

/// The arguments are the number of this hive, and the addresses of all hives in the order of their numbers.
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // without `openraft=off`, a hive that is down costs about a hundred lines a second
    tracing_subscriber::fmt().with_env_filter("info,openraft=off").with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let number: u32 =
        arguments.next().ok_or("give the number of this hive, and the addresses of all")?.parse()?;

    let cluster = Cluster::new((1..).zip(arguments))
        .token(std::fs::read_to_string("token")?.trim())
        .folder(format!("hive-{number}"))
        .configure(|options| options.logs = 2); // colonies that each hive leads at first
    let member = cluster.start(number, Hive::builder().app::<Bank>()).await?;
    let mut terminate = signal(SignalKind::terminate())?;

    let balance = member.hive().request(Deposit { account: 1, amount: 100 }).await?;
    println!("hive {number} runs, and account 1 has {balance}");

    tokio::select! {
        _ = terminate.recv() => {}
        // otherwise the process would live on without a hive
        () = member.hive().stopping() => return Err("the hive has stopped: its log says why".into()),
    }
    member.stop(Duration::from_secs(5)).await;
    Ok(())
}
