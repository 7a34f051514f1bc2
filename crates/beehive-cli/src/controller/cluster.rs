//! The options with which the controller is one hive of a cluster.

use super::Failure;
use super::options::Place;
use crate::http;
use beehive_core::Builder;
use beehive_raft::cluster::{Cluster, ClusterError, ClusterHive};
use clap::Args;
use clap::builder::BoolishValueParser;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The options of the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ClusterArguments {
    /// Addresses of all hives of the cluster to which this controller belongs, in the order of their numbers (experimental)
    ///
    /// The same on all of them; three survive the loss of one. Each hive keeps a copy of everything. A switch connects to all of
    /// them or to some, and one hive controls it. With --data, a hive that has ended returns with its folder.
    #[arg(long, env = "BEEHIVE_CLUSTER", value_name = "HOST:PORT,..", value_delimiter = ',')]
    cluster: Vec<String>,

    /// Number of this hive in --cluster, from 1 on
    #[arg(long, env = "BEEHIVE_HIVE", value_name = "NUMBER")]
    hive: Option<u32>,

    /// Address on which this hive listens for the others, if it is not the one in --cluster
    #[arg(long, env = "BEEHIVE_CLUSTER_LISTEN", value_name = "ADDRESS:PORT")]
    cluster_listen: Option<SocketAddr>,

    /// File with the join token of the cluster, a secret that all hives share
    ///
    /// `openssl rand -hex 32` generates one. Hives that other machines can reach need it, or certificates.
    #[arg(long, env = "BEEHIVE_CLUSTER_TOKEN_FILE", value_name = "FILE")]
    cluster_token_file: Option<PathBuf>,

    /// Encrypt the connections between the hives, with the files ca.pem, cert.pem and key.pem in this folder; the certificate of
    /// hive 1 has the DNS name hive-1
    #[arg(long, env = "BEEHIVE_CLUSTER_TLS_DIR", value_name = "DIR")]
    cluster_tls_dir: Option<PathBuf>,

    /// Let this hive take the place of its earlier life, if its folder is lost or it had none
    #[arg(long, env = "BEEHIVE_CLUSTER_REPLACES", value_parser = BoolishValueParser::new())]
    cluster_replaces: bool,
}

/// The table `[cluster]` of the configuration file.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub(super) struct ClusterConfiguration {
    /// The same as the flag `--cluster`.
    hives: Option<Vec<String>>,
    /// The same as the flag `--hive`.
    hive: Option<u32>,
    /// The same as the flag `--cluster-listen`.
    listen: Option<SocketAddr>,
    /// The same as the flag `--cluster-token-file`.
    token_file: Option<PathBuf>,
    /// The same as the flag `--cluster-tls-dir`.
    tls_dir: Option<PathBuf>,
    /// The same as the flag `--cluster-replaces`.
    replaces: Option<bool>,
}

/// The keys of that table.
pub(super) const KEYS: [&str; 6] = ["hives", "hive", "listen", "token_file", "tls_dir", "replaces"];

/// The cluster to which the controller belongs.
#[derive(Clone, Debug)]
pub(super) struct ClusterOptions {
    pub(super) hive: u32,
    pub(super) hives: usize,
    cluster: Cluster,
}

impl ClusterOptions {
    /// Resolves the options. Returns `None` if the controller runs alone.
    pub(super) fn resolve<'a>(
        arguments: ClusterArguments,
        file: &ClusterConfiguration,
        place: impl Fn(&'static str, &'static str) -> Place<'a>,
    ) -> Result<Option<ClusterOptions>, Failure> {
        let (hives, of_hives) =
            place("--cluster", "hives").first_of(arguments.cluster, file.hives.clone(), &[]);
        let (hive, of_hive) = place("--hive", "hive").either(arguments.hive, file.hive);
        let (listen, of_listen) =
            place("--cluster-listen", "listen").either(arguments.cluster_listen, file.listen);
        let (token, of_token) = place("--cluster-token-file", "token_file")
            .either(arguments.cluster_token_file, file.token_file.clone());
        let (tls, of_tls) =
            place("--cluster-tls-dir", "tls_dir").either(arguments.cluster_tls_dir, file.tls_dir.clone());
        let asked = arguments.cluster_replaces.then_some(true);
        let (replaces, of_replaces) = place("--cluster-replaces", "replaces").either(asked, file.replaces);

        if hives.is_empty() {
            let others = [
                (hive.is_some(), of_hive),
                (listen.is_some(), of_listen),
                (token.is_some(), of_token),
                (tls.is_some(), of_tls),
                (replaces.is_some(), of_replaces),
            ];
            // a controller that runs alone by mistake would be one more master of every switch
            return match others.into_iter().find(|(is_given, _)| *is_given) {
                Some((_, from)) => Err(from.refusal(
                    "has no meaning without the addresses of all hives: --cluster HOST:PORT,.., or `hives` in [cluster]",
                )),
                None if file.hives.is_some() => {
                    Err(of_hives.refusal("is empty: list the addresses of all hives"))
                }
                None => Ok(None),
            };
        }
        let count = hives.len();
        let Some(hive) = hive.filter(|hive| (1..=count).contains(&(*hive as usize))) else {
            return Err(of_hives.refusal(format!(
                "lists {count} hives: say which one this is, with --hive NUMBER (1 to {count})"
            )));
        };

        let mut cluster = Cluster::new((1..).zip(hives));
        if let Some(path) = token {
            let read = http::token::read(&path);
            let token = read.map_err(|why| of_token.refusal(format!("{}: {why}", path.display())))?;
            cluster = cluster.token(token)
        }
        if let Some(folder) = tls {
            let file = |name: &str| folder.join(name);
            cluster = cluster.tls(file("ca.pem"), file("cert.pem"), file("key.pem"))
        }
        if let Some(listen) = listen {
            cluster = cluster.listen(listen)
        }
        if replaces == Some(true) {
            cluster = cluster.replaces()
        }
        Ok(Some(ClusterOptions { hive, hives: count, cluster }))
    }

    /// Starts this hive, and waits for the others.
    pub(super) async fn start(
        &self,
        builder: Builder,
        folder: Option<&Path>,
    ) -> Result<ClusterHive, ClusterError> {
        let mut cluster = self.cluster.clone();
        if let Some(folder) = folder {
            cluster = cluster.folder(folder)
        }
        cluster.start(self.hive, builder).await
    }
}
