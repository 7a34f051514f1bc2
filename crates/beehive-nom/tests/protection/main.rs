//! Measures the service under attack: answers to packets of hosts at other ports and switches, and echo
//! replies, take at most twice as long as without the attack. These tests are a separate program and run one
//! at a time.

#[path = "../openflow/peer.rs"]
#[allow(dead_code)] // the half of it that is not needed here
mod peer;

mod attacks;
mod cpu_contention;
mod timed_connection;

use beehive_core::Hive;
use beehive_nom::apps::{Discovery, Firewall, Hosts, LearningSwitch, LoopGuard, NodeController, Topology};
use beehive_nom::driver::openflow::ListenerSettings;
use bytes::BytesMut;
use cpu_contention::Spent;
use peer::Controller;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use timed_connection::{Line, datagram, packet_in};

/// Packets per second of the flood (S15); an unoptimized controller gets a comparable load.
const FLOOD_PER_SECOND: usize = if cfg!(debug_assertions) { 10_000 } else { 100_000 };
/// Number of measurements, alternating with and without the flood so that other load on the machine affects
/// both.
const TURNS: usize = 20;
/// Number of measurements for each attack of the table.
const ATTACK_TURNS: usize = 6;
/// Packets per second of each attack; they pass through all apps, and some cause two flows each.
const ATTACK_PER_SECOND: usize = if cfg!(debug_assertions) { 500 } else { 10_000 };
/// Number of requests per measurement.
const QUESTIONS: usize = 200;

/// Serializes the tests so that they do not disturb each other's measurements.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Returns the smallest 99th percentile of all measurements. Other load on the machine only lengthens some of the
/// measurements, while the flood affects every measurement of an attack, so the minimum shows the effect of the
/// flood.
fn percentile_99(times: &[Duration]) -> Duration {
    let turn = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[times.len() * 99 / 100]
    };
    times.chunks(QUESTIONS).map(turn).min().unwrap_or_default()
}

/// The measured services: packets at another port and at another switch, and echoes of the attacked switch
/// and of the other switch.
const WHAT: [&str; 4] = ["another port", "another switch", "its own echo", "another switch's echo"];

/// Maximum factor by which the measurements are extended before a service counts as too slow. Other load on
/// the machine comes and goes, while the effect of an attack stays.
const LONGER: usize = 30;

/// Maximum fraction of processor time that other programs may use. Above it, all programs wait for
/// processors, with or without an attack, so a factor of two is not meaningful.
const OTHERS_MAX: f64 = 0.1;
/// Maximum delay that is accepted if other programs use a larger fraction.
const BESIDE_OTHERS_MAX: Duration = Duration::from_millis(10);

/// Times requests alternately without and with an attack.
async fn service(flooded: &mut Line, bystander: &mut Line, on: &AtomicBool, turns: usize) -> Measured {
    let mut measured = Measured::default();
    let before = Spent::now();
    for turn in 0..2 * turns * LONGER {
        if turn > 0 && turn % (2 * turns) == 0 && measured.too_long().is_none() {
            break;
        }
        let attacked = turn % 2;
        on.store(attacked == 1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begun = Instant::now();
        for _ in 0..QUESTIONS {
            let times = &mut measured.times;
            times[0][attacked].push(flooded.ask(2, 3).await);
            times[1][attacked].push(bystander.ask(2, 3).await);
            times[2][attacked].push(flooded.echo().await);
            times[3][attacked].push(bystander.echo().await);
        }
        if attacked == 1 {
            measured.during += begun.elapsed()
        }
    }

    on.store(false, Ordering::Relaxed);
    measured.others = Spent::now().by_others_since(&before);
    measured
}

#[derive(Default)]
struct Measured {
    /// Durations for each of [`WHAT`]: without and with the attack.
    times: [[Vec<Duration>; 2]; 4],
    during: Duration,
    /// Fraction of processor time that other programs used meanwhile.
    others: f64,
}

impl Measured {
    fn figures(&self) -> [[Duration; 2]; 4] {
        self.times.each_ref().map(|both| both.each_ref().map(|times| percentile_99(times)))
    }

    /// Returns the number of requests of each kind.
    fn questions(&self) -> u64 {
        self.times[0].iter().map(|times| times.len() as u64).sum()
    }

    /// Returns a service that takes more than twice as long with the attack. Packets are compared with
    /// packets without the attack. Echoes take less time than can be measured on a shared machine, so they
    /// are compared with packets, too.
    fn too_long(&self) -> Option<String> {
        let figures = self.figures();
        (0..WHAT.len()).find_map(|number| {
            let ([without, with], [packet, _]) = (figures[number], figures[number % 2]);
            let most = 2 * without.max(packet);
            let words =
                || format!("{}: {with:?} with it, {without:?} without; at most {most:?}", WHAT[number]);
            (with > most).then(words)
        })
    }

    /// Prints the durations, and asserts that no service is too slow.
    fn judge(&self, attack: &str, per_second: f64) {
        for (what, [without, with]) in WHAT.into_iter().zip(self.figures()) {
            println!(
                "{attack}: {what}: 99 % within {without:?}, within {with:?} at {per_second:.0} a second"
            );
        }

        let Some(what) = self.too_long() else { return };

        let longest = self.figures().iter().map(|[_, with]| *with).max().unwrap_or_default();
        let others = 100.0 * self.others;
        assert!(
            self.others > OTHERS_MAX && longest <= BESIDE_OTHERS_MAX,
            "{attack}: {what}; other programs had {others:.0} % of the processors"
        );
        println!("{attack}: NOT JUDGED: {what}; other programs had {others:.0} % of the processors");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flood_from_one_port_leaves_the_others_their_service() {
    let _alone = ALONE.lock().await;
    let controller = Controller::start().await;
    let mut flooded = Line::open(&controller, 1).await;
    let mut bystander = Line::open(&controller, 2).await;
    let on = Arc::new(AtomicBool::new(false));
    let message = packet_in(1, &datagram(1, 9, &[1; 18]));
    let flooding =
        flooded.flood(&on, FLOOD_PER_SECOND, move |count| BytesMut::from(&message.repeat(count)[..]));

    let before = controller.directory.totals().packet_ins;
    let measured = service(&mut flooded, &mut bystander, &on, TURNS).await;
    flooding.abort();

    // the requests of the measurements are not part of the flood
    let questions = 2 * measured.questions();
    let ins = (controller.directory.totals().packet_ins - before).saturating_sub(questions);
    let rate = ins as f64 / measured.during.as_secs_f64();
    assert!(rate > FLOOD_PER_SECOND as f64 / 2.0, "there was no flood: {rate} packets a second");

    measured.judge("S15, a flood", rate);
}

/// Measures each attack of the table, one after the other, on a controller with all apps.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s9_to_s17_leave_the_others_their_service() {
    let _alone = ALONE.lock().await;
    for attack in attacks::all() {
        let settings = "[discovery]\nsecret = \"of this test\"\n[firewall]\ndefault = \"allow\"\n\
            [loop-guard]\nsettle_ms = 0\n";
        let apps = Hive::builder().app::<NodeController>().app::<Discovery>().app::<Topology>();
        let apps = apps.app::<LoopGuard>().app::<Hosts>().app::<Firewall>().app::<LearningSwitch>();
        let apps = apps.settings(settings.parse().expect("settings"));
        let controller = Controller::of(apps, ListenerSettings::default()).await;
        let mut attacked = Line::open(&controller, 1).await;
        let mut bystander = Line::open(&controller, 2).await;

        attacked.say(&packet_in(4, &datagram(attacks::VICTIM, 2, b"I am here"))).await;
        let on = Arc::new(AtomicBool::new(false));
        let (mut number, message) = (0, attack.message);
        let attacking = attacked.flood(&on, ATTACK_PER_SECOND, move |count| {
            let mut burst = BytesMut::new();
            for _ in 0..count {
                burst.extend_from_slice(&message(number));
                number += 1
            }
            burst
        });

        let before = controller.directory.totals().messages;
        let measured = service(&mut attacked, &mut bystander, &on, ATTACK_TURNS).await;
        attacking.abort();
        let questions = 4 * measured.questions();
        let messages = (controller.directory.totals().messages - before).saturating_sub(questions);
        let rate = messages as f64 / measured.during.as_secs_f64();

        assert!(
            rate > ATTACK_PER_SECOND as f64 / 4.0,
            "{}: there was no attack: {rate} a second",
            attack.name
        );
        measured.judge(attack.name, rate);
        let status = controller.hive.status();
        assert_eq!(status.dead_letters, 0, "{}: {:?}", attack.name, controller.hive.dead_letters());

        controller.hive.stop(Duration::ZERO).await;
    }
}
