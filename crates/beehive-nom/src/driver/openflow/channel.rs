//! Defines a connection's transport, which reads and writes bytes and authenticates the peer.

use crate::object::NodeId;
use bytes::BytesMut;
use std::future::{Future, pending};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The result of waiting on a channel.
#[derive(Debug)]
pub enum ChannelEvent {
    /// The number of bytes read; 0 if the peer has closed the connection.
    Read(io::Result<usize>),
    /// The channel may accept more bytes.
    Writable,
}

/// A byte stream to a switch.
///
/// An error of kind [`InvalidData`](io::ErrorKind::InvalidData) means that the peer is not trusted: it has no
/// certificate or a wrong one, or it does not speak TLS. All other errors mean that the network failed.
pub trait Channel: Send + 'static {
    /// Waits for the first of two events: bytes have been read into the free capacity of `input` (if
    /// `want_read`), or the channel is writable (if `want_write`). Cancel-safe: all bytes read are in
    /// `input`.
    fn next_event(
        &mut self,
        input: &mut BytesMut,
        want_read: bool,
        want_write: bool,
    ) -> impl Future<Output = ChannelEvent> + Send;

    /// Writes as many of `bytes` as possible without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if no byte can be written. Any other error means that the
    /// connection has ended.
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Closes the sending direction and waits until the peer has closed its own, so that the peer receives
    /// all output.
    fn finish(&mut self) -> impl Future<Output = ()> + Send;

    /// Checks that the peer is allowed to claim the node id `node`.
    ///
    /// # Errors
    ///
    /// Returns an error if the peer's certificate names another node or no node.
    fn authorize(&self, node: NodeId) -> Result<(), String>;
}

/// Plain TCP. A peer may claim any node id.
#[derive(Debug)]
pub struct Plain {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
}

impl Plain {
    /// Creates the channel of an accepted connection.
    pub fn new(stream: TcpStream) -> Plain {
        let (read, write) = stream.into_split();
        Plain { read, write }
    }
}

impl Channel for Plain {
    #[inline]
    async fn next_event(&mut self, input: &mut BytesMut, want_read: bool, want_write: bool) -> ChannelEvent {
        let Plain { read, write } = self;
        tokio::select! {
            biased;
            result = read.read_buf(input), if want_read => ChannelEvent::Read(result),
            _ = write.writable(), if want_write => ChannelEvent::Writable,
            else => pending().await,
        }
    }

    #[inline]
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write.try_write(bytes)
    }

    async fn finish(&mut self) {
        // ignore errors, because the connection ends here in any case
        let _ = self.write.shutdown().await;
        let mut rest = [0; 1024];
        while self.read.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
    }

    fn authorize(&self, _node: NodeId) -> Result<(), String> {
        Ok(())
    }
}
