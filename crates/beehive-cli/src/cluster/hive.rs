//! One hive of a local cluster, in a process of its own. `beehive cluster up` starts it.
//!
//! Its standard input is a pipe from the parent. The first line is the join token. When the pipe ends, so does the hive: the
//! parent has stopped, or was killed. SIGTERM ends the hive, too. On its standard output, the hive says at which address it serves
//! HTTP, and then each time how many colonies it leads.

use super::Failure;
use super::store::{Store, router};
use crate::{http, log_filter};
use beehive_core::{Hive, HiveId};
use beehive_raft::cluster::Cluster;
use clap::Args;
use std::io::{BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

/// Time that the hive has for what is in flight when it stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Time that the whole stop may take. It is longer than handing over, [`STOP_TIMEOUT`] and closing the folder together.
const STOP_WITHIN: Duration = Duration::from_secs(4);

/// How often the hive looks how many colonies it leads.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Number of threads that run tasks.
const WORKERS: usize = 2;

/// Runs one hive
#[derive(Args, Debug)]
pub(crate) struct HiveArgs {
    /// The number of the hive, from 1 on
    pub(super) number: u32,
    /// The addresses of all hives, in the order of their numbers
    addresses: Vec<String>,
    /// The log filter
    #[arg(long)]
    log: String,
    /// The folder in which the hive keeps its state
    #[arg(long)]
    data: Option<PathBuf>,
}

/// A line that a hive prints for its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The hive runs, and serves HTTP at this address.
    Runs(SocketAddr),
    /// The hive leads a number of all colonies.
    Leads(usize, usize),
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Report::Runs(address) => write!(f, "runs {address}"),
            Report::Leads(colonies, all) => write!(f, "leads {colonies} {all}"),
        }
    }
}

impl std::str::FromStr for Report {
    type Err = ();

    fn from_str(line: &str) -> Result<Report, ()> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["runs", address] => Ok(Report::Runs(address.parse().map_err(drop)?)),
            ["leads", colonies, all] => {
                Ok(Report::Leads(colonies.parse().map_err(drop)?, all.parse().map_err(drop)?))
            }
            _ => Err(()),
        }
    }
}

/// Tells the parent. If it is gone, nobody listens.
fn report(report: Report) {
    let _ = writeln!(std::io::stdout(), "{report}");
}

/// Runs a hive until its standard input ends.
pub(super) fn run(arguments: &HiveArgs) -> Result<(), Failure> {
    let log = tracing_subscriber::fmt().with_env_filter(log_filter::filter(&arguments.log)?);
    // into a file, without colors
    log.with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr).try_init()?;

    let mut token = String::new();
    std::io::stdin().lock().read_line(&mut token)?;
    let (parent, gone) = oneshot::channel::<()>();
    std::thread::Builder::new().name("parent".into()).spawn(move || {
        // an error is an end, too
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(parent)
    })?;

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let outcome = runtime.block_on(serve(arguments, token.trim(), gone));
    runtime.shutdown_timeout(Duration::from_millis(500));
    outcome
}

/// Runs a hive until its parent is gone, or until SIGTERM.
async fn serve(
    HiveArgs { number, addresses, data, .. }: &HiveArgs,
    token: &str,
    mut gone: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    // before anything else, so that no early signal is lost
    let mut terminate = signal(SignalKind::terminate())?;
    let mut cluster = Cluster::new((1..).zip(addresses)).token(token);
    if let Some(folder) = data {
        // if somebody removes the folder of a hive, it gets everything from the others
        cluster = cluster.folder(folder).replaces()
    }
    let member = tokio::select! {
        biased;
        _ = &mut gone => return Ok(()),
        _ = terminate.recv() => {
            // no failure: the parent may start it again
            tracing::error!(hive = number, "asked to end before it ran");
            return Ok(());
        }
        started = cluster.start(*number, Hive::builder().app::<Store>()) => started?,
    };

    let socket = TcpListener::bind("127.0.0.1:0").await?;
    report(Report::Runs(socket.local_addr()?));
    let (stop, stopped) = watch::channel(());
    let server = tokio::spawn(http::serve_router(socket, router(member.hive().clone()), stopped));
    let looks = async {
        let mut last = None;
        loop {
            let leaders = member.member().leaders();
            let here = leaders.iter().filter(|(_, leader)| *leader == Some(HiveId(*number)));
            let leads = Report::Leads(here.count(), leaders.len());
            if last != Some(leads) {
                report(leads);
                last = Some(leads)
            }
            tokio::time::sleep(LOOK_EVERY).await
        }
    };
    tokio::select! {
        _ = gone => {}
        _ = terminate.recv() => {}
        () = looks => {}
        () = member.hive().stopping() => {
            let why = "the hive has stopped: the others have declared it dead, or its folder has failed; its log says which";
            return Err(why.into());
        }
    }

    drop(stop);
    tokio::select! {
        // what is late is cut off, like in a crash
        _ = tokio::time::timeout(STOP_WITHIN, member.stop(STOP_TIMEOUT)) => {}
        // whoever is impatient asks twice
        _ = terminate.recv() => {}
    }
    // dropping the runtime closes connections that are still open
    let _ = tokio::time::timeout(Duration::from_millis(500), server).await;
    Ok(())
}
