//! Drawing samples by weight. The weights take memory in proportion to the samples; nothing else does.

#![forbid(unsafe_code)]

use super::permutation::{key, mix};
use crate::error::{Error, Result};

/// Drawing with replacement: Vose's alias table, one number and one comparison a draw.
#[derive(Debug)]
pub(super) struct AliasTable {
    /// For each sample, the share of its column that is its own, of 2^32; and who has the rest.
    columns: Vec<(u32, u32)>,
}

fn refuse(problem: impl Into<Box<str>>) -> Error {
    Error::Unsupported { what: "weighted sampling".into(), problem: problem.into() }
}

/// Checks weights, and gives their sum.
pub(super) fn check(weights: &[f64], samples: u64) -> Result<f64> {
    if weights.len() as u64 != samples {
        return Err(refuse(format!(
            "there are {} weights for {samples} samples: give one each",
            weights.len()
        )));
    }
    if u32::try_from(weights.len()).is_err() {
        return Err(refuse(
            "at most 2^32 - 1 weights are possible: weigh shards, or draw a subset",
        ));
    }
    if let Some(at) = weights.iter().position(|weight| !weight.is_finite() || *weight < 0.0) {
        return Err(refuse(format!(
            "weight {at} is {}: weights are finite and not negative",
            weights[at]
        )));
    }
    let sum: f64 = weights.iter().sum();
    if sum.is_finite() && (sum > 0.0 || weights.is_empty()) {
        Ok(sum)
    } else {
        Err(refuse(format!("the sum of the weights is {sum}: some weight must be above 0")))
    }
}

impl AliasTable {
    /// Of weights that were checked, whose sum is `sum`.
    pub(super) fn new(weights: &[f64], sum: f64) -> Self {
        let mean = sum / weights.len() as f64;
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        // Indices below 2^32, as checked.
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|&at| shares[at as usize] < 1.0);
        let full = |at: usize| (u32::MAX, at as u32);
        let mut columns: Vec<(u32, u32)> = (0..weights.len()).map(full).collect();
        while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
            let share = shares[less as usize];
            columns[less as usize] = ((share * 4_294_967_296.0) as u32, more);
            shares[more as usize] -= 1.0 - share;
            if shares[more as usize] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        // What is left is full but for rounding; a weight of 0 is never left over when there are others.
        for at in small {
            if weights[at as usize] == 0.0 {
                let heaviest =
                    (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
                columns[at as usize] = (0, heaviest.unwrap_or(0) as u32);
            }
        }
        AliasTable { columns }
    }

    /// Draw number `position` of an epoch.
    #[inline]
    pub(super) fn draw(&self, epoch_key: u64, position: u64) -> u64 {
        let random =
            mix(epoch_key.wrapping_add((position + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let column = (u128::from(random) * self.columns.len() as u128) >> 64;
        let (own, other) = self.columns[column as usize];
        // A second number: the first one's remainder has few bits left when there are many columns.
        if (mix(random) >> 32) as u32 <= own && own > 0 { column as u64 } else { u64::from(other) }
    }
}

/// Drawing without replacement: the first `count` of all samples in the order in which an exponential clock of each
/// one's rate rings (Efraimidis and Spirakis).
pub(super) fn without_replacement(
    weights: &[f64],
    seed: u64,
    epoch: u64,
    count: usize,
) -> Vec<u32> {
    let key = key(&[seed, epoch, 0x7765_6967_6874]);
    let mut rings: Vec<(f64, u32)> = weights
        .iter()
        .zip(0u32..)
        .filter(|(weight, _)| **weight > 0.0)
        .map(|(weight, at)| {
            let random =
                mix(key.wrapping_add((u64::from(at) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            // Evenly in (0, 1].
            let even = ((random >> 11) + 1) as f64 / (1u64 << 53) as f64;
            (-even.ln() / weight, at)
        })
        .collect();
    let order = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if count < rings.len() {
        rings.select_nth_unstable_by(count, order);
        rings.truncate(count);
    }
    rings.sort_unstable_by(order);
    rings.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weights = [1.0, 0.0, 3.0, 0.5, 5.5, 0.0];
        let sum = check(&weights, 6).unwrap();
        let table = AliasTable::new(&weights, sum);
        let draws = 200_000;
        let mut counts = [0u32; 6];
        for position in 0..draws {
            counts[table.draw(77, position) as usize] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            let expected = draws as f64 * weight / sum;
            let spread = 4.0 * expected.sqrt() + 1e-9;
            assert!((f64::from(*count) - expected).abs() <= spread, "{count} for {expected}");
        }
    }

    #[test]
    fn without_replacement_nobody_comes_twice_and_the_heavy_come_first() {
        let weights: Vec<f64> =
            (0..100).map(|i| if i == 3 { 0.0 } else { f64::from(i % 10 + 1) }).collect();
        let mut firsts = vec![0u32; 100];
        for epoch in 0..20_000 {
            let drawn = without_replacement(&weights, 1, epoch, 5);
            assert_eq!(drawn.len(), 5);
            firsts[drawn[0] as usize] += 1;
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 5);
        }
        assert_eq!(firsts[3], 0);
        let sum: f64 = weights.iter().sum();
        for (count, weight) in firsts.iter().zip(&weights) {
            let expected = 20_000.0 * weight / sum;
            assert!((f64::from(*count) - expected).abs() <= 5.0 * expected.sqrt() + 1e-9);
        }
        let all = without_replacement(&weights, 1, 0, 100);
        assert_eq!(all.len(), 99, "a weight of 0 is never drawn");
    }

    #[test]
    fn weights_are_checked() {
        assert!(check(&[1.0], 2).is_err());
        assert!(check(&[1.0, f64::NAN], 2).is_err());
        assert!(check(&[1.0, -1.0], 2).is_err());
        assert!(check(&[0.0, 0.0], 2).is_err());
        assert!(check(&[f64::MAX, f64::MAX], 2).is_err());
        assert!(check(&[], 0).is_ok());
    }
}
