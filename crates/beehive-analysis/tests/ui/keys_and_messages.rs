#[derive(Key)]
#[key(short)]
struct K(u64);

#[derive(Key)]
enum Never {}

#[derive(Message)]
#[message(answer = u64)]
struct M(u64);

#[derive(Message)]
union U {
    a: u64,
}
