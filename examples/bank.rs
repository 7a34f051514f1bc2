//! Accounts and transfers: a transfer merges the bees of two accounts. `cargo run --example bank`
#![allow(missing_docs)]

use beehive::prelude::*;

#[derive(Message)]
pub(crate) struct Deposit {
    pub(crate) account: u64,
    pub(crate) amount: u64,
}

#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Transfer {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) amount: u64,
}

#[derive(App)]
pub(crate) struct Bank {
    accounts: Dict<u64, u64>,
}

#[handlers]
impl Bank {
    #[rcv(sharded)]
    fn deposit(&mut self, msg: &Deposit) {
        *self.accounts.entry(msg.account).or_default() += msg.amount;
    }

    // two keys in one handler: their owners merge permanently; `joins` says that this is intended
    #[rcv(joins)]
    fn transfer(&mut self, msg: &Transfer) -> Result<u64> {
        let from = self.accounts.entry(msg.from).or_default();
        *from = from.checked_sub(msg.amount).ok_or("not enough")?;
        let left = *from;
        *self.accounts.entry(msg.to).or_default() += msg.amount;
        Ok(left)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    print!("{}", Bank::map_report());
    let hive = Hive::builder().app::<Bank>().start()?;
    for account in 0..4 {
        hive.request(Deposit { account, amount: 100 }).await?;
    }

    println!("left: {}", hive.request(Transfer { from: 0, to: 1, amount: 30 }).await?);
    match hive.request(Transfer { from: 0, to: 1, amount: 300 }).await {
        Ok(left) => println!("left: {left}"),
        Err(error) => println!("refused: {error}"),
    }

    let bank = &hive.status().apps[0];
    println!("{} bees, {} merged", bank.bees, bank.bees_merged);
    hive.stop(Duration::from_secs(1)).await;
    Ok(())
}
