//! The fixed matches of 1.0 (5.2.3) and 1.1 (A.2.3), which contain every field and a bit set of wildcards.

use core::net::Ipv4Addr;

use crate::address::MacAddress;
use crate::encode::EncodeError;
use crate::port_number::PortNo;
use crate::schema::{NAME_OF_FIELD_10, NAME_OF_FIELD_11, Port16, Scalar, Sink, Source, structure};

structure! {
    /// The match of 1.0.
    pub struct StandardMatch10 in Match {
        /// The fields to ignore, and the number of trailing bits to ignore in each IPv4 address.
        wildcards: u32 = wildcard::ALL_10,
        in_port: PortNo,
        dl_src: MacAddress,
        dl_dst: MacAddress,
        dl_vlan: u16,
        dl_vlan_pcp: u8,
        dl_type: u16,
        nw_tos: u8,
        nw_proto: u8,
        nw_src: Ipv4Addr = Ipv4Addr::UNSPECIFIED,
        nw_dst: Ipv4Addr = Ipv4Addr::UNSPECIFIED,
        tp_src: u16,
        tp_dst: u16,
    }
    _ => [
        wildcards, in_port as Port16, dl_src, dl_dst, dl_vlan, dl_vlan_pcp, 1, dl_type, nw_tos, nw_proto, 2, nw_src,
        nw_dst, tp_src, tp_dst
    ],
}

structure! {
    /// The match of 1.1. Set bits in a mask mean bits to ignore.
    pub struct StandardMatch11 in Match {
        /// The match type: `OFPMT_STANDARD` (0).
        kind: u16,
        /// The length of the match in bytes: 88.
        length: u16 = 88,
        in_port: PortNo,
        /// The fields to ignore.
        wildcards: u32 = wildcard::ALL_11,
        dl_src: MacAddress,
        dl_src_mask: MacAddress = MacAddress::BROADCAST,
        dl_dst: MacAddress,
        dl_dst_mask: MacAddress = MacAddress::BROADCAST,
        dl_vlan: u16,
        dl_vlan_pcp: u8,
        dl_type: u16,
        nw_tos: u8,
        nw_proto: u8,
        nw_src: Ipv4Addr = Ipv4Addr::UNSPECIFIED,
        nw_src_mask: Ipv4Addr = Ipv4Addr::BROADCAST,
        nw_dst: Ipv4Addr = Ipv4Addr::UNSPECIFIED,
        nw_dst_mask: Ipv4Addr = Ipv4Addr::BROADCAST,
        tp_src: u16,
        tp_dst: u16,
        mpls_label: u32,
        mpls_tc: u8,
        metadata: u64,
        metadata_mask: u64 = u64::MAX,
    }
    _ => [
        kind, length, in_port, wildcards, dl_src, dl_src_mask, dl_dst, dl_dst_mask, dl_vlan, dl_vlan_pcp, 1, dl_type,
        nw_tos, nw_proto, nw_src, nw_src_mask, nw_dst, nw_dst_mask, tp_src, tp_dst, mpls_label, mpls_tc, 3, metadata,
        metadata_mask
    ],
}

/// The wildcard bits (`ofp_flow_wildcards`).
pub(crate) mod wildcard {
    pub(crate) const IN_PORT: u32 = 1;
    pub(crate) const DL_VLAN: u32 = 1 << 1;
    pub(crate) const DL_SRC: u32 = 1 << 2;
    pub(crate) const DL_DST: u32 = 1 << 3;
    pub(crate) const DL_TYPE: u32 = 1 << 4;
    pub(crate) const NW_PROTO: u32 = 1 << 5;
    pub(crate) const TP_SRC: u32 = 1 << 6;
    pub(crate) const TP_DST: u32 = 1 << 7;
    pub(crate) const NW_SRC_SHIFT: u32 = 8;
    pub(crate) const NW_DST_SHIFT: u32 = 14;
    /// Mask of the six-bit count of ignored address bits.
    pub(crate) const NW_BITS: u32 = 0x3f;
    pub(crate) const DL_VLAN_PCP: u32 = 1 << 20;
    pub(crate) const NW_TOS: u32 = 1 << 21;
    /// All wildcards of 1.0, with 32 ignored bits in both addresses.
    pub(crate) const ALL_10: u32 = 0x30_00ff | 32 << NW_SRC_SHIFT | 32 << NW_DST_SHIFT;
    /// All wildcard bits of 1.1.
    pub(crate) const ALL_11: u32 = 0x3ff;
    /// The wildcard bits of 1.1.
    pub(crate) mod v11 {
        pub(crate) const IN_PORT: u32 = 1;
        pub(crate) const DL_VLAN: u32 = 1 << 1;
        pub(crate) const DL_VLAN_PCP: u32 = 1 << 2;
        pub(crate) const DL_TYPE: u32 = 1 << 3;
        pub(crate) const NW_TOS: u32 = 1 << 4;
        pub(crate) const NW_PROTO: u32 = 1 << 5;
        pub(crate) const TP_SRC: u32 = 1 << 6;
        pub(crate) const TP_DST: u32 = 1 << 7;
        pub(crate) const MPLS_LABEL: u32 = 1 << 8;
        pub(crate) const MPLS_TC: u32 = 1 << 9;
    }
}

/// Generates functions that show and compose, by name, the fields that are not wildcarded.
macro_rules! counting {
    ($name:ident { $($field:ident $bit:expr;)* }) => {
        fn show_plain(&self, sink: &mut dyn Sink) {
            $(
                if self.wildcards & $bit == 0 {
                    sink.key(stringify!($field));
                    $crate::schema::Value::show(&self.$field, $crate::version::Version::V1_0, sink);
                }
            )*
        }

        fn compose_plain(&mut self, name: &str, value: &dyn Source) -> Option<bool> {
            $(
                if name == stringify!($field) {
                    self.wildcards &= !$bit;
                    self.$field = Scalar::parse(value)?;
                    return Some(true);
                }
            )*
            Some(false)
        }
    };
}

impl StandardMatch10 {
    counting! { StandardMatch10 {
        in_port wildcard::IN_PORT;
        dl_src wildcard::DL_SRC;
        dl_dst wildcard::DL_DST;
        dl_vlan wildcard::DL_VLAN;
        dl_vlan_pcp wildcard::DL_VLAN_PCP;
        dl_type wildcard::DL_TYPE;
        nw_tos wildcard::NW_TOS;
        nw_proto wildcard::NW_PROTO;
        tp_src wildcard::TP_SRC;
        tp_dst wildcard::TP_DST;
    } }

    /// Returns the numbers of ignored bits in the source address and in the destination address.
    fn ignored(&self) -> (u32, u32) {
        (
            self.wildcards >> wildcard::NW_SRC_SHIFT & wildcard::NW_BITS,
            self.wildcards >> wildcard::NW_DST_SHIFT & wildcard::NW_BITS,
        )
    }

    pub(crate) fn show_counting(&self, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_plain(sink);
        let (source, destination) = self.ignored();
        for (name, address, ignored) in
            [("nw_src", self.nw_src, source), ("nw_dst", self.nw_dst, destination)]
        {
            if ignored < 32 {
                sink.key(name);
                match ignored {
                    0 => sink.text(format_args!("{address}")),
                    _ => sink.text(format_args!("{address}/{}", 32 - ignored)),
                }
            }
        }

        sink.close_record();
    }

    pub(crate) fn compose_counting(source: &dyn Source) -> Result<Self, EncodeError> {
        let mut fields = Self::default();
        entries(source, MATCH_NAMES_10, NAME_OF_FIELD_10, |name, value| {
            if fields.compose_plain(name, value)? {
                return Some(());
            }

            let (address, prefix) = address_of(value.text()?)?;
            let shift = match name {
                "nw_src" => {
                    fields.nw_src = address;
                    wildcard::NW_SRC_SHIFT
                }
                "nw_dst" => {
                    fields.nw_dst = address;
                    wildcard::NW_DST_SHIFT
                }
                _ => return None,
            };
            let ignored = 32u32.checked_sub(prefix.parse().ok()?)?;
            fields.wildcards = fields.wildcards & !(wildcard::NW_BITS << shift) | ignored << shift;
            Some(())
        })?;

        Ok(fields)
    }
}

impl StandardMatch11 {
    counting! { StandardMatch11 {
        in_port wildcard::v11::IN_PORT;
        dl_vlan wildcard::v11::DL_VLAN;
        dl_vlan_pcp wildcard::v11::DL_VLAN_PCP;
        dl_type wildcard::v11::DL_TYPE;
        nw_tos wildcard::v11::NW_TOS;
        nw_proto wildcard::v11::NW_PROTO;
        tp_src wildcard::v11::TP_SRC;
        tp_dst wildcard::v11::TP_DST;
        mpls_label wildcard::v11::MPLS_LABEL;
        mpls_tc wildcard::v11::MPLS_TC;
    } }

    pub(crate) fn show_counting(&self, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_plain(sink);
        for (name, address, mask) in
            [("dl_src", self.dl_src, self.dl_src_mask), ("dl_dst", self.dl_dst, self.dl_dst_mask)]
        {
            if mask != MacAddress::BROADCAST {
                sink.key(name);
                sink.text(format_args!("{address}/{}", MacAddress(mask.0.map(|byte| !byte))));
            }
        }

        for (name, address, mask) in
            [("nw_src", self.nw_src, self.nw_src_mask), ("nw_dst", self.nw_dst, self.nw_dst_mask)]
        {
            if mask != Ipv4Addr::BROADCAST {
                sink.key(name);
                sink.text(format_args!("{address}/{}", !mask));
            }
        }

        if self.metadata_mask != u64::MAX {
            sink.key("metadata");
            sink.text(format_args!("{:#x}/{:#x}", self.metadata, !self.metadata_mask));
        }

        sink.close_record();
    }

    pub(crate) fn compose_counting(source: &dyn Source) -> Result<Self, EncodeError> {
        let mut fields = Self::default();
        entries(source, MATCH_NAMES_11, NAME_OF_FIELD_11, |name, value| {
            if fields.compose_plain(name, value)? {
                return Some(());
            }

            let text = value.text()?;
            let (address, mask) =
                text.split_once('/').map_or((text, None), |(address, mask)| (address, Some(mask)));
            let ethernet = || {
                let mask = mask.map_or(Some(MacAddress::BROADCAST), |mask| mask.parse().ok())?;
                Some((address.parse().ok()?, MacAddress(mask.0.map(|byte: u8| !byte))))
            };
            let network = || {
                let mask = mask.map_or(Some(Ipv4Addr::BROADCAST), |mask| mask.parse().ok())?;
                Some((address.parse().ok()?, !mask))
            };

            match name {
                "dl_src" => (fields.dl_src, fields.dl_src_mask) = ethernet()?,
                "dl_dst" => (fields.dl_dst, fields.dl_dst_mask) = ethernet()?,
                "nw_src" => (fields.nw_src, fields.nw_src_mask) = network()?,
                "nw_dst" => (fields.nw_dst, fields.nw_dst_mask) = network()?,
                "metadata" => {
                    fields.metadata = crate::oxm::number(address)?;
                    fields.metadata_mask =
                        mask.map_or(Some(0), |mask| crate::oxm::number(mask).map(|bits| !bits))?;
                }
                _ => return None,
            }

            Some(())
        })?;

        Ok(fields)
    }
}

/// The names of the match fields of 1.0.
pub(crate) const MATCH_NAMES_10: &[&str] = &[
    "in_port",
    "dl_src",
    "dl_dst",
    "dl_vlan",
    "dl_vlan_pcp",
    "dl_type",
    "nw_tos",
    "nw_proto",
    "nw_src",
    "nw_dst",
    "tp_src",
    "tp_dst",
];

/// The names of the fields of the fixed match of 1.1.
pub(crate) const MATCH_NAMES_11: &[&str] = &[
    "in_port",
    "dl_src",
    "dl_dst",
    "dl_vlan",
    "dl_vlan_pcp",
    "dl_type",
    "nw_tos",
    "nw_proto",
    "nw_src",
    "nw_dst",
    "tp_src",
    "tp_dst",
    "mpls_label",
    "mpls_tc",
    "metadata",
];

/// Calls `each` with every entry of a record. The error for a name that is not among `names` has the field
/// `nameless`.
fn entries(
    source: &dyn Source,
    names: &[&str],
    nameless: &'static str,
    mut each: impl FnMut(&str, &dyn Source) -> Option<()>,
) -> Result<(), EncodeError> {
    let mut index = 0;
    while let Some((name, value)) = source.entry(index) {
        let field = if names.contains(&name) { "match field" } else { nameless };
        each(name, value).ok_or(EncodeError::Value { field })?;
        index += 1;
    }
    Ok(())
}

/// Splits text into an address and the text of its prefix length, which defaults to 32.
fn address_of(text: &str) -> Option<(Ipv4Addr, &str)> {
    let (address, prefix) = text.split_once('/').unwrap_or((text, "32"));
    Some((address.parse().ok()?, prefix))
}
