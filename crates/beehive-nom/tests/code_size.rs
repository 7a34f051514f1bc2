//! Compares the code size of the apps with that of the paper's apps (SOSR 2016, table 1), and checks the
//! stated figures.
//!
//! The test counts lines that are neither blank nor comments, in all files of an app, up to its tests. There
//! are two counts: all such lines, and the app's logic, which excludes `use` lines and the declaration of
//! settings. The paper does not say which lines it counts; its apps have no settings. Attributes,
//! dictionaries, messages and constants count as logic.
//!
//! If the paper's app lacks a feature of our app, the functions of that feature are listed with their line
//! counts. Without these functions, no app is longer than the paper's app.
//!
//! Code that several apps share is not counted: tables with quotas, deadlines, settings with ranges
//! (`parts`), and packets and flows (`object`). That code has its own tests and documentation, and any app
//! can use it.

use std::path::Path;

struct App {
    name: &'static str,
    files: &'static [&'static str],
    /// Number of lines of the paper's app.
    paper: Option<usize>,
    /// Maximum number of lines of our app. A change that makes the app longer has to raise it.
    most: Lines,
    /// Features that only our app has, each with the functions and types that serve only this feature.
    more: &'static [(&'static str, &'static [&'static str])],
}

#[derive(Clone, Copy, Default)]
struct Lines {
    logic: usize,
    all: usize,
}

const APPS: [App; 7] = [
    App { name: "hub", files: &["hub.rs"], paper: Some(16), most: Lines { logic: 10, all: 12 }, more: &[] },
    App {
        name: "learning switch",
        files: &["learning.rs"],
        paper: Some(69),
        most: Lines { logic: 69, all: 84 },
        more: &[
            ("flows of an earlier life", &["node_joined", "flows_found"]),
            ("trees that change", &["paths_changed"]),
            ("aging", &["age"]),
            ("VLANs, hosts that move, limits for each port and switch, settings", &[]),
        ],
    },
    App {
        name: "host tracker",
        files: &["hosts.rs"],
        paper: Some(158),
        most: Lines { logic: 207, all: 223 },
        more: &[
            (
                "hosts that say to be others: they are asked in their place",
                &["ProbeExpired", "probe_expired", "ReportFrom", "report_from"],
            ),
            (
                "questions by address and by switch",
                &["HostAddress", "AddressChange", "address_change", "list", "find", "find_address"],
            ),
            ("ports that lead to switches", &["link_up", "link_down"]),
            ("IPv6 and DHCP, limits, aging", &[]),
        ],
    },
    App {
        name: "firewall",
        files: &["firewall/mod.rs", "firewall/policy.rs"],
        paper: Some(237),
        most: Lines { logic: 295, all: 320 },
        more: &[
            ("rules that change while it runs", &["SetPolicy", "set_policy", "reconfigured", "enforce"]),
            ("flows of an earlier life", &["node_left", "flows_found"]),
            ("several controllers", &["master_changed"]),
            ("switches that come once", &["NodeGone", "node_gone"]),
            ("parts of packets", &["may_be_fragment"]),
            (
                "flows for each conversation, in front of any app that forwards; IPv6; rules as people write them; limits",
                &[],
            ),
        ],
    },
    App {
        name: "discovery",
        files: &["discovery/mod.rs", "discovery/probe.rs"],
        paper: None,
        most: Lines { logic: 328, all: 341 },
        more: &[("authenticated probes that are good once", &[])],
    },
    App {
        name: "topology",
        files: &["topology/mod.rs", "topology/tree.rs"],
        paper: None,
        most: Lines { logic: 116, all: 125 },
        more: &[("a tree that changes as little as possible", &[])],
    },
    App {
        name: "forwarding",
        files: &["forwarding/mod.rs", "forwarding/paths.rs"],
        paper: None,
        most: Lines { logic: 189, all: 208 },
        more: &[],
    },
];

fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join("apps").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the lines that count, up to the tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    code.filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
}

/// Counts the lines of a function or type with its attributes, up to its closing delimiter.
fn lines_of(name: &str, text: &str) -> Option<usize> {
    let lines: Vec<_> = code(text).collect();
    let is_head = |line: &&str| {
        let words = line.trim_start().trim_start_matches("pub ");
        ["fn ", "struct "]
            .iter()
            .filter_map(|kind| words.strip_prefix(kind))
            .any(|rest| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', ' ', ';', '<'])))
    };

    let head = lines.iter().position(is_head)?;
    let attributes =
        lines[..head].iter().rev().take_while(|line| line.trim_start().starts_with("#[")).count();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let at_margin = |line: &&str| indent(line) == indent(lines[head]);
    let ends = |line: &&str| at_margin(line) && line.ends_with(['}', ';']);
    let body = lines[head..].iter().position(ends)? + 1;

    Some(attributes + body)
}

fn lines(file: &str) -> Lines {
    let text = text(file);
    let mut lines = Lines::default();
    // the end of a section that is not logic
    let mut end = None;

    for line in code(&text) {
        lines.all += 1;
        if end.is_none() {
            end = match line {
                _ if line.starts_with("use ") || line.starts_with("pub use ") => Some(";"),
                "crate::settings! {" => Some("}"),
                _ => None,
            };
        }

        match end {
            None => lines.logic += 1,
            // the settings end at a line that consists of the closing brace
            Some("}") if line != "}" => {}
            Some(mark) if line.ends_with(mark) => end = None,
            Some(_) => {}
        }
    }

    assert!(end.is_none(), "{file}: a passage without an end");
    lines
}

#[test]
fn apps_are_as_long_as_is_said() {
    println!("{:18} {:>6} {:>6} {:>6}", "lines", "logic", "all", "paper");
    for App { name, files, paper, most, more } in APPS {
        let ours = files.iter().map(|file| lines(file)).fold(Lines::default(), |sum, file| Lines {
            logic: sum.logic + file.logic,
            all: sum.all + file.all,
        });
        let said = paper.map_or("-".to_string(), |lines| lines.to_string());
        println!("{name:18} {:>6} {:>6} {said:>6}", ours.logic, ours.all);
        for (what, ours, most) in [("of logic", ours.logic, most.logic), ("in all", ours.all, most.all)] {
            assert!(ours <= most, "{name} has {ours} lines {what}, and {most} are said");
            assert!(ours + 10 > most, "{name} has {ours} lines {what}: say so instead of {most}");
        }
        let texts: Vec<_> = files.iter().map(|file| text(file)).collect();
        let mut rest = ours.logic;
        for (what, parts) in more {
            let count = |part: &&str| {
                let found = texts.iter().find_map(|text| lines_of(part, text));
                found.unwrap_or_else(|| panic!("{name} has no `{part}`"))
            };
            let lines: usize = parts.iter().map(count).sum();
            rest -= lines;
            let lines = if lines == 0 { String::new() } else { lines.to_string() };
            println!("{:>25}  more than the paper's: {what}", lines);
        }
        if let Some(paper) = paper {
            println!("{rest:>25}  without that, the paper's has {paper}");
            assert!(rest <= paper, "{name}: {rest} lines for what the paper's does in {paper}");
        }
    }
}

#[test]
fn a_function_is_counted_to_its_end() {
    let text = "#[a]\nstruct One(u8);\nimpl One {\n    /// Says.\n    #[b]\n    #[c]\n    pub fn two(\n        &self,\n    ) {\n        \
                if true {\n        }\n    }\n\n    fn twofold() {}\n}\nstruct Three {\n    x: u8,\n}\n";
    let counted = ["One", "two", "twofold", "Three", "Four"].map(|name| lines_of(name, text));
    assert_eq!(counted, [Some(2), Some(8), Some(1), Some(3), None]);
}
