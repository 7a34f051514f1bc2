//! `attempt!`: a part of a transaction that is undone by itself.

use crate::context::Ctx;
use crate::hive::dispatch::outputs;
use crate::state::State;
use crate::state::column::{ColumnMark, Columns};
use crate::time::Time;

/// Runs a block of a handler, and undoes it if it yields an error: rows, cells, and what was emitted or asked for since
/// it began. The handler goes on with the block's value, a [`Result`](crate::Result).
///
/// `?` inside the block leaves the block, not the handler; `return`, and jumps to a loop around the block, are refused.
/// The cells that the block may touch are part of the handler's map, whether it fails or not. Blocks nest.
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
///     /// All of the order or nothing; either way the customer's count is kept.
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
/// It works in the methods of a `#[handlers]` block that take `&mut self`; what the block emits is undone where the method
/// has a parameter of type `&mut Ctx`, without which it could not emit.
#[macro_export]
macro_rules! attempt {
    (@in $app:ident, $context:expr, $($body:tt)*) => {{
        let attempt = $crate::__private::Attempt::begin(&mut *$app, $context);
        let yielded = $crate::__private::yielded(|| { $($body)* });
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

/// What a block yields.
#[inline(always)]
pub fn yielded<T>(block: impl FnOnce() -> crate::Result<T>) -> crate::Result<T> {
    block()
}

/// Stands for a block that does not compile.
pub fn refused() -> crate::Result<()> {
    Ok(())
}

/// A block under way, and where to go back to.
#[must_use]
pub struct Attempt {
    columns: Vec<ColumnMark>,
    outputs: Option<(outputs::Savepoint, Option<Time>)>,
}

impl Attempt {
    /// A block begins.
    pub fn begin<A: State>(app: &mut A, context: Option<&mut Ctx>) -> Attempt {
        Attempt {
            columns: app.mark(),
            outputs: context.map(|context| (context.out.savepoint(), context.postponed)),
        }
    }

    /// It has ended.
    pub fn end<A: State, T>(
        self,
        app: &mut A,
        context: Option<&mut Ctx>,
        yielded: crate::Result<T>,
    ) -> crate::Result<T> {
        app.settle(self.columns, yielded.is_ok());
        if yielded.is_err()
            && let (Some(context), Some((mark, postponed))) = (context, self.outputs)
        {
            context.out.rollback(mark);
            context.postponed = postponed;
        }
        yielded
    }
}
