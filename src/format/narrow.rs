//! Narrow storage: the legal pairs of (stored, logical) dtypes, and the conversions. SPEC section "Narrow storage".
//!
//! Equality is of bits: a value may be stored narrow only if widening gives back exactly its bits, so -0.0 is never
//! stored as an integer and a signalling NaN never as a narrower float.

#![forbid(unsafe_code)]

use half::{bf16, f16};

use super::{DType, Element};

/// The types that values of `logical` may be stored as, other than itself: every value of theirs, widened, is one of it.
pub(crate) const fn narrower(logical: DType) -> &'static [DType] {
    use DType::*;
    match logical {
        U16 => &[U8],
        U32 => &[U8, U16],
        U64 => &[U8, U16, U32],
        I16 => &[U8, I8],
        I32 => &[U8, I8, U16, I16],
        I64 => &[U8, I8, U16, I16, U32, I32],
        F32 => &[U8, I8, U16, I16, F16, BF16],
        F64 => &[U8, I8, U16, I16, U32, I32, F16, BF16, F32],
        _ => &[],
    }
}

/// The type that holds every value that is stored as one of these: one narrower than `dtype` if there is one, the first of the
/// table.
pub(crate) fn holds_all(dtype: DType, stored: &[DType]) -> DType {
    let holds = |wide: DType| stored.iter().all(|&one| one == wide || is_legal(one, wide));
    narrower(dtype).iter().copied().find(|&wide| holds(wide)).unwrap_or(dtype)
}

/// Whether values of `logical` may be stored as `stored`, other than as themselves.
pub(crate) fn is_legal(stored: DType, logical: DType) -> bool {
    narrower(logical).contains(&stored)
}

/// One exact conversion upwards, and back where the bits allow it.
pub(crate) trait Narrow<S>: Sized {
    fn widen(stored: S) -> Self;
    fn narrow(self) -> Option<S>;
}

macro_rules! integers {
    ($($wide:ty: $($narrow:ty),*;)*) => {$($(
        impl Narrow<$narrow> for $wide {
            #[inline]
            fn widen(stored: $narrow) -> Self {
                <$wide>::from(stored)
            }
            #[inline]
            fn narrow(self) -> Option<$narrow> {
                <$narrow>::try_from(self).ok()
            }
        }
    )*)*};
}

integers! {
    u16: u8;
    u32: u8, u16;
    u64: u8, u16, u32;
    i16: u8, i8;
    i32: u8, i8, u16, i16;
    i64: u8, i8, u16, i16, u32, i32;
}

macro_rules! floats_from_integers {
    ($($wide:ty: $($narrow:ty),*;)*) => {$($(
        impl Narrow<$narrow> for $wide {
            #[inline]
            fn widen(stored: $narrow) -> Self {
                <$wide>::from(stored)
            }
            #[inline]
            fn narrow(self) -> Option<$narrow> {
                // `as` saturates; comparing the bits of the way back refuses that, fractions, NaN and -0.0.
                let stored = self as $narrow;
                (<$wide>::from(stored).to_bits() == self.to_bits()).then_some(stored)
            }
        }
    )*)*};
}

floats_from_integers! {
    f32: u8, i8, u16, i16;
    f64: u8, i8, u16, i16, u32, i32;
}

macro_rules! floats_from_floats {
    ($($wide:ty, $narrow:ty, $widen:expr, $round:expr;)*) => {$(
        impl Narrow<$narrow> for $wide {
            #[inline]
            fn widen(stored: $narrow) -> Self {
                $widen(stored)
            }
            #[inline]
            fn narrow(self) -> Option<$narrow> {
                let stored: $narrow = $round(self);
                let back: $wide = $widen(stored);
                (back.to_bits() == self.to_bits()).then_some(stored)
            }
        }
    )*};
}

floats_from_floats! {
    f32, f16, f16_to_f32, f16::from_f32;
    f32, bf16, bf16_to_f32, bf16::from_f32;
    f64, f16, |x| f32_to_f64(f16_to_f32(x)), f16::from_f64;
    f64, bf16, |x| f32_to_f64(bf16_to_f32(x)), bf16::from_f64;
    f64, f32, f32_to_f64, f64_to_f32;
}

/// Widening by bits. A NaN keeps sign and payload and becomes quiet, as the processors' own conversions do; no writer
/// stores a signalling one.
#[inline]
fn f16_to_f32(stored: f16) -> f32 {
    let bits = u32::from(stored.to_bits());
    let (sign, exponent, mantissa) = ((bits & 0x8000) << 16, bits >> 10 & 0x1f, bits & 0x3ff);
    match exponent {
        0x1f if mantissa != 0 => f32::from_bits(sign | 0x7fc0_0000 | mantissa << 13),
        0x1f => f32::from_bits(sign | 0x7f80_0000),
        // A multiple of 2^-24 with at most ten bits, so the product is exact.
        0 => f32::from_bits(sign | (mantissa as f32 * f32::from_bits(0x3380_0000)).to_bits()),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[inline]
fn bf16_to_f32(stored: bf16) -> f32 {
    let bits = u32::from(stored.to_bits()) << 16;
    let value = f32::from_bits(bits);
    if value.is_nan() { f32::from_bits(bits | 0x0040_0000) } else { value }
}

/// Some processors give their one default NaN for every NaN that they convert, so NaNs go by bits here too.
#[inline]
fn f32_to_f64(stored: f32) -> f64 {
    let bits = u64::from(stored.to_bits());
    if stored.is_nan() {
        f64::from_bits(
            (bits & 0x8000_0000) << 32 | 0x7ff8_0000_0000_0000 | (bits & 0x7f_ffff) << 29,
        )
    } else {
        f64::from(stored)
    }
}

#[inline]
fn f64_to_f32(value: f64) -> f32 {
    let bits = value.to_bits();
    if value.is_nan() {
        f32::from_bits(
            (bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x7f_ffff,
        )
    } else {
        value as f32
    }
}

/// Converts each stored element of `from` to the logical type, into `to`.
///
/// The byte slices have the same number of elements and the pair is legal; a reader has proved both.
pub(crate) fn widen_into(stored: DType, logical: DType, from: &[u8], to: &mut [u8]) {
    fn run<S: Element, L: Element + Narrow<S>>(from: &[u8], to: &mut [u8]) {
        for (from, to) in from.chunks_exact(size_of::<S>()).zip(to.chunks_exact_mut(size_of::<L>()))
        {
            let value = L::widen(bytemuck::pod_read_unaligned(from));
            to.copy_from_slice(bytemuck::bytes_of(&value));
        }
    }
    pairs!(stored, logical, run(from, to), unreachable!("{stored} does not widen to {logical}"));
}

/// Appends each element of `from`, narrowed, to `to`; or gives the index of the first element that does not fit, and what
/// was appended is of no use.
pub(crate) fn narrow_into(
    stored: DType,
    logical: DType,
    from: &[u8],
    to: &mut Vec<u8>,
) -> Result<(), usize> {
    fn run<S: Element, L: Element + Narrow<S>>(from: &[u8], to: &mut Vec<u8>) -> Result<(), usize> {
        let start = to.len();
        to.resize(start + from.len() / size_of::<L>() * size_of::<S>(), 0);
        let places = to[start..].chunks_exact_mut(size_of::<S>());
        for (index, (from, to)) in from.chunks_exact(size_of::<L>()).zip(places).enumerate() {
            let value: L = bytemuck::pod_read_unaligned(from);
            let stored = value.narrow().ok_or(index)?;
            to.copy_from_slice(bytemuck::bytes_of(&stored));
        }
        Ok(())
    }
    pairs!(stored, logical, run(from, to), unreachable!("{logical} does not narrow to {stored}"))
}

/// Calls a generic function with the Rust types of a legal pair.
macro_rules! pairs {
    ($stored:expr, $logical:expr, $run:ident($($arg:expr),*), $otherwise:expr) => {{
        use $crate::format::DType::*;
        match ($stored, $logical) {
            (U8, U16) => $run::<u8, u16>($($arg),*),
            (U8, U32) => $run::<u8, u32>($($arg),*),
            (U16, U32) => $run::<u16, u32>($($arg),*),
            (U8, U64) => $run::<u8, u64>($($arg),*),
            (U16, U64) => $run::<u16, u64>($($arg),*),
            (U32, U64) => $run::<u32, u64>($($arg),*),
            (U8, I16) => $run::<u8, i16>($($arg),*),
            (I8, I16) => $run::<i8, i16>($($arg),*),
            (U8, I32) => $run::<u8, i32>($($arg),*),
            (I8, I32) => $run::<i8, i32>($($arg),*),
            (U16, I32) => $run::<u16, i32>($($arg),*),
            (I16, I32) => $run::<i16, i32>($($arg),*),
            (U8, I64) => $run::<u8, i64>($($arg),*),
            (I8, I64) => $run::<i8, i64>($($arg),*),
            (U16, I64) => $run::<u16, i64>($($arg),*),
            (I16, I64) => $run::<i16, i64>($($arg),*),
            (U32, I64) => $run::<u32, i64>($($arg),*),
            (I32, I64) => $run::<i32, i64>($($arg),*),
            (U8, F32) => $run::<u8, f32>($($arg),*),
            (I8, F32) => $run::<i8, f32>($($arg),*),
            (U16, F32) => $run::<u16, f32>($($arg),*),
            (I16, F32) => $run::<i16, f32>($($arg),*),
            (F16, F32) => $run::<half::f16, f32>($($arg),*),
            (BF16, F32) => $run::<half::bf16, f32>($($arg),*),
            (U8, F64) => $run::<u8, f64>($($arg),*),
            (I8, F64) => $run::<i8, f64>($($arg),*),
            (U16, F64) => $run::<u16, f64>($($arg),*),
            (I16, F64) => $run::<i16, f64>($($arg),*),
            (U32, F64) => $run::<u32, f64>($($arg),*),
            (I32, F64) => $run::<i32, f64>($($arg),*),
            (F16, F64) => $run::<half::f16, f64>($($arg),*),
            (BF16, F64) => $run::<half::bf16, f64>($($arg),*),
            (F32, F64) => $run::<f32, f64>($($arg),*),
            _ => $otherwise,
        }
    }};
}
pub(crate) use pairs;

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow_one<L: Element>(stored: DType, value: L) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        narrow_into(stored, L::DTYPE, bytemuck::bytes_of(&value), &mut out).ok().map(|()| out)
    }

    #[test]
    fn the_table_of_pairs_and_the_conversions_agree() {
        for logical in DType::ALL {
            for stored in DType::ALL {
                if is_legal(stored, logical) {
                    let mut wide = vec![0xff; logical.size()];
                    widen_into(stored, logical, &vec![0; stored.size()], &mut wide);
                    assert_eq!(wide, vec![0; logical.size()], "{stored} to {logical}");
                }
            }
        }
    }

    #[test]
    fn every_half_float_comes_back_with_its_bits_or_is_a_signalling_nan() {
        // Under Miri, one of each exponent and sign, and other mantissas on the way.
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 257 } else { 1 }) {
            let wide = f16_to_f32(f16::from_bits(bits));
            assert_eq!(wide.is_nan(), f16::from_bits(bits).is_nan());
            if !wide.is_nan() {
                assert_eq!(wide, f16::from_bits(bits).to_f32());
            }
            let quiet = !wide.is_nan() || bits & 0x200 != 0;
            if quiet {
                assert_eq!(
                    narrow_one(DType::F16, wide),
                    Some(bits.to_le_bytes().to_vec()),
                    "{bits:04x}"
                );
            }
            // What a cast makes of a NaN's payload is left open by the language, and Miri makes use of that.
            if !wide.is_nan() {
                assert_eq!(
                    narrow_one(DType::F16, f64::from(wide)),
                    Some(bits.to_le_bytes().to_vec()),
                    "{bits:04x} through f64"
                );
            }
            let wide = bf16_to_f32(bf16::from_bits(bits));
            if !wide.is_nan() || bits & 0x40 != 0 {
                assert_eq!(
                    narrow_one(DType::BF16, wide),
                    Some(bits.to_le_bytes().to_vec()),
                    "{bits:04x}"
                );
            }
        }
    }

    #[test]
    fn boundaries_and_bits_that_integers_lack_are_refused() {
        assert_eq!(narrow_one(DType::I8, -128i64), Some(vec![0x80]));
        assert_eq!(narrow_one(DType::I8, -129i64), None);
        assert_eq!(narrow_one(DType::U16, 65535i64), Some(vec![0xff, 0xff]));
        assert_eq!(narrow_one(DType::U16, 65536i64), None);
        assert_eq!(narrow_one(DType::U8, -0.0f32), None);
        assert_eq!(narrow_one(DType::U8, 0.5f32), None);
        assert_eq!(narrow_one(DType::U8, f32::NAN), None);
        assert_eq!(narrow_one(DType::U8, 1e30f32), None);
        assert_eq!(narrow_one(DType::F32, 1e-320f64), None);
        assert!(narrow_one(DType::F16, 65504f32).is_some());
        assert_eq!(narrow_one(DType::F16, 65505f32), None);
        assert_eq!(narrow_one(DType::F32, f64::from_bits(0x7ff0_0000_0000_0001)), None);
    }

    #[test]
    fn nans_keep_sign_and_payload_on_every_processor() {
        for (narrow, wide) in [
            (0x7fc0_0000u32, 0x7ff8_0000_0000_0000u64),
            (0xffff_ffff, 0xffff_ffff_e000_0000),
            (0x7fc0_0001, 0x7ff8_0000_2000_0000),
        ] {
            assert_eq!(f32_to_f64(f32::from_bits(narrow)).to_bits(), wide);
            assert_eq!(
                narrow_one(DType::F32, f64::from_bits(wide)),
                Some(narrow.to_le_bytes().to_vec())
            );
        }
        // A signalling NaN in the file is read as the quiet one; a payload that f32 lacks is not narrowed.
        assert_eq!(f32_to_f64(f32::from_bits(0xff80_0001)).to_bits(), 0xfff8_0000_2000_0000);
        assert_eq!(narrow_one(DType::F32, f64::from_bits(0x7ff8_0000_0000_0001)), None);
    }
}
