//! Tests that a soft flow of an app that adopts no flows lives exactly until its timeout, across a reconnect of the
//! switch and a restart of the controller.
//!
//! The built-in apps adopt their flows, so these tests run a controller of their own: this test program, started a second
//! time inside the laboratory.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use beehive::nom::apps::NodeController;
use beehive::nom::driver::Directory;
use beehive::nom::driver::openflow::{Listener, ListenerSettings};
use beehive::nom::object::{Actions, AddFlow, DescribeNode, FlowMatch, Mac, NodeId};
use beehive::nom::parts::OwnsFlows;
use beehive::prelude::*;

use crate::harness::{Bridge, Controller, Daemon, Lab, Protocols, eventually};

tests! {
    a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_on_openflow_1_0,
    a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_on_openflow_1_3,
}

/// The hard timeout of the flow: long enough for a reconnect and a restart, each with two reads of the flows.
const LIFETIME: Duration = Duration::from_secs(8);

/// Maximum time that Open vSwitch takes to remove a flow after its timeout has passed.
const REMOVAL_LATENCY: Duration = Duration::from_secs(2);

/// Time within which the controller reads the flows of a switch twice: the switch waits up to a second before it connects
/// again, and apps have a second to claim flows before the second read.
const READS_LIMIT: Duration = Duration::from_secs(6);

/// If this is the first argument, this program runs as a controller.
pub(crate) const CONTROLLER: &str = "--be-a-controller-with-soft-flows";

/// If this is the second argument, the controller installs a soft flow.
const BANS: &str = "--bans";

/// Drops the packets of a station for a while, and adopts no flows.
#[derive(App)]
struct Guard {
    bans: Dict<NodeId, u64>,
}

/// Installs the flow at a switch.
#[derive(Message)]
struct Ban {
    node: NodeId,
}

#[handlers]
impl Guard {
    #[rcv(sharded)]
    fn ban(&mut self, msg: &Ban, ctx: &mut Ctx) {
        *self.bans.entry(msg.node).or_default() += 1;
        let matching = FlowMatch { source: Some(Mac([2, 0, 0, 0, 0, 0x66])), ..FlowMatch::ANY };
        ctx.emit(AddFlow::new(msg.node, Self::OWNER, matching, Actions::None).hard(LIFETIME));
    }
}

/// Runs a controller until it is killed. It writes a line for each read of the flows of switch 1 that is complete; after
/// the first one it installs the flow, if `bans` is set.
pub(crate) fn control(bans: bool) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let hive = Hive::builder().app::<NodeController>().app::<Guard>().start().expect("starts");
        let listener = Listener::new(&hive, Arc::<Directory>::default(), ListenerSettings::default());
        let socket = tokio::net::TcpListener::bind(("127.0.0.1", Controller::PORT)).await;
        listener.serve(socket.expect("listens"));

        let mut reads = 0;
        let mut latest = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let reading = hive.request(DescribeNode { node: NodeId(1) }).await.ok().map(|node| node.reading);
            let Some(reading) = reading.filter(|reading| reading.complete) else {
                // reads are numbered from 1 again after a reconnect
                latest = 0;
                continue;
            };
            if reading.number == latest {
                continue;
            }

            (latest, reads) = (reading.number, reads + 1);
            println!("read {reads}: {} soft, {} withdrawn", reading.soft, reading.withdrawn);
            if bans && reads == 1 {
                hive.request(Ban { node: NodeId(1) }).await.expect("is taken");
            }
        }
    })
}

fn a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_on_openflow_1_0() {
    lives_as_long_as_it_was_given(
        "a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_on_openflow_1_0",
        Protocols::OpenFlow10,
    );
}

fn a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_on_openflow_1_3() {
    lives_as_long_as_it_was_given(
        "a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_on_openflow_1_3",
        Protocols::OpenFlow13,
    );
}

fn lives_as_long_as_it_was_given(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    let has_flow = || bridge.flows().contains("dl_src=02:00:00:00:00:66");

    let mut controller = start(&lab, "first", &[BANS]);
    let before = Instant::now();
    bridge.point_at(Controller::PORT);
    eventually("the flow is installed", READS_LIMIT, || has_flow().then_some(()));
    let installed = Instant::now();

    // the switch reconnects
    let reads = lines(&controller);
    bridge.point_at_nothing();
    bridge.point_at(Controller::PORT);
    eventually("the flows are read twice", READS_LIMIT, || (lines(&controller) >= reads + 2).then_some(()));
    assert!(has_flow(), "withdrawn at the reconnect:\n{}", controller.log());

    // the controller restarts
    controller.assert_running();
    drop(controller);
    bridge.wait_disconnected();
    assert!(has_flow(), "the switch has dropped the flow with its controller");
    let mut controller = start(&lab, "second", &[]);
    eventually("the flows are read twice", READS_LIMIT, || (lines(&controller) >= 2).then_some(()));
    assert!(installed.elapsed() < LIFETIME, "the test took too long to show anything");
    assert!(has_flow(), "withdrawn at the restart:\n{}", controller.log());
    assert!(controller.log().contains("1 soft, 0 withdrawn"), "{}", controller.log());

    eventually("the flow is gone", LIFETIME + REMOVAL_LATENCY, || (!has_flow()).then_some(()));
    assert!(before.elapsed() >= LIFETIME, "gone after {:?}", before.elapsed());
    assert!(installed.elapsed() <= LIFETIME + REMOVAL_LATENCY, "gone after {:?}", installed.elapsed());
    assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    controller.assert_running();
}

/// Starts this program as a controller inside the laboratory. Dropping it kills it.
fn start(lab: &Lab, name: &str, more: &[&str]) -> Daemon {
    let program = std::env::current_exe().expect("this test's program");
    lab.daemon(name, &[&[&*program.to_string_lossy(), CONTROLLER], more].concat())
}

/// Returns the number of reads so far.
fn lines(controller: &Daemon) -> usize {
    controller.log().lines().filter(|line| line.starts_with("read ")).count()
}
