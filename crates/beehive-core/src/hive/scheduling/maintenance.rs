//! The periodic task that retires idle bees and ended lanes, and writes pending acknowledgments to the logs.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::route::recovery;
use std::sync::Arc;
use std::time::Duration;

/// Every 100 ms until the hive stops: tries to retire idle bees, logs pending acknowledgments and messages
/// consumed without effect, and retires ended lanes. Logs the time at longer intervals.
pub(crate) async fn maintain(hive: Arc<HiveInner>) {
    const PERIOD: Duration = Duration::from_millis(100);
    while !hive.is_stopped() {
        tokio::select! {
            biased;
            () = hive.platform.sleep(PERIOD) => {}
            () = hive.stopping.notified() => {}
        }

        let apps: Vec<_> = hive.apps.read().clone();
        for app in &apps {
            app.clone().retire_idle(&hive);
        }
        if let Some(logs) = &hive.logs {
            logs.log_consumed();
            logs.log_time(hive.now());
            if let Some(links) = &hive.links {
                links.say_floors(|lane, app| logs.lanes.floor_of_sender(lane, app))
            }
            let lanes = logs.lanes.take_retired();
            if let Some(links) = &hive.links {
                links.say_retired(&lanes)
            }
            for app in apps {
                app.lanes_ended(&lanes, &hive)
            }
            recovery::retire_lanes(&hive, lanes)
        }
    }
}
