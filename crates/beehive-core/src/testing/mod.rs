//! For tests: what maps say and what handlers really touch, and seams that misbehave.

mod journal;
pub mod maps;

pub use journal::TestJournal;
