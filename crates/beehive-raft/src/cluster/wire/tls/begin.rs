//! Begins TLS on a connection, from either side.

use super::credentials::Credentials;
use super::name_of;
use super::words::{self, Failed};
use crate::cluster::wire::counted::Counted;
use crate::limits::wire as limits;
use beehive_core::HiveId;
use rustls::client::verify_server_name;
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// What a plain hive says first: an empty settings frame of HTTP/2. A hive with TLS recognizes by it that this one has none.
const PLAIN_BEGINNING: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The first byte of a TLS connection: a record with a handshake message.
const HANDSHAKE_RECORD: u8 = 0x16;

/// The certificate that a hive has shown which has connected. A CA of the cluster has signed it, and it is valid.
#[derive(Debug)]
pub(in crate::cluster::wire) struct Shown(CertificateDer<'static>);

impl Shown {
    /// Whether it is the certificate of this hive.
    pub(in crate::cluster::wire) fn is_of(&self, hive: HiveId) -> bool {
        self.compare(hive).is_ok()
    }

    /// The names in the certificate, as text.
    pub(in crate::cluster::wire) fn names(&self, hive: HiveId) -> String {
        match self.compare(hive) {
            Err(rustls::Error::InvalidCertificate(error)) => words::names(&error),
            _ => super::name_of(hive).to_str().into_owned(),
        }
    }

    fn compare(&self, hive: HiveId) -> Result<(), rustls::Error> {
        verify_server_name(&ParsedCertificate::try_from(&self.0)?, &name_of(hive))
    }
}

/// Begins TLS as the side that connects, and expects a certain hive.
pub(in crate::cluster::wire) async fn dial(
    credentials: &Credentials,
    hive: HiveId,
    socket: Counted<TcpStream>,
) -> Result<client::TlsStream<Counted<TcpStream>>, Failed> {
    let connector = TlsConnector::from(credentials.current().client);
    let begun = async {
        let mut stream = connector.connect(name_of(hive), socket).await?;
        // In TLS 1.3, this side is done before the other one has seen its certificate. So it waits for the first bytes of HTTP/2,
        // in place of which there may be a refusal, whose reason would not get through HTTP/2
        match stream.fill_buf().await?.is_empty() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(stream),
        }
    };
    begun.await.map_err(|error| words::of_io(&error, credentials.files()))
}

/// Begins TLS as the side that accepts. If it fails, the other side has been told, and should have the time to read it: see
/// [`part`].
pub(in crate::cluster::wire) async fn accept(
    credentials: &Credentials,
    socket: Counted<TcpStream>,
) -> Result<(server::TlsStream<Counted<TcpStream>>, Shown), (String, Counted<TcpStream>)> {
    let acceptor = TlsAcceptor::from(credentials.current().server);
    match acceptor.accept(socket).into_fallible().await {
        Ok(stream) => {
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            // there is always one, because the configuration requires it; an empty one would be that of no hive
            let shown = chain
                .first()
                .map_or_else(|| CertificateDer::from(Vec::new()), |first| first.clone().into_owned());
            Ok((stream, Shown(shown)))
        }
        Err((error, socket)) => Err((words::of_io(&error, credentials.files()).why, socket)),
    }
}

/// Waits for the first byte of a connection to a hive without TLS, and returns whether it begins TLS. If so, the other side is
/// answered in a way that it understands.
pub(in crate::cluster::wire) async fn is_begun(socket: &mut TcpStream) -> bool {
    let mut first = [0];
    match socket.peek(&mut first).await {
        Ok(1) if first[0] == HANDSHAKE_RECORD => {
            let _ = socket.write_all(&PLAIN_BEGINNING).await;
            true
        }
        _ => false,
    }
}

/// Closes a connection when the other side has read what it was told: to close it while bytes are unread would take that back.
pub(in crate::cluster::wire) async fn part(mut socket: impl AsyncRead + AsyncWrite + Unpin) {
    let parted = async {
        socket.shutdown().await?;
        let mut rest = [0; 1024];
        while socket.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(limits::PARTING_TIME_MAX, parted).await;
}
