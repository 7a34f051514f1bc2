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

/// A limited number of slots for outstanding packet-ins. A packet-in carries its slot and sequence number, so
/// answers are matched in constant time and in any order. A repeated or late answer finds the slot free or with
/// another sequence number.
#[derive(Debug)]
pub(super) struct Window {
    /// The slots used so far. Their number grows up to `places_max`.
    places: Vec<Slot>,
    places_max: usize,
    /// Free slots among `places`.
    free: Vec<u16>,
    /// Sequence number of the last packet-in.
    last: u64,
    /// No outstanding packet-in was sent before this time.
    oldest_ns: u64,
}

impl Window {
    /// Returns a window with this number of slots, at most [`super::limits::WINDOW_MAX`].
    pub(super) fn new(places: u32) -> Self {
        let places_max = places.clamp(1, super::limits::WINDOW_MAX) as usize;
        Self { places: Vec::new(), places_max, free: Vec::new(), last: 0, oldest_ns: 0 }
    }

    /// Returns the number of outstanding packet-ins.
    pub(super) fn outstanding(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes a slot for a packet-in. Returns the slot and the sequence number, or `None` if the window is full.
    #[inline]
    pub(super) fn take(&mut self, sent: Sent) -> Option<(u16, u64)> {
        let sequence = self.last + 1;
        let slot = Slot { sequence, sent };
        let place = match self.free.pop() {
            Some(place) => {
                self.places[usize::from(place)] = slot;
                place
            }
            None if self.places.len() < self.places_max => {
                self.places.push(slot);
                (self.places.len() - 1) as u16
            }
            None => return None,
        };
        self.last = sequence;
        Some((place, sequence))
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

    /// Removes packet-ins sent at or before `oldest_ns` and passes each to `lost`. Looks at the slots only if the oldest
    /// packet-in may be that old.
    pub(super) fn expire(&mut self, oldest_ns: u64, mut lost: impl FnMut(Sent)) {
        if self.free.len() == self.places.len() || self.oldest_ns > oldest_ns {
            return;
        }

        let mut oldest_left_ns = u64::MAX;
        for (place, slot) in self.places.iter_mut().enumerate() {
            if slot.sequence == 0 {
                continue;
            }
            if slot.sent.at_ns <= oldest_ns {
                slot.sequence = 0;
                self.free.push(place as u16);
                lost(slot.sent);
            } else {
                oldest_left_ns = oldest_left_ns.min(slot.sent.at_ns);
            }
        }

        // without an outstanding packet-in, the next one is sent later than those that have timed out
        self.oldest_ns = if oldest_left_ns == u64::MAX { oldest_ns } else { oldest_left_ns };
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

        // the times of the oldest are found again after each timeout
        let mut lost = Vec::new();
        [19, 20, 29, 30].into_iter().for_each(|ns| window.expire(ns, |s| lost.push((ns, s.at_ns))));
        assert_eq!(lost, [(20, 20), (30, 30)]);
        assert!(window.take(sent(40)).is_some() && window.take(sent(41)).is_some());
        assert!(window.take(sent(42)).is_none());
        window.expire(40, |s| lost.push((40, s.at_ns)));
        assert_eq!(lost[2..], [(40, 40)]);
    }
}
