//! Checks that README stays correct: its program compiles and has the map report that README shows, and the compile
//! error that README shows is real.

include!("bank.rs.in");

const README: &str = include_str!("../../README.md");

/// Golden file of the compile error that README shows. `tests/diagnostics` compares it with the output of the
/// compiler.
const ERROR: &str = include_str!("../diagnostics/programs/readme.stderr");

/// The commands near the top of README. They must match exactly, because people copy them and CI runs them.
const COMMANDS: [&str; 2] = ["cargo run --release --bin beehive -- controller", "cargo test --workspace"];

/// Number of lines that make up README's first screen.
const FIRST_SCREEN_LINES: usize = 60;

fn first_screen() -> String {
    README.lines().take(FIRST_SCREEN_LINES).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_program_of_the_readme_is_the_one_that_is_compiled_here() {
    assert!(first_screen().contains(include_str!("bank.rs.in")));
}

#[test]
fn the_map_report_of_the_readme_is_the_one_of_its_program() {
    let report = Bank::map_report();
    assert!(first_screen().contains(&report), "README does not show this report:\n{report}");
}

#[test]
fn the_compile_error_of_the_readme_is_a_real_one() {
    // the golden file contains the messages first, and then the underlined line of the program
    for line in ERROR.lines().map(|line| line.trim_start_matches([' ', '|'])).filter(|line| !line.is_empty())
    {
        assert!(first_screen().contains(line), "README does not show this line of the error:\n{line}");
    }
}

#[test]
fn the_readme_gives_both_commands_near_its_top() {
    for command in COMMANDS {
        assert!(first_screen().lines().any(|line| line.trim() == command), "README lacks `{command}`");
    }
}

/// Replaces the number in front of each ` ms`, as in the expected outputs of the examples.
fn without_times(text: &str) -> String {
    let mut parts: Vec<&str> = text.split(" ms").collect();
    let last = parts.pop().unwrap_or_default();
    let without = |part: &&str| {
        let rest = part.trim_end_matches(|c: char| c.is_ascii_digit());
        format!("{rest}{} ms", if rest.len() < part.len() { "#" } else { "" })
    };
    parts.iter().map(without).collect::<String>() + last
}

#[test]
fn the_readme_shows_what_three_hives_print() {
    let expected = include_str!("../../examples/expected/three_hives.txt");
    assert!(
        without_times(README).contains(&format!("```text\n{expected}```\n")),
        "README does not show:\n{expected}"
    );
}

/// A process that is killed when it is dropped.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        // fails if it has ended
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The page shows the example without its first lines. Three processes run it, and end when they are asked to.
#[test]
fn the_program_of_the_page_about_clusters_runs() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let source = include_str!("../../examples/bank_hive/main.rs");
    let (_, program) = source.split_once("\n\n").expect("a program");
    let page = include_str!("../../docs/cluster.md");
    assert!(page.contains(&format!("```rust\n{program}```\n")), "docs/cluster.md does not show:\n{program}");

    let this = std::env::current_exe().expect("this test's program");
    let built = this.parent().and_then(std::path::Path::parent).expect("a target folder");
    let built = built.join("examples").join("bank_hive");
    assert!(built.is_file(), "{} is missing: run `cargo build --examples`", built.display());
    let folder = std::env::temp_dir().join(format!("beehive-page-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("token"), "8f2b".repeat(16) + "\n").expect("a token");
    let sockets = [(); 3].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let addresses = sockets.map(|socket| socket.local_addr().expect("an address").to_string());

    let mut hives = [1, 2, 3].map(|number: u32| {
        let mut command = Command::new(&built);
        command.arg(number.to_string()).args(&addresses).current_dir(&folder).stdout(Stdio::piped());
        Process(command.spawn().expect("starts"))
    });
    let mut balances = Vec::new();
    for (number, Process(hive)) in (1..).zip(&mut hives) {
        let mut line = String::new();
        let stdout = hive.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let balance = line.trim().strip_prefix(&format!("hive {number} runs, and account 1 has "));
        balances
            .push(balance.and_then(|balance| balance.parse::<u64>().ok()).unwrap_or_else(|| panic!("{line}")))
    }
    balances.sort_unstable();
    assert_eq!(balances, [100, 200, 300]);

    for Process(hive) in &mut hives {
        let asked = Command::new("kill").args(["-TERM", &hive.id().to_string()]).status();
        assert!(asked.expect("kill runs").success());
    }
    for Process(hive) in &mut hives {
        assert!(hive.wait().expect("ends").success())
    }
    std::fs::remove_dir_all(&folder).expect("the folder is removed")
}

#[tokio::test]
async fn the_program_of_the_readme_moves_money() {
    let hive = Hive::builder().app::<Bank>().start().expect("the bank starts");
    hive.request(Deposit { account: 1, amount: 100 }).await.expect("deposited");
    hive.request(Transfer { from: 1, to: 2, amount: 60 }).await.expect("enough money");

    let refused = hive.request(Transfer { from: 1, to: 2, amount: 60 }).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("not enough")));

    hive.request(Transfer { from: 1, to: 2, amount: 40 }).await.expect("the refused transfer took nothing");
}
