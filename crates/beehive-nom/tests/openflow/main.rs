//! The OpenFlow driver over real TCP: how it greets, serves, refuses, and what hostile switches can do to it.

extern crate beehive_core as beehive;

mod bursts;
mod flows;
mod greeting;
mod hostile;
mod identity;
mod odd;
mod peer;
mod service;
mod shedding;
mod stall;
mod tls;
