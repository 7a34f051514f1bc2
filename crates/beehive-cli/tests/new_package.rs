//! Tests that the package that `beehive new` creates builds, runs and passes its own test without changes.

use std::path::Path;
use std::process::Command;

/// This test runs only with `BEEHIVE_LONG=1`, because it builds Beehive as a dependency.
#[test]
fn what_is_written_builds_runs_and_passes_its_test() {
    if std::env::var_os("BEEHIVE_LONG").is_none() {
        println!(
            "SKIPPED what_is_written_builds_runs_and_passes_its_test: it takes long; BEEHIVE_LONG=1 runs it"
        );
        return;
    }

    let beehive = Path::new(env!("CARGO_BIN_EXE_beehive"));
    let place = std::env::temp_dir().join(format!("beehive-new-builds-{}", std::process::id()));
    let package = place.join("my-controller");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("..");
    let made = Command::new(beehive).arg("new").arg(&package).status();
    assert!(made.expect("starts").success());

    // use the locked versions of the dependencies
    std::fs::copy(source.join("Cargo.lock"), package.join("Cargo.lock")).expect("is copied");
    // <target>/<profile>/beehive
    let target = beehive.parent().and_then(Path::parent).expect("a target folder");

    let cargo = std::env::var_os("CARGO").expect("run by cargo");
    let run = |subcommand: &str, more: &[&str]| {
        let mut command = Command::new(&cargo);
        command.args([subcommand, "--quiet", "--offline", "--target-dir"]).arg(target).args(more);
        command.current_dir(&package).output().expect("starts")
    };

    let tested = run("test", &[]);
    let words = String::from_utf8_lossy(&tested.stdout).into_owned();
    assert!(tested.status.success(), "{words}{}", String::from_utf8_lossy(&tested.stderr));
    assert!(words.contains("1 passed"), "{words}");
    let ran = run("run", &["--", "--help"]);
    let words = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(words.starts_with("An SDN controller"), "{words}");
    assert!(words.contains("--listen") && words.contains("--app"), "{words}");

    std::fs::remove_dir_all(place).expect("is removed");
}
