use beehive::prelude::*;

#[derive(Message)]
#[message(reply = Vec<String>)]
struct List(u64);

#[derive(App)]
struct Names {
    names: Dict<u64, u64>,
}

#[handlers]
impl Names {
    #[rcv]
    fn list(&mut self, msg: &List, _ctx: &mut Ctx) -> Result<()> { // a mistake
        self.names.get(&msg.0).ok_or("unknown")?;
        Ok(())
    }
}

fn main() {
    let _ = Hive::builder().app::<Names>();
}
