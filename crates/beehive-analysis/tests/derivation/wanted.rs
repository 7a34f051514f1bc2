//! Handlers that the authors of a suite of apps wanted to write, and whether the analysis accepts them.

use crate::{block, errors};

/// The analysis accepts the body, but a type refuses it: the field would have to be something other than a
/// dictionary.
const TYPES: bool = true;
/// Purpose, body of the impl block, whether the analysis accepts it.
const WANTS: &[(&str, &str, bool)] = &[
    (
        "follow a path's hops to its links",
        "#[rcv] fn f(&mut self, m: &M) { for l in self.paths.get(&m.id).unwrap().hops.iter() { self.links.get(l); } }",
        false,
    ),
    (
        "move an index entry",
        "#[rcv] fn f(&mut self, m: &M) { if let Some(old) = self.by_mac.put(m.mac, m.ip) { self.by_ip.remove(&old); } }",
        false,
    ),
    (
        "tenant of a port, then the tenant's cell",
        "#[rcv] fn f(&mut self, m: &M) { let t = self.ports.at(m.node).get(&m.port).copied(); if let Some(t) = t { self.tenants.at(t).insert(m.src, m.port); } }",
        false,
    ),
    (
        "combinator over a state value",
        "#[rcv] fn f(&mut self, m: &M, ctx: &mut Ctx) { if let Some(d) = self.nodes.get(&m.node).and_then(|n| n.master) { ctx.emit(d); } }",
        true,
    ),
    (
        "combinator that touches state",
        "#[rcv] fn f(&mut self, m: &M) { let v = m.opt.map(|k| self.d.get(&k).copied()); }",
        false,
    ),
    (
        "optional key with `if let`",
        "#[rcv] fn f(&mut self, m: &M) { if let Some(k) = m.opt { self.d.get(&k); } }",
        true,
    ),
    ("free function makes the key", "#[rcv] fn f(&mut self, m: &M) { self.d.get(&bucket(&m.key)); }", false),
    ("the same, promised", "#[rcv] fn f(&mut self, m: &M) { self.d.get(&pure!(bucket(&m.key))); }", true),
    (
        "a method of the message makes the key",
        "#[rcv] fn f(&mut self, m: &M) { self.d.get(&m.bucket()); }",
        true,
    ),
    (
        "configuration in the key",
        "#[rcv] fn f(&mut self, m: &M) { self.d.get(&(m.hash % self.config.buckets)); }",
        false,
    ),
    ("constant in the key", "#[rcv] fn f(&mut self, m: &M) { self.d.get(&(m.hash % BUCKETS)); }", true),
    (
        "rows to a free function",
        "#[rcv] fn f(&mut self, m: &M) { reconcile(self.flows.at(m.node), &m.flows); }",
        true,
    ),
    (
        "rows to an associated function",
        "#[rcv] fn f(&mut self, m: &M) { Self::reconcile(self.flows.at(m.node), &m.flows); } fn reconcile(a: &mut R, b: &F) {}",
        true,
    ),
    (
        "dictionary to a function",
        "#[rcv] fn f(&mut self, m: &M) { reconcile(&mut self.flows, &m.flows); }",
        TYPES,
    ),
    (
        "rows of two tables at once",
        "#[rcv] fn f(&mut self, m: &M) { let a = self.a.at(m.node); let b = self.b.at(m.node); for (k, v) in a.iter() { b.insert(*k, *v); } }",
        true,
    ),
    (
        "a helper that returns rows",
        "#[rcv] fn f(&mut self, m: &M) { let r = self.rows(m.node); r.insert(m.port, 1); } fn rows(&mut self, n: NodeId) -> &mut Rows { self.flows.at(n) }",
        true,
    ),
    (
        "a helper that picks a key",
        "#[rcv] fn f(&mut self, m: &M) { let k = self.pick(m); self.d.get(&k); } fn pick(&self, m: &M) -> u64 { m.a + 1 }",
        false,
    ),
    (
        "the same without self",
        "#[rcv] fn f(&mut self, m: &M) { let k = Self::pick(m); self.d.get(&k); } fn pick(m: &M) -> u64 { m.a + 1 }",
        true,
    ),
    (
        "two handlers for one message",
        "#[rcv] fn f(&mut self, m: &M) { self.d.get(&m.a); } #[rcv] fn g(&mut self, m: &M) { self.e.get(&m.b); }",
        false,
    ),
    (
        "a view, then own cell",
        "#[rcv] fn f(&mut self, m: &M) { if self.rules.shared().iter().any(|r| r.fits(m)) { self.d.put(m.a, 1); } }",
        true,
    ),
    (
        "key out of a view",
        "#[rcv] fn f(&mut self, m: &M) { if let Some(t) = self.ports.shared().get(&m.port) { self.d.put(*t, 1); } }",
        false,
    ),
    (
        "iterator adaptor over message data",
        "#[rcv] fn f(&mut self, m: &M) { for k in m.items.iter().filter(|i| i.up).map(|i| i.id) { self.d.put(k, 1); } }",
        true,
    ),
    (
        "early return from a match on the message",
        "#[rcv] fn f(&mut self, m: &M) { let P::Arp { ip, .. } = m.p else { return }; self.d.put(ip, 1); }",
        true,
    ),
    (
        "time in the key",
        "#[rcv] fn f(&mut self, m: &M, ctx: &mut Ctx) { self.d.put(ctx.now() / 1000, 1); }",
        false,
    ),
    (
        "origin in the key",
        "#[rcv] fn f(&mut self, m: &M, ctx: &mut Ctx) { self.d.put(ctx.origin(), 1); }",
        true,
    ),
    (
        "a pure half of an or",
        "#[rcv] fn f(&mut self, m: &M) { if m.is_lldp() || self.trunks.at(m.node).contains(&m.port) { return } self.d.put(m.a, 1); }",
        true,
    ),
    ("generic handler", "#[rcv] fn f<T: Ev>(&mut self, m: &T) { self.d.put(m.key(), 1); }", false),
    ("logging with state", "#[rcv] fn f(&mut self, m: &M) { info!(\"{:?}\", self.d.get(&m.a)); }", true),
    (
        "try block on state",
        "#[rcv] fn f(&mut self, m: &M) -> Result { let n = self.nodes.get(&m.node).ok_or(Gone)?; self.flows.at(m.node).insert(m.id, n.x); Ok(()) }",
        true,
    ),
    (
        "swap two cells of the message",
        "#[rcv] fn f(&mut self, m: &M) { let a = self.d.remove(&m.a); let b = self.d.remove(&m.b); if let (Some(a), Some(b)) = (a, b) { self.d.put(m.a, b); self.d.put(m.b, a); } }",
        true,
    ),
    (
        "transfer with a check",
        "#[rcv] fn f(&mut self, m: &M) -> Result { if *self.d.get(&m.from).ok_or(No)? < m.n { return Err(No.into()) } *self.d.entry(m.from) -= m.n; *self.d.entry(m.to) += m.n; Ok(()) }",
        true,
    ),
    (
        "all rows below a prefix of the key",
        "#[rcv] fn f(&mut self, m: &M) { for (k, v) in self.d.range(m.a..m.b) { } }",
        TYPES,
    ),
    (
        "count all cells",
        "#[rcv] fn f(&mut self, m: &M, ctx: &mut Ctx) { ctx.emit(self.d.shared().iter().count()); }",
        true,
    ),
];

#[test]
fn verdicts() {
    let mut wrong = vec![];
    for (what, items, accepted) in WANTS {
        let found = errors(&block(items));
        if found.is_empty() != *accepted {
            wrong.push(format!("{what}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
