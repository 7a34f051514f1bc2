//! Tests switches over TLS, untrusted switches (row S22 of the threats), and access lists.

use crate::peer::{Controller, Peer, encode, eventually, features, no_flows};
use beehive_core::Hive;
use beehive_nom::apps::{LearningSwitch, NodeController};
use beehive_nom::driver::Directory;
use beehive_nom::driver::openflow::{
    Access, CERTIFICATE, Credentials, KEY, Listener, ListenerSettings, SWITCHES_CA, SessionSettings,
};
use beehive_nom::object::NodeId;
use beehive_of::Version;
use beehive_of::any::Message;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
struct Identity {
    certificate: String,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut parameters = CertificateParams::new([]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        Authority(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let (mut parameters, key) = parameters(name);
        change(&mut parameters);
        Identity { certificate: parameters.signed_by(&key, &self.0).unwrap().pem(), key }
    }
}

fn parameters(name: &str) -> (CertificateParams, KeyPair) {
    let mut parameters = CertificateParams::new(["localhost".to_string()]).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, name);
    (parameters, KeyPair::generate().unwrap())
}

/// A folder of credentials, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(own: &Identity, switches: &Authority) -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("beehive-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let folder = Folder(folder);
        folder.write(own, switches);
        folder
    }

    fn write(&self, own: &Identity, switches: &Authority) {
        std::fs::write(self.0.join(CERTIFICATE), &own.certificate).unwrap();
        std::fs::write(self.0.join(KEY), own.key.serialize_pem()).unwrap();
        std::fs::write(self.0.join(SWITCHES_CA), switches.0.pem()).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All authorities and identities that the tests need.
struct World {
    ours: Authority,
    switches: Authority,
    folder: Folder,
    controller: Controller,
}

impl World {
    async fn new(binds: bool, access: Access) -> World {
        let (ours, switches) = (Authority::new("controllers"), Authority::new("switches"));
        let folder = Folder::new(&ours.sign("controller", |_| {}), &switches);
        let controller = controller(Some((&folder.0, binds)), access).await;
        World { ours, switches, folder, controller }
    }

    /// Connects a switch with this certificate.
    async fn connect(&self, identity: Option<&Identity>) -> Peer {
        connect(&self.controller, &self.ours, identity).await
    }

    /// Returns whether a switch with this certificate is admitted as `node`.
    async fn is_let_in(&self, identity: Option<&Identity>, node: u64) -> bool {
        let mut peer = self.connect(identity).await;
        is_let_in(&mut peer, node).await
    }

    fn untrusted(&self) -> u64 {
        self.controller.directory.totals().untrusted
    }
}

/// Starts a controller that ends unfinished handshakes after a second.
async fn controller(tls: Option<(&Path, bool)>, access: Access) -> Controller {
    let hive = Hive::builder().app::<NodeController>().app::<LearningSwitch>().start().unwrap();
    let directory = Arc::new(Directory::default());
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let session = SessionSettings { handshake: Duration::from_secs(1), ..SessionSettings::default() };
    let settings = ListenerSettings { session, ..ListenerSettings::default() };
    let listener = Listener::guarded(&hive, directory.clone(), settings, access);

    match tls {
        Some((folder, binds)) => {
            listener.serve_tls(socket, Arc::new(Credentials::read(folder, binds).unwrap()))
        }
        None => listener.serve(socket),
    }

    Controller { hive, directory, address }
}

/// Connects a switch that presents `identity` and trusts `ours`. A task relays its messages over TLS.
async fn connect(controller: &Controller, ours: &Authority, identity: Option<&Identity>) -> Peer {
    let mut roots = RootCertStore::empty();
    roots.add(ours.0.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => {
            use rustls::pki_types::pem::PemObject;
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };

    let stream = TcpStream::connect(controller.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let bridge = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(bridge.local_addr().unwrap()).await.unwrap();
    let (mut far, _) = bridge.accept().await.unwrap();

    tokio::spawn(async move {
        // if the controller refuses or closes the connection, the other end of this task's stream sees the
        // end of the stream
        let Ok(mut tls) = TlsConnector::from(Arc::new(config)).connect(name, stream).await else { return };
        let _ = tokio::io::copy_bidirectional(&mut tls, &mut far).await;
    });
    Peer::of(near)
}

async fn is_let_in(peer: &mut Peer, node: u64) -> bool {
    let version = Version::V1_3;
    let Some(xid) = peer.greet(version).await else { return false };
    peer.send(&features(version, node, 0, xid)).await;
    let asked =
        |message: &Message<'_>, xid| matches!(message, Message::FlowStatisticsRequest(_)).then_some(xid);
    let Some(xid) = peer.until(asked).await else { return false };
    peer.send(&encode(&Message::FlowStatisticsReply(no_flows()), version, xid)).await;
    peer.until(|message, _| matches!(message, Message::FlowMod(_)).then_some(())).await.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_is_trusted_is_served() {
    let world = World::new(false, Access::default()).await;
    let mut peer = world.connect(Some(&world.switches.sign("a switch", |_| {}))).await;
    peer.join(Version::V1_3, 7).await;
    assert!(world.controller.serves(&mut peer).await);

    // send more than a TLS record and the internal buffer can hold
    for _ in 0..300 {
        peer.send(&[&[4, 2, 0x10, 0, 0, 0, 0, 1][..], &[7; 0x1000 - 8]].concat()).await;
    }

    for _ in 0..300 {
        let echo = peer.until(|message, _| match message {
            Message::EchoReply(echo) => Some((echo.data.len(), echo.data.last().copied())),
            _ => None,
        });
        assert_eq!(echo.await, Some((0x1000 - 8, Some(7))));
    }

    assert!(world.controller.serves(&mut peer).await);
    assert_eq!(world.untrusted(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_trusted_is_refused_and_counted() {
    let world = World::new(false, Access::default()).await;
    let good = world.switches.sign("a switch", |_| {});
    let others = Authority::new("others").sign("a switch", |_| {});
    let expired = world.switches.sign("a switch", |p| {
        p.not_before = rcgen::date_time_ymd(2001, 1, 1);
        p.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    let early = world.switches.sign("a switch", |p| {
        p.not_before = rcgen::date_time_ymd(2096, 1, 1);
        p.not_after = rcgen::date_time_ymd(2099, 1, 1);
    });

    let own = {
        let (parameters, key) = parameters("a switch");
        Identity { certificate: parameters.self_signed(&key).unwrap().pem(), key }
    };
    let controllers = world.ours.sign("a switch", |_| {});
    let cases = [
        ("another authority", Some(&others)),
        ("expired", Some(&expired)),
        ("not yet valid", Some(&early)),
        ("signed by itself", Some(&own)),
        ("signed by who signs controllers", Some(&controllers)),
        ("none", None),
    ];

    let mut bystander = world.connect(Some(&good)).await;
    bystander.join(Version::V1_3, 1).await;
    for (at, (name, identity)) in cases.into_iter().enumerate() {
        assert!(!world.is_let_in(identity, 100 + at as u64).await, "{name}");
        assert!(eventually(|| world.untrusted() == at as u64 + 1).await, "{name}: {}", world.untrusted());
        assert!(world.controller.serves(&mut bystander).await, "after {name}");
    }

    assert!(eventually(|| world.controller.directory.len() == 1).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_words_to_a_tls_port_are_refused_and_never_answered_plainly() {
    let world = World::new(false, Access::default()).await;
    for words in [&[4, 0, 0, 8, 0, 0, 0, 1][..], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[0; 64]] {
        let mut stream = TcpStream::connect(world.controller.address).await.unwrap();
        stream.write_all(words).await.unwrap();
        let mut answer = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(3), stream.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "it stays open");
        // the controller sends at most a TLS alert, and nothing of OpenFlow
        assert!(answer.first().is_none_or(|kind| *kind == 21), "{answer:?}");
    }

    assert!(eventually(|| world.untrusted() == 3).await, "{}", world.untrusted());
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_of_tls_that_are_broken_are_refused() {
    let world = World::new(false, Access::default()).await;
    for version in [[3, 0], [3, 1], [3, 2]] {
        // a client hello (RFC 5246, 7.4.1.2): version, random bytes, no resumption, two cipher suites, no
        // compression
        let body = [&version[..], &[7; 32], &[0, 0, 4, 0xc0, 0x13, 0, 0x2f, 1, 0]].concat();
        let hello = [&[1, 0, 0, body.len() as u8][..], &body].concat();
        let record = [&[0x16, 3, 1, 0, hello.len() as u8][..], &hello].concat();
        let mut stream = TcpStream::connect(world.controller.address).await.unwrap();
        stream.write_all(&record).await.unwrap();
        let mut answer = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "it stays open");
        assert_eq!(answer.first(), Some(&21), "an alert: {answer:?}");
    }

    assert!(eventually(|| world.untrusted() == 3).await, "{}", world.untrusted());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_stalls_is_given_up() {
    let world = World::new(false, Access::default()).await;
    let began = Instant::now();
    // nothing; the start of a client hello; a complete record that contains only a part of a client hello
    for start in [&[][..], &[0x16, 3, 1], &[0x16, 3, 1, 0, 4, 1, 0, 1, 0]] {
        let mut stream = TcpStream::connect(world.controller.address).await.unwrap();
        stream.write_all(start).await.unwrap();
        let mut answer = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "it stays open");
        assert_eq!(answer, b"", "nothing is said before it is known who listens");
    }

    assert!(began.elapsed() >= 3 * Duration::from_millis(900), "they have their time");
    assert!(eventually(|| world.controller.directory.is_empty()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_keep_nobody_out() {
    let world = World::new(false, Access::default()).await;
    let good = world.switches.sign("a switch", |_| {});
    let mut open = Vec::new();
    for _ in 0..600 {
        open.push(TcpStream::connect(world.controller.address).await.unwrap());
    }
    assert!(world.is_let_in(Some(&good), 7).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_can_be_bound_to_its_switch() {
    let world = World::new(true, Access::default()).await;
    let by_name = world.switches.sign("00000000000000a1", |_| {});
    assert!(world.is_let_in(Some(&by_name), 0xa1).await);
    assert!(!world.is_let_in(Some(&by_name), 0xa2).await, "it says to be another one");
    assert!(eventually(|| world.untrusted() == 1).await);

    let by_alternative = world.switches.sign("a switch", |p| {
        p.subject_alt_names.push(rcgen::SanType::DnsName("00000000000000a3.example".try_into().unwrap()))
    });
    assert!(world.is_let_in(Some(&by_alternative), 0xa3).await);
    let of_nobody = world.switches.sign("a switch", |_| {});
    assert!(!world.is_let_in(Some(&of_nobody), 0xa4).await);

    assert!(eventually(|| world.untrusted() == 2).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_change_hold_from_then_on_and_bad_ones_do_not() {
    let world = World::new(false, Access::default()).await;
    let (old, others) = (world.switches.sign("a switch", |_| {}), Authority::new("others"));
    let new = others.sign("a switch", |_| {});
    assert!(world.is_let_in(Some(&old), 1).await && !world.is_let_in(Some(&new), 2).await);
    std::fs::write(world.folder.0.join(SWITCHES_CA), "no certificate").unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(world.is_let_in(Some(&old), 3).await, "what is no good changes nothing");
    world.folder.write(&world.ours.sign("controller", |_| {}), &others);

    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(!world.is_let_in(Some(&old), 4).await && world.is_let_in(Some(&new), 5).await);
}

#[test]
fn credentials_that_are_no_good_are_refused_in_words() {
    let (ours, switches) = (Authority::new("controllers"), Authority::new("switches"));
    let own = ours.sign("controller", |_| {});
    for name in [CERTIFICATE, KEY, SWITCHES_CA] {
        let folder = Folder::new(&own, &switches);
        let file = folder.0.join(name);
        std::fs::write(&file, "nothing").unwrap();
        let why = Credentials::read(&folder.0, false).unwrap_err();
        assert!(why.contains(name), "{why}");
        std::fs::remove_file(&file).unwrap();
        let why = Credentials::read(&folder.0, false).unwrap_err();
        assert!(why.contains(name) && why.contains("No such file"), "{why}");
    }

    let folder = Folder::new(&own, &switches);
    std::fs::write(folder.0.join(KEY), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let why = Credentials::read(&folder.0, false).unwrap_err();
    assert!(why.contains("the private key does not match cert.pem"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_nodes_on_the_list_are_let_in() {
    let controller = controller(None, Access::default().nodes([NodeId(1), NodeId(2)])).await;
    let mut peer = controller.connect().await;
    assert!(is_let_in(&mut peer, 1).await && controller.serves(&mut peer).await);
    assert!(!is_let_in(&mut controller.connect().await, 3).await);
    assert_eq!(controller.directory.totals().unlisted, 1);
    assert!(!controller.directory.contains(NodeId(3)));
    assert!(controller.serves(&mut peer).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_addresses_on_the_list_are_let_in() {
    let here = controller(None, Access::default().addresses(["127.0.0.0/8".parse().unwrap()])).await;
    assert!(is_let_in(&mut here.connect().await, 1).await);
    let elsewhere = controller(None, Access::default().addresses(["192.0.2.0/24".parse().unwrap()])).await;

    for count in 1..=5 {
        let mut stream = TcpStream::connect(elsewhere.address).await.unwrap();
        let mut answer = Vec::new();
        // a reset also counts as the end of the connection
        let _ = tokio::time::timeout(Duration::from_secs(3), stream.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer, b"", "not even a hello");
        assert!(eventually(|| elsewhere.directory.addresses_refused() == count).await);
    }

    assert_eq!((elsewhere.directory.len(), elsewhere.directory.ended().0), (0, 0), "nothing is kept of them");
}
