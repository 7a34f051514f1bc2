//! The declarative schema of protocol structures: their fields and a wire layout for each range of versions.
//!
//! A structure is declared once, with its fields and a layout per range of versions. The declaration
//! generates a type with a decoder, an encoder, and conversions to and from named values, so all four always
//! support the same structures and versions. Decoding gives a field that the layout lacks its default value;
//! encoding any other value in such a field is an error that names the field.

mod adaptor;
mod list;
mod named;
mod reader;
mod sink;
mod source;
mod structure;
mod tagged;
mod value;
mod writer;

pub use list::{Elements, List};
pub use reader::Reader;
pub use sink::{Sink, Text};
pub use source::Source;
pub(crate) use source::{NAME_OF_FIELD, NAME_OF_FIELD_10, NAME_OF_FIELD_11};
pub use tagged::Tagged;
pub use value::{Fixed, Value};
pub use writer::Writer;

pub(crate) use adaptor::{Adaptor, Byte, Hex, Nested, Padded, Port16, Sized, Words};
pub(crate) use named::{bits, named, narrowing, parse_bits, parse_named, show_bits, show_named};
pub(crate) use sink::Checker;
pub(crate) use structure::{
    compose_adapted, compose_field, compose_item, default_of, read_item, show_item, structure, told_name,
    write_item,
};
pub(crate) use tagged::{Framed, Framing, choice, compose_element, read_element, tagged, write_element};
pub(crate) use value::{Scalar, compose_scalar, put_digits, scalar};
