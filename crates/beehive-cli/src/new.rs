//! `beehive new`: creates a package that contains a controller, ready to be built and changed.

use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Creates a package with your own controller
///
/// The package has one app, which counts packets and floods them. Its program accepts all flags of
/// `beehive controller`. Change the app or add others; `cargo run` starts the controller.
#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// The folder to create; its last component becomes the package name
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Build with this copy of Beehive's source instead of the one that this program was built from
    #[arg(long, value_name = "FOLDER")]
    beehive: Option<PathBuf>,
}

/// The source of the new program. The root package also has it as an example, so it is compiled and tested.
const MAIN: &str = include_str!("../template/main.rs");

/// Creates the package and prints how to run it.
pub(crate) fn run(arguments: NewArgs) -> ExitCode {
    match make(&arguments) {
        Ok(()) => {
            let folder = arguments.folder.display();
            println!(
                "created {folder}: run it with `cd {folder} && cargo run` (for a real network: `cargo run --release`); the app is \
                 in src/main.rs"
            );
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("beehive new: {why}");
            ExitCode::FAILURE
        }
    }
}

fn make(NewArgs { folder, beehive }: &NewArgs) -> Result<(), String> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !is_package_name(name) {
        return Err(format!(
            "the last component of `{}` is not a valid package name (expected a letter, then letters, digits, `-` or `_`)",
            folder.display()
        ));
    }

    if folder.exists() {
        return Err(format!("{} already exists", folder.display()));
    }

    let source = match beehive {
        Some(path) => source_of(path).map_err(|why| format!("--beehive {}: {why}", path.display()))?,
        None => source_of(&built_from()).map_err(|why| {
            format!(
                "Beehive is not published yet, and its source is no longer in the folder that this program was built from: \
                 {why} ({}); name a copy of the source with `--beehive FOLDER`",
                built_from().display()
            )
        })?,
    };
    let source = format!("path = {}", quoted(&source));

    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         beehive = {{ package = \"beehive-runtime\", {source}, features = [\"controller\"] }}\n\n\
         [dev-dependencies]\nbeehive = {{ package = \"beehive-runtime\", {source}, features = [\"testing\"] }}\n\n\
         # makes this package its own workspace, even if it is inside the folder of another one\n[workspace]\n"
    );
    let written = fs::create_dir_all(folder.join("src"))
        .and_then(|()| fs::write(folder.join("Cargo.toml"), manifest))
        .and_then(|()| fs::write(folder.join(".gitignore"), "/target\n"))
        .and_then(|()| fs::write(folder.join("src").join("main.rs"), MAIN));

    written.map_err(|error| format!("{}: {error}", folder.display()))
}

/// Returns the folder from which this program was built.
fn built_from() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("..")
}

/// Returns the absolute path of Beehive's source, because the new package may be anywhere.
///
/// # Errors
///
/// Returns an error if the folder does not exist or is not Beehive's root package.
fn source_of(path: &Path) -> Result<PathBuf, String> {
    let full = fs::canonicalize(path).map_err(|error| error.to_string())?;
    let manifest = fs::read_to_string(full.join("Cargo.toml")).unwrap_or_default();
    if manifest.contains("name = \"beehive-runtime\"") {
        Ok(full)
    } else {
        Err("not Beehive's source (no package `beehive-runtime`)".to_string())
    }
}

fn is_package_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns the path as a TOML string.
fn quoted(path: &Path) -> String {
    toml::Value::from(path.to_string_lossy().into_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(test: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("beehive-new-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        place
    }

    #[test]
    fn the_package_is_there_and_is_not_overwritten() {
        let place = place("package");
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("..");
        let arguments = NewArgs { folder: place.join("my-controller"), beehive: Some(workspace) };
        make(&arguments).unwrap();
        let manifest = fs::read_to_string(place.join("my-controller").join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("my-controller"));
        let path = manifest["dependencies"]["beehive"]["path"].as_str().unwrap();
        assert!(Path::new(path).join("crates").is_dir(), "{path}");
        assert_eq!(manifest["dev-dependencies"]["beehive"]["features"][0].as_str(), Some("testing"));
        let program = fs::read_to_string(place.join("my-controller").join("src").join("main.rs")).unwrap();
        assert_eq!(program, MAIN);
        assert!(make(&arguments).unwrap_err().contains("already exists"));

        fs::remove_dir_all(place).unwrap();
    }

    /// No version of Beehive is published, so a package that depends on one would not build.
    #[test]
    fn the_package_uses_the_source_that_this_program_was_built_from() {
        let place = place("source");
        let package = place.join("my-controller");
        make(&NewArgs { folder: package.clone(), beehive: None }).unwrap();
        let manifest: toml::Table = fs::read_to_string(package.join("Cargo.toml")).unwrap().parse().unwrap();
        for dependencies in ["dependencies", "dev-dependencies"] {
            let beehive = &manifest[dependencies]["beehive"];
            assert!(beehive.get("version").is_none());
            let path = Path::new(beehive["path"].as_str().unwrap());
            assert_eq!(path, fs::canonicalize(built_from()).unwrap());
        }

        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let place = place("refused");
        for bad in ["1st", "a b", "..", "ä"] {
            let arguments = NewArgs { folder: place.join(bad), beehive: None };
            assert!(make(&arguments).is_err(), "{bad}");
        }
        let arguments = NewArgs { folder: place.join("good"), beehive: Some(std::env::temp_dir()) };
        let why = make(&arguments).unwrap_err();
        assert!(why.starts_with("--beehive ") && why.contains("not Beehive's source"), "{why}");
        assert!(!place.exists());
    }

    #[test]
    fn the_program_is_twenty_lines() {
        let code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let program = MAIN.split("#[cfg(test)]").next().unwrap_or_default();
        assert!(program.lines().filter(code).count() <= 20);
    }
}
