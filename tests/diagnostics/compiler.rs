//! Runs the compiler on small programs, each a crate of its own, and parses its errors and warnings.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// One error or warning of the compiler.
pub(crate) struct Finding {
    /// `error` or `warning`.
    level: String,
    /// First line of the message, with the compiler's error code.
    pub(crate) title: String,
    /// The message as the compiler shows it, with the underlined code and without places inside the library.
    pub(crate) text: String,
}

impl Finding {
    fn of(message: &Value) -> Option<Finding> {
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_string();
        // the closing summary of a failed compilation has no spans
        let spans = message["spans"].as_array().filter(|spans| !spans.is_empty())?;
        let level = text(message, "level");
        let code = message["code"]["code"].as_str().map(|code| format!("[{code}]")).unwrap_or_default();
        let title = format!("{level}{code}: {}", text(message, "message"));

        let mut finding = Finding { text: format!("{title}\n"), title, level };
        let own = spans.iter().filter(|s| s["is_primary"] == true).filter_map(user_span);
        for span in own {
            let line = span["text"][0]["text"].as_str().unwrap_or_default();
            let (from, to) = (&span["text"][0]["highlight_start"], &span["text"][0]["highlight_end"]);
            let (from, to) = (from.as_u64().unwrap_or(1) as usize, to.as_u64().unwrap_or(1) as usize);
            let label = span["label"].as_str().unwrap_or_default();
            let mark = format!(
                "{:from$}{} {label}",
                "",
                "^".repeat(to.saturating_sub(from).max(1)),
                from = from - 1
            );

            let _ = write!(finding.text, "  | {line}\n  | {}\n", mark.trim_end());
        }

        for child in message["children"].as_array().into_iter().flatten() {
            // a note that points into the library does not help its user
            let elsewhere = child["spans"]
                .as_array()
                .is_some_and(|s| !s.is_empty() && s.iter().all(|s| user_span(s).is_none()));
            let said = text(child, "message");

            // the compiler's notes about traits differ between its versions
            let own = ["the following other types", "the trait `", "for that trait"];
            if !elsewhere && !own.iter().any(|start| said.starts_with(start)) {
                let _ =
                    writeln!(finding.text, "  {}: {}", text(child, "level"), said.replace('\n', "\n    "));
            }
        }

        Some(finding)
    }

    /// Checks whether this keeps the program from compiling.
    pub(crate) fn is_error(&self) -> bool {
        self.level == "error"
    }
}

/// Follows macro expansions back to the span in the program itself.
fn user_span(span: &Value) -> Option<&Value> {
    let mut span = span;
    loop {
        let file = span["file_name"].as_str()?;
        if Path::new(file).starts_with("src/bin") {
            return Some(span);
        }
        span = span["expansion"].get("span")?;
    }
}

/// Compiles the programs and returns the findings for each of them by name.
pub(crate) fn findings(folder: &str, programs: &[(String, String)]) -> BTreeMap<String, Vec<Finding>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let sources = package.join("src/bin");
    let _ = std::fs::remove_dir_all(&sources);
    std::fs::create_dir_all(&sources).expect("a folder");
    let manifest = format!(
        "[package]\nname = \"{folder}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nbeehive-runtime = {{ path = {root:?}, features = [\"testing\"] }}\nserde = {{ version = \"1\", features = [\"derive\"] }}\n\n\
         [lints.rust]\nunused = \"allow\"\n\n[workspace]\n"
    );

    std::fs::write(package.join("Cargo.toml"), manifest).expect("written");
    std::fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).expect("copied");
    for (name, source) in programs {
        let main = if source.contains("fn main()") { "" } else { "\nfn main() {}\n" };
        std::fs::write(sources.join(name).with_extension("rs"), format!("{source}{main}")).expect("written");
    }

    let output = Command::new(env!("CARGO"))
        .args(["check", "--bins", "--keep-going", "--offline", "--quiet", "--message-format=json"])
        .current_dir(&package)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::null())
        .output()
        .expect("cargo runs");

    let mut found: BTreeMap<String, Vec<Finding>> =
        programs.iter().map(|(name, _)| (name.clone(), vec![])).collect();
    let mut seen = 0;

    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };

        let name = line["target"]["name"].as_str().unwrap_or_default();
        if line["reason"] == "compiler-message"
            && let Some(findings) = found.get_mut(name)
        {
            seen += 1;
            findings.extend(Finding::of(&line["message"]))
        }
    }

    assert!(seen > 0, "the compiler said nothing:\n{}", String::from_utf8_lossy(&output.stderr));
    found
}
