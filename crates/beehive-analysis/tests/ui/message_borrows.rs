#[derive(Message)]
struct Sold {
    item: &'static str,
    amount: u64,
}
