//! The periodic task that retires idle bees and ended lanes, and writes pending acknowledgments to the logs.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::ownership::foreign;
use crate::mutant::Mutant;
use std::sync::Arc;
use std::time::Duration;

/// How often acknowledgments are logged.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// Every 100 ms until the hive stops: tries to retire idle bees, logs pending acknowledgments and messages
/// consumed without effect, and retires ended lanes. Logs the time at longer intervals.
pub(crate) async fn maintain(hive: Arc<HiveInner>) {
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
            logs.log_consumed_if_due();
            logs.log_time(hive.now());
            if let Some(links) = &hive.links {
                let lanes = &logs.lanes;
                links.say_floors(
                    |lane| lanes.is_of_this_hive(lane),
                    |lane, app| lanes.floor_of_sender(lane, app),
                )
            }
            let mut lanes = logs.lanes.take_retired();
            if let Some(links) = &hive.links {
                links.say_retired(&lanes)
            }
            for app in apps {
                app.lanes_ended(&lanes, &hive)
            }
            if hive.links.is_some() {
                // the logs forget the lane of a bee when the registry says that it has ended
                lanes.retain(|lane| lane.is_outside() || hive.breaks(Mutant::RetiredUnheard));
                foreign::look_after(&hive)
            }
            foreign::retire_lanes(&hive, lanes)
        }
    }
}
