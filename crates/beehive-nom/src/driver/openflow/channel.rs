//! What a connection runs over: bytes in, bytes out, and whether the other side has shown who it is.

use crate::object::NodeId;
use bytes::BytesMut;
use std::future::{Future, pending};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// What a wait on a channel brought.
#[derive(Debug)]
pub enum ChannelEvent {
    /// So many bytes were read; none: the other side has closed it.
    Read(io::Result<usize>),
    /// It may take more bytes now.
    Writable,
}

/// A connection to a switch, as bytes.
///
/// An error of kind [`InvalidData`](io::ErrorKind::InvalidData) says that the other side is not to be trusted: it has the
/// wrong certificate, or none, or does not speak what is spoken here. Others say that the network failed.
pub trait Channel: Send + 'static {
    /// Waits until something was read into `input`, if `want_read`, no more than there is room for; or until it may be
    /// written, if `want_write`. Cancel-safe: what was read is in `input`.
    fn next_event(
        &mut self,
        input: &mut BytesMut,
        want_read: bool,
        want_write: bool,
    ) -> impl Future<Output = ChannelEvent> + Send;

    /// Takes as many of `bytes` as it can without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if that is none; else the connection is over.
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Lets what was written arrive: says that no more comes, and reads on until the other side has closed it too.
    fn finish(&mut self) -> impl Future<Output = ()> + Send;

    /// Whether the other side may say to be the node `node`; else why not.
    ///
    /// # Errors
    ///
    /// What it has shown is another node's.
    fn authorize(&self, node: NodeId) -> Result<(), String>;
}

/// TCP as it is: whoever is let in may say to be anybody.
#[derive(Debug)]
pub struct Plain {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
}

impl Plain {
    /// Over a connection that was accepted.
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
        // whatever fails now, there is no more to be done for it
        let _ = self.write.shutdown().await;
        let mut rest = [0; 1024];
        while self.read.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
    }

    fn authorize(&self, _node: NodeId) -> Result<(), String> {
        Ok(())
    }
}
