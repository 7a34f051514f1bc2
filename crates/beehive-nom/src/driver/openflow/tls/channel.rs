//! Implements a TLS channel with rustls, without a separate task and without an extra copy.
//!
//! The TLS handshake happens while the connection is reading. Meanwhile, the connection occupies a handshake slot, with
//! the same time limit as any other connection. Output written before the end of the TLS handshake is buffered, up to
//! [`BUFFERED_BYTES_MAX`].

use crate::driver::openflow::channel::{Channel, ChannelEvent, has_unread};
use crate::driver::openflow::tls::certificate;
use crate::object::NodeId;
use bytes::BytesMut;
use rustls::{ServerConfig, ServerConnection};
use std::future::pending;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Maximum number of bytes buffered by rustls until the socket accepts them or the handshake ends. Further output stays
/// in the connection.
const BUFFERED_BYTES_MAX: usize = 64 * 1024;

/// TLS over TCP. No data is delivered before the peer has presented a trusted certificate.
#[derive(Debug)]
pub struct Tls {
    tcp: TcpStream,
    tls: ServerConnection,
    /// Whether the certificate must contain the node id.
    binds_node: bool,
    /// Permits to take a step of a handshake, which computes signatures.
    handshakes: Arc<Semaphore>,
    /// Time since which this connection has been waiting for a permit, and the time for which it has waited before.
    permit_wanted: Option<Instant>,
    kept_waiting: Duration,
    /// Number of steps of the handshake that were taken.
    steps: u64,
}

impl Tls {
    /// Creates the channel of an accepted connection. With `binds_node`, the certificate must contain the node id
    /// that the switch reports.
    ///
    /// # Errors
    ///
    /// Returns an error if rustls does not accept the configuration.
    pub fn new(tcp: TcpStream, config: Arc<ServerConfig>, binds_node: bool) -> io::Result<Tls> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(BUFFERED_BYTES_MAX));
        let handshakes = Arc::new(Semaphore::new(1));
        Ok(Tls {
            tcp,
            tls,
            binds_node,
            handshakes,
            permit_wanted: None,
            kept_waiting: Duration::ZERO,
            steps: 0,
        })
    }

    /// Sets the permits for the steps of a handshake, which several channels share.
    pub(in crate::driver::openflow) fn limited_by(mut self, handshakes: Arc<Semaphore>) -> Tls {
        self.handshakes = handshakes;
        self
    }

    /// Takes a step of the handshake when there is a permit, and then lets other tasks run.
    async fn step(&mut self) -> io::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "timeouts at a socket use real time")]
        self.permit_wanted.get_or_insert_with(Instant::now);
        // cannot fail, because nobody closes the semaphore
        let permit = self.handshakes.clone().acquire_owned().await.map_err(io::Error::other)?;
        self.kept_waiting += self.permit_wanted.take().map_or(Duration::ZERO, |wanted| wanted.elapsed());
        self.steps += u64::from(self.pull()?);
        drop(permit);
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Moves at most `most` decrypted bytes to the free capacity of `input`. Returns `None` if there are currently none.
    fn decrypted(&mut self, input: &mut BytesMut, most: usize) -> Option<io::Result<usize>> {
        let mut reader = self.tls.reader();
        match reader.fill_buf() {
            Ok(bytes) => {
                let room = (input.capacity() - input.len()).min(most).max(1);
                let bytes = bytes.get(..room).unwrap_or(bytes);
                let count = bytes.len();
                input.extend_from_slice(bytes);
                reader.consume(count);
                Some(Ok(count))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            // the peer closed the connection without close_notify; truncation is still detected, because messages
            // contain their length
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Some(Ok(0)),
            Err(error) => Some(Err(error)),
        }
    }

    /// Reads from the socket without waiting. Returns whether there was data.
    fn pull(&mut self) -> io::Result<bool> {
        match self.tls.read_tls(&mut Socket(&self.tcp)) {
            Ok(count) => {
                if let Err(error) = self.tls.process_new_packets() {
                    // tries to send the TLS alert, which the peer may still read
                    let _ = self.push();
                    return Err(io::Error::new(ErrorKind::InvalidData, error));
                }
                if count == 0 && self.tls.is_handshaking() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                match self.push() {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
                    _ => Ok(true),
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes the TLS output to the socket without waiting.
    fn push(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(&self.tcp)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }

        Ok(())
    }

    async fn round(
        &mut self,
        input: &mut BytesMut,
        read_max: usize,
        want_write: bool,
    ) -> io::Result<ChannelEvent> {
        let want_read = read_max > 0;
        loop {
            if want_read && let Some(result) = self.decrypted(input, read_max) {
                return result.map(|bytes| ChannelEvent::Read(Ok(bytes)));
            }

            let pushes = self.tls.wants_write();
            // during the handshake, application output is waiting for handshake messages from the peer, not for the
            // socket
            let want_write = want_write && !self.tls.is_handshaking();
            let interest = match (want_read, pushes || want_write) {
                (true, true) => Interest::READABLE | Interest::WRITABLE,
                (true, false) => Interest::READABLE,
                (false, true) => Interest::WRITABLE,
                (false, false) => return pending().await,
            };

            let ready = self.tcp.ready(interest).await?;
            if ready.is_writable() {
                match self.push() {
                    Ok(()) if want_write => return Ok(ChannelEvent::Writable),
                    Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                    _ => {}
                }
            }

            if want_read && (ready.is_readable() || ready.is_read_closed()) {
                match self.tls.is_handshaking() {
                    true => self.step().await?,
                    false => drop(self.pull()?),
                }
            }
        }
    }
}

impl Channel for Tls {
    async fn next_event(&mut self, input: &mut BytesMut, read_max: usize, want_write: bool) -> ChannelEvent {
        self.round(input, read_max, want_write).await.unwrap_or_else(|error| ChannelEvent::Read(Err(error)))
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // writes the buffered output first, so that it does not grow
        self.push()?;
        match self.tls.writer().write(bytes)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => match self.push() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
                _ => Ok(count),
            },
        }
    }

    fn has_unread(&self) -> bool {
        has_unread(&self.tcp)
    }

    fn progress(&self) -> u64 {
        self.steps
    }

    fn kept_waiting(&self) -> Duration {
        self.kept_waiting + self.permit_wanted.map_or(Duration::ZERO, |wanted| wanted.elapsed())
    }

    async fn finish(&mut self) {
        self.tls.send_close_notify();
        while self.tls.wants_write() {
            match self.push() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.tcp.writable().await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }

        let _ = tokio::io::AsyncWriteExt::shutdown(&mut self.tcp).await;
        let mut rest = [0; 1024];
        while tokio::io::AsyncReadExt::read(&mut self.tcp, &mut rest).await.is_ok_and(|bytes| bytes > 0) {}
    }

    fn authorize(&self, node: NodeId) -> Result<(), String> {
        if !self.binds_node {
            return Ok(());
        }

        let shown = self.tls.peer_certificates().and_then(<[_]>::first);
        // cannot be empty, because rustls refuses a peer without a certificate
        let names = shown.map(|der| certificate::names(der)).unwrap_or_default();
        match names.iter().any(|name| certificate::names_node(name, node)) {
            true => Ok(()),
            false => Err(format!("the certificate does not name {node}; it names {}", names.join(", "))),
        }
    }
}

/// Adapts the non-blocking socket to the `Read` and `Write` traits expected by rustls.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
