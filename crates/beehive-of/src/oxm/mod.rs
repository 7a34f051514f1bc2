//! Match fields: the registry of those that have names, and fields on the wire (1.3.5, 7.2.3).

mod field;
mod fields;
mod kind;
mod registry;

pub use field::{FieldId, OxmField};
pub use fields::OxmFields;
pub use kind::FieldKind;
pub(crate) use kind::number;
pub use registry::{FIELDS, Known, known, named_field};

/// Classes of fields (`ofp_oxm_class`).
#[allow(missing_docs)]
pub mod class {
    pub const NXM_OF: u16 = 0x0000;
    pub const NXM_NX: u16 = 0x0001;
    pub const BASIC: u16 = 0x8000;
    pub const PACKET_REGISTERS: u16 = 0x8001;
    pub const EXPERIMENTER: u16 = 0xffff;
}
