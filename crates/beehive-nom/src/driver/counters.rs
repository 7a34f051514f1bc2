//! Counters of switch connections. Each counter is written by one driver and can be read by any thread.

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
    /// Packet-ins received.
    packet_ins,
    /// Packet-ins queued in their driver because the hive was overloaded.
    packet_ins_waited,
    /// Packet-ins dropped because the hive was overloaded for longer than packets are queued.
    packet_ins_shed,
    /// Packet-ins dropped because the handshake was not complete.
    packet_ins_early,
    /// Packet-ins ignored because another hive controls the switch.
    packet_ins_standby,
    /// Packet-ins ignored because of an invalid input port.
    packet_ins_odd,
    /// Packet-outs sent.
    packet_outs,
    /// Packet-outs not sent because the switch had truncated the packet.
    packet_outs_cut_off,
    /// Packet-outs not sent because the switch no longer buffered the packet.
    packet_outs_stale,
    /// Packet-outs dropped because the switch reads too slowly.
    packet_outs_dropped,
    /// Flow installations sent.
    flows_installed,
    /// Flow withdrawals sent.
    flows_withdrawn,
    /// Commands not sent because the OpenFlow version of the switch cannot express them.
    commands_refused,
    /// Commands lost because the command queue of a switch overflowed; its flow table is then resynchronized.
    commands_lost,
    /// Errors reported by switches.
    errors,
    /// Port changes reported by switches.
    port_changes,
    /// Flow removals reported by switches.
    flows_removed,
    /// Messages ignored because they were unknown, unsolicited, or of a type that only controllers send.
    messages_ignored,
    /// Echo requests sent to switches.
    echoes,
    /// Connections refused because the peer did not speak TLS, or presented no trusted certificate or the
    /// certificate of another node.
    untrusted,
    /// Connections refused because the datapath id is not on the list of allowed switches.
    unlisted,
}

impl Counters {
    /// Adds `count` to a counter. Each counter has only one writer, so a load and a store suffice.
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
                && meaning == "Packet-ins received."
                && n == 6)
        );
    }
}
