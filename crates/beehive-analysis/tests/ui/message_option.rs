#[derive(Message)]
#[message(answer = u64)]
struct M(u64);
