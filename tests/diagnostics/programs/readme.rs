use beehive::prelude::*;

#[derive(Message)]
struct Pay {
    card: u64,
    amount: u64,
}

#[derive(App)]
struct Bank {
    cards: Dict<u64, u64>,
    accounts: Dict<u64, u64>,
}

#[handlers]
impl Bank {
    // a mistake: the key of `accounts` is read from state
    #[rcv]
    fn pay(&mut self, msg: &Pay) {
        let account = self.cards.get(&msg.card).copied().unwrap_or_default();
        *self.accounts.entry(account).or_default() -= msg.amount;
    }
}

fn main() {
    let _ = Hive::builder().app::<Bank>();
    let _ = <Bank as beehive::Handles<Pay>>::HANDLER;
}
