//! Builds packet-ins from templates. A stamp in each frame identifies the packet-in when the controller answers it.

use super::wire::{self, Version, kind};

/// Length of every frame in bytes, the minimum of Ethernet.
pub(super) const FRAME_BYTES: usize = 64;
/// Offset of the stamp. The headers of Ethernet, IPv4 and UDP together are as long as those of Ethernet and ARP.
const STAMP_AT: usize = 42;
const IP_SUM_AT: usize = 24;
const IP_SOURCE_AT: usize = 26;

/// Identifies the packet-in to which a frame belongs. The stamp is part of the payload, so a packet-out returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Random number of the run, so that frames kept by a controller from earlier runs do not count.
    pub(super) run: u32,
    /// Number of the switch that sent the packet-in.
    pub(super) switch: u32,
    /// Slot in the window of that switch.
    pub(super) place: u16,
    /// Sequence number of the packet-in at that switch.
    pub(super) sequence: u64,
}

impl Stamp {
    /// Finds the stamp of this run in a frame, even if the controller has added a VLAN tag.
    #[inline]
    pub(super) fn read(run: u32, frame: &[u8]) -> Option<Self> {
        let at = [STAMP_AT, STAMP_AT + 4].into_iter().find(|at| wire::u32_at(frame, *at) == Some(run))?;
        Some(Self {
            run,
            switch: wire::u32_at(frame, at + 4)?,
            place: wire::u16_at(frame, at + 8)?,
            sequence: wire::u64_at(frame, at + 10)?,
        })
    }

    fn write(&self, frame: &mut [u8]) {
        let stamp = &mut frame[STAMP_AT..STAMP_AT + 18];
        stamp[..4].copy_from_slice(&self.run.to_be_bytes());
        stamp[4..8].copy_from_slice(&self.switch.to_be_bytes());
        stamp[8..10].copy_from_slice(&self.place.to_be_bytes());
        stamp[10..].copy_from_slice(&self.sequence.to_be_bytes());
    }
}

/// An emulated host. Its MAC and IPv4 addresses are computed from the fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host {
    /// Number of the switch to which the host is attached.
    pub(super) switch: u32,
    /// Number of the host at that switch.
    pub(super) number: u16,
    /// Number of hosts per switch.
    pub(super) hosts: u32,
}

impl Host {
    /// Returns the MAC address, which is locally administered and unique within a run.
    #[inline]
    fn mac(self) -> [u8; 6] {
        let [_, s2, s1, s0] = self.switch.to_be_bytes();
        let [h1, h0] = self.number.to_be_bytes();
        [0x02, s2, s1, s0, h1, h0]
    }

    /// Returns the IPv4 address in 10.0.0.0/8. Addresses repeat beyond 2^24 hosts.
    #[inline]
    fn address(self) -> u32 {
        let host = self.switch.wrapping_mul(self.hosts).wrapping_add(u32::from(self.number) + 1);
        0x0a00_0000 | (host & 0x00ff_ffff)
    }
}

/// Template of a PACKET_IN message. Fields that differ between messages are patched in each copy.
#[derive(Debug, Clone)]
pub(super) struct PacketIn {
    message: Vec<u8>,
    version: Version,
    /// Offset of the frame in the message.
    frame_at: usize,
    /// Checksum of the IPv4 header without its addresses, not yet folded.
    ip_sum: u32,
}

impl PacketIn {
    /// Returns the template of a UDP packet from one known host to another.
    pub(super) fn unicast(version: Version) -> Self {
        let mut frame = [0_u8; FRAME_BYTES];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, (FRAME_BYTES - 14) as u8, 0, 0, 0x40, 0, 64, 17]);
        // from port 49152 to port 9 (discard); a UDP checksum of 0 means none
        frame[34..42].copy_from_slice(&[0xc0, 0, 0, 9, 0, (FRAME_BYTES - 34) as u8, 0, 0]);
        Self::around(version, frame)
    }

    /// Returns the template of a gratuitous ARP request, from which the controller learns a host's location.
    pub(super) fn announcement(version: Version) -> Self {
        let mut frame = [0_u8; FRAME_BYTES];
        frame[..6].fill(0xff);
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        frame[14..22].copy_from_slice(&[0, 1, 0x08, 0, 6, 4, 0, 1]);
        Self::around(version, frame)
    }

    /// Wraps a frame into a PACKET_IN message.
    fn around(version: Version, frame: [u8; FRAME_BYTES]) -> Self {
        let mut message = Vec::new();
        let start = wire::begin(&mut message, version, kind::PACKET_IN, 0);
        message.extend_from_slice(&wire::NO_BUFFER.to_be_bytes());
        message.extend_from_slice(&[0, FRAME_BYTES as u8]);

        match version {
            // port, reason "no match", padding
            Version::V10 => message.extend_from_slice(&[0, 0, 0, 0]),
            Version::V13 => {
                message.extend_from_slice(&[0; 2 + 8]); // reason "no match", table 0, cookie 0
                message.extend_from_slice(&[0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, 0]); // in_port
                message.extend_from_slice(&[0; 4 + 2]);
            }
        }

        let frame_at = message.len();
        message.extend_from_slice(&frame);
        wire::finish(&mut message, start);
        let ip_sum = frame[14..34].chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        Self { message, version, frame_at, ip_sum }
    }

    /// Appends the message for a packet between two hosts.
    #[inline]
    pub(super) fn append_unicast(
        &self,
        out: &mut Vec<u8>,
        stamp: &Stamp,
        buffer: u32,
        port: u32,
        source: Host,
        destination: Host,
    ) {
        let frame = self.append(out, stamp, buffer, port);
        frame[..6].copy_from_slice(&destination.mac());
        frame[6..12].copy_from_slice(&source.mac());
        let (from, to) = (source.address(), destination.address());
        frame[IP_SOURCE_AT..IP_SOURCE_AT + 4].copy_from_slice(&from.to_be_bytes());
        frame[IP_SOURCE_AT + 4..IP_SOURCE_AT + 8].copy_from_slice(&to.to_be_bytes());
        let mut sum = self.ip_sum + (from >> 16) + (from & 0xffff) + (to >> 16) + (to & 0xffff);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);

        frame[IP_SUM_AT..IP_SUM_AT + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }

    /// Appends the message that announces a host.
    pub(super) fn append_announcement(
        &self,
        out: &mut Vec<u8>,
        stamp: &Stamp,
        buffer: u32,
        port: u32,
        host: Host,
    ) {
        let frame = self.append(out, stamp, buffer, port);
        let (mac, address) = (host.mac(), host.address().to_be_bytes());
        frame[6..12].copy_from_slice(&mac);
        frame[22..28].copy_from_slice(&mac);
        frame[28..32].copy_from_slice(&address);
        frame[38..42].copy_from_slice(&address);
    }

    /// Appends the template, sets the message's fields and the stamp, and returns the frame.
    #[inline]
    fn append<'a>(&self, out: &'a mut Vec<u8>, stamp: &Stamp, buffer: u32, port: u32) -> &'a mut [u8] {
        let start = out.len();
        out.extend_from_slice(&self.message);
        let message = &mut out[start..];
        message[8..12].copy_from_slice(&buffer.to_be_bytes());
        match self.version {
            Version::V10 => message[14..16].copy_from_slice(&(port as u16).to_be_bytes()),
            Version::V13 => message[32..36].copy_from_slice(&port.to_be_bytes()),
        }

        let frame = &mut message[self.frame_at..];
        stamp.write(frame);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp =
        Stamp { run: 0xdead_beef, switch: 70_000, place: 513, sequence: 0x0102_0304_0506_0708 };

    fn host(number: u16) -> Host {
        Host { switch: 70_000, number, hosts: 100 }
    }

    #[test]
    fn a_packet_in_is_valid_down_to_its_checksum_in_both_versions() {
        for (version, port_bytes, frame_at) in [(Version::V10, 14..16, 18), (Version::V13, 32..36, 42)] {
            let mut out = vec![0xaa];
            PacketIn::unicast(version).append_unicast(&mut out, &STAMP, wire::NO_BUFFER, 9, host(3), host(4));
            let message = &out[1..];
            assert_eq!(message[..4], [version.byte(), kind::PACKET_IN, 0, message.len() as u8]);
            assert_eq!(message[port_bytes].last(), Some(&9));
            let frame = &message[frame_at..];
            assert_eq!((frame.len(), &frame[12..14]), (FRAME_BYTES, &[8, 0][..]));
            assert_eq!(frame[..12], [0x02, 1, 0x11, 0x70, 0, 4, 0x02, 1, 0x11, 0x70, 0, 3]);
            let sum: u32 = frame[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the IPv4 header's checksum");

            assert_eq!(Stamp::read(STAMP.run, frame), Some(STAMP));
        }
    }

    #[test]
    fn the_stamp_is_found_behind_a_vlan_tag_and_never_in_foreign_or_short_frames() {
        let mut out = Vec::new();
        PacketIn::announcement(Version::V10).append_announcement(&mut out, &STAMP, 5, 9, host(3));
        assert_eq!(out[8..12], [0, 0, 0, 5]);
        let frame = &out[18..];
        assert_eq!(Stamp::read(STAMP.run, frame), Some(STAMP));
        let tagged = [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
        assert_eq!(Stamp::read(STAMP.run, &tagged), Some(STAMP));
        assert_eq!(Stamp::read(STAMP.run + 1, frame), None);

        for length in 0..STAMP_AT + 18 {
            assert_eq!(Stamp::read(STAMP.run, &frame[..length]), None);
        }
    }
}
