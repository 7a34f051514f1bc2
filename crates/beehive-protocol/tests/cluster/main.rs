//! A cluster in one thread: hives with replicas of the registry that lag, colonies whose leaders change without being told,
//! and a network that loses, doubles and reorders. The same seed gives the same trace.
//!
//! ```text
//!   world.rs      the cluster, and the faults           leader.rs    what a leader does about bees and lanes
//!   checks.rs     the checkers                          messages.rs  what a leader does with messages
//!   mutant.rs     rules that a test breaks              directed.rs  directed tests of rules that walks rarely reach
//!   walk.rs       random walks                          fences.rs    a directed test for each fence
//!   table.rs      which checker finds which mutant      steps.rs     tests of single steps
//! ```

mod checks;
mod directed;
mod fences;
mod leader;
mod messages;
mod mutant;
#[path = "../partial/mod.rs"]
mod partial;
mod steps;
mod table;
mod walk;
mod world;
