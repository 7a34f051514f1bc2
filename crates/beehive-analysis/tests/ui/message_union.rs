#[derive(Message)]
union U {
    a: u64,
}
