//! Options of the attributes: checked assertions, warnings, and signatures of handlers.

use crate::{block, errors, options_block};

fn only_error(items: &str) -> String {
    let found = errors(&block(items));
    assert_eq!(found.len(), 1, "{items}\n{found:?}");
    found[0].clone()
}

fn warnings(items: &str) -> Vec<String> {
    let d = block(items);
    assert!(d.errors.is_empty(), "{items}\n{:?}", errors(&d));
    d.warnings.iter().map(|w| w.title.clone()).collect()
}

#[test]
fn kinds_are_checked() {
    for ok in [
        "#[rcv(sharded)] fn h(&mut self, m: &M) { self.d.put(m.a, 1); }",
        "#[rcv(centralized)] fn h(&mut self, m: &M) { self.d.put(1, 1); }",
        "#[rcv(centralized)] fn h(&mut self, m: &M) { self.d.whole().clear(); }",
        "#[rcv(stateless)] fn h(&mut self, m: &M, ctx: &mut Ctx) { ctx.emit(1); }",
        "#[rcv(sharded, expect = \"d[m.a], e[m.b]\", joins)] fn h(&mut self, m: &M) { self.d.put(m.a, 1); self.e.get(&m.b); }",
    ] {
        assert!(errors(&block(ok)).is_empty(), "{ok}");
        assert!(warnings(ok).is_empty(), "{ok}");
    }

    assert!(
        only_error("#[rcv(sharded)] fn h(&mut self, m: &M) { self.d.put(1, 1); }")
            .starts_with("`h` is centralized, not sharded\nnote: the key of `d[1]` (line 1) is the same")
    );
    assert!(
        only_error("#[rcv(stateless)] fn h(&mut self, m: &M) { self.d.put(m.a, 1); }")
            .starts_with("`h` is sharded, not stateless")
    );

    assert_eq!(
        only_error("#[rcv(expect = \"d[m.b]\")] fn h(&mut self, m: &M) { self.d.put(m.a, 1); }"),
        "the derived map of `h` is \"d[m.a]\", not \"d[m.b]\"\n\
         help: if the derived map is intended, write `expect = \"d[m.a]\"`; otherwise the handler accesses cells that it should not"
    );
}

#[test]
fn another_handler_centralizes() {
    let items = "#[rcv(KIND)] fn put(&mut self, m: &M) { self.d.put(m.a, 1); } #[rcv] fn count(&mut self, _: &N) { self.all(); } fn all(&mut self) { self.d.whole(); }";
    let error = only_error(&items.replace("KIND", "sharded"));
    assert!(error.contains("`count` owns all cells of `d`"), "{error}");
    assert_eq!(warnings(&items.replace("(KIND)", "")), ["put_is_centralized"]);
    assert!(warnings(&items.replace("KIND", "centralized")).is_empty());
    let d = block(&items.replace("(KIND)", ""));
    assert!(d.tokens.to_string().replace(' ', "").contains("constMONOLITHIC:u64=0|Self::__bh_d.bit();"));
    assert!(d.handlers[0].note.contains("centralized"));
}

#[test]
fn accidents_are_warned_about() {
    assert_eq!(
        warnings("#[rcv] fn gen(&mut self, m: &M) { *self.g.entry(\"gen\".into()) += 1; }"),
        ["gen_is_centralized"]
    );
    assert_eq!(
        warnings("#[rcv] fn h(&mut self, m: &M) { self.d.put(m.a, 1); self.e.put(m.b, 1); }"),
        ["h_joins_cells"]
    );

    assert_eq!(
        warnings("#[rcv(sharded)] fn h(&mut self, m: &M) { for x in &m.items { self.d.put(*x, 1); } }"),
        ["h_joins_cells"]
    );
    assert!(warnings("#[rcv] fn h(&mut self, m: &M) { self.d.whole().clear(); }").is_empty());

    // cells that are written down are intended, so there is no warning
    for meant in [
        "#[rcv(expect = \"d[m.a], e[m.b]\")] fn h(&mut self, m: &M) { self.d.put(m.a, 1); self.e.put(m.b, 1); }",
        "#[rcv(expect = \"d[1]\")] fn h(&mut self, m: &M) { self.d.put(1, 1); }",
    ] {
        assert!(warnings(meant).is_empty(), "{meant}");
        assert_eq!(block(meant).handlers[0].note, "");
    }

    let d = block("#[rcv] fn gen(&mut self, m: &M) { self.d.put(1, 1); }");
    let tokens = d.tokens.to_string();
    assert!(tokens.contains("deprecated") && tokens.contains("gen_is_centralized"), "{tokens}");
}

#[test]
fn shapes() {
    for (items, want) in [
        ("#[rcv] async fn h(&mut self, m: &M) {}", "synchronous"),
        ("#[rcv] fn h<X: E>(&mut self, m: &X) {}", "cannot be generic"),
        (
            "#[rcv] fn h(&mut self, m: M) {}",
            "a handler has the signature `fn name(&mut self, msg: &Message)`",
        ),
        (
            "#[rcv] fn h(&mut self, ctx: &mut Ctx, m: &M) {}",
            "a handler has the signature `fn name(&mut self, msg: &Message)`",
        ),
        ("#[rcv] fn h(m: &M) {}", "a handler has the signature `fn name(&mut self, msg: &Message)`"),
        ("#[rcv] fn h(self, m: &M) {}", "a handler has the signature `fn name(&mut self, msg: &Message)`"),
        ("#[rcv(each = d)] fn h(&mut self, m: &M) {}", "a per-cell handler has the signature"),
        ("#[every(\"1s\")] fn h(&mut self, m: &M) {}", "a timer has the signature"),
        ("#[every(\"1s\", each = d)] fn h(&mut self) {}", "a per-cell timer has the signature"),
        ("#[every] fn h(&mut self) {}", "a timer needs a period"),
        ("#[every(\"1 hour\")] fn h(&mut self) {}", "expected a period"),
        ("#[every(\"0s\")] fn h(&mut self) {}", "expected a period"),
        ("#[every(\"99999999999999999999h\")] fn h(&mut self) {}", "expected a period"),
        ("#[rcv(map = runtime)] fn h(&mut self, m: &M) {}", "are not available"),
        (
            "#[rcv(broadcast)] fn h(&mut self, m: &M) {}",
            "`each = dictionary` runs the handler once for every cell",
        ),
        ("#[rcv(local)] fn h(&mut self, m: &M) {}", "expected `sharded`"),
        ("#[rcv(whole(d))] fn h(&mut self, m: &M) {}", "`whole(..)` requires `map = ..`"),
        ("#[rcv] fn h(&mut self, m: &M) {} #[rcv] fn g(&mut self, m: &M) {}", "`h` already handles `M`"),
    ] {
        let found = only_error(items);
        assert!(found.contains(want), "{items}\n    wanted {want:?}, got {found:?}");
    }

    let trait_impl = "impl X for T { #[rcv] fn h(&mut self, m: &M) {} }".parse().expect("tokens");
    let d = beehive_analysis::derivation(Default::default(), trait_impl).expect("parses");
    assert!(errors(&d)[0].starts_with("`#[handlers]` belongs on an inherent impl block"), "{:?}", errors(&d));
}

#[test]
fn each_and_every() {
    let d = block(
        "#[rcv(each = macs)] fn flush(&mut self, node: &NodeId, m: &Flush) { self.macs.at(*node).clear(); self.heard.at(node.clone()).clear(); }
         #[every(\"10s\", each = macs)] fn age(&mut self, node: &NodeId, ctx: &mut Ctx) { self.macs.at(*node).retain(|_, v| *v > ctx.now()); }
         #[every(\"250ms\")] fn tick(&mut self, ctx: &mut Ctx) { ctx.emit(1); }
         #[rcv(each = macs)] fn touch(&mut self, _: &NodeId, m: &Touch) {}",
    );

    assert!(d.errors.is_empty(), "{:?}", errors(&d));
    let found: Vec<String> =
        d.handlers.iter().map(|h| format!("{} {}{}", h.kind, h.cells, h.joins)).collect();
    assert_eq!(
        found,
        ["sharded macs[node], heard[node]", "sharded macs[node]", "stateless -", "sharded macs[..]"]
    );
    let tokens = d.tokens.to_string().replace(' ', "");

    for want in [
        "Registration::<Self,NodeId,Flush>::of(registrar).each(Self::__bh_macs.index);",
        "Registration::<Self,NodeId,::beehive::__private::Tick<1u32>>::of(registrar).every_each(::core::time::Duration::from_millis(10000u64),Self::__bh_macs.index);",
        "registrar.every::<2u32>(::core::time::Duration::from_millis(250u64));",
        "Handles<::beehive::__private::Each<NodeId,::beehive::__private::Tick<1u32>>>forT",
        "Handles<::beehive::__private::Tick<2u32>>forT",
    ] {
        assert!(tokens.contains(want), "{want}\n{tokens}");
    }
}

#[test]
fn promised_functions_are_pure() {
    let items = "#[rcv] fn h(&mut self, m: &M) { self.d.put(shard_of(m.a), 1); }";
    assert!(errors(&block(items))[0].contains("`pure!(shard_of(m.a))`"));
    assert!(errors(&options_block("pure(shard_of)", items)).is_empty());
    assert!(
        beehive_analysis::expand_handlers(
            "impure(x)".parse().expect("tokens"),
            "impl T {}".parse().expect("tokens")
        )
        .to_string()
        .contains("compile_error")
    );
}

#[test]
fn answers_are_told_by_the_return_type() {
    let items = |output: &str| format!("#[rcv] fn h(&mut self, m: &M) {output} {{ todo!() }}");
    for (output, answers) in [
        ("", false),
        ("-> ()", false),
        ("-> Result", false),
        ("-> Result<()>", false),
        ("-> Result<(), E>", false),
        ("-> u64", true),
        ("-> Option<u64>", true),
        ("-> Result<u64>", true),
        ("-> Result<Option<u64>, E>", true),
    ] {
        let tokens = block(&items(output)).tokens.to_string().replace(' ', "");
        assert!(tokens.contains(&format!("constANSWERS:bool={answers};")), "{output}");
    }
}
