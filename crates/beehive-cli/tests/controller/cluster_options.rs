//! The options with which the controller is one hive of a cluster.

use crate::daemon::{Daemon, start_refused};
use std::fs;

const HIVES: &str = "127.0.0.1:7901,127.0.0.1:7902,127.0.0.1:7903";

#[test]
fn the_options_of_a_cluster_are_checked() {
    let wrong: [(&[&str], &str); 8] = [
        (
            &["--cluster", HIVES],
            "--cluster lists 3 hives: say which one this is, with --hive NUMBER (1 to 3)",
        ),
        (&["--cluster", HIVES, "--hive", "4"], "(1 to 3)"),
        (&["--hive", "1"], "--hive has no meaning without the addresses of all hives"),
        (&["--cluster-replaces"], "--cluster-replaces has no meaning without"),
        (&["--cluster-tls-dir", "tls"], "--cluster-tls-dir has no meaning without"),
        (
            &["--cluster", HIVES, "--hive", "1", "--cluster-token-file", "/no/such/file"],
            "--cluster-token-file /no/such/file",
        ),
        (&["--cluster", "10.0.0.1:7100", "--hive", "1"], "token"),
        (
            &["--cluster", HIVES, "--hive", "1", "--app", "discovery,learning-switch"],
            "discovery needs the same secret on all hives of a cluster",
        ),
    ];
    for (arguments, words) in wrong {
        let said = start_refused(&[&["--listen", "127.0.0.1:0", "--http", "off"], arguments].concat());
        assert!(said.contains(words), "{arguments:?}: {said}")
    }

    let file = std::env::temp_dir().join(format!("beehive-cluster-{}.toml", std::process::id()));
    let name = file.to_str().unwrap();
    let wrong = [
        ("[cluster]\nhives = []\n", "[cluster]: is empty: list the addresses of all hives, in `hives`"),
        ("[cluster]\ntls_dir = \"tls\"\n", "[cluster]: has no meaning without the addresses of all hives"),
        ("[cluster]\nhost = \"a\"\n", "[cluster]: unknown key `host`"),
    ];
    for (text, words) in wrong {
        fs::write(&file, text).unwrap();
        let said = start_refused(&["--config", name]);
        assert!(said.contains(words), "{text}: {said}")
    }

    // one hive is a cluster, too, and does not reload
    fs::write(&file, "[cluster]\nhives = [\"127.0.0.1:7904\"]\nhive = 1\n").unwrap();
    let daemon = Daemon::start(&["--config", name]);
    let said = daemon.ask("POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(said.contains("the hives of a cluster cannot reload settings"), "{said}");
    fs::remove_file(&file).unwrap()
}
