//! Tracks the packets that a switch buffers. Each buffer can be used once. Beyond the limit, the oldest buffers are
//! forgotten, as they are in the switch.

use crate::limits;
use std::collections::{BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub(super) struct Buffers {
    kept: BTreeSet<u32>,
    /// Buffer ids, oldest first, including the ids of buffers that have been used.
    order: VecDeque<u32>,
}

impl Buffers {
    /// Records that the switch buffers another packet.
    pub(super) fn keep(&mut self, buffer: u32) {
        if !self.kept.insert(buffer) {
            return;
        }

        self.order.push_back(buffer);
        while self.kept.len() > limits::BUFFERS_PER_NODE_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }

        if self.order.len() > 2 * limits::BUFFERS_PER_NODE_MAX {
            let kept = &self.kept;
            self.order.retain(|buffer| kept.contains(buffer))
        }
    }

    /// Uses a buffer. Returns whether it was available.
    pub(super) fn take(&mut self, buffer: u32) -> bool {
        self.kept.remove(&buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u32 = limits::BUFFERS_PER_NODE_MAX as u32;

    #[test]
    fn each_is_good_for_one_use() {
        let mut buffers = Buffers::default();
        buffers.keep(7);
        assert!(buffers.take(7) && !buffers.take(7));
    }

    #[test]
    fn those_that_nobody_uses_keep_no_others_out() {
        let mut buffers = Buffers::default();
        (0..MAX + 1000).for_each(|buffer| buffers.keep(buffer));
        assert!(!buffers.take(0) && buffers.take(MAX + 999) && buffers.kept.len() < MAX as usize);
    }

    #[test]
    fn nothing_grows_when_all_are_used() {
        let mut buffers = Buffers::default();
        for buffer in 0..5 * MAX {
            buffers.keep(buffer);
            assert!(buffers.take(buffer))
        }
        assert!(buffers.kept.is_empty() && buffers.order.len() <= 2 * MAX as usize + 1);
    }
}
