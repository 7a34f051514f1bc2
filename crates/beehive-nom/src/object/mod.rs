//! Defines the network objects and the messages about them. They are independent of any switch protocol.

mod address;
pub mod claim;
mod ethernet;
mod event;
mod flow;
mod flow_state;
mod host;
mod link;
mod mastership;
pub(crate) mod network;
mod node;
mod packet;
mod selector;
mod traffic;

pub use address::{Mac, NotAnAddress, Station, Vlan};
pub use ethernet::{Ethernet, LLDP, Tag};
pub use event::{
    DuplicateNode, FlowFailed, FlowRemoved, FlowRemovedReason, NodeJoined, NodeLeft, PortChanged, PortDown,
    PortUp,
};
pub use flow::{
    Action, Actions, AddFlow, Cause, DelFlows, Flow, FlowKey, FlowMatch, FlowScope, InstallFlow, Owner,
    WithdrawFlows,
};
pub use flow_state::{
    AdoptFlows, DescribeNode, FlowFailure, FlowFlags, FlowState, FlowsConfirmed, FlowsFound, FlowsRead,
    FoundFlow, IntendedFlow, NodeDescription, ReadFlows, Reading, VerifyFlows,
};
pub use host::{FindAddress, FindHost, Host, HostContested, HostLost, HostMoved, HostSeen, ListHosts};
pub use link::{
    KnownLink, Link, LinkDown, LinkUp, ListLinks, LoopDetected, PathsChanged, PortId, PortRole,
    PortRoleChanged,
};
pub use mastership::{
    BecomeMaster, DriverConnected, DriverLeft, MasterAccepted, MasterChanged, MasterRefused, MasterReports,
    MasterSuspected, PortEvent, SayConnected, StandBy, StoodBy,
};
pub use network::network;
pub use node::{NodeId, Port, PortNo};
pub use packet::{BufferId, PacketIn, PacketInReason, PacketOut, Payload, SendPacket};
pub use selector::{Ports, Protocol};
pub use traffic::{Conversation, Traffic};
