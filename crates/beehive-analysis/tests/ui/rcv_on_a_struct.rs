#[rcv]
struct Sold(u64);
