//! A step that fails its test names the line of the test, the step, and the message with its content.

use beehive_core::testing::{Kit, Setup};
use beehive_core::{App, Ctx, Dict, Message, handlers};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;
use std::time::Duration;

#[derive(Message)]
struct Sell {
    item: u64,
}
#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);
#[derive(Message)]
struct Later(u64);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sell(&mut self, msg: &Sell) {
        *self.stock.entry(msg.item).or_default() -= 1;
    }
    #[rcv]
    fn count(&mut self, msg: &Count) -> u64 {
        assert_eq!(self.stock.get(&msg.0), None);
        panic!("not counted")
    }
    #[rcv]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        self.stock.put(msg.0, 0);
        ctx.after(Duration::from_secs(3), Sell { item: msg.0 });
    }
}

#[derive(App)]
struct Other {}
#[handlers]
impl Other {
    #[rcv]
    fn sell(&mut self, _: &Sell) {}
}

thread_local! {
    static PLACE: RefCell<Option<(String, u32)>> = const { RefCell::new(None) };
}

/// Runs a failing `step`. Returns the line of the panic in this file, and its text without the crate's name.
fn failure(step: impl FnOnce()) -> (u32, String) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(|place| (place.file().to_string(), place.line()));
            PLACE.set(place);
            before(panic)
        }))
    });

    let panic = catch_unwind(AssertUnwindSafe(step)).expect_err("it fails");
    let (file, line) = PLACE.take().expect("a place");
    assert_eq!(file, file!());
    let text = *panic.downcast::<String>().expect("a text");
    let name = <Sell as Message>::NAME;
    let module = name.strip_suffix("Sell").expect("the name ends with the type");
    (line, text.replace(module, ""))
}

/// Returns the line that it is called from.
#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

fn kit() -> Kit {
    Kit::of::<Shop>().start()
}

#[test]
fn an_emitted_message() {
    let mut kit = kit();
    kit.emit(Later(1));
    let mut expected = 0;
    let (at, text) = failure(|| {
        expected = line() + 1;
        kit.emit(Sell { item: 7 });
    });
    assert_eq!(at, expected);
    let start = r#"step 2 (emit Sell {"item":7}): `sell` of app `shop`, given Sell {"item":7}: "#;
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("attempt to subtract with overflow"), "{text}");
}

#[test]
fn several_messages() {
    let mut kit = kit();
    let (_, text) = failure(|| {
        kit.add(Later(1)).emit_all([5, 6, 7].map(|item| Sell { item }));
    });
    let start = r#"step 1 (emit Sell {"item":5} and 3 more): `sell` of app `shop`, given Sell {"item":5}: "#;
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with("; 2 more messages failed"), "{text}");
}

/// More messages fail than the hive keeps as dead letters.
#[test]
fn failures_beyond_the_limit_of_dead_letters_are_counted_and_the_first_is_named() {
    let failures = 3 * beehive_core::limits::DEAD_LETTERS_MAX as u64;
    let mut kit = kit();
    let (_, text) = failure(|| {
        kit.emit_all((0..failures).map(|item| Sell { item }));
    });
    let start = format!(
        r#"step 1 (emit Sell {{"item":0}} and {} more): `sell` of app `shop`, given Sell {{"item":0}}: "#,
        failures - 1
    );
    assert!(text.starts_with(&start), "{text}");
    assert!(text.ends_with(&format!("; {} more messages failed", failures - 1)), "{text}");

    // the count starts again in each step
    let (_, text) = failure(|| {
        kit.emit(Sell { item: 7 });
    });
    assert!(text.starts_with(r#"step 2 (emit Sell {"item":7}): `sell` of app `shop`"#), "{text}");
    assert!(!text.contains("more messages failed"), "{text}");
}

#[test]
fn a_request() {
    let mut kit = kit();
    let mut expected = 0;
    let (at, text) = failure(|| {
        expected = line() + 1;
        let _ = kit.request(Count(3));
    });
    assert_eq!(at, expected);
    let start = "step 1 (request Count 3): `count` of app `shop`, given Count 3: ";
    assert!(text.starts_with(start) && text.contains("not counted"), "{text}");
}

#[test]
fn a_message_that_becomes_due() {
    let mut kit = kit();
    kit.emit(Later(4));
    let mut expected = 0;
    let (at, text) = failure(|| {
        expected = line() + 1;
        kit.advance(Duration::from_secs(5));
    });
    assert_eq!(at, expected);
    let start = r#"step 2 (advance by 5s): `sell` of app `shop`, given Sell {"item":4}: "#;
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_missing_app_and_settings_that_are_wrong() {
    let kit = kit();
    let mut expected = 0;
    let (at, _) = failure(|| {
        expected = line() + 1;
        kit.bees::<Other>();
    });
    assert_eq!(at, expected);
    let (at, _) = failure(|| {
        expected = line() + 1;
        kit.look::<Other, _>(|_| ());
    });
    assert_eq!(at, expected);

    let setup: Setup = Kit::of::<Shop>().settings(toml::toml! { [nobody] });
    let (at, _) = failure(|| {
        expected = line() + 1;
        setup.start();
    });
    assert_eq!(at, expected);
}

#[test]
fn a_step_of_a_scenario() {
    let mut expected = 0;
    let (at, _) = failure(|| {
        expected = line() + 2;
        Kit::of::<Shop>().check(|kit| {
            kit.emit(Sell { item: 1 });
        });
    });
    assert_eq!(at, expected);
}
