//! Hives that are started with a list of addresses, and what is said if they do not fit.

use crate::certificates::Authority;
use crate::hives::{Count, Counted, Counters, runtime};
use beehive::{App, Dict, Hive, handlers};
use beehive_raft::cluster::{Cluster, ClusterError, ClusterHive};
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TOKEN: &str = "a token that only these hives have";

/// Another app, with the same messages under the same names.
#[derive(App)]
#[app(name = "others")]
struct Others {
    counters: Dict<u64, u64>,
}

#[handlers]
impl Others {
    #[rcv]
    fn count(&mut self, msg: &Count) -> u64 {
        self.counters.update(msg.0, |counter| *counter)
    }
}

/// Returns addresses that were free a moment ago.
fn addresses<const N: usize>() -> [String; N] {
    let sockets = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().to_string())
}

fn cluster(addresses: &[String]) -> Cluster {
    Cluster::new((1..).zip(addresses.iter().map(String::as_str)))
}

fn counters() -> beehive::Builder {
    Hive::builder().app::<Counters>()
}

async fn error(cluster: &Cluster, me: u32) -> String {
    cluster.start(me, counters()).await.expect_err("is refused").to_string()
}

/// Runs a test on one thread, and returns its log.
fn logged(test: impl Future<Output = ()>) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
        .with_writer(move || writer.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(subscriber, || runtime.block_on(test));
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_list_of_addresses_and_a_token_are_enough() {
    let cluster = cluster(&addresses::<3>()).token(TOKEN);
    let mut hives: Vec<_> = std::thread::scope(|scope| {
        let start = |hive| {
            let runtime = runtime();
            let started = runtime.block_on(cluster.start(hive, counters())).expect("starts");
            (runtime, started)
        };
        let started = [1, 2, 3].map(|hive| scope.spawn(move || start(hive)));
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let ask = |hive: &ClusterHive, key| hive.hive().request_blocking(Counted(key)).expect("answers");
    for key in 0..6 {
        assert_eq!(hives[0].1.hive().request_blocking(Count(key)), Ok(1));
        assert_eq!(ask(&hives[2].1, key), 1);
    }
    assert_eq!(hives[1].1.wire().status().peers.len(), 2);
    for (runtime, hive) in hives.drain(..) {
        runtime.block_on(hive.stop(Duration::from_millis(200)));
        runtime.shutdown_background()
    }
}

#[test]
fn what_is_wrong_with_the_list_is_said_at_once() {
    runtime().block_on(async {
        let [one, two] = addresses();
        let pair = [(1, one.as_str()), (2, two.as_str())];
        let wrong = async |hives: &[(u32, &str)], me| error(&Cluster::new(hives.iter().copied()), me).await;

        assert_eq!(
            wrong(&[], 1).await,
            "wrong settings of the cluster: the list of hives is empty: give the number and the address of each hive, such as \
             (1, \"127.0.0.1:7101\")"
        );
        assert_eq!(
            wrong(&pair, 4).await,
            "wrong settings of the cluster: hive 4 is not in the list, which has hives 1, 2: add its address, or correct its number"
        );
        assert_eq!(
            wrong(&[pair[0], (1, &two)], 1).await,
            "wrong settings of the cluster: hive 1 is given twice: each hive needs a number of its own"
        );
        assert_eq!(
            wrong(&[pair[0], (2, &one)], 1).await,
            format!("wrong settings of the cluster: hive 1 and hive 2 both have the address {one}: correct one of them")
        );
        for address in ["localhost", ":7101", "localhost:0", "localhost:70000"] {
            assert_eq!(
                wrong(&[pair[0], (2, address)], 1).await,
                format!(
                    "wrong settings of the cluster: `{address}` is not an address of hive 2: give a host and a port above 0, such \
                     as 127.0.0.1:7101"
                )
            );
        }
        let many: Vec<(u32, String)> = (1..18).map(|hive| (hive, format!("127.0.0.1:{hive}"))).collect();
        let many: Vec<(u32, &str)> = many.iter().map(|(hive, address)| (*hive, address.as_str())).collect();
        assert_eq!(
            wrong(&many, 1).await,
            "wrong settings of the cluster: 17 hives are too many: a cluster has at most 16"
        );

        let text = wrong(&[(1, "nowhere.invalid:7101"), pair[1]], 1).await;
        let begin = "the address of this hive, `nowhere.invalid:7101`, cannot be resolved: ";
        assert!(text.starts_with(begin) && text.ends_with("name an address of this machine to listen on"), "{text}");

        let taken = TcpListener::bind(&one).unwrap();
        let text = wrong(&pair, 1).await;
        let begin = format!("cannot listen on {one}: ");
        let remedy = "; stop the process that uses the port, or name another port";
        assert!(text.starts_with(&begin) && text.ends_with(remedy), "{text}");
        drop(taken);

        let open = Cluster::new(pair).listen("0.0.0.0:0".parse().unwrap());
        assert_eq!(
            error(&open, 1).await,
            "0.0.0.0:0 can be reached from other machines, and this hive has no join token and no certificate: set \
             `token` to the secret of the cluster (at least 16 bytes) or `tls` to its certificates, or listen on 127.0.0.1"
        );
    })
}

/// The cluster, as hive `me` sees it: with its certificate.
fn secured(cluster: &Cluster, me: u32, authority: &Authority) -> Cluster {
    let files = authority.files(me);
    cluster.clone().tls(files.ca, files.certificate, files.key)
}

#[test]
fn hives_with_certificates_need_no_token() {
    let (cluster, authority) = (cluster(&addresses::<3>()), Authority::new());
    runtime().block_on(async {
        let start =
            async |hive| secured(&cluster, hive, &authority).start(hive, counters()).await.expect("starts");
        let hives: [ClusterHive; 3] = tokio::join!(start(1), start(2), start(3)).into();
        for key in 0..6 {
            assert_eq!(hives[0].hive().request(Count(key)).await, Ok(1));
            assert_eq!(hives[2].hive().request(Counted(key)).await, Ok(1))
        }
        for hive in hives {
            hive.stop(Duration::from_millis(200)).await;
        }
    })
}

#[test]
fn hives_with_and_without_certificates_both_say_so_and_end() {
    let (hives, own, authority) = (addresses::<2>(), addresses::<2>(), Authority::new());
    let other = Authority::new();
    runtime().block_on(async {
        let with = secured(&cluster(&hives), 1, &authority);
        let said = Box::pin(refused((with, counters()), (cluster(&hives), counters()))).await;
        let remedy = "give all hives of the cluster certificates (`tls`), or none of them";
        assert_eq!(said[0], format!("hive 2 at {}: it does not use TLS, and this hive does: {remedy}", hives[1]));
        assert_eq!(said[1], format!("hive 1 at {}: it uses TLS, and this hive does not: {remedy}", hives[0]));

        // each has a CA of its own
        let (first, second) = (secured(&cluster(&own), 1, &authority), secured(&cluster(&own), 2, &other));
        let said = Box::pin(refused((first, counters()), (second, counters()))).await;
        let remedy = "sign the certificates of all hives with one CA, and give all hives its certificate";
        for (said, begin) in said.iter().zip(["hive 2 at ", "hive 1 at "]) {
            assert!(said.starts_with(begin) && said.ends_with(remedy), "{said}")
        }

        let files = authority.files_with(1, &authority.sign("hive-2", |_| ()));
        let wrong = cluster(&own).tls(files.ca, files.certificate.clone(), files.key);
        assert_eq!(
            error(&wrong, 1).await,
            format!(
                "this hive cannot use its certificates: {}: the certificate is for hive-2, and not for hive-1: give each hive a \
                 certificate with its own name",
                files.certificate.display()
            )
        )
    })
}

/// Starts two hives that do not fit. Returns what they say.
async fn refused(first: (Cluster, beehive::Builder), second: (Cluster, beehive::Builder)) -> [String; 2] {
    let began = Instant::now();
    let (first, second) = tokio::join!(first.0.start(1, first.1), second.0.start(2, second.1));
    assert!(began.elapsed() < Duration::from_secs(8), "they wait for each other: {:?}", began.elapsed());
    [first, second].map(|started| {
        let error = started.expect_err("is refused");
        assert!(matches!(error, ClusterError::Refused { .. }), "{error:?}");
        error.to_string()
    })
}

#[test]
fn hives_that_do_not_fit_both_say_so_and_end() {
    runtime().block_on(async {
        let others = || Hive::builder().app::<Others>();
        let (apps, tokens, lists) = (addresses::<2>(), addresses::<2>(), addresses::<3>());
        let (apps, tokens, lists) = tokio::join!(
            refused((cluster(&apps), counters()), (cluster(&apps), others())),
            refused(
                (cluster(&tokens).token(TOKEN), counters()),
                (cluster(&tokens).token("another token, as long"), counters())
            ),
            refused((cluster(&lists[..2]), counters()), (cluster(&lists), counters())),
        );
        let remedy = "start the same program with the same apps, in the same order, on both";
        assert!(
            apps.iter().all(|text| text.contains("has other apps or shapes") && text.ends_with(remedy)),
            "{apps:?}"
        );
        let remedy = "give all hives of the cluster the same `token`";
        assert!(
            tokens.iter().all(|text| text.contains("has another join token") && text.ends_with(remedy)),
            "{tokens:?}"
        );
        assert!(
            lists[0].contains(
                "cluster `beehive of hives 1 2 3 with 2 logs each`, this hive to `beehive of hives 1 2 with"
            ),
            "{lists:?}"
        );
        assert!(lists[1].contains("this hive to `beehive of hives 1 2 3 with 2 logs each`"), "{lists:?}");
    })
}

#[test]
fn who_is_missing_is_logged_and_said() {
    let [one, two] = addresses();
    let four = [(1, one.as_str()), (2, two.as_str()), (3, "nowhere.invalid:7103"), (4, "127.0.0.1:1")];
    let cluster = Cluster::new(four).configure(|options| options.start_within = Duration::from_millis(1300));
    let log = logged(async {
        let text = error(&cluster, 1).await;
        let begin =
            format!("after 1.3s, there is no connection with hive 2 at {two} (cannot connect with {two}: ");
        assert!(text.starts_with(&begin), "{text}");
        assert!(
            text.contains(" and hive 3 at nowhere.invalid:7103 (cannot connect with nowhere.invalid:7103: "),
            "{text}"
        );
        assert!(
            text.ends_with("): start the other hives of the cluster, too, or correct their addresses"),
            "{text}"
        );
    });
    assert!(log.contains(&format!("waiting for hive 2 at {two} (cannot connect with {two}: ")), "{log}");
    assert!(log.contains("a cluster of 4 hives survives the loss of 1, as one of 3 does"), "{log}");
}
