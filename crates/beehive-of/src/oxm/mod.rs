//! Match fields: the registry of named fields, and fields on the wire (1.3.5, 7.2.3).

mod equivalent;
mod field;
mod fields;
mod kind;
mod narrow_field_id;
mod registry;

pub use field::{FieldId, OxmField};
pub use fields::OxmFields;
pub use kind::FieldKind;
pub(crate) use kind::number;
pub(crate) use narrow_field_id::Narrow;
pub use registry::{FIELDS, Known, known, named_field};

/// Classes of fields (`ofp_oxm_class`).
#[allow(missing_docs)]
pub mod class {
    pub const NXM_OF: u16 = 0x0000;
    pub const NXM_NX: u16 = 0x0001;
    pub const BASIC: u16 = 0x8000;
    pub const PACKET_REGISTERS: u16 = 0x8001;
    /// The class that Open vSwitch uses for Ericsson's fields.
    pub const ERICSSON: u16 = 0x1000;
    pub const EXPERIMENTER: u16 = 0xffff;
}

/// The experimenters with registered fields of class 0xffff.
#[allow(missing_docs)]
pub mod experimenter {
    pub const NICIRA: u32 = 0x0000_2320;
    pub const ONF: u32 = 0x4f4e_4600;
    /// The fields of network service headers.
    pub const NSH: u32 = 0x005a_d650;
}
