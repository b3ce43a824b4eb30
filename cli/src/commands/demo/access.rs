//! How the demo reads: every value of every sample, in one order or another.

#![forbid(unsafe_code)]

use fencepost::{Backing, Dataset, Result, Sample, SampleBuf, Value};

/// The numbers below `len` in an order that looks random and is always the same for a seed.
pub(crate) fn shuffled(len: u64, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..len).collect();
    // splitmix64: enough for an order, and no dependency.
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for at in (1..order.len()).rev() {
        // The bias of a remainder is of no interest here, and the result is at most `at`.
        let other = (random() % (at as u64 + 1)) as usize;
        order.swap(at, other);
    }
    order
}

/// Gets the samples in this order and adds up all of their bytes, so that each is touched.
pub(crate) fn sum(dataset: &Dataset, order: &[u64]) -> Result<u64> {
    let mut buffer = SampleBuf::new();
    let positional = dataset.backing() == Backing::Positional;
    let mut total = 0u64;
    for &index in order {
        let sum = if positional {
            sum_sample(dataset.read(index, &mut buffer)?)?
        } else {
            sum_sample(dataset.get(index)?)?
        };
        total = total.wrapping_add(sum);
    }
    Ok(total)
}

fn sum_sample(sample: Sample<'_>) -> Result<u64> {
    let mut total = 0u64;
    for (_, value) in sample.iter() {
        let sum = match value? {
            Some(Value::Tensor(tensor)) => sum_bytes(tensor.bytes()),
            Some(Value::Strings(strings)) => {
                strings.iter().map(sum_bytes).fold(0, u64::wrapping_add)
            }
            None => 0,
        };
        total = total.wrapping_add(sum);
    }
    Ok(total)
}

/// Eight bytes at a time, as fast as memory gives them.
fn sum_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, &word| sum.wrapping_add(u64::from_le_bytes(word)));
    rest.iter().fold(words, |sum, &byte| sum.wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_number_once() {
        let order = shuffled(1000, 7);
        assert_eq!(order, shuffled(1000, 7));
        assert_ne!(order, shuffled(1000, 8));
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
        assert!(shuffled(0, 0).is_empty());
    }

    #[test]
    fn every_byte_counts() {
        assert_eq!(sum_bytes(&[1; 11]), 0x0101_0101_0101_0101 + 3);
        assert_eq!(sum_bytes(&[]), 0);
    }
}
