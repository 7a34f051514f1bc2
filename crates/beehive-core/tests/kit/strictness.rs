//! A handler that breaks a rule fails its test, unless the test allows failures.

use beehive_core::testing::Kit;
use beehive_core::{App, Dict, ErrorKind, Message, RequestError, handlers, pure};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Message)]
struct Fall;
#[derive(Message)]
struct Lie(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Refuse;

static CALLS: AtomicU64 = AtomicU64::new(0);

fn changing(key: u64) -> u64 {
    key + CALLS.fetch_add(1, Ordering::Relaxed)
}

#[derive(App)]
struct Clumsy {
    cells: Dict<u64, u64>,
}

#[handlers]
impl Clumsy {
    #[rcv]
    fn fall(&mut self, _: &Fall) {
        panic!("over its own feet")
    }
    #[rcv]
    fn lie(&mut self, msg: &Lie) {
        self.cells.put(pure!(changing(msg.0)), 1);
    }
    #[rcv]
    fn refuse(&mut self, _: &Refuse) -> beehive_core::Result<u64> {
        Err("no")?
    }
}

#[test]
#[should_panic(expected = "`fall` of app `clumsy`, given beehive_core")]
fn a_panic_fails_the_test() {
    // The stable name of the message begins with the name of its crate, and the test binary is named after
    // its folder.
    let name = <Fall as Message>::NAME;
    let told = std::panic::catch_unwind(|| {
        Kit::of::<Clumsy>().start().emit(Fall);
    });
    let told = *told.unwrap_err().downcast::<String>().unwrap();
    panic!("{}", told.replace(name, "beehive_core"))
}

#[test]
#[should_panic(expected = "which its map does not name")]
fn an_unmapped_access_fails_the_test() {
    Kit::of::<Clumsy>().start().emit(Lie(1));
}

#[test]
fn failures_can_be_what_a_test_is_about() {
    let mut kit = Kit::of::<Clumsy>().failures_allowed().start();
    kit.emit(Lie(1)).emit(Fall);
    let kinds: Vec<_> = kit.dead_letters().iter().map(|letter| letter.error.kind()).collect();
    assert_eq!(kinds, [ErrorKind::Unmapped, ErrorKind::Panicked]);
    assert!(kit.look::<Clumsy, _>(|app| app.cells.whole().is_empty()));
}

#[test]
fn an_error_is_an_answer() {
    let mut kit = Kit::of::<Clumsy>().start();
    let Err(RequestError::Handler(error)) = kit.request(Refuse) else { panic!("it refuses") };
    assert_eq!(error.text(), "no");
}

#[test]
#[should_panic(expected = "is not in this test")]
fn an_app_that_is_not_there_is_named() {
    #[derive(App)]
    struct Other {}
    #[handlers]
    impl Other {
        #[rcv]
        fn fall(&mut self, _: &Fall) {}
    }
    Kit::of::<Clumsy>().start().bees::<Other>();
}
