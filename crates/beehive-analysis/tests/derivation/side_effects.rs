//! Side effects must not run in the map: calls that act on statics, channels, locks and thread locals are
//! refused where a key needs their result, and left out of the map otherwise.

use crate::{errors, handler};

#[test]
fn a_key_from_something_that_is_not_data_of_the_message_is_refused() {
    for body in [
        "self.d.put(IDS.next(), 1);",
        "let n = COUNT.get(); self.d.put(n, 1);",
        "let n = COUNT.take(); if n > 3 { self.d.put(m.a, 1); self.d.put(n, 1); }",
        "let ids = &IDS; self.d.put(ids.advance(), 1);",
        "let q = crate::QUEUE.clone(); if let Some(k) = q.pop() { self.d.put(k, 1); }",
        "while let Some(k) = QUEUE.pop() { self.d.put(k, 1); }",
        "let n = m.a.tally(&HITS); self.d.put(n, 1);",
        "let n = Self::bump(&HITS); self.d.put(n, 1); } fn bump(hits: &Hits) -> u64 { hits.add()",
        "let tx = SENDER.get().unwrap(); let sent = tx.publish(m.a); self.d.put(sent, 1);",
        "let k = REGISTRY.register(m.name.clone()); self.d.put(k, 1);",
        "let k = { static IDS: Ids = Ids::new(); IDS.next() }; self.d.put(k, 1);",
        "let client = Client::new(); client.publish(m.a); self.d.put(client.id(), 1);",
        "let log: Log = Default::default(); for x in &m.items { log.record(*x); } self.d.put(log.id(), 1);",
        "let ch = Channel::new(); let k = ch.send(m.a); self.d.put(k, 1);",
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains("is not a function of the message")), "{body}\n{found:?}");
    }
}

#[test]
fn a_condition_on_a_side_effect_visits_both_sides_and_does_not_run_it() {
    for (body, call) in [
        ("if QUEUE.push(m.a) { self.d.put(m.a, 1); }", "push"),
        ("let ok = SENDER.publish(m.a).is_ok(); if ok { self.d.put(m.a, 1); }", "publish"),
        ("match SLOTS.claim(m.a) { Some(_) => { self.d.put(m.a, 1); } None => {} }", "claim"),
        ("if m.reply.send(1).is_ok() { self.d.put(m.a, 1); }", "send"),
        ("if m.flag && LIMITER.admit(&m.name) { self.d.put(m.a, 1); }", "admit"),
        ("let s = &STATS; s.count(m.a); self.d.put(m.a, 1);", "count"),
        ("if self.d.contains(&m.a) || GATE.enter() { self.d.put(m.a, 1); }", "enter"),
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        let map = d.handlers[0].map.to_string();
        assert!(!map.contains(call) && map.contains("__bh_d"), "{body}\n{map}");
    }
}

#[test]
fn constants_are_read() {
    for body in [
        "self.d.put(m.a % BUCKETS, 1);",
        "if PORTS.contains(&m.a) { self.d.put(m.a, 1); }",
        "for p in PORTS.iter().filter(|p| **p > m.a) { self.d.put(*p, 1); }",
        "self.d.put(m.a.min(LIMIT), 1);",
        "self.d.put(LIMIT.min(m.a), 1);",
        "if let Some(k) = TABLE.get(m.a as usize) { self.d.put(*k, 1); }",
        "let n = LIMIT; if self.d.contains(&m.a) { ctx.emit(n.min(3)); } self.d.put(n + m.a, 1);",
        "if m.name.starts_with(&PREFIX) { self.d.put(m.a, 1); }",
        "self.d.put(u64::MAX.min(m.a), 1);",
        "self.d.put(Self::LIMIT.fit(m.a), 1);",
        "self.d.put(pure!(TABLE.lookup(m.a)), 1);",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    }
}
