//! Settings that change during a test: handlers and views see the new settings.

use beehive_core::testing::Kit;
use beehive_core::{App, Config, Dict, Message, Reconfigured, handlers};
use serde::Deserialize;

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default, deny_unknown_fields)]
struct Prices {
    bread: u64,
}

#[derive(Message)]
#[message(reply = u64)]
struct Buy(u64);

#[derive(App)]
#[app(name = "shop")]
struct Shop {
    paid: Dict<u64, u64>,
    config: Config<Prices>,
}
#[handlers]
impl Shop {
    #[rcv(sharded)]
    fn buy(&mut self, msg: &Buy) -> u64 {
        let price = self.config.bread;
        self.paid.update(msg.0, |paid| {
            *paid += price;
            *paid
        })
    }
    /// Writes off old debts.
    #[rcv(each = paid)]
    fn reconfigured(&mut self, customer: &u64, _: &Reconfigured) {
        self.paid.put(*customer, 0);
    }
}

#[test]
fn new_settings_take_effect_at_once_and_are_announced() {
    let prices = |bread: u64| format!("[shop]\nbread = {bread}\n").parse::<toml::Table>().unwrap();
    let mut kit = Kit::of::<Shop>().settings(prices(3)).start();
    assert_eq!(kit.request(Buy(1)), Ok(3));
    assert_eq!(kit.reconfigure(prices(5)), Ok(vec!["shop"]));
    assert_eq!(kit.request(Buy(1)), Ok(5));
    assert_eq!(kit.look::<Shop, _>(|shop| shop.config.bread), 5);
    assert_eq!(kit.reconfigure(prices(5)), Ok(vec![]), "they are in force");
    assert_eq!(kit.request(Buy(1)), Ok(10));
}
