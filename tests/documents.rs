//! Checks that the documents promise nothing that this build cannot do, that their links are valid, and that
//! their spelling is American.
//!
//! State is in memory and a hive runs alone, so a sentence about restarts or several hives is true only if it says
//! that, or if a test shows it. Each paragraph, list item or table row with such a word must
//!
//! - say what holds today (one of [`QUALIFIED`]), or
//! - name the test that shows it: `<!-- shown by: name_of_the_test -->`, or
//! - be about another system: `<!-- not Beehive -->`.

use beehive::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Beginnings of words that promise more than one hive, or state that outlives the process.
const PROMISES: [&str; 10] = [
    "hives",
    "replica",
    "cluster",
    "surviv",
    "durab",
    "persist",
    "failover",
    "restart",
    "redundan",
    "exactly-once",
];

/// Phrases that say what holds today.
const QUALIFIED: [&str; 9] = [
    "not there yet",
    "no effect yet",
    "do not exist yet",
    "does not have",
    "planned",
    "in memory",
    "with a journal",
    "starts empty",
    "today",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files below `folder`, or `folder` itself if it is a file, whose names end with one of `endings`.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(next) = folders.pop() {
        if next.is_file() {
            let name = next.to_string_lossy().into_owned();
            found.extend(endings.iter().any(|ending| name.ends_with(ending)).then_some(next));
        } else if !next.ends_with("target") && !next.ends_with("corpus") {
            let entries = std::fs::read_dir(&next).unwrap_or_else(|e| panic!("{}: {e}", next.display()));
            folders.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the paragraphs, list items and table rows of a page, each with the number of its first line. Code is left
/// out.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (number, line) in (1..).zip(page.lines()) {
        let line = line.trim_start_matches("//!").trim();
        if line.starts_with("```") {
            (is_code, is_open) = (!is_code, false);
            continue;
        }
        if is_code || line.is_empty() {
            is_open = false;
            continue;
        }
        match blocks.last_mut() {
            Some((_, block)) if is_open && !line.starts_with(['|', '#']) && !line.starts_with("- ") => {
                *block += " ";
                *block += line;
            }
            _ => blocks.push((number, line.to_string())),
        }
        is_open = true;
    }
    blocks
}

/// Returns the first word of a block that promises something.
fn promise(block: &str) -> Option<&str> {
    // neither comments nor names in code count
    let text = block.split("<!--").next().unwrap_or_default();
    let mut words =
        text.split('`').step_by(2).flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '-'));
    words.find(|word| {
        let word = word.to_lowercase();
        PROMISES.iter().any(|promise| word.starts_with(promise))
    })
}

/// Returns the tests that a block names.
fn shown_by(block: &str) -> Vec<&str> {
    let marks = block.split("<!-- shown by: ").skip(1);
    marks.filter_map(|mark| mark.split(" -->").next()).flat_map(|names| names.split(", ")).collect()
}

/// Returns the names of all functions of the repository.
fn functions() -> BTreeSet<String> {
    let sources = ["src", "tests", "crates"].into_iter().flat_map(|folder| files(folder, &[".rs"]));
    let name = |line: &str| Some(line.split_once("fn ")?.1.split(['(', '<']).next()?.to_string());
    sources.flat_map(|file| read(&file).lines().filter_map(name).collect::<Vec<_>>()).collect()
}

#[test]
fn promises_are_qualified_or_shown_by_a_test() {
    let pages = ["README.md", "SECURITY.md", "docs", "src/guide", "src/lib.rs", "src/guide.rs"];
    let pages = pages.into_iter().flat_map(|page| files(page, &[".md", ".rs"]));
    let functions = functions();
    let mut wrong = Vec::new();

    for page in pages {
        for (line, block) in blocks(&read(&page)) {
            let place = format!("{}:{line}", page.strip_prefix(root()).unwrap_or(&page).display());
            let tests = shown_by(&block);
            wrong.extend(
                tests
                    .iter()
                    .filter(|test| !functions.contains(**test))
                    .map(|test| format!("{place}: there is no test `{test}`")),
            );

            let text = block.to_lowercase();
            let is_qualified = QUALIFIED.iter().any(|phrase| text.contains(phrase))
                || text.contains("<!-- not beehive -->")
                || !tests.is_empty();
            if let Some(word) = promise(&block).filter(|_| !is_qualified) {
                wrong.push(format!("{place}: `{word}` promises something\n    {block}"));
            }
        }
    }

    assert!(
        wrong.is_empty(),
        "{}\n\nSay what holds today ({}), or name the test that shows it (<!-- shown by: name -->), or mark \
         what is about another system (<!-- not Beehive -->).",
        wrong.join("\n"),
        QUALIFIED.join(", ")
    );
}

/// The links of the guide are checked by rustdoc.
#[test]
fn links_between_documents_lead_to_files() {
    let pages =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "benches"];
    let mut wrong = Vec::new();

    for page in pages.into_iter().flat_map(|page| files(page, &[".md"])) {
        let text = read(&page);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let is_local = |link: &&str| !link.is_empty() && !link.contains("://");
        let folder = page.parent().unwrap_or(root());
        wrong.extend(
            links
                .filter(is_local)
                .filter(|link| !folder.join(link).exists())
                .map(|link| format!("{}: {link}", page.display())),
        );
    }

    assert!(wrong.is_empty(), "these links lead nowhere:\n{}", wrong.join("\n"));
}

/// Whoever reads one page only must learn where state is: in memory, unless the program asks for a folder.
#[test]
fn the_documents_say_where_state_is() {
    let statements = [
        ("README.md", "State is in memory, unless you ask for a folder: `beehive controller --data DIR`"),
        ("docs/controller.md", "All state is in memory, unless you [keep it in a folder](#keep-the-state)"),
        ("src/guide/logs.md", "By default, nothing is kept over a restart today."),
        ("src/guide/embedding.md", "Nothing is kept over a restart by default."),
        ("src/guide/views.md", "it is no backup, and it is gone after a restart"),
        ("src/guide/errors/app_options.md", "It has no effect yet"),
        ("src/lib.rs", "Replication is not there yet"),
    ];

    for (page, statement) in statements {
        let text = read(&root().join(page)).replace("\n//! ", " ").replace('\n', " ");
        assert!(text.contains(statement), "{page} does not say: {statement}");
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);

#[derive(App)]
#[app(replication = 3)]
struct Counts {
    seen: Dict<u64, u64>,
}

#[handlers]
impl Counts {
    #[rcv(sharded)]
    fn count(&mut self, Count(key): &Count) -> u64 {
        let seen = self.seen.entry(*key).or_default();
        *seen += 1;
        *seen
    }
}

#[tokio::test]
async fn nothing_is_kept_over_a_restart_today() {
    for _ in 0..2 {
        let hive = Hive::builder().app::<Counts>().start().expect("starts");
        assert_eq!(hive.request(Count(1)).await, Ok(1), "a hive that starts is empty");
        hive.stop(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn hives_of_one_process_do_not_talk_to_each_other_today() {
    let one = Hive::builder().app::<Counts>().start().expect("starts");
    let other = Hive::builder().app::<Counts>().start().expect("starts");
    assert_eq!(one.request(Count(1)).await, Ok(1));
    assert_eq!(other.request(Count(1)).await, Ok(1), "the other hive has its own state");
    assert_eq!(one.status().apps[0].replication, 1, "three are asked for");
    one.stop(Duration::from_secs(1)).await;
    other.stop(Duration::from_secs(1)).await;
}

/// A `main` that returns `Result<(), Box<dyn Error>>`, as those of the documents do, prints the `Debug` of its error.
#[test]
fn a_main_that_returns_an_error_prints_a_sentence_with_the_remedy() {
    use beehive::cluster::{ClusterError, LeadError, MoveError};
    use beehive::data::OpenError;
    use std::error::Error;

    let app = "x".to_string();
    let errors: Vec<Box<dyn Error>> = vec![
        Box::new(beehive::StartError::NoRuntime),
        Box::new(beehive::RequestError::<beehive::Error>::NoApp { message: "shop::Order" }),
        Box::new(beehive::ReadError::NoSuchApp { app: "x" }),
        Box::new(beehive::ReconfigureError::UnknownApp { table: app, known: Vec::new() }),
        Box::new(beehive::Busy),
        Box::new(MoveError::NoCluster),
        Box::new(LeadError::NoColony),
        Box::new(OpenError::InUse { folder: "data".into() }),
        Box::new(ClusterError::Forgotten { peer: HiveId(3) }),
        Box::new(ClusterError::Wire(beehive::cluster::wire::WireError::ShortToken { length: 3 })),
    ];
    for error in errors {
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}

/// Beginnings and endings of British spellings, in two parts so that this file does not contain them.
const BRITISH: [(&str, &str); 20] = [
    ("centrali", "s"),
    ("generali", "se"),
    ("seriali", "s"),
    ("synchroni", "s"),
    ("summari", "se"),
    ("optimi", "se"),
    ("normali", "se"),
    ("recogni", "se"),
    ("initiali", "se"),
    ("organi", "sation"),
    ("parenthesi", "sed"),
    ("memoi", "s"),
    ("behavio", "ur"),
    ("neighbo", "ur"),
    ("colo", "ur"),
    ("rumo", "ur"),
    ("labell", "ed"),
    ("misspel", "t"),
    ("analy", "sed"),
    ("licen", "ce"),
];

#[test]
fn there_is_one_spelling_the_american_one() {
    let folders = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"];
    let folders = folders.into_iter().chain(["docs", "src", "crates", "examples", "tests", "benches"]);
    let texts = folders.flat_map(|folder| files(folder, &[".rs", ".md", ".stderr", ".txt", ".toml"]));
    let british: Vec<String> = BRITISH.iter().map(|(begin, end)| format!("{begin}{end}")).collect();
    let mut wrong = Vec::new();

    for file in texts {
        for (number, line) in (1..).zip(read(&file).lines()) {
            let lower = line.to_lowercase();
            if let Some(word) = british.iter().find(|word| lower.contains(word.as_str())) {
                wrong.push(format!("{}:{number}: {word}", file.display()));
            }
        }
    }

    assert!(wrong.is_empty(), "American spelling is used here:\n{}", wrong.join("\n"));
}
