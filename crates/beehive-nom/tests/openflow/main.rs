//! Tests the OpenFlow driver over real TCP connections: handshake, service, refusals, and hostile switches.

extern crate beehive_core as beehive;

mod established;
mod flow_backpressure;
mod flows;
mod full_sockets;
mod handshake;
mod hostile;
mod identity;
mod invalid_messages;
mod peer;
mod stalled_journal;
mod storm;
mod stuck_bee;
mod tls;
