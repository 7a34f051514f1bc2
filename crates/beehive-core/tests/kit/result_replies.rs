//! If the reply of a message is a `Result`, an `Err` would commit. If the reply type is known at the declaration or
//! at the handler, such a program does not compile (`tests/diagnostics`). In a generic app the type is known only
//! when the app is used, and the hive does not start.

use beehive_core::testing::Kit;
use beehive_core::{App, Dict, Handlers, Hive, Message, Result, StartError, Value, handlers};
use std::marker::PhantomData;

/// The type of the goods that a store sells. It determines how the store answers.
trait Goods: Send + Sync + 'static {
    type Bought: Value;
    fn bought(left: u64) -> Self::Bought;
}

#[derive(Message)]
#[message(reply = R)]
struct Ask<R>(u64, PhantomData<R>);

/// The same, but the message declares that an `Err` commits.
#[derive(Message)]
#[message(reply = R, commits_errors)]
struct Try<R>(u64, PhantomData<R>);

#[derive(App)]
#[app(name = "store")]
struct Store<G: Goods> {
    stock: Dict<u64, u64>,
    sold: Dict<u64, Vec<G::Bought>>,
}

#[handlers]
impl<G: Goods> Store<G> {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask<G::Bought>) -> G::Bought {
        G::bought(*self.stock.entry(msg.0).or_default())
    }
}

#[derive(App)]
#[app(name = "trying")]
struct Trying<G: Goods> {
    stock: Dict<u64, u64>,
    sold: Dict<u64, Vec<G::Bought>>,
}

#[handlers]
impl<G: Goods> Trying<G> {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Try<G::Bought>) -> G::Bought {
        let left = self.stock.entry(msg.0).or_default();
        *left += 1;
        G::bought(*left)
    }
}

macro_rules! goods {
    ($name:ident: $bought:ty = $value:expr) => {
        struct $name;
        impl Goods for $name {
            type Bought = $bought;
            fn bought(left: u64) -> $bought {
                $value(left)
            }
        }
    };
}
type Refusal = std::result::Result<u64, String>;
goods!(Plain: u64 = |left| left);
goods!(Optional: Option<u64> = Some);
goods!(Aliased: Refusal = |_| Err("sold out".into()));
goods!(Nested: Option<Option<Refusal>> = |_| Some(Some(Err("sold out".into()))));
goods!(Listed: Vec<Refusal> = |left| vec![Ok(left), Err("sold out".into())]);

fn refusal<A: Handlers>() -> Option<&'static str> {
    let started = Hive::builder().app::<A>().start_on_own_runtime(1);
    match started {
        Ok(hive) => {
            hive.stop_blocking(std::time::Duration::from_secs(1));
            None
        }
        Err(StartError::ResultReply { app, message, place }) => {
            assert_eq!(app, "store");
            assert!(place.contains("result_replies.rs:"), "{place}");
            let text = StartError::ResultReply { app, message, place }.to_string();
            assert!(text.contains("`#[message(reply = .., error = ..)]`"), "{text}");
            Some(message)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_generic_app_that_would_commit_an_error_does_not_start() {
    assert_eq!(refusal::<Store<Plain>>(), None);
    assert_eq!(refusal::<Store<Optional>>(), None);
    assert_eq!(refusal::<Store<Listed>>(), None);
    let message = Some(<Ask<u64> as Message>::NAME);
    assert_eq!(refusal::<Store<Aliased>>(), message);
    assert_eq!(refusal::<Store<Nested>>(), message);
}

#[test]
fn a_message_that_declares_it_commits_its_errors() {
    assert_eq!(refusal::<Trying<Aliased>>(), None);
    let mut kit = Kit::of::<Trying<Aliased>>().start();
    assert_eq!(kit.request(Try::<Refusal>(7, PhantomData)), Ok(Err("sold out".to_string())));
    let left = kit.look::<Trying<Aliased>, _>(|app| app.stock.get(&7).copied());
    assert_eq!(left, Some(1), "an answer like any other");
}

/// An ordinary error still rolls the transaction back.
#[derive(Message)]
#[message(reply = u64)]
struct Sell(u64);
#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
}
#[handlers]
impl Shop {
    #[rcv(sharded)]
    fn sell(&mut self, msg: &Sell) -> Result<u64> {
        *self.stock.entry(msg.0).or_default() += 1;
        Err("sold out".into())
    }
}

#[test]
fn an_error_rolls_back() {
    let mut kit = Kit::of::<Shop>().start();
    assert!(kit.request(Sell(1)).is_err());
    assert_eq!(kit.look::<Shop, _>(|app| app.stock.get(&1).copied()), None);
}
