//! Example programs for common tasks.
//!
//! # A packet from any switch
//!
//! [`any`](crate::any) hides the version. Append the bytes of each read to a
//! [`FrameBuffer`](crate::FrameBuffer), which returns frames, or use the stream of the `codec` feature.
//!
//! ```
//! use beehive_of::any::{Message, PacketInReason};
//! use beehive_of::{FrameBuffer, PortNo, Version};
//!
//! # fn read(version: Version, into: &mut bytes::BytesMut) {
//! #     let packet = beehive_of::any::PacketIn {
//! #         buffer_id: None, total_len: 5, in_port: PortNo(3), reason: PacketInReason::NoMatch, table_id: 0, cookie: None,
//! #         data: b"hello",
//! #     };
//! #     packet.encode_into(version, 7, into).unwrap();
//! # }
//! for version in Version::ALL {
//!     let mut received = FrameBuffer::new();
//!     read(version, received.read_target()); // a socket's `read_buf`
//!     while let Some(frame) = received.next_frame()? {
//!         if let Message::PacketIn(packet) = Message::parse(frame)? {
//!             assert_eq!((packet.in_port, packet.reason), (PortNo(3), PacketInReason::NoMatch));
//!             assert_eq!(packet.data, b"hello");
//!         }
//!     }
//! }
//! # Ok::<(), beehive_of::Error>(())
//! ```
//!
//! # A connection from its first byte
//!
//! Each side sends a hello first, and both use the highest common version from then on. Then the controller
//! requests the features of the switch, and both sides answer echo requests for the lifetime of the
//! connection. This program works with any byte stream: a `TcpStream`, a TLS stream, or, as here, an
//! in-memory pipe.
//!
//! ```
//! use beehive_of::any::{Echo, ErrorMessage, Features, Hello, Message};
//! use beehive_of::{FrameBuffer, Version, VersionSet};
//! use bytes::BytesMut;
//! use std::io::{self, Read, Write};
//!
//! /// Reads some bytes: parts of messages, or any number of messages. Returns `false` if the peer has closed the connection.
//! fn receive(stream: &mut impl Read, into: &mut FrameBuffer) -> io::Result<bool> {
//!     let mut bytes = [0; 2048];
//!     let length = stream.read(&mut bytes)?;
//!     into.read_target().extend_from_slice(&bytes[..length]);
//!     Ok(length > 0)
//! }
//!
//! /// Runs the handshake until the switch has sent its features.
//! fn control(mut stream: impl Read + Write, ours: VersionSet) -> io::Result<(Version, u64)> {
//!     let (mut received, mut out) = (FrameBuffer::new(), BytesMut::new());
//!     let mut spoken = None;
//!     Hello::new(ours).encode_into(1, &mut out).map_err(io::Error::other)?;
//!     loop {
//!         stream.write_all(&out)?;
//!         out.clear();
//!         if !receive(&mut stream, &mut received)? {
//!             return Err(io::ErrorKind::UnexpectedEof.into());
//!         }
//!         // After an error here, the start of the next message is unknown, so the error ends the connection.
//!         while let Some(frame) = received.next_frame().map_err(io::Error::other)? {
//!             let xid = frame.xid();
//!             let encoded = match (spoken, Message::parse(frame)) {
//!                 (None, Ok(Message::Hello(hello))) => {
//!                     let Some(version) = hello.negotiate(ours) else {
//!                         // Tell the switch why before closing the connection.
//!                         let version = Version::from_wire(hello.version).unwrap_or(Version::V1_0);
//!                         let refusal = ErrorMessage::hello_failed("no version in common");
//!                         refusal.encode_into(version, xid, &mut out).map_err(io::Error::other)?;
//!                         stream.write_all(&out)?;
//!                         return Err(io::ErrorKind::Unsupported.into());
//!                     };
//!                     spoken = Some(version);
//!                     Message::FeaturesRequest.encode_into(version, 2, &mut out)
//!                 }
//!                 (Some(version), Ok(Message::FeaturesReply(features))) if xid == 2 => {
//!                     return Ok((version, features.datapath_id));
//!                 }
//!                 // An echo reply has the transaction identifier and the data of the request.
//!                 (Some(version), Ok(Message::EchoRequest(echo))) => {
//!                     Message::EchoReply(echo).encode_into(version, xid, &mut out)
//!                 }
//!                 (Some(version), Err(error)) => {
//!                     ErrorMessage::answering(error.answer(version), frame.bytes()).encode_into(version, xid, &mut out)
//!                 }
//!                 // Ignore other messages.
//!                 _ => Ok(()),
//!             };
//!             encoded.map_err(io::Error::other)?;
//!         }
//!     }
//! }
//!
//! // A switch that supports 1.0 and 1.3, and sends an echo request before it answers the features request.
//! fn switch(mut stream: impl Read + Write) -> io::Result<()> {
//!     let (mut received, mut out) = (FrameBuffer::new(), BytesMut::new());
//!     let mut asked = None;
//!     let theirs = VersionSet::only(Version::V1_0).with(Version::V1_3);
//!     Hello::new(theirs).encode_into(1, &mut out).map_err(io::Error::other)?;
//!     loop {
//!         // Simulate segmentation: messages do not arrive in the units they were sent in.
//!         for part in out.chunks(5) {
//!             stream.write_all(part)?;
//!         }
//!         out.clear();
//!         if !receive(&mut stream, &mut received)? {
//!             return Ok(());
//!         }
//!         while let Some(frame) = received.next_frame().map_err(io::Error::other)? {
//!             let version = Version::V1_3;
//!             match (Message::parse(frame), asked) {
//!                 (Ok(Message::FeaturesRequest), _) => {
//!                     assert_eq!(frame.version(), Some(version), "the highest version that both support");
//!                     asked = Some(frame.xid());
//!                     let echo = Echo { data: b"are you there" };
//!                     echo.encode_request_into(version, 99, &mut out).map_err(io::Error::other)?;
//!                 }
//!                 (Ok(Message::EchoReply(echo)), Some(asked)) => {
//!                     assert_eq!((frame.xid(), echo.data), (99, &b"are you there"[..]));
//!                     let features = Features {
//!                         datapath_id: 0xbee, buffers: 0, tables: 1, auxiliary_id: 0, capabilities: Default::default(),
//!                         actions: 0, ports: Default::default(),
//!                     };
//!                     features.encode_into(version, asked, &mut out).map_err(io::Error::other)?;
//!                 }
//!                 _ => {}
//!             }
//!         }
//!     }
//! }
//! # use std::sync::mpsc::{Receiver, Sender, channel};
//! #
//! # /// One end of an in-memory pipe.
//! # struct Pipe(Sender<Vec<u8>>, Receiver<Vec<u8>>);
//! # fn pipe() -> (Pipe, Pipe) {
//! #     let ((to_b, from_a), (to_a, from_b)) = (channel(), channel());
//! #     (Pipe(to_b, from_b), Pipe(to_a, from_a))
//! # }
//! # impl Read for Pipe {
//! #     fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
//! #         // A single write always fits. Reading returns 0 when the other end is dropped.
//! #         let bytes = self.1.recv().unwrap_or_default();
//! #         into[..bytes.len()].copy_from_slice(&bytes);
//! #         Ok(bytes.len())
//! #     }
//! # }
//! # impl Write for Pipe {
//! #     fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
//! #         if bytes.is_empty() {
//! #             return Ok(0);
//! #         }
//! #         let bytes = &bytes[..bytes.len().min(2048)];
//! #         self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
//! #         Ok(bytes.len())
//! #     }
//! #     fn flush(&mut self) -> io::Result<()> {
//! #         Ok(())
//! #     }
//! # }
//!
//! let (ours, theirs) = pipe();
//! let running = std::thread::spawn(|| switch(theirs));
//! assert_eq!(control(ours, VersionSet::SUPPORTED)?, (Version::V1_3, 0xbee));
//! running.join().unwrap()?;
//!
//! // Without a common version, both sides get an error.
//! let (ours, theirs) = pipe();
//! let running = std::thread::spawn(|| switch(theirs));
//! let refused = control(ours, VersionSet::only(Version::V1_5)).unwrap_err();
//! assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
//! running.join().unwrap()?;
//! # Ok::<(), io::Error>(())
//! ```
//!
//! # A flow for any switch
//!
//! ```
//! use beehive_of::any::{Action, FlowMod, Match};
//! use beehive_of::{Masked, PortNo, Version};
//! use bytes::BytesMut;
//! use core::net::{Ipv4Addr, Ipv6Addr};
//!
//! let to_the_lab = Match {
//!     eth_type: Some(0x0800),
//!     ipv4_dst: Some(Masked::<Ipv4Addr>::network([10, 7, 0, 0].into(), 16)),
//!     ..Match::ANY
//! };
//! let actions = [Action::output(PortNo(4))];
//! let flow = FlowMod { idle_timeout: 60, ..FlowMod::add(100, to_the_lab, (&actions).into()) };
//! let mut out = BytesMut::new();
//! for version in Version::ALL {
//!     flow.encode_into(version, 1, &mut out)?;
//! }
//!
//! // Encoding fails if the version cannot express a value, and nothing is written.
//! let written = out.len();
//! let v6 = Match { eth_type: Some(0x86dd), ipv6_dst: Some(Ipv6Addr::LOCALHOST.into()), ..Match::ANY };
//! let error = FlowMod::add(100, v6, (&actions).into()).encode_into(Version::V1_0, 1, &mut out).unwrap_err();
//! assert_eq!(error.to_string(), "OpenFlow 1.0 cannot express IPv6 addresses in a match");
//! assert_eq!(out.len(), written);
//! # Ok::<(), beehive_of::EncodeError>(())
//! ```
//!
//! # A flow from text, and the flows of a switch
//!
//! The reply with all flows may consist of several messages; all but the last have a flag that announces
//! another one. (To send a reply in parts, use
//! [`encode_parts_into`](crate::message::Message::encode_parts_into).)
//!
//! ```
//! use beehive_of::message::{FlowRequest, Message, Multipart, MultipartFlags, ReplyBody, RequestBody};
//! use beehive_of::text::{Flow, show_entry};
//! use beehive_of::{FrameBuffer, Version};
//! use bytes::BytesMut;
//! # use beehive_of::message::{FlowEntry, Flows};
//!
//! # fn answer(flow: &Flow, into: &mut BytesMut) {
//! #     let Message::FlowMod(sent) = flow.message() else { unreachable!("the standard message can express it") };
//! #     let entry = FlowEntry {
//! #         priority: sent.priority, packet_count: 3, match_fields: sent.match_fields, actions: sent.actions,
//! #         instructions: sent.instructions, ..Default::default()
//! #     };
//! #     let entries = [entry];
//! #     for flags in [MultipartFlags::MORE, MultipartFlags::default()] {
//! #         let body = ReplyBody::Flow(Flows { flows: (&entries).into() });
//! #         Message::MultipartReply(Multipart { flags, body }).encode_into(flow.version(), 2, into).unwrap();
//! #     }
//! # }
//! for version in [Version::V1_0, Version::V1_3] {
//!     let mut out = BytesMut::new();
//!     // The syntax of `ovs-ofctl`. An error would contain the invalid token and its position.
//!     let flow = Flow::parse("priority=7,tcp,tp_dst=80,actions=mod_dl_dst:02:00:00:00:00:02,output:2", version).unwrap();
//!     flow.encode_into(1, &mut out).unwrap();
//!     // A request for all flows.
//!     let body = RequestBody::Flow(FlowRequest::default());
//!     Message::MultipartRequest(Multipart { flags: MultipartFlags::default(), body }).encode_into(version, 2, &mut out).unwrap();
//!
//!     // The switch replies, here in two parts that each contain the flow.
//!     let mut received = FrameBuffer::new();
//! #     answer(&flow, received.read_target());
//!     let (mut told, mut more) = (Vec::new(), true);
//!     while more {
//!         // `None` would mean that the message is incomplete and more bytes must be read.
//!         let frame = received.next_frame().unwrap().expect("the reply is complete");
//!         // The reply has the transaction identifier of its request; skip all other messages.
//!         let (2, Ok(Message::MultipartReply(reply))) = (frame.xid(), Message::parse(frame)) else { continue };
//!         if let ReplyBody::Flow(list) = reply.body {
//!             told.extend(list.flows.iter().map(|entry| show_entry(&entry.unwrap(), version).to_string()));
//!         }
//!         more = reply.flags.contains(MultipartFlags::MORE);
//!     }
//!     let actions = match version {
//!         Version::V1_0 => "mod_dl_dst:02:00:00:00:00:02,output:2",
//!         _ => "set_field:02:00:00:00:00:02->eth_dst,output:2",
//!     };
//!     let entry = format!("duration=0.000s,n_packets=3,n_bytes=0,priority=7,tcp,tcp_dst=80 actions={actions}");
//!     assert_eq!(told, [entry.clone(), entry]);
//! }
//! ```
//!
//! # Comparing two flow tables
//!
//! The same flow can be encoded in many ways. The [`Canonical`](crate::message::Canonical) forms of all these
//! encodings are equal and have the same hash, in every version and notation. The table, the priority and the
//! match of a flow identify it.
//!
//! ```
//! use beehive_of::message::{Canonical, FlowEntry, TableId};
//! use beehive_of::text::Flow;
//! use beehive_of::{EncodeError, Version};
//! use std::collections::HashMap;
//!
//! /// The identity of each flow, and its instructions.
//! type Tables = HashMap<(u8, u16, Canonical), Canonical>;
//!
//! fn want(tables: &mut Tables, flow: &Flow) -> Result<(), EncodeError> {
//!     let which = (flow.table_id.0, flow.priority, flow.canonical_match()?);
//!     tables.insert(which, flow.canonical_program()?);
//!     Ok(())
//! }
//!
//! fn has(tables: &Tables, flow: &FlowEntry<'_>, version: Version) -> Result<bool, EncodeError> {
//!     let which = (flow.table_id.0, flow.priority, Canonical::of_match(&flow.match_fields)?);
//!     let what = Canonical::of_instructions(&flow.actions, &flow.instructions, version)?;
//!     Ok(tables.get(&which) == Some(&what))
//! }
//!
//! let mut wanted = Tables::new();
//! want(&mut wanted, &Flow::parse("priority=7,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=output:2", Version::V1_5).unwrap())?;
//! // The match of 1.0 has no IPv6, so this flow is encoded as Nicira's flow-mod. The comparison does not depend on that.
//! want(&mut wanted, &Flow::parse("priority=7,ipv6,ipv6_dst=fe80::1 actions=output:2", Version::V1_0).unwrap())?;
//!
//! // Entries of a statistics reply of a 1.0 switch.
//! # use beehive_of::message::Message;
//! # let as_entry = |text| Flow::parse(text, Version::V1_0).unwrap();
//! # let same = as_entry("priority=7,tp_dst=80,nw_dst=10.9.9.9/8,tcp actions=2");
//! # let other = as_entry("priority=7,tp_dst=80,nw_dst=10.0.0.0/8,tcp actions=3");
//! # let [same, other] = [&same, &other].map(|flow| {
//! #     let Message::FlowMod(flow) = flow.message() else { unreachable!("the standard message can express them") };
//! #     FlowEntry {
//! #         priority: flow.priority, match_fields: flow.match_fields, actions: flow.actions, ..Default::default()
//! #     }
//! # });
//! assert!(has(&wanted, &same, Version::V1_0)?);
//! assert!(!has(&wanted, &other, Version::V1_0)?, "it outputs to another port");
//! let elsewhere = FlowEntry { table_id: TableId(1), ..same };
//! assert!(!has(&wanted, &elsewhere, Version::V1_0)?, "it is in another table");
//! # Ok::<(), EncodeError>(())
//! ```
//!
//! # Checking a message and answering errors
//!
//! | level | function | errors it finds |
//! |---|---|---|
//! | structure | `parse`; lists as they are iterated, or all by [`check`](crate::message::Message::check) | lengths, counts, depth |
//! | strict | [`parse_strict`](crate::message::Message::parse_strict) | also padding and reserved bits that are not zero |
//! | meaning | [`check_meaning`](crate::message::Message::check_meaning) | also invalid commands, duplicate instructions and fields, fields without their prerequisite |
//!
//! A switch should use all three levels. A controller should use the first, because real switches do not
//! always zero padding.
//!
//! ```
//! use beehive_of::any::ErrorMessage;
//! use beehive_of::message::Message;
//! use beehive_of::text::Flow;
//! use beehive_of::{Answer, Error, Frame, Version, error_code_name};
//! use bytes::BytesMut;
//!
//! fn check(bytes: &[u8]) -> Result<(), Error> {
//!     let message = Message::parse_strict(Frame::whole(bytes)?)?;
//!     message.check_meaning(Version::V1_3)
//! }
//!
//! let mut good = BytesMut::new();
//! Flow::parse("tcp,tp_dst=80 actions=output:2", Version::V1_3).unwrap().encode_into(7, &mut good)?;
//! assert!(check(&good).is_ok());
//! let with = |at: usize, byte: u8| {
//!     let mut bytes = good.clone();
//!     bytes[at] = byte;
//!     bytes
//! };
//!
//! // Structure: the length of the first match field exceeds the match.
//! let bytes = with(55, 200);
//! let error = Message::parse(Frame::whole(&bytes).unwrap()).and_then(|message| message.check(Version::V1_3)).unwrap_err();
//! assert_eq!(error.answer(Version::V1_3), Answer { error_type: 4, code: 1 });
//!
//! // Strict: nonzero padding, which only a strict check reports.
//! let bytes = with(47, 1);
//! assert!(Message::parse(Frame::whole(&bytes).unwrap()).and_then(|message| message.check(Version::V1_3)).is_ok());
//! assert!(Message::parse_strict(Frame::whole(&bytes).unwrap()).is_err());
//!
//! // Meaning: a TCP port in a match on UDP. The answer contains the start of the message.
//! let bytes = with(62, 17);
//! let error = check(&bytes).unwrap_err();
//! let answer = error.answer(Version::V1_3);
//! assert_eq!(error_code_name(Version::V1_3, answer.error_type, answer.code), Some("bad_prerequisite"));
//! let mut out = BytesMut::new();
//! ErrorMessage::answering(answer, &bytes).encode_into(Version::V1_3, 7, &mut out)?;
//! # Ok::<(), beehive_of::EncodeError>(())
//! ```
//!
//! After an error for which [`is_framing`](crate::Error::is_framing) returns true, the start of the next
//! message is unknown: close the connection. After any other error, continue.
//!
//! A well-formed message of an unknown type, statistics kind or experimenter passes all three levels. The
//! receiver must answer it with an error, which [`unknown_answer`](crate::message::Message::unknown_answer)
//! returns.
//!
//! ```
//! use beehive_of::any::ErrorMessage;
//! use beehive_of::message::Message;
//! use beehive_of::{Answer, Frame, Version};
//! use bytes::BytesMut;
//!
//! for (bytes, expected) in [
//!     (&[4, 99, 0, 8, 0, 0, 0, 7][..], Answer::BAD_TYPE),
//!     // Statistics of kind 99.
//!     (&[4, 18, 0, 16, 0, 0, 0, 7, 0, 99, 0, 0, 0, 0, 0, 0], Answer::BAD_MULTIPART),
//!     (&[1, 16, 0, 12, 0, 0, 0, 7, 0, 99, 0, 0], Answer::BAD_MULTIPART),
//!     // A message of the experimenter 0x00c0ffee, and a Nicira message with an unknown subtype.
//!     (&[4, 4, 0, 16, 0, 0, 0, 7, 0x00, 0xc0, 0xff, 0xee, 0, 0, 0, 1], Answer::BAD_EXPERIMENTER),
//!     (&[4, 4, 0, 16, 0, 0, 0, 7, 0x00, 0x00, 0x23, 0x20, 0, 0, 0xff, 0xfe], Answer::BAD_EXPERIMENTER_TYPE),
//! ] {
//!     let frame = Frame::whole(bytes)?;
//!     let version = frame.version().expect("a supported version");
//!     let message = Message::parse_strict(frame)?;
//!     message.check_meaning(version)?;
//!     assert_eq!(message.unknown_answer(), Some(expected));
//!     let mut out = BytesMut::new();
//!     ErrorMessage::answering(expected, frame.bytes()).encode_into(version, frame.xid(), &mut out).unwrap();
//! }
//! assert_eq!(Message::parse(Frame::whole(&[4, 20, 0, 8, 0, 0, 0, 7])?)?.unknown_answer(), None);
//! # Ok::<(), beehive_of::Error>(())
//! ```
//!
//! # Unknown elements are preserved
//!
//! ```
//! use beehive_of::message::{Action, Message};
//! use beehive_of::{Frame, Version};
//! use bytes::BytesMut;
//!
//! // A packet-out of 1.3 with an action of the unknown experimenter 0x00c0ffee.
//! let received = [
//!     4, 13, 0, 42, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 0, // up to the actions
//!     0xff, 0xff, 0, 16, 0x00, 0xc0, 0xff, 0xee, 1, 2, 3, 4, 5, 6, 7, 8, // the action
//!     0xab, 0xcd, // the packet
//! ];
//! let frame = Frame::whole(&received).unwrap();
//! let message = Message::parse(frame).unwrap();
//! message.check(Version::V1_3).unwrap();
//! let Message::PacketOut(packet) = message else { unreachable!() };
//! assert!(matches!(packet.actions.iter().next(), Some(Ok(Action::Experimenter(_)))));
//!
//! // The action is encoded unchanged and displayed in full.
//! let mut out = BytesMut::new();
//! message.encode_into(Version::V1_3, frame.xid(), &mut out).unwrap();
//! assert_eq!(out, received[..]);
//! let told = message.display(frame.header()).to_string();
//! assert!(told.contains("experimenter=12648430 body=0102030405060708"), "{told}");
//! ```
//!
//! # Messages that only some versions have
//!
//! ```
//! use beehive_of::message::{GroupCommand, GroupId, GroupMod, GroupType, Message};
//! use beehive_of::{Frame, Version};
//! use bytes::BytesMut;
//!
//! let group = Message::GroupMod(GroupMod {
//!     command: GroupCommand::ADD,
//!     group_type: GroupType::SELECT,
//!     group_id: GroupId(9),
//!     ..Default::default()
//! });
//! let mut out = BytesMut::new();
//! group.encode_into(Version::V1_3, 1, &mut out).unwrap();
//! let frame = Frame::whole(&out).unwrap();
//! let text = Message::parse(frame).unwrap().display(frame.header()).to_string();
//! assert_eq!(text, "version=1.3 type=group_mod xid=1 command=add group_type=select group_id=9 buckets=[]");
//! assert_eq!(
//!     group.encode_into(Version::V1_0, 1, &mut out).unwrap_err().to_string(),
//!     "OpenFlow 1.0 cannot express group_mod",
//! );
//! ```
