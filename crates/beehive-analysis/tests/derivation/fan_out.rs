//! Checks that helpers that call helpers take time polynomial in the size of the block.

use crate::cost::spent;
use crate::{block, errors};
use std::time::Duration;

/// Builds a block in which each of `levels` helpers calls the next one twice, so there are 2 to the power of
/// `levels` call paths.
fn ladder(levels: usize, last: &str) -> String {
    let mut items = String::from("#[rcv] fn h(&mut self, m: &M) { self.l0(m.a, m.b); }");
    for i in 0..levels {
        items += &format!(
            "fn l{i}(&mut self, a: u64, b: u64) {{ self.l{0}(a + 1, b); if self.d.contains(&a) {{ self.l{0}(b, a); }} }}",
            i + 1
        );
    }
    items + &format!("fn l{levels}(&mut self, a: u64, b: u64) {{ {last} }}")
}

#[test]
fn helper_fan_out_is_polynomial() {
    for last in ["self.d.get(&a);", "self.d.get(&(a / b));", "log(a);", "let v = vec![a]; self.d.get(&v[0]);"]
    {
        let start = spent();
        let d = block(&ladder(40, last));
        let took = spent() - start;
        assert!(took < Duration::from_secs(5), "{last}: {took:?}");
        assert!(d.errors.is_empty(), "{:?}", errors(&d));

        // the size of the output is proportional to the slice, not to the number of paths
        assert!(d.tokens.to_string().len() < 200_000);
    }
}
