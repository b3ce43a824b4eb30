//! Ranges of the file, one behind the other in memory; those that follow each other in the file by one read.

#![forbid(unsafe_code)]

use super::collate::Failure;
use crate::reader::Inner;

/// Fills `to` with ranges of (start, length), each of another sample; the caller has made it as long as they are together.
pub(super) fn fetch(
    inner: &Inner,
    ranges: impl Iterator<Item = (u64, usize)>,
    to: &mut [u8],
) -> Result<(), Failure> {
    let mut at = 0;
    // A read that is not sent yet: its first sample, where it starts, and its length.
    let (mut first, mut start, mut len) = (0, 0u64, 0usize);
    let mut send = |position: usize, start: u64, len: usize| {
        let place = &mut to[at..at + len];
        at += len;
        if place.is_empty() {
            return Ok(());
        }
        match inner.bytes() {
            // The range was proved to lie in the file, which is in memory.
            Some(file) => place.copy_from_slice(&file[start as usize..start as usize + len]),
            None => inner.read_at(start, place).map_err(|error| Failure::at(position, error))?,
        }
        Ok(())
    };
    for (position, (next, more)) in ranges.enumerate() {
        if len > 0 && next == start + len as u64 {
            len += more;
            continue;
        }
        send(first, start, len)?;
        (first, start, len) = (position, next, more);
    }
    send(first, start, len)
}
