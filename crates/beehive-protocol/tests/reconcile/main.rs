//! The steps of colonies that follow from the registry: random walks, and a directed test for each fence.

mod fences;
mod walk;
mod world;
