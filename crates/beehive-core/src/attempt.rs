//! `attempt!`: a block inside a transaction that can be rolled back on its own.

use crate::context::{self, Ctx};
use crate::hive::dispatch::outputs;
use crate::state::State;
use crate::state::column::{ColumnMark, Columns};
use crate::time::Time;

/// Runs a block of a handler and rolls it back if it yields an error. The rollback covers changes to cells
/// and rows, emitted messages, and timers set since the block began. The handler continues with the block's
/// value, a [`Result`](crate::Result).
///
/// `?` inside the block leaves the block, not the handler, and converts as in the method: the block yields the
/// error type of a method that returns `Result<_, E>`, and [`Error`](crate::Error) in all others. To yield
/// another one, begin with the type of the result: `attempt!(-> Result<(), No> { .. })`.
///
/// `return`, and jumps to a loop around the block,
/// are rejected at compile time. The cells that the block may touch are part of the handler's map whether the
/// block fails or not. Blocks may be nested.
///
/// ```
/// # extern crate beehive_core as beehive;
/// use beehive::attempt;
/// # use beehive::{App, Ctx, Dict, Message, handlers, testing::Kit};
/// # #[derive(Message)]
/// # struct Order { from: u64, items: Vec<u64> }
/// # #[derive(Message)]
/// # struct Shipped(u64);
/// # #[derive(App)]
/// # struct Shop { stock: Dict<u64, u32>, refused: Dict<u64, u32> }
/// #[handlers]
/// impl Shop {
///     /// Ships all of the order or nothing, and counts a failed order for its customer.
///     #[rcv(joins)]
///     fn order(&mut self, msg: &Order, ctx: &mut Ctx) {
///         let done = attempt! {
///             for item in &msg.items {
///                 let left = self.stock.get_mut(item).ok_or("not on the list")?;
///                 *left = left.checked_sub(1).ok_or("sold out")?;
///                 ctx.emit(Shipped(*item));
///             }
///             Ok(())
///         };
///         if done.is_err() {
///             *self.refused.entry(msg.from).or_default() += 1;
///         }
///     }
/// #   #[rcv]
/// #   fn shipped(&mut self, _: &Shipped) { }
/// }
/// # let mut kit = Kit::of::<Shop>().start();
/// # kit.emit(Order { from: 1, items: vec![7] });
/// # assert_eq!(kit.look::<Shop, _>(|shop| shop.refused.get(&1).copied()), Some(1));
/// ```
///
/// `attempt!` works in the methods of a `#[handlers]` block that take `&mut self`. To roll back what a block
/// emits, it needs the context as a parameter of the method, `ctx: &mut Ctx`. If a block fails after it has
/// emitted through a context that is hidden, for example in a field or behind a type alias, the handler
/// panics, so that the whole transaction is rolled back.
#[macro_export]
macro_rules! attempt {
    (@in $app:ident, $context:expr, $yields:ty, $($body:tt)*) => {{
        let attempt = $crate::__private::Attempt::begin(&mut *$app, $context);
        let yielded = $crate::__private::yielded(|| -> $yields { $($body)* });
        attempt.end(&mut *$app, $context, yielded)
    }};
    (@refused) => {
        $crate::__private::refused()
    };
    ($($body:tt)*) => {
        ::core::compile_error!(
            "`attempt!` works in the methods of a `#[handlers]` block that take `&mut self`, and not inside another macro"
        )
    };
}

/// Text of the panic if the effects of a failed block cannot be rolled back.
const HIDDEN_CONTEXT: &str = "an `attempt!` that failed has emitted through a context that it does not know; \
    pass the context to the method around it as a parameter of type `&mut Ctx`";

/// Calls `block`. Gives `?` inside the block a closure to return from.
#[inline(always)]
pub fn yielded<T, E>(block: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    block()
}

/// Stand-in for a block that the macro has rejected.
pub fn refused() -> crate::Result<()> {
    Ok(())
}

/// A running block, with the savepoints to roll back to.
#[must_use]
pub struct Attempt {
    columns: Vec<ColumnMark>,
    outputs: Option<(outputs::Savepoint, Option<Time>)>,
    /// Number of effects of this thread before the block.
    effects: u32,
}

impl Attempt {
    /// Takes a savepoint of the dictionaries and, if there is a context, of the outputs.
    pub fn begin<A: State>(app: &mut A, context: Option<&mut Ctx>) -> Attempt {
        Attempt {
            columns: app.mark(),
            outputs: context.map(|context| (context.out.savepoint(), context.postponed)),
            effects: context::effects(),
        }
    }

    /// Ends the block: keeps its effects if `yielded` is `Ok`, rolls them back otherwise.
    pub fn end<A: State, T, E>(
        self,
        app: &mut A,
        context: Option<&mut Ctx>,
        yielded: Result<T, E>,
    ) -> Result<T, E> {
        app.settle(self.columns, yielded.is_ok());
        if yielded.is_err() {
            match (context, self.outputs) {
                (Some(context), Some((mark, postponed))) => {
                    context.out.rollback(mark);
                    context.postponed = postponed;
                }
                // the whole transaction is rolled back, because these effects cannot be rolled back alone
                _ => assert_eq!(self.effects, context::effects(), "{HIDDEN_CONTEXT}"),
            }
        }

        yielded
    }
}
