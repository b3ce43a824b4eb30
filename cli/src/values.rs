//! Values as text, abbreviated as numpy does it, and as JSON in full.

#![forbid(unsafe_code)]

use std::io::{self, Write};

use fencepost::{DType, StringsView, TensorView, Value};

use crate::text;

/// Shown at each end of a dimension that is too long to show.
const EDGE: usize = 3;
/// Characters of a string, and bytes of a binary one, that are shown.
const LONGEST_TEXT: usize = 72;
const LONGEST_BYTES: usize = 24;

/// One element of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scalar {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    /// With the number of significant digits that its type has.
    Small(f32, usize),
    Single(f32),
    Double(f64),
    ComplexSingle([f32; 2]),
    ComplexDouble([f64; 2]),
}

/// A floating-point number of at most 16 bits: sign, `exponent` bits, `mantissa` bits.
fn small_float(bits: u16, exponent: u32, mantissa: u32, has_infinity: bool) -> f32 {
    let sign = if bits >> (exponent + mantissa) & 1 == 1 { -1.0 } else { 1.0 };
    let bias = (1 << (exponent - 1)) - 1;
    let power = i32::from(bits >> mantissa & ((1 << exponent) - 1));
    let fraction = bits & ((1 << mantissa) - 1);
    let most = (1 << exponent) - 1;
    let unit = f32::powi(2.0, -(mantissa as i32));
    if power == most && has_infinity {
        return if fraction == 0 { sign * f32::INFINITY } else { f32::NAN };
    }
    if power == most && fraction == (1 << mantissa) - 1 && !has_infinity {
        return f32::NAN;
    }
    if power == 0 {
        return sign * f32::from(fraction) * unit * f32::powi(2.0, 1 - bias);
    }
    sign * (1.0 + f32::from(fraction) * unit) * f32::powi(2.0, power - bias)
}

/// Element `index` of a tensor's bytes; `None` beyond the last.
fn scalar(dtype: DType, bytes: &[u8], index: usize) -> Option<Scalar> {
    let size = dtype.size();
    let bytes = bytes.get(index.checked_mul(size)?..)?.get(..size)?;
    fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.first_chunk().copied()
    }
    Some(match dtype {
        DType::Bool => Scalar::Bool(bytes[0] != 0),
        DType::U8 => Scalar::Unsigned(bytes[0].into()),
        DType::U16 => Scalar::Unsigned(u16::from_le_bytes(array(bytes)?).into()),
        DType::U32 => Scalar::Unsigned(u32::from_le_bytes(array(bytes)?).into()),
        DType::U64 => Scalar::Unsigned(u64::from_le_bytes(array(bytes)?)),
        DType::I8 => Scalar::Signed(i8::from_le_bytes(array(bytes)?).into()),
        DType::I16 => Scalar::Signed(i16::from_le_bytes(array(bytes)?).into()),
        DType::I32 => Scalar::Signed(i32::from_le_bytes(array(bytes)?).into()),
        DType::I64 => Scalar::Signed(i64::from_le_bytes(array(bytes)?)),
        DType::F16 => Scalar::Small(small_float(u16::from_le_bytes(array(bytes)?), 5, 10, true), 4),
        DType::BF16 => {
            let bits = u32::from(u16::from_le_bytes(array(bytes)?)) << 16;
            Scalar::Small(f32::from_bits(bits), 3)
        }
        DType::F32 => Scalar::Single(f32::from_le_bytes(array(bytes)?)),
        DType::F64 => Scalar::Double(f64::from_le_bytes(array(bytes)?)),
        DType::C64 => Scalar::ComplexSingle([
            f32::from_le_bytes(array(bytes)?),
            f32::from_le_bytes(array(&bytes[4..])?),
        ]),
        DType::C128 => Scalar::ComplexDouble([
            f64::from_le_bytes(array(bytes)?),
            f64::from_le_bytes(array(&bytes[8..])?),
        ]),
        DType::F8E4M3 => Scalar::Small(small_float(bytes[0].into(), 4, 3, false), 2),
        DType::F8E5M2 => Scalar::Small(small_float(bytes[0].into(), 5, 2, true), 2),
        _ => return None,
    })
}

/// A number with at most `digits` significant digits, the shortest that tells it from its neighbours.
fn float(value: f64, shortest: String, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    let figures = shortest.split('e').next().unwrap_or_default();
    if figures.chars().filter(char::is_ascii_digit).count() <= digits + 1 {
        return shortest;
    }
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    format!("{rounded:?}")
}

impl Scalar {
    fn text(self) -> String {
        let single = |value: f32| float(value.into(), format!("{value:?}"), 8);
        let double = |value: f64| float(value, format!("{value:?}"), 8);
        let complex = |real: String, imaginary: String| {
            let plus = if imaginary.starts_with('-') { "" } else { "+" };
            format!("{real}{plus}{imaginary}j")
        };
        match self {
            Scalar::Bool(value) => value.to_string(),
            Scalar::Unsigned(value) => value.to_string(),
            Scalar::Signed(value) => value.to_string(),
            Scalar::Small(value, digits) => float(value.into(), format!("{value:?}"), digits),
            Scalar::Single(value) => single(value),
            Scalar::Double(value) => double(value),
            Scalar::ComplexSingle([re, im]) => complex(single(re), single(im)),
            Scalar::ComplexDouble([re, im]) => complex(double(re), double(im)),
        }
    }

    fn write_json(self, out: &mut impl Write) -> io::Result<()> {
        fn single(value: f32, out: &mut impl Write) -> io::Result<()> {
            match not_finite(value.into()) {
                Some(name) => write!(out, "\"{name}\""),
                None => Ok(serde_json::to_writer(out, &value)?),
            }
        }
        fn double(value: f64, out: &mut impl Write) -> io::Result<()> {
            match not_finite(value) {
                Some(name) => write!(out, "\"{name}\""),
                None => Ok(serde_json::to_writer(out, &value)?),
            }
        }
        match self {
            Scalar::Bool(value) => write!(out, "{value}"),
            Scalar::Unsigned(value) => write!(out, "{value}"),
            Scalar::Signed(value) => write!(out, "{value}"),
            Scalar::Small(value, _) | Scalar::Single(value) => single(value, out),
            Scalar::Double(value) => double(value, out),
            Scalar::ComplexSingle([re, im]) => {
                out.write_all(b"[")?;
                single(re, out)?;
                out.write_all(b",")?;
                single(im, out)?;
                out.write_all(b"]")
            }
            Scalar::ComplexDouble([re, im]) => {
                out.write_all(b"[")?;
                double(re, out)?;
                out.write_all(b",")?;
                double(im, out)?;
                out.write_all(b"]")
            }
        }
    }
}

/// What JSON cannot say of a number.
fn not_finite(value: f64) -> Option<&'static str> {
    if value.is_finite() {
        None
    } else if value.is_nan() {
        Some("NaN")
    } else if value > 0.0 {
        Some("Infinity")
    } else {
        Some("-Infinity")
    }
}

/// `f32[9, 5]`.
pub(crate) fn dtype_and_shape(value: &Value<'_>) -> String {
    format!("{}{:?}", value.dtype(), value.shape())
}

/// The value in a few lines: dimensions of more than twice [`EDGE`] are cut in the middle.
pub(crate) fn lines(value: &Value<'_>) -> Vec<String> {
    let element = |index: usize| match value {
        Value::Tensor(tensor) => tensor_element(tensor, index),
        Value::Strings(strings) => string_element(strings, index),
    };
    let shape = value.shape();
    if is_empty(shape) {
        return vec!["[]".to_owned()];
    }
    let numbers = matches!(value, Value::Tensor(_));
    let mut shown = Vec::new();
    indices(shape, 0, &mut |index| shown.push(element(index)));
    // Numbers stand in columns; strings would only be torn apart.
    let widest = if numbers { shown.iter().map(|text| text.chars().count()).max() } else { None };
    let mut shown = shown.into_iter();
    let mut text = String::new();
    let mut next = || {
        let element = shown.next().unwrap_or_default();
        format!("{element:>width$}", width = if shape.is_empty() { 0 } else { widest.unwrap_or(0) })
    };
    write_nested(shape, 1, &mut next, &mut text);
    text.lines().map(str::to_owned).collect()
}

fn tensor_element(tensor: &TensorView<'_>, index: usize) -> String {
    scalar(tensor.dtype(), tensor.bytes(), index).map_or_else(|| "?".into(), Scalar::text)
}

fn string_element(strings: &StringsView<'_>, index: usize) -> String {
    if let Some(text) = strings.text(index) {
        return quoted(text);
    }
    let bytes = strings.bytes(index).unwrap_or_default();
    let dots = if bytes.len() > LONGEST_BYTES { "..." } else { "" };
    let shown = &bytes[..bytes.len().min(LONGEST_BYTES)];
    format!("b\"{}{dots}\"", shown.escape_ascii())
}

fn quoted(string: &str) -> String {
    let cut = string.char_indices().nth(LONGEST_TEXT).map(|(at, _)| at);
    let (shown, dots) = match cut {
        Some(at) => (&string[..at], "..."),
        None => (string, ""),
    };
    let escaped = shown.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}{dots}\"", text::printable(&escaped))
}

/// The parts of a dimension that are shown.
fn ends(extent: usize) -> (usize, usize) {
    if extent > 2 * EDGE { (EDGE, extent - EDGE) } else { (extent, extent) }
}

/// Calls `each` with the flat index of every element that is shown, in order.
fn indices(shape: &[usize], base: usize, each: &mut impl FnMut(usize)) {
    let Some((&extent, rest)) = shape.split_first() else {
        each(base);
        return;
    };
    let step: usize = rest.iter().product();
    let (head, tail) = ends(extent);
    for at in (0..head).chain(tail..extent) {
        indices(rest, base + at * step, each);
    }
}

fn write_nested(
    shape: &[usize],
    depth: usize,
    next: &mut impl FnMut() -> String,
    out: &mut String,
) {
    let Some((&extent, rest)) = shape.split_first() else {
        out.push_str(&next());
        return;
    };
    let (head, tail) = ends(extent);
    // Rows stand below each other, as far in as they are deep.
    let between =
        if rest.is_empty() { ", ".to_owned() } else { format!(",\n{}", " ".repeat(depth)) };
    out.push('[');
    for at in (0..head).chain(tail..extent) {
        if at > 0 {
            out.push_str(&between);
        }
        if at == tail && tail > head {
            out.push_str("...");
            out.push_str(&between);
        }
        write_nested(rest, depth + 1, next, out);
    }
    out.push(']');
}

/// Whether there is nothing to nest. The other extents may then be anything: a file of a few kilobytes can have the shape
/// `[2^40, 0]`, and products of extents mean something only where there are elements.
fn is_empty(shape: &[usize]) -> bool {
    shape.contains(&0)
}

/// The whole value as nested JSON arrays; `[]` if it has no elements.
pub(crate) fn write_json(value: &Value<'_>, out: &mut impl Write) -> io::Result<()> {
    if is_empty(value.shape()) {
        return out.write_all(b"[]");
    }
    nested_json(value, value.shape(), 0, out)
}

fn nested_json(
    value: &Value<'_>,
    shape: &[usize],
    base: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some((&extent, rest)) = shape.split_first() else {
        return element_json(value, base, out);
    };
    let step: usize = rest.iter().product();
    out.write_all(b"[")?;
    for at in 0..extent {
        if at > 0 {
            out.write_all(b",")?;
        }
        nested_json(value, rest, base + at * step, out)?;
    }
    out.write_all(b"]")
}

fn element_json(value: &Value<'_>, index: usize, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::Tensor(tensor) => match scalar(tensor.dtype(), tensor.bytes(), index) {
            Some(scalar) => scalar.write_json(out),
            None => out.write_all(b"null"),
        },
        Value::Strings(strings) => match strings.text(index) {
            Some(text) => Ok(serde_json::to_writer(out, text)?),
            None => {
                out.write_all(b"\"")?;
                for byte in strings.bytes(index).unwrap_or_default() {
                    write!(out, "{byte:02x}")?;
                }
                out.write_all(b"\"")
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: impl Into<Value<'static>>) -> String {
        let mut out = Vec::new();
        write_json(&value.into(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn tensor<T: fencepost::Element>(values: &'static [T], shape: &[usize]) -> Value<'static> {
        TensorView::from_slice(values, shape).unwrap().into()
    }

    #[test]
    fn small_floats_are_what_their_bits_say() {
        for (bits, value) in
            [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 5.9604645e-8), (0x7bff, 65504.0), (0, 0.0)]
        {
            assert_eq!(small_float(bits, 5, 10, true), value);
        }
        assert_eq!(small_float(0x7c00, 5, 10, true), f32::INFINITY);
        assert!(small_float(0x7e00, 5, 10, true).is_nan());
        // OCP 8-bit formats: greatest values, least subnormals, and E4M3 has no infinity.
        assert_eq!(small_float(0x7e, 4, 3, false), 448.0);
        assert_eq!(small_float(0x01, 4, 3, false), 0.001953125);
        assert!(small_float(0x7f, 4, 3, false).is_nan());
        assert_eq!(small_float(0x7b, 5, 2, true), 57344.0);
        assert_eq!(small_float(0xfc, 5, 2, true), f32::NEG_INFINITY);
    }

    #[test]
    fn json_keeps_every_value() {
        assert_eq!(json(tensor(&[u64::MAX, 0], &[2])), "[18446744073709551615,0]");
        assert_eq!(json(tensor(&[0.1f32, f32::NAN], &[1, 2])), "[[0.1,\"NaN\"]]");
        assert_eq!(
            json(tensor(&[f64::INFINITY, -f64::INFINITY], &[2])),
            "[\"Infinity\",\"-Infinity\"]"
        );
        assert_eq!(json(tensor(&[[1.0f32, -2.5]], &[])), "[1.0,-2.5]");
        assert_eq!(json(tensor::<i64>(&[], &[2, 0])), "[]");
        assert_eq!(json(tensor::<i64>(&[], &[1 << 40, 0, 1 << 40])), "[]");
        assert_eq!(json(tensor(&[-7i8], &[])), "-7");
        assert_eq!(json(StringsView::scalar("a\"\u{1b}")), r#""a\"\u001b""#);
        assert_eq!(json(StringsView::scalar_bytes(&[0, 255])), "\"00ff\"");
        assert_eq!(json(StringsView::list(&["a", ""], &[2]).unwrap()), r#"["a",""]"#);
    }

    #[test]
    fn short_values_are_shown_whole() {
        assert_eq!(lines(&tensor(&[1i64, -20, 3, 4], &[2, 2])), ["[[  1, -20],", " [  3,   4]]"]);
        assert_eq!(lines(&tensor(&[1.0f32, 12.011], &[2])), ["[   1.0, 12.011]"]);
        assert_eq!(lines(&tensor(&[7u8], &[])), ["7"]);
        assert_eq!(lines(&tensor::<i64>(&[], &[2, 0])), ["[]"]);
        assert_eq!(lines(&tensor::<i64>(&[], &[1 << 40, 0, 1 << 40])), ["[]"]);
        assert_eq!(lines(&tensor::<i64>(&[], &[0])), ["[]"]);
        assert_eq!(lines(&StringsView::scalar("C\u{7}\"").into()), [r#""C\u{7}\"""#]);
    }

    #[test]
    fn long_values_are_cut_in_the_middle() {
        const VALUES: [i32; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
        assert_eq!(lines(&tensor(&VALUES[..7], &[7])), ["[0, 1, 2, ..., 4, 5, 6]"]);
        assert_eq!(
            lines(&tensor(&VALUES, &[7, 2])),
            [
                "[[ 0,  1],",
                " [ 2,  3],",
                " [ 4,  5],",
                " ...,",
                " [ 8,  9],",
                " [10, 11],",
                " [12, 13]]"
            ]
        );
        assert_eq!(
            lines(&tensor(&VALUES, &[2, 7])),
            ["[[ 0,  1,  2, ...,  4,  5,  6],", " [ 7,  8,  9, ..., 11, 12, 13]]"]
        );
    }

    #[test]
    fn numbers_have_the_digits_of_their_type() {
        let text = |scalar: Scalar| scalar.text();
        assert_eq!(text(Scalar::Double(std::f64::consts::PI)), "3.1415927");
        assert_eq!(text(Scalar::Double(0.1)), "0.1");
        assert_eq!(text(Scalar::Double(-1.5e-300)), "-1.5e-300");
        assert_eq!(text(Scalar::Double(123_456_789_012.0)), "123456790000.0");
        assert_eq!(text(Scalar::Small(0.099_975_586, 4)), "0.09998");
        assert_eq!(text(Scalar::Single(f32::NAN)), "nan");
        assert_eq!(text(Scalar::ComplexDouble([1.0, -0.5])), "1.0-0.5j");
        assert_eq!(text(Scalar::ComplexSingle([1.0, 0.5])), "1.0+0.5j");
    }

    #[test]
    fn three_dimensions_nest() {
        const VALUES: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(
            lines(&tensor(&VALUES, &[2, 2, 2])),
            ["[[[0, 1],", "  [2, 3]],", " [[4, 5],", "  [6, 7]]]"]
        );
    }
}
