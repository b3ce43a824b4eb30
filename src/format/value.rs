//! Views of values: what a sample's attribute is, wherever its bytes lie.

#![forbid(unsafe_code)]

use std::fmt;

use bytemuck::Pod;
use half::{bf16, f16};

use super::offsets::OffsetWidth;
use super::{DType, product};
use crate::error::{Error, FormatError, Result};

/// Most dimensions that a shape may have.
pub const MAX_RANK: usize = 8;

/// A Rust type whose memory is an element of one [`DType`].
///
/// `bool` is not one of them: a byte of a file may be neither 0 nor 1, so bools are seen as `u8` through
/// [`TensorView::as_bools`], which checks.
pub trait Element: Pod + private::Sealed {
    /// The element type in files.
    const DTYPE: DType;
}

mod private {
    pub trait Sealed {}
}

/// An 8-bit float with 4 exponent and 3 mantissa bits, as raw bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// An 8-bit float with 5 exponent and 2 mantissa bits, as raw bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

macro_rules! elements {
    ($($ty:ty => $dtype:ident),* $(,)?) => {$(
        impl private::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
    [f32; 2] => C64, [f64; 2] => C128,
    F8E4M3 => F8E4M3, F8E5M2 => F8E5M2,
}

/// The extents of a tensor, outermost first; `[]` is a scalar. Kept inline, so a view needs no allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The shape of a scalar.
    pub const SCALAR: Shape = Shape { dims: [0; MAX_RANK], rank: 0 };

    /// A shape of these extents.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with more than [`MAX_RANK`] extents, or more than `isize::MAX` elements.
    pub fn new(dims: &[usize]) -> Result<Self> {
        let fits =
            product(dims.iter().map(|&dim| dim as u64)).is_some_and(|n| isize::try_from(n).is_ok());
        if dims.len() > MAX_RANK || !fits {
            return Err(Error::Unsupported {
                what: format!("shape {dims:?}").into(),
                problem: format!(
                    "a shape has at most {MAX_RANK} dimensions and isize::MAX elements"
                )
                .into(),
            });
        }
        let mut shape = Shape::SCALAR;
        for &dim in dims {
            shape.push(dim);
        }
        Ok(shape)
    }

    /// Appends an extent; the caller keeps the rank within [`MAX_RANK`] (a schema guarantees it).
    pub(crate) fn push(&mut self, dim: usize) {
        self.dims[usize::from(self.rank)] = dim;
        self.rank += 1;
    }

    pub(crate) fn set(&mut self, at: usize, dim: usize) {
        self.dims[at] = dim;
    }

    /// The extents.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Number of elements: the product of the extents, 1 for a scalar.
    pub fn elements(&self) -> usize {
        // A file may say [2^40, 2^40, 0], which has no elements but a product that overflows on the way to 0.
        if self.dims().contains(&0) { 0 } else { self.dims().iter().product() }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dims().fmt(f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A tensor of fixed-size elements, borrowed: C order, little-endian.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    dtype: DType,
    shape: Shape,
    data: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// A view of typed values.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if `values` has not exactly the elements that `shape` asks for.
    ///
    /// ```
    /// # use fencepost::{DType, TensorView};
    /// let x = TensorView::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!((x.dtype(), x.shape()), (DType::F32, &[2, 2][..]));
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    pub fn from_slice<T: Element>(values: &'a [T], shape: &[usize]) -> Result<Self> {
        Self::from_bytes(T::DTYPE, shape, bytemuck::cast_slice(values))
    }

    /// A view of bools, one byte each.
    ///
    /// # Errors
    /// As [`from_slice`](Self::from_slice).
    pub fn from_bools(values: &'a [bool], shape: &[usize]) -> Result<Self> {
        Self::from_bytes(DType::Bool, shape, bytemuck::cast_slice(values))
    }

    /// A view of raw little-endian bytes in C order.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the bytes are not exactly those of `shape`, or `dtype` is a string type.
    pub fn from_bytes(dtype: DType, shape: &[usize], data: &'a [u8]) -> Result<Self> {
        let shape = Shape::new(shape)?;
        let expected = shape.elements().checked_mul(dtype.size());
        if dtype.is_string() || expected != Some(data.len()) {
            return Err(Error::Unsupported {
                what: format!("{dtype} tensor of shape {shape}").into(),
                problem: if dtype.is_string() {
                    "strings are no tensors of fixed-size elements: use StringsView".into()
                } else {
                    format!(
                        "needs {} bytes, was given {}",
                        expected.map_or("too many".to_owned(), |n| n.to_string()),
                        data.len()
                    )
                    .into()
                },
            });
        }
        Ok(TensorView { dtype, shape, data })
    }

    /// For places that have proved that the bytes fit the shape.
    pub(crate) fn trusted(dtype: DType, shape: Shape, data: &'a [u8]) -> Self {
        debug_assert_eq!(shape.elements() * dtype.size(), data.len());
        TensorView { dtype, shape, data }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        self.shape.dims()
    }

    pub(crate) fn shape_inline(&self) -> Shape {
        self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.elements()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as little-endian bytes in C order.
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// The values, typed, in C order.
    ///
    /// # Errors
    /// [`Error::WrongDType`] for another type; [`Error::NotBorrowable`] if the bytes are not aligned for `T`, which
    /// happens only to views made by [`from_bytes`](Self::from_bytes) of unaligned bytes.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        if T::DTYPE != self.dtype {
            return Err(Error::WrongDType { expected: T::DTYPE, found: self.dtype });
        }
        bytemuck::try_cast_slice(self.data).map_err(|error| Error::NotBorrowable {
            attribute: self.dtype.name().into(),
            reason: format!("the bytes do not suit the type ({error}): use `to_vec`").into(),
        })
    }

    /// The values of a bool tensor.
    ///
    /// # Errors
    /// [`Error::WrongDType`] for another type; [`Error::Unsupported`] if a byte is neither 0 nor 1.
    pub fn as_bools(&self) -> Result<&'a [bool]> {
        if self.dtype != DType::Bool {
            return Err(Error::WrongDType { expected: DType::Bool, found: self.dtype });
        }
        bytemuck::checked::try_cast_slice(self.data).map_err(|error| Error::Unsupported {
            what: "bool view".into(),
            problem: format!("a byte is neither 0 nor 1 ({error})").into(),
        })
    }

    /// The values, copied.
    ///
    /// # Errors
    /// [`Error::WrongDType`] for another type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::WrongDType { expected: T::DTYPE, found: self.dtype });
        }
        let mut out = vec![T::zeroed(); self.len()];
        bytemuck::cast_slice_mut(&mut out).copy_from_slice(self.data);
        Ok(out)
    }

    /// The sub-tensor of rows `start..end` of the outermost dimension, without a copy.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a scalar, or rows beyond the extent.
    pub fn rows(&self, rows: std::ops::Range<usize>) -> Result<TensorView<'a>> {
        let extent = self.shape.dims().first().copied();
        match extent {
            Some(extent) if rows.start <= rows.end && rows.end <= extent => {
                let row = self.data.len().checked_div(extent).unwrap_or(0);
                let mut shape = self.shape;
                shape.set(0, rows.end - rows.start);
                let data = &self.data[rows.start * row..rows.end * row];
                Ok(TensorView { dtype: self.dtype, shape, data })
            }
            _ => Err(Error::Unsupported {
                what: format!("rows {rows:?}").into(),
                problem: match extent {
                    None => "a scalar has no rows".into(),
                    Some(extent) => format!("the outermost dimension has {extent} rows").into(),
                },
            }),
        }
    }

    /// The values as an [`ndarray`] view.
    ///
    /// # Errors
    /// As [`as_slice`](Self::as_slice).
    #[cfg(feature = "ndarray")]
    pub fn as_array<T: Element>(&self) -> Result<ndarray::ArrayViewD<'a, T>> {
        let values = self.as_slice::<T>()?;
        ndarray::ArrayViewD::from_shape(self.shape.dims(), values).map_err(|error| {
            Error::Unsupported {
                what: format!("array of shape {}", self.shape).into(),
                problem: error.to_string().into(),
            }
        })
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorView({}{})", self.dtype, self.shape)
    }
}

impl PartialEq for TensorView<'_> {
    /// Equality of dtype, shape and bits: two NaNs of the same bits are equal, 0.0 and -0.0 are not.
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.data == other.data
    }
}

/// A tensor of strings, borrowed. Shape `[]` is one string.
#[derive(Clone, Copy)]
pub struct StringsView<'a> {
    dtype: DType,
    shape: Shape,
    parts: Parts<'a>,
}

#[derive(Clone, Copy)]
enum Parts<'a> {
    One(&'a [u8]),
    Text(&'a [&'a str]),
    Binary(&'a [&'a [u8]]),
    /// Bytes back to back, with the end of each element as little-endian integers counted from `base` before `data`.
    Packed {
        data: &'a [u8],
        ends: &'a [u8],
        width: OffsetWidth,
        base: u64,
    },
}

impl<'a> StringsView<'a> {
    /// One `utf8` string.
    pub fn scalar(text: &'a str) -> Self {
        StringsView { dtype: DType::Utf8, shape: Shape::SCALAR, parts: Parts::One(text.as_bytes()) }
    }

    /// One `bytes` string.
    pub fn scalar_bytes(bytes: &'a [u8]) -> Self {
        StringsView { dtype: DType::Bytes, shape: Shape::SCALAR, parts: Parts::One(bytes) }
    }

    /// Several `utf8` strings of this shape, in C order.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the number of strings is not that of the shape.
    pub fn list(texts: &'a [&'a str], shape: &[usize]) -> Result<Self> {
        let shape = Self::counted(texts.len(), shape)?;
        Ok(StringsView { dtype: DType::Utf8, shape, parts: Parts::Text(texts) })
    }

    /// Several `bytes` strings of this shape, in C order.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn list_bytes(strings: &'a [&'a [u8]], shape: &[usize]) -> Result<Self> {
        let shape = Self::counted(strings.len(), shape)?;
        Ok(StringsView { dtype: DType::Bytes, shape, parts: Parts::Binary(strings) })
    }

    fn counted(found: usize, shape: &[usize]) -> Result<Shape> {
        let shape = Shape::new(shape)?;
        if shape.elements() == found {
            Ok(shape)
        } else {
            Err(Error::Unsupported {
                what: format!("strings of shape {shape}").into(),
                problem: format!("needs {} strings, was given {found}", shape.elements()).into(),
            })
        }
    }

    /// One string of a file whose bytes have been checked.
    pub(crate) fn one(dtype: DType, data: &'a [u8]) -> Self {
        StringsView { dtype, shape: Shape::SCALAR, parts: Parts::One(data) }
    }

    /// Strings of a file. Checks here, once, that the ends are ordered and end with `data`, and that `utf8` is UTF-8,
    /// so that the accessors cannot fail.
    pub(crate) fn packed(
        attribute: &str,
        dtype: DType,
        shape: Shape,
        data: &'a [u8],
        ends: &'a [u8],
        width: OffsetWidth,
        base: u64,
    ) -> Result<Self, FormatError> {
        let limit = base + data.len() as u64;
        let mut last = base;
        for element in 0..shape.elements() {
            let end = width.get(ends, element);
            if end < last || end > limit {
                return Err(FormatError::Offsets {
                    table: format!("attribute {attribute:?}, element ends of the sample"),
                    entry: element as u64,
                    expected: format!("{last}..={limit}"),
                    found: end,
                });
            }
            if dtype == DType::Utf8 {
                // In range: base <= last <= end <= limit, and the slice's length came from a usize.
                let text = &data[(last - base) as usize..(end - base) as usize];
                check_utf8(attribute, text)?;
            }
            last = end;
        }
        if last != limit {
            return Err(FormatError::Offsets {
                table: format!("attribute {attribute:?}, element ends of the sample"),
                entry: shape.elements() as u64,
                expected: format!("the last end to be {limit}"),
                found: last,
            });
        }
        Ok(StringsView { dtype, shape, parts: Parts::Packed { data, ends, width, base } })
    }

    /// `utf8` or `bytes`.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost first; `[]` for one string.
    pub fn shape(&self) -> &[usize] {
        self.shape.dims()
    }

    pub(crate) fn shape_inline(&self) -> Shape {
        self.shape
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.shape.elements()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of string `index` in C order, or `None` beyond the last.
    pub fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        if index >= self.len() {
            return None;
        }
        Some(match self.parts {
            Parts::One(data) => data,
            Parts::Text(texts) => texts[index].as_bytes(),
            Parts::Binary(strings) => strings[index],
            Parts::Packed { data, ends, width, base } => {
                let start = if index == 0 { base } else { width.get(ends, index - 1) };
                let end = width.get(ends, index);
                &data[(start - base) as usize..(end - base) as usize]
            }
        })
    }

    /// String `index` in C order, or `None` beyond the last or where the dtype is `bytes`.
    pub fn text(&self, index: usize) -> Option<&'a str> {
        if self.dtype != DType::Utf8 {
            return None;
        }
        // Checked on the way in, by `packed` or by having been a `&str`.
        self.bytes(index).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// All strings in C order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.len()).filter_map(|index| self.bytes(index))
    }
}

pub(crate) fn check_utf8(attribute: &str, bytes: &[u8]) -> Result<(), FormatError> {
    std::str::from_utf8(bytes).map(|_| ()).map_err(|error| FormatError::Utf8 {
        attribute: attribute.to_owned(),
        at: error.valid_up_to() as u64,
    })
}

impl fmt::Debug for StringsView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StringsView({}{})", self.dtype, self.shape)
    }
}

impl PartialEq for StringsView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.iter().eq(other.iter())
    }
}

/// The value of one attribute of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Fixed-size elements.
    Tensor(TensorView<'a>),
    /// Strings.
    Strings(StringsView<'a>),
}

impl<'a> Value<'a> {
    /// Element type.
    pub fn dtype(&self) -> DType {
        match self {
            Value::Tensor(tensor) => tensor.dtype(),
            Value::Strings(strings) => strings.dtype(),
        }
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        match self {
            Value::Tensor(tensor) => tensor.shape(),
            Value::Strings(strings) => strings.shape(),
        }
    }

    pub(crate) fn shape_inline(&self) -> Shape {
        match self {
            Value::Tensor(tensor) => tensor.shape_inline(),
            Value::Strings(strings) => strings.shape_inline(),
        }
    }

    /// The tensor, unless the value is of strings.
    pub fn as_tensor(&self) -> Option<&TensorView<'a>> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            Value::Strings(_) => None,
        }
    }

    /// The strings, unless the value is a tensor.
    pub fn as_strings(&self) -> Option<&StringsView<'a>> {
        match self {
            Value::Tensor(_) => None,
            Value::Strings(strings) => Some(strings),
        }
    }

    /// The values of a tensor, typed: [`TensorView::as_slice`].
    ///
    /// # Errors
    /// [`Error::WrongDType`] for strings or another type.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        match self {
            Value::Tensor(tensor) => tensor.as_slice(),
            Value::Strings(strings) => {
                Err(Error::WrongDType { expected: T::DTYPE, found: strings.dtype() })
            }
        }
    }

    /// The one string of a scalar `utf8` value.
    ///
    /// # Errors
    /// [`Error::WrongDType`] for anything else.
    pub fn as_str(&self) -> Result<&'a str> {
        match self {
            Value::Strings(strings) if strings.shape().is_empty() => strings
                .text(0)
                .ok_or(Error::WrongDType { expected: DType::Utf8, found: strings.dtype() }),
            other => Err(Error::WrongDType { expected: DType::Utf8, found: other.dtype() }),
        }
    }
}

impl<'a> From<TensorView<'a>> for Value<'a> {
    fn from(tensor: TensorView<'a>) -> Self {
        Value::Tensor(tensor)
    }
}

impl<'a> From<StringsView<'a>> for Value<'a> {
    fn from(strings: StringsView<'a>) -> Self {
        Value::Strings(strings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_of_0_makes_the_product_0_whatever_the_others_are() {
        let huge = 1usize << 62;
        for dims in [&[huge, 4, 0][..], &[0, huge, 4], &[huge, 0, 4]] {
            let shape = Shape::new(dims).unwrap();
            assert_eq!(shape.elements(), 0);
            assert!(TensorView::from_bytes(DType::F64, dims, &[]).is_ok());
        }
        assert!(Shape::new(&[huge, 4]).is_err());
    }
}
