//! The registry of named fields: those of the specification (1.5.1, 7.2.3.8), of Nicira and of the ONF.

use super::class::{BASIC, ERICSSON, EXPERIMENTER, NXM_NX, NXM_OF, PACKET_REGISTERS};
use super::kind::FieldKind::{self, Bytes, Decimal, Hex, Ipv4, Ipv6, Mac, Port};

/// A registered field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// The class.
    pub class: u16,
    /// The experimenter, for class 0xffff; 0 for other classes.
    pub experimenter: u32,
    /// The number in the class.
    pub number: u8,
    /// The name.
    pub name: &'static str,
    /// The type of the value.
    pub kind: FieldKind,
    /// Whether the field may have a mask in a match.
    pub maskable: bool,
    /// The minor number of the first version that has the field.
    pub since: u8,
    /// The prerequisites: a match with this field must also have one of these fields, with the required
    /// value. Empty if the field has no prerequisites.
    pub needs: &'static [Need],
}

/// A prerequisite: a field, and the value that it must have so that another field may be present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// The number of the field in the standard class.
    pub number: u8,
    /// The required value; `None` requires any VLAN tag.
    pub value: Option<u16>,
}

const fn need(number: u8, value: u16) -> Need {
    Need { number, value: Some(value) }
}

const NONE: &[Need] = &[];
const TAGGED: &[Need] = &[Need { number: 6, value: None }];
const IP: &[Need] = &[need(5, 0x0800), need(5, 0x86dd)];
const IPV4: &[Need] = &[need(5, 0x0800)];
const IPV6: &[Need] = &[need(5, 0x86dd)];
// Open vSwitch also uses the ARP fields for RARP.
const ARP: &[Need] = &[need(5, 0x0806), need(5, 0x8035)];
const TCP: &[Need] = &[need(10, 6)];
const UDP: &[Need] = &[need(10, 17)];
const SCTP: &[Need] = &[need(10, 132)];
const ICMP: &[Need] = &[need(10, 1)];
const ICMPV6: &[Need] = &[need(10, 58)];
const SOLICITATION: &[Need] = &[need(29, 135)];
const ADVERTISEMENT: &[Need] = &[need(29, 136)];
const DISCOVERY: &[Need] = &[need(29, 135), need(29, 136)];
const MPLS: &[Need] = &[need(5, 0x8847), need(5, 0x8848)];
const PBB: &[Need] = &[need(5, 0x88e7)];

macro_rules! fields {
    ($($class:ident of $experimenter:literal { $($number:literal $name:literal $kind:expr, $mask:ident, $since:literal, $needs:ident;)* })*) => {
        &[$($( Known {
            class: $class,
            experimenter: $experimenter,
            number: $number,
            name: $name,
            kind: $kind,
            maskable: fields!(@mask $mask),
            since: $since,
            needs: $needs,
        }, )*)*]
    };
    (@mask masks) => { true };
    (@mask exact) => { false };
}

/// All registered fields. Within a class, they are sorted by number.
pub const FIELDS: &[Known] = fields! {
    BASIC of 0 {
        0 "in_port" Port, exact, 2, NONE;
        1 "in_phy_port" Port, exact, 2, NONE;
        2 "metadata" Hex(8), masks, 2, NONE;
        3 "eth_dst" Mac, masks, 2, NONE;
        4 "eth_src" Mac, masks, 2, NONE;
        5 "eth_type" Hex(2), exact, 2, NONE;
        6 "vlan_vid" Hex(2), masks, 2, NONE;
        7 "vlan_pcp" Decimal(1), exact, 2, TAGGED;
        8 "ip_dscp" Decimal(1), exact, 2, IP;
        9 "ip_ecn" Decimal(1), exact, 2, IP;
        10 "ip_proto" Decimal(1), exact, 2, IP;
        11 "ipv4_src" Ipv4, masks, 2, IPV4;
        12 "ipv4_dst" Ipv4, masks, 2, IPV4;
        13 "tcp_src" Decimal(2), exact, 2, TCP;
        14 "tcp_dst" Decimal(2), exact, 2, TCP;
        15 "udp_src" Decimal(2), exact, 2, UDP;
        16 "udp_dst" Decimal(2), exact, 2, UDP;
        17 "sctp_src" Decimal(2), exact, 2, SCTP;
        18 "sctp_dst" Decimal(2), exact, 2, SCTP;
        19 "icmpv4_type" Decimal(1), exact, 2, ICMP;
        20 "icmpv4_code" Decimal(1), exact, 2, ICMP;
        21 "arp_op" Decimal(2), exact, 2, ARP;
        22 "arp_spa" Ipv4, masks, 2, ARP;
        23 "arp_tpa" Ipv4, masks, 2, ARP;
        24 "arp_sha" Mac, masks, 2, ARP;
        25 "arp_tha" Mac, masks, 2, ARP;
        26 "ipv6_src" Ipv6, masks, 2, IPV6;
        27 "ipv6_dst" Ipv6, masks, 2, IPV6;
        28 "ipv6_flabel" Hex(4), masks, 2, IPV6;
        29 "icmpv6_type" Decimal(1), exact, 2, ICMPV6;
        30 "icmpv6_code" Decimal(1), exact, 2, ICMPV6;
        31 "ipv6_nd_target" Ipv6, exact, 2, DISCOVERY;
        32 "ipv6_nd_sll" Mac, exact, 2, SOLICITATION;
        33 "ipv6_nd_tll" Mac, exact, 2, ADVERTISEMENT;
        34 "mpls_label" Decimal(4), exact, 2, MPLS;
        35 "mpls_tc" Decimal(1), exact, 2, MPLS;
        36 "mpls_bos" Decimal(1), exact, 3, MPLS;
        37 "pbb_isid" Hex(3), masks, 3, PBB;
        38 "tunnel_id" Hex(8), masks, 3, NONE;
        39 "ipv6_exthdr" Hex(2), masks, 3, IPV6;
        41 "pbb_uca" Decimal(1), exact, 4, PBB;
        42 "tcp_flags" Hex(2), masks, 5, TCP;
        43 "actset_output" Port, exact, 5, NONE;
        44 "packet_type" Hex(4), exact, 5, NONE;
    }
    PACKET_REGISTERS of 0 {
        0 "xreg0" Hex(8), masks, 5, NONE;
        1 "xreg1" Hex(8), masks, 5, NONE;
        2 "xreg2" Hex(8), masks, 5, NONE;
        3 "xreg3" Hex(8), masks, 5, NONE;
        4 "xreg4" Hex(8), masks, 5, NONE;
        5 "xreg5" Hex(8), masks, 5, NONE;
        6 "xreg6" Hex(8), masks, 5, NONE;
        7 "xreg7" Hex(8), masks, 5, NONE;
    }
    NXM_OF of 0 {
        0 "nxm_in_port" Decimal(2), exact, 0, NONE;
        1 "nxm_eth_dst" Mac, masks, 0, NONE;
        2 "nxm_eth_src" Mac, masks, 0, NONE;
        3 "nxm_eth_type" Hex(2), exact, 0, NONE;
        4 "nxm_vlan_tci" Hex(2), masks, 0, NONE;
        5 "nxm_ip_tos" Decimal(1), exact, 0, IP;
        6 "nxm_ip_proto" Decimal(1), exact, 0, IP;
        7 "nxm_ip_src" Ipv4, masks, 0, IPV4;
        8 "nxm_ip_dst" Ipv4, masks, 0, IPV4;
        9 "nxm_tcp_src" Decimal(2), masks, 0, TCP;
        10 "nxm_tcp_dst" Decimal(2), masks, 0, TCP;
        11 "nxm_udp_src" Decimal(2), masks, 0, UDP;
        12 "nxm_udp_dst" Decimal(2), masks, 0, UDP;
        13 "nxm_icmp_type" Decimal(1), exact, 0, ICMP;
        14 "nxm_icmp_code" Decimal(1), exact, 0, ICMP;
        15 "nxm_arp_op" Decimal(2), exact, 0, ARP;
        16 "nxm_arp_spa" Ipv4, masks, 0, ARP;
        17 "nxm_arp_tpa" Ipv4, masks, 0, ARP;
    }
    NXM_NX of 0 {
        0 "reg0" Hex(4), masks, 0, NONE;
        1 "reg1" Hex(4), masks, 0, NONE;
        2 "reg2" Hex(4), masks, 0, NONE;
        3 "reg3" Hex(4), masks, 0, NONE;
        4 "reg4" Hex(4), masks, 0, NONE;
        5 "reg5" Hex(4), masks, 0, NONE;
        6 "reg6" Hex(4), masks, 0, NONE;
        7 "reg7" Hex(4), masks, 0, NONE;
        8 "reg8" Hex(4), masks, 0, NONE;
        9 "reg9" Hex(4), masks, 0, NONE;
        10 "reg10" Hex(4), masks, 0, NONE;
        11 "reg11" Hex(4), masks, 0, NONE;
        12 "reg12" Hex(4), masks, 0, NONE;
        13 "reg13" Hex(4), masks, 0, NONE;
        14 "reg14" Hex(4), masks, 0, NONE;
        15 "reg15" Hex(4), masks, 0, NONE;
        16 "nxm_tun_id" Hex(8), masks, 0, NONE;
        17 "nxm_arp_sha" Mac, masks, 0, ARP;
        18 "nxm_arp_tha" Mac, masks, 0, ARP;
        19 "nxm_ipv6_src" Ipv6, masks, 0, IPV6;
        20 "nxm_ipv6_dst" Ipv6, masks, 0, IPV6;
        21 "nxm_icmpv6_type" Decimal(1), exact, 0, ICMPV6;
        22 "nxm_icmpv6_code" Decimal(1), exact, 0, ICMPV6;
        23 "nxm_nd_target" Ipv6, masks, 0, DISCOVERY;
        24 "nxm_nd_sll" Mac, masks, 0, SOLICITATION;
        25 "nxm_nd_tll" Mac, masks, 0, ADVERTISEMENT;
        26 "ip_frag" Hex(1), masks, 0, IP;
        27 "nxm_ipv6_label" Hex(4), masks, 0, IPV6;
        28 "nxm_ip_ecn" Decimal(1), exact, 0, IP;
        29 "ip_ttl" Decimal(1), exact, 0, IP;
        30 "cookie" Hex(8), masks, 0, NONE;
        30 "mpls_ttl" Decimal(1), exact, 0, MPLS;
        31 "tun_src" Ipv4, masks, 0, NONE;
        32 "tun_dst" Ipv4, masks, 0, NONE;
        33 "pkt_mark" Hex(4), masks, 0, NONE;
        34 "nxm_tcp_flags" Hex(2), masks, 0, TCP;
        35 "dp_hash" Hex(4), masks, 0, NONE;
        36 "recirc_id" Hex(4), exact, 0, NONE;
        37 "conj_id" Decimal(4), exact, 0, NONE;
        38 "tun_gbp_id" Decimal(2), masks, 0, NONE;
        39 "tun_gbp_flags" Hex(1), masks, 0, NONE;
        40 "tun_metadata0" Bytes(124), masks, 0, NONE;
        41 "tun_metadata1" Bytes(124), masks, 0, NONE;
        42 "tun_metadata2" Bytes(124), masks, 0, NONE;
        43 "tun_metadata3" Bytes(124), masks, 0, NONE;
        44 "tun_metadata4" Bytes(124), masks, 0, NONE;
        45 "tun_metadata5" Bytes(124), masks, 0, NONE;
        46 "tun_metadata6" Bytes(124), masks, 0, NONE;
        47 "tun_metadata7" Bytes(124), masks, 0, NONE;
        48 "tun_metadata8" Bytes(124), masks, 0, NONE;
        49 "tun_metadata9" Bytes(124), masks, 0, NONE;
        50 "tun_metadata10" Bytes(124), masks, 0, NONE;
        51 "tun_metadata11" Bytes(124), masks, 0, NONE;
        52 "tun_metadata12" Bytes(124), masks, 0, NONE;
        53 "tun_metadata13" Bytes(124), masks, 0, NONE;
        54 "tun_metadata14" Bytes(124), masks, 0, NONE;
        55 "tun_metadata15" Bytes(124), masks, 0, NONE;
        56 "tun_metadata16" Bytes(124), masks, 0, NONE;
        57 "tun_metadata17" Bytes(124), masks, 0, NONE;
        58 "tun_metadata18" Bytes(124), masks, 0, NONE;
        59 "tun_metadata19" Bytes(124), masks, 0, NONE;
        60 "tun_metadata20" Bytes(124), masks, 0, NONE;
        61 "tun_metadata21" Bytes(124), masks, 0, NONE;
        62 "tun_metadata22" Bytes(124), masks, 0, NONE;
        63 "tun_metadata23" Bytes(124), masks, 0, NONE;
        64 "tun_metadata24" Bytes(124), masks, 0, NONE;
        65 "tun_metadata25" Bytes(124), masks, 0, NONE;
        66 "tun_metadata26" Bytes(124), masks, 0, NONE;
        67 "tun_metadata27" Bytes(124), masks, 0, NONE;
        68 "tun_metadata28" Bytes(124), masks, 0, NONE;
        69 "tun_metadata29" Bytes(124), masks, 0, NONE;
        70 "tun_metadata30" Bytes(124), masks, 0, NONE;
        71 "tun_metadata31" Bytes(124), masks, 0, NONE;
        72 "tun_metadata32" Bytes(124), masks, 0, NONE;
        73 "tun_metadata33" Bytes(124), masks, 0, NONE;
        74 "tun_metadata34" Bytes(124), masks, 0, NONE;
        75 "tun_metadata35" Bytes(124), masks, 0, NONE;
        76 "tun_metadata36" Bytes(124), masks, 0, NONE;
        77 "tun_metadata37" Bytes(124), masks, 0, NONE;
        78 "tun_metadata38" Bytes(124), masks, 0, NONE;
        79 "tun_metadata39" Bytes(124), masks, 0, NONE;
        80 "tun_metadata40" Bytes(124), masks, 0, NONE;
        81 "tun_metadata41" Bytes(124), masks, 0, NONE;
        82 "tun_metadata42" Bytes(124), masks, 0, NONE;
        83 "tun_metadata43" Bytes(124), masks, 0, NONE;
        84 "tun_metadata44" Bytes(124), masks, 0, NONE;
        85 "tun_metadata45" Bytes(124), masks, 0, NONE;
        86 "tun_metadata46" Bytes(124), masks, 0, NONE;
        87 "tun_metadata47" Bytes(124), masks, 0, NONE;
        88 "tun_metadata48" Bytes(124), masks, 0, NONE;
        89 "tun_metadata49" Bytes(124), masks, 0, NONE;
        90 "tun_metadata50" Bytes(124), masks, 0, NONE;
        91 "tun_metadata51" Bytes(124), masks, 0, NONE;
        92 "tun_metadata52" Bytes(124), masks, 0, NONE;
        93 "tun_metadata53" Bytes(124), masks, 0, NONE;
        94 "tun_metadata54" Bytes(124), masks, 0, NONE;
        95 "tun_metadata55" Bytes(124), masks, 0, NONE;
        96 "tun_metadata56" Bytes(124), masks, 0, NONE;
        97 "tun_metadata57" Bytes(124), masks, 0, NONE;
        98 "tun_metadata58" Bytes(124), masks, 0, NONE;
        99 "tun_metadata59" Bytes(124), masks, 0, NONE;
        100 "tun_metadata60" Bytes(124), masks, 0, NONE;
        101 "tun_metadata61" Bytes(124), masks, 0, NONE;
        102 "tun_metadata62" Bytes(124), masks, 0, NONE;
        103 "tun_metadata63" Bytes(124), masks, 0, NONE;
        104 "tun_flags" Hex(2), masks, 0, NONE;
        105 "ct_state" Hex(4), masks, 0, NONE;
        106 "ct_zone" Decimal(2), exact, 0, NONE;
        107 "ct_mark" Hex(4), masks, 0, NONE;
        108 "ct_label" Hex(16), masks, 0, NONE;
        109 "tun_ipv6_src" Ipv6, masks, 0, NONE;
        110 "tun_ipv6_dst" Ipv6, masks, 0, NONE;
        111 "xxreg0" Hex(16), masks, 0, NONE;
        112 "xxreg1" Hex(16), masks, 0, NONE;
        113 "xxreg2" Hex(16), masks, 0, NONE;
        114 "xxreg3" Hex(16), masks, 0, NONE;
        119 "ct_nw_proto" Decimal(1), exact, 0, NONE;
        120 "ct_nw_src" Ipv4, masks, 0, NONE;
        121 "ct_nw_dst" Ipv4, masks, 0, NONE;
        122 "ct_ipv6_src" Ipv6, masks, 0, NONE;
        123 "ct_ipv6_dst" Ipv6, masks, 0, NONE;
        124 "ct_tp_src" Decimal(2), masks, 0, NONE;
        125 "ct_tp_dst" Decimal(2), masks, 0, NONE;
    }
    ERICSSON of 0 {
        1 "nd_reserved" Decimal(4), exact, 0, DISCOVERY;
        2 "nd_options_type" Decimal(1), exact, 0, DISCOVERY;
    }
    EXPERIMENTER of 0x0000_2320 {
        0 "nxoxm_dp_hash" Hex(4), masks, 0, NONE;
        11 "tun_erspan_idx" Hex(4), masks, 0, NONE;
        12 "tun_erspan_ver" Decimal(1), masks, 0, NONE;
        13 "tun_erspan_dir" Decimal(1), masks, 0, NONE;
        14 "tun_erspan_hwid" Hex(1), masks, 0, NONE;
        15 "tun_gtpu_flags" Hex(1), masks, 0, NONE;
        16 "tun_gtpu_msgtype" Decimal(1), masks, 0, NONE;
    }
    EXPERIMENTER of 0x4f4e_4600 {
        42 "onf_tcp_flags" Hex(2), masks, 2, TCP;
        43 "onf_actset_output" Port, exact, 2, NONE;
    }
    EXPERIMENTER of 0x005a_d650 {
        1 "nsh_flags" Hex(1), masks, 2, NONE;
        2 "nsh_mdtype" Decimal(1), exact, 2, NONE;
        3 "nsh_np" Decimal(1), exact, 2, NONE;
        4 "nsh_spi" Hex(4), exact, 2, NONE;
        5 "nsh_si" Decimal(1), exact, 2, NONE;
        6 "nsh_c1" Hex(4), masks, 2, NONE;
        7 "nsh_c2" Hex(4), masks, 2, NONE;
        8 "nsh_c3" Hex(4), masks, 2, NONE;
        9 "nsh_c4" Hex(4), masks, 2, NONE;
        10 "nsh_ttl" Decimal(1), exact, 2, NONE;
    }
};

/// Looks up a field by class, number and, for class 0xffff, experimenter. Nicira assigned number 30 twice:
/// this function returns the cookie, and [`FieldId::known`](super::FieldId::known) distinguishes the two by
/// length.
pub fn known(class: u16, number: u8, experimenter: u32) -> Option<&'static Known> {
    // Fast path: for numbers 0 to 39 of the standard class, the number is the index.
    match FIELDS.get(usize::from(number)) {
        Some(field) if field.class == class && field.number == number => Some(field),
        _ => FIELDS
            .iter()
            .find(|field| (field.class, field.number, field.experimenter) == (class, number, experimenter)),
    }
}

/// Looks up a field by name.
pub fn named_field(name: &str) -> Option<&'static Known> {
    FIELDS.iter().find(|field| field.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oxm::FieldId;

    #[test]
    fn numbers_and_names_are_used_once() {
        for (index, field) in FIELDS.iter().enumerate() {
            assert_eq!(FieldId::of(field).known(), Some(field));
            assert_eq!(named_field(field.name), Some(field), "{}", field.name);
            assert!(
                FIELDS.iter().skip(index + 1).all(|other| other.name != field.name),
                "{} is duplicated",
                field.name
            );
        }
    }
}
