//! Ports, reports of their changes, and their modification (1.0.0, 5.2.1; 1.3.5, 7.2.1; 1.4.1 and 1.5.1,
//! 7.2.1.2).

use super::experimenter::Experimenter;
use super::number::{PortConfig, PortReason};
use crate::address::MacAddress;
use crate::oxm::FieldId;
use crate::port_number::PortNo;
use crate::schema::{Fixed, List, Port16, structure, tagged};

structure! {
    /// A port of a switch.
    pub struct Port<'a> in Port {
        port_no: PortNo,
        hw_addr: MacAddress,
        name: Fixed<16>,
        config: PortConfig,
        /// The state that the switch observes; bit 0 means that there is no link.
        state: u32,
        /// The current rate and medium. From 1.4 on, this field and the next five are in a property.
        curr: u32,
        advertised: u32,
        supported: u32,
        peer: u32,
        /// Current bit rate in kbit/s (since 1.1).
        curr_speed: u32,
        /// Maximum bit rate in kbit/s (since 1.1).
        max_speed: u32,
        /// Present since 1.4.
        properties: List<'a, PortProperty<'a>>,
    }
    0 => [port_no as Port16, hw_addr, name, config, state, curr, advertised, supported, peer],
    1..=3 => [
        port_no, 4, hw_addr, 2, name, config, state, curr, advertised, supported, peer, curr_speed, max_speed
    ],
    4.. => [port_no, len, 2, hw_addr, 2, name, config, state, properties],
}

/// A list of ports, in order.
pub type Ports<'a> = List<'a, Port<'a>>;

tagged! {
    /// A property of a port (since 1.4).
    pub enum PortProperty<'a> in Property, "port property length", padded true, minimum 4 {
        /// The rates and media of an Ethernet port.
        Ethernet(EthernetPort) "ethernet" = [0 in 4..],
        /// The features of an optical port.
        Optical(OpticalPort) "optical" = [1 in 4..],
        /// The pipeline fields that packets may have when they enter the pipeline at this port.
        PipelineInput(PipelineFields<'a>) "pipeline_input" = [2 in 5..],
        /// The pipeline fields that packets keep when they leave the pipeline at this port.
        PipelineOutput(PipelineFields<'a>) "pipeline_output" = [3 in 5..],
        /// The ports that may receive packets that are sent to this port.
        Recirculate(RecirculatePorts<'a>) "recirculate" = [4 in 5..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 4..],
    }
}

structure! {
    /// Rates and media of an Ethernet port.
    pub struct EthernetPort in Property {
        curr: u32,
        advertised: u32,
        supported: u32,
        peer: u32,
        curr_speed: u32,
        max_speed: u32,
    }
    _ => [4, curr, advertised, supported, peer, curr_speed, max_speed],
}

structure! {
    /// The tuning range of an optical port. `supported` determines whether values are frequencies or
    /// wavelengths.
    pub struct OpticalPort in Property {
        supported: u32,
        tx_min_freq_lmda: u32,
        tx_max_freq_lmda: u32,
        tx_grid_freq_lmda: u32,
        rx_min_freq_lmda: u32,
        rx_max_freq_lmda: u32,
        rx_grid_freq_lmda: u32,
        tx_pwr_min: u16,
        tx_pwr_max: u16,
    }
    _ => [
        4, supported, tx_min_freq_lmda, tx_max_freq_lmda, tx_grid_freq_lmda, rx_min_freq_lmda, rx_max_freq_lmda,
        rx_grid_freq_lmda, tx_pwr_min, tx_pwr_max
    ],
}

structure! {
    /// A list of pipeline fields.
    pub struct PipelineFields<'a> in Property { fields: List<'a, FieldId> }
    _ => [fields],
}

structure! {
    /// A list of ports that may receive recirculated packets.
    pub struct RecirculatePorts<'a> in Property { ports: List<'a, PortNo> }
    _ => [ports],
}

structure! {
    /// Reports that a port changed.
    pub struct PortStatus<'a> in Message {
        reason: PortReason,
        port: Port<'a>,
    }
    _ => [reason, 7, port],
}

structure! {
    /// Changes a port.
    pub struct PortMod<'a> in Port {
        port_no: PortNo,
        /// The Ethernet address of the port, which the switch verifies.
        hw_addr: MacAddress,
        config: PortConfig,
        /// The bits of `config` to change.
        mask: PortConfig,
        /// The features to advertise; a property from 1.4 on.
        advertise: u32,
        /// Present since 1.4.
        properties: List<'a, PortModProperty<'a>>,
    }
    0 => [port_no as Port16, hw_addr, config, mask, advertise, 4],
    1..=3 => [port_no, 4, hw_addr, 2, config, mask, advertise, 4],
    4.. => [port_no, 4, hw_addr, 2, config, mask, properties],
}

tagged! {
    /// A property of a port modification (since 1.4).
    pub enum PortModProperty<'a> in Property, "port modification property length", padded true, minimum 4 {
        /// The settings of an Ethernet port.
        Ethernet(EthernetPortMod) "ethernet" = [0 in 4..],
        /// The settings of an optical port.
        Optical(OpticalPortMod) "optical" = [1 in 4..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 4..],
    }
}

structure! {
    /// The features that an Ethernet port should advertise.
    pub struct EthernetPortMod in Property { advertise: u32 }
    _ => [advertise],
}

structure! {
    /// The tuning of an optical port. The offset is a signed 32-bit number.
    pub struct OpticalPortMod in Property {
        configure: u32,
        freq_lmda: u32,
        fl_offset: u32,
        grid_span: u32,
        tx_pwr: u32,
    }
    _ => [configure, freq_lmda, fl_offset, grid_span, tx_pwr],
}
