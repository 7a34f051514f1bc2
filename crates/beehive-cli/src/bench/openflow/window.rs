//! The packet-ins of one switch that wait for their answers.

/// A packet-in that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// When, in nanoseconds of the run's clock.
    pub(super) at_ns: u64,
    /// The host that sent the packet.
    pub(super) host: u16,
    /// The port of the host it is for; 0 when it is for all (an announcement).
    pub(super) port: u16,
    /// Which time this host announces itself; 0 when it does not.
    pub(super) attempt: u8,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The packet-in's number, 0 when the place is free.
    sequence: u64,
    sent: Sent,
}

/// A fixed number of places. A packet-in carries its place and number, so that an answer is found at once, in any order, and an answer
/// that comes twice or too late finds its place empty or with another number.
#[derive(Debug)]
pub(super) struct Window {
    places: Vec<Slot>,
    free: Vec<u16>,
    last: u64,
}

impl Window {
    /// A window of `places` (at most [`super::limits::WINDOW_MAX`]).
    pub(super) fn new(places: u32) -> Self {
        let empty = Slot { sequence: 0, sent: Sent { at_ns: 0, host: 0, port: 0, attempt: 0 } };
        let places = places.clamp(1, super::limits::WINDOW_MAX) as u16;
        Self { places: vec![empty; usize::from(places)], free: (0..places).rev().collect(), last: 0 }
    }

    /// How many wait.
    pub(super) fn outstanding(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes a place for a packet-in: (place, sequence), `None` when all are taken.
    #[inline]
    pub(super) fn take(&mut self, sent: Sent) -> Option<(u16, u64)> {
        let place = self.free.pop()?;
        self.last += 1;
        self.places[usize::from(place)] = Slot { sequence: self.last, sent };
        Some((place, self.last))
    }

    /// The buffer id for what [`take`](Self::take) returned. Never `NO_BUFFER`: places are below 32 768.
    pub(super) fn buffer(place: u16, sequence: u64) -> u32 {
        ((sequence & 0xffff) as u32) << 16 | u32::from(place)
    }

    /// Ends the wait of the packet-in with this place and number, if it waits.
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

    /// Ends the wait of the packet-in that is in this buffer.
    #[inline]
    pub(super) fn answer_buffer(&mut self, buffer: u32) -> Option<Sent> {
        let place = (buffer & 0xffff) as u16;
        let sequence = self.places.get(usize::from(place))?.sequence;
        if (sequence & 0xffff) as u32 != buffer >> 16 {
            return None;
        }
        self.answer(place, sequence)
    }

    /// Gives up those sent at or before `oldest_ns`, telling each to `lost`.
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
            "an answer to an earlier packet-in in that place"
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
    fn lost_ones_make_room() {
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
