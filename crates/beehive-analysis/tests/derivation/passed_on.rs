//! The block that is passed to the compiler: the block as written, except for the macro's attributes and the lines that
//! document the maps.

use beehive_analysis::derivation;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("tokens")
}

fn passed_on(block: TokenStream) -> String {
    let derived = derivation(TokenStream::new(), block).expect("parses");
    assert!(derived.errors.is_empty(), "{:?}", derived.errors);
    derived.block.to_string()
}

/// Returns the parts of a block as a `macro_rules!` macro passes them on, each in a group without delimiters.
fn grouped(block: &str, parts: &[&str]) -> TokenStream {
    let inside = parts.iter().map(|part| TokenTree::from(Group::new(Delimiter::None, tokens(part))));
    let body = Group::new(Delimiter::Brace, inside.collect());
    tokens(block).into_iter().chain([body.into()]).collect()
}

const HANDLER: &str =
    "#[inline] #[rcv] #[must_use] pub(crate) fn h(&mut self, m: &M) { self.d.put(m.a, Self::n(1)); }";
const HELPER: &str = "#[cold] fn n(x: u64) -> u64 { x }";

#[test]
fn a_method_keeps_all_but_the_attributes_of_the_macro() {
    let block = format!(
        "#[allow(dead_code)] impl T {{ #![allow(unused)] const N: [u8; {{ 1 }}] = {{ [0] }}; {HANDLER} {HELPER} }}"
    );
    let wanted = "#[allow(dead_code)] impl T { #![allow(unused)] const N: [u8; { 1 }] = { [0] }; \
        #[inline] #[must_use] #[doc = \"**Map:** sharded, `d[m.a]`.\"] pub(crate) fn h(&mut self, m: &M) { self.d.put(m.a, Self::n(1)); } \
        #[cold] fn n(x: u64) -> u64 { x } }";
    assert_eq!(passed_on(tokens(&block)), tokens(wanted).to_string());
}

#[test]
fn a_documented_handler_gets_a_paragraph_of_its_own() {
    let block = "impl T { #[doc = \"Adds.\"] #[rcv] fn h(&mut self, m: &M) { self.d.put(m.a, 1); } }";
    let wanted = "impl T { #[doc = \"Adds.\"] #[doc = \"\"] #[doc = \"**Map:** sharded, `d[m.a]`.\"] fn h(&mut self, m: &M) { self.d.put(m.a, 1); } }";
    assert_eq!(passed_on(tokens(block)), tokens(wanted).to_string());
}

#[test]
fn methods_from_a_macro_lose_the_attributes_of_the_macro_too() {
    let wanted = passed_on(tokens(&format!("impl T {{ {HANDLER} {HELPER} }}")));
    let both = format!("{HANDLER} {HELPER}");
    for parts in [&[HANDLER, HELPER][..], &[&both]] {
        let passed = passed_on(grouped("impl T", parts));
        assert!(!passed.contains("rcv"), "{passed}");
        // a group without delimiters is printed as its content
        assert_eq!(tokens(&passed).to_string(), tokens(&wanted).to_string());
    }
}

#[test]
fn an_attempt_is_passed_on_in_the_form_that_runs() {
    let passed = passed_on(tokens(
        "impl T { #[rcv] fn h(&mut self, m: &M) { let _ = attempt! { self.d.put(m.a, 1); Ok(()) }; } fn n(x: u64) -> u64 { x } }",
    ));
    assert!(passed.contains("attempt ! { @ in self ,"), "{passed}");
}
