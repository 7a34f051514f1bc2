//! Tests the apps of the examples unchanged: on a faulty journal, against the oracle for maps, and with
//! recorded histories on all cores.
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "../../examples/bank.rs"]
mod bank;
#[allow(dead_code)]
#[path = "../../examples/controller.rs"]
mod controller;
#[allow(dead_code)]
#[path = "../../examples/crashes.rs"]
mod crashes;
#[allow(dead_code)]
#[path = "../../examples/hello.rs"]
mod hello;
mod history;
mod http_failures;
mod journal;
#[allow(dead_code)]
#[path = "../../examples/key_value.rs"]
mod key_value;
mod oracle;
#[allow(dead_code)]
#[path = "../../examples/routing.rs"]
mod routing;
#[allow(dead_code)]
#[path = "../../examples/task_queue.rs"]
mod task_queue;
#[allow(dead_code)]
#[path = "../../examples/three_hives.rs"]
mod three_hives;
#[allow(dead_code)]
#[path = "../../examples/traffic_engineering.rs"]
mod traffic_engineering;
