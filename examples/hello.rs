//! Counts how often each name has been greeted. `cargo run --example hello`
#![allow(missing_docs)]

use beehive::prelude::*;

#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Hello(pub(crate) String);

#[derive(App)]
pub(crate) struct Greeter {
    count: Dict<String, u64>,
}

#[handlers]
impl Greeter {
    #[rcv]
    fn hello(&mut self, Hello(name): &Hello) -> u64 {
        self.count.update(name.clone(), |count| {
            *count += 1;
            *count
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hive = Hive::builder().app::<Greeter>().start()?;
    for name in ["world", "bees", "world"] {
        println!("{name}: {}", hive.request(Hello(name.into())).await?);
    }
    hive.stop(Duration::from_secs(1)).await;
    Ok(())
}
