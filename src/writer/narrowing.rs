//! Finds the smallest type that holds every value of an attribute, as the values stream by.
//!
//! Values are stored as the smallest candidate until one comes that it does not hold. What was written is then rewritten as
//! the next candidate that holds it and the new values, at the latest the attribute's own type. A candidate that was
//! once refuted stays so, as values only become more; so an attribute is rewritten at most once for each candidate,
//! and in practice once or twice, early.

#![forbid(unsafe_code)]

use super::lengths::for_chunks;
use super::spool::{SlotId, Spool};
use crate::error::Result;
use crate::format::narrow::{is_legal, narrow_into, narrower, widen_into};
use crate::format::{Attribute, DType};

/// The choice of one attribute's stored type.
#[derive(Debug)]
pub(super) struct Narrowing {
    dtype: DType,
    stored: DType,
    /// Types that nothing has refuted yet, in the order in which they are tried.
    later: Vec<DType>,
    values: Vec<u8>,
}

impl Narrowing {
    /// `None` if there is nothing to choose: the type has no narrower one, or one was declared.
    pub(super) fn of(attribute: &Attribute) -> Option<Self> {
        let dtype = attribute.dtype();
        let mut later = narrower(dtype).to_vec();
        if later.is_empty() || attribute.stored_dtype() != dtype {
            return None;
        }
        // Stable, so that of two types of one size the one that stands first in the table comes first.
        later.sort_by_key(|stored| stored.size());
        later.push(dtype);
        let stored = later.remove(0);
        Some(Narrowing { dtype, stored, later, values: Vec::new() })
    }

    /// The type that holds everything so far.
    pub(super) fn stored(&self) -> DType {
        self.stored
    }

    /// Appends values, given as the attribute's type, to `slot`, which becomes another one if all that it holds has to be
    /// rewritten. Gives the number of bytes that the values took.
    pub(super) fn append(
        &mut self,
        spool: &mut Spool,
        slot: &mut SlotId,
        values: &[u8],
    ) -> Result<usize> {
        while !narrows(self.stored, self.dtype, values, &mut self.values) {
            self.next(spool, slot, values)?;
        }
        spool.append(*slot, &self.values)?;
        Ok(self.values.len())
    }

    /// Goes on with the next candidate that holds what was written.
    fn next(&mut self, spool: &mut Spool, slot: &mut SlotId, values: &[u8]) -> Result<()> {
        let Narrowing { dtype, stored, later, values: narrow } = self;
        loop {
            // The attribute's own type, the last of them, holds everything.
            let next = later.remove(0);
            if narrows(next, *dtype, values, narrow)
                && (is_legal(*stored, next) || holds(spool, *slot, *stored, next, *dtype)?)
            {
                rewrite(spool, slot, *stored, next, *dtype)?;
                *stored = next;
                return Ok(());
            }
        }
    }
}

/// Whether `to` holds every value, which are given as `dtype`; then they are in `out`.
fn narrows(to: DType, dtype: DType, values: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    if to == dtype {
        out.extend_from_slice(values);
        return true;
    }
    narrow_into(to, dtype, values, out).is_ok()
}

fn widened(stored: DType, dtype: DType, from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.resize(from.len() / stored.size() * dtype.size(), 0);
    widen_into(stored, dtype, from, to);
}

/// Whether `next` holds everything in the slot.
fn holds(
    spool: &mut Spool,
    slot: SlotId,
    stored: DType,
    next: DType,
    dtype: DType,
) -> Result<bool> {
    let (mut wide, mut narrow, mut fits) = (Vec::new(), Vec::new(), true);
    for_chunks(spool, slot, |_, chunk| {
        if fits {
            widened(stored, dtype, chunk, &mut wide);
            fits = narrows(next, dtype, &wide, &mut narrow);
        }
        Ok(())
    })?;
    Ok(fits)
}

/// Moves everything to a new slot as `next`, which holds it.
fn rewrite(
    spool: &mut Spool,
    slot: &mut SlotId,
    stored: DType,
    next: DType,
    dtype: DType,
) -> Result<()> {
    let (mut wide, mut narrow) = (Vec::new(), Vec::new());
    let to = spool.add_slot();
    for_chunks(spool, *slot, |spool, chunk| {
        widened(stored, dtype, chunk, &mut wide);
        let fits = narrows(next, dtype, &wide, &mut narrow);
        debug_assert!(fits, "{next} was said to hold every value stored as {stored}");
        spool.append(to, &narrow)
    })?;
    spool.abandon(*slot);
    *slot = to;
    Ok(())
}
