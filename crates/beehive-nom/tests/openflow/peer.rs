//! A controller on a local port, and switches that connect to it over TCP.

use beehive_core::{Builder, Hive};
use beehive_nom::apps::{LearningSwitch, NodeController};
use beehive_nom::driver::Directory;
use beehive_nom::driver::openflow::{Listener, ListenerSettings, SessionSettings};
use beehive_of::any::{
    Features, FlowStatistics, Hello, Message, PacketIn, PacketInReason, Port, PortDescription, PortName,
    Ports,
};
use beehive_of::{Frame, FrameBuffer, MacAddress, PortNo, Version};
use bytes::BytesMut;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Time limit of every operation.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) struct Controller {
    pub(crate) hive: Hive,
    pub(crate) directory: Arc<Directory>,
    pub(crate) address: SocketAddr,
}

impl Controller {
    pub(crate) async fn start() -> Controller {
        Controller::with(ListenerSettings::default()).await
    }

    /// Starts a controller that disconnects silent switches after 0.4 s, and unfinished handshakes after 0.5
    /// s.
    pub(crate) async fn impatient() -> Controller {
        let session = SessionSettings {
            echo_interval: Duration::from_millis(100),
            handshake: Duration::from_millis(500),
            ..SessionSettings::default()
        };
        Controller::with(ListenerSettings { session, ..ListenerSettings::default() }).await
    }

    pub(crate) async fn with(settings: ListenerSettings) -> Controller {
        Controller::of(Hive::builder().app::<NodeController>().app::<LearningSwitch>(), settings).await
    }

    /// Starts a controller with the given apps and settings.
    pub(crate) async fn of(apps: Builder, settings: ListenerSettings) -> Controller {
        let hive = apps.start().expect("starts");
        let directory = Arc::new(Directory::default());
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("bound");
        Listener::new(&hive, directory.clone(), settings).serve(socket);
        Controller { hive, directory, address }
    }

    pub(crate) async fn connect(&self) -> Peer {
        let stream = TcpStream::connect(self.address).await.expect("accepts");
        stream.set_nodelay(true).expect("nodelay");
        Peer::of(stream)
    }

    /// Connects a switch and completes its setup.
    pub(crate) async fn join(&self, version: Version, node: u64) -> Peer {
        let mut peer = self.connect().await;
        peer.join(version, node).await;
        peer
    }

    /// Returns whether a switch is served correctly.
    pub(crate) async fn serves(&self, peer: &mut Peer) -> bool {
        let (a, b) = (frame_between(1, 2), frame_between(2, 1));
        peer.packet_in(1, &a).await;
        let first = peer.packet_out().await;
        peer.packet_in(2, &b).await;
        let second = peer.packet_out().await;
        first.is_some_and(|(_, data)| data == a)
            && second.is_some_and(|(port, data)| data == b && port == PortNo(1))
    }
}

/// Waits until a condition becomes true.
pub(crate) async fn eventually(what: impl Fn() -> bool) -> bool {
    for _ in 0..300 {
        if what() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await
    }
    false
}

pub(crate) fn frame_between(source: u8, destination: u8) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, destination][..], &[2, 0, 0, 0, 0, source], &[8, 0], &[source; 46]].concat()
}

pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// Bytes that were read but not yet processed.
    pub(crate) received: FrameBuffer,
    pub(crate) version: Version,
}

pub(crate) fn ports() -> Vec<Port> {
    let port = |n: u8| Port::new(PortNo(n.into()), MacAddress([2, 9, 0, 0, 0, n]), PortName::from("eth"));
    (1..=4).map(port).collect()
}

pub(crate) fn no_flows() -> FlowStatistics<'static> {
    FlowStatistics { more: false, entries: [].as_slice().into() }
}

pub(crate) fn features(version: Version, node: u64, auxiliary_id: u8, xid: u32) -> BytesMut {
    let mut out = BytesMut::new();
    let list = ports();
    let ports: Ports<'_> = if version < Version::V1_3 { list.as_slice().into() } else { Ports::EMPTY };
    let features = Features {
        datapath_id: node,
        buffers: 256,
        tables: 1,
        auxiliary_id,
        capabilities: Default::default(),
        actions: 0,
        ports,
    };

    features.encode_into(version, xid, &mut out).expect("features");
    out
}

pub(crate) fn encode(message: &Message<'_>, version: Version, xid: u32) -> BytesMut {
    let mut out = BytesMut::new();
    message.encode_into(version, xid, &mut out).expect("encodes");
    out
}

impl Peer {
    pub(crate) fn of(stream: TcpStream) -> Peer {
        Peer { stream, received: FrameBuffer::new(), version: Version::V1_0 }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // the other side may have closed the connection, which the next read reports
        let _ = self.stream.write_all(bytes).await;
    }

    /// Returns the next frame; `None` if the connection is closed.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        let next = async {
            loop {
                if let Some(frame) = self.received.next_frame().expect("the controller sends frames") {
                    return Some(frame.bytes().to_vec());
                }
                if !self.stream.read_buf(self.received.read_target()).await.is_ok_and(|bytes| bytes > 0) {
                    return None;
                }
            }
        };

        tokio::time::timeout(PATIENCE, next).await.expect("the controller neither speaks nor closes")
    }

    /// Answers the controller's requests until a message arrives for which `want` returns a value.
    pub(crate) async fn until<R>(&mut self, want: impl Fn(&Message<'_>, u32) -> Option<R>) -> Option<R> {
        loop {
            let bytes = self.next().await?;
            let frame = Frame::whole(&bytes).expect("a frame");
            let (message, xid) = (Message::parse(frame).expect("a message"), frame.xid());
            if let Some(wanted) = want(&message, xid) {
                return Some(wanted);
            }
            self.answer(&message, xid).await
        }
    }

    async fn answer(&mut self, message: &Message<'_>, xid: u32) {
        let version = self.version;
        let answer = match message {
            Message::BarrierRequest => encode(&Message::BarrierReply, version, xid),
            Message::EchoRequest(echo) => encode(&Message::EchoReply(*echo), version, xid),
            Message::PortDescriptionRequest => {
                let list = ports();
                let mut out = BytesMut::new();
                let description = PortDescription { more: false, ports: list.as_slice().into() };
                Message::PortDescriptionReply(description)
                    .encode_into(version, xid, &mut out)
                    .expect("ports");
                out
            }
            Message::FlowStatisticsRequest(_) => {
                encode(&Message::FlowStatisticsReply(no_flows()), version, xid)
            }
            _ => return,
        };

        self.send(&answer).await
    }

    /// Sends a hello. Returns the transaction id of the features request.
    pub(crate) async fn greet(&mut self, version: Version) -> Option<u32> {
        self.version = version;
        let mut hello = BytesMut::new();
        Hello { version: version.wire(), versions: None }.encode_into(1, &mut hello).expect("hello");
        self.send(&hello).await;
        self.until(|message, xid| matches!(message, Message::FeaturesRequest).then_some(xid)).await
    }

    pub(crate) async fn join(&mut self, version: Version, node: u64) {
        self.introduce(version, node).await;
        self.settle().await
    }

    /// Sends a hello and the features reply.
    pub(crate) async fn introduce(&mut self, version: Version, node: u64) {
        let xid = self.greet(version).await.expect("asks for features");
        self.send(&features(version, node, 0, xid)).await
    }

    /// Continues until the controller has read the flows of the switch, of which there are none, and has
    /// installed its own.
    pub(crate) async fn settle(&mut self) {
        self.settle_with(no_flows()).await
    }

    /// Like [`Peer::settle`], but reports these flows to the controller.
    pub(crate) async fn settle_with(&mut self, flows: FlowStatistics<'_>) {
        self.tell(flows).await;
        if self.version >= Version::V1_3 {
            let added = |message: &Message<'_>, _| matches!(message, Message::FlowMod(_)).then_some(());
            self.until(added).await.expect("is given a flow that brings packets up");
        }
    }

    /// Waits until the controller requests the flows of the switch, and reports these flows.
    pub(crate) async fn tell(&mut self, flows: FlowStatistics<'_>) {
        let asked =
            |message: &Message<'_>, xid| matches!(message, Message::FlowStatisticsRequest(_)).then_some(xid);
        let xid = self.until(asked).await.expect("joins");
        let version = self.version;
        self.send(&encode(&Message::FlowStatisticsReply(flows), version, xid)).await
    }

    pub(crate) async fn packet_in(&mut self, port: u32, data: &[u8]) {
        self.packet_in_of(port, data, data.len() as u16, None).await
    }

    pub(crate) async fn packet_in_of(
        &mut self,
        port: u32,
        data: &[u8],
        total_len: u16,
        buffer_id: Option<u32>,
    ) {
        let packet = PacketIn {
            buffer_id,
            total_len,
            in_port: PortNo(port),
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: None,
            data,
        };

        let mut out = BytesMut::new();
        packet.encode_into(self.version, 0, &mut out).expect("packet-in");
        self.send(&out).await
    }

    /// Waits for the next packet-out, and returns its first output port and its data.
    pub(crate) async fn packet_out(&mut self) -> Option<(PortNo, Vec<u8>)> {
        self.until(|message, _| match message {
            Message::PacketOut(packet) => Some((output(&packet.actions), packet.data.to_vec())),
            _ => None,
        })
        .await
    }

    /// Waits until the connection closes, and returns the latest error: type, code and text.
    pub(crate) async fn closed(&mut self) -> Option<(u16, u16, String)> {
        let mut last = None;
        while let Some(bytes) = self.next().await {
            if let Ok(Message::Error(error)) = Message::parse(Frame::whole(&bytes).expect("a frame")) {
                last = Some((error.error_type, error.code, String::from_utf8_lossy(error.data).into_owned()))
            }
        }
        last
    }
}

pub(crate) fn output(actions: &beehive_of::any::Actions<'_>) -> PortNo {
    match actions.iter().next() {
        Some(Ok(beehive_of::any::Action::Output { port, .. })) => port,
        _ => PortNo::ANY,
    }
}
