//! Position in an epoch to sample: a pure function of seed, epoch and position.

#![forbid(unsafe_code)]

use std::sync::Arc;

use super::blocks::{BlockOrder, WindowMemory, same_block};
use super::permutation::{Permutation, key};
use super::weighted::{self, AliasTable};
use crate::error::{Error, Result};

/// Samples with their weights, and what drawing by them needs.
#[derive(Debug)]
pub(super) struct Weights {
    weights: Vec<f64>,
    /// Made for drawing with replacement only.
    table: Option<AliasTable>,
    checksum: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Sequential,
    Shuffle,
    Blocks { block: u64, window: u64 },
    Weighted { weights: Arc<Weights>, draws: u64 },
}

/// The order of all epochs.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub kind: Kind,
    pub seed: u64,
    /// What the order is of, if not of all samples.
    pub subset: Option<Arc<[u64]>>,
    pub samples: u64,
}

impl Order {
    /// Samples that there are to choose from.
    fn choices(&self) -> u64 {
        self.subset.as_ref().map_or(self.samples, |subset| subset.len() as u64)
    }

    pub(super) fn set_weights(
        &mut self,
        weights: Vec<f64>,
        draws: u64,
        replace: bool,
    ) -> Result<()> {
        let sum = weighted::check(&weights, self.choices())?;
        let positive = weights.iter().filter(|weight| **weight > 0.0).count() as u64;
        if !replace && draws > positive {
            return Err(Error::Unsupported {
                what: "weighted sampling without replacement".into(),
                problem: format!("{draws} samples are asked for and {positive} have a weight above 0: ask for fewer, or draw with replacement").into(),
            });
        }
        if weights.is_empty() && draws > 0 {
            return Err(Error::Unsupported {
                what: "weighted sampling".into(),
                problem: "there are no samples to draw from".into(),
            });
        }
        let table = (replace && !weights.is_empty()).then(|| AliasTable::new(&weights, sum));
        let bits: Vec<u64> = weights.iter().map(|weight| weight.to_bits()).collect();
        let weights = Arc::new(Weights { weights, table, checksum: key(&bits) });
        self.kind = Kind::Weighted { weights, draws };
        Ok(())
    }

    /// The order of one epoch.
    pub(super) fn epoch(&self, epoch: u64) -> EpochOrder {
        let choices = self.choices();
        let (len, kind) = match &self.kind {
            Kind::Sequential => (choices, EpochKind::Sequential),
            Kind::Shuffle => {
                (choices, EpochKind::Shuffle(Permutation::new(choices, key(&[self.seed, epoch]))))
            }
            Kind::Blocks { block, window } => {
                let order = BlockOrder::new(choices, *block, *window, self.seed, epoch);
                (choices, EpochKind::Blocks(Box::new(order)))
            }
            Kind::Weighted { weights, draws } => match &weights.table {
                Some(_) => (
                    *draws,
                    EpochKind::Draws {
                        weights: weights.clone(),
                        key: key(&[self.seed, epoch, 0x6472_6177]),
                    },
                ),
                None => {
                    // At most the number of weights, as checked.
                    let drawn = weighted::without_replacement(
                        &weights.weights,
                        self.seed,
                        epoch,
                        *draws as usize,
                    );
                    (*draws, EpochKind::Drawn(drawn))
                }
            },
        };
        EpochOrder { len, kind, subset: self.subset.clone() }
    }

    /// How much of a batch of `batch_size` counts, if neighbouring samples are as alike as can be: see
    /// [`Sampler::shuffle_quality`](super::Sampler::shuffle_quality).
    pub(super) fn quality(&self, batch_size: u64) -> f64 {
        let samples = self.choices();
        let others = batch_size.min(samples).saturating_sub(1) as f64;
        match self.kind {
            Kind::Shuffle | Kind::Weighted { .. } => 1.0,
            Kind::Sequential => 1.0 / (1.0 + others),
            Kind::Blocks { block, window } => {
                let met = same_block(samples, block, window);
                let by_chance = same_block(samples, block, u64::MAX);
                let alike =
                    if by_chance < 1.0 { (met - by_chance) / (1.0 - by_chance) } else { 0.0 };
                1.0 / (1.0 + others * alike.max(0.0))
            }
        }
    }

    /// What an order was made of, for telling whether a saved state fits.
    pub(super) fn describe(&self) -> serde_json::Value {
        let subset = self.subset.as_ref().map(|subset| format!("{:016x}", key(subset)));
        let order = match &self.kind {
            Kind::Sequential => serde_json::json!("sequential"),
            Kind::Shuffle => serde_json::json!({ "shuffle": self.seed }),
            Kind::Blocks { block, window } => {
                serde_json::json!({ "blocks": self.seed, "block": block, "window": window })
            }
            Kind::Weighted { weights, draws } => serde_json::json!({
                "weighted": self.seed,
                "weights": format!("{:016x}", weights.checksum),
                "draws": draws,
                "replacement": weights.table.is_some(),
            }),
        };
        serde_json::json!({ "order": order, "samples": self.samples, "subset": subset })
    }
}

/// The order of one epoch.
#[derive(Debug, Clone)]
pub(super) struct EpochOrder {
    len: u64,
    kind: EpochKind,
    subset: Option<Arc<[u64]>>,
}

#[derive(Debug, Clone)]
enum EpochKind {
    Sequential,
    Shuffle(Permutation),
    Blocks(Box<BlockOrder>),
    Draws { weights: Arc<Weights>, key: u64 },
    Drawn(Vec<u32>),
}

impl EpochOrder {
    /// Samples in the epoch.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The sample at `position`, which is below `len`.
    pub(super) fn get(&self, position: u64, memory: &mut WindowMemory) -> u64 {
        let chosen = match &self.kind {
            EpochKind::Sequential => position,
            EpochKind::Shuffle(permutation) => permutation.get(position),
            EpochKind::Blocks(order) => order.get(position, memory),
            EpochKind::Draws { weights, key } => {
                weights.table.as_ref().map_or(0, |table| table.draw(*key, position))
            }
            EpochKind::Drawn(drawn) => u64::from(drawn[position as usize]),
        };
        match &self.subset {
            // Every order gives indices below the number of choices.
            Some(subset) => subset[chosen as usize],
            None => chosen,
        }
    }

    /// The order of blocks, if it is one and of all samples, so that its stretches are stretches of the dataset.
    pub(super) fn blocks(&self) -> Option<&BlockOrder> {
        match &self.kind {
            EpochKind::Blocks(order) if self.subset.is_none() => Some(order),
            _ => None,
        }
    }
}
