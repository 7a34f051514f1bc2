//! Tests against a running `ovs-vswitchd` in every version.

mod connection;
mod events;
mod flows;
mod queries;
mod requests;
mod switch;
