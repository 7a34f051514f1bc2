//! Several hives that form a cluster: how they reach each other.

pub mod transport;
#[cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "it exists for real sockets: a simulated cluster has another transport"
    )
)]
pub mod wire;
