use beehive::prelude::*;

#[rcv]
struct Sold(u64); // a mistake
