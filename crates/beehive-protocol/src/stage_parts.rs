//! Divides a bee into parts, because it may be larger than a log entry. A move stages the parts in another log, and a
//! snapshot contains them.

use crate::{BeeImage, CellImage, DedupTable, Emit, Emits, EncodedCells, FewSet, StagePart, Staged};

/// Largest number of bytes that a cell's id takes in a list.
const CELL_BYTES: usize = 9;

/// Divides items into parts of at most `bytes_max` bytes each. A larger item gets a part of its own.
pub(crate) fn divide<T>(
    items: impl Iterator<Item = T>,
    size: impl Fn(&T) -> usize,
    bytes_max: usize,
) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.peekable();
    std::iter::from_fn(move || {
        let first = items.next()?;
        let mut bytes = size(&first);
        let mut part = vec![first];
        while let Some(next) = items.next_if(|next| bytes.saturating_add(size(next)) <= bytes_max) {
            bytes += size(&next);
            part.push(next)
        }
        Some(part)
    })
}

impl StagePart {
    /// Returns the parts of a bee whose rows are `rows`, in the order in which a log has to stage them. Ignores
    /// `bee.state`.
    ///
    /// Each part has about `bytes_max` bytes at most. A larger row gets a part of its own.
    pub fn of_bee<'a>(
        bee: &'a BeeImage,
        rows: &'a EncodedCells,
        bytes_max: usize,
    ) -> impl Iterator<Item = StagePart> + use<'a> {
        let BeeImage { cells, state: _, seen, next_seq, now, heir_of, epoch, leaves_for } = bee;
        let has_many_cells = cells.len().saturating_mul(CELL_BYTES) > bytes_max;
        let has_long_table = seen.bytes_max() > bytes_max;
        let image = BeeImage {
            cells: if has_many_cells { FewSet::default() } else { cells.clone() },
            state: EncodedCells::default(),
            seen: if has_long_table { DedupTable::default() } else { seen.clone() },
            next_seq: *next_seq,
            now: *now,
            heir_of: heir_of.clone(),
            epoch: *epoch,
            leaves_for: *leaves_for,
        };

        let cells = has_many_cells.then(|| divide(cells.iter().copied(), |_| CELL_BYTES, bytes_max));
        let seen = has_long_table.then(|| seen.parts(bytes_max));
        std::iter::once(StagePart::Bee(Box::new(image)))
            .chain(cells.into_iter().flatten().map(StagePart::Cells))
            .chain(seen.into_iter().flatten().map(StagePart::Seen))
            .chain(rows.parts(bytes_max).map(StagePart::Rows))
    }

    /// Returns the parts of a bee's outbox. The messages are in the order in which they were emitted.
    ///
    /// Each part has about `bytes_max` bytes at most. A larger message gets a part of its own.
    pub fn of_outbox(emits: impl Iterator<Item = Emit>, bytes_max: usize) -> impl Iterator<Item = StagePart> {
        divide(emits, Emit::size, bytes_max).map(|part| StagePart::Outbox(Emits(part)))
    }
}

impl Staged {
    /// Adds a part, without counting it. A [`StagePart::Bee`] replaces everything staged so far.
    pub(crate) fn add(&mut self, part: &StagePart) {
        match part {
            StagePart::Bee(image) => {
                (self.bee, self.outbox) = (image.clone(), Emits::default());
                self.bee.state = EncodedCells::default()
            }
            StagePart::Cells(cells) => self.bee.cells.extend(cells.iter().copied()),
            StagePart::Seen(seen) => self.bee.seen.absorb(seen.clone()),
            StagePart::Rows(cells) => cells.iter().for_each(|cell: &CellImage| self.bee.state.add_rows(cell)),
            StagePart::Outbox(emits) => self.outbox.extend_from_slice(emits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::encode_many;
    use crate::{CellId, LaneId, Op, Part, Seq};

    #[test]
    fn a_part_is_not_larger_than_it_may_be_unless_one_item_is() {
        let parts: Vec<Vec<usize>> = divide([3, 3, 4, 1, 20, 1].into_iter(), |size| *size, 10).collect();
        assert_eq!(parts, [vec![3, 3, 4], vec![1], vec![20], vec![1]]);
        assert_eq!(divide(std::iter::empty::<usize>(), |size| *size, 10).count(), 0);
    }

    /// A bee of which every component is larger than a part.
    #[test]
    fn the_parts_of_a_large_bee_are_small_and_make_up_the_bee() {
        const BYTES: usize = 500;
        let mut bee = BeeImage {
            cells: (0..1_000).map(|cell| CellId(u64::MAX - cell)).collect(),
            ..BeeImage::default()
        };
        for number in 0..1_000u64 {
            bee.seen.insert(LaneId(u64::MAX - number % 7), Seq(u64::MAX / 2 + 2 * number), Part(number % 3));
            let (key, row) = ([1; 40], number.to_be_bytes());
            bee.state.apply(Op { dict: 1, key: &key, row: Some(&row), value: Some(&[2; 90]) })
        }
        bee.seen.raise(LaneId(u64::MAX), Seq(5));
        bee.seen.raise(LaneId(77), Seq(9));

        let parts: Vec<StagePart> = StagePart::of_bee(&bee, &bee.state, BYTES).collect();
        assert!(parts.iter().all(|part| encode_many(part).len() <= BYTES + 100));
        let mut staged = Staged::default();
        parts.iter().for_each(|part| staged.add(part));
        assert_eq!(*staged.bee, bee);

        assert_eq!(StagePart::of_bee(&bee, &bee.state, 1 << 20).count(), 2, "the bee, and its rows");
    }
}
