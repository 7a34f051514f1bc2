//! The options with which the controller is one hive of a cluster.

use crate::daemon::{Daemon, Folder, start_refused};

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

    let folder = Folder::new("cluster");
    let wrong: [(&str, &[&str], &str); 4] = [
        ("[cluster]\nhives = []\n", &[], "[cluster]: is empty: list the addresses of all hives, in `hives`"),
        (
            "[cluster]\ntls_dir = \"tls\"\n",
            &[],
            "[cluster]: has no meaning without the addresses of all hives",
        ),
        ("[cluster]\nhost = \"a\"\n", &[], "[cluster]: unknown key `host`"),
        // the flag is to blame, and not the file
        ("[cluster]\n", &["--cluster-listen", "127.0.0.1:1"], "--cluster-listen has no meaning without"),
    ];
    for (text, arguments, words) in wrong {
        let file = folder.file("wrong.toml", text, 0o600);
        let said = start_refused(&[&["--config", &file], arguments].concat());
        assert!(said.contains(words), "{text}: {said}")
    }

    // one hive is a cluster, too, and does not reload
    let one = "[cluster]\nhives = [\"127.0.0.1:7904\"]\nhive = 1\n";
    let daemon = Daemon::start(&["--config", &folder.file("one.toml", one, 0o600)]);
    let said = daemon.ask("POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(said.contains("the hives of a cluster cannot reload settings"), "{said}")
}
