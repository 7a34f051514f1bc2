//! The state of a log in pieces, each small enough to be encoded at once, however large the state is.

use beehive_protocol::codec::{decode_many, encode_many};
use beehive_protocol::{
    AppId, BeeId, BeeImage, CellImage, DecodeError, LogState, MessageId, Staged, Sweep, Waiting,
};
use std::io;

/// A piece is closed when its content is about this long.
const PIECE_BYTES: usize = 256 << 10;

/// Everything that is in no other piece.
const REST: u16 = 0;
/// A bee without its rows.
const BEE: u16 = 1;
/// Rows of a bee.
const ROWS: u16 = 2;
/// Messages of the outbox.
const OUTBOX: u16 = 3;
/// A sweep.
const SWEEP: u16 = 4;
/// A staged bee without its rows.
const STAGED: u16 = 5;
/// Rows of a staged bee.
const STAGED_ROWS: u16 = 6;

type Key = (AppId, BeeId);

/// Calls `each` with the kind and the content of each piece of a state.
pub(super) fn split(
    mut state: LogState,
    mut each: impl FnMut(u16, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let bees = std::mem::take(&mut state.bees);
    let staged = std::mem::take(&mut state.staged);
    let outbox = std::mem::take(&mut state.outbox);
    let sweeps = std::mem::take(&mut state.sweeps);
    each(REST, &encode_many(&state))?;

    for (key, mut bee) in bees {
        let cells = std::mem::take(&mut bee.state);
        each(BEE, &encode_many(&(key, bee)))?;
        rows(key, cells.images(), |content| each(ROWS, content))?
    }
    for (key, mut staged) in staged {
        let cells = std::mem::take(&mut staged.bee.state);
        each(STAGED, &encode_many(&(key, staged)))?;
        rows(key, cells.images(), |content| each(STAGED_ROWS, content))?
    }
    for sweep in sweeps {
        each(SWEEP, &encode_many(&sweep))?
    }

    let (mut piece, mut bytes) = (Vec::new(), 0);
    for waiting in outbox.into_values() {
        bytes += 128 + waiting.emit.payload.len();
        piece.push(waiting);
        if bytes >= PIECE_BYTES {
            each(OUTBOX, &encode_many(&piece))?;
            piece.clear();
            bytes = 0
        }
    }
    match piece.is_empty() {
        true => Ok(()),
        false => each(OUTBOX, &encode_many(&piece)),
    }
}

/// Splits rows into pieces. The rows of one cell may be in several.
fn rows(
    key: Key,
    cells: impl Iterator<Item = CellImage>,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let (mut piece, mut bytes): (Vec<CellImage>, usize) = (Vec::new(), 0);
    for CellImage { dict, key: cell, rows } in cells {
        let mut image = CellImage { dict, key: cell.clone(), rows: Vec::new() };
        for row in rows {
            bytes += 64 + cell.len() + row.0.len() + row.1.len();
            image.rows.push(row);
            if bytes >= PIECE_BYTES {
                piece.push(std::mem::replace(
                    &mut image,
                    CellImage { dict, key: cell.clone(), rows: Vec::new() },
                ));
                each(&encode_many(&(key, &piece)))?;
                piece.clear();
                bytes = 0
            }
        }
        if !image.rows.is_empty() {
            piece.push(image)
        }
    }
    match piece.is_empty() {
        true => Ok(()),
        false => each(&encode_many(&(key, &piece))),
    }
}

/// Adds a piece to a state. The pieces must be added in the order in which [`split`] made them.
pub(super) fn join(state: &mut LogState, kind: u16, content: &[u8]) -> Result<(), DecodeError> {
    match kind {
        REST => *state = decode_many("the state of a log", content)?,
        BEE => {
            let (key, bee): (Key, Box<BeeImage>) = decode_many("a bee", content)?;
            state.bees.insert(key, bee);
        }
        STAGED => {
            let (key, staged): (Key, Staged) = decode_many("a bee", content)?;
            state.staged.insert(key, staged);
        }
        ROWS | STAGED_ROWS => {
            let (key, cells): (Key, Vec<CellImage>) = decode_many("rows", content)?;
            let bee = match kind {
                ROWS => state.bees.get_mut(&key),
                _ => state.staged.get_mut(&key).map(|staged| &mut staged.bee),
            };
            let Some(bee) = bee else {
                return Err(DecodeError { what: "rows", why: "there is no such bee".to_string() });
            };
            cells.into_iter().for_each(|cell| bee.state.add_rows(cell))
        }
        OUTBOX => {
            let messages: Vec<Waiting> = decode_many("messages", content)?;
            state.outbox.extend(messages.into_iter().map(|waiting| (waiting.emit.id, waiting)))
        }
        SWEEP => {
            let (id, sweep): (MessageId, Sweep) = decode_many("a sweep", content)?;
            state.sweeps.insert(id, sweep);
        }
        unknown => {
            let why = format!("{unknown} is no kind of piece; perhaps a newer program wrote it");
            return Err(DecodeError { what: "a piece of a checkpoint", why });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_protocol::{
        Address, CellId, DedupTable, Emit, HiveId, LaneId, MessageTypeId, Part, Payload, Seq, Time,
    };
    use std::collections::BTreeSet;

    fn waiting(order: u64, length: usize) -> Waiting {
        let lane = LaneId::of_bee(AppId(0), BeeId(1));
        let emit = Emit {
            id: MessageId { lane, seq: Seq(order), part: Part::WHOLE, app: AppId(1) },
            message_type: MessageTypeId(1),
            payload: Payload::from(&*vec![7; length]),
            at: None,
            is_sweep: false,
            position: None,
            origin: HiveId(0),
            sender: Address::App(AppId(0)),
            hops: 0,
            chain: 0,
            chance: 0,
        };
        Waiting { order, emit }
    }

    fn bee(rows: u64, length: usize) -> BeeImage {
        let mut bee = BeeImage { next_seq: Seq(4), now: Time::from_nanoseconds(9), ..BeeImage::default() };
        bee.cells.extend([CellId(1), CellId(2)]);
        bee.seen.insert(LaneId::of_bee(AppId(1), BeeId(7)), Seq(3), Part::WHOLE);
        let rows = (0..rows).map(|row| (row.to_le_bytes().to_vec(), vec![1; length])).collect();
        bee.state.add_rows(CellImage { dict: 2, key: b"key".to_vec(), rows });
        bee
    }

    /// A state that has something of everything, and larger than one piece.
    pub(crate) fn state() -> LogState {
        let mut state = LogState { last: 12.into(), emitted: 3, ..LogState::default() };
        state.bees.insert((AppId(0), BeeId(1)), Box::new(bee(3, 10)));
        state.bees.insert((AppId(0), BeeId(2)), Box::new(bee(5_000, 200)));
        state.bees.insert((AppId(1), BeeId(2)), Box::new(BeeImage::default()));
        let staged = Staged { bee: Box::new(bee(2_000, 300)), ..Staged::default() };
        state.staged.insert((AppId(3), BeeId(1)), staged);
        state.outbox.extend((0..9).map(|order| {
            let waiting = waiting(order, 100_000);
            (waiting.emit.id, waiting)
        }));
        let sweep =
            Sweep { waiting: waiting(40, 3), next: Some(CellId(9)), open: BTreeSet::from([CellId(4)]) };
        state.sweeps.insert(sweep.waiting.emit.id, sweep);
        let mut seen = DedupTable::default();
        seen.insert(LaneId::of_bee(AppId(1), BeeId(8)), Seq(1), Part::WHOLE);
        state.seen = seen;
        state
    }

    #[test]
    fn joined_pieces_are_the_state_that_was_split() {
        let (mut joined, mut kinds) = (LogState::default(), BTreeSet::new());
        let mut largest = 0;
        split(state(), |kind, content| {
            kinds.insert(kind);
            largest = largest.max(content.len());
            join(&mut joined, kind, content).map_err(io::Error::other)
        })
        .unwrap();
        assert_eq!(joined, state());
        assert_eq!(kinds, (REST..=STAGED_ROWS).collect(), "the state has pieces of every kind");
        assert!(largest < 2 * PIECE_BYTES, "{largest}");
    }
}
