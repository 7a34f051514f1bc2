//! The short way to start a hive of a cluster over sockets: a list of hives, a token, and one call.

use super::disk::kept_seed;
use super::lost;
use super::member::Member;
use super::options::{ClusterError, ClusterOptions};
use super::transport::Transport;
use super::wire::{TlsFiles, Wire, WireOptions};
use crate::limits::{CLUSTER_HIVES_MAX, LOOK_EVERY, MISFIT_FOR, WAITING_LOGGED_EVERY};
use beehive_core::{Builder, Hive, HiveId, Stopped};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A function that changes the options of a hive before it starts.
type Configure = Arc<dyn Fn(&mut ClusterOptions) + Send + Sync>;

/// The hives of a cluster, with their addresses and their token. All hives of the cluster are started with the same ones.
///
/// ```no_run
/// # extern crate beehive_core as beehive;
/// use beehive::Hive;
/// use beehive_raft::cluster::Cluster;
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::new([(1, "10.0.0.1:7100"), (2, "10.0.0.2:7100"), (3, "10.0.0.3:7100")])
///     .token(std::fs::read_to_string("token")?.trim());
/// let member = cluster.start(1, Hive::builder()).await?; // 2 and 3 on the other machines
/// println!("{} hives lead a colony", member.member().leaders().len());
/// member.stop(std::time::Duration::from_secs(5)).await;
/// # Ok(())
/// # }
/// ```
///
/// A cluster goes on as long as a majority of its hives runs: three hives survive the loss of one, five the loss of two.
#[derive(Clone)]
pub struct Cluster {
    name: String,
    hives: Vec<(HiveId, String)>,
    token: Option<String>,
    tls: Option<TlsFiles>,
    seed: Option<u64>,
    listen: Option<SocketAddr>,
    folder: Option<PathBuf>,
    replaces: bool,
    configure: Option<Configure>,
}

// Does not show the token.
impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.name)
            .field("hives", &self.hives)
            .finish_non_exhaustive()
    }
}

/// A running hive of a cluster, and its connections.
///
/// Dropping it ends the hive at once, like a crash.
#[derive(Debug)]
pub struct ClusterHive {
    member: Member,
    wire: Arc<Wire>,
}

impl Cluster {
    /// Returns a cluster of these hives: the number of each hive, and its address as `host:port`, at which the others reach it.
    pub fn new<A: Into<String>>(hives: impl IntoIterator<Item = (u32, A)>) -> Cluster {
        Cluster {
            name: "beehive".to_string(),
            hives: hives.into_iter().map(|(hive, address)| (HiveId(hive), address.into())).collect(),
            token: None,
            tls: None,
            seed: None,
            listen: None,
            folder: None,
            replaces: false,
            configure: None,
        }
    }

    /// Sets the join token: a secret of at least 16 bytes, which all hives share. It is not sent, and nothing is encrypted because
    /// of it: see [`tls`](Self::tls). It may be left out if the hives listen on the loopback address, or have certificates.
    pub fn token(mut self, token: impl Into<String>) -> Cluster {
        self.token = Some(token.into());
        self
    }

    /// Encrypts the connections between the hives with TLS 1.3, and lets each hive show by a certificate which one it is. Each hive
    /// has its own certificate and key, and all have the same CA. The files are PEM files, and the certificate of hive 1 has the DNS
    /// name `hive-1`. When the files have changed, they hold for the next connection, without a restart.
    ///
    /// Without a [`token`](Self::token), who has the key of any certificate `hive-1` that this CA has signed is taken for hive 1: use
    /// a CA that signs nothing else. And unless there is a token, [set a seed](Self::seed) that strangers do not know if they can
    /// choose the keys of an app's cells.
    pub fn tls(
        mut self,
        ca: impl Into<PathBuf>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Cluster {
        self.tls = Some(TlsFiles { ca: ca.into(), certificate: certificate.into(), key: key.into() });
        self
    }

    /// Sets the name of the cluster. Hives of clusters with other names are refused. The default is `beehive`.
    pub fn name(mut self, name: impl Into<String>) -> Cluster {
        self.name = name.into();
        self
    }

    /// Sets the folder in which this hive keeps what it has to know when it returns. Each hive has its own. A hive that has ended is
    /// started again with the same folder, and so are all of them if all have ended. By default, a hive keeps everything in memory.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Cluster {
        self.folder = Some(folder.into());
        self
    }

    /// Lets this hive take the place of its earlier life if it has lost its folder, or had none, and the others run: it gets
    /// everything from them. By default, it is refused, because its folder may just be somewhere else. See
    /// [`ClusterOptions::replaces`].
    pub fn replaces(mut self) -> Cluster {
        self.replaces = true;
        self
    }

    /// Sets the seed for cell ids. By default it is the one in the folder. A new cluster derives it from the name and the token.
    pub fn seed(mut self, seed: u64) -> Cluster {
        self.seed = Some(seed);
        self
    }

    /// Sets the address on which this hive listens, if it is not the one at which the others reach it: `0.0.0.0:7100`, for
    /// example.
    pub fn listen(mut self, address: SocketAddr) -> Cluster {
        self.listen = Some(address);
        self
    }

    /// Changes further options. The function is called when a hive starts.
    pub fn configure(mut self, configure: impl Fn(&mut ClusterOptions) + Send + Sync + 'static) -> Cluster {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// Starts hive number `me` on the current tokio runtime: opens its sockets, connects with the other hives, and waits until all
    /// of them have started. Logs which ones are missing. `builder` has the apps.
    ///
    /// Dropping the future leaves the start half done; the process should end then.
    ///
    /// # Errors
    ///
    /// See [`ClusterError`]; its text says what to do. If another hive does not fit, both end with
    /// [`ClusterError::Refused`], after a second or two in which others find out, too. If hives are missing, the start ends with
    /// [`ClusterError::Alone`] after [`ClusterOptions::start_within`].
    pub async fn start(&self, me: u32, builder: Builder) -> Result<ClusterHive, ClusterError> {
        let me = HiveId(me);
        let address = self.check(me)?;
        let seed = self.seed.unwrap_or_else(|| self.derived_seed());
        let mut options = ClusterOptions::new(me, self.hives.iter().map(|(hive, _)| *hive), seed);
        options.folder = self.folder.clone();
        options.replaces = self.replaces;
        if let Some(configure) = &self.configure {
            configure(&mut options)
        }
        if self.seed.is_none() && options.seed == seed {
            // the token may have changed since the cluster began
            options.seed = kept_seed(&options)?.unwrap_or(seed)
        }

        let listen = match self.listen {
            Some(listen) => listen,
            None => resolve(address).await?,
        };
        let mut wire = WireOptions::new(listen, self.full_name(&options), me);
        wire.seed = options.seed;
        wire.fingerprint = [builder.fingerprint(), lost::fingerprint()].concat();
        wire.token = self.token.clone();
        wire.tls = self.tls.clone();
        wire.peers = self.hives.iter().filter(|(hive, _)| *hive != me).cloned().collect();
        let wire = Wire::bind(wire).await?;

        let limit = options.start_within;
        let transport = wire.clone() as Arc<dyn Transport>;
        match Member::start_unless(watch(&wire), builder, options, transport).await {
            Ok(member) => {
                tracing::info!(hive = me.0, hives = self.hives.len(), "the cluster runs");
                Ok(ClusterHive { member, wire })
            }
            Err(error) => {
                let error = match (error, missing(&wire)) {
                    (ClusterError::Alone { .. }, Some(missing)) => ClusterError::Alone {
                        why: format!("after {limit:?}, there is no connection with {missing}"),
                    },
                    (error, _) => error,
                };
                wire.stop().await;
                Err(error)
            }
        }
    }

    /// Checks the list of hives. Returns this hive's address.
    fn check(&self, me: HiveId) -> Result<&str, ClusterError> {
        let wrong = |why: String| Err(ClusterError::Settings { why });
        let count = self.hives.len();
        if count == 0 {
            return wrong(
                "the list of hives is empty: give the number and the address of each hive, such as (1, \"127.0.0.1:7101\")".into(),
            );
        }
        if count > CLUSTER_HIVES_MAX {
            return wrong(format!("{count} hives are too many: a cluster has at most {CLUSTER_HIVES_MAX}"));
        }
        for (at, (hive, address)) in self.hives.iter().enumerate() {
            let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if port.and_then(|(_, port)| port.parse::<u16>().ok()).is_none_or(|port| port == 0) {
                return wrong(format!(
                    "`{address}` is not an address of {hive}: give a host and a port above 0, such as 127.0.0.1:7101"
                ));
            }
            for (other, others) in &self.hives[..at] {
                if other == hive {
                    return wrong(format!("{hive} is given twice: each hive needs a number of its own"));
                }
                if others == address {
                    return wrong(format!(
                        "{other} and {hive} both have the address {address}: correct one of them"
                    ));
                }
            }
        }
        let Some((_, address)) = self.hives.iter().find(|(hive, _)| *hive == me) else {
            return wrong(format!(
                "{me} is not in the list, which has {}: add its address, or correct its number",
                self.list()
            ));
        };

        if count.is_multiple_of(2) {
            tracing::warn!("{}", even(count))
        }
        Ok(address)
    }

    /// Returns the numbers of all hives.
    fn list(&self) -> String {
        let hives: Vec<String> = self.hives.iter().map(|(hive, _)| hive.0.to_string()).collect();
        format!("{} {}", if hives.len() == 1 { "hive" } else { "hives" }, hives.join(", "))
    }

    /// Returns the name by which the wires compare clusters. It contains what all hives must agree on: with two lists of hives,
    /// there would be two majorities.
    fn full_name(&self, options: &ClusterOptions) -> String {
        let hives = options.hives().iter().map(|hive| hive.0.to_string()).collect::<Vec<_>>().join(" ");
        format!("{} of hives {hives} with {} logs each", self.name, options.logs)
    }

    /// Who does not know the token cannot choose which cell a key hits.
    fn derived_seed(&self) -> u64 {
        let key = blake3::derive_key(
            "beehive 2026 seed of a cluster",
            format!("{}\0{}", self.name, self.token.as_deref().unwrap_or_default()).as_bytes(),
        );
        key.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Says what an even number of hives means.
fn even(count: usize) -> String {
    let (majority, survives) = (count / 2 + 1, count / 2 - 1);
    format!(
        "a cluster of {count} hives survives the loss of {survives}, as one of {} does, because {majority} must run: use {} or {}",
        count - 1,
        count - 1,
        count + 1
    )
}

/// Returns the address of this hive.
async fn resolve(address: &str) -> Result<SocketAddr, ClusterError> {
    let failed = |why: String| ClusterError::Address { address: address.to_string(), why };
    let mut found = tokio::net::lookup_host(address).await.map_err(|error| failed(error.to_string()))?;
    found.next().ok_or_else(|| failed("the name has no address".to_string()))
}

/// Returns the hives with which there is no connection, and why.
fn missing(wire: &Wire) -> Option<String> {
    let peers = wire.status().peers;
    let missing = peers.iter().filter(|peer| peer.connected_for.is_none()).map(|peer| {
        let address = peer.address.as_deref().unwrap_or("an unknown address");
        match &peer.last_refusal {
            Some(why) => format!("{} at {address} ({why})", peer.hive),
            None => format!("{} at {address}", peer.hive),
        }
    });
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| missing.join(" and "))
}

/// Returns a hive that does not fit, and why.
fn misfit(wire: &Wire) -> Option<ClusterError> {
    let mut peers = wire.status().peers.into_iter();
    peers.find_map(|peer| Some(ClusterError::Refused { peer: peer.hive, why: peer.misfit? }))
}

/// Logs which hives are missing. Completes if one of them does not fit.
async fn watch(wire: &Wire) -> ClusterError {
    let [first, every] = WAITING_LOGGED_EVERY;
    let mut due = Instant::now() + first;
    loop {
        sleep(LOOK_EVERY).await;
        if misfit(wire).is_some() {
            // If this hive ended now, one that has not connected yet would wait for it in vain. And the other process may be a
            // leftover of an earlier cluster, which is about to be replaced.
            sleep(MISFIT_FOR).await;
            if let Some(error) = misfit(wire) {
                return error;
            }
        }
        if Instant::now() >= due {
            due = Instant::now() + every;
            if let Some(missing) = missing(wire) {
                tracing::info!("waiting for {missing}")
            }
        }
    }
}

impl ClusterHive {
    /// Returns the hive, to which a program sends its messages. Messages to cells of other hives are sent on.
    pub fn hive(&self) -> &Hive {
        self.member.hive()
    }

    /// Returns the hive's part of the cluster, which says who leads what.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Returns the connections with the other hives.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Stops the hive as [`Member::stop`] does, and closes the connections.
    pub async fn stop(self, grace: Duration) -> Stopped {
        let ClusterHive { member, wire } = self;
        let stopped = member.stop(grace).await;
        wire.stop().await;
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_number_of_hives_is_explained() {
        assert_eq!(
            even(4),
            "a cluster of 4 hives survives the loss of 1, as one of 3 does, because 3 must run: use 3 or 5"
        );
    }

    #[test]
    fn the_seed_depends_on_the_token() {
        let cluster = Cluster::new([(1, "127.0.0.1:1")]);
        let other = cluster.clone().token("sixteen random bytes");
        assert_ne!(cluster.derived_seed(), other.derived_seed());
        assert!(!format!("{other:?}").contains("sixteen"), "the token is shown")
    }
}
