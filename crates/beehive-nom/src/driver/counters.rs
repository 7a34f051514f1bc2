//! Counters of switch connections: each is written by one driver and can be read by any thread.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// Counters of one connection.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[doc = $doc])* pub $name: AtomicU64,)* }

        /// A copy of [`Counters`] at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct CountersNow { $($(#[doc = $doc])* pub $name: u64,)* }

        impl Counters {
            /// Returns the current values.
            pub fn now(&self) -> CountersNow {
                CountersNow { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl CountersNow {
            /// Adds the values of another connection.
            pub fn add(&mut self, other: &CountersNow) {
                $(self.$name += other.$name;)*
            }

            /// Returns each counter with its name and description.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), concat!($($doc),*).trim_ascii(), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Bytes read from switches.
    read_bytes,
    /// Bytes written to switches.
    written_bytes,
    /// Messages read from switches.
    messages,
    /// Packets that came up.
    packet_ins,
    /// Packets that came up and waited at their driver because the hive was behind.
    packet_ins_waited,
    /// Packets that came up and were dropped because the hive was behind for longer than they may wait.
    packet_ins_shed,
    /// Packets that came up before the switch was set up, and were dropped.
    packet_ins_early,
    /// Packets that came up malformed in themselves: from no single port.
    packet_ins_odd,
    /// Packets sent out.
    packet_outs,
    /// Packets not sent out because only their start was there.
    packet_outs_cut_off,
    /// Packets not sent out because the switch keeps no such packet any more.
    packet_outs_stale,
    /// Packets not sent out because the switch does not read.
    packet_outs_dropped,
    /// Flows installed.
    flows_installed,
    /// Withdrawals of flows.
    flows_withdrawn,
    /// Commands that the switch's version cannot express.
    commands_refused,
    /// Commands lost because too many waited for a switch; what it has is compared with what it should have after that.
    commands_lost,
    /// Errors that switches reported.
    errors,
    /// Ports that changed.
    port_changes,
    /// Flows that switches reported as gone.
    flows_removed,
    /// Messages of no use here: unknown, not asked for, or a controller's own.
    messages_ignored,
    /// Keep-alive requests sent.
    echoes,
    /// Connections refused because the switch showed no certificate that is trusted, or another node's, or spoke no TLS.
    untrusted,
    /// Connections refused because the switch said to be a node that is not one of those that may connect.
    unlisted,
}

impl Counters {
    /// Adds to a counter. There is only one writer, so a load and a store suffice.
    #[inline(always)]
    pub fn add(counter: &AtomicU64, count: u64) {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_names_and_meanings() {
        let counters = Counters::default();
        Counters::add(&counters.packet_ins, 3);
        let mut sum = counters.now();
        sum.add(&counters.now());
        assert_eq!(sum.packet_ins, 6);

        assert!(
            sum.named().any(|(name, meaning, n)| name == "packet_ins"
                && meaning == "Packets that came up."
                && n == 6)
        );
    }
}
