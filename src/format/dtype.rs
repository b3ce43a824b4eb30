//! Element types, as named in the directory.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// The type of an attribute's elements.
///
/// The names are those of the file format (`"f32"`); [`numpy`](DType::numpy) gives numpy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of an IEEE 754 binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Complex number of two binary32, real part first.
    C64,
    /// Complex number of two binary64, real part first.
    C128,
    /// 8-bit float, 4 exponent and 3 mantissa bits (OCP E4M3, torch's `float8_e4m3fn`).
    F8E4M3,
    /// 8-bit float, 5 exponent and 2 mantissa bits (OCP E5M2, torch's `float8_e5m2`).
    F8E5M2,
    /// A string of UTF-8 bytes.
    Utf8,
    /// A string of any bytes.
    Bytes,
}

impl DType {
    /// Every dtype of this version of the format.
    pub const ALL: [DType; 19] = [
        DType::Bool,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
        DType::F8E4M3,
        DType::F8E5M2,
        DType::Utf8,
        DType::Bytes,
    ];

    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
            DType::Utf8 => "utf8",
            DType::Bytes => "bytes",
        }
    }

    /// Bytes per element; 1 for the string types, whose elements are counted in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 | DType::F8E4M3 | DType::F8E5M2 => 1,
            DType::Utf8 | DType::Bytes => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Whether an element is a string of its own length (`utf8`, `bytes`).
    pub const fn is_string(self) -> bool {
        matches!(self, DType::Utf8 | DType::Bytes)
    }

    /// Whether the elements are integers (bool is not).
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            DType::U8
                | DType::U16
                | DType::U32
                | DType::U64
                | DType::I8
                | DType::I16
                | DType::I32
                | DType::I64
        )
    }

    /// Whether the elements are real floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::F8E4M3 | DType::F8E5M2
        )
    }

    /// numpy's type string (`"<f4"`), or `None` where numpy has no such type.
    pub const fn numpy(self) -> Option<&'static str> {
        Some(match self {
            DType::Bool => "|b1",
            DType::U8 => "|u1",
            DType::U16 => "<u2",
            DType::U32 => "<u4",
            DType::U64 => "<u8",
            DType::I8 => "|i1",
            DType::I16 => "<i2",
            DType::I32 => "<i4",
            DType::I64 => "<i8",
            DType::F16 => "<f2",
            DType::F32 => "<f4",
            DType::F64 => "<f8",
            DType::C64 => "<c8",
            DType::C128 => "<c16",
            DType::BF16 | DType::F8E4M3 | DType::F8E5M2 | DType::Utf8 | DType::Bytes => {
                return None;
            }
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A dtype name that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype {0:?}")]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.name() == name)
            .ok_or_else(|| UnknownDType(name.to_owned()))
    }
}
