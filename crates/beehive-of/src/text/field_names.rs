//! The names of fields in Open vSwitch.

use crate::oxm::{FieldId, class, experimenter, known, named_field};

use class::{BASIC, ERICSSON, EXPERIMENTER, NXM_NX, NXM_OF, PACKET_REGISTERS};

/// The class, number and names of a field. The first name is displayed; all names are parsed.
type Names = (u16, u8, &'static [&'static str]);

const NAMES: &[Names] = &[
    (BASIC, 0, &["in_port_oxm", "OXM_OF_IN_PORT"]),
    (BASIC, 1, &["in_phy_port"]),
    (BASIC, 2, &["metadata", "OXM_OF_METADATA"]),
    (BASIC, 3, &["eth_dst", "dl_dst", "OXM_OF_ETH_DST"]),
    (BASIC, 4, &["eth_src", "dl_src", "OXM_OF_ETH_SRC"]),
    (BASIC, 5, &["eth_type", "dl_type", "OXM_OF_ETH_TYPE"]),
    (BASIC, 6, &["vlan_vid", "OXM_OF_VLAN_VID"]),
    (BASIC, 7, &["vlan_pcp", "dl_vlan_pcp", "OXM_OF_VLAN_PCP"]),
    (BASIC, 8, &["ip_dscp", "OXM_OF_IP_DSCP"]),
    (BASIC, 9, &["nw_ecn", "ip_ecn", "OXM_OF_IP_ECN"]),
    (BASIC, 10, &["nw_proto", "ip_proto", "OXM_OF_IP_PROTO"]),
    (BASIC, 11, &["nw_src", "ip_src", "OXM_OF_IPV4_SRC"]),
    (BASIC, 12, &["nw_dst", "ip_dst", "OXM_OF_IPV4_DST"]),
    (BASIC, 13, &["tcp_src", "tp_src", "OXM_OF_TCP_SRC"]),
    (BASIC, 14, &["tcp_dst", "tp_dst", "OXM_OF_TCP_DST"]),
    (BASIC, 15, &["udp_src", "OXM_OF_UDP_SRC"]),
    (BASIC, 16, &["udp_dst", "OXM_OF_UDP_DST"]),
    (BASIC, 17, &["sctp_src", "OXM_OF_SCTP_SRC"]),
    (BASIC, 18, &["sctp_dst", "OXM_OF_SCTP_DST"]),
    (BASIC, 19, &["icmp_type", "OXM_OF_ICMPV4_TYPE"]),
    (BASIC, 20, &["icmp_code", "OXM_OF_ICMPV4_CODE"]),
    (BASIC, 21, &["arp_op", "OXM_OF_ARP_OP"]),
    (BASIC, 22, &["arp_spa", "OXM_OF_ARP_SPA"]),
    (BASIC, 23, &["arp_tpa", "OXM_OF_ARP_TPA"]),
    (BASIC, 24, &["arp_sha", "OXM_OF_ARP_SHA"]),
    (BASIC, 25, &["arp_tha", "OXM_OF_ARP_THA"]),
    (BASIC, 26, &["ipv6_src", "OXM_OF_IPV6_SRC"]),
    (BASIC, 27, &["ipv6_dst", "OXM_OF_IPV6_DST"]),
    (BASIC, 28, &["ipv6_label", "OXM_OF_IPV6_FLABEL"]),
    (BASIC, 29, &["icmpv6_type", "OXM_OF_ICMPV6_TYPE"]),
    (BASIC, 30, &["icmpv6_code", "OXM_OF_ICMPV6_CODE"]),
    (BASIC, 31, &["nd_target", "OXM_OF_IPV6_ND_TARGET"]),
    (BASIC, 32, &["nd_sll", "OXM_OF_IPV6_ND_SLL"]),
    (BASIC, 33, &["nd_tll", "OXM_OF_IPV6_ND_TLL"]),
    (BASIC, 34, &["mpls_label", "OXM_OF_MPLS_LABEL"]),
    (BASIC, 35, &["mpls_tc", "OXM_OF_MPLS_TC"]),
    (BASIC, 36, &["mpls_bos", "OXM_OF_MPLS_BOS"]),
    (BASIC, 37, &["pbb_isid"]),
    (BASIC, 38, &["tun_id", "tunnel_id", "OXM_OF_TUNNEL_ID"]),
    (BASIC, 39, &["ipv6_exthdr"]),
    (BASIC, 41, &["pbb_uca"]),
    (BASIC, 42, &["tcp_flags", "OXM_OF_TCP_FLAGS"]),
    (BASIC, 43, &["actset_output", "OXM_OF_ACTSET_OUTPUT"]),
    (BASIC, 44, &["packet_type", "OXM_OF_PACKET_TYPE"]),
    (NXM_OF, 0, &["in_port", "NXM_OF_IN_PORT"]),
    (NXM_OF, 1, &["NXM_OF_ETH_DST"]),
    (NXM_OF, 2, &["NXM_OF_ETH_SRC"]),
    (NXM_OF, 3, &["NXM_OF_ETH_TYPE"]),
    (NXM_OF, 4, &["vlan_tci", "NXM_OF_VLAN_TCI"]),
    (NXM_OF, 5, &["nw_tos", "NXM_OF_IP_TOS"]),
    (NXM_OF, 6, &["NXM_OF_IP_PROTO"]),
    (NXM_OF, 7, &["NXM_OF_IP_SRC"]),
    (NXM_OF, 8, &["NXM_OF_IP_DST"]),
    (NXM_OF, 9, &["NXM_OF_TCP_SRC"]),
    (NXM_OF, 10, &["NXM_OF_TCP_DST"]),
    (NXM_OF, 11, &["NXM_OF_UDP_SRC"]),
    (NXM_OF, 12, &["NXM_OF_UDP_DST"]),
    (NXM_OF, 13, &["NXM_OF_ICMP_TYPE"]),
    (NXM_OF, 14, &["NXM_OF_ICMP_CODE"]),
    (NXM_OF, 15, &["NXM_OF_ARP_OP"]),
    (NXM_OF, 16, &["NXM_OF_ARP_SPA"]),
    (NXM_OF, 17, &["NXM_OF_ARP_TPA"]),
    (NXM_NX, 0, &["reg0", "NXM_NX_REG0"]),
    (NXM_NX, 1, &["reg1", "NXM_NX_REG1"]),
    (NXM_NX, 2, &["reg2", "NXM_NX_REG2"]),
    (NXM_NX, 3, &["reg3", "NXM_NX_REG3"]),
    (NXM_NX, 4, &["reg4", "NXM_NX_REG4"]),
    (NXM_NX, 5, &["reg5", "NXM_NX_REG5"]),
    (NXM_NX, 6, &["reg6", "NXM_NX_REG6"]),
    (NXM_NX, 7, &["reg7", "NXM_NX_REG7"]),
    (NXM_NX, 8, &["reg8", "NXM_NX_REG8"]),
    (NXM_NX, 9, &["reg9", "NXM_NX_REG9"]),
    (NXM_NX, 10, &["reg10", "NXM_NX_REG10"]),
    (NXM_NX, 11, &["reg11", "NXM_NX_REG11"]),
    (NXM_NX, 12, &["reg12", "NXM_NX_REG12"]),
    (NXM_NX, 13, &["reg13", "NXM_NX_REG13"]),
    (NXM_NX, 14, &["reg14", "NXM_NX_REG14"]),
    (NXM_NX, 15, &["reg15", "NXM_NX_REG15"]),
    (NXM_NX, 16, &["NXM_NX_TUN_ID"]),
    (NXM_NX, 17, &["NXM_NX_ARP_SHA"]),
    (NXM_NX, 18, &["NXM_NX_ARP_THA"]),
    (NXM_NX, 19, &["NXM_NX_IPV6_SRC"]),
    (NXM_NX, 20, &["NXM_NX_IPV6_DST"]),
    (NXM_NX, 21, &["NXM_NX_ICMPV6_TYPE"]),
    (NXM_NX, 22, &["NXM_NX_ICMPV6_CODE"]),
    (NXM_NX, 23, &["NXM_NX_ND_TARGET"]),
    (NXM_NX, 24, &["NXM_NX_ND_SLL"]),
    (NXM_NX, 25, &["NXM_NX_ND_TLL"]),
    (NXM_NX, 26, &["ip_frag", "nw_frag", "NXM_NX_IP_FRAG"]),
    (NXM_NX, 27, &["NXM_NX_IPV6_LABEL"]),
    (NXM_NX, 28, &["NXM_NX_IP_ECN"]),
    (NXM_NX, 29, &["nw_ttl", "NXM_NX_IP_TTL"]),
    (NXM_NX, 30, &["mpls_ttl", "NXM_NX_MPLS_TTL"]),
    (NXM_NX, 31, &["tun_src", "NXM_NX_TUN_IPV4_SRC"]),
    (NXM_NX, 32, &["tun_dst", "NXM_NX_TUN_IPV4_DST"]),
    (NXM_NX, 33, &["pkt_mark", "NXM_NX_PKT_MARK"]),
    (NXM_NX, 34, &["NXM_NX_TCP_FLAGS"]),
    (NXM_NX, 35, &["dp_hash", "NXM_NX_DP_HASH"]),
    (NXM_NX, 36, &["recirc_id", "NXM_NX_RECIRC_ID"]),
    (NXM_NX, 37, &["conj_id", "NXM_NX_CONJ_ID"]),
    (NXM_NX, 38, &["tun_gbp_id", "NXM_NX_TUN_GBP_ID"]),
    (NXM_NX, 39, &["tun_gbp_flags", "NXM_NX_TUN_GBP_FLAGS"]),
    (NXM_NX, 104, &["tun_flags", "NXM_NX_TUN_FLAGS"]),
    (NXM_NX, 105, &["ct_state", "NXM_NX_CT_STATE"]),
    (NXM_NX, 106, &["ct_zone", "NXM_NX_CT_ZONE"]),
    (NXM_NX, 107, &["ct_mark", "NXM_NX_CT_MARK"]),
    (NXM_NX, 108, &["ct_label", "NXM_NX_CT_LABEL"]),
    (NXM_NX, 109, &["tun_ipv6_src", "NXM_NX_TUN_IPV6_SRC"]),
    (NXM_NX, 110, &["tun_ipv6_dst", "NXM_NX_TUN_IPV6_DST"]),
    (NXM_NX, 111, &["xxreg0", "NXM_NX_XXREG0"]),
    (NXM_NX, 112, &["xxreg1", "NXM_NX_XXREG1"]),
    (NXM_NX, 113, &["xxreg2", "NXM_NX_XXREG2"]),
    (NXM_NX, 114, &["xxreg3", "NXM_NX_XXREG3"]),
    (NXM_NX, 119, &["ct_nw_proto", "NXM_NX_CT_NW_PROTO"]),
    (NXM_NX, 120, &["ct_nw_src", "NXM_NX_CT_NW_SRC"]),
    (NXM_NX, 121, &["ct_nw_dst", "NXM_NX_CT_NW_DST"]),
    (NXM_NX, 122, &["ct_ipv6_src", "NXM_NX_CT_IPV6_SRC"]),
    (NXM_NX, 123, &["ct_ipv6_dst", "NXM_NX_CT_IPV6_DST"]),
    (NXM_NX, 124, &["ct_tp_src", "NXM_NX_CT_TP_SRC"]),
    (NXM_NX, 125, &["ct_tp_dst", "NXM_NX_CT_TP_DST"]),
    (PACKET_REGISTERS, 0, &["xreg0", "OXM_OF_PKT_REG0"]),
    (PACKET_REGISTERS, 1, &["xreg1", "OXM_OF_PKT_REG1"]),
    (PACKET_REGISTERS, 2, &["xreg2", "OXM_OF_PKT_REG2"]),
    (PACKET_REGISTERS, 3, &["xreg3", "OXM_OF_PKT_REG3"]),
    (PACKET_REGISTERS, 4, &["xreg4", "OXM_OF_PKT_REG4"]),
    (PACKET_REGISTERS, 5, &["xreg5", "OXM_OF_PKT_REG5"]),
    (PACKET_REGISTERS, 6, &["xreg6", "OXM_OF_PKT_REG6"]),
    (PACKET_REGISTERS, 7, &["xreg7", "OXM_OF_PKT_REG7"]),
    (ERICSSON, 1, &["nd_reserved", "ERICOXM_OF_ICMPV6_ND_RESERVED"]),
    (ERICSSON, 2, &["nd_options_type", "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE"]),
];

/// The names of experimenter fields, including the different names that Open vSwitch prints for some of them
/// in matches.
const EXPERIMENTERS: &[(u32, u8, &[&str])] = &[
    (experimenter::NICIRA, 0, &["NXOXM_ET_DP_HASH"]),
    (experimenter::NICIRA, 11, &["tun_erspan_idx", "NXOXM_ET_ERSPAN_IDX"]),
    (experimenter::NICIRA, 12, &["tun_erspan_ver", "NXOXM_ET_ERSPAN_VER"]),
    (experimenter::NICIRA, 13, &["tun_erspan_dir", "NXOXM_ET_ERSPAN_DIR"]),
    (experimenter::NICIRA, 14, &["tun_erspan_hwid", "NXOXM_ET_ERSPAN_HWID"]),
    (experimenter::NICIRA, 15, &["tun_gtpu_flags", "gtpu_flags", "NXOXM_ET_GTPU_FLAGS"]),
    (experimenter::NICIRA, 16, &["tun_gtpu_msgtype", "gtpu_msgtype", "NXOXM_ET_GTPU_MSGTYPE"]),
    (experimenter::ONF, 42, &["ONFOXM_ET_TCP_FLAGS"]),
    (experimenter::ONF, 43, &["ONFOXM_ET_ACTSET_OUTPUT"]),
    (experimenter::NSH, 1, &["nsh_flags", "NXOXM_NSH_FLAGS"]),
    (experimenter::NSH, 2, &["nsh_mdtype", "NXOXM_NSH_MDTYPE"]),
    (experimenter::NSH, 3, &["nsh_np", "NXOXM_NSH_NP"]),
    (experimenter::NSH, 4, &["nsh_spi", "nsp", "NXOXM_NSH_SPI"]),
    (experimenter::NSH, 5, &["nsh_si", "nsi", "NXOXM_NSH_SI"]),
    (experimenter::NSH, 6, &["nsh_c1", "nshc1", "NXOXM_NSH_C1"]),
    (experimenter::NSH, 7, &["nsh_c2", "nshc2", "NXOXM_NSH_C2"]),
    (experimenter::NSH, 8, &["nsh_c3", "nshc3", "NXOXM_NSH_C3"]),
    (experimenter::NSH, 9, &["nsh_c4", "nshc4", "NXOXM_NSH_C4"]),
    (experimenter::NSH, 10, &["nsh_ttl", "NXOXM_NSH_TTL"]),
];

/// The prefix of the long names of tunnel options; a number follows.
const OPTION: &str = "NXM_NX_TUN_METADATA";

/// Returns the field with this name, without a mask. If two fields share the name, returns the field that
/// Open vSwitch uses in actions.
pub(super) fn named(name: &str) -> Option<FieldId> {
    // The registry has Open vSwitch's short names of tunnel options.
    if let Some(option) = named_field(name).map(FieldId::of).filter(FieldId::is_option) {
        return Some(option);
    }
    if let Some(number) = name.strip_prefix(OPTION) {
        let number: u8 = number.parse().ok().filter(|number| *number < 64)?;
        return known(NXM_NX, 40 + number, 0).map(FieldId::of);
    }
    if let Some((whose, number, _)) = EXPERIMENTERS.iter().find(|(_, _, names)| names.contains(&name)) {
        return known(EXPERIMENTER, *number, *whose).map(FieldId::of);
    }

    let (class, number, names) = NAMES.iter().find(|(_, _, names)| names.contains(&name))?;

    // The cookie field has the same number as `mpls_ttl`, so look `mpls_ttl` up by name.
    let known = if names.contains(&"mpls_ttl") { named_field("mpls_ttl") } else { known(*class, *number, 0) };
    known.map(FieldId::of)
}

/// Returns the name of a field in actions.
pub(super) fn name_of(id: FieldId) -> Option<&'static str> {
    if id.is_option() || (id.class, id.number) == (NXM_NX, 30) {
        return id.known().map(|known| known.name).filter(|name| *name != "cookie");
    }

    let names = match id.class {
        EXPERIMENTER => {
            EXPERIMENTERS
                .iter()
                .find(|(whose, number, _)| (*whose, *number) == (id.experimenter, id.number))?
                .2
        }
        _ => NAMES.iter().find(|(class, number, _)| (*class, *number) == (id.class, id.number))?.2,
    };

    names.first().copied()
}

/// Returns the name of a field in matches, where Open vSwitch uses one name for equivalent fields of
/// different classes.
pub(super) fn name_in_match(id: FieldId) -> Option<&'static str> {
    match id.standard() {
        FieldId { class: BASIC, number: 0, .. } => Some("in_port"),
        id => name_of(id),
    }
}
