//! After an error the block stays in place, so editors still complete code, and the expansion causes no
//! further errors.

use crate::block;
use beehive_analysis::expand_handlers;

#[test]
fn a_block_that_does_not_parse_is_kept() {
    let item =
        "impl T { #[rcv] fn h(&mut self, m: &M) { self.d.put(m.a 1); } #[every(\"1s\")] fn t(&mut self) {} }";
    let out = expand_handlers(Default::default(), item.parse().expect("tokens")).to_string();
    assert!(out.contains("fn h") && out.contains("fn t"), "{out}");
    assert!(!out.contains("rcv") && !out.contains("every"), "{out}");

    // normally the compiler reports the syntax error; this panic reports it if the compiler does not
    assert!(!out.contains("compile_error") && out.contains("panic ! (\"expected `,`\")"), "{out}");
    assert!(out.contains("Handlers for T"), "{out}");
    let out =
        expand_handlers(Default::default(), "impl T fn h(&mut self) {}".parse().expect("tokens")).to_string();
    assert!(out.contains("fn h") && out.contains("compile_error"), "{out}");
}

#[test]
fn on_error_maps_are_empty() {
    let d = block(
        "#[rcv] fn h(&mut self, m: &M) { self.d.put(*self.e.get(&m.a).unwrap(), 1); self.help(m.b) } fn help(&mut self, k: u64) { self.d.get(&k); }",
    );
    assert_eq!(d.errors.len(), 1);
    let out = d.tokens.to_string();
    assert!(out.contains("fn h") && out.contains("fn help") && !out.contains("__m . cell"), "{out}");
}

#[test]
fn the_documentation_tells_the_map() {
    let d = block("/// Puts.\n#[rcv] fn h(&mut self, m: &M) { self.d.put(m.a, 1); self.e.get(&m.b); }");
    let out = d.tokens.to_string();
    assert!(out.contains("**Map:** sharded, `d[m.a], e[m.b]`. **Joins:** `d[m.a] with e[m.b]`."), "{out}");
    assert!(out.contains("**Note:** touch only one key") && out.contains("write `#[rcv(joins)]`."), "{out}");

    let d = block("#[rcv(centralized)]\nfn h(&mut self, m: &M) {\nself.d.put(1, 1); }");
    let out = d.tokens.to_string();
    assert!(
        out.contains("**Map:** centralized, `d[1]`. **Why:** the key of `d[1]` (line 3) is the same"),
        "{out}"
    );
    let report = &d.handlers[0];
    assert_eq!((report.reason_line, report.note.as_str()), (3, ""));
}
