use beehive::prelude::*;

#[derive(Message)]
#[message(reply = &'static str)] // a mistake
struct Name(u64);

#[derive(Message)]
#[message(reply = Vec<&'static str>)] // a mistake
struct Names(u64);

#[derive(App)]
struct Shop {
    names: Dict<u64, String>,
}

#[handlers]
impl Shop {
    #[rcv]
    fn name(&mut self, Name(item): &Name) -> Option<String> {
        self.names.get(item).cloned()
    }

    #[rcv]
    fn names(&mut self, Names(item): &Names) -> Vec<String> {
        self.names.get(item).cloned().into_iter().collect()
    }
}
