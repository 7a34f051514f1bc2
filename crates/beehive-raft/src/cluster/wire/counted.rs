//! A socket that counts what goes through it.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Number of bytes from and to a hive.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
}

/// A socket, with TLS or without.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// What is noted about the bytes of a connection.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Where bytes are counted, as soon as the hive at the other end is known.
    pub(super) traffic: OnceLock<Arc<Traffic>>,
    first: OnceLock<u8>,
}

pub(super) type CountedBy = Arc<Notes>;

impl Notes {
    /// Whether the first byte from the other side was that of a TLS record, which HTTP/2 never begins with: a handshake message
    /// or an alert.
    pub(super) fn has_seen_tls(&self) -> bool {
        self.first.get().is_some_and(|first| matches!(first, 0x15 | 0x16))
    }
}

/// A socket that counts what goes through it. With TLS, it counts what TLS sends.
#[derive(Debug)]
pub(super) struct Counted<S> {
    pub(super) socket: S,
    pub(super) by: CountedBy,
}

impl<S> Counted<S> {
    fn add_out(&self, written: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(bytes)), Some(traffic)) = (written, self.by.traffic.get()) {
            traffic.bytes_out.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        if let Some(first) = buffer.filled().get(before) {
            let _ = self.by.first.get_or_init(|| *first);
        }
        if let Some(traffic) = self.by.traffic.get() {
            traffic.bytes_in.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.add_out(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, parts);
        self.add_out(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
