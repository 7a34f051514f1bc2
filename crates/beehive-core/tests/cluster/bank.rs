//! An app that notices when a message is lost, doubled, or overtaken by another one of the same sender.

use beehive_core::{App, Ctx, Dict, Error, Message, handlers};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Moves money from one account to another one.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Pay {
    /// No two payments have the same number.
    pub(crate) number: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) amount: i64,
}

#[derive(Message)]
pub(crate) struct Deposit {
    from: u64,
    to: u64,
    amount: i64,
    /// Number of the deposits from `from` to `to` so far, including this one.
    count: u64,
}

/// Asks for an account.
#[derive(Message)]
#[message(reply = Account)]
pub(crate) struct Look(pub(crate) u64);

/// Asks for the sum of the deposits that the auditor of an account has seen.
#[derive(Message)]
#[message(reply = i64)]
pub(crate) struct Audited(pub(crate) u64);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) balance: i64,
    pub(crate) deposited: i64,
    paid: BTreeSet<u64>,
    sent: BTreeMap<u64, u64>,
    received: BTreeMap<u64, u64>,
    /// What went wrong.
    pub(crate) faults: Vec<String>,
}

#[derive(App)]
#[app(name = "bank")]
pub(crate) struct Bank {
    accounts: Dict<u64, Account>,
}

#[handlers]
impl Bank {
    #[rcv]
    fn pay(&mut self, msg: &Pay, ctx: &mut Ctx) -> Result<u64, Error> {
        if msg.amount < 0 {
            return Err(Error::new(format!("{} is not an amount", msg.amount)));
        }
        let account = self.accounts.entry(msg.from).or_default();
        if !account.paid.insert(msg.number) {
            account.faults.push(format!("payment {} was handled twice", msg.number))
        }
        account.balance -= msg.amount;
        let count = account.sent.entry(msg.to).or_default();
        *count += 1;
        ctx.emit(Deposit { from: msg.from, to: msg.to, amount: msg.amount, count: *count });
        Ok(*count)
    }

    #[rcv]
    fn deposit(&mut self, msg: &Deposit) {
        let account = self.accounts.entry(msg.to).or_default();
        account.balance += msg.amount;
        account.deposited += msg.amount;
        let received = account.received.entry(msg.from).or_default();
        *received += 1;
        if *received != msg.count {
            let (from, count, received) = (msg.from, msg.count, *received);
            account.faults.push(format!("deposit {count} of {from} came as number {received}"));
        }
    }

    #[rcv]
    fn look(&mut self, msg: &Look) -> Option<Account> {
        self.accounts.get(&msg.0).cloned()
    }
}

/// Sums up the deposits of several accounts each.
#[derive(App)]
#[app(name = "auditor")]
pub(crate) struct Auditor {
    sums: Dict<u64, i64>,
}

#[handlers]
impl Auditor {
    #[rcv]
    fn deposit(&mut self, msg: &Deposit) {
        *self.sums.entry(msg.to % 3).or_default() += msg.amount
    }

    #[rcv]
    fn audited(&mut self, msg: &Audited) -> i64 {
        self.sums.get(&msg.0).copied().unwrap_or_default()
    }
}
