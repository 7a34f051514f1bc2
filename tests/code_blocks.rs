//! Checks that every code block of README, the guide and the operator's page runs, or is listed here with the test that
//! compares it or with the reason why it does not run; and that the commands and dependencies that the pages show exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What accounts for a block that rustdoc does not run.
#[derive(Clone, Copy, Debug)]
enum Instead {
    /// A test of this name compares it with what the program says.
    Test(&'static str),
    /// It is not run, for this reason.
    Reason(&'static str),
}
use Instead::{Reason, Test};

/// The blocks that rustdoc does not run: the page, the block's first line, and what accounts for it.
const NOT_RUN: &[(&str, &str, Instead)] = &[
    ("README.md", "bank", Test("the_map_report_of_the_readme_is_the_one_of_its_program")),
    (
        "README.md",
        "error: this key of `self.accounts` is not a function of the message, so Beehive cannot tell which cell the handler needs",
        Test("the_compile_error_of_the_readme_is_a_real_one"),
    ),
    (
        "README.md",
        "cargo run --release --bin beehive -- controller",
        Test("the_readme_gives_both_commands_near_its_top"),
    ),
    ("README.md", "[dependencies]", Test("the_dependencies_that_the_pages_show_exist")),
    (
        "README.md",
        "cargo doc -p beehive-runtime --all-features --no-deps --open",
        Reason("it opens a browser; the gate builds the documentation"),
    ),
    ("README.md", "cargo run --example hello", Test("the_commands_that_the_pages_show_exist")),
    (
        "README.md",
        "cargo run --bin beehive -- new ../my-controller   # depends on this repository by path",
        Test("what_is_written_builds_runs_and_passes_its_test"),
    ),
    ("README.md", "cargo run --example three_hives", Test("the_commands_that_the_pages_show_exist")),
    ("README.md", "three hives run", Test("the_readme_shows_what_three_hives_print")),
    (
        "README.md",
        " socket ──► IO bee ──batch──► map ──► cells ──► table: cell → bee ──► mailbox ──► handler ──► commit",
        Reason("a drawing"),
    ),
    ("src/guide/first_app.md", "cargo new words && cd words", Reason("it makes a package of the reader's")),
    ("src/guide/first_app.md", "[dependencies]", Test("the_dependencies_that_the_pages_show_exist")),
    ("src/guide/first_app.md", "words", Test("the_map_report_of_the_first_app_is_the_one_of_its_program")),
    ("src/guide/testing.md", "[dev-dependencies]", Test("the_dependencies_that_the_pages_show_exist")),
    (
        "src/guide/crashes.md",
        "seed 3 fails; this repeats it:",
        Reason("an abridged report; a test of the core compares one"),
    ),
    ("src/guide/network_apps.md", "[dependencies]", Test("the_dependencies_that_the_pages_show_exist")),
    (
        "src/guide/network_apps.md",
        "# use beehive::nom::object::{NodeId, PacketIn, PacketOut};",
        Reason(
            "it is compiled, but it would serve switches without end; `tests/own_controller.rs` runs the same program",
        ),
    ),
    (
        "src/guide/logs.md",
        "the log does not fit these apps: the dictionary `accounts` of app `bank` cannot be read: `[]` was { coins: u64 } and is { coins: i64 }. ..",
        Reason("an abridged error"),
    ),
    (
        "src/guide/recipes/following_a_message.md",
        "TRACE beehive::messages: emitted chain=4f1c9b2ae07d5386 hops=0 kind=\"shop::Order\" from=Outside",
        Reason("it contains random numbers; the program above it asserts its events"),
    ),
    (
        "src/guide/recipes/following_a_message.md",
        "beehive controller --app firewall,learning-switch --log info,beehive::messages=trace 2> controller.log",
        Reason("it needs a network"),
    ),
    (
        "docs/controller.md",
        "openssl rand -hex 32 > token    # the same file on all three",
        Test("a_hive_that_is_killed_is_succeeded_as_the_master"),
    ),
    (
        "docs/controller.md",
        "ovs-vsctl set-controller br0 tcp:10.0.0.1:6653 tcp:10.0.0.2:6653 tcp:10.0.0.3:6653",
        Test("a_hive_that_is_killed_is_succeeded_as_the_master"),
    ),
    (
        "docs/controller.md",
        "cargo run --release --bin beehive -- controller",
        Test("the_readme_gives_both_commands_near_its_top"),
    ),
    (
        "docs/controller.md",
        "ovs-vsctl set-controller br0 tcp:127.0.0.1:6653",
        Reason("it needs Open vSwitch; the tests in `tests/ovs` connect bridges in this way"),
    ),
    (
        "docs/controller.md",
        "beehive controller --app discovery,learning-switch      # a network with loops",
        Reason("it serves switches without end; the tests in `tests/ovs` run these apps"),
    ),
    ("docs/controller.md", "[[apps.firewall.rules]]", Reason("a part of a configuration")),
    (
        "docs/controller.md",
        "ovs-pki init && ovs-pki req+sign controller controller && ovs-pki req+sign 0000000000000001 switch",
        Reason("it changes the machine's keys; `tests/ovs/tls.rs` makes keys of its own"),
    ),
    (
        "docs/controller.md",
        "ovs-ofctl -O OpenFlow13 del-flows br0 cookie=0xbee17075609a0000/0xffffffffffff0000",
        Reason("it needs Open vSwitch"),
    ),
    ("docs/controller.md", "[controller]", Reason("the defaults, with comments")),
    (
        "docs/cluster.md",
        "cargo run --bin beehive --features cluster -- cluster up",
        Test("the_commands_that_the_pages_show_exist"),
    ),
    (
        "docs/cluster.md",
        "starting 3 hives, which survive the loss of 1",
        Reason("ports and process ids differ; a test of `beehive cluster up` reads these lines"),
    ),
    ("docs/cluster.md", "[dependencies]", Test("the_dependencies_that_the_pages_show_exist")),
    (
        "docs/cluster.md",
        "use beehive::cluster::Cluster;",
        Test("the_program_of_the_page_about_clusters_runs"),
    ),
    (
        "docs/cluster.md",
        "openssl rand -hex 32 > token && chmod 600 token",
        Reason("it makes a secret of the reader's"),
    ),
    (
        "docs/cluster.md",
        "let member = cluster.folder(\"/var/lib/beehive/hive-1\").start(1, Hive::builder().app::<Bank>()).await?;",
        Reason("it needs three machines; a test of `beehive cluster up --data` starts hives in this way"),
    ),
    (
        "docs/cluster.md",
        "let member = cluster.folder(\"/var/lib/beehive/hive-1\").replaces().start(1, Hive::builder().app::<Bank>()).await?;",
        Reason("it needs three machines; the hives of `beehive cluster up --data` are started in this way"),
    ),
    (
        "docs/cluster.md",
        "let member = cluster.tls(\"ca.pem\", \"hive-1.pem\", \"hive-1-key.pem\").start(1, Hive::builder().app::<Bank>()).await?;",
        Test("hives_with_certificates_need_no_token"),
    ),
    (
        "docs/cluster.md",
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 3650 -subj \"/CN=beehive\" -keyout ca-key.pem -out ca.pem",
        Test("the_certificates_of_the_guide_work"),
    ),
    (
        "docs/data.md",
        "beehive data export /var/lib/beehive /backups/today      # also while the controller runs",
        Test("a_backup_made_while_the_controller_runs_is_restored_into_a_new_folder"),
    ),
    ("docs/data.md", "folder", Reason("a list of files")),
    ("docs/data.md", "segment header                     record", Reason("a table of bytes")),
    ("docs/data.md", "checkpoint header                  piece", Reason("a table of bytes")),
    ("docs/data.md", "witness header                     record", Reason("a table of bytes")),
    ("docs/data.md", " 0  8  magic, \"BeehvBak\"", Reason("a table of bytes")),
];

/// Lines that a block shows but comments out where it runs, and the reason.
const SHOWN_ONLY: [(&str, &str); 3] = [
    ("#[test]", "a test inside a test does not run; the block calls the function instead"),
    ("#[tokio::test]", "a test inside a test does not run; the block calls the function instead"),
    (
        "let socket = tokio::net::TcpListener::bind(\"0.0.0.0:6653\").await?;",
        "the block listens on a free port of the loopback address instead",
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the files below a folder whose names have this extension, relative to the repository.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap_or_else(|e| panic!("{}: {e}", next.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path)
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path.strip_prefix(root()).expect("below the root").to_path_buf())
            }
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    pages.extend(files("src/guide", "md"));
    pages.extend(files("docs", "md"));
    pages
}

/// A block of code.
struct Block {
    page: PathBuf,
    /// What follows the opening fence.
    language: String,
    lines: Vec<String>,
}

impl Block {
    fn first_line(&self) -> &str {
        self.lines.first().map_or("", String::as_str)
    }

    fn is_of_the_guide(&self) -> bool {
        self.page.starts_with("src/guide")
    }

    /// Whether rustdoc compiles and runs it, or shows that it does not compile.
    fn is_run(&self) -> bool {
        let is_page_of_rustdoc = self.is_of_the_guide() || self.page == Path::new("README.md");
        is_page_of_rustdoc && ["", "rust", "compile_fail"].contains(&self.language.as_str())
    }

    /// Whether it is the text of the errors that a page is about, which `tests/ui.rs` of `beehive-analysis` and
    /// `tests/diagnostics` compare with the errors.
    fn is_text_of_errors(&self) -> bool {
        self.page.starts_with("src/guide/errors") && self.language == "text"
    }

    fn accounts_for(&self, (page, first_line, _): &(&str, &str, Instead)) -> bool {
        self.page == Path::new(page) && self.first_line() == *first_line
    }
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for page in pages() {
        let (text, mut open) = (read(&page), None::<Block>);
        for line in text.lines() {
            match (line.trim_start().strip_prefix("```"), open.as_mut()) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(language), None) => {
                    let (page, language) = (page.clone(), language.trim().to_string());
                    open = Some(Block { page, language, lines: Vec::new() })
                }
                (None, Some(block)) => block.lines.push(line.to_string()),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", page.display());
    }
    blocks
}

/// Returns the names of all functions of the repository.
fn functions() -> BTreeSet<String> {
    let sources = ["src", "tests", "crates"].into_iter().flat_map(|folder| files(folder, "rs"));
    let name = |line: &str| Some(line.split_once("fn ")?.1.split(['(', '<']).next()?.to_string());
    sources.flat_map(|file| read(&file).lines().filter_map(name).collect::<Vec<_>>()).collect()
}

#[test]
fn every_block_runs_or_is_accounted_for() {
    let (blocks, functions) = (blocks(), functions());
    let mut wrong = Vec::new();

    for block in &blocks {
        let listed = NOT_RUN.iter().any(|known| block.accounts_for(known));
        if listed == (block.is_run() || block.is_text_of_errors()) {
            let what = if listed { "is listed, but runs" } else { "neither runs nor is listed" };
            wrong.push(format!("{}: this block {what}: {}", block.page.display(), block.first_line()));
        }
    }

    for known in NOT_RUN {
        if !blocks.iter().any(|block| block.accounts_for(known)) {
            wrong.push(format!("{}: there is no block that begins with: {}", known.0, known.1));
        }
        match known.2 {
            Test(name) if !functions.contains(name) => wrong.push(format!("there is no test `{name}`")),
            Reason("") => wrong.push(format!("{}: no reason is given for: {}", known.0, known.1)),
            _ => {}
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A block may comment out what it shows: `# /*`, then visible lines, then `# */`.
#[test]
fn blocks_that_run_comment_out_nothing_but_known_lines() {
    for block in blocks().iter().filter(|block| block.is_run()) {
        let mut is_comment = false;
        for line in block.lines.iter().map(|line| line.trim()) {
            match line {
                "# /*" => is_comment = true,
                "# */" => is_comment = false,
                _ => assert!(
                    !is_comment || SHOWN_ONLY.iter().any(|(known, _)| *known == line),
                    "{}: this line does not run: {line}",
                    block.page.display()
                ),
            }
        }
        assert!(!is_comment, "{}: a comment is not closed", block.page.display());
    }
}

/// rustdoc runs only the pages that `src/guide.rs` includes.
#[test]
fn every_page_of_the_guide_is_included() {
    let guide = read("src/guide.rs");
    for page in files("src/guide", "md") {
        let name = page.strip_prefix("src").expect("below src").display().to_string();
        assert!(guide.contains(&format!("\"{name}\"")), "src/guide.rs does not include {name}");
    }
}

#[test]
fn the_commands_that_the_pages_show_exist() {
    let mut seen = 0;
    for block in blocks().iter().filter(|block| block.language == "sh") {
        for line in block.lines.iter().filter(|line| line.contains("cargo run")) {
            let mut words = line.split(['#', ';']).next().unwrap_or_default().split_whitespace();
            let what = words.by_ref().find(|word| ["--example", "--bin"].contains(word));
            let name = words.next().unwrap_or_default();
            match what {
                Some("--example") => assert!(
                    root().join("examples").join(name).with_extension("rs").is_file(),
                    "{}: {line}",
                    block.page.display()
                ),
                Some(_) => assert_eq!(name, "beehive", "{}: {line}", block.page.display()),
                // in the package that the line before it has made
                None => assert!(line.contains("cd ../my-controller"), "{}: {line}", block.page.display()),
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn the_dependencies_that_the_pages_show_exist() {
    let manifest = read("Cargo.toml");
    let features =
        manifest.split("[features]").nth(1).expect("features").split("\n[").next().expect("a table");
    let mut seen = 0;

    for block in blocks().iter().filter(|block| block.language == "toml") {
        for line in block.lines.iter().filter(|line| line.starts_with("beehive = ")) {
            let place = block.page.display();
            assert!(line.contains("package = \"beehive-runtime\", path = \"../beehive\""), "{place}: {line}");
            let wanted = line.split("features = [").nth(1).and_then(|rest| rest.split(']').next());
            for feature in wanted.unwrap_or_default().split(", ").filter(|feature| !feature.is_empty()) {
                let name = feature.trim_matches('"');
                assert!(features.contains(&format!("\n{name} = [")), "{place}: there is no feature {name}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
}

mod first_app {
    use beehive::prelude::*;

    #[derive(Message)]
    #[message(reply = u64)]
    struct Word(String);

    #[derive(App)]
    pub(super) struct Words {
        count: Dict<String, u64>,
    }

    #[handlers]
    impl Words {
        #[rcv]
        fn word(&mut self, Word(word): &Word) -> u64 {
            let count = self.count.entry(word.clone()).or_default();
            *count += 1;
            *count
        }
    }
}

/// The page shows the report of its first program, where the handler is in another line than here.
#[test]
fn the_map_report_of_the_first_app_is_the_one_of_its_program() {
    use beehive::Handlers;

    let page = "src/guide/first_app.md";
    let of_the_page: Vec<Block> =
        blocks().into_iter().filter(|block| block.page == Path::new(page)).collect();
    let program = of_the_page.iter().find(|block| block.is_run()).expect("a program");
    let shown = of_the_page.iter().find(|block| block.language == "text").expect("a report").lines.join("\n");

    let method = "    fn word(&mut self, Word(word): &Word) -> u64 {";
    let line = 1 + program.lines.iter().position(|line| line == method).expect("the method of this test");
    let report = first_app::Words::map_report();
    let here = first_app::Words::REPORT[0].line;
    let wanted = report.trim_end().replace(&format!("  {here}"), &format!("  {line}"));
    assert_eq!(shown, wanted);
}
