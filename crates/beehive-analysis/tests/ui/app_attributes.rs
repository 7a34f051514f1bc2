#[derive(App)]
#[app(replication = 0)]
struct A;

#[derive(App)]
#[app(name = "Not Kebab")]
struct B;

#[derive(App)]
#[app(persistent)]
struct C;

#[derive(App)]
enum D {}

#[derive(App)]
struct E(Dict<u64, u64>);
