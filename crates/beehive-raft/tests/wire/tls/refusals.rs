//! Hives that cannot trust each other: both say why and what to do.

use super::{Log, in_turn, secured};
use crate::certificates::{Authority, Signed, expired, not_yet_valid, write};
use crate::hives::*;
use beehive_core::HiveId;
use beehive_raft::cluster::transport::{Channel, Transport};
use beehive_raft::cluster::wire::{TlsFiles, Wire, WireError, WireOptions};
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Connects two hives that do not fit. Checks that nothing passes, that the first one says the text within two seconds, and that the
/// second one logs all of the words.
async fn check(first: WireOptions, second: WireOptions, text: &str, other: &str) {
    let log = Log::begin();
    let (first, second) = (Hive::start(first).await, Hive::start(second).await);
    let begun = Instant::now();
    first.knows(&second);
    check_between(&first, &second, second.address(), &log, (text, other)).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(first.peer(second.id).unwrap().misfit.is_some(), "the start would go on");
    first.wire.stop().await;
    second.wire.stop().await
}

async fn check_between(first: &Hive, second: &Hive, address: String, log: &Log, (text, other): (&str, &str)) {
    let number = second.id.0;
    until("refused", || first.why(number).is_some()).await;
    assert_eq!(first.why(number).unwrap().replace(&address, "ADDRESS"), text);
    assert!(log.has(&["no connection: hive ", &text[text.find("ADDRESS").unwrap() + 7..]]), "{}", log.text());
    until(other, || log.has(&["a connection was refused: ", other])).await;
    // nothing was delivered
    first.wire.send(second.id, Channel::Links, vec![1]);
    assert!(first.call(second, Channel::Raft, vec![ECHO]).await.is_err());
    assert_eq!(second.echo.packets_count.load(Ordering::SeqCst), 0);
    assert_eq!(second.echo.calls_count.load(Ordering::SeqCst), 0)
}

const NO_TLS: &str = "it does not use TLS, and this hive does: give all hives of the cluster certificates (`tls`), or none of them";
const TLS: &str = "it uses TLS, and this hive does not: give all hives of the cluster certificates (`tls`), or none of them";

#[test]
fn one_hive_has_certificates_and_the_other_has_none() {
    let _turn = in_turn();
    let authority = Authority::new();
    runtime().block_on(async {
        let (with, without) =
            (|hive| secured("one of two", hive, &authority), |hive| options("one of two", hive));
        check(with(1), without(2), &format!("hive 2 at ADDRESS: {NO_TLS}"), TLS).await;
        check(without(1), with(2), &format!("hive 2 at ADDRESS: {TLS}"), NO_TLS).await
    })
}

#[test]
fn another_ca() {
    let _turn = in_turn();
    let remedy = "sign the certificates of all hives with one CA, and give all hives its certificate";
    // CAs that were made with the same commands have the same name
    for name in ["a cluster", "another cluster"] {
        let (one, other) = (Authority::new(), Authority::named(name));
        runtime().block_on(async {
            let text = format!("its certificate was not signed by a CA in {}: {remedy}", one.ca().display());
            let words = "it refuses this hive's certificate (";
            let (first, second) = (secured("CA", 1, &one), secured("CA", 2, &other));
            check(first, second, &format!("hive 2 at ADDRESS: {text}"), words).await;

            // only the one that accepts does not know the CA of the other one
            let both = Authority::new();
            let first = both.files_with(1, &one.sign("hive-1", |_| ()));
            write(&both.ca(), &format!("{}{}", one.pem(), other.pem()));
            let text = format!(
                "it refuses this hive's certificate ({}), because none of its CAs has signed it: {remedy}",
                first.certificate.display()
            );
            let first = WireOptions { tls: Some(first), ..options("CA", 1) };
            let words =
                format!("its certificate was not signed by a CA in {}: {remedy}", other.ca().display());
            check(first, secured("CA", 2, &other), &format!("hive 2 at ADDRESS: {text}"), &words).await
        })
    }
}

fn roots(authority: &Authority) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    Arc::new(roots)
}

/// Accepts TLS with this certificate, and passes everything on without TLS.
async fn shows(authority: &Authority, signed: &Signed, to: SocketAddr) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(authority), provider.clone());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![signed.der.clone()], signed.key())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(mut near) = acceptor.accept(near).await else { continue };
            let mut far = TcpStream::connect(to).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        }
    });
    address
}

fn client(
    authority: &Authority,
    signed: Option<&Signed>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> TlsConnector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots(authority));
    TlsConnector::from(Arc::new(match signed {
        Some(signed) => config.with_client_auth_cert(vec![signed.der.clone()], signed.key()).unwrap(),
        None => config.with_no_client_auth(),
    }))
}

fn hive_2() -> ServerName<'static> {
    ServerName::try_from("hive-2").unwrap()
}

/// Accepts connections without TLS, and passes everything on to hive 2 with TLS and this certificate.
async fn uses(authority: &Authority, signed: &Signed, to: SocketAddr) -> SocketAddr {
    let connector = client(authority, Some(signed), rustls::ALL_VERSIONS);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let far = TcpStream::connect(to).await.unwrap();
            let Ok(mut far) = connector.connect(hive_2(), far).await else { continue };
            tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        }
    });
    address
}

#[test]
fn a_hive_with_the_certificate_of_another_one_is_not_believed() {
    let _turn = in_turn();
    let authority = Authority::new();
    let third = authority.sign("hive-3", |_| ());
    runtime().block_on(async {
        // it accepts, and passes on what a hive 2 says
        let first = Hive::start(secured("impostor", 1, &authority)).await;
        let second = Hive::start(options("impostor", 2)).await;
        let impostor = shows(&authority, &third, second.wire.address()).await;
        first.wire.set_peer(second.id, impostor.to_string());
        until("refused", || first.why(2).is_some()).await;
        assert_eq!(
            first.why(2).unwrap(),
            format!(
                "hive 2 at {impostor}: its certificate is for hive-3, and not for hive-2: correct the address of that hive, or give it \
                 its own certificate"
            )
        );
        assert!(first.call(&second, Channel::Raft, vec![ECHO]).await.is_err());
        assert!(first.peer(second.id).unwrap().misfit.is_some());
        assert_eq!(second.wire.status().strangers_refused, 0, "something was passed on");

        // it connects, and passes on what a hive 1 says
        let first = Hive::start(options("impostor", 1)).await;
        let second = Hive::start(secured("impostor", 2, &authority)).await;
        let impostor = uses(&authority, &third, second.wire.address()).await;
        first.wire.set_peer(second.id, impostor.to_string());
        second.wire.set_peer(HiveId(1), "127.0.0.1:1");
        until("refused", || first.why(2).is_some()).await;
        assert_eq!(
            first.why(2).unwrap(),
            format!(
                "hive 2 at {impostor} refuses this hive, because its certificate is not that of hive 1: give it one with the name \
                 `hive-1`"
            )
        );
        let said = || second.why(1).is_some_and(|why| why.starts_with("somebody says to be hive 1 at 127.0.0.1:"));
        until("the other one says so", said).await;
        let text = second.why(1).unwrap();
        assert!(
            text.ends_with(
                ", and shows a certificate for hive-3: give each hive a certificate with its own name, `hive-1`; if all have that, \
                 somebody else has the key of that certificate"
            ),
            "{text}"
        );
        assert!(first.call(&second, Channel::Raft, vec![ECHO]).await.is_err());
        assert_eq!(second.echo.calls_count.load(Ordering::SeqCst), 0);
        assert!(!second.peer(HiveId(1)).unwrap().is_heard);
        // somebody with a certificate of the cluster must not end the start of another hive
        assert_eq!(second.peer(HiveId(1)).unwrap().misfit, None);

        // with its own certificate, the same works
        let own = authority.sign("hive-1", |_| ());
        let honest = uses(&authority, &own, second.wire.address()).await;
        first.wire.set_peer(second.id, honest.to_string());
        first.connected(second.id).await;
        assert_eq!(first.call(&second, Channel::Raft, vec![ECHO]).await, Ok(vec![ECHO]))
    })
}

#[test]
fn certificates_that_are_not_valid_now_are_refused_on_both_sides() {
    let _turn = in_turn();
    let authority = Authority::new();
    runtime().block_on(async {
        for (what, change) in [
            ("has expired", expired as fn(&mut rcgen::CertificateParams)),
            ("is not valid yet", not_yet_valid),
        ] {
            let text = format!(
                "its certificate {what}: give that hive a new one, or correct the clock of this machine"
            );
            let first = Hive::start(secured("validity", 1, &authority)).await;
            let other =
                shows(&authority, &authority.sign("hive-2", change), "127.0.0.1:1".parse().unwrap()).await;
            first.wire.set_peer(HiveId(2), other.to_string());
            until("refused", || first.why(2).is_some()).await;
            assert_eq!(first.why(2), Some(format!("hive 2 at {other}: {text}")));

            let log = Log::begin();
            let second = Hive::start(secured("validity", 2, &authority)).await;
            let other = uses(&authority, &authority.sign("hive-1", change), second.wire.address()).await;
            let plain = Hive::start(options("validity", 1)).await;
            plain.wire.set_peer(HiveId(2), other.to_string());
            until("refused", || log.has(&["a connection was refused: hive 127.0.0.1:", &text])).await;
            assert!(!second.wire.status().peers.iter().any(|peer| peer.is_heard))
        }
    })
}

/// Connects with TLS, and says whether the other side has ended the connection with an alert.
async fn is_refused(connector: TlsConnector, to: &Hive) -> bool {
    let socket = TcpStream::connect(to.wire.address()).await.unwrap();
    let mut stream = match connector.connect(hive_2(), socket).await {
        Ok(stream) => stream,
        Err(error) => return error.to_string().contains("alert"),
    };
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes).await {
        Ok(_) => false,
        Err(error) => error.to_string().contains("alert"),
    }
}

#[test]
fn who_shows_no_certificate_or_speaks_an_older_tls_is_refused() {
    let _turn = in_turn();
    let authority = Authority::new();
    runtime().block_on(async {
        let log = Log::begin();
        let second = Hive::start(secured("nobody", 2, &authority)).await;
        assert!(is_refused(client(&authority, None, rustls::ALL_VERSIONS), &second).await);
        let text = "it shows no certificate: give all hives certificates of the cluster's CA (`tls`)";
        until("said", || log.has(&["a connection was refused: hive 127.0.0.1:", text])).await;

        // a line a second is logged about strangers
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let own = authority.sign("hive-1", |_| ());
        let older = client(&authority, Some(&own), &[&rustls::version::TLS12]);
        assert!(is_refused(older, &second).await);
        until("said", || {
            log.has(&["a connection was refused: hive ", "it does not speak TLS 1.3 as a hive does"])
        })
        .await;
        assert_eq!(second.wire.status().strangers_refused, 2);
        assert_eq!(second.wire.status().peers.len(), 0)
    })
}

#[test]
fn a_connection_never_continues_the_session_of_an_earlier_one() {
    let _turn = beside();
    let authority = Authority::new();
    runtime().block_on(async {
        let second = Hive::start(secured("sessions", 2, &authority)).await;
        let connector = client(&authority, Some(&authority.sign("hive-1", |_| ())), rustls::ALL_VERSIONS);
        for _ in 0..3 {
            let socket = TcpStream::connect(second.wire.address()).await.unwrap();
            let mut stream = connector.connect(hive_2(), socket).await.unwrap();
            // tickets would come before the first bytes
            stream.read_u8().await.unwrap();
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(rustls::HandshakeKind::Full))
        }
    })
}

#[test]
fn files_that_others_would_refuse_are_refused_at_the_start() {
    let _turn = beside();
    let authority = Authority::new();
    runtime().block_on(async {
        let error = async |files: TlsFiles| {
            let options = WireOptions { tls: Some(files), ..options("files", 1) };
            match Wire::bind(options).await.unwrap_err() {
                WireError::Tls { why } => why,
                error => panic!("{error}"),
            }
        };
        let with = |signed: Signed| authority.files_with(1, &signed);
        let good = authority.files(1);
        let certificate = good.certificate.display().to_string();
        let key = good.key.display().to_string();

        assert_eq!(
            error(with(authority.sign("hive-3", |_| ()))).await,
            format!("{certificate}: the certificate is for hive-3, and not for hive-1: give each hive a certificate with its own name")
        );
        let remedy = "make a new one, or correct the clock of this machine";
        assert_eq!(
            error(with(authority.sign("hive-1", expired))).await,
            format!("{certificate}: the certificate has expired: {remedy}")
        );
        assert_eq!(
            error(with(authority.sign("hive-1", not_yet_valid))).await,
            format!("{certificate}: the certificate is not valid yet: {remedy}")
        );
        assert_eq!(
            error(with(Authority::new().sign("hive-1", |_| ()))).await,
            format!(
                "{certificate}: the certificate was not signed by a CA in {}: sign the certificates of all hives with one CA, and give \
                 all hives its certificate",
                authority.ca().display()
            )
        );
        for usage in [rcgen::ExtendedKeyUsagePurpose::ServerAuth, rcgen::ExtendedKeyUsagePurpose::ClientAuth] {
            let one_sided = authority.sign("hive-1", |parameters| parameters.extended_key_usages.push(usage));
            assert_eq!(
                error(with(one_sided)).await,
                format!(
                    "{certificate}: the certificate is for one side of a connection only: make one with the extended key usages \
                     serverAuth and clientAuth, or with none"
                )
            );
        }

        let files = with(authority.sign("hive-1", |_| ()));
        write(&files.key, &authority.sign("hive-1", |_| ()).key.serialize_pem());
        assert_eq!(error(files.clone()).await, format!("{key}: it is not the key of {certificate}"));
        write(&files.key, "no key");
        assert_eq!(error(files.clone()).await, format!("{key}: the file has no private key without a password"));
        write(&files.certificate, "no certificate");
        assert_eq!(error(files).await, format!("{certificate}: the file has no certificate"));
        let missing = TlsFiles { ca: "/nowhere/ca.pem".into(), ..authority.files(1) };
        let text = error(missing).await;
        assert!(text.starts_with("/nowhere/ca.pem: ") && text.contains("No such file"), "{text}")
    })
}
