//! Memory for batches. A buffer goes back to its pool when the last holder lets go of it, and not before.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::{Arc, Weak};

use crate::sync::Mutex;

use crate::aligned::AlignedBytes;

/// Memory that is used again: 64-byte aligned buffers of batches that nobody holds any more.
///
/// A clone is the same pool. Batches may outlive it; their memory is then freed.
#[derive(Clone)]
pub struct BufferPool {
    shelf: Arc<Shelf>,
}

struct Shelf {
    free: Mutex<Vec<AlignedBytes>>,
    /// Buffers that are kept at most; more are freed.
    limit: usize,
}

impl BufferPool {
    /// An empty pool that keeps at most `limit` unused buffers.
    pub fn new(limit: usize) -> Self {
        BufferPool { shelf: Arc::new(Shelf { free: Mutex::new(Vec::new()), limit }) }
    }

    /// Unused buffers that are kept at present.
    pub fn unused(&self) -> usize {
        self.shelf.free.lock().len()
    }

    /// A buffer of `len` bytes of any value, which the caller writes before it shows them to anyone; `None` if there is not
    /// so much memory. A file may state lengths that it has no bytes for, and an entry for each of a batch's nodes is asked
    /// for all the same.
    pub(super) fn take(&self, len: usize) -> Option<Buffer> {
        let mut bytes = match self.shelf.take(len) {
            Some(bytes) => bytes,
            // An eighth more than asked, as the next batches are a little larger or smaller than this one.
            None => {
                AlignedBytes::try_zeroed(len.checked_add(len / 8)?.checked_next_multiple_of(4096)?)?
            }
        };
        bytes.resize(len);
        Some(Buffer { bytes, shelf: Arc::downgrade(&self.shelf) })
    }
}

impl Shelf {
    /// The smallest that fits and is not far too large, which a larger request may need more.
    fn take(&self, len: usize) -> Option<AlignedBytes> {
        let mut free = self.free.lock_soon()?;
        let fits = |buffer: &AlignedBytes| {
            (len..=len.saturating_mul(4).saturating_add(1 << 16)).contains(&buffer.room())
        };
        let best = (0..free.len()).filter(|&at| fits(&free[at])).min_by_key(|&at| free[at].room());
        best.map(|at| free.swap_remove(at))
    }

    fn put(&self, bytes: AlignedBytes) {
        // Without it, the memory goes back to the system.
        let Some(mut free) = self.free.lock_soon() else { return };
        free.push(bytes);
        if free.len() > self.limit {
            // The oldest: sizes that are still asked for come back again and again, so it is one that is not.
            let oldest = free.remove(0);
            drop(free);
            drop(oldest);
        }
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("unused", &self.unused())
            .field("limit", &self.shelf.limit)
            .finish()
    }
}

/// The bytes of one field of a batch, 64-byte aligned; constant while they are shared. Whoever shares them holds an [`Arc`] of
/// this, and the last one to drop it gives the memory back to the pool.
pub struct Buffer {
    bytes: AlignedBytes,
    shelf: Weak<Shelf>,
}

impl Buffer {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The bytes, to be changed: whoever has a buffer that is not shared may.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.as_mut_slice()
    }

    /// The buffer itself if nobody else holds it, and otherwise a copy, whose memory goes to no pool.
    pub(super) fn unshared(shared: Arc<Self>) -> Self {
        Arc::try_unwrap(shared)
            .unwrap_or_else(|shared| Buffer { bytes: shared.bytes.clone(), shelf: Weak::new() })
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(shelf) = self.shelf.upgrade() {
            shelf.put(std::mem::take(&mut self.bytes));
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_with_the_last_holder_only() {
        let pool = BufferPool::new(4);
        let first = Arc::new(pool.take(100).unwrap());
        let second = first.clone();
        drop(first);
        assert_eq!(pool.unused(), 0);
        drop(second);
        assert_eq!(pool.unused(), 1);
        let again = pool.take(50).unwrap();
        assert_eq!(
            (again.len(), pool.unused()),
            (50, 0),
            "the same memory serves a smaller request"
        );
    }

    #[test]
    fn the_pool_is_bounded_and_may_go_first() {
        let pool = BufferPool::new(2);
        let all: Vec<Buffer> = (0..5).map(|_| pool.take(10).unwrap()).collect();
        drop(all);
        assert_eq!(pool.unused(), 2);
        let orphan = pool.take(10).unwrap();
        drop(pool);
        assert_eq!(orphan.as_slice().len(), 10);
    }

    #[test]
    fn what_is_shared_is_copied_and_what_is_not_is_handed_over() {
        let pool = BufferPool::new(4);
        let shared = Arc::new(pool.take(8).unwrap());
        let other = shared.clone();
        let mut copy = Buffer::unshared(shared);
        copy.as_mut_slice().fill(7);
        assert_ne!(other.as_slice(), copy.as_slice());
        let at = other.as_slice().as_ptr();
        let mine = Buffer::unshared(other);
        assert_eq!(mine.as_slice().as_ptr(), at);
        drop((copy, mine));
        assert_eq!(pool.unused(), 1, "the copy's memory is not the pool's");
    }

    #[test]
    fn a_small_request_does_not_take_a_huge_buffer() {
        let pool = BufferPool::new(4);
        drop(pool.take(1 << 20).unwrap());
        let small = pool.take(8).unwrap();
        assert_eq!(pool.unused(), 1);
        drop(small);
        drop(pool.take(900 << 10).unwrap());
        assert_eq!(pool.unused(), 2, "the large one was used again");
    }
}
