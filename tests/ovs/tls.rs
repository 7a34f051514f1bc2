//! Switches over TLS, with certificates from Open vSwitch's own `ovs-pki`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Protocols, stays};

tests! {
    switches_speak_tls_and_are_who_their_certificates_say,
}

const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Time for which a switch tries to connect that must not succeed: some back-offs.
const IN_VAIN: Duration = Duration::from_secs(5);

/// Time limit for creating all keys. RSA keys take several seconds of processor time, and longer if other tests use
/// the processors.
const KEYS_LIMIT: Duration = Duration::from_secs(60);

/// Creates a folder of certificates: that of the controller, in the layout that `--switch-tls-dir` expects,
/// and one for each of the switches.
fn certify(lab: &Lab, switches: &[&str]) {
    let script = "set -e; cd \"$1\"; shift; mkdir certificates tls; cd certificates
        pki() { ovs-pki --dir=\"$PWD/pki\" --log=\"$PWD/log\" --force \"$@\"; }
        pki init; pki req+sign controller controller
        for name in \"$@\"; do pki req+sign \"$name\" switch; done
        cp controller-cert.pem ../tls/cert.pem; cp controller-privkey.pem ../tls/key.pem
        cp pki/switchca/cacert.pem ../tls/ca.pem";
    let directory = lab.file("").to_string_lossy().into_owned();
    let made = lab.run(&[&["sh", "-c", script, "sh", &directory], switches].concat(), KEYS_LIMIT);
    assert!(made.status.success(), "no keys: {}{}", made.output, made.error);
}

/// From now on, all switches of the laboratory present this certificate.
fn show(lab: &Lab, name: &str) {
    let file = |name: &str| lab.file(&format!("certificates/{name}")).to_string_lossy().into_owned();
    let (key, certificate) = (file(&format!("{name}-privkey.pem")), file(&format!("{name}-cert.pem")));
    lab.succeed(&["ovs-vsctl", "set-ssl", &key, &certificate, &file("pki/controllerca/cacert.pem")]);
}

/// Checks that no switch is served during [`IN_VAIN`], and that the controller logs the reason.
///
/// This does not query the switch: with a certificate that names another switch, the switch considers itself connected
/// from its hello until it has sent its datapath id.
fn none_is_served(lab: &Lab, controller: &Controller, why: &str) {
    let program = lab.controller().to_string_lossy();
    let served = stays(IN_VAIN, || {
        let told = lab.succeed(&[&*program, "switches", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        let switches = told["switches"].as_array().expect("a list of switches");
        // a connection whose handshake is not complete is listed without a switch
        let served = switches.iter().any(|switch| switch["ready"] != false || !switch["switch"].is_null());
        if served { Err(told.to_string()) } else { Ok(()) }
    });
    assert_eq!(served, Ok(()), "{why}");
    let log = controller.log();
    assert!(log.contains(why), "nobody was refused: {log}");
}

fn switches_speak_tls_and_are_who_their_certificates_say() {
    let Some(lab) = Lab::open("switches_speak_tls_and_are_who_their_certificates_say") else { return };
    certify(&lab, &["0000000000000001", "another"]);
    let folder = lab.file("tls").to_string_lossy().into_owned();
    let mut controller = Controller::start_options(&lab, &["--switch-tls-dir", &folder, "--switch-tls-bind"]);
    let bridge = Bridge::new(&lab, "br0", 1, Protocols::Default);
    let alice = Host::wire(&bridge, "alice", 1, "02:00:00:00:00:0a");
    let bob = Host::wire(&bridge, "bob", 2, "02:00:00:00:00:0b");
    alice.add_address("10.0.0.1/24");
    bob.add_address(&format!("{BOB}/24"));

    // connect without TLS, then with a certificate that names no switch, and then with the switch's own
    // certificate
    bridge.point_at(Controller::PORT);
    none_is_served(&lab, &controller, "the peer does not speak TLS");
    show(&lab, "another");
    bridge.point_at_tls(Controller::PORT);
    none_is_served(&lab, &controller, "the certificate does not name 0000000000000001");
    assert_eq!(bridge.flows().lines().filter(|line| line.contains("actions=")).count(), 0);
    show(&lab, "0000000000000001");
    bridge.wait_connected();
    alice.ping(BOB).assert_answered(5);
    // the switch answered the controller's error messages with errors
    let refusals = bridge.refusals();

    // the switch reconnects and is served
    bridge.point_at(Controller::PORT);
    bridge.wait_disconnected();
    bridge.point_at_tls(Controller::PORT);
    bridge.wait_connected();
    alice.ping(BOB).assert_answered(5);
    controller.assert_running();
    assert_eq!(bridge.refusals(), refusals);
    controller.stop();
}
