//! In whose memory the fields of a batch are laid.

#![forbid(unsafe_code)]

use std::sync::Arc;

use super::buffers::{Buffer, BufferPool};
use super::plan::Field;
use crate::error::{Error, Result};
use crate::format::Shape;

/// Memory of the caller for the fields of a batch, for example pinned memory or arrays of another language:
/// [`Collator::collate_to`](super::Collator::collate_to).
pub trait BatchSink {
    /// The place for one field: exactly `bytes` bytes, aligned for `dtype` (64 bytes is best). All of it is written
    /// before the next field is asked for, unless an error ends the batch. Fields come in the order of
    /// [`Collator::fields`](super::Collator::fields). `shape` is the field's; a field of strings is asked for as the
    /// bytes of all strings, whose number the shape does not tell.
    ///
    /// # Errors
    /// Whatever the caller cannot do; it ends the batch.
    fn place(&mut self, field: &Field, shape: &Shape, bytes: usize) -> Result<&mut [u8]>;
}

/// Fields in buffers of a pool.
pub(super) struct PoolSink<'a> {
    pub pool: &'a BufferPool,
    pub buffers: &'a mut Vec<Arc<Buffer>>,
}

impl BatchSink for PoolSink<'_> {
    fn place(&mut self, field: &Field, _shape: &Shape, bytes: usize) -> Result<&mut [u8]> {
        let buffer = self.pool.take(bytes).ok_or_else(|| Error::Unsupported {
            what: format!("field {:?} of a batch", field.name()).into(),
            problem: format!(
                "it would have {bytes} bytes, which there is no memory for: batch fewer samples, or leave the field out"
            )
            .into(),
        })?;
        self.buffers.push(Arc::new(buffer));
        let last = self.buffers.last_mut().and_then(Arc::get_mut);
        // It was made a line above and has one holder.
        Ok(last.map_or(&mut [], Buffer::as_mut_slice))
    }
}
