//! Methods with several versions between which `#[cfg]` decides: the map is derived from each of them.

use crate::{block, errors};

fn map_of(items: &str) -> (String, String) {
    let d = block(items);
    assert!(d.errors.is_empty(), "{items}\n{:?}", errors(&d));
    (d.handlers[0].map.to_string().replace(' ', ""), d.helpers.to_string().replace(' ', ""))
}

#[test]
fn each_version_of_a_method_has_its_map() {
    let (map, helpers) = map_of(
        "#[rcv] fn h(&mut self, m: &Msg) { self.touch(m.a, m.b); }
         #[cfg(unix)] fn touch(&mut self, a: u64, b: u64) { self.d.put(a, 1); }
         #[cfg(not(unix))] fn touch(&mut self, a: u64, b: u64) { self.e.put(b, 1); }",
    );
    assert!(map.contains("#[cfg(unix)]Self::__bh_map_touch_mm(m.a,__m);"), "{map}");
    assert!(map.contains("#[cfg(not(unix))]Self::__bh_map_touch_mm(m.b,__m);"), "{map}");
    assert!(helpers.contains("#[cfg(unix)]fn__bh_map_touch_mm<>(a:u64,"), "{helpers}");
    assert!(helpers.contains("#[cfg(not(unix))]fn__bh_map_touch_mm<>(b:u64,"), "{helpers}");
}

#[test]
fn a_method_with_one_version_keeps_its_condition() {
    let (map, helpers) = map_of(
        "#[rcv] fn h(&mut self, m: &Msg) { self.touch(m.a); } #[cfg(all())] fn touch(&mut self, a: u64) { self.d.put(a, 1); }",
    );
    assert!(map.contains("#[cfg(all())]Self::__bh_map_touch_m(m.a,__m);"), "{map}");
    assert!(helpers.contains("#[cfg(all())]fn__bh_map_touch_m"), "{helpers}");
}

#[test]
fn versions_that_call_versions_are_followed() {
    let (_, helpers) = map_of(
        "#[rcv] fn h(&mut self, m: &Msg) { self.outer(m.a); }
         #[cfg(test)] fn outer(&mut self, a: u64) { self.inner(a); }
         #[cfg(not(test))] fn outer(&mut self, a: u64) { self.inner(a + 1); }
         #[cfg(test)] fn inner(&mut self, a: u64) { self.d.put(a, 1); }
         #[cfg(not(test))] fn inner(&mut self, a: u64) { self.e.put(a, 1); }",
    );
    assert_eq!(helpers.matches("#[cfg(not(test))]Self::__bh_map_inner_m(").count(), 2, "{helpers}");
}

#[test]
fn the_cells_of_all_versions_are_reported() {
    let d = block(
        "#[rcv] fn h(&mut self, m: &Msg) { self.touch(m.a); }
         #[cfg(unix)] fn touch(&mut self, a: u64) { self.d.put(a, 1); }
         #[cfg(not(unix))] fn touch(&mut self, a: u64) { self.d.whole().clear(); }",
    );
    assert_eq!(d.handlers[0].kind, "centralized");
}

/// The last version by itself would be accepted.
#[test]
fn an_error_in_any_version_is_an_error() {
    for (name, items) in [
        (
            "a function that is pure in one version only",
            "#[rcv] fn h(&mut self, m: &Msg) { self.d.put(Self::pick(m.a), 1); }
             #[cfg(unix)] fn pick(a: u64) -> u64 { clock() + a }
             #[cfg(not(unix))] fn pick(a: u64) -> u64 { a }",
        ),
        (
            "a parameter from state that is a key in one version only",
            "#[rcv] fn h(&mut self, m: &Msg) { let v = *self.d.get(&m.a).unwrap(); self.touch(v); }
             #[cfg(unix)] fn touch(&mut self, a: u64) { self.e.put(a, 1); }
             #[cfg(not(unix))] fn touch(&mut self, a: u64) { self.e.put(1, a); }",
        ),
        (
            "`self` leaves one version",
            "#[rcv] fn h(&mut self, m: &Msg) { self.touch(m.a); }
             #[cfg(unix)] fn touch(&mut self, a: u64) { foo(self); }
             #[cfg(not(unix))] fn touch(&mut self, a: u64) { self.e.put(a, 1); }",
        ),
        (
            "one version changes its parameter",
            "#[rcv] fn h(&mut self, m: &Msg) { let c = Slot::from(m.a); self.fill(&c); self.d.put(c.get(), 1); }
             #[cfg(unix)] fn fill(&mut self, c: &Slot) { c.set(3); }
             #[cfg(not(unix))] fn fill(&mut self, c: &Slot) {}",
        ),
    ] {
        assert!(!block(items).errors.is_empty(), "{name}");
    }
}
