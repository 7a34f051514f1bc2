#[derive(Message)]
#[message(reply = Option<&'static str>)]
struct Name(u64);

#[derive(Message)]
#[message(reply = u64, error = Option<&'static str>)]
struct Age(u64);
