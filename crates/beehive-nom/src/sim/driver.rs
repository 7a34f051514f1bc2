//! The driver of a simulated switch, which needs neither translation nor I/O.

use crate::driver::{Close, Counters, Driver, Events};
use crate::object::{Flow, FlowKey, PacketOut, Port, ReadFlows, WithdrawFlows};
use crate::sim::switch::{SimulatedSwitch, Upcall};
use beehive::Time;
use std::sync::Arc;

/// The driver of a [`SimulatedSwitch`].
#[derive(Debug)]
pub struct SimulatedDriver {
    switch: SimulatedSwitch,
    /// Intended flows installed by the switch in this round, or `None` if no intended flow was sent.
    unconfirmed: Option<Vec<FlowKey>>,
}

impl SimulatedDriver {
    /// Creates the driver of `switch`.
    pub fn new(switch: SimulatedSwitch) -> SimulatedDriver {
        SimulatedDriver { switch, unconfirmed: None }
    }
}

impl Driver for SimulatedDriver {
    fn counters(&self) -> &Arc<Counters> {
        &self.switch.inner.counters
    }

    async fn wait(&mut self) {
        self.switch.inner.wake.notified().await
    }

    fn take<E: Events>(&mut self, _: Time, events: &mut E) -> Result<(), Close> {
        for upcall in self.switch.inner.take_upcalls() {
            match upcall {
                Upcall::Packet(packet) => events.packet_in(packet),
                Upcall::Event(event) => events.event(event),
            }
        }
        if self.switch.inner.is_connected() { Ok(()) } else { Err(Close::ByPeer) }
    }

    fn install(&mut self, flow: &Flow) {
        Counters::add(&self.counters().flows_installed, 1);
        let in_place = self.switch.inner.install(flow);
        if !flow.is_soft() {
            self.unconfirmed.get_or_insert_default().extend(in_place.then(|| flow.key()))
        }
    }

    fn withdraw(&mut self, flows: &WithdrawFlows) {
        Counters::add(&self.counters().flows_withdrawn, 1);
        self.switch.inner.withdraw(flows)
    }

    fn read_flows(&mut self, wanted: &ReadFlows) {
        self.switch.inner.read_flows(wanted)
    }

    fn ports(&self) -> Vec<Port> {
        self.switch.ports()
    }

    fn is_full(&self) -> bool {
        self.switch.inner.is_busy()
    }

    fn send(&mut self, packet: &PacketOut) {
        Counters::add(&self.counters().packet_outs, 1);
        self.switch.inner.send(packet)
    }

    fn flush(&mut self, _: Time) -> Result<(), Close> {
        if let Some(flows) = self.unconfirmed.take() {
            self.switch.inner.confirm(flows)
        }
        self.switch.inner.done(false);
        Ok(())
    }

    async fn end(&mut self, _: &Close) {
        self.switch.inner.done(true)
    }
}
