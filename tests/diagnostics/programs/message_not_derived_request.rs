use beehive::prelude::*;

struct Look(u64);

async fn ask(hive: &Hive) -> u64 {
    hive.request(Look(1)).await.unwrap_or_default() // a mistake
}

async fn ask_soon(hive: &Hive) -> u64 {
    let limit = Duration::from_secs(1);
    hive.request_within(limit, Look(1)).await.unwrap_or_default() // a mistake
}
