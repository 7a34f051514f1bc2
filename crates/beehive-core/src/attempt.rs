//! `attempt!`: a block inside a transaction that can be rolled back on its own.

use crate::context::{self, Ctx};
use crate::hive::dispatch::outputs;
use crate::message::{Error, ErrorKind};
use crate::panics::Refusal;
use crate::state::State;
use crate::state::column::{ColumnMark, Columns};
use crate::time::Time;

/// The error of a transaction whose handler has moved a dictionary out of its field.
const MOVED: &str = "the handler moved a dictionary out of its field";

/// Runs a block of a handler and rolls it back if it yields an error. The rollback covers changes to cells
/// and rows, emitted messages, and timers set since the block began. The handler continues with the block's
/// value, a [`Result`](crate::Result).
///
/// `?` inside the block leaves the block, not the handler. It converts errors as it does in the method: if the
/// method returns `Result<_, E>`, the error type of the block is `E`, and otherwise it is
/// [`Error`](crate::Error). To choose another error type, begin the block with its result type:
/// `attempt!(-> Result<(), No> { .. })`.
///
/// A `return`, and a `break` or `continue` of a loop around the block, are rejected at compile time. The cells that the
/// block may touch are part of the handler's map whether or not the block fails. Blocks may be nested.
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
///     /// Ships the whole order or nothing, and counts the failed orders of each customer.
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
/// `attempt!` works in the methods of a `#[handlers]` block that take `&mut self`. It can roll back the messages that a
/// block emits only if the method takes the context as a parameter (`ctx: &mut Ctx`). If a block fails after it has
/// emitted through a hidden context, for example one in a field or behind a type alias, the handler panics, so the whole
/// transaction is rolled back.
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

/// The panic message if the effects of a failed block cannot be rolled back.
const HIDDEN_CONTEXT: &str = "a failed `attempt!` cannot roll back what it emitted through a context that it does not know; \
    pass the context to the method around it as a parameter of type `&mut Ctx`";

/// Calls `block`, which is a closure so that `?` inside the block returns only from the block.
#[inline(always)]
pub fn yielded<T, E>(block: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    block()
}

/// Ends the transaction now if the handler has moved a dictionary out of its field. Otherwise it would fail when the
/// handler returns.
#[inline]
fn assert_in_place<A: State>(app: &mut A) {
    if !app.is_in_place() {
        std::panic::resume_unwind(Box::new(Refusal(Error::of(ErrorKind::Unmapped, MOVED))))
    }
}

/// Stand-in for a block rejected by the macro.
pub fn refused() -> crate::Result<()> {
    Ok(())
}

/// A running block, with the savepoints to roll back to.
#[expect(missing_debug_implementations, reason = "only generated code names this type")]
#[must_use]
pub struct Attempt {
    columns: Vec<ColumnMark>,
    outputs: Option<(outputs::Savepoint, Option<Time>)>,
    /// Number of effects requested by handlers on this thread when the block began.
    effects: u32,
}

impl Attempt {
    /// Takes a savepoint of the dictionaries and, if there is a context, of the outputs.
    pub fn begin<A: State>(app: &mut A, context: Option<&mut Ctx>) -> Attempt {
        assert_in_place(app);
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
        // the savepoints belong to the dictionaries that were in the fields when the block began
        assert_in_place(app);
        app.settle(self.columns, yielded.is_ok());
        if yielded.is_err() {
            match (context, self.outputs) {
                (Some(context), Some((mark, postponed))) => {
                    context.out.rollback(mark);
                    context.postponed = postponed;
                }
                // Effects of a hidden context cannot be rolled back alone: panic to roll back the transaction.
                _ => assert_eq!(self.effects, context::effects(), "{HIDDEN_CONTEXT}"),
            }
        }

        yielded
    }
}
