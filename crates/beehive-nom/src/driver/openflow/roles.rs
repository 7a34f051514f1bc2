//! The controller's role at a switch (OpenFlow 1.3.5, 6.3.4): asks for it, and reads the answers.

use crate::driver::openflow::session::Session;
use crate::driver::{Counters, Event, Events, Role};
use beehive_of::Version;
use beehive_of::any::{self, ErrorMessage, RoleMessage};
use bytes::BytesMut;

/// Maximum number of unanswered requests that are remembered. The oldest ones no longer matter.
const REQUESTS_MAX: usize = 16;

/// The error of a role request with an old generation: type and code, in all versions with roles.
const STALE: (u16, u16) = (11, 0);

/// A role request that the switch has not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoleRequest {
    xid: u32,
    role: Role,
    /// Whether the switch has refused the role, and was asked for the newest generation that it has seen.
    is_refused: bool,
}

impl Session {
    /// Encodes a role request. Returns `false` if the version of the switch has no roles.
    pub(super) fn request_role(&mut self, role: Role, out: &mut BytesMut) -> bool {
        let wanted = if role.is_master { any::Role::Master } else { any::Role::Slave };
        self.send_role_request(role, (wanted, role.generation), false, out)
    }

    fn send_role_request(
        &mut self,
        role: Role,
        (wanted, generation_id): (any::Role, u64),
        is_refused: bool,
        out: &mut BytesMut,
    ) -> bool {
        if self.version < Version::V1_2 {
            return false;
        }
        let xid = self.xid();
        // cannot fail, because this version has roles
        let _ = RoleMessage { role: wanted, generation_id }.encode_request_into(self.version, xid, out);
        if self.role_requests.len() >= REQUESTS_MAX {
            self.role_requests.pop_front();
        }
        self.role_requests.push_back(RoleRequest { xid, role, is_refused });
        true
    }

    fn take_role_request(&mut self, xid: u32) -> Option<RoleRequest> {
        let at = self.role_requests.iter().position(|request| request.xid == xid)?;
        self.role_requests.remove(at)
    }

    pub(super) fn role_reply<E: Events>(&mut self, xid: u32, reply: &RoleMessage, events: &mut E) {
        let Some(RoleRequest { role, is_refused, .. }) = self.take_role_request(xid) else {
            return Counters::add(&self.counters.messages_ignored, 1);
        };
        let has_role = reply.role == if role.is_master { any::Role::Master } else { any::Role::Slave };
        match has_role && !is_refused {
            true => events.event(Event::RoleGranted(role)),
            false => events.event(Event::RoleRefused { role, newest: reply.generation_id }),
        }
    }

    /// Handles an error. Returns `false` if it does not answer a role request.
    ///
    /// If the switch refuses the generation, the error does not contain the one that the switch knows, but a query does. Any other
    /// error says that the switch knows no roles.
    pub(super) fn role_refused<E: Events>(
        &mut self,
        xid: u32,
        error: &ErrorMessage<'_>,
        out: &mut BytesMut,
        events: &mut E,
    ) -> bool {
        let Some(RoleRequest { role, is_refused, .. }) = self.take_role_request(xid) else { return false };
        Counters::add(&self.counters.errors, 1);
        tracing::debug!(node = %self.node, ?role, ?error, "switch refused a role");
        let is_stale = (error.error_type, error.code) == STALE;
        match is_refused {
            false if is_stale => {
                self.send_role_request(role, (any::Role::NoChange, 0), true, out);
            }
            false => events.event(Event::RoleGranted(role)),
            // the switch does not answer the query either
            true => events.event(Event::RoleRefused { role, newest: role.generation }),
        }
        true
    }
}
