//! The networks that people usually try first, with every app that forwards: all hosts reach each other, each broadcast
//! arrives once, and traffic takes another path after a cable is pulled. The large networks run only with
//! `BEEHIVE_LONG=1`.

use crate::harness::{Controller, Lab, Protocols};
use crate::network::{FIRST_ANSWER_LIMIT, Network, Plan};

/// Learning switches in a network without loops.
const LEARNING: &str = "learning-switch";
/// Learning switches on the flood tree of `discovery`.
const ON_A_TREE: &str = "discovery,learning-switch";
/// Shortest paths.
const PATHS: &str = "discovery,hosts,forwarding";
/// Discovery, host tracking and a firewall in front of learning switches.
const WALLED: &str = "discovery,hosts,firewall,learning-switch";
/// Discovery, host tracking and a firewall in front of shortest paths.
const WALLED_PATHS: &str = "discovery,hosts,firewall,forwarding";

/// Firewall rules that allow the traffic of these tests.
const PINGS: &str = "[[apps.firewall.rules]]\naction = \"allow\"\nprotocol = \"icmp\"\n";

fn everybody_reaches_everybody(test: &str, plan: &Plan, protocols: Protocols, apps: &str, pulled: usize) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start_with(&lab, apps, PINGS);
    let network = Network::build(&lab, plan, protocols);
    network.ping_all(FIRST_ANSWER_LIMIT);
    if apps.contains("hosts") {
        network.is_known()
    }
    network.broadcasts_arrive_once_and_end();
    // with the firewall, every echo goes to the controller at every switch on the path, which is not what
    // this test measures
    let interval_s = if apps.contains("firewall") { "0.25" } else { "0.05" };
    for cable in network.cables(pulled) {
        network.pull(cable, interval_s);
    }
    assert_eq!(network.refusals(), Vec::<String>::new(), "a switch refused messages");
    controller.assert_running();
    controller.stop();
}

macro_rules! networks {
    ($($(#[$long:ident])? $name:ident: $plan:expr, $protocols:ident, $apps:expr, $pulled:literal;)*) => {
        $(
            fn $name() {
                let test = stringify!($name);
                if $(is_long(stringify!($long), test) &&)? true {
                    everybody_reaches_everybody(test, &$plan, Protocols::$protocols, $apps, $pulled);
                }
            }
        )*

        tests! { $($name,)* }
    };
}

networks! {
    single_3: Plan::single(3), Default, WALLED, 0;
    tree_2: Plan::tree(), OpenFlow10, LEARNING, 2;
    a_triangle_of_learning_switches_on_openflow_1_0: Plan::triangle(), OpenFlow10, ON_A_TREE, 4;
    a_triangle_of_learning_switches_on_openflow_1_3: Plan::triangle(), OpenFlow13, ON_A_TREE, 4;
    a_triangle_with_shortest_paths_on_openflow_1_3: Plan::triangle(), OpenFlow13, PATHS, 4;
    #[long] single_3_of_learning_switches: Plan::single(3), OpenFlow10, LEARNING, 0;
    #[long] single_3_with_shortest_paths: Plan::single(3), OpenFlow13, PATHS, 0;
    #[long] single_3_with_everything_and_shortest_paths: Plan::single(3), OpenFlow13, WALLED_PATHS, 0;
    #[long] tree_2_on_a_tree: Plan::tree(), OpenFlow13, ON_A_TREE, 2;
    #[long] tree_2_with_shortest_paths: Plan::tree(), OpenFlow13, PATHS, 2;
    #[long] tree_2_with_everything: Plan::tree(), OpenFlow13, WALLED, 2;
    #[long] tree_2_with_everything_and_shortest_paths: Plan::tree(), OpenFlow13, WALLED_PATHS, 2;
    #[long] linear_8_of_learning_switches: Plan::linear(8), OpenFlow13, LEARNING, 3;
    #[long] linear_8_on_a_tree: Plan::linear(8), OpenFlow10, ON_A_TREE, 3;
    #[long] linear_8_with_shortest_paths: Plan::linear(8), OpenFlow13, PATHS, 3;
    #[long] linear_8_with_everything: Plan::linear(8), OpenFlow13, WALLED, 3;
    #[long] linear_8_with_everything_and_shortest_paths: Plan::linear(8), OpenFlow13, WALLED_PATHS, 3;
    #[long] a_triangle_with_everything: Plan::triangle(), OpenFlow13, WALLED, 4;
    #[long] a_triangle_with_everything_and_shortest_paths: Plan::triangle(), OpenFlow13, WALLED_PATHS, 4;
    #[long] torus_3_3_of_learning_switches: Plan::torus(3), OpenFlow13, ON_A_TREE, 6;
    #[long] torus_3_3_with_shortest_paths: Plan::torus(3), OpenFlow13, PATHS, 6;
    #[long] torus_3_3_with_everything: Plan::torus(3), OpenFlow13, WALLED, 6;
    #[long] torus_3_3_with_everything_and_shortest_paths: Plan::torus(3), OpenFlow13, WALLED_PATHS, 6;
}

fn is_long(mark: &str, test: &str) -> bool {
    assert_eq!(mark, "long");
    let long = std::env::var_os("BEEHIVE_LONG").is_some();
    if !long {
        println!("SKIPPED {test}: it takes long; BEEHIVE_LONG=1 runs it");
    }
    long
}
