use beehive::prelude::*;

#[derive(Message)]
struct Sold(u64);

#[derive(App)]
enum Shop { // a mistake
    Open,
    Closed,
}

#[handlers]
impl Shop {
    #[rcv]
    fn sold(&mut self, _msg: &Sold, ctx: &mut Ctx) {
        ctx.emit(Sold(1))
    }
}

fn main() {
    let _ = Hive::builder().app::<Shop>();
}
