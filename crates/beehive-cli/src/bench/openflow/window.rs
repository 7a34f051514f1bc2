//! Tracks the outstanding packet-ins of one switch.

/// A packet-in that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Time of sending, in nanoseconds on the worker's clock.
    pub(super) at_ns: u64,
    /// Number of the host that sent the packet.
    pub(super) host: u16,
    /// Port of the destination; 0 for an announcement.
    pub(super) port: u16,
    /// Number of the attempt to announce the host, counted from 1, or 0 for other packets.
    pub(super) attempt: u8,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Sequence number of the packet-in; 0 if the slot is free.
    sequence: u64,
    sent: Sent,
}

/// A fixed number of slots for outstanding packet-ins. A packet-in carries its slot and sequence number, so
/// answers are matched in constant time and in any order. A repeated or late answer finds the slot free or with
/// another sequence number.
#[derive(Debug)]
pub(super) struct Window {
    places: Vec<Slot>,
    /// Free slots.
    free: Vec<u16>,
    /// Sequence number of the last packet-in.
    last: u64,
}

impl Window {
    /// Returns a window with this number of slots, at most [`super::limits::WINDOW_MAX`].
    pub(super) fn new(places: u32) -> Self {
        let empty = Slot { sequence: 0, sent: Sent { at_ns: 0, host: 0, port: 0, attempt: 0 } };
        let places = places.clamp(1, super::limits::WINDOW_MAX) as u16;
        Self { places: vec![empty; usize::from(places)], free: (0..places).rev().collect(), last: 0 }
    }

    /// Returns the number of outstanding packet-ins.
    pub(super) fn outstanding(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes a slot for a packet-in. Returns the slot and the sequence number, or `None` if the window is full.
    #[inline]
    pub(super) fn take(&mut self, sent: Sent) -> Option<(u16, u64)> {
        let place = self.free.pop()?;
        self.last += 1;
        self.places[usize::from(place)] = Slot { sequence: self.last, sent };
        Some((place, self.last))
    }

    /// Returns the buffer id for a slot and a sequence number. The
    /// id is never `NO_BUFFER`, because slots are below 32 768.
    pub(super) fn buffer(place: u16, sequence: u64) -> u32 {
        ((sequence & 0xffff) as u32) << 16 | u32::from(place)
    }

    /// Removes the packet-in with this slot and sequence number. Returns `None` if it is not outstanding.
    #[inline]
    pub(super) fn answer(&mut self, place: u16, sequence: u64) -> Option<Sent> {
        let slot = self.places.get_mut(usize::from(place))?;
        if slot.sequence != sequence || sequence == 0 {
            return None;
        }
        slot.sequence = 0;
        self.free.push(place);
        Some(slot.sent)
    }

    /// Removes the packet-in with this buffer id. Returns `None` if it is not outstanding.
    #[inline]
    pub(super) fn answer_buffer(&mut self, buffer: u32) -> Option<Sent> {
        let place = (buffer & 0xffff) as u16;
        let sequence = self.places.get(usize::from(place))?.sequence;
        if (sequence & 0xffff) as u32 != buffer >> 16 {
            return None;
        }
        self.answer(place, sequence)
    }

    /// Removes packet-ins sent at or before `oldest_ns` and passes each to `lost`.
    pub(super) fn expire(&mut self, oldest_ns: u64, mut lost: impl FnMut(Sent)) {
        if self.free.len() == self.places.len() {
            return;
        }

        for (place, slot) in self.places.iter_mut().enumerate() {
            if slot.sequence != 0 && slot.sent.at_ns <= oldest_ns {
                slot.sequence = 0;
                self.free.push(place as u16);
                lost(slot.sent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at_ns: u64) -> Sent {
        Sent { at_ns, host: 7, port: 2, attempt: 0 }
    }

    #[test]
    fn each_packet_in_is_answered_once_in_any_order() {
        let mut window = Window::new(3);
        let taken: Vec<_> = (1..=3).map(|t| window.take(sent(t)).unwrap()).collect();
        assert_eq!(window.take(sent(4)), None);
        for (i, (place, sequence)) in taken.iter().enumerate().rev() {
            assert_eq!(window.answer(*place, *sequence), Some(sent(i as u64 + 1)));
            assert_eq!(window.answer(*place, *sequence), None, "answered twice");
        }

        let (place, sequence) = window.take(sent(9)).unwrap();
        assert_eq!(
            window.answer(place, sequence - 3),
            None,
            "an answer to an earlier packet-in in the same slot"
        );
        assert_eq!(window.answer(999, 1), None);
        assert_eq!(window.answer(place, 0), None);

        assert_eq!(window.outstanding(), 1);
    }

    #[test]
    fn a_buffer_id_finds_its_packet_in_and_no_later_one() {
        let mut window = Window::new(1);
        let (place, sequence) = window.take(sent(1)).unwrap();
        let buffer = Window::buffer(place, sequence);
        assert_eq!(window.answer_buffer(buffer), Some(sent(1)));
        assert_eq!(window.answer_buffer(buffer), None);
        window.take(sent(2)).unwrap();
        assert_eq!(window.answer_buffer(buffer), None);
        assert_eq!(window.answer_buffer(super::super::wire::NO_BUFFER), None);
    }

    #[test]
    fn timed_out_packet_ins_free_their_slots() {
        let mut window = Window::new(2);
        let (place, sequence) = window.take(sent(10)).unwrap();
        window.take(sent(20)).unwrap();
        let mut lost = Vec::new();
        window.expire(10, |s| lost.push(s.at_ns));
        assert_eq!((lost, window.outstanding()), (vec![10], 1));
        assert_eq!(window.answer(place, sequence), None, "too late");
        assert!(window.take(sent(30)).is_some());
    }
}
