//! The handshake: each side shows that it has the join token, and then says who it is.
//!
//! ```text
//! dialer                                acceptor
//!   Opening    versions, nonce      ─►
//!              ◄─  Challenge             versions, nonce, proof
//!   Claim      identity, proof      ─►
//!              ◄─  Verdict               identity, proof, refusal or not
//!   Parting    refusal, if any      ─►
//! ```
//!
//! Neither side says who it is before the other one has shown that it has the token.

use super::frame::{Frame, Kind};
use super::identity::{Identity, Refusal, VERSIONS, compare};
use super::text;
use super::tls::Shown;
use super::token::{Key, Nonce, Purpose};
use crate::limits::wire as limits;
use beehive_core::HiveId;
use beehive_protocol::codec;
use bytes::Bytes;
use futures_core::Stream;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tonic::Streaming;

/// The path of the stream.
pub(super) const PATH: &str = "/beehive.wire/hello";

const MAGIC: [u8; 8] = *b"beehive\0";

#[derive(Debug, Serialize, Deserialize)]
struct Opening {
    magic: [u8; 8],
    versions: (u16, u16),
    nonce: Nonce,
}

#[derive(Debug, Serialize, Deserialize)]
struct Challenge {
    versions: (u16, u16),
    nonce: Nonce,
    proof: [u8; 32],
}

#[derive(Debug, Serialize, Deserialize)]
enum Claim {
    Refused(Refusal),
    /// An encoded `ClaimedIdentity`.
    Identity {
        bytes: Vec<u8>,
        proof: [u8; 32],
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct ClaimedIdentity {
    identity: Identity,
    /// The hive that the dialer expects.
    expected: HiveId,
}

#[derive(Debug, Serialize, Deserialize)]
enum Verdict {
    Refused(Refusal),
    /// An encoded `Judgment`.
    Identity {
        bytes: Vec<u8>,
        proof: [u8; 32],
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Judgment {
    identity: Identity,
    refusal: Option<Refusal>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Parting(Refusal);

/// Why a handshake has failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection broke, or carried something else.
    Broken(String),
    /// One of the two refuses the other. The identity is that of the other hive, if it has shown that it has the token.
    Refused(Refusal, Option<Box<Identity>>),
}

impl Failure {
    fn refused(refusal: Refusal, theirs: &Identity) -> Failure {
        Failure::Refused(refusal, Some(Box::new(theirs.clone())))
    }
}

/// One side of the stream on which the handshake takes place.
#[derive(Debug)]
pub(super) struct Line {
    to: mpsc::Sender<Frame>,
    from: Streaming<Frame>,
}

/// The messages that one side sends.
#[derive(Debug)]
pub(super) struct Sent(mpsc::Receiver<Frame>);

impl Stream for Sent {
    type Item = Frame;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        self.0.poll_recv(context)
    }
}

/// Makes a channel for what one side sends. No side sends more than three messages.
pub(super) fn channel() -> (mpsc::Sender<Frame>, Sent) {
    let (sender, receiver) = mpsc::channel(4);
    (sender, Sent(receiver))
}

impl Line {
    pub(super) fn new(to: mpsc::Sender<Frame>, from: Streaming<Frame>) -> Line {
        Line { to, from }
    }

    async fn send<T: Serialize>(&mut self, message: &T) -> Result<(), Failure> {
        let part = Bytes::from(codec::encode_many(message));
        let frame = Frame { kind: Kind::Hello, id: 0, length: part.len() as u32, part };
        self.to.send(frame).await.map_err(|_| Failure::Broken("the connection broke".into()))
    }

    /// Receives a message. Returns `None` if the other side sends no more.
    async fn try_receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Failure> {
        let broken = |why: String| Failure::Broken(format!("the handshake broke off: {why}"));
        match self.from.message().await {
            Err(status) => Err(broken(text::of_status(&status))),
            Ok(None) => Ok(None),
            Ok(Some(Frame { kind: Kind::Hello, part, .. })) if part.len() <= limits::HELLO_BYTES_MAX => {
                codec::decode_many("a message of the handshake", &part)
                    .map(Some)
                    .map_err(|error| broken(error.to_string()))
            }
            Ok(Some(_)) => Err(broken("a frame that does not belong there".into())),
        }
    }

    async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let none = || Failure::Broken("the other side closed the connection during the handshake".into());
        self.try_receive().await?.ok_or_else(none)
    }

    /// Tells the other side the refusal, and waits until it has read it. The caller limits the time.
    async fn part<T: Serialize>(&mut self, message: &T) {
        if self.send(message).await.is_ok() {
            let (closed, _) = mpsc::channel(1);
            self.to = closed;
            while let Ok(Some(_)) = self.from.message().await {}
        }
    }
}

fn check_versions((lowest, highest): (u16, u16)) -> Result<(), Refusal> {
    match lowest <= VERSIONS.1 && highest >= VERSIONS.0 {
        true => Ok(()),
        false => Err(Refusal::Versions { lowest, highest }),
    }
}

fn nonce() -> Result<Nonce, Failure> {
    let mut nonce = [0; 32];
    let filled = getrandom::fill(&mut nonce);
    filled.map_err(|error| Failure::Broken(format!("the system gives no random numbers: {error}")))?;
    Ok(nonce)
}

/// This hive, as it takes part in a handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Us<'a> {
    pub(super) identity: &'a Identity,
    pub(super) key: &'a Key,
    /// With TLS: the certificate of a hive that connects.
    pub(super) shown: Option<&'a Shown>,
}

impl Us<'_> {
    /// Checks that the other side is the hive whose certificate it has shown.
    fn check_shown(&self, hive: HiveId) -> Result<(), Refusal> {
        match self.shown.is_none_or(|shown| shown.is_of(hive)) {
            true => Ok(()),
            false => Err(Refusal::Certificate(hive)),
        }
    }
}

/// Takes the part of the hive that connects. `admit` decides about a hive that fits.
pub(super) async fn dial<A>(
    us: Us<'_>,
    expected: HiveId,
    line: &mut Line,
    admit: impl FnOnce(&Identity) -> Result<A, Refusal>,
) -> Result<(Identity, A), Failure> {
    let ours = nonce()?;
    line.send(&Opening { magic: MAGIC, versions: VERSIONS, nonce: ours }).await?;
    let Challenge { versions, nonce, proof } = line.receive().await?;
    let nonces = (&ours, &nonce);
    let fits = check_versions(versions).and_then(|()| {
        match us.key.accepts(&proof, Purpose::Challenge, nonces, &[]) {
            true => Ok(()),
            false => Err(Refusal::Token),
        }
    });
    if let Err(refusal) = fits {
        line.part(&Claim::Refused(refusal)).await;
        return Err(Failure::Refused(refusal, None));
    }

    let bytes = codec::encode_many(&ClaimedIdentity { identity: us.identity.clone(), expected });
    let proof = us.key.proof(Purpose::Claim, nonces, &bytes);
    line.send(&Claim::Identity { bytes, proof }).await?;
    let (bytes, proof) = match line.receive().await? {
        Verdict::Identity { bytes, proof } => (bytes, proof),
        Verdict::Refused(refusal) => return Err(Failure::Refused(refusal, None)),
    };
    if !us.key.accepts(&proof, Purpose::Verdict, nonces, &bytes) {
        return Err(Failure::Refused(Refusal::Token, None));
    }

    let Judgment { identity, refusal } = decode(&bytes)?;
    if let Some(refusal) = refusal {
        return Err(Failure::refused(refusal, &identity));
    }
    match compare(us.identity, &identity, identity.hive, expected).and_then(|()| admit(&identity)) {
        Ok(admitted) => Ok((identity, admitted)),
        Err(refusal) => {
            line.part(&Parting(refusal)).await;
            Err(Failure::refused(refusal, &identity))
        }
    }
}

/// Takes the part of the hive to which another one connects. `admit` decides about a hive that fits. Call [`parted`] then.
pub(super) async fn accept<A>(
    us: Us<'_>,
    line: &mut Line,
    admit: impl FnOnce(&Identity) -> Result<A, Refusal>,
) -> Result<(Identity, A), Failure> {
    let Opening { magic, versions, nonce: theirs } = line.receive().await?;
    if magic != MAGIC {
        return Err(Failure::Broken("it is no hive".into()));
    }
    let ours = nonce()?;
    let nonces = (&theirs, &ours);
    let proof = us.key.proof(Purpose::Challenge, nonces, &[]);
    line.send(&Challenge { versions: VERSIONS, nonce: ours, proof }).await?;
    check_versions(versions).map_err(|refusal| Failure::Refused(refusal, None))?;

    let (bytes, proof) = match line.receive().await? {
        Claim::Identity { bytes, proof } => (bytes, proof),
        // a stranger's word is not repeated; that it has another token is all that this hive knows
        Claim::Refused(_) => return Err(Failure::Refused(Refusal::Token, None)),
    };
    if !us.key.accepts(&proof, Purpose::Claim, nonces, &bytes) {
        line.send(&Verdict::Refused(Refusal::Token)).await?;
        return Err(Failure::Refused(Refusal::Token, None));
    }

    let ClaimedIdentity { identity, expected } = decode(&bytes)?;
    let judged = us
        .check_shown(identity.hive)
        .and_then(|()| compare(us.identity, &identity, us.identity.hive, expected))
        .and_then(|()| admit(&identity));
    let bytes = codec::encode_many(&Judgment {
        identity: us.identity.clone(),
        refusal: judged.as_ref().err().copied(),
    });
    let proof = us.key.proof(Purpose::Verdict, nonces, &bytes);
    line.send(&Verdict::Identity { bytes, proof }).await?;
    match judged {
        Ok(admitted) => Ok((identity, admitted)),
        Err(refusal) => Err(Failure::refused(refusal, &identity)),
    }
}

/// Waits until the dialer has read the verdict. Returns its refusal, if it has one.
pub(super) async fn parted(line: &mut Line) -> Option<Refusal> {
    match line.try_receive().await {
        Ok(Some(Parting(refusal))) => Some(refusal),
        _ => None,
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let decoded = codec::decode_many("an identity", bytes);
    decoded.map_err(|error| Failure::Broken(error.to_string()))
}
