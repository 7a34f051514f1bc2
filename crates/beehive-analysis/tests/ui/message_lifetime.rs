#[derive(Message)]
struct Msg<'a> {
    a: &'a str,
}
