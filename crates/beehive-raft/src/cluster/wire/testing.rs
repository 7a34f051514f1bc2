//! A hive that sends what no hive sends, so that tests can see what a wire does about it.

use super::codec::FrameCodec;
use super::counted::{Counted, CountedBy};
use super::dial;
use super::frame::Frame;
use super::handshake::{self, Line, Us};
use super::identity::Identity;
use super::lane::Lane;
use super::options::WireOptions;
use super::tasks::Scope;
use super::token::Key;
use beehive_core::HiveId;
use bytes::{BufMut, Bytes};
use futures_core::Stream;
use http::uri::PathAndQuery;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic::{Request, Status, Streaming};

/// A connection of a hive that sends any bytes as messages of gRPC streams.
///
/// Errors are texts, because only tests see them.
#[derive(Debug)]
pub struct RawHive {
    streams: Vec<(mpsc::Sender<Bytes>, Streaming<Frame>)>,
    scope: Scope,
}

/// Encodes a frame. Its kind and the length of its message may be wrong.
pub fn frame(kind: u8, id: u64, length: u32, part: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(Frame::HEADER_BYTES + part.len());
    bytes.put_u8(kind);
    bytes.put_u64_le(id);
    bytes.put_u32_le(length);
    bytes.put_slice(part);
    bytes
}

impl RawHive {
    /// Connects as a stranger, and opens the stream of the handshake and then those of the lanes, as far as they are opened.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no connection, or if the first stream is refused.
    pub async fn stranger(to: SocketAddr) -> Result<RawHive, String> {
        let scope = Scope::new(Handle::current()).inside();
        let mut client = begin(to, &scope).await?;
        let mut streams = vec![open(&mut client, handshake::PATH).await?];
        for lane in Lane::ALL {
            match open(&mut client, lane.path()).await {
                Ok(stream) => streams.push(stream),
                Err(_) => break,
            }
        }
        Ok(RawHive { streams, scope })
    }

    /// Connects as the hive of the options, does the handshake, and opens the lanes.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is refused.
    pub async fn connect(options: &WireOptions, expected: HiveId, to: SocketAddr) -> Result<RawHive, String> {
        let scope = Scope::new(Handle::current()).inside();
        let mut client = begin(to, &scope).await?;

        let (sender, sent) = handshake::channel();
        let path = PathAndQuery::from_static(handshake::PATH);
        client.ready().await.map_err(|error| error.to_string())?;
        let from = client.streaming(Request::new(sent), path, FrameCodec).await;
        let from = from.map_err(|status| status.message().to_string())?.into_inner();
        let identity = Identity {
            cluster: options.cluster.clone(),
            seed: options.seed,
            apps: *blake3::hash(&options.fingerprint).as_bytes(),
            hive: options.hive,
            incarnation: options.incarnation,
            process: [0; 16],
        };
        let us = Us { identity: &identity, key: &Key::new(options.token.as_deref()), shown: None };
        let mut line = Line::new(sender, from);
        let shaken = handshake::dial(us, expected, &mut line, |_| Ok(())).await;
        shaken.map_err(|failure| format!("{failure:?}"))?;
        drop(line);

        let mut streams = Vec::new();
        for lane in Lane::ALL {
            streams.push(open(&mut client, lane.path()).await?)
        }
        Ok(RawHive { streams, scope })
    }

    /// Number of streams that are open.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Sends bytes as one message of a stream. Returns false if the connection has ended.
    pub async fn send(&self, stream: usize, message: Vec<u8>) -> bool {
        match self.streams.get(stream) {
            Some((to, _)) => to.send(Bytes::from(message)).await.is_ok(),
            None => false,
        }
    }

    /// Waits for the next frame of a stream. Returns the bytes after its header, or `None` if the stream has ended.
    pub async fn receive(&mut self, stream: usize) -> Option<Vec<u8>> {
        let (_, from) = self.streams.get_mut(stream)?;
        Some(from.message().await.ok()??.part.to_vec())
    }

    /// Sends no more, and waits until the other side has closed all streams.
    pub async fn finish(mut self) {
        for (to, _) in &mut self.streams {
            *to = mpsc::channel(1).0
        }
        for (_, from) in &mut self.streams {
            while let Ok(Some(_)) = from.message().await {}
        }
    }
}

impl Drop for RawHive {
    fn drop(&mut self) {
        self.scope.end()
    }
}

/// Connects without TLS.
async fn begin(to: SocketAddr, scope: &Scope) -> Result<tonic::client::Grpc<dial::Client>, String> {
    let socket = TcpStream::connect(to).await.map_err(|error| error.to_string())?;
    dial::begin(Box::new(Counted { socket, by: CountedBy::default() }), scope).await
}

async fn open(
    client: &mut tonic::client::Grpc<dial::Client>,
    path: &'static str,
) -> Result<(mpsc::Sender<Bytes>, Streaming<Frame>), String> {
    let (sender, sent) = mpsc::channel(8);
    client.ready().await.map_err(|error| error.to_string())?;
    let path = PathAndQuery::from_static(path);
    let opened = client.streaming(Request::new(Sent(sent)), path, Bare(FrameCodec)).await;
    let opened = opened.map_err(|status| status.message().to_string())?;
    Ok((sender, opened.into_inner()))
}

struct Sent(mpsc::Receiver<Bytes>);

impl Stream for Sent {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(context)
    }
}

/// Sends bytes as they are, and reads frames.
struct Bare(FrameCodec);

impl Codec for Bare {
    type Encode = Bytes;
    type Decode = Frame;
    type Encoder = Bare;
    type Decoder = FrameCodec;

    fn encoder(&mut self) -> Bare {
        Bare(FrameCodec)
    }
    fn decoder(&mut self) -> FrameCodec {
        self.0
    }
}

impl Encoder for Bare {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }
}
