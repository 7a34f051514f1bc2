//! Normalizes fields: replaces Nicira's fields with their standard equivalents, and splits composite fields.

use alloc::vec::Vec;

use crate::oxm::{FieldId, OxmField, class};
use crate::port_number::PortNo;

/// Returns the canonical identity of a field.
pub(super) fn same(id: FieldId) -> FieldId {
    match id.standard() {
        // The switch's configuration determines the length of a tunnel option, so ignore it.
        id if id.is_option() => FieldId { length: 0, masked: false, ..id },
        id => id,
    }
}

/// Returns the canonical field and offset of some bits. Bits of a wide register become bits of the narrowest
/// part that contains all of them.
pub(super) fn narrowed(id: FieldId, offset: u16, bit_count: u16) -> (FieldId, u16) {
    let (first, parts) = match (id.class, id.number) {
        (class::PACKET_REGISTERS, number @ 0..8) => (2 * number, 2),
        (class::NXM_NX, number @ 111..=114) => (4 * (number - 111), 4),
        _ => return (id, offset),
    };
    let end = offset.saturating_add(bit_count.max(1)) - 1;
    for (width, class) in [(32, class::NXM_NX), (64, class::PACKET_REGISTERS)] {
        let count = parts * 4 / (width / 8);
        let (part, last) = (offset / u16::from(width), end / u16::from(width));
        match u8::try_from(last) {
            // The first register contains the most significant bits.
            Ok(last) if part == u16::from(last) && last < count => {
                let number = first * 4 / (width / 8) + (count - 1 - last);
                let part = FieldId { class, number, masked: false, length: width / 8, experimenter: 0 };
                return (part, offset % u16::from(width));
            }
            _ => {}
        }
    }

    (id, offset)
}

/// Like [`narrowed`], with offset and bit count in 16 bits: the offset in the upper 10 bits, and the bit
/// count minus one in the lower 6.
pub(super) fn narrowed_bits(id: FieldId, bits: u16) -> (FieldId, u16) {
    let (id, offset) = narrowed(id, bits >> 6, (bits & 0x3f) + 1);
    (id, offset << 6 | (bits & 0x3f))
}

/// A field with its value and mask; value bits outside of the mask are zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Field {
    class: u16,
    experimenter: u32,
    number: u8,
    value: Vec<u8>,
    mask: Vec<u8>,
}

impl Field {
    /// Returns whether both belong to the same field, regardless of value and mask.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        (self.class, self.experimenter, self.number) == (other.class, other.experimenter, other.number)
    }

    /// Returns whether both belong to different fields that share bits of a VLAN tag, of the type of service,
    /// or of the input port.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let common = |field: &Self| match (field.class, field.number) {
            (class::NXM_OF, 4) | (class::BASIC, 6 | 7) => 1,
            (class::NXM_OF, 5) | (class::BASIC, 8) => 2,
            (class::NXM_OF, 0) | (class::BASIC, 0) => 3,
            _ => 0,
        };
        let whole = |field: &Self| field.class == class::NXM_OF;
        common(self) != 0 && common(self) == common(other) && whole(self) != whole(other)
    }

    /// Merges a later setting of the same field into this one. Returns `false` if they cannot be merged. If
    /// `replaces` is set, the later setting must cover all bits of the earlier one.
    pub(super) fn takes(&mut self, later: &Self, replaces: bool) -> bool {
        let is_option = self.class == class::NXM_NX && matches!(self.number, 40..=103);
        if is_option {
            // A later setting of the whole option replaces the earlier setting, regardless of its length.
            let whole = later.mask == [0xff];
            if whole {
                self.clone_from(later);
            }
            return whole;
        }
        if self.value.len() != later.value.len() {
            return false;
        }

        let covers = self.mask.iter().zip(&later.mask).all(|(earlier, later)| earlier & !later == 0);
        if replaces && !covers {
            return false;
        }

        for ((value, mask), (later, bits)) in
            self.value.iter_mut().zip(&mut self.mask).zip(later.value.iter().zip(&later.mask))
        {
            *value = *value & !bits | later;
            *mask |= bits;
        }

        true
    }

    /// Adds the canonical field, or the fields that it is composed of, to `to`. Adds nothing if the mask is
    /// empty.
    pub(super) fn put(field: &OxmField<'_>, to: &mut Vec<Self>) {
        if field.id().is_option() {
            return to.push(Self::option(field));
        }

        let id = same(field.id());
        let length = field.value.len();

        // Without a mask, all bits of the value are significant. A value may have fewer bits than its bytes
        // hold.
        let unused = (8 * length).saturating_sub(usize::from(id.bits())).min(8 * length);
        let used = |at: usize| match unused.saturating_sub(8 * at) {
            0 => 0xff,
            skipped @ 1..8 => 0xff >> skipped,
            _ => 0,
        };
        let mask: Vec<u8> = match field.mask {
            Some(mask) => mask.iter().enumerate().map(|(at, byte)| byte & used(at)).collect(),
            None => (0..length).map(used).collect(),
        };
        let value: Vec<u8> = field.value.iter().zip(&mask).map(|(value, mask)| value & mask).collect();
        if length > 0 && mask.iter().all(|byte| *byte == 0) {
            return;
        }

        let basic = |number, value, mask| Self { class: class::BASIC, experimenter: 0, number, value, mask };
        match (id.class, id.number, &value[..], &mask[..]) {
            // The standard field has a wider port number.
            (class::NXM_OF, 0, &[high, low], &[0xff, 0xff]) => {
                let port = PortNo::from_v10(u16::from_be_bytes([high, low]));
                to.push(basic(0, port.0.to_be_bytes().to_vec(), alloc::vec![0xff; 4]));
            }
            (class::NXM_OF, 5, &[tos], &[mask @ 4..=255]) => {
                to.push(basic(8, alloc::vec![tos >> 2], alloc::vec![mask >> 2]));
            }
            // Nicira's VLAN tag is equivalent to two standard fields. Without a tag, there is no priority.
            (class::NXM_OF, 4, &[high, low], &[mask @ (0xf0.. | 0..0x20), mask_low]) => {
                let tagged = mask & 0x10 == 0 || high & 0x10 != 0;
                to.push(basic(6, alloc::vec![high & 0x1f, low], alloc::vec![mask & 0x1f, mask_low]));
                if mask & 0xe0 != 0 && tagged {
                    to.push(basic(7, alloc::vec![high >> 5], alloc::vec![7]));
                }
            }
            // Wide registers consist of two or four 32-bit registers.
            (class::PACKET_REGISTERS, number @ 0..8, value @ [_, _, _, _, _, _, _, _], mask) => {
                Self::put_registers(2 * number, value, mask, to)
            }
            (class::NXM_NX, number @ 111..=114, value, mask) if length == 16 => {
                Self::put_registers(4 * (number - 111), value, mask, to);
            }
            _ => {
                to.push(Self {
                    class: id.class,
                    experimenter: id.experimenter,
                    number: id.number,
                    value,
                    mask,
                });
            }
        }
    }

    /// Returns the form of a tunnel option. The form omits leading zeros, because they do not change the
    /// value. An empty mask matches any packet that has the option.
    fn option(field: &OxmField<'_>) -> Self {
        let zeros = |bytes: &[u8]| bytes.iter().take_while(|byte| **byte == 0).count();

        // If there is no mask, all bits of the option are significant, regardless of its length. The mask in
        // the form is then the single byte 0xff. Otherwise it starts with the byte 0, so a mask of ones has a
        // different form.
        let (value, mask) = match field.mask {
            Some(mask) => {
                let counting = field.value.iter().zip(mask).map(|(value, mask)| value & mask);
                let mask = mask.iter().skip(zeros(mask));
                (
                    counting.skip(field.value.len().saturating_sub(mask.len())).collect(),
                    [0].iter().chain(mask).copied().collect(),
                )
            }
            None => (field.value.iter().skip(zeros(field.value)).copied().collect(), Vec::from([0xff])),
        };

        Self { class: field.class, experimenter: 0, number: field.number, value, mask }
    }

    fn put_registers(first: u8, value: &[u8], mask: &[u8], to: &mut Vec<Self>) {
        for (number, (value, mask)) in (first..).zip(value.chunks(4).zip(mask.chunks(4))) {
            if mask.iter().any(|byte| *byte != 0) {
                let (value, mask) = (value.to_vec(), mask.to_vec());
                to.push(Self { class: class::NXM_NX, experimenter: 0, number, value, mask });
            }
        }
    }

    pub(super) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.class.to_be_bytes());
        to.extend(self.experimenter.to_be_bytes());
        to.extend([self.number, self.value.len() as u8, self.mask.len() as u8]);
        to.extend(&self.value);
        to.extend(&self.mask);
    }
}
