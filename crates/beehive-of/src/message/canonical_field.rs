//! Fields by one name each: Nicira's that the specification has, too, and those that are made of others.

use alloc::vec::Vec;

use crate::oxm::{FieldId, OxmField, class};
use crate::port_number::PortNo;

/// The one name of a field.
pub(super) fn same(id: FieldId) -> FieldId {
    match id.standard() {
        // How long an option is, is the switch's affair.
        id if id.is_option() => FieldId { length: 0, masked: false, ..id },
        id => id,
    }
}

/// A field whose bits outside of the mask are zero.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Field {
    class: u16,
    experimenter: u32,
    number: u8,
    value: Vec<u8>,
    mask: Vec<u8>,
}

impl Field {
    /// Whether both are about one field, whatever they say of it.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        (self.class, self.experimenter, self.number) == (other.class, other.experimenter, other.number)
    }

    /// Adds the field by its one name, or the fields that it is made of; nothing when none of its bits count.
    pub(super) fn put(field: &OxmField<'_>, to: &mut Vec<Self>) {
        if field.id().is_option() {
            return to.push(Self::option(field));
        }
        let id = same(field.id());
        let length = field.value.len();
        // All bits of a value count that has no mask, and a value may have fewer than its bytes.
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
            // The port is wider in the specification.
            (class::NXM_OF, 0, &[high, low], _) => {
                let port = PortNo::from_v10(u16::from_be_bytes([high, low]));
                to.push(basic(0, port.0.to_be_bytes().to_vec(), alloc::vec![0xff; 4]));
            }
            (class::NXM_OF, 5, &[tos], &[_]) => {
                to.push(basic(8, alloc::vec![tos >> 2], alloc::vec![0x3f]));
            }
            // The tag is two fields in the specification; without a tag there is no priority.
            (class::NXM_OF, 4, &[high, low], &[mask @ (0xf0.. | 0..0x20), mask_low]) => {
                let tagged = mask & 0x10 == 0 || high & 0x10 != 0;
                to.push(basic(6, alloc::vec![high & 0x1f, low], alloc::vec![mask & 0x1f, mask_low]));
                if mask & 0xe0 != 0 && tagged {
                    to.push(basic(7, alloc::vec![high >> 5], alloc::vec![7]));
                }
            }
            // Wide registers are two or four of 32 bits.
            (class::PACKET_REGISTERS, number, value, mask) => {
                Self::put_registers(2 * number, value, mask, to)
            }
            (class::NXM_NX, number @ 111..=114, value, mask) => {
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

    /// An option of a tunnel. A shorter one stands for zeros before it; a mask of zeros asks that it is there.
    fn option(field: &OxmField<'_>) -> Self {
        let zeros = |bytes: &[u8]| bytes.iter().take_while(|byte| **byte == 0).count();
        // The first byte of the mask says whether there is one: without one all bits count, however many there are,
        // and that is not what a mask of ones says.
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
