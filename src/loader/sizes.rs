//! Batches by size: as many samples as fit, from the tables of lengths alone; and samples of like sizes together.

#![forbid(unsafe_code)]

use std::sync::Arc;

use super::sampler::Oversize;
use crate::error::{Error, Result};

/// The lengths of all samples along one axis.
#[derive(Debug, Clone)]
pub(super) struct Lengths {
    pub axis: Box<str>,
    pub lengths: Arc<[u32]>,
}

impl Lengths {
    #[inline]
    pub(super) fn get(&self, sample: u64) -> u64 {
        // The sampler was checked to be of as many samples as there are lengths.
        u64::from(self.lengths[sample as usize])
    }
}

/// At most so much along an axis in one batch.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    pub lengths: Lengths,
    pub max: u64,
}

/// What a batch may be at most.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    pub max_samples: u64,
    pub limits: Vec<Limit>,
    pub oversize: Oversize,
}

impl Packing {
    /// Whether a sample alone is larger than a batch may be.
    pub(super) fn is_oversize(&self, sample: u64) -> bool {
        self.limits.iter().any(|limit| limit.lengths.get(sample) > limit.max)
    }

    /// Whether a sample is left out.
    pub(super) fn leaves_out(&self, sample: u64) -> bool {
        self.oversize == Oversize::Skip && self.is_oversize(sample)
    }

    fn check(&self, sample: u64) -> Result<()> {
        if self.oversize != Oversize::Error {
            return Ok(());
        }
        let Some(limit) = self.limits.iter().find(|limit| limit.lengths.get(sample) > limit.max)
        else {
            return Ok(());
        };
        Err(Error::Unsupported {
            what: format!("batches of at most {} {}", limit.max, limit.lengths.axis).into(),
            problem: format!(
                "sample {sample} alone has {}: raise the limit, or say that such samples are batched alone or left out",
                limit.lengths.get(sample)
            )
            .into(),
        })
    }

    /// Calls `cut` with the position before which each batch but the first starts.
    pub(super) fn pack(
        &self,
        samples: impl Iterator<Item = u64>,
        mut cut: impl FnMut(u64),
    ) -> Result<()> {
        let mut sums = vec![0u64; self.limits.len()];
        let mut count = 0u64;
        for (position, sample) in (0..).zip(samples) {
            self.check(sample)?;
            if self.leaves_out(sample) {
                continue;
            }
            let fits =
                count < self.max_samples
                    && self.limits.iter().zip(&sums).all(|(limit, sum)| {
                        sum.saturating_add(limit.lengths.get(sample)) <= limit.max
                    });
            if !fits && count > 0 {
                cut(position);
                sums.fill(0);
                count = 0;
            }
            for (sum, limit) in sums.iter_mut().zip(&self.limits) {
                *sum = sum.saturating_add(limit.lengths.get(sample));
            }
            count += 1;
        }
        Ok(())
    }
}
