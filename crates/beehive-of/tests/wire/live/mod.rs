//! A running `ovs-vswitchd`, in every version: it does what we encode, and we decode what it sends.

mod connection;
mod events;
mod flows;
mod queries;
mod requests;
mod switch;
