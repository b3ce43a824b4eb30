//! The lengths of samples, turned into tables of offsets as they stream by.
//!
//! Several streams of lengths (one an axis, one an attribute with its own table) often agree in every sample: all edge
//! attributes have as many rows as there are edges. Such streams form a group that writes one table. A group splits when
//! its members first disagree; the new group then copies the table so far. Each split makes one more group, so there are
//! fewer splits than streams. A group of axes whose samples have all had one length writes nothing at all.

#![forbid(unsafe_code)]

use super::spool::{SlotId, Spool};
use crate::error::Result;
use crate::format::OffsetWidth;

/// A growing table: 4-byte entries until one does not fit, then all are rewritten as 8-byte entries.
#[derive(Debug)]
pub(super) struct GrowingTable {
    slot: SlotId,
    width: OffsetWidth,
}

/// Bytes copied at a time when a table is split or widened; a multiple of both widths.
const COPY: usize = 64 * 1024;

impl GrowingTable {
    pub(super) fn new(spool: &mut Spool) -> Self {
        let width = OffsetWidth::U32;
        GrowingTable { slot: spool.add_slot(), width }
    }

    #[inline]
    pub(super) fn push(&mut self, spool: &mut Spool, offset: u64) -> Result<()> {
        match self.width {
            OffsetWidth::U32 => match u32::try_from(offset) {
                Ok(offset) => spool.append(self.slot, &offset.to_le_bytes()),
                Err(_) => {
                    self.widen(spool)?;
                    spool.append(self.slot, &offset.to_le_bytes())
                }
            },
            OffsetWidth::U64 => spool.append(self.slot, &offset.to_le_bytes()),
        }
    }

    fn widen(&mut self, spool: &mut Spool) -> Result<()> {
        let wide = spool.add_slot();
        let mut out = Vec::with_capacity(2 * COPY);
        for_chunks(spool, self.slot, |spool, chunk| {
            out.clear();
            for index in 0..chunk.len() / OffsetWidth::U32.size() {
                OffsetWidth::U64.put(OffsetWidth::U32.get(chunk, index), &mut out);
            }
            spool.append(wide, &out)
        })?;
        spool.abandon(self.slot);
        *self = GrowingTable { slot: wide, width: OffsetWidth::U64 };
        Ok(())
    }

    fn duplicate(&self, spool: &mut Spool) -> Result<Self> {
        let slot = spool.add_slot();
        for_chunks(spool, self.slot, |spool, chunk| spool.append(slot, chunk))?;
        Ok(GrowingTable { slot, width: self.width })
    }

    pub(super) fn slot(&self) -> SlotId {
        self.slot
    }

    pub(super) fn width(&self) -> OffsetWidth {
        self.width
    }
}

/// Calls `each` with all bytes of a slot, piece by piece. Every piece but the last has a multiple of every type's size.
pub(super) fn for_chunks(
    spool: &mut Spool,
    slot: SlotId,
    mut each: impl FnMut(&mut Spool, &[u8]) -> Result<()>,
) -> Result<()> {
    let length = spool.len(slot);
    let mut buffer = vec![0; COPY];
    let mut at = 0;
    while at < length {
        let size = usize::try_from(length - at).unwrap_or(COPY).min(COPY);
        spool.read_at(slot, at, &mut buffer[..size])?;
        each(spool, &buffer[..size])?;
        at += size as u64;
    }
    Ok(())
}

#[derive(Debug)]
enum State {
    /// Every length so far was this one; only axes have this form.
    Constant(u64),
    Table(GrowingTable),
}

#[derive(Debug)]
struct Group {
    members: Vec<usize>,
    total: u64,
    state: State,
}

/// What a stream of lengths has become.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lengths<'a> {
    /// All samples have this length.
    Constant(u64),
    Table(&'a GrowingTable),
}

#[derive(Debug)]
pub(super) struct LengthTables {
    groups: Vec<Group>,
    samples: u64,
}

impl LengthTables {
    /// Streams `0..axes` may be constant; streams `axes..axes + tables` are always tables.
    pub(super) fn new(spool: &mut Spool, axes: usize, tables: usize) -> Result<Self> {
        let mut groups = Vec::new();
        if axes > 0 {
            let members = (0..axes).collect();
            groups.push(Group { members, total: 0, state: State::Constant(0) });
        }
        if tables > 0 {
            let mut table = GrowingTable::new(spool);
            table.push(spool, 0)?;
            let members = (axes..axes + tables).collect();
            groups.push(Group { members, total: 0, state: State::Table(table) });
        }
        Ok(LengthTables { groups, samples: 0 })
    }

    /// Whether one more sample of these lengths keeps every total below 2^63.
    pub(super) fn has_room(&self, lengths: &[u64]) -> bool {
        self.groups.iter().all(|group| {
            group.members.iter().all(|&member| {
                group
                    .total
                    .checked_add(lengths[member])
                    .is_some_and(|total| total < i64::MAX as u64)
            })
        })
    }

    /// Adds one sample; `lengths` has one entry a stream, and [`has_room`](Self::has_room) said yes.
    pub(super) fn push(&mut self, spool: &mut Spool, lengths: &[u64]) -> Result<()> {
        let mut at = 0;
        while at < self.groups.len() {
            let first = lengths[self.groups[at].members[0]];
            if !self.groups[at].members[1..].iter().all(|&member| lengths[member] == first) {
                // The members that disagree form a group behind this one, which is looked at in its turn.
                let split = self.split(spool, at, first, lengths)?;
                self.groups.insert(at + 1, split);
            }
            let samples = self.samples;
            self.groups[at].push(spool, samples, first)?;
            at += 1;
        }
        self.samples += 1;
        Ok(())
    }

    fn split(
        &mut self,
        spool: &mut Spool,
        at: usize,
        first: u64,
        lengths: &[u64],
    ) -> Result<Group> {
        let group = &mut self.groups[at];
        let state = match &group.state {
            State::Constant(length) => State::Constant(*length),
            State::Table(table) => State::Table(table.duplicate(spool)?),
        };
        let (stay, leave) = group.members.iter().partition(|&&member| lengths[member] == first);
        group.members = stay;
        Ok(Group { members: leave, total: group.total, state })
    }

    /// The total and the lengths of a stream, at the end.
    pub(super) fn stream(&self, stream: usize) -> (u64, Lengths<'_>) {
        let group = self
            .groups
            .iter()
            .find(|group| group.members.contains(&stream))
            .expect("every stream is in exactly one group");
        let lengths = match &group.state {
            State::Constant(length) => Lengths::Constant(*length),
            State::Table(table) => Lengths::Table(table),
        };
        (group.total, lengths)
    }
}

impl Group {
    fn push(&mut self, spool: &mut Spool, samples: u64, length: u64) -> Result<()> {
        if let State::Constant(constant) = &mut self.state {
            if samples == 0 {
                *constant = length;
            }
            if *constant != length {
                let mut table = GrowingTable::new(spool);
                for sample in 0..=samples {
                    // No overflow: `samples * constant` is the total so far.
                    table.push(spool, sample * *constant)?;
                }
                self.state = State::Table(table);
            }
        }
        self.total += length;
        if let State::Table(table) = &mut self.state {
            table.push(spool, self.total)?;
        }
        Ok(())
    }
}
