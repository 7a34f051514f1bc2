//! All hives are started with another program, which cannot read what they have written.

use crate::hives::{ALL, Hives, until};
use crate::returns::Folders;
use beehive::{Hive, StartError};
use beehive_raft::OpenError;
use beehive_raft::cluster::ClusterError;
use std::time::Duration;

/// Defines the same app in several versions of a program.
macro_rules! program {
    ($name:ident, $balance:ty) => {
        mod $name {
            use beehive::{App, Dict, Message, handlers};
            #[derive(Message)]
            #[message(name = "bank::Deposit", reply = $balance)]
            pub(super) struct Deposit(pub(super) u64, pub(super) $balance);
            #[derive(App)]
            #[app(name = "bank")]
            pub(super) struct Bank {
                accounts: Dict<u64, $balance>,
            }
            #[handlers]
            impl Bank {
                #[rcv]
                fn deposit(&mut self, msg: &Deposit) -> $balance {
                    self.accounts.update(msg.0, |balance| {
                        *balance += msg.1;
                        *balance
                    })
                }
            }
        }
    };
}
program!(first, u32);
program!(other, i64);

fn first_program() -> beehive::Builder {
    Hive::builder().app::<first::Bank>()
}

fn other_program() -> beehive::Builder {
    Hive::builder().app::<other::Bank>()
}

fn deposit(hives: &Hives, through: usize, account: u64) -> u32 {
    let mut balance = 0;
    until("a deposit is answered", || {
        let limit = Duration::from_secs(2);
        match hives.hive(through).request_blocking_within(limit, first::Deposit(account, 1)) {
            Ok(answer) => balance = answer,
            Err(_) => return false,
        }
        true
    });
    balance
}

/// One account is in one colony, and two of the three hives do not lead it.
#[test]
fn a_program_that_cannot_read_a_colony_is_refused_by_all_hives_and_the_earlier_one_goes_on() {
    let folders = Folders::new();
    let mut hives = folders.start_of(first_program);
    assert_eq!(deposit(&hives, 0, 7), 1);
    hives.equal_replicas();
    (0..ALL.len()).for_each(|hive| hives.stop(hive));

    hives.runs(other_program);
    for (hive, started) in hives.try_start_all().into_iter().enumerate() {
        let Some(ClusterError::Hive(StartError::Log { why })) = started else {
            panic!("hive {hive}: {started:?}")
        };
        assert!(
            why.contains("the dictionary `accounts` of app `bank` cannot be read: `[]` was u32 and is i64"),
            "{why}"
        );
    }

    hives.runs(first_program);
    // what stands for processes here may hold the locks for a moment
    until("all hives start", || {
        hives.try_start_all().iter().all(|started| match started {
            None => true,
            Some(ClusterError::Folder(OpenError::InUse { .. })) => false,
            Some(error) => panic!("{error}"),
        })
    });
    let balance = deposit(&hives, 2, 7);
    assert!(balance >= 2, "{balance}");
    hives.equal_replicas();
}
