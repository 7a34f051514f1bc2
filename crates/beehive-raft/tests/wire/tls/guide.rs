//! The commands of the guide that make certificates.

use crate::certificates::folder;
use crate::hives::*;
use beehive_raft::cluster::wire::{TlsFiles, WireOptions};
use std::process::Command;

#[test]
fn the_certificates_of_the_guide_work() {
    let _turn = beside();
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: there is no openssl here");
        return;
    }
    let guide =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.md")).unwrap();
    let commands = guide.split("```sh\n").find(|block| block.starts_with("openssl req")).expect("commands");
    let commands = commands.split("```").next().unwrap();
    assert_eq!(commands.matches("openssl ").count(), 3, "{commands}");
    let folder = folder();
    let made = Command::new("sh").args(["-e", "-c", commands]).current_dir(&folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    runtime().block_on(async {
        let with = |hive: u32| {
            let file = |name: String| folder.join(name);
            let tls = TlsFiles {
                ca: file("ca.pem".into()),
                certificate: file(format!("hive-{hive}.pem")),
                key: file(format!("hive-{hive}-key.pem")),
            };
            WireOptions { tls: Some(tls), ..options("guide", hive) }
        };
        let hives = [Hive::start(with(1)).await, Hive::start(with(2)).await, Hive::start(with(3)).await];
        for hive in &hives {
            hives.iter().for_each(|other| hive.knows(other))
        }
        for hive in &hives {
            for other in hives.iter().filter(|other| other.id != hive.id) {
                hive.connected(other.id).await
            }
        }
    });
    std::fs::remove_dir_all(&folder).unwrap()
}
