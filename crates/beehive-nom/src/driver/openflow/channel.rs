//! Defines a connection's transport, which reads and writes bytes and authenticates the peer.

use crate::object::NodeId;
use bytes::{BufMut, BytesMut};
use socket2::SockRef;
use std::future::{Future, pending};
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;
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
    /// Waits for the first of two events: bytes have been read into the free capacity of `input` (at most `read_max`; zero
    /// reads none), or the channel is writable (if `want_write`). Cancel-safe: all bytes read are in `input`.
    fn next_event(
        &mut self,
        input: &mut BytesMut,
        read_max: usize,
        want_write: bool,
    ) -> impl Future<Output = ChannelEvent> + Send;

    /// Writes as many of `bytes` as possible without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if no byte can be written. Any other error means that the
    /// connection has ended.
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns whether bytes have arrived that [`Channel::next_event`] has not returned yet. Asks the operating system, so
    /// the answer holds even if this task has not run for a while.
    fn has_unread(&self) -> bool;

    /// Returns a number that changes when the peer has sent bytes that do not reach the session, as in a TLS handshake.
    fn progress(&self) -> u64 {
        0
    }

    /// Returns the time for which the channel itself has kept the peer waiting so far.
    fn kept_waiting(&self) -> Duration {
        Duration::ZERO
    }

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
    async fn next_event(&mut self, input: &mut BytesMut, read_max: usize, want_write: bool) -> ChannelEvent {
        let Plain { read, write } = self;
        let mut room = input.limit(read_max);
        tokio::select! {
            biased;
            result = read.read_buf(&mut room), if read_max > 0 => ChannelEvent::Read(result),
            _ = write.writable(), if want_write => ChannelEvent::Writable,
            else => pending().await,
        }
    }

    #[inline]
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write.try_write(bytes)
    }

    fn has_unread(&self) -> bool {
        has_unread(self.read.as_ref())
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

/// Returns whether the socket has bytes to read, or its end.
pub(super) fn has_unread(stream: &TcpStream) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    // the socket is non-blocking; an error, too, is something to be read
    !matches!(SockRef::from(stream).peek(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
