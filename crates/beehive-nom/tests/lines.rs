//! How long the apps are, beside those of the paper (SOSR 2016, table 1), and what ours do more.
//!
//! The rule: lines that are neither blank nor comments only, of all files of an app, up to their tests. `use` lines,
//! attributes, settings and messages count.

use std::path::Path;

struct App {
    name: &'static str,
    files: &'static [&'static str],
    /// Lines of the paper's.
    paper: Option<usize>,
    /// Lines of ours, at most: an app that grows says so here.
    most: usize,
    /// What ours does and the paper's does not.
    more: &'static str,
}

const APPS: [App; 7] = [
    App { name: "hub", files: &["hub.rs"], paper: Some(16), most: 16, more: "" },
    App {
        name: "learning switch",
        files: &["learning.rs"],
        paper: Some(69),
        most: 198,
        more: "VLANs, ageing, hosts that move, ports and switches that go, limits for each port and switch, flows of an \
               earlier life, settings",
    },
    App {
        name: "host tracker",
        files: &["hosts/mod.rs", "hosts/claim.rs"],
        paper: Some(158),
        most: 313,
        more: "IPv6 and DHCP, hosts that say to be others (they are asked in their place), links, limits, ageing, questions \
               by address and by switch",
    },
    App {
        name: "firewall",
        files: &["firewall/mod.rs", "firewall/policy.rs", "firewall/rule_text.rs"],
        paper: Some(237),
        most: 363,
        more: "conversations in flows of their own, in front of any app that forwards; answers, failures and fragments; \
               rules that change while it runs; IPv6; rules as people write them; limits; flows of an earlier life",
    },
    App {
        name: "discovery",
        files: &["discovery/mod.rs", "discovery/probe.rs"],
        paper: None,
        most: 313,
        more: "authenticated probes that are good once",
    },
    App {
        name: "topology",
        files: &["topology/mod.rs", "topology/tree.rs"],
        paper: None,
        most: 120,
        more: "a tree that changes as little as possible",
    },
    App {
        name: "forwarding",
        files: &["forwarding/mod.rs", "forwarding/paths.rs"],
        paper: None,
        most: 219,
        more: "",
    },
];

fn lines(file: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join("apps").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let code = text.lines().map(str::trim).take_while(|line| !line.starts_with("#[cfg(test)]"));
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn apps_are_as_long_as_is_said() {
    for App { name, files, paper, most, more } in APPS {
        let ours: usize = files.iter().map(|file| lines(file)).sum();
        let paper = paper.map_or("-".to_string(), |lines| lines.to_string());
        println!("{name}: {ours} lines; the paper's: {paper}. {more}");
        assert!(ours <= most, "{name} has {ours} lines, and {most} are said");
        assert!(ours + 25 > most, "{name} has {ours} lines: say so instead of {most}");
    }
}
