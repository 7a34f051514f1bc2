//! Errors as the user sees them: where they are collected, which page of the guide explains each, and how the compiler
//! is kept from reporting the same mistake again.

pub(crate) mod diagnostics;
pub(crate) mod missing;
pub(crate) mod pages;
pub(crate) mod similar;
