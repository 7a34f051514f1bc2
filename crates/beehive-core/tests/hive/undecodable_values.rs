//! Values that can be encoded but not decoded: the hive refuses them when it starts, before a log contains
//! any of them.

use crate::load::on_workers;
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, StartError, handlers};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize, Clone)]
#[serde(untagged)]
enum Setting {
    Number(u64),
    Text(String),
}
#[derive(Message)]
struct Put(u64, u64);
#[derive(App)]
struct Board {
    settings: Dict<u64, Setting>,
}
#[handlers]
impl Board {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) {
        let setting = if msg.1 > 9 { Setting::Text("many".into()) } else { Setting::Number(msg.1) };
        self.settings.put(msg.0, setting);
    }
}

#[test]
fn values_that_cannot_be_decoded_are_refused_before_they_are_logged() {
    on_workers(2, async {
        let journal = TestJournal::start(1, 0, 0);
        let builder = Hive::builder().app::<Board>().journal(journal.clone(), LogState::default());
        let Err(error) = builder.start() else { panic!("it has started") };
        assert!(
            matches!(&error, StartError::Unreadable { app: "board", dictionary, .. } if dictionary == "settings")
        );

        let text = error.to_string();
        assert!(text.contains("the type is {u64: anything}, and") && text.contains("#[volatile]"), "{text}");

        journal.stop();
        // Without a log nothing needs to be decoded.
        let hive = Hive::builder().app::<Board>().start().unwrap();
        assert_eq!(hive.request(Put(1, 12)).await, Ok(()));
        hive.stop(Duration::from_secs(5)).await;
    })
}
