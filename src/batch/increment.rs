//! What is added to index attributes: the lengths, or the values of a hidden attribute, of the samples before.

#![forbid(unsafe_code)]

use bytemuck::Zeroable;
use half::{bf16, f16};

use super::collate::Failure;
use super::fetch::fetch;
use super::plan::{AttributePlace, AttributePlan, Row};
use crate::aligned::AlignedBytes;
use crate::error::{Error, Result};
use crate::format::{DType, Element, narrow};
use crate::reader::Inner;

/// The sum of a value and an increment, as tensors add: integers wrap.
pub(super) trait Plus: Copy {
    /// What increments are summed in.
    type Sum: Copy + Zeroable;
    fn plus(self, by: Self) -> Self;
    fn accumulate(sum: Self::Sum, next: Self) -> Self::Sum;
    fn of(sum: Self::Sum) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Plus for $ty {
            type Sum = $ty;
            #[inline(always)]
            fn plus(self, by: Self) -> Self {
                self.wrapping_add(by)
            }
            fn accumulate(sum: Self, next: Self) -> Self {
                sum.wrapping_add(next)
            }
            fn of(sum: Self) -> Self {
                sum
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! floats {
    ($($ty:ty, $plus:expr, $to:expr, $of:expr;)*) => {$(
        impl Plus for $ty {
            // As torch does on the CPU, so that many small increments keep their digits.
            type Sum = f64;
            #[inline(always)]
            fn plus(self, by: Self) -> Self {
                $plus(self, by)
            }
            fn accumulate(sum: f64, next: Self) -> f64 {
                sum + $to(next)
            }
            fn of(sum: f64) -> Self {
                $of(sum)
            }
        }
    )*};
}
floats! {
    f16, |a: f16, b: f16| f16::from_f32(a.to_f32() + b.to_f32()), f16::to_f64, f16::from_f64;
    bf16, |a: bf16, b: bf16| bf16::from_f32(a.to_f32() + b.to_f32()), bf16::to_f64, bf16::from_f64;
    f32, |a: f32, b: f32| a + b, f64::from, |sum: f64| sum as f32;
    f64, |a: f64, b: f64| a + b, f64::from, |sum: f64| sum;
}

macro_rules! complex {
    ($($part:ty),*) => {$(
        impl Plus for [$part; 2] {
            type Sum = [f64; 2];
            #[inline(always)]
            fn plus(self, by: Self) -> Self {
                [self[0] + by[0], self[1] + by[1]]
            }
            fn accumulate(sum: [f64; 2], next: Self) -> [f64; 2] {
                [sum[0] + f64::from(next[0]), sum[1] + f64::from(next[1])]
            }
            fn of(sum: [f64; 2]) -> Self {
                sum.map(|part| part as $part)
            }
        }
    )*};
}
complex!(f32, f64);

/// Calls a generic function with the Rust type of a dtype that has sums.
macro_rules! sums {
    ($dtype:expr, $run:ident($($arg:expr),*), $otherwise:expr) => {{
        use $crate::format::DType::*;
        match $dtype {
            U8 => $run::<u8>($($arg),*),
            U16 => $run::<u16>($($arg),*),
            U32 => $run::<u32>($($arg),*),
            U64 => $run::<u64>($($arg),*),
            I8 => $run::<i8>($($arg),*),
            I16 => $run::<i16>($($arg),*),
            I32 => $run::<i32>($($arg),*),
            I64 => $run::<i64>($($arg),*),
            F16 => $run::<half::f16>($($arg),*),
            BF16 => $run::<half::bf16>($($arg),*),
            F32 => $run::<f32>($($arg),*),
            F64 => $run::<f64>($($arg),*),
            C64 => $run::<[f32; 2]>($($arg),*),
            C128 => $run::<[f64; 2]>($($arg),*),
            _ => $otherwise,
        }
    }};
}
pub(super) use sums;

/// Increments by lengths: for each sample one for each of `boundaries`, which are those along each row's axis.
pub(super) fn of_lengths(
    plan: &AttributePlan,
    samples: usize,
    boundaries: &[Option<&[i64]>],
    into: &mut AlignedBytes,
) -> Result<()> {
    fn run<L: Element + OfLength>(
        samples: usize,
        boundaries: &[Option<&[i64]>],
        into: &mut AlignedBytes,
    ) {
        let rows = boundaries.len();
        into.resize(samples * rows * size_of::<L>());
        let into: &mut [L] = bytemuck::cast_slice_mut(into.as_mut_slice());
        for (row, boundaries) in boundaries.iter().enumerate() {
            for sample in 0..samples {
                into[sample * rows + row] =
                    boundaries.map_or(L::zeroed(), |ends| L::of_length(ends[sample]));
            }
        }
    }
    use DType::*;
    let largest = match plan.dtype {
        U8 => u8::MAX.into(),
        I8 => i8::MAX as i64,
        U16 => u16::MAX.into(),
        I16 => i16::MAX.into(),
        U32 => u32::MAX.into(),
        I32 => i32::MAX.into(),
        _ => i64::MAX,
    };
    // Indices that wrap would point at other samples' nodes, silently.
    let total = boundaries.iter().flatten().filter_map(|ends| ends.last()).max();
    if let Some(&total) = total
        && samples > 1
        && total - 1 > largest
    {
        return Err(Error::Unsupported {
            what: format!("batch of attribute {:?}", plan.name).into(),
            problem: format!(
                "its indices run up to {total}, which {} does not hold: batch fewer samples, or give it a wider dtype",
                plan.dtype
            )
            .into(),
        });
    }
    match plan.dtype {
        U8 => run::<u8>(samples, boundaries, into),
        I8 => run::<i8>(samples, boundaries, into),
        U16 => run::<u16>(samples, boundaries, into),
        I16 => run::<i16>(samples, boundaries, into),
        U32 => run::<u32>(samples, boundaries, into),
        I32 => run::<i32>(samples, boundaries, into),
        U64 => run::<u64>(samples, boundaries, into),
        I64 => run::<i64>(samples, boundaries, into),
        other => unreachable!("a schema lets only integers be incremented by axes, not {other}"),
    }
    Ok(())
}

/// A length as a value of an integer type that was found to hold it.
trait OfLength {
    fn of_length(length: i64) -> Self;
}

macro_rules! of_length {
    ($($ty:ty),*) => {$(
        impl OfLength for $ty {
            #[inline(always)]
            fn of_length(length: i64) -> Self {
                length as $ty
            }
        }
    )*};
}
of_length!(u8, u16, u32, u64, i8, i16, i32, i64);

/// Increments by the values of a hidden attribute, `rows` of them a sample.
pub(super) fn of_hidden(
    inner: &Inner,
    dtype: DType,
    places: &[AttributePlace],
    rows: usize,
    samples: &[Row],
    raw: &mut AlignedBytes,
    into: &mut AlignedBytes,
) -> Result<(), Failure> {
    fn run<L: Element + Plus>(rows: usize, values: &mut [u8]) {
        let values: &mut [L] = bytemuck::cast_slice_mut(values);
        for row in 0..rows {
            let mut sum = L::Sum::zeroed();
            for value in values.iter_mut().skip(row).step_by(rows) {
                let next = *value;
                *value = L::of(sum);
                sum = L::accumulate(sum, next);
            }
        }
    }
    let stored_of = |row: &Row| Some(places[row.part].hidden.as_ref()?.stored);
    into.resize(samples.len() * rows * dtype.size());
    let (mut done, mut behind) = (0, 0);
    for same in samples.chunk_by(|one, other| stored_of(one) == stored_of(other)) {
        let Some(stored) = same.first().and_then(stored_of) else { continue };
        let size = rows * stored.size();
        let ranges = same.iter().map(|row| {
            let start = places[row.part].hidden.as_ref().map_or(0, |hidden| hidden.data.start);
            (start + row.index * size as u64, size)
        });
        let end = done + same.len() * rows * dtype.size();
        let to = &mut into.as_mut_slice()[done..end];
        if stored == dtype {
            fetch(inner, ranges, to).map_err(|failure| failure.behind(behind))?;
        } else {
            raw.resize(same.len() * size);
            fetch(inner, ranges, raw.as_mut_slice()).map_err(|failure| failure.behind(behind))?;
            narrow::widen_into(stored, dtype, raw.as_slice(), to);
        }
        (done, behind) = (end, behind + same.len());
    }
    sums!(
        dtype,
        run(rows, into.as_mut_slice()),
        unreachable!("was refused when the plan was made")
    );
    Ok(())
}
