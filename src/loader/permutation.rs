//! A pseudo-random permutation of `0..n` that takes no memory in proportion to `n`.
//!
//! Above [`TABLE`] elements it is a Feistel network: the bits of a position are cut in two, and each half in turn is
//! combined with a hash of the other, which can be undone whatever the hash. That permutes the next power of two; a result
//! beyond `n` is put in again until one falls within (less than twice on average), which permutes `0..n`. Halves of few
//! bits mix badly, so small `n` are shuffled by the textbook in a table of constant size, uniformly.

#![forbid(unsafe_code)]

/// Largest `n` that is shuffled in a table.
const TABLE: u64 = 256;

/// Each half is combined with the other this often together. Four each are proved enough for strangers who see all of
/// it to tell nothing; the hash is weaker than the proof asks for, and no adversary is looking.
const ROUNDS: usize = 8;

/// A bijection on 64 bits that mixes well (splitmix64's).
#[inline]
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A key of several numbers; all of them count, and so does their order.
pub(super) fn key(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |key, &part| {
        mix(key.wrapping_add(mix(part.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    })
}

/// The `index`th number of the sequence of `key`, evenly from `0..n`.
#[inline]
pub(super) fn below(key: u64, index: u64, n: u64) -> u64 {
    let random = mix(key.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    // The upper half of the product; off from even by at most n / 2^64.
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}

#[derive(Debug, Clone)]
pub(super) struct Permutation {
    n: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Table(Vec<u8>),
    Feistel { high: u32, low: u32, keys: [u64; ROUNDS] },
}

impl Permutation {
    pub(super) fn new(n: u64, key: u64) -> Self {
        let kind = if n <= TABLE {
            // At most 256 entries, each below 256.
            let mut table: Vec<u8> = (0..n).map(|i| i as u8).collect();
            for i in (1..table.len()).rev() {
                table.swap(i, below(key, i as u64, i as u64 + 1) as usize);
            }
            Kind::Table(table)
        } else {
            let bits = 64 - (n - 1).leading_zeros();
            let mut keys = [0; ROUNDS];
            for (round, place) in keys.iter_mut().enumerate() {
                *place =
                    mix(key.wrapping_add((round as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            }
            Kind::Feistel { high: bits / 2, low: bits - bits / 2, keys }
        };
        Permutation { n, kind }
    }

    /// Number of elements.
    #[cfg(test)]
    pub(super) fn len(&self) -> u64 {
        self.n
    }

    /// What is at `position`, which is below `n`.
    #[inline]
    pub(super) fn get(&self, position: u64) -> u64 {
        match &self.kind {
            Kind::Table(table) => u64::from(table[position as usize]),
            Kind::Feistel { high, low, keys } => {
                let mut value = position;
                loop {
                    value = network(value, *high, *low, keys, false);
                    if value < self.n {
                        return value;
                    }
                }
            }
        }
    }

    /// Where `element` is.
    pub(super) fn position(&self, element: u64) -> u64 {
        match &self.kind {
            Kind::Table(table) => {
                // It is a permutation of its indices.
                table.iter().position(|&entry| u64::from(entry) == element).unwrap_or(0) as u64
            }
            Kind::Feistel { high, low, keys } => {
                let mut value = element;
                loop {
                    value = network(value, *high, *low, keys, true);
                    if value < self.n {
                        return value;
                    }
                }
            }
        }
    }
}

#[inline]
fn network(value: u64, high: u32, low: u32, keys: &[u64; ROUNDS], backwards: bool) -> u64 {
    let (high_mask, low_mask) = ((1 << high) - 1, (1 << low) - 1);
    let (mut left, mut right) = (value >> low & high_mask, value & low_mask);
    let mut round = |index: usize| {
        if index.is_multiple_of(2) {
            left ^= hash(right, keys[index]) & high_mask;
        } else {
            right ^= hash(left, keys[index]) & low_mask;
        }
    };
    if backwards {
        (0..ROUNDS).rev().for_each(&mut round);
    } else {
        (0..ROUNDS).for_each(&mut round);
    }
    left << low | right
}

/// 32 bits of a hash: the upper half, in which every bit of the input has a part.
#[inline]
fn hash(half: u64, key: u64) -> u64 {
    let value = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_n_to_a_thousand_is_permuted_and_back() {
        for n in 0..=1000 {
            for seed in [0, 1, u64::MAX, 0xdead_beef] {
                let permutation = Permutation::new(n, seed);
                assert_eq!(permutation.len(), n);
                let mut seen = vec![false; n as usize];
                for position in 0..n {
                    let element = permutation.get(position);
                    assert!(!std::mem::replace(&mut seen[element as usize], true), "n {n}");
                    assert_eq!(permutation.position(element), position, "n {n}");
                }
            }
        }
    }

    #[test]
    fn large_n_are_undone() {
        let near = [1u64 << 32, 1 << 40, 1 << 63].into_iter().flat_map(|n| [n - 1, n, n + 1]);
        for n in near.chain([u64::MAX, 257, 3 << 39]) {
            let permutation = Permutation::new(n, n);
            for index in 0..2000 {
                let position = match index {
                    0..500 => index.min(n - 1),
                    500..1000 => n - 1 - (index - 500).min(n - 1),
                    _ => below(7, index, n),
                };
                let element = permutation.get(position);
                assert!(element < n);
                assert_eq!(permutation.position(element), position, "n {n}, position {position}");
            }
        }
    }

    #[test]
    fn small_sets_are_shuffled_evenly() {
        // All 24 orders of 4 elements, by 24,000 keys: each expected 1,000 times.
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..24_000 {
            let permutation = Permutation::new(4, key(&[seed]));
            let order: Vec<u64> = (0..4).map(|p| permutation.get(p)).collect();
            *counts.entry(order).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi: f64 = counts.values().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 60.0, "chi-square {chi} of 23 degrees of freedom");
    }

    #[test]
    fn the_network_leaves_no_trace_of_the_order() {
        let n = 5000;
        let (mut places, mut steps, mut fixed) = (vec![0u32; 50], vec![0u32; 50], 0);
        let keys = 400;
        for seed in 0..keys {
            let permutation = Permutation::new(n, key(&[seed, 3]));
            // Where three neighbours go, and how far apart.
            for position in [0, 1, 2500] {
                let (here, next) = (permutation.get(position), permutation.get(position + 1));
                places[(here * 50 / n) as usize] += 1;
                steps[((next + n - here) % n * 50 / n) as usize] += 1;
            }
            fixed += (0..n).filter(|&position| permutation.get(position) == position).count();
        }
        let expected = keys as f64 * 3.0 / 50.0;
        for counts in [&places, &steps] {
            let chi: f64 =
                counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            assert!(chi < 100.0, "chi-square {chi} of 49 degrees of freedom");
        }
        // One fixed point a permutation, give or take 1/sqrt(400).
        assert!((0.75..1.25).contains(&(fixed as f64 / keys as f64)), "{fixed} fixed points");
    }

    #[test]
    fn neighbouring_seeds_and_epochs_have_nothing_in_common() {
        let n = 10_000u64;
        let orders: Vec<Permutation> = [[1, 0], [1, 1], [2, 0], [0, 1]]
            .iter()
            .map(|parts| Permutation::new(n, key(parts)))
            .collect();
        for (a, one) in orders.iter().enumerate() {
            for other in &orders[a + 1..] {
                let same = (0..n).filter(|&p| one.get(p) == other.get(p)).count();
                assert!(same < 10, "{same} positions in common");
            }
        }
    }
}
