//! The alternatives that the help lines of the errors suggest, each as a handler: the analysis accepts it, and
//! its map covers the cells that it touches.

#![allow(unused, deprecated, clippy::all)]
use crate::check_handlers;
use crate::message::{Kind, Load, M, Note};
use beehive::{App, Ctx, Dict, Result, Rows, Table, attempt, handlers, pure};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

fn shard_of(key: u64) -> u64 {
    key % 4
}

fn listed(key: u64) -> u64 {
    key + 1
}

macro_rules! twice {
    ($x:expr) => {
        $x * 2
    };
}

macro_rules! thrice_of {
    ($x:ident) => {
        let $x = $x * 3;
    };
}

macro_rules! other {
    ($m:ident . $x:ident) => {
        let mut other = $m.clone();
        other.$x += 1;
        let $m = &other;
    };
}

macro_rules! thrice {
    ($x:expr) => {
        $x * 3
    };
}

const SHARDS: u64 = 4;
static LIMIT: u64 = 3;

macro_rules! bump {
    ($x:expr) => {
        $x + 1
    };
}

#[derive(App)]
#[app(name = "ways")]
pub(crate) struct Ways {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers(pure(listed, thrice))]
impl Ways {
    #[rcv(joins)]
    fn load(&mut self, m: &Load) {
        for (k, v) in &m.d {
            self.d.put(*k, *v);
        }
        for (k, v) in &m.e {
            self.e.put(*k, *v);
        }
        for (k, v) in &m.w {
            self.w.put(*k, *v);
        }
        for (k, v) in &m.t {
            self.t.put(*k, *v);
        }
    }
    // key_from_unknown_code: use `pure!`, use a known function, or show the function to the analysis
    #[rcv]
    fn promised(&mut self, m: &M<801>) {
        self.d.put(pure!(shard_of(m.a)), 1);
    }
    #[rcv]
    fn promised_where_it_is_called(&mut self, m: &M<802>) {
        let k = pure!(shard_of(m.a));
        self.d.put(k, 1);
    }
    #[rcv]
    fn promised_macro(&mut self, m: &M<803>) {
        self.d.put(pure!(twice!(m.a)), 1);
    }
    #[rcv]
    fn macro_in_a_block(&mut self, m: &M<840>) {
        let k = m.a ^ 1;
        {
            thrice_of!(k);
        }
        self.d.put(k, 1);
    }
    #[rcv]
    fn bound_before_the_macro(&mut self, m: &M<841>) {
        let k = m.a ^ 1;
        other!(m.a);
        self.d.put(k, m.a);
    }
    #[rcv]
    fn listed_for_the_block(&mut self, m: &M<804>) {
        self.d.put(listed(m.a), 1);
    }
    #[rcv]
    fn associated_function(&mut self, m: &M<805>) {
        self.d.put(Self::shard(m.a), 1);
    }
    fn shard(key: u64) -> u64 {
        key % 4
    }
    // key_from_hash_order: sort first, or use a collection with an order
    #[rcv(joins)]
    fn sorted_first(&mut self, m: &M<806>) {
        let s: HashSet<u64> = m.items.iter().copied().collect();
        let mut keys: Vec<u64> = s.into_iter().collect();
        keys.sort();
        for k in keys.iter().take(2) {
            self.d.put(*k, 1);
        }
    }
    #[rcv(joins)]
    fn ordered_set(&mut self, m: &M<807>) {
        let s: BTreeSet<u64> = m.items.iter().copied().collect();
        for (i, k) in s.iter().enumerate().take(2) {
            self.t.put((i as u64, *k), 1);
        }
    }
    #[rcv]
    fn ordered_map(&mut self, m: &M<808>) {
        let s: BTreeMap<u64, u64> = m.pairs.iter().copied().collect();
        if let Some((k, _)) = s.iter().max_by_key(|p| *p.1) {
            self.d.put(*k, 1);
        }
    }
    #[rcv(joins)]
    fn hash_set_that_is_only_asked(&mut self, m: &M<809>) {
        let mut seen: HashSet<u64> = Default::default();
        for k in &m.items {
            if seen.insert(*k) {
                self.d.put(*k, seen.len() as u64);
            }
        }
    }
    // key_changed_under_state: compute the key first
    #[rcv(joins)]
    fn computed_before(&mut self, m: &M<810>) {
        let (this, next) = (m.a, m.a + 1);
        if self.d.contains(&m.b) {
            self.e.put(next, 1);
        } else {
            self.e.put(this, 1);
        }
    }
    // key_from_context: use a row, whose key may be any value
    #[rcv]
    fn row_by_time(&mut self, m: &M<811>, ctx: &mut Ctx) {
        self.rows.at(m.a).insert(m.b, 1);
    }
    // key_from_state: own the whole dictionary on one bee
    #[rcv(centralized)]
    fn whole(&mut self, m: &M<812>) {
        if let Some(k) = self.d.get(&m.a).copied() {
            self.w.whole().put(k, 1);
        }
    }
    // key_from_helper: a function without `self`
    #[rcv]
    fn without_self(&mut self, m: &M<813>) {
        let k = Self::both(m.a, m.b);
        self.d.put(k, 1);
    }
    fn both(a: u64, b: u64) -> u64 {
        a.max(b)
    }
    // endless_loop: a loop that the message bounds
    #[rcv(joins)]
    fn bounded(&mut self, m: &M<815>) {
        for i in (0u64..).take(m.items.len()) {
            if self.d.contains(&i) {
                break;
            }
            self.d.put(i, 1);
        }
    }
    // state_in_closure: a loop, `if let` or `match`
    #[rcv(joins)]
    fn loop_for_a_closure(&mut self, m: &M<816>) {
        for k in &m.items {
            self.d.put(*k, 1);
        }
        if let Some(k) = m.opt {
            self.e.get(&k);
        }
    }
    // state_in_macro: read the state first; a `match` for the guard of `matches!`; `?` in a `let` of its own
    #[rcv]
    fn read_before_the_macro(&mut self, m: &M<817>, ctx: &mut Ctx) {
        let v = self.d.get(&m.a).copied().unwrap_or(0);
        ctx.emit(Note(bump!(v)));
    }
    #[rcv(joins)]
    fn match_for_the_guard(&mut self, m: &M<818>) {
        match m.kind {
            Kind::A(x) if self.d.contains(&x) => {
                self.e.put(m.a, 1);
            }
            _ => {}
        }
    }
    #[rcv(joins)]
    fn question_mark_before_the_macro(&mut self, m: &M<819>) -> Result {
        let k = m.opt.ok_or("none")?;
        for x in vec![k, m.a] {
            self.d.put(x, 1);
        }
        Ok(())
    }
    // recursion: a loop
    #[rcv(joins)]
    fn loop_for_recursion(&mut self, m: &M<820>) {
        let mut k = m.a;
        while k > 0 {
            self.d.put(k, 1);
            k /= 2;
        }
    }
    // syntax: `#[cfg]` on two versions of a method
    #[rcv]
    fn versions(&mut self, m: &M<821>) {
        self.put_version(m.a, m.b);
    }
    #[cfg(not(all()))]
    fn put_version(&mut self, a: u64, _: u64) {
        self.d.put(a, 1);
    }
    #[cfg(all())]
    fn put_version(&mut self, _: u64, b: u64) {
        self.e.put(b, 1);
    }
    // all_cells: a shared view, or the rows of one cell
    #[rcv]
    fn rows_of_one_cell(&mut self, m: &M<822>, ctx: &mut Ctx) {
        for (row, _) in self.rows.at(m.a).iter() {
            ctx.emit(Note(*row));
        }
    }
    // attempt: left by its value
    #[rcv(joins)]
    fn attempt_left_by_its_value(&mut self, m: &M<824>) {
        let done = attempt! {
            self.d.put(m.a, m.b);
            if self.e.get(&m.b).is_none() {
                Err("none")?
            }
            Ok(())
        };
        if done.is_err() {
            self.d.put(m.a, 0);
        }
    }
    // handler_waits, key_from_state, key_from_helper, key_changed_under_state: a message that carries the key
    #[rcv]
    fn message_with_the_key(&mut self, m: &M<825>, ctx: &mut Ctx) {
        let mut k = m.b;
        if let Some(next) = self.d.get(&m.a).copied() {
            k = next;
        }
        ctx.emit(Note(k));
    }
    // helpers, self_escapes, state_in_macro: a method of the block
    #[rcv(joins)]
    fn method_of_the_block(&mut self, m: &M<826>) {
        self.put_both(m.a, m.b);
        self.put_both(m.b, m.a);
    }
    fn put_both(&mut self, d: u64, e: u64) {
        self.d.put(d, 1);
        self.e.put(e, 1);
    }
    // integer_type: the type at the declaration, or at the literal
    #[rcv(joins)]
    fn typed_integers(&mut self, m: &M<827>) {
        self.count_of(&m.items, m.a);
    }
    fn count_of<I>(&mut self, items: &[I], a: u64) {
        let mut n: u64 = 0;
        for _ in items {
            n += 1;
        }
        let large = 5_000_000_000u64;
        self.e.put(a, large);
        self.d.put(n.min(9) ^ (large >> 32), n);
    }
    // key_changed_under_state: lend the value
    #[rcv(joins)]
    fn lent_where_state_decides(&mut self, m: &M<828>) {
        let mut first = m.items.clone();
        let list = &mut first;
        list.sort();
        if self.e.contains(&m.b) {
            self.w.put(Self::sum(&first), 1);
        }
        self.d.put(Self::sum(&first), 1);
    }
    fn sum(of: &[u64]) -> u64 {
        of.iter().fold(0, |a, b| a ^ b)
    }
    // key_from_configuration: the message and constants
    #[rcv]
    fn constant(&mut self, m: &M<829>) {
        self.d.put(m.a % SHARDS, 1);
    }
    // key_from_unknown_code: a promise about a static, a listed macro, a function by its name, the path of a macro
    #[rcv]
    fn promised_static(&mut self, m: &M<830>) {
        self.d.put(pure!(LIMIT) ^ m.a, 1);
    }
    #[rcv]
    fn listed_macro(&mut self, m: &M<831>) {
        self.d.put(thrice!(m.a), 1);
    }
    #[rcv]
    fn function_by_its_name(&mut self, m: &M<832>) {
        let k = if m.flag { Self::shard(m.a) } else { Self::both(m.a, m.b) };
        self.d.put(k, 1);
    }
    #[rcv]
    fn macro_of_a_crate(&mut self, m: &M<833>) {
        let mut k = m.a;
        tracing::debug!("{}", k);
        k += 1;
        self.d.put(k, 1);
    }
    #[rcv]
    fn promised_method(&mut self, m: &M<834>) {
        self.d.put(pure!(m.inner.uid()), 1);
    }
    // syntax: `if` and calls, and a comparison for a macro in a pattern
    #[rcv(joins)]
    fn compared_in_an_if(&mut self, m: &M<835>) {
        if m.a == twice_of_two() {
            self.e.put(m.b, 1);
        }
        let k = if m.flag { m.a } else { m.b };
        self.d.put(k, 1);
    }
    // wrong_kind, centralized, joins, expectation: what the attribute says is so
    #[rcv(centralized)]
    fn one_bee(&mut self, m: &M<836>) {
        self.d.put(0, m.a);
    }
    #[rcv(sharded)]
    fn a_key_of_its_own(&mut self, m: &M<837>) {
        self.d.put(m.a, 1);
    }
    #[rcv(expect = "d[m.a], e[m.b]")]
    fn expected(&mut self, m: &M<838>) {
        self.d.put(m.a, 1);
        self.e.put(m.b, 1);
    }
    // state_in_macro, key_from_context: a `let` of its own before
    #[rcv(joins)]
    fn let_before_the_access(&mut self, m: &M<839>) {
        let k = m.a.max(m.b);
        if self.e.contains(&m.b) {
            self.d.put(k, 1);
        }
    }
}

fn twice_of_two() -> u64 {
    twice!(2)
}

macro_rules! checked {
    ($($n:literal)*) => {
        const CHECKED: &[u32] = &[$($n),*];

        #[test]
        fn each_way_out_is_accepted_and_its_map_covers_it() {
            check_handlers!(Ways, 200, exact in 1 of 3, [$($n)*]);
        }
    };
}

checked!(
    801 802 803 804 805 806 807 808 809 810 811 812 813 815 816 817 818 819 820 821 822 824 825 826 827 828 829
    830 831 832 833 834 835 836 837 838 839 840 841
);

/// For each page of the guide about a handler's body: what its errors advise, and the handlers above that do it.
const WAYS: &[(&str, &str, &[u32])] = &[
    ("all_cells", "`self.dictionary.whole()`", &[812]),
    ("all_cells", "`self.table.at(key).iter()`", &[822]),
    ("attempt", "end the attempt with its value", &[824]),
    ("centralized", "write #[rcv(centralized)]", &[836]),
    ("endless_loop", "with `.take(n)`", &[815]),
    ("expectation", "write `expect = ", &[838]),
    ("handler_waits", "emit a message", &[825]),
    ("helpers", "move it into this block", &[826]),
    ("integer_type", "write the type where", &[827]),
    ("joins", "write #[rcv(joins)]", &[826]),
    ("key_changed_under_state", "compute the key before the condition, or borrow the value", &[810, 828]),
    ("key_changed_under_state", "compute the key only from the message", &[810, 839]),
    ("key_changed_under_state", "emit a message that carries the key", &[825]),
    ("key_changed_under_state", "write `self.e.whole()", &[812]),
    ("key_from_configuration", "compute the key from the message and constants", &[829]),
    ("key_from_context", "write `self.d.whole()", &[812]),
    ("key_from_context", "can be a row key", &[811]),
    (
        "key_from_context",
        "make the call where the message is created, and send the value in the message",
        &[825],
    ),
    ("key_from_hash_order", "sort the elements first", &[806, 807, 808, 809]),
    ("key_from_helper", "remove the `self` of", &[813]),
    ("key_from_helper", "emit a message that carries the key", &[825]),
    ("key_from_state", "emit a message that carries", &[825]),
    ("key_from_state", "write `self.e.whole()", &[812]),
    ("key_from_unknown_code", "a variable with a similar name", &[839]),
    ("key_from_unknown_code", "put the call into a block of its own", &[840]),
    ("key_from_unknown_code", "bind the key before this statement", &[841]),
    ("key_from_unknown_code", "call a function by name", &[805, 832]),
    (
        "key_from_unknown_code",
        "`pure!(shard_of(..))` in line 5, or `#[handlers(pure(shard_of))]`",
        &[801, 802, 804],
    ),
    ("key_from_unknown_code", "`pure!(shard_of(m.a))`", &[801, 804]),
    ("key_from_unknown_code", "`pure!(m.id.load", &[834]),
    ("key_from_unknown_code", "`pure!(my_key!(m))`, or `#[handlers(pure(my_key))]`", &[803, 831]),
    ("key_from_unknown_code", "`pure!(place)`", &[830]),
    ("key_from_unknown_code", "name the crate: `tracing::debug!", &[833]),
    ("key_from_unknown_code", "make it an associated function of this impl block", &[805]),
    ("recursion", "use a loop", &[820]),
    ("self_escapes", "call a method of this impl block", &[826]),
    ("state_in_closure", "use a `for` loop, `if let` or `match`", &[816, 818]),
    ("state_in_macro", "in a separate `let` first", &[819, 839]),
    ("state_in_macro", "read the state into a local first", &[817]),
    ("state_in_macro", "write a `match` or an `if let`", &[818]),
    ("state_in_macro", "write a method of this impl block", &[826]),
    ("syntax", "write two versions of a method", &[821]),
    ("syntax", "write it with `if`, `match`, loops and calls", &[835]),
    ("syntax", "compare in an `if`", &[835]),
    ("wrong_kind", "give every message a key of its own, or", &[836, 837]),
    ("wrong_kind", "is something missing from its body?", &[825]),
    ("wrong_kind", "write `sharded`, or change", &[837]),
];

/// Pages about declarations and attributes. Their way out is the program at the end of the page, which compiles, and
/// has no body whose map could miss a cell.
const DECLARATIONS: &[&str] = &[
    "answers",
    "app_fields",
    "app_options",
    "derives",
    "handler_options",
    "handler_shape",
    "handler_twice",
    "keys_and_messages",
    // `tests/kit/other_names.rs` uses each of its ways out
    "other_names",
    "typed_errors",
];

/// Checks that a page with an error of the analysis, or a new advice on one, has a handler here.
#[test]
fn every_advice_of_every_page_has_a_handler() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/guide/errors");
    let Ok(files) = std::fs::read_dir(folder) else {
        println!("skipped: {folder} is not there (a packaged crate)");
        return;
    };

    let mut wrong: Vec<String> = vec![];
    let mut pages = BTreeSet::new();
    for file in files {
        let path = file.expect("a file").path();
        let page = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a page");
        let messages: Vec<&str> = text.split("```").nth(1).unwrap_or_default().lines().collect();
        let ways: Vec<_> = WAYS.iter().filter(|w| w.0 == page).collect();
        if DECLARATIONS.contains(&page.as_str()) == !ways.is_empty() {
            wrong.push(format!("{page}: it is either one of DECLARATIONS or has WAYS"));
        }
        if !ways.is_empty() {
            let helps = messages.iter().filter(|line| line.trim_start().starts_with("help:"));
            let unknown = helps.filter(|line| !ways.iter().any(|w| line.contains(w.1)));
            wrong.extend(unknown.map(|line| format!("{page}: no handler for `{}`", line.trim())));
        }
        let gone = ways.iter().filter(|w| !messages.iter().any(|line| line.contains(w.1)));
        wrong.extend(gone.map(|w| format!("{page}: it no longer says `{}`", w.1)));
        pages.insert(page);
    }

    let known = WAYS.iter().map(|w| w.0).chain(DECLARATIONS.iter().copied());
    wrong.extend(known.filter(|page| !pages.contains(*page)).map(|page| format!("{page}: no such page")));
    let handlers = WAYS.iter().flat_map(|w| w.2);
    wrong.extend(handlers.filter(|n| !CHECKED.contains(n)).map(|n| format!("handler {n} is not checked")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(pages.len() > 25);
}
