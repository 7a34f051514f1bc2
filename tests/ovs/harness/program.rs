//! Finding the controller program, as fresh as the tests themselves.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::command;

/// Names the program. Set by cargo for tests of the program's own package, and by hand to test another build.
const NAMED: &str = "CARGO_BIN_EXE_beehive";

/// The package and the program in it.
const PACKAGE: &str = "beehive-cli";
const PROGRAM: &str = "beehive";

/// How long building the program may take.
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// The program that the environment or cargo names, else the workspace's own in this test's profile.
///
/// Cargo builds programs for the tests of their own package only: beside any other test there is none, or an old one.
/// So it is built here; where it is up to date that takes cargo a moment.
///
/// # Errors
/// What to do when there is no such program.
///
/// # Panics
/// When it does not build: that is a failure, not missing equipment.
pub(crate) fn controller() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(NAMED).or_else(|| option_env!("CARGO_BIN_EXE_beehive").map(Into::into)) {
        let path = PathBuf::from(named);
        return fs::canonicalize(&path).map_err(|error| format!("{NAMED}={}: {error}", path.display()));
    }
    let test = env::current_exe().map_err(|error| format!("cannot tell where this test is: {error}"))?;
    // <target>/<profile>/deps/ovs-<hash>
    let directory = test.parent().and_then(Path::parent);
    let parts =
        directory.and_then(|profile| Some((profile, profile.parent()?, profile.file_name()?.to_str()?)));
    let (Some((directory, target, profile)), Some(cargo)) = (parts, env::var_os("CARGO")) else {
        return Err(format!("run this test by cargo, or name the controller in {NAMED}"));
    };
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", PACKAGE, "--bin", PROGRAM, "--profile"]);
    build.arg(if profile == "debug" { "dev" } else { profile });
    build.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    command::succeed(&mut build, BUILD_LIMIT);
    let path = directory.join(PROGRAM);
    if path.is_file() { Ok(path) } else { Err(format!("no {} after building it", path.display())) }
}
