//! Ports, their changes and modification (1.0.0, 5.2.1; 1.3.5, 7.2.1; 1.4.1 and 1.5.1, 7.2.1.2).

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
        /// What the switch observes: bit 0 says that there is no link.
        state: u32,
        /// What the link does now; a property from 1.4 on, as are the next five.
        curr: u32,
        advertised: u32,
        supported: u32,
        peer: u32,
        /// Current bit rate in kbit/s (1.1 on).
        curr_speed: u32,
        /// Highest bit rate in kbit/s (1.1 on).
        max_speed: u32,
        /// 1.4 on.
        properties: List<'a, PortProperty<'a>>,
    }
    0 => [port_no as Port16, hw_addr, name, config, state, curr, advertised, supported, peer],
    1..=3 => [
        port_no, 4, hw_addr, 2, name, config, state, curr, advertised, supported, peer, curr_speed, max_speed
    ],
    4.. => [port_no, len, 2, hw_addr, 2, name, config, state, properties],
}

/// Ports in order.
pub type Ports<'a> = List<'a, Port<'a>>;

tagged! {
    /// What else is known about a port (1.4 on).
    pub enum PortProperty<'a> in Property, "port property length", padded true, minimum 4 {
        /// An Ethernet port.
        Ethernet(EthernetPort) "ethernet" = [0 in 4..],
        /// An optical port.
        Optical(OpticalPort) "optical" = [1 in 4..],
        /// The pipeline fields that packets may bring in.
        PipelineInput(PipelineFields<'a>) "pipeline_input" = [2 in 5..],
        /// The pipeline fields that packets may take out.
        PipelineOutput(PipelineFields<'a>) "pipeline_output" = [3 in 5..],
        /// The ports that packets sent here may come in on.
        Recirculate(RecirculatePorts<'a>) "recirculate" = [4 in 5..],
        /// An experimenter's.
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
    /// What an optical port can be tuned to; frequencies and wavelengths as `supported` says.
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
    /// Pipeline fields.
    pub struct PipelineFields<'a> in Property { fields: List<'a, FieldId> }
    _ => [fields],
}

structure! {
    /// Ports that packets may come in on.
    pub struct RecirculatePorts<'a> in Property { ports: List<'a, PortNo> }
    _ => [ports],
}

structure! {
    /// A port changed.
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
        /// Must be the port's.
        hw_addr: MacAddress,
        config: PortConfig,
        /// Which bits of `config` change.
        mask: PortConfig,
        /// What to advertise; a property from 1.4 on.
        advertise: u32,
        /// 1.4 on.
        properties: List<'a, PortModProperty<'a>>,
    }
    0 => [port_no as Port16, hw_addr, config, mask, advertise, 4],
    1..=3 => [port_no, 4, hw_addr, 2, config, mask, advertise, 4],
    4.. => [port_no, 4, hw_addr, 2, config, mask, properties],
}

tagged! {
    /// What else to change of a port (1.4 on).
    pub enum PortModProperty<'a> in Property, "port modification property length", padded true, minimum 4 {
        /// Of an Ethernet port.
        Ethernet(EthernetPortMod) "ethernet" = [0 in 4..],
        /// Of an optical port.
        Optical(OpticalPortMod) "optical" = [1 in 4..],
        /// An experimenter's.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 4..],
    }
}

structure! {
    /// What an Ethernet port is to advertise.
    pub struct EthernetPortMod in Property { advertise: u32 }
    _ => [advertise],
}

structure! {
    /// How an optical port is to be tuned; the offset is a signed number in 32 bits.
    pub struct OpticalPortMod in Property {
        configure: u32,
        freq_lmda: u32,
        fl_offset: u32,
        grid_span: u32,
        tx_pwr: u32,
    }
    _ => [configure, freq_lmda, fl_offset, grid_span, tx_pwr],
}
