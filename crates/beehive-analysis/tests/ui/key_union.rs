#[derive(Key)]
union U {
    a: u64,
}
