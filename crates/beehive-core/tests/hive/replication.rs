//! A hive that runs alone warns that it does not replicate apps that ask for replication: once at its start,
//! and in its status.

use beehive_core::testing::Kit;
use beehive_core::{App, Dict, Handlers, Hive, Message, handlers};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Message)]
struct Word(String);

#[derive(App)]
#[app(name = "alone")]
struct Alone {
    words: Dict<String, u64>,
}
#[handlers]
impl Alone {
    #[rcv(sharded)]
    fn word(&mut self, Word(word): &Word) {
        *self.words.entry(word.clone()).or_default() += 1
    }
}

#[derive(App)]
#[app(name = "three", replication = 3)]
struct Three {
    words: Dict<String, u64>,
}
#[handlers]
impl Three {
    #[rcv(sharded)]
    fn word(&mut self, Word(word): &Word) {
        *self.words.entry(word.clone()).or_default() += 1
    }
}

#[derive(App)]
#[app(name = "five", replication = 5)]
struct Five {
    words: Dict<String, u64>,
}
#[handlers]
impl Five {
    #[rcv(sharded)]
    fn word(&mut self, Word(word): &Word) {
        *self.words.entry(word.clone()).or_default() += 1
    }
}

/// Keeps the warnings of the thread that it is set for.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name())
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Returns the warnings that `start` causes.
fn warnings(start: impl FnOnce()) -> Vec<String> {
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), start);
    warnings.0.lock().unwrap().clone()
}

#[test]
fn a_hive_warns_once_for_all_apps_that_ask_for_replication() {
    let said = warnings(|| drop(Kit::of::<Three>().app::<Alone>().app::<Five>().start()));
    let [warning] = &said[..] else { panic!("{said:?}") };
    assert!(warning.contains("three (replication = 3), five (replication = 5)"), "{warning}");
    assert!(warning.contains("runs alone") && warning.contains("1 copy"), "{warning}");
    assert!(!warning.contains("alone ("), "{warning}");
}

#[test]
fn a_hive_is_silent_when_no_app_asks_for_replication() {
    assert_eq!(warnings(|| drop(Kit::of::<Alone>().start())), Vec::<String>::new());
}

#[tokio::test]
async fn the_status_and_the_map_report_say_how_many_copies_there_are() {
    let hive = Hive::builder().app::<Alone>().app::<Three>().start().unwrap();
    let copies: Vec<_> =
        hive.status().apps.iter().map(|app| (app.name, app.replication, app.replication_asked)).collect();
    assert_eq!(copies, [("alone", 1, 1), ("three", 1, 3)]);
    assert!(Three::map_report().starts_with("three\n  replication: 1 (asked for 3)\n"));
    assert!(!Alone::map_report().contains("replication"));
    hive.stop(Duration::ZERO).await;
}
