//! The registry against a naive model, its memory, and its bytes.

mod bytes;
mod memory;
mod model;
mod random;
mod walk;
