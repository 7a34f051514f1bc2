//! `beehive data`: checks, shows, backs up and restores the folder in which a controller keeps its state.

use crate::program;
use crate::table::Table;
use beehive_core::Time;
use beehive_raft::files::RealFiles;
use beehive_raft::{Backup, Inspected, OpenError, export, inspect, restore};
use clap::{Args, Subcommand};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

/// Checks and shows the folder in which a controller keeps its state, and makes and restores backups of it
///
/// `verify`, `show` and `export` change nothing, and work on a copy of the folder. While a controller uses the folder, the
/// end of the log may look torn to `verify` and `show`; a backup made by `export` then contains all that was acknowledged
/// before.
#[derive(Args, Debug)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reads everything in the folder, and checks it as a start does
    ///
    /// Exits with 1 if a start would be refused.
    Verify(FolderArgs),
    /// Shows what the folder contains, as far as it can be read
    Show(FolderArgs),
    /// Writes everything in the folder to a file, also while a controller uses the folder
    Export(ExportArgs),
    /// Makes a new folder from a backup
    ///
    /// Stop the controller first, and start it with the new folder. It continues with ids, numbers and terms that are
    /// higher than those the old one may have handed out since the backup.
    Restore(RestoreArgs),
}

#[derive(Args, Debug)]
struct FolderArgs {
    /// The folder, as given to `--data`
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Args, Debug)]
struct ExportArgs {
    /// The folder, as given to `--data`
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The backup, which must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Args, Debug)]
struct RestoreArgs {
    /// The backup, or a copy of a folder
    #[arg(value_name = "FILE")]
    source: PathBuf,

    /// The new folder, which must be empty or not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs `beehive data`.
pub(crate) fn run(arguments: DataArgs) -> ExitCode {
    let files = Arc::new(RealFiles);
    let text = match &arguments.command {
        Command::Verify(FolderArgs { folder }) => {
            inspect(files, folder).map(|inspected| (verified(folder, &inspected), inspected.damage))
        }
        Command::Show(FolderArgs { folder }) => {
            inspect(files, folder).map(|inspected| (shown(&inspected), inspected.damage))
        }
        Command::Export(ExportArgs { folder, file }) => export(files, folder, file).map(|backup| {
            (format!("{}: {} bytes, hive {}\n", file.display(), backup.bytes, backup.identity.hive), None)
        }),
        Command::Restore(RestoreArgs { source, folder }) => {
            restore(files, source, folder, now()).map(|Backup { identity, .. }| {
                let (hive, term) = (identity.hive, identity.incarnation + 1);
                (format!("{}: hive {hive}, which begins with term {term}\n", folder.display()), None)
            })
        }
    };
    match text {
        Ok((text, damage)) => {
            // a closed pipe is no error
            let _ = std::io::stdout().write_all(text.as_bytes());
            damage.map_or(ExitCode::SUCCESS, failure)
        }
        Err(why) => failure(why),
    }
}

/// Returns the present time.
fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::ZERO + since_epoch
}

fn failure(why: OpenError) -> ExitCode {
    eprintln!("{} data: {why}", program::name());
    ExitCode::FAILURE
}

/// Says in one line what was read, and what a start would cut off.
fn verified(folder: &Path, Inspected { found, damage, .. }: &Inspected) -> String {
    let mut text = format!(
        "{}: {} entries in {} segments ({} bytes), behind a checkpoint of {} bytes",
        folder.display(),
        found.entries,
        found.segments,
        found.log_bytes,
        found.checkpoint_bytes
    );
    text.push_str(if damage.is_none() { ": whole\n" } else { " could be read\n" });
    if let Some(cut) = &found.cut {
        let (file, offset) = (cut.file.display(), cut.offset);
        // writing to a string does not fail
        let _ = writeln!(
            text,
            "{file}: a start cuts off {} bytes from byte {offset} on, which were never acknowledged: {}",
            cut.bytes, cut.what
        );
    }
    text
}

/// Shows the identity and the apps.
fn shown(Inspected { identity, contents, .. }: &Inspected) -> String {
    let mut text = format!(
        "hive {}, {} starts, folder {:016x}\n",
        identity.hive, identity.incarnation, identity.folder_id
    );
    let mut table = Table::new(["LOG", "APP", "BEES", "CELLS", "ROWS"]);
    for (log, contents) in contents.iter().enumerate() {
        // writing to a string does not fail
        let _ = writeln!(
            text,
            "log {log}: {} entries in term {}, {} messages and {} sweeps unfinished{}",
            contents.last.in_term(),
            contents.last.term(),
            contents.waiting,
            contents.sweeps,
            if contents.is_in_use_or_crashed { "; in use, or its last process crashed" } else { "" }
        );
        for (app, bees, cells, rows) in &contents.apps {
            table.row([log.to_string(), app.clone(), bees.to_string(), cells.to_string(), rows.to_string()])
        }
    }
    text + "\n" + &table.text()
}
