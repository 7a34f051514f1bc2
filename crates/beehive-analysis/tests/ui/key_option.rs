#[derive(Key)]
#[key(short)]
struct K(u64);
