//! Each mistake in a body causes exactly one error: its consequences are not reported.

#[path = "../../examples/random_handlers/mistakes.rs"]
mod table;

use crate::{block, errors};

#[test]
fn each_mistake_is_one_error_wherever_it_stands() {
    let handlers = table::handlers();
    let wrong: Vec<String> = handlers
        .iter()
        .map(|h| (h, errors(&block(h))))
        .filter(|(_, errors)| errors.len() != 1)
        .map(|(h, errors)| format!("{h}\n{}\n", errors.join("\n")))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), handlers.len(), wrong.join("\n"));
    assert!(handlers.len() > 600);
}

/// A name that a pattern binds is a different local than the one outside of the `match`, which has the mistake.
#[test]
fn a_mistake_in_a_local_is_none_in_another_with_its_name() {
    let handler = |arm: &str, first: &str| {
        format!(
            "#[rcv] fn g(&mut self, m: &M<1>) {{
                let mut x = m.items.iter();
                {first}
                if let Some(k) = x.next() {{ self.d.put(*k, 1); }}
                let n = match m.kind {{ Kind::A(q) => q, {arm} Kind::C => return }};
                let p: u64 = if m.flag {{ m.b }} else {{ n.wrapping_add(1) }};
                self.touch({{ if m.flag {{ return; }} n }});
                if self.e.contains(&std::cmp::max(n, p)) {{ self.d.put(m.b, 3); }}
            }}
            fn touch(&mut self, x: u64) {{ self.e.put(x, 1); }}"
        )
    };

    let mistake = "self.d.put(m.a, x.next().copied().unwrap_or(0));";
    for arm in [
        "Kind::B { x } => { tracing::trace!(\"{x}\"); x }",
        "Kind::B { x } if m.flag => { x.count_ones().into() } Kind::B { x: y } => y,",
        "Kind::B { x: ref x @ 0..9 } => { *x } Kind::B { .. } => 2,",
    ] {
        let found = errors(&block(&handler(arm, mistake)));
        assert_eq!(found.len(), 1, "{arm}\n{found:?}");
        assert_eq!(errors(&block(&handler(arm, ""))), [""; 0], "{arm}");
    }
}
