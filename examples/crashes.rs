//! What a crash does to a transfer in two steps, and why a transfer in one step survives it. `cargo run --example crashes`
//!
//! Each run is a simulated cluster whose hives crash, pause and are cut off. A seed decides when.
#![allow(missing_docs)]

use beehive::RequestError;
use beehive::prelude::*;
use beehive::testing::{Cluster, Explored, FailedSeed, Faults};

const ACCOUNTS: u64 = 4;
/// The coins of an account that nobody has used yet.
const COINS: u64 = 100;
const AMOUNT: u64 = 5;

#[derive(Message)]
#[message(reply = ())]
pub(crate) struct Withdraw(u64);

#[derive(Message)]
#[message(reply = ())]
pub(crate) struct Deposit(pub(crate) u64);

#[derive(Message)]
#[message(reply = ())]
pub(crate) struct Transfer {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Balance(u64);

#[derive(App)]
pub(crate) struct Bank {
    accounts: Dict<u64, u64>,
}

#[handlers]
impl Bank {
    #[rcv(sharded)]
    fn withdraw(&mut self, Withdraw(account): &Withdraw) -> Result {
        let coins = self.accounts.entry(*account).or_insert(COINS);
        *coins = coins.checked_sub(AMOUNT).ok_or("not enough")?;
        Ok(())
    }

    #[rcv(sharded)]
    fn deposit(&mut self, Deposit(account): &Deposit) -> Result {
        *self.accounts.entry(*account).or_insert(COINS) += AMOUNT;
        Ok(())
    }

    // The deposit leaves when the withdrawal is committed, and arrives once, whatever crashes.
    #[rcv(sharded)]
    fn transfer(&mut self, msg: &Transfer, ctx: &mut Ctx) -> Result {
        let coins = self.accounts.entry(msg.from).or_insert(COINS);
        *coins = coins.checked_sub(AMOUNT).ok_or("not enough")?;
        ctx.emit(Deposit(msg.to));
        Ok(())
    }

    #[rcv(sharded)]
    fn balance(&mut self, Balance(account): &Balance) -> u64 {
        self.accounts.get(account).copied().unwrap_or(COINS)
    }
}

/// Moves coins in two requests. If the hive crashes in between, the coins are gone. A caller that repeats the second request
/// after an error would lose nothing, but might deposit twice.
async fn in_two_requests(hive: &Hive, from: u64, to: u64) -> Result<(), RequestError> {
    hive.request(Withdraw(from)).await?;
    hive.request(Deposit(to)).await
}

/// Moves coins in one request. After an error, the caller does not know whether they moved, but no coin is lost.
async fn in_one_request(hive: &Hive, from: u64, to: u64) -> Result<(), RequestError> {
    hive.request(Transfer { from, to }).await
}

/// Transfers coins while faults happen, and counts all coins at the end.
fn explore(
    transfer: impl AsyncFn(&Hive, u64, u64) -> Result<(), RequestError>,
) -> Result<Explored, Box<FailedSeed>> {
    let setup = Cluster::of::<Bank>().faults(Faults::every(Duration::from_millis(20)));
    setup.explore(100, |cluster| {
        for _ in 0..20 {
            let (from, to, hive) = (cluster.random(ACCOUNTS), cluster.random(ACCOUNTS), cluster.any_hive());
            // an error is no failure of this test: coins must not vanish because of it
            let _ = cluster.drive(transfer(&hive, from, to));
        }

        cluster.heal();
        cluster.advance(Duration::from_secs(1));
        let balances = (0..ACCOUNTS).map(|account| cluster.request(Balance(account)));
        let coins: u64 = balances.map(|coins| coins.expect("everything is healed")).sum();
        assert_eq!(coins, ACCOUNTS * COINS, "coins at the end, and at the beginning");
    })
}

fn main() {
    match explore(in_two_requests) {
        Ok(_) => println!("in two requests: no seed of 100 loses a coin"),
        Err(failed) => {
            println!("in two requests: a seed loses coins");
            eprintln!("{failed}")
        }
    }
    match explore(in_one_request) {
        Ok(explored) => println!("in one request: no seed of {} loses a coin", explored.seeds),
        Err(failed) => println!("in one request: {failed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{explore, in_one_request, in_two_requests};

    #[test]
    fn a_transfer_in_two_requests_loses_coins() {
        let failed = explore(in_two_requests).expect_err("a hive crashes between the two requests");
        assert!(failed.why.contains("coins at the end"), "{failed}");
    }

    #[test]
    fn a_transfer_in_one_request_loses_no_coin() {
        let explored = explore(in_one_request).unwrap_or_else(|failed| panic!("{failed}"));
        println!("{explored}")
    }
}
