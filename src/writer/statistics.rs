//! Statistics gathered as values pass: min, max, mean, count of NaN; and of lengths.
//!
//! They are kept as text in the file, because JSON numbers hold neither NaN nor all 64-bit integers.

#![forbid(unsafe_code)]

use serde_json::{Value as Json, json};

use crate::format::{DType, Element};

/// Statistics of the values of one attribute.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueStatistics {
    count: u64,
    nan: u64,
    range: Range,
    /// Sum of the values that are not NaN.
    sum: Sum,
}

#[derive(Debug, Clone, Copy, Default)]
enum Range {
    #[default]
    Empty,
    Integer(i128, i128),
    Float(f64, f64),
}

#[derive(Debug, Clone, Copy)]
enum Sum {
    Integer(i128),
    Float(f64),
}

impl Default for Sum {
    fn default() -> Self {
        Sum::Integer(0)
    }
}

/// Independent accumulators, so that one addition need not wait for the one before it.
const LANES: usize = 8;

impl ValueStatistics {
    /// Takes in the little-endian values of one sample.
    pub(super) fn update(&mut self, dtype: DType, bytes: &[u8]) {
        self.count += (bytes.len() / dtype.size()) as u64;
        match dtype {
            DType::Bool | DType::U8 => self.integers::<u8>(bytes),
            DType::U16 => self.integers::<u16>(bytes),
            DType::U32 => self.integers::<u32>(bytes),
            DType::U64 => self.integers::<u64>(bytes),
            DType::I8 => self.integers::<i8>(bytes),
            DType::I16 => self.integers::<i16>(bytes),
            DType::I32 => self.integers::<i32>(bytes),
            DType::I64 => self.integers::<i64>(bytes),
            DType::F16 => self.floats::<half::f16>(bytes, |x| f64::from(x.to_f32())),
            DType::BF16 => self.floats::<half::bf16>(bytes, |x| f64::from(x.to_f32())),
            DType::F32 => self.floats::<f32>(bytes, f64::from),
            DType::F64 => self.floats::<f64>(bytes, |x| x),
            // No order (complex), or no arithmetic (8-bit floats) to speak of: counted only.
            DType::C64 | DType::C128 | DType::F8E4M3 | DType::F8E5M2 => {}
            DType::Utf8 | DType::Bytes => {}
        }
    }

    fn integers<T: Element + Ord + Into<i128>>(&mut self, bytes: &[u8]) {
        let mut values = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
        let Some(first) = values.next() else { return };
        let (mut low, mut high, mut sum) = (first, first, first.into());
        for value in values {
            low = low.min(value);
            high = high.max(value);
            sum += value.into();
        }
        let (low, high) = (low.into(), high.into());
        self.range = match self.range {
            Range::Integer(min, max) => Range::Integer(min.min(low), max.max(high)),
            _ => Range::Integer(low, high),
        };
        if let Sum::Integer(total) = &mut self.sum {
            *total += sum;
        }
    }

    fn floats<T: Element>(&mut self, bytes: &[u8], widen: impl Fn(T) -> f64) {
        let mut low = [f64::INFINITY; LANES];
        let mut high = [f64::NEG_INFINITY; LANES];
        let mut sum = [0.0f64; LANES];
        let mut nan = [0u64; LANES];
        let mut one = |lane: usize, value: f64| {
            // `min` and `max` pass over NaN; the sum must be told to.
            low[lane] = low[lane].min(value);
            high[lane] = high[lane].max(value);
            let is_nan = value.is_nan();
            sum[lane] += if is_nan { 0.0 } else { value };
            nan[lane] += u64::from(is_nan);
        };
        let chunks = bytes.chunks_exact(LANES * size_of::<T>());
        let rest = chunks.remainder();
        for chunk in chunks {
            for lane in 0..LANES {
                let at = lane * size_of::<T>();
                one(lane, widen(bytemuck::pod_read_unaligned(&chunk[at..at + size_of::<T>()])));
            }
        }
        for (lane, value) in rest.chunks_exact(size_of::<T>()).enumerate() {
            one(lane, widen(bytemuck::pod_read_unaligned(value)));
        }
        self.nan += nan.iter().sum::<u64>();
        let low = low.into_iter().fold(f64::INFINITY, f64::min);
        let high = high.into_iter().fold(f64::NEG_INFINITY, f64::max);
        if low <= high {
            self.range = match self.range {
                Range::Float(min, max) => Range::Float(min.min(low), max.max(high)),
                _ => Range::Float(low, high),
            };
        }
        let sum = sum.iter().sum::<f64>();
        self.sum = match self.sum {
            Sum::Float(total) => Sum::Float(total + sum),
            Sum::Integer(_) => Sum::Float(sum),
        };
    }

    pub(super) fn to_json(&self) -> Json {
        let (min, max) = match self.range {
            Range::Empty => (None, None),
            Range::Integer(min, max) => (Some(min.to_string()), Some(max.to_string())),
            Range::Float(min, max) => (Some(number(min)), Some(number(max))),
        };
        let counted = self.count - self.nan;
        let mean = min.as_ref().map(|_| {
            let sum = match self.sum {
                Sum::Integer(sum) => sum as f64,
                Sum::Float(sum) => sum,
            };
            number(sum / counted as f64)
        });
        json!({ "count": self.count.to_string(), "nan": self.nan.to_string(), "min": min, "max": max, "mean": mean })
    }
}

/// Statistics of lengths: of samples along an axis, of strings in bytes.
#[derive(Debug, Clone)]
pub(super) struct LengthStatistics {
    count: u64,
    min: u64,
    max: u64,
    total: u128,
}

impl Default for LengthStatistics {
    fn default() -> Self {
        LengthStatistics { count: 0, min: u64::MAX, max: 0, total: 0 }
    }
}

impl LengthStatistics {
    pub(super) fn update(&mut self, length: u64) {
        self.count += 1;
        self.min = self.min.min(length);
        self.max = self.max.max(length);
        self.total += u128::from(length);
    }

    pub(super) fn to_json(&self) -> Json {
        if self.count == 0 {
            return json!({ "count": "0", "min": null, "max": null, "mean": null });
        }
        json!({
            "count": self.count.to_string(),
            "min": self.min.to_string(),
            "max": self.max.to_string(),
            "mean": number(self.total as f64 / self.count as f64),
        })
    }
}

/// Shortest text that reads back as the same number.
fn number(value: f64) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Element>(values: &[T]) -> Json {
        let mut statistics = ValueStatistics::default();
        for part in values.chunks(3) {
            statistics.update(T::DTYPE, bytemuck::cast_slice(part));
        }
        statistics.to_json()
    }

    #[test]
    fn extremes_of_integers_survive() {
        let json = of(&[u64::MAX, 0, 5]);
        assert_eq!((&json["min"], &json["max"]), (&json!("0"), &json!("18446744073709551615")));
    }

    #[test]
    fn nan_is_counted_and_kept_out() {
        let json = of(&[f32::NAN, 1.0, -3.0, f32::NAN, 2.0]);
        assert_eq!(
            json,
            json!({"count": "5", "nan": "2", "min": "-3.0", "max": "2.0", "mean": "0.0"})
        );
        let json = of(&[f64::NAN]);
        assert_eq!(json, json!({"count": "1", "nan": "1", "min": null, "max": null, "mean": null}));
    }

    #[test]
    fn many_values_agree_with_a_plain_loop() {
        let values: Vec<f64> = (0..1000).map(|n| f64::from(n * 7919 % 1000) - 500.0).collect();
        let json = of(&values);
        let mean = values.iter().sum::<f64>() / 1000.0;
        assert_eq!(json["mean"], json!(format!("{mean:?}")));
        assert_eq!((&json["min"], &json["max"]), (&json!("-500.0"), &json!("499.0")));
    }
}
