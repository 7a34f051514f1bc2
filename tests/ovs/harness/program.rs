//! Finds the controller program, and ensures that it is as new as the tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::command;

/// The environment variable that names the program. Cargo sets it for tests of the program's own package. Set
/// it by hand to test another build.
const NAMED: &str = "CARGO_BIN_EXE_beehive";

/// The package that contains the program, and the name of the program.
const PACKAGE: &str = "beehive-cli";
const PROGRAM: &str = "beehive";

/// Time limit for building the program.
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// Returns the program named by the environment or by Cargo; failing that, the one in this workspace, built with this
/// test's profile.
///
/// Cargo builds a program only for the tests of the program's own package. For tests of other packages, the program
/// may be missing or outdated, so this builds it. If it is up to date, this takes little time.
///
/// # Errors
/// Returns an error that says what to do if there is no such program.
///
/// # Panics
/// Panics if the program does not build, because this is a failure and not missing equipment.
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
    build.args([
        "build",
        "--quiet",
        "--package",
        PACKAGE,
        "--bin",
        PROGRAM,
        "--features",
        "cluster",
        "--profile",
    ]);
    build.arg(if profile == "debug" { "dev" } else { profile });
    build.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    command::succeed(&mut build, BUILD_LIMIT);
    let path = directory.join(PROGRAM);
    if path.is_file() { Ok(path) } else { Err(format!("no {} after building it", path.display())) }
}
