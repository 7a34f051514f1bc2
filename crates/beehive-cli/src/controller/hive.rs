//! The hive of the controller: alone, or one of a cluster.

use super::Failure;
use super::options::Options;
use beehive_core::{Builder, Hive};
use beehive_nom::driver::Directory;
use beehive_nom::driver::openflow::{Listener, ListenerSettings};
#[cfg(feature = "cluster")]
use beehive_raft::cluster::{ClusterError, ClusterHive};
use std::sync::Arc;
use std::time::Duration;

/// A running hive.
pub(super) enum Running {
    /// A hive that decides alone.
    Alone(Hive),
    /// A hive of a cluster.
    #[cfg(feature = "cluster")]
    Among(Box<ClusterHive>),
}

impl Running {
    /// Starts a hive. In a cluster, waits for the others.
    pub(super) async fn start(builder: Builder, options: &Options) -> Result<Running, Failure> {
        let builder = builder.settings(options.settings.clone());
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &options.cluster {
            return match cluster.start(builder, options.data.as_deref()).await {
                Ok(member) => Ok(Running::Among(Box::new(member))),
                Err(ClusterError::Hive(why)) => Err(options.start_error(why)),
                Err(why) => Err(why.into()),
            };
        }
        Ok(Running::Alone(builder.start().map_err(|why| options.start_error(why))?))
    }

    pub(super) fn hive(&self) -> &Hive {
        match self {
            Running::Alone(hive) => hive,
            #[cfg(feature = "cluster")]
            Running::Among(member) => member.hive(),
        }
    }

    /// Creates the listener for switches. In a cluster, a switch may be connected to several hives.
    pub(super) fn listener(
        &self,
        directory: Arc<Directory>,
        settings: ListenerSettings,
        options: &Options,
    ) -> Arc<Listener> {
        let (hive, access) = (self.hive(), options.access());
        match self {
            Running::Alone(_) => Listener::guarded(hive, directory, settings, access),
            #[cfg(feature = "cluster")]
            Running::Among(member) => {
                Listener::in_cluster(hive, directory, settings, access, member.member().suspects())
            }
        }
    }

    /// Stops the hive. One of a cluster first hands over what it leads.
    pub(super) async fn stop(self, grace: Duration) {
        match self {
            Running::Alone(hive) => drop(hive.stop(grace).await),
            #[cfg(feature = "cluster")]
            Running::Among(member) => drop(member.stop(grace).await),
        }
    }
}
