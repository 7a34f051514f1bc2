//! Dead letters: their content, and the resending of their messages.

use crate::load::{EVERYWHERE, On, eventually, on_workers, start};
use beehive_core::{
    Address, App, Ctx, DeadLetter, Dict, ErrorKind, Hive, Message, RequestError, ResendError, handlers,
    limits,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Fails until the test has repaired its handler.
#[derive(Message, Clone, Debug)]
#[message(reply = String)]
struct Order {
    test: usize,
    number: u64,
    note: String,
}
/// Sent to the second app because of an order.
#[derive(Message)]
struct Parcel {
    test: usize,
    number: u64,
}
/// Asks how often an order was handled to completion.
#[derive(Message)]
#[message(reply = u64)]
struct Handled(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Parcels(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Notes(u64);
/// A message whose handler fails unless the message is empty.
#[derive(Message)]
struct Bulk(Vec<u8>);

/// One repair flag per test, because the tests run concurrently.
static MENDED: [AtomicBool; 10] = [const { AtomicBool::new(false) }; 10];

fn must_be_mended(test: usize) {
    if !MENDED[test].load(Ordering::Acquire) {
        // Unwinds without the panic hook, to keep the output of the test clean.
        std::panic::resume_unwind(Box::new("not mended yet"))
    }
}

/// Passes orders on.
#[derive(App)]
struct Reception {
    seen: Dict<u64, u64>,
}
#[handlers]
impl Reception {
    #[rcv(sharded)]
    fn order(&mut self, msg: &Order) -> Option<String> {
        *self.seen.entry(msg.number).or_default() += 1;
        None
    }
}
#[derive(App)]
struct Workshop {
    handled: Dict<u64, u64>,
}
#[handlers]
impl Workshop {
    #[rcv(sharded)]
    fn order(&mut self, msg: &Order, ctx: &mut Ctx) -> Option<String> {
        let handled = self.handled.entry(msg.number).or_default();
        *handled += 1;
        must_be_mended(msg.test);
        ctx.emit(Parcel { test: msg.test, number: msg.number });
        (msg.note.is_empty()).then(|| format!("{:?}", ctx.sender()))
    }
    #[rcv(sharded)]
    fn handled(&mut self, msg: &Handled) -> u64 {
        self.handled.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(stateless)]
    fn bulk(&mut self, msg: &Bulk) {
        assert!(msg.0.is_empty(), "as asked")
    }
}
/// Answers the messages that the other apps leave unanswered, and records all orders.
#[derive(App)]
struct Office {
    notes: Dict<u64, u64>,
    parcels: Dict<u64, u64>,
}
#[handlers]
impl Office {
    #[rcv(sharded, observes)]
    fn order(&mut self, msg: &Order) {
        *self.notes.entry(msg.number).or_default() += 1
    }
    #[rcv(sharded)]
    fn parcel(&mut self, msg: &Parcel) {
        must_be_mended(msg.test + 1);
        *self.parcels.entry(msg.number).or_default() += 1
    }
    #[rcv(sharded)]
    fn parcels(&mut self, msg: &Parcels) -> u64 {
        self.parcels.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn taken(&mut self, msg: &Notes) -> u64 {
        self.notes.get(&msg.0).copied().unwrap_or(0)
    }
}
/// The end of the chain.
#[derive(App)]
struct Archive {}
#[handlers]
impl Archive {
    #[rcv(stateless)]
    fn order(&mut self, msg: &Order) -> String {
        msg.note.clone()
    }
}

fn started(on: On) -> (Hive, Option<std::sync::Arc<beehive_core::testing::TestJournal>>) {
    start(Hive::builder().app::<Reception>().app::<Workshop>().app::<Office>().app::<Archive>(), on)
}

fn order(test: usize, number: u64) -> Order {
    Order { test, number, note: String::new() }
}

async fn letters(hive: &Hive, count: usize) -> Vec<DeadLetter> {
    eventually("letters", Duration::from_secs(10), || hive.dead_letters().len() >= count).await;
    hive.dead_letters()
}

#[test]
fn a_dead_letter_names_message_handler_error_and_cause() {
    on_workers(2, async {
        let (hive, _) = started(On::Memory);
        let mut io = hive.io();
        MENDED[1].store(false, Ordering::Release);
        MENDED[0].store(true, Ordering::Release);

        // Succeeds in the first app and fails in the second.
        io.emit(order(0, 1));
        io.emit(Order { note: "to the archive".into(), ..order(9, 2) });
        io.flush().await;

        let mut letters = letters(&hive, 2).await;
        letters.sort_by_key(|letter| letter.cause.hops);
        let [of_order, of_parcel] = &letters[..] else { panic!("{letters:?}") };
        assert_eq!((of_order.app, of_order.handler), ("workshop", "order"));
        assert!(of_order.message.ends_with("::Order"), "{}", of_order.message);
        assert_eq!(of_order.words, "{\"test\":9,\"number\":2,\"note\":\"to the archive\"}");
        assert_eq!((of_order.error.kind(), of_order.error.text()), (ErrorKind::Panicked, "not mended yet"));
        assert_eq!((of_order.cause.sender, of_order.cause.handler), (io.address(), None));
        assert_eq!((of_order.cause.hops, of_order.cause.origin), (0, hive.id()));
        assert_eq!((of_parcel.app, of_parcel.handler, of_parcel.cause.hops), ("office", "parcel", 1));
        assert_eq!(of_parcel.cause.sender, Address::App(beehive_core::AppId(1)));
        assert_eq!(of_parcel.cause.handler, Some(("workshop", "order", "Order")));

        // The two orders came in one batch, and each of them began a causal chain. The parcel continues the
        // chain of the first order.
        assert_eq!(of_parcel.cause.chain, of_order.cause.chain.wrapping_sub(1));

        // If the IO bee were still there, `stop` would wait for it to read its answers.
        drop(io);
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn a_message_sent_again_is_what_it_was_and_goes_where_it_failed() {
    for (round, on) in EVERYWHERE.into_iter().enumerate() {
        on_workers(2, async {
            let (test, number) = (2 + 2 * round, 1);
            MENDED[test + 1].store(true, Ordering::Release);
            let (hive, _journal) = started(on);
            assert_eq!(hive.request(order(test, number)).await, Err(RequestError::Panicked));

            let first = letters(&hive, 1).await.remove(0);
            assert_eq!(first.error.text(), "not mended yet");
            // The message fails again, which adds a second letter about it.
            hive.resend_dead_letter(first.number).await.unwrap();
            eventually("again", Duration::from_secs(10), || hive.status().dead_letters == 2).await;

            let second = hive.dead_letters().remove(0);
            assert!(second.number > first.number);
            assert_eq!((&second.bytes, second.cause), (&first.bytes, first.cause));
            assert_eq!(hive.request(Handled(number)).await, Ok(0), "undone");

            MENDED[test].store(true, Ordering::Release);
            hive.resend_dead_letter(second.number).await.unwrap();
            hive.idle().await;
            assert_eq!(hive.request(Handled(number)).await, Ok(1));
            assert_eq!(hive.request(Parcels(number)).await, Ok(1), "what it causes is caused now");
            assert_eq!(hive.request(Notes(number)).await, Ok(1), "others had it when it came first");
            assert!(hive.dead_letters().is_empty());

            let gone = Err(ResendError::Unknown { number: second.number });
            assert_eq!(hive.resend_dead_letter(second.number).await, gone);

            let status = hive.status();
            assert_eq!(
                (status.dead_letters, status.dead_letters_kept, status.dead_letters_dropped),
                (2, 0, 0)
            );
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

#[test]
fn a_message_sent_again_is_passed_on_from_where_it_failed() {
    on_workers(2, async {
        let (hive, _) = started(On::Memory);
        let with_note = Order { note: "for the archive".into(), ..order(8, 3) };
        assert!(hive.request(with_note).await.is_err());

        let letter = letters(&hive, 1).await.remove(0);
        MENDED[8].store(true, Ordering::Release);
        hive.resend_dead_letter(letter.number).await.unwrap();
        hive.idle().await;

        let handled = |app: &str, handler: &str| {
            let status = hive.status();
            let app = status.apps.into_iter().find(|a| a.name == app).unwrap();
            app.handlers.into_iter().find(|h| h.name == handler).unwrap().messages
        };

        assert_eq!((handled("reception", "order"), handled("workshop", "order")), (1, 2));
        assert_eq!(handled("archive", "order"), 1, "passed on by the workshop, which has no answer to it");
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn a_dead_letter_that_cannot_be_resent_says_why_and_can_be_discarded() {
    on_workers(2, async {
        let (hive, _) = started(On::Memory);
        hive.emit(Bulk(vec![1; limits::DEAD_LETTER_BYTES_MAX])).await;
        hive.emit(Bulk(vec![1; 10])).await;
        let kept = letters(&hive, 2).await;

        assert!(!kept[0].can_be_sent_again() && kept[1].can_be_sent_again());
        assert!(
            kept[0].words.ends_with('…') && kept[0].words.len() < limits::DEAD_LETTER_WORDS_BYTES_MAX + 8
        );

        let why = hive.resend_dead_letter(kept[0].number).await.unwrap_err();
        assert_eq!(why, ResendError::NotKept { message: <Bulk as Message>::NAME });
        assert_eq!(hive.discard_dead_letter(kept[0].number).map(|l| l.number), Some(kept[0].number));
        assert!(hive.discard_dead_letter(kept[0].number).is_none());
        assert_eq!((hive.discard_dead_letters(), hive.dead_letters().len()), (1, 0));

        hive.emit(Bulk(vec![1; 10])).await;
        let kept = letters(&hive, 1).await;
        hive.stop(Duration::from_secs(5)).await;
        let why = hive.resend_dead_letter(kept[0].number).await;
        assert_eq!((why, hive.dead_letters().len()), (Err(ResendError::Unavailable), 1));
    })
}
