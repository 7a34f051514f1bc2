//! Implements the simulated switch: ports, flow table, and messages to the controller.

use crate::driver::{Admission, Counters, Event, FlowReading};
use crate::object::{
    Action, Actions, Ethernet, Flow, FlowFailed, FlowKey, FlowRemoved, FlowsConfirmed, FlowsRead, Mac,
    NodeId, PacketIn, PacketInReason, PacketOut, Payload, Port, PortDown, PortNo, PortUp, ReadFlows, Traffic,
    WithdrawFlows,
};
use crate::sim::driver::SimulatedDriver;
use crate::sim::flow_table::{FlowTable, Gone};
use crate::sim::frame::{with_address, without_tag};
use beehive::{Hive, Restart};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

/// Maximum number of sent frames recorded by a port. The oldest frames are dropped first.
const FRAMES_PER_PORT_MAX: usize = 4_096;
/// Number of flows in each part of a flow report.
const FLOWS_PER_PART: usize = 100;
/// Maximum number of messages waiting for the driver. Further messages are lost, as in a real switch.
const UPCALLS_MAX: usize = 65_536;

/// A handle to a simulated switch, which is cheap to clone.
#[derive(Clone)]
pub struct SimulatedSwitch {
    pub(super) inner: Arc<Inner>,
}

impl std::fmt::Debug for SimulatedSwitch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedSwitch").field("node", &self.inner.node).finish_non_exhaustive()
    }
}

pub(super) struct Inner {
    pub(super) hive: Hive,
    pub(super) node: NodeId,
    pub(super) knows_owners: bool,
    pub(super) counters: Arc<Counters>,
    pub(super) wake: Notify,
    quiet: Notify,
    state: Mutex<State>,
}

struct State {
    ports: BTreeMap<PortNo, Interface>,
    table: FlowTable,
    upcalls: VecDeque<Upcall>,
    /// Number of messages sent to the controller so far.
    upcalls_total: u64,
    connected: bool,
    /// Whether a driver is running.
    driven: bool,
    /// Whether the driver is processing messages.
    busy: bool,
    behavior: Behavior,
    drops_misses: bool,
}

/// The way in which a simulated switch responds to commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Behavior {
    /// Executes all commands.
    #[default]
    Normal,
    /// Refuses new flows because its flow table is full.
    Full,
    /// Does not report its flows.
    Silent,
    /// Accepts no commands, so they wait in the IO bee's inbox.
    Busy,
}

struct Interface {
    up: bool,
    sent: VecDeque<Bytes>,
    /// The attached wire.
    wire: Option<mpsc::Sender<Bytes>>,
}

/// A message to the controller.
pub(super) enum Upcall {
    Packet(PacketIn),
    Event(Event),
}

impl SimulatedSwitch {
    /// Creates a switch with ports 1 to `ports`, all of which are up. For `knows_owners`, see
    /// [`NodeJoined::knows_owners`](crate::object::NodeJoined::knows_owners).
    pub fn new(hive: &Hive, node: NodeId, ports: u32, knows_owners: bool) -> SimulatedSwitch {
        let interface = |number| (PortNo(number), Interface { up: true, sent: VecDeque::new(), wire: None });
        let state = State {
            ports: (1..=ports).map(interface).collect(),
            table: FlowTable::default(),
            upcalls: VecDeque::new(),
            upcalls_total: 0,
            connected: false,
            driven: false,
            busy: false,
            behavior: Behavior::Normal,
            drops_misses: false,
        };

        let inner = Inner {
            hive: hive.clone(),
            node,
            knows_owners,
            counters: Arc::default(),
            wake: Notify::new(),
            quiet: Notify::new(),
            state: Mutex::new(state),
        };

        SimulatedSwitch { inner: Arc::new(inner) }
    }

    /// Connects the switch to its hive.
    pub fn connect(&self) {
        let drops_misses = {
            let mut state = self.inner.state.lock();
            (state.connected, state.driven) = (true, true);
            state.drops_misses
        };
        self.inner.push_upcalls([Upcall::Event(Event::Joined {
            node: self.inner.node,
            ports: self.ports(),
            knows_owners: self.inner.knows_owners,
            drops_misses,
        })]);

        let switch = self.clone();
        self.inner.hive.spawn_io(format!("simulated switch {}", self.inner.node), Restart::Never, move |io| {
            let driver = SimulatedDriver::new(switch.clone());
            async move {
                crate::driver::drive(io, driver, Admission::default()).await;
                Ok(())
            }
        })
    }

    /// Closes the connection. The switch continues to forward packets by its flows.
    pub fn disconnect(&self) {
        self.inner.state.lock().connected = false;
        self.inner.wake.notify_one()
    }

    /// Waits until the driver has handed over all messages and is idle. Cancel-safe.
    pub async fn quiet(&self) {
        loop {
            let quiet = self.inner.quiet.notified();
            if self.inner.state.lock().is_quiet() {
                return;
            }
            quiet.await
        }
    }

    /// Returns the number of packets and events sent to the controller so far.
    pub fn upcalls_total(&self) -> u64 {
        self.inner.state.lock().upcalls_total
    }

    /// Returns the counters of the switch's driver.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.inner.counters
    }

    /// Returns the switch's ports.
    pub fn ports(&self) -> Vec<Port> {
        let state = self.inner.state.lock();
        state.ports.iter().map(|(number, interface)| describe(*number, interface.up)).collect()
    }

    /// Makes the switch receive a frame at `port`.
    pub fn receive(&self, port: PortNo, data: Bytes) {
        self.inner.receive(port, data)
    }

    /// Returns the frames that `port` has sent since the previous call.
    pub fn sent(&self, port: PortNo) -> Vec<Bytes> {
        let mut state = self.inner.state.lock();
        state.ports.get_mut(&port).map(|interface| interface.sent.drain(..).collect()).unwrap_or_default()
    }

    /// Enables or disables a port.
    pub fn set_up(&self, port: PortNo, up: bool) {
        let node = self.inner.node;
        let mut state = self.inner.state.lock();
        let Some(interface) = state.ports.get_mut(&port) else { return };

        if std::mem::replace(&mut interface.up, up) == up {
            return;
        }

        drop(state);
        self.inner.push_upcalls([Upcall::Event(match up {
            true => Event::PortUp(PortUp { node, port: describe(port, up) }),
            false => Event::PortDown(PortDown { node, port, removed: false }),
        })])
    }

    /// Installs another system's flow. The flow's owner is ignored.
    pub fn install_foreign(&self, flow: &Flow) {
        self.inner.state.lock().table.install_foreign(flow, self.inner.hive.now())
    }

    /// Installs a Beehive flow unknown to any app, as if it were left over from before a restart.
    pub fn install_leftover(&self, flow: &Flow) {
        self.inner.state.lock().table.install(flow, self.inner.hive.now())
    }

    /// Removes a flow without reporting it. Returns whether it existed.
    pub fn remove_silently(&self, key: FlowKey) -> bool {
        self.inner.state.lock().table.remove_silently(key)
    }

    /// Sets how the switch responds to commands.
    pub fn set_behavior(&self, behavior: Behavior) {
        self.inner.state.lock().behavior = behavior;
        self.inner.wake.notify_one()
    }

    /// Sets whether the switch drops packets without a matching flow instead of sending them to the controller. The
    /// switch reports this when it connects.
    pub fn set_drops_misses(&self, drops_misses: bool) {
        self.inner.state.lock().drops_misses = drops_misses
    }

    /// Returns the switch's datapath id.
    pub fn node(&self) -> NodeId {
        self.inner.node
    }

    /// Returns whether a [`Wire`](crate::sim::Wire) is attached to `port`.
    pub fn is_wired(&self, port: PortNo) -> bool {
        self.inner.state.lock().ports.get(&port).is_some_and(|interface| interface.wire.is_some())
    }

    /// Returns the flows of the switch, highest priority first.
    pub fn flows(&self) -> Vec<Flow> {
        self.inner.expire();
        self.inner.state.lock().table.flows().cloned().collect()
    }
}

fn describe(number: PortNo, up: bool) -> Port {
    Port {
        number,
        address: Mac::from_u64(0x0200_0000_0000 | u64::from(number.0)),
        name: format!("port{number}"),
        up,
        floods: true,
        forwards: true,
    }
}

impl Inner {
    pub(super) fn is_busy(&self) -> bool {
        self.state.lock().behavior == Behavior::Busy
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state.lock().connected
    }

    pub(super) fn plug(&self, port: PortNo, wire: mpsc::Sender<Bytes>) {
        if let Some(interface) = self.state.lock().ports.get_mut(&port) {
            interface.wire = Some(wire)
        }
    }

    /// Returns whether the wire contains no more frames sent by `port`.
    pub(super) fn is_wire_empty(&self, port: PortNo) -> bool {
        let state = self.state.lock();
        let wire = state.ports.get(&port).and_then(|interface| interface.wire.as_ref());
        wire.is_none_or(|wire| wire.capacity() == wire.max_capacity())
    }

    /// Takes the messages for the driver. The driver counts as busy until it calls [`Inner::done`].
    pub(super) fn take_upcalls(&self) -> VecDeque<Upcall> {
        let mut state = self.state.lock();
        state.busy = true;
        std::mem::take(&mut state.upcalls)
    }

    /// Marks the driver as idle or, if `ended`, as ended.
    pub(super) fn done(&self, ended: bool) {
        let mut state = self.state.lock();
        if ended {
            state.driven = false;
        }
        // a driver that has not yet noticed the disconnection still counts as busy
        state.busy = state.driven && !state.connected;
        drop(state);
        self.quiet.notify_waiters()
    }

    fn push_upcalls(&self, upcalls: impl IntoIterator<Item = Upcall>) {
        let mut state = self.state.lock();
        for upcall in upcalls {
            if state.connected && state.upcalls.len() < UPCALLS_MAX {
                state.upcalls.push_back(upcall);
                state.upcalls_total += 1
            }
        }

        drop(state);
        self.wake.notify_one()
    }

    fn receive(&self, port: PortNo, data: Bytes) {
        self.expire();
        let conversation = match Traffic::read(&data) {
            Traffic::Conversation(conversation) => Some(conversation),
            _ => None,
        };
        let mut state = self.state.lock();

        if !state.ports.get(&port).is_some_and(|interface| interface.up) {
            return;
        }

        let taken = Ethernet::read(&data)
            .and_then(|header| state.table.lookup(port, &header, conversation, data.len(), self.hive.now()));
        let up = match taken {
            Some(actions) => state.process(port, &data, &actions),
            None if state.drops_misses => Vec::new(),
            None => vec![(PacketInReason::Miss, data)],
        };
        drop(state);
        self.push_upcalls(up.into_iter().map(|(reason, data)| self.packet_in(port, reason, data)))
    }

    fn packet_in(&self, port: PortNo, reason: PacketInReason, data: Bytes) -> Upcall {
        let length = data.len().min(usize::from(u16::MAX)) as u16;
        Upcall::Packet(PacketIn { node: self.node, port, reason, length, buffer: None, data })
    }

    /// Installs a flow. Returns whether the switch has accepted it.
    pub(super) fn install(&self, flow: &Flow) -> bool {
        let mut state = self.state.lock();
        let full = state.behavior == Behavior::Full;
        if !full {
            state.table.install(flow, self.hive.now())
        }

        drop(state);
        let (node, key) = (self.node, flow.key());
        if full {
            let Flow { owner, cause, .. } = *flow;
            let why = "flow_mod_failed: TABLE_FULL".to_string();
            self.push_upcalls([Upcall::Event(Event::FlowFailed(FlowFailed {
                node,
                owner,
                cause,
                flow: Some(key),
                why,
            }))])
        }

        !full
    }

    /// Confirms flows, like the reply to a barrier request.
    pub(super) fn confirm(&self, flows: Vec<FlowKey>) {
        self.push_upcalls([Upcall::Event(Event::FlowsConfirmed(FlowsConfirmed { node: self.node, flows }))])
    }

    pub(super) fn read_flows(&self, wanted: &ReadFlows) {
        self.expire();
        let state = self.state.lock();
        let (flows, silent) = (state.table.describe(self.hive.now()), state.behavior == Behavior::Silent);
        drop(state);

        if silent {
            return;
        }

        // reports the flows in parts, like a real switch
        let mut parts: Vec<_> = flows.chunks(FLOWS_PER_PART).map(<[_]>::to_vec).collect();
        let end = parts.pop().unwrap_or_default();
        let count = parts.len();
        let reading = |(at, flows)| {
            let read = FlowsRead { node: self.node, reading: wanted.reading, last: at == count, flows };
            Upcall::Event(Event::FlowsRead(FlowReading { asker: wanted.asker, read }))
        };

        self.push_upcalls(parts.into_iter().chain([end]).enumerate().map(reading))
    }

    pub(super) fn withdraw(&self, flows: &WithdrawFlows) {
        let gone = self.state.lock().table.withdraw(flows, self.knows_owners);
        self.report(gone)
    }

    pub(super) fn send(&self, packet: &PacketOut) {
        if let Payload::Whole(data) = &packet.payload {
            let up = self.state.lock().process(packet.port, data, &packet.actions);
            self.push_upcalls(up.into_iter().map(|(reason, data)| self.packet_in(packet.port, reason, data)))
        }
    }

    fn expire(&self) {
        let gone = self.state.lock().table.expire(self.hive.now());
        self.report(gone)
    }

    /// Reports only the intended flows among the removed ones, like a real switch.
    fn report(&self, gone: Vec<Gone>) {
        let node = self.node;
        self.push_upcalls(gone.into_iter().filter(|gone| !gone.flow.is_soft()).map(
            |Gone { flow, reason, packets, bytes }| {
                let Flow { owner, priority, matching, .. } = flow;
                Upcall::Event(Event::FlowRemoved(FlowRemoved {
                    node,
                    owner,
                    priority,
                    matching,
                    reason,
                    packets,
                    bytes,
                }))
            },
        ))
    }
}

impl State {
    fn is_quiet(&self) -> bool {
        self.upcalls.is_empty() && !self.busy && self.connected == self.driven
    }

    /// Applies `actions` to a frame. Returns the frames for the controller.
    fn process(&mut self, port: PortNo, data: &Bytes, actions: &Actions) -> Vec<(PacketInReason, Bytes)> {
        let mut data = data.clone();
        let mut up = Vec::new();
        for action in actions.as_slice() {
            match *action {
                Action::Output(PortNo::CONTROLLER) => up.push((PacketInReason::Action, data.clone())),
                Action::Output(PortNo::FLOOD | PortNo::ALL) => {
                    let others: Vec<_> = self.ports.keys().copied().filter(|other| *other != port).collect();
                    others.into_iter().for_each(|other| self.output(other, &data))
                }
                Action::Output(PortNo::IN_PORT) => self.output(port, &data),
                // a switch does not send packets back to the input port, except with IN_PORT
                Action::Output(out) if out == port => {}
                Action::Output(out) => self.output(out, &data),
                Action::SetDestination(mac) => data = with_address(&data, 0, mac),
                Action::SetSource(mac) => data = with_address(&data, 6, mac),
                Action::PopTag => data = without_tag(&data),
            }
        }

        up
    }

    fn output(&mut self, port: PortNo, data: &Bytes) {
        if let Some(interface) = self.ports.get_mut(&port)
            && interface.up
        {
            if interface.sent.len() >= FRAMES_PER_PORT_MAX {
                interface.sent.pop_front();
            }
            interface.sent.push_back(data.clone());
            if let Some(wire) = &interface.wire {
                let _ = wire.try_send(data.clone()); // a full wire loses the frame
            }
        }
    }
}
