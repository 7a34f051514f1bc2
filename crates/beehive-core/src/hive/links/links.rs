//! The links of a hive to the other hives of its cluster.

use crate::cell::HiveId;
use crate::hive::consensus::registry::Registry;
use crate::hive::links::frame::{Body, Packet, ToBee, ToIoBee};
use crate::hive::links::network::{Membership, Network, Packets};
use crate::hive::links::sent::{Entry, Fate, Requester, SentMessages};
use crate::hive::links::session::Session;
use crate::limits::{self, MAIL_UNREAD_MAX};
use crate::mutant::{Mutant, Mutation};
use crate::seams::Platform;
use beehive_protocol::{Acked, AppId, ColonyId, Incarnation, LaneId, Seq};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Time after which bodies are sent again if nothing was acknowledged meanwhile.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The receiver of what other hives say.
pub(crate) trait Handle: Send + Sync {
    /// Takes a body. The bodies of one hive come in order, but two threads may bring two of them at the same time.
    fn handle(&self, from: HiveId, body: Body);
}

/// The links of a hive to the other hives of its cluster.
pub(crate) struct Links {
    incarnation: Incarnation,
    network: Arc<dyn Network>,
    pub(crate) registry: Arc<dyn Registry>,
    /// The lane that the registry has assigned to this incarnation of the hive.
    pub(crate) lane: LaneId,
    platform: Arc<dyn Platform>,
    sessions: Mutex<BTreeMap<HiveId, Session>>,
    sent: Mutex<SentMessages>,
    /// The floors stated to other hives, of the lanes on which messages were sent to them.
    stated: Mutex<BTreeMap<(LaneId, AppId, HiveId), Seq>>,
    handle: OnceLock<Arc<dyn Handle>>,
    /// Notified when something must be acknowledged by another hive.
    unsettled: Notify,
    is_closed: AtomicBool,
    /// Statements of other hives about bees that move, until the reconciler takes them.
    moves: Mutex<VecDeque<(HiveId, Body)>>,
    /// The leaders of all colonies, in order, when [`Links::follow_leaders`] last looked.
    leaders: Mutex<Vec<Option<HiveId>>>,
    /// For a mutant: messages under way never come back from an old leader.
    keeps_old_leaders: bool,
    /// Held while the bodies of a packet are handled, so that they are handled in order.
    handling: Mutex<()>,
}

impl Links {
    pub(crate) fn new(
        membership: &Membership,
        registry: Arc<dyn Registry>,
        platform: Arc<dyn Platform>,
        mutation: Mutation,
    ) -> Arc<Links> {
        Arc::new(Links {
            incarnation: membership.incarnation,
            network: membership.network.clone(),
            registry,
            lane: membership.lane,
            platform,
            sessions: Mutex::default(),
            sent: Mutex::default(),
            stated: Mutex::default(),
            handle: OnceLock::new(),
            unsettled: Notify::new(),
            is_closed: AtomicBool::new(false),
            moves: Mutex::default(),
            leaders: Mutex::default(),
            keeps_old_leaders: mutation.breaks(Mutant::OldLeaderKept),
            handling: Mutex::new(()),
        })
    }

    /// Begins to take the packets of other hives, and to send again what they have not acknowledged.
    pub(crate) fn begin(self: &Arc<Self>, handle: Arc<dyn Handle>) {
        let _ = self.handle.set(handle);
        self.network.attach(Arc::new(Arrivals(Arc::downgrade(self))));
        self.platform.spawn(Box::pin(send_again(Arc::downgrade(self))))
    }

    /// Ends the links: from now on, the hive hears and says nothing.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.unsettled.notify_one()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Returns the latest incarnation of a hive that this hive's replica of the registry knows.
    fn incarnation_of(&self, hive: HiveId) -> Option<Incarnation> {
        let mut incarnation = None;
        self.registry.read(&mut |state| incarnation = state.hive(hive).map(|entry| entry.incarnation));
        incarnation
    }

    /// Returns the hive that leads a colony, according to this hive's replica of the registry.
    pub(crate) fn leader_of(&self, colony: ColonyId) -> Option<HiveId> {
        let mut leader = None;
        self.registry.read(&mut |view| leader = view.colony(colony).and_then(|entry| entry.leader));
        leader
    }

    /// Sends a body to another hive. It is lost if the session ends before the other hive has it.
    pub(crate) fn send(&self, to: HiveId, body: Body) {
        self.try_send(to, body);
    }

    /// Same as [`Links::send`], but returns `false` if there is no session.
    fn try_send(&self, to: HiveId, body: Body) -> bool {
        let known = self.incarnation_of(to);
        self.renew(to, known);
        let packet = match self.sessions.lock().get_mut(&to).filter(|session| !session.is_over()) {
            Some(session) => session.send(body),
            // the replica does not know the hive yet, or knows that it is dead
            None => return false,
        };
        self.unsettled.notify_one();
        self.transmit(to, packet);
        true
    }

    /// Sends messages to an IO bee of another hive. `until_read` is dropped when it has read them, or never will. Returns `false` if
    /// too much is under way to the hive: nothing else bounds mail without credits to a hive that does not answer.
    pub(crate) fn send_mail(
        &self,
        to: HiveId,
        until_read: Option<Arc<dyn Requester>>,
        mail: impl FnOnce(Option<u64>) -> ToIoBee,
    ) -> bool {
        // if the session must be renewed, this comes before the ticket is added, as in `send_to_bee`
        self.renew(to, self.incarnation_of(to));
        if self.sessions.lock().get(&to).is_some_and(|session| session.under_way() >= MAIL_UNREAD_MAX) {
            return false;
        }
        let ticket = until_read.map(|requester| self.sent.lock().wait(to, requester));
        // If the session ends after this look at it, the ticket is there already, and ends with the session
        if !self.try_send(to, Body::Mail(Box::new(mail(ticket)))) {
            tracing::debug!(hive = to.0, "mail dropped: the hive of its IO bee is not there");
            ticket.into_iter().for_each(|ticket| self.closed(ticket))
        }
        true
    }

    fn transmit(&self, to: HiveId, packet: Packet) {
        // before the hive has begun, `send_again` sends the packet later
        if !self.is_closed() && self.handle.get().is_some() {
            self.network.send(to, packet.encode())
        }
    }

    /// Begins a session with an incarnation of a hive, unless there is one with this or a later incarnation. Messages sent
    /// over the earlier session come back.
    fn renew(&self, peer: HiveId, incarnation: Option<Incarnation>) {
        let Some(incarnation) = incarnation else { return };
        let mut sessions = self.sessions.lock();
        if sessions.get(&peer).is_some_and(|session| session.peer >= incarnation) {
            return;
        }
        let earlier = sessions.insert(peer, Session::new(self.incarnation, incarnation));
        drop(sessions);
        if earlier.is_some() {
            let (back, gone) = self.sent.lock().lost(peer);
            back.iter().for_each(|sent| sent.decide(Fate::Back(0)));
            drop(gone);
            // the new incarnation does not know the floors
            let mut stated = self.stated.lock();
            stated
                .iter_mut()
                .filter(|((.., hive), _)| *hive == peer)
                .for_each(|(_, floor)| *floor = Seq::ZERO)
        }
    }

    /// Sends messages to a bee of another hive, and keeps track of them. `to_bee` makes the body from the ticket.
    pub(crate) fn send_to_bee(&self, entry: Entry, to_bee: impl FnOnce(u64) -> ToBee) {
        let (to, colony) = (entry.to, entry.colony);
        // if the session must be renewed, this comes before the entry is added, so that the entry does not come back
        self.renew(to, self.incarnation_of(to));
        let ticket = self.sent.lock().add(entry);
        // Between the caller's look at the registry and `add`, the replica may have learned of another leader, and
        // `follow_leaders` may have looked already
        if self.leader_of(colony).is_some_and(|leader| leader != to) && !self.keeps_old_leaders {
            let (back, gone) = self.sent.lock().take_back(ticket);
            back.iter().for_each(|sent| sent.decide(Fate::Back(0)));
            return drop(gone);
        }
        let to_bee = to_bee(ticket);
        if let Some(first) = to_bee.first() {
            self.stated.lock().insert((first.id.lane, first.id.app, to), to_bee.floor);
        }
        self.send(to, Body::Messages(Box::new(to_bee)))
    }

    /// Takes note of what the replica of the registry says about leaders and dead hives. Messages under way to a hive come
    /// back when another hive leads the colony of their bee, and not before: until then, nobody else can handle them. If the
    /// hive is dead, they also come back when their bee has moved. With a hive that is dead, nothing is exchanged any more.
    pub(crate) fn follow_leaders(&self) {
        let (mut index, mut leaders, mut dead) = (0, Vec::new(), Vec::new());
        self.registry.read(&mut |view| {
            index = view.index();
            leaders = view.colonies().map(|(_, colony)| colony.leader).collect();
            let are_dead = view.hives().filter(|(_, hive)| hive.is_dead());
            dead = are_dead.map(|(id, hive)| (id, hive.incarnation)).collect()
        });
        for (hive, incarnation) in &dead {
            self.renew(*hive, Some(*incarnation));
            let has_ended = {
                let mut sessions = self.sessions.lock();
                let session = sessions.get_mut(hive).filter(|session| session.peer == *incarnation);
                session.is_some_and(Session::end)
            };
            if has_ended {
                let gone = self.sent.lock().dead(*hive);
                drop(gone)
            }
        }
        self.leave_the_dead(&dead.iter().map(|(hive, _)| *hive).collect());

        let mut known = self.leaders.lock();
        if *known == leaders || self.keeps_old_leaders {
            return;
        }
        *known = leaders;
        let leader = |colony: ColonyId| known.get((colony.0 as usize).checked_sub(1)?).copied().flatten();
        let (back, gone) = {
            let mut sent = self.sent.lock();
            let back = sent.led_by(leader);
            let gone: Vec<_> = dead.iter().flat_map(|(hive, _)| sent.dead(*hive)).collect();
            (back, gone)
        };
        drop((known, gone));
        back.iter().for_each(|sent| sent.decide(Fate::Back(index)))
    }

    /// Takes back messages under way to dead hives whose bees have moved since. A hive that lives sends such messages back
    /// itself. What the dead hive has handled of them, the bees remember, wherever they are.
    fn leave_the_dead(&self, dead: &BTreeSet<HiveId>) {
        let under_way = match dead.is_empty() || self.keeps_old_leaders {
            true => return,
            false => self.sent.lock().under_way_to(dead),
        };
        if under_way.is_empty() {
            return;
        }
        let mut elsewhere: Vec<u64> = Vec::new();
        self.registry.read(&mut |view| {
            let leader = |(app, cell)| view.colony(view.bee(view.owner(app, cell)?)?.colony)?.leader;
            let are_elsewhere =
                under_way.iter().filter(|(_, to, cell)| leader(*cell).is_some_and(|hive| hive != *to));
            elsewhere = are_elsewhere.map(|(ticket, ..)| *ticket).collect()
        });
        let back: Vec<_> = {
            let mut sent = self.sent.lock();
            elsewhere.into_iter().filter_map(|ticket| sent.refused(ticket)).collect()
        };
        back.iter().for_each(|sent| sent.decide(Fate::Back(0)))
    }

    /// Tells other hives the floors of the lanes on which they got messages, if these have risen. Without this, a bee that
    /// has handled the last message of a sender would have to remember it, and could not end.
    /// Forgets lanes that are no longer those of this hive.
    pub(crate) fn say_floors(
        &self,
        is_of_this_hive: impl Fn(LaneId) -> bool,
        floor_of: impl Fn(LaneId, AppId) -> Option<Seq>,
    ) {
        let mut floors: BTreeMap<HiveId, Vec<(LaneId, AppId, Seq)>> = BTreeMap::new();
        self.stated.lock().retain(|(lane, app, hive), stated| {
            let floor = floor_of(*lane, *app);
            if let Some(floor) = floor.filter(|floor| *floor > *stated) {
                *stated = floor;
                floors.entry(*hive).or_default().push((*lane, *app, floor))
            }
            floor.is_some() || is_of_this_hive(*lane)
        });
        floors.into_iter().for_each(|(hive, floors)| self.send(hive, Body::Floors(floors)))
    }

    /// Another hive has asked for these floors: tells them now, and from now on whenever they have risen.
    pub(crate) fn say_floors_to(&self, hive: HiveId, floors: Vec<(LaneId, AppId, Seq)>) {
        if floors.is_empty() {
            return;
        }
        let mut stated = self.stated.lock();
        floors.iter().for_each(|(lane, app, floor)| {
            stated.insert((*lane, *app, hive), *floor);
        });
        drop(stated);
        self.send(hive, Body::Floors(floors))
    }

    /// Returns the incarnation with which this hive has its session with another hive.
    pub(crate) fn incarnation_in_session(&self, hive: HiveId) -> Incarnation {
        self.sessions.lock().get(&hive).map_or(Incarnation(0), |session| session.peer)
    }

    /// Tells other hives that lanes on which they got messages have ended.
    pub(crate) fn say_retired(&self, ended: &[LaneId]) {
        let mut retired: BTreeMap<HiveId, BTreeSet<LaneId>> = BTreeMap::new();
        let ended: BTreeSet<LaneId> = ended.iter().copied().collect();
        let mut stated = self.stated.lock();
        for ((lane, _, hive), _) in stated.extract_if(.., |(lane, ..), _| ended.contains(lane)) {
            retired.entry(hive).or_default().insert(lane);
        }
        drop(stated);
        retired
            .into_iter()
            .for_each(|(hive, lanes)| self.send(hive, Body::Retired(lanes.into_iter().collect())))
    }

    /// Keeps what a hive says about a bee that moves. The caller wakes the reconciler. If too many statements are waiting,
    /// drops this one: the other hive says it again.
    pub(crate) fn push_move(&self, from: HiveId, body: Body) {
        let mut moves = self.moves.lock();
        if moves.len() < limits::MOVE_STATEMENTS_MAX {
            moves.push_back((from, body))
        }
    }

    /// Takes the oldest statement about a bee that moves.
    pub(crate) fn pop_move(&self) -> Option<(HiveId, Body)> {
        self.moves.lock().pop_front()
    }

    /// Checks whether another hive has acknowledged everything that was sent to it.
    pub(crate) fn is_settled(&self, hive: HiveId) -> bool {
        self.sessions.lock().get(&hive).is_none_or(Session::is_settled)
    }

    /// Waits until another hive acknowledges something. If nothing is under way to it, sends it something that says nothing.
    /// Cancel-safe.
    pub(crate) async fn hears(&self, hive: HiveId) {
        let acknowledged = || {
            let sessions = self.sessions.lock();
            sessions.get(&hive).map(|session| (session.peer, session.acknowledged()))
        };
        let before = acknowledged();
        if self.is_settled(hive) {
            self.send(hive, Body::Floors(Vec::new()))
        }
        // a new incarnation of the hive counts, too; the session may have begun with this call
        while acknowledged().is_none_or(|now| before.unwrap_or((now.0, 0)) == now) {
            self.platform.sleep(AGAIN_AFTER / 4).await
        }
    }

    /// Forgets the messages of senders that are about to move to another hive.
    pub(crate) fn forget(&self, lanes: &[LaneId]) {
        let gone: Vec<Entry> = {
            let mut sent = self.sent.lock();
            lanes.iter().flat_map(|lane| sent.forget(*lane)).collect()
        };
        drop(gone)
    }

    /// Gives up the messages of senders whose log this hive no longer leads. The deliveries to which they belong are told to find
    /// an owner again, and then find that the hive has lost the log.
    pub(crate) fn give_up(&self, lanes: &[LaneId]) {
        let gone = self.sent.lock().forget_all(&lanes.iter().copied().collect());
        gone.iter().for_each(|entry| entry.sent.decide(Fate::Route));
        drop(gone)
    }

    /// Returns the number of messages under way to other hives, and of requesters that wait for reports about some.
    #[cfg(feature = "testing")]
    pub(crate) fn under_way(&self) -> usize {
        self.sent.lock().len()
    }

    /// Notes that another hive has handled messages.
    pub(crate) fn acked(&self, acked: &Acked) {
        let handled = self.sent.lock().acked(acked);
        handled.iter().for_each(|sent| sent.decide(Fate::Handled))
    }

    /// Notes that another hive has refused messages.
    pub(crate) fn refused(&self, ticket: u64, index: u64) {
        let back = self.sent.lock().refused(ticket);
        back.iter().for_each(|sent| sent.decide(Fate::Back(index)))
    }

    /// Returns whoever is waiting for reports about messages.
    pub(crate) fn requester(&self, ticket: u64) -> Option<Arc<dyn Requester>> {
        self.sent.lock().requester(ticket)
    }

    /// Notes that no further report comes about messages.
    pub(crate) fn closed(&self, ticket: u64) {
        let requester = self.sent.lock().closed(ticket);
        drop(requester)
    }

    fn arrived(&self, from: HiveId, bytes: &[u8]) {
        let Ok(packet) = Packet::decode(bytes) else {
            return tracing::debug!(
                from = from.0,
                "a packet of another hive cannot be decoded; it is dropped"
            );
        };
        if packet.to != self.incarnation || self.is_closed() {
            return;
        }
        self.renew(from, Some(packet.from));
        // until the bodies are handled, no other thread handles later ones of the same hive
        let _in_order = self.handling.lock();
        let (bodies, answer) = match self.sessions.lock().get_mut(&from) {
            Some(session) if session.peer == packet.from && !session.is_over() => session.take(packet),
            // the packet comes from an incarnation that has ended
            _ => return,
        };
        if let Some(handle) = self.handle.get() {
            bodies.into_iter().for_each(|body| handle.handle(from, body))
        }
        if let Some(answer) = answer {
            self.transmit(from, answer)
        }
    }

    fn again(&self) -> bool {
        let peers: Vec<HiveId> = self.sessions.lock().keys().copied().collect();
        for peer in &peers {
            self.renew(*peer, self.incarnation_of(*peer))
        }
        let mut packets = Vec::new();
        let mut sessions = self.sessions.lock();
        for (peer, session) in sessions.iter_mut().filter(|(_, session)| !session.is_settled()) {
            packets.extend(session.again().into_iter().map(|packet| (*peer, packet)))
        }
        let is_settled = sessions.values().all(Session::is_settled);
        drop(sessions);
        // while messages are under way, a hive that has them may start again
        let is_settled = is_settled && self.sent.lock().is_empty();
        packets.into_iter().for_each(|(peer, packet)| self.transmit(peer, packet));
        is_settled
    }
}

/// Takes the packets for a hive.
struct Arrivals(Weak<Links>);

impl Packets for Arrivals {
    fn arrived(&self, from: HiveId, packet: &[u8]) {
        if let Some(links) = self.0.upgrade() {
            links.arrived(from, packet)
        }
    }
}

/// Sends again what other hives have not acknowledged, until the links are closed.
async fn send_again(links: Weak<Links>) {
    while let Some(links) = links.upgrade().filter(|links| !links.is_closed()) {
        match links.again() {
            true => links.unsettled.notified().await,
            false => {
                let pause = links.platform.sleep(AGAIN_AFTER);
                drop(links);
                pause.await
            }
        }
    }
}
