//! Shuffling by blocks: first the blocks of consecutive samples, then all samples within a window of so many blocks.
//!
//! A full shuffle of a cold file reads single samples from everywhere. Here the samples of a window lie in a few
//! stretches of the file, which can be asked for as such. What it costs is that a batch is drawn from one window:
//! [`same_block`] says how often two of its samples are neighbours.

#![forbid(unsafe_code)]

use super::permutation::{Permutation, key};

/// The order of one epoch. Positions to samples in constant memory and time.
#[derive(Debug, Clone)]
pub(super) struct BlockOrder {
    samples: u64,
    block: u64,
    /// Blocks a window.
    window: u64,
    key: u64,
    blocks: Permutation,
    /// Slot in the order of blocks at which the last block of the file is, which may be short.
    short_slot: u64,
    /// Samples of the last block.
    short: u64,
}

/// What one thread remembers of the window it is in.
#[derive(Debug, Default)]
pub(super) struct WindowMemory {
    known: Option<(u64, Permutation)>,
}

impl BlockOrder {
    pub(super) fn new(samples: u64, block: u64, window: u64, seed: u64, epoch: u64) -> Self {
        let block = block.clamp(1, samples.max(1));
        let count = samples.div_ceil(block);
        let key = key(&[seed, epoch, 0x626c_6f63_6b73]);
        let blocks = Permutation::new(count, key);
        let short_slot = if count == 0 { 0 } else { blocks.position(count - 1) };
        let short = samples - count.saturating_sub(1) * block;
        BlockOrder { samples, block, window: window.max(1), key, blocks, short_slot, short }
    }

    /// The first position of a slot.
    fn start(&self, slot: u64) -> u64 {
        let start = slot.saturating_mul(self.block);
        if slot > self.short_slot { start - (self.block - self.short) } else { start }
            .min(self.samples)
    }

    /// The slot of a position, and the place in it.
    fn slot(&self, position: u64) -> (u64, u64) {
        let behind = self.start(self.short_slot) + self.short;
        let moved =
            if position >= behind { position + (self.block - self.short) } else { position };
        (moved / self.block, moved % self.block)
    }

    /// Positions of window `window`.
    fn window_range(&self, window: u64) -> std::ops::Range<u64> {
        let first = window.saturating_mul(self.window);
        self.start(first)..self.start(first.saturating_add(self.window))
    }

    /// The sample at `position`.
    pub(super) fn get(&self, position: u64, memory: &mut WindowMemory) -> u64 {
        let window = self.slot(position).0 / self.window;
        let range = self.window_range(window);
        let known = match &mut memory.known {
            Some((known, permutation)) if *known == window => permutation,
            known => {
                let key = key(&[self.key, window]);
                let permutation = Permutation::new(range.end - range.start, key);
                &mut known.insert((window, permutation)).1
            }
        };
        let (slot, place) = self.slot(range.start + known.get(position - range.start));
        self.blocks.get(slot) * self.block + place
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> u64 {
        self.samples.div_ceil(self.block)
    }

    /// The slots of the window that `position` is in.
    pub(super) fn window_of(&self, position: u64) -> std::ops::Range<u64> {
        let first =
            self.slot(position.min(self.samples.saturating_sub(1))).0 / self.window * self.window;
        first..(first + self.window).min(self.slots())
    }

    /// The slot of a position, before the shuffle within windows.
    pub(super) fn slot_of(&self, position: u64) -> u64 {
        self.slot(position).0
    }

    /// The consecutive samples of a slot.
    pub(super) fn samples_of(&self, slot: u64) -> std::ops::Range<u64> {
        let start = self.blocks.get(slot) * self.block;
        start..(start + self.block).min(self.samples)
    }
}

/// The probability that two samples of one window, drawn without replacement, are of the same block.
pub(super) fn same_block(samples: u64, block: u64, window: u64) -> f64 {
    let block = block.clamp(1, samples.max(1)) as f64;
    let in_window = (window as f64 * block).min(samples as f64);
    if in_window <= 1.0 { 1.0 } else { (block - 1.0) / (in_window - 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_comes_once() {
        for samples in 0..130 {
            for block in [1, 2, 7, 10, 200] {
                for window in [1, 2, 3, 100] {
                    let order = BlockOrder::new(samples, block, window, 5, 1);
                    let mut memory = WindowMemory::default();
                    let mut all: Vec<u64> =
                        (0..samples).map(|p| order.get(p, &mut memory)).collect();
                    // Without the memory of where one was, and backwards.
                    for position in (0..samples).rev() {
                        let alone = order.get(position, &mut WindowMemory::default());
                        assert_eq!(alone, all[position as usize]);
                    }
                    all.sort_unstable();
                    assert!(all.iter().copied().eq(0..samples), "{samples} {block} {window}");
                }
            }
        }
    }

    #[test]
    fn a_window_has_whole_blocks_only() {
        let order = BlockOrder::new(1003, 10, 4, 9, 0);
        let mut memory = WindowMemory::default();
        let mut position = 0;
        while position < 1003 {
            let slots = order.window_of(position);
            let mut expected: Vec<u64> = slots.flat_map(|slot| order.samples_of(slot)).collect();
            let end = position + expected.len() as u64;
            let mut found: Vec<u64> = (position..end).map(|p| order.get(p, &mut memory)).collect();
            assert!(!found.is_sorted(), "shuffled within");
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            position = end;
        }
    }

    #[test]
    fn the_probability_of_neighbours_is_what_is_met() {
        let (samples, block, window) = (10_000, 100, 5);
        let order = BlockOrder::new(samples, block, window, 1, 0);
        let mut memory = WindowMemory::default();
        let all: Vec<u64> = (0..samples).map(|p| order.get(p, &mut memory)).collect();
        let (mut same, mut pairs) = (0u64, 0u64);
        for batch in all.chunks_exact(50) {
            for (at, a) in batch.iter().enumerate() {
                for b in &batch[at + 1..] {
                    same += u64::from(a / block == b / block);
                    pairs += 1;
                }
            }
        }
        let met = same as f64 / pairs as f64;
        let told = same_block(samples, block, window);
        assert!((met / told - 1.0).abs() < 0.05, "{met} met, {told} told");
    }
}
