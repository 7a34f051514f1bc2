//! Queues (1.0.0, 5.2.2 and 5.3.4; 1.3.5, 7.2.2 and 7.3.6; 1.4.1, 7.3.5.10).

use super::experimenter::{Experimenter, ExperimenterQueue};
use super::number::QueueId;
use super::switch::ExperimenterProperty;
use crate::port_number::PortNo;
use crate::schema::{List, Port16, structure, tagged};

structure! {
    /// Requests the queues of a port (up to 1.3).
    pub struct QueueConfigRequest in Queue { port: PortNo }
    0 => [port as Port16, 2],
    1..=3 => [port, 4],
}

structure! {
    /// The queues of a port (up to 1.3).
    pub struct QueueConfig<'a> in Queue {
        port: PortNo,
        queues: List<'a, Queue<'a>>,
    }
    0 => [port as Port16, 6, queues],
    1..=3 => [port, 4, queues],
}

structure! {
    /// A queue (up to 1.3).
    pub struct Queue<'a> in Queue {
        queue_id: QueueId,
        /// Present since 1.2.
        port: PortNo,
        properties: List<'a, QueueProperty<'a>>,
    }
    0..=1 => [queue_id, len, 2, properties],
    2..=3 => [queue_id, port, len, 6, properties],
}

tagged! {
    /// A property of a queue (up to 1.3).
    pub enum QueueProperty<'a> in Queue, "queue property length", padded false, minimum 8 {
        /// The guaranteed minimum rate.
        MinRate(Rate) "min_rate" = [1 in 0..=3],
        /// The maximum rate.
        MaxRate(Rate) "max_rate" = [2 in 2..=3],
        /// An experimenter property.
        Experimenter(ExperimenterQueue<'a>) "experimenter" = [0xffff in 2..=3],
    }
}

structure! {
    /// A rate in tenths of a percent; a value above 1000 disables it.
    pub struct Rate in Queue { rate: u16 }
    0..=3 => [4, rate, 6],
    4.. => [rate, 2],
}

structure! {
    /// Requests a queue of a port, or all queues.
    pub struct QueueRequest in Queue {
        port: PortNo = PortNo::ANY,
        queue_id: QueueId = QueueId::ALL,
    }
    0 => [port as Port16, 2, queue_id],
    1.. => [port, queue_id],
}

structure! {
    /// The counters of a queue.
    pub struct QueueStatistics<'a> in Queue {
        port: PortNo,
        queue_id: QueueId,
        tx_bytes: u64,
        tx_packets: u64,
        tx_errors: u64,
        /// Lifetime of the queue in whole seconds (since 1.3).
        duration_sec: u32,
        /// Lifetime of the queue in nanoseconds beyond `duration_sec` (since 1.3).
        duration_nsec: u32,
        /// Present since 1.4.
        properties: List<'a, ExperimenterProperty<'a>>,
    }
    0 => [port as Port16, 2, queue_id, tx_bytes, tx_packets, tx_errors],
    1..=2 => [port, queue_id, tx_bytes, tx_packets, tx_errors],
    3 => [port, queue_id, tx_bytes, tx_packets, tx_errors, duration_sec, duration_nsec],
    4.. => [
        len, 6, port, queue_id, tx_bytes, tx_packets, tx_errors, duration_sec, duration_nsec, properties
    ],
}

structure! {
    /// The configuration of a queue (since 1.4).
    pub struct QueueDescription<'a> in Queue {
        port: PortNo,
        queue_id: QueueId,
        properties: List<'a, QueueDescriptionProperty<'a>>,
    }
    4.. => [port, queue_id, len, 6, properties],
}

tagged! {
    /// A property of a queue (since 1.4).
    pub enum QueueDescriptionProperty<'a> in Property, "queue property length", padded true, minimum 4 {
        /// The guaranteed minimum rate.
        MinRate(Rate) "min_rate" = [1 in 4..],
        /// The maximum rate.
        MaxRate(Rate) "max_rate" = [2 in 4..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 4..],
    }
}
