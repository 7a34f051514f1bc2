//! The standard equivalents of Nicira's and the ONF's match fields.

use super::{FieldId, class, experimenter};

/// Nicira's fields with a standard equivalent: class, number, and the standard number.
const SAME: &[(u16, u8, u8)] = &[
    (class::NXM_OF, 1, 3),
    (class::NXM_OF, 2, 4),
    (class::NXM_OF, 3, 5),
    (class::NXM_OF, 6, 10),
    (class::NXM_OF, 7, 11),
    (class::NXM_OF, 8, 12),
    (class::NXM_OF, 9, 13),
    (class::NXM_OF, 10, 14),
    (class::NXM_OF, 11, 15),
    (class::NXM_OF, 12, 16),
    (class::NXM_OF, 13, 19),
    (class::NXM_OF, 14, 20),
    (class::NXM_OF, 15, 21),
    (class::NXM_OF, 16, 22),
    (class::NXM_OF, 17, 23),
    (class::NXM_NX, 16, 38),
    (class::NXM_NX, 17, 24),
    (class::NXM_NX, 18, 25),
    (class::NXM_NX, 19, 26),
    (class::NXM_NX, 20, 27),
    (class::NXM_NX, 21, 29),
    (class::NXM_NX, 22, 30),
    (class::NXM_NX, 23, 31),
    (class::NXM_NX, 24, 32),
    (class::NXM_NX, 25, 33),
    (class::NXM_NX, 27, 28),
    (class::NXM_NX, 28, 9),
    (class::NXM_NX, 34, 42),
];

impl FieldId {
    /// Returns the standard equivalent of a Nicira or ONF field if it has the same width, and the short form
    /// of Nicira's `dp_hash`. Returns any other field unchanged.
    pub(crate) fn standard(self) -> Self {
        match SAME.iter().find(|(of, known, _)| (*of, *known) == (self.class, self.number)) {
            Some((_, _, number)) => Self { class: class::BASIC, number: *number, ..self },
            // The ONF's extension fields have the same numbers that 1.5 later assigned to the standard
            // fields.
            None if (self.class, self.experimenter) == (class::EXPERIMENTER, experimenter::ONF) => {
                Self { class: class::BASIC, experimenter: 0, length: self.length.saturating_sub(4), ..self }
            }
            None if (self.class, self.experimenter, self.number)
                == (class::EXPERIMENTER, experimenter::NICIRA, 0) =>
            {
                Self {
                    class: class::NXM_NX,
                    number: 35,
                    experimenter: 0,
                    length: self.length.saturating_sub(4),
                    ..self
                }
            }
            None => self,
        }
    }
}
