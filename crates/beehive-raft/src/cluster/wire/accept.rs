//! Accepts connections of other hives.

use super::codec::FrameCodec;
use super::counted::{Counted, CountedBy, Socket};
use super::frame::Frame;
use super::handshake::{self, Failure, Line, Us};
use super::identity::{Ends, Identity, Refusal};
use super::incoming::Incoming;
use super::lane::Lane;
use super::peer::{Admission, Direction};
use super::queue::{Frames, Queue};
use super::shared::Shared;
use super::tasks::Scope;
use super::tls::Shown;
use super::{text, tls};
use crate::limits::wire as limits;
use futures_core::Stream;
use hyper::body::Incoming as RequestBody;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic::server::{Grpc, StreamingService};
use tonic::{Request, Response, Status, Streaming};

/// A pause after an error of the listener: there are probably too many open files.
const LISTENER_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the wire stops.
pub(super) async fn accept_all(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = shared.draining.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, address)) => begin(&shared, socket, address),
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(LISTENER_PAUSE).await
            }
        }
    }
}

/// A connection that another hive has made.
struct Accepted {
    shared: Arc<Shared>,
    scope: Scope,
    address: SocketAddr,
    counted_by: CountedBy,
    stranger: u64,
    is_greeted: AtomicBool,
    /// With TLS: the certificate of the other hive.
    shown: OnceLock<Shown>,
    incoming: OnceLock<Arc<Incoming>>,
    admission: Mutex<Option<Admission>>,
}

fn begin(shared: &Arc<Shared>, socket: TcpStream, address: SocketAddr) {
    let scope = shared.scope.inside();
    let counted_by = CountedBy::default();
    let connection = Arc::new(Accepted {
        stranger: shared.strangers.add(scope.clone()),
        shared: shared.clone(),
        scope: scope.clone(),
        address,
        counted_by: counted_by.clone(),
        is_greeted: AtomicBool::new(false),
        shown: OnceLock::new(),
        incoming: OnceLock::new(),
        admission: Mutex::default(),
    });
    shared.scope.spawn(async move {
        let served = connection.clone();
        tokio::select! {
            biased;
            () = served.serve(socket) => {}
            () = connection.late() => connection.shared.note_stranger(&format!(
                "hive {address}: the handshake was not finished within {:?}", limits::HANDSHAKE_TIME_MAX
            )),
            () = scope.ended() => {}
        }
        connection.shared.strangers.remove(connection.stranger);
        connection.scope.end();
        *connection.admission.lock() = None
    })
}

impl Accepted {
    /// Completes if the handshake takes too long.
    async fn late(&self) {
        sleep(limits::HANDSHAKE_TIME_MAX).await;
        if self.incoming.get().is_some() {
            std::future::pending().await
        }
    }

    /// Begins TLS, if this hive uses it. Returns `None` if only one of the two does, or if the other one is not trusted.
    async fn secure(&self, mut socket: TcpStream) -> Option<Box<dyn Socket>> {
        let refused = |why: &str| self.shared.note_stranger(&format!("hive {}: {why}", self.address));
        socket.set_nodelay(true).ok()?;
        let by = self.counted_by.clone();
        let Some(credentials) = &self.shared.credentials else {
            if tls::is_begun(&mut socket).await {
                refused(tls::UNEXPECTED);
                tls::part(socket).await;
                return None;
            }
            return Some(Box::new(Counted { socket, by }));
        };
        match Box::pin(tls::accept(credentials, Counted { socket, by })).await {
            Ok((socket, shown)) => {
                let _ = self.shown.set(shown);
                Some(Box::new(socket))
            }
            Err((why, socket)) => {
                refused(&why);
                tls::part(socket).await;
                None
            }
        }
    }

    async fn serve(self: Arc<Accepted>, socket: TcpStream) {
        let Some(socket) = self.secure(socket).await else { return };
        let io = TokioIo::new(socket);
        let mut builder = Builder::new(self.scope.clone());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(limits::LANE_WINDOW_BYTES)
            .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
            .max_header_list_size(limits::HEADERS_BYTES_MAX)
            // the lanes, and the handshake, which may end a little later than they begin
            .max_concurrent_streams(Lane::COUNT as u32 + 1)
            .keep_alive_interval(limits::PROBE_EVERY)
            .keep_alive_timeout(limits::PROBE_TIME_MAX);
        let service = service_fn(|request| {
            let connection = self.clone();
            async move { Ok::<_, Infallible>(connection.answer(request).await) }
        });
        let ended = builder.serve_connection(io, service).await;
        if let (Err(error), None) = (ended, self.incoming.get()) {
            self.shared.note_stranger(&format!("hive {}: {}", self.address, text::of_error(&error)))
        }
    }

    async fn answer(self: Arc<Accepted>, request: http::Request<RequestBody>) -> http::Response<Body> {
        let path = request.uri().path();
        if path == handshake::PATH {
            if self.is_greeted.swap(true, Ordering::Relaxed) {
                return Status::failed_precondition("the handshake has begun").into_http();
            }
            let mut server = Grpc::new(FrameCodec).max_decoding_message_size(limits::HELLO_BYTES_MAX);
            return server.streaming(Greeting(self), request).await;
        }
        let Some(lane) = Lane::ALL.into_iter().find(|lane| lane.path() == path) else {
            return Status::unimplemented("a hive has no such stream").into_http();
        };
        match self.incoming.get() {
            Some(incoming) if incoming.open(lane) => {
                let mut server = Grpc::new(FrameCodec).max_decoding_message_size(limits::FRAME_BYTES_MAX);
                server.streaming(Serving(incoming.clone(), lane), request).await
            }
            Some(_) => Status::already_exists("the lane is open").into_http(),
            None => Status::unauthenticated("the handshake comes first").into_http(),
        }
    }

    async fn shake(self: Arc<Accepted>, mut line: Line) {
        let shared = &self.shared;
        let us = Us { identity: &shared.identity, key: &shared.key, shown: self.shown.get() };
        let admit = |identity: &Identity| {
            let peer = shared.peer_or_new(identity.hive).ok_or(Refusal::TooManyHives)?;
            let admission = peer.admit(identity, Direction::Accepted, &self.scope)?;
            // before the verdict is sent: the lanes come as soon as the other hive has read it
            let incoming = Incoming::new(shared.clone(), identity.hive, self.scope.clone());
            let _ = self.incoming.set(incoming);
            let _ = self.counted_by.traffic.set(peer.traffic.clone());
            shared.strangers.remove(self.stranger);
            Ok(admission)
        };
        match handshake::accept(us, &mut line, admit).await {
            Ok((identity, admission)) => {
                let peer = admission.peer().clone();
                *self.admission.lock() = Some(admission);
                tracing::info!(peer = peer.hive.0, "{} at {} has connected", peer.hive, self.address);
                if let Some(refusal) = handshake::parted(&mut line).await {
                    let text = refusal.text(self.ends(Some(&identity)));
                    match refusal.is_misfit() {
                        true => peer.note_misfit(&text),
                        false => peer.note_refusal(&text),
                    }
                    self.scope.end()
                }
            }
            Err(failure) => {
                if self.incoming.get().is_some() {
                    // the verdict could not be sent
                    self.scope.end()
                }
                match failure {
                    Failure::Broken(why) => shared.note_stranger(&format!("hive {}: {why}", self.address)),
                    Failure::Refused(refusal, Some(theirs)) => {
                        let text = refusal.text(self.ends(Some(&theirs)));
                        match refusal.is_misfit() {
                            true => shared.note_misfit(theirs.hive, &text),
                            false => shared.note_refused(theirs.hive, &text),
                        }
                    }
                    Failure::Refused(refusal, None) => shared.note_stranger(&refusal.text(self.ends(None))),
                }
                let _ = timeout(limits::PARTING_TIME_MAX, handshake::parted(&mut line)).await;
                drop(line);
                // the other side closes when it has read the end of the stream
                sleep(limits::PARTING_TIME_MAX).await;
                self.scope.end()
            }
        }
    }

    fn ends<'a>(&'a self, theirs: Option<&'a Identity>) -> Ends<'a> {
        Ends { ours: &self.shared.identity, theirs, address: self.address, shown: self.shown.get() }
    }
}

/// Begins the handshake.
struct Greeting(Arc<Accepted>);

impl StreamingService<Frame> for Greeting {
    type Response = Frame;
    type ResponseStream = Answers<handshake::Sent>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Frame>>) -> Self::Future {
        let (to, sent) = handshake::channel();
        let line = Line::new(to, request.into_inner());
        self.0.scope.spawn(self.0.clone().shake(line));
        ready(Ok(Response::new(Answers(sent))))
    }
}

/// Begins to serve a lane.
struct Serving(Arc<Incoming>, Lane);

impl StreamingService<Frame> for Serving {
    type Response = Frame;
    type ResponseStream = Answers<Frames>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Frame>>) -> Self::Future {
        let Serving(incoming, lane) = self;
        let answers = Queue::new(*lane);
        incoming.scope.spawn(incoming.clone().serve(*lane, request.into_inner(), answers.clone()));
        ready(Ok(Response::new(Answers(Frames(answers)))))
    }
}

/// A stream of frames, as a server sends it.
struct Answers<S>(S);

impl<S: Stream<Item = Frame> + Unpin> Stream for Answers<S> {
    type Item = Result<Frame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|frame| frame.map(Ok))
    }
}
