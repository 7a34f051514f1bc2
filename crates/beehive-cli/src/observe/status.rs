//! The part of a hive's status needed by the views, parsed from JSON.

use serde::Deserialize;

/// The answer to `GET /api/v1/status`.
#[derive(Deserialize)]
pub(super) struct Served {
    pub(super) hive: Status,
}

/// Status of the hive. See `beehive_core::Status` for the fields.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Status {
    pub(super) hive: u32,
    pub(super) uptime_seconds: u64,
    pub(super) io_bees: u64,
    pub(super) dead_letters: u64,
    pub(super) apps: Vec<App>,
    pub(super) emits: Vec<Emit>,
}

/// An app's status.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct App {
    pub(super) name: String,
    pub(super) replication: u32,
    pub(super) replication_asked: u32,
    pub(super) bees: u64,
    pub(super) bees_merged: u64,
    pub(super) handlers: Vec<Handler>,
    pub(super) busiest: Vec<Bee>,
}

/// A handler's status.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Handler {
    pub(super) name: String,
    pub(super) message: String,
    pub(super) answer: String,
    pub(super) messages: u64,
    pub(super) dropped: u64,
    pub(super) errors: u64,
    pub(super) panics: u64,
    pub(super) answered: u64,
    pub(super) waited: u64,
}

/// A bee's status.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Bee {
    pub(super) bee: u64,
    pub(super) messages: u64,
    pub(super) waiting: u64,
    pub(super) cells: u64,
    pub(super) nanoseconds_per_message: Option<u64>,
    pub(super) state_bytes: Option<u64>,
    pub(super) from: Vec<Peer>,
}

/// A sender of messages to a bee.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Peer {
    pub(super) bee: Option<u64>,
    pub(super) app: Option<String>,
    pub(super) messages: u64,
}

/// Number of messages of one type emitted by a handler.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Emit {
    pub(super) app: String,
    pub(super) handler: String,
    pub(super) upon: String,
    pub(super) message: String,
    pub(super) count: u64,
}

impl Status {
    /// Subtracts the counters of `earlier`. Gauges keep their current value.
    pub(super) fn since(mut self, earlier: &Status) -> Status {
        let less = |now: &mut u64, then: u64| *now = now.saturating_sub(then);
        less(&mut self.uptime_seconds, earlier.uptime_seconds);
        less(&mut self.dead_letters, earlier.dead_letters);
        for app in &mut self.apps {
            let Some(then) = earlier.apps.iter().find(|a| a.name == app.name) else { continue };
            less(&mut app.bees_merged, then.bees_merged);
            for handler in &mut app.handlers {
                let Some(then) = then.handlers.iter().find(|h| h.name == handler.name) else { continue };
                less(&mut handler.messages, then.messages);
                less(&mut handler.dropped, then.dropped);
                less(&mut handler.errors, then.errors);
                less(&mut handler.panics, then.panics);
                less(&mut handler.answered, then.answered);
                less(&mut handler.waited, then.waited);
            }

            for bee in &mut app.busiest {
                // a bee that was not among the busiest earlier had few messages at that time: keep its total
                let Some(then) = then.busiest.iter().find(|b| b.bee == bee.bee) else { continue };
                less(&mut bee.messages, then.messages);
                for peer in &mut bee.from {
                    let Some(then) = then.from.iter().find(|p| (p.bee, &p.app) == (peer.bee, &peer.app))
                    else {
                        continue;
                    };
                    less(&mut peer.messages, then.messages);
                }
            }
        }
        for emit in &mut self.emits {
            let same =
                |e: &&Emit| (&e.app, &e.handler, &e.message) == (&emit.app, &emit.handler, &emit.message);
            if let Some(then) = earlier.emits.iter().find(same) {
                less(&mut emit.count, then.count);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_taken_of_counts_and_not_of_sizes() {
        let at = |messages: u64| Status {
            uptime_seconds: messages,
            apps: vec![App {
                name: "a".into(),
                bees: 7,
                handlers: vec![Handler { name: "h".into(), messages, ..Handler::default() }],
                busiest: vec![Bee {
                    bee: 1,
                    messages,
                    from: vec![Peer { messages, ..Peer::default() }],
                    ..Bee::default()
                }],
                ..App::default()
            }],
            emits: vec![Emit { count: messages, ..Emit::default() }],
            ..Status::default()
        };

        let status = at(30).since(&at(10));
        let app = &status.apps[0];
        assert_eq!((status.uptime_seconds, app.bees, app.handlers[0].messages), (20, 7, 20));
        assert_eq!(
            (app.busiest[0].messages, app.busiest[0].from[0].messages, status.emits[0].count),
            (20, 20, 20)
        );
    }
}
