//! One array: its header, and its elements brought into C order and little-endian.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use npyz::{Endianness, NpyHeader, Order, TypeChar};
use zip::ZipArchive;

use crate::convert::{malformed, quoted};
use crate::error::{Error, Result};
use crate::format::DType;

/// Longest header text that is read; numpy's own limit for strangers' files is 10,000.
const MAX_HEADER: usize = 1 << 16;

/// An array in memory: C order, little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Data,
}

/// The elements of an [`Array`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Fixed-size elements, back to back.
    Bytes(Vec<u8>),
    /// Strings of their own lengths.
    Strings(Vec<Vec<u8>>),
}

/// How the elements of a source look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fixed(DType),
    /// Strings in so many UTF-32 code points, padded with zeros.
    Utf32,
    /// Strings in so many bytes, padded with zeros.
    Padded,
}

/// The header of an array, as far as it matters.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) shape: Vec<usize>,
    pub(super) fortran: bool,
    /// Bytes of an element.
    pub(super) item: usize,
    /// Bytes of the parts of an element that have to be reversed; 1 if none.
    pub(super) swap: usize,
    /// Bytes of the header itself.
    pub(super) length: u64,
}

/// Most brackets in each other: plain arrays have two, and records, which are refused, a few more.
const MAX_DEPTH: usize = 8;

/// How many brackets stand in each other.
fn deepest(text: &[u8]) -> usize {
    let (mut depth, mut most) = (0usize, 0);
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

impl Header {
    /// Reads a header and nothing beyond it.
    pub(super) fn read(reader: &mut impl Read, path: &Path, place: &str) -> Result<Self> {
        let bad = |expected: &str, found: String| malformed(path, place, expected, found);
        let mut bytes = vec![0; 10];
        read_header_bytes(reader, &mut bytes, 0, path, place)?;
        if &bytes[..6] != b"\x93NUMPY" {
            return Err(bad("the signature of a .npy array", quoted(&bytes[..6])));
        }
        let length = if bytes[6] == 1 {
            usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))
        } else {
            bytes.resize(12, 0);
            read_header_bytes(reader, &mut bytes, 10, path, place)?;
            u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize
        };
        if length > MAX_HEADER {
            return Err(bad("a header of at most 65536 bytes", format!("{length}")));
        }
        let start = bytes.len();
        bytes.resize(start + length, 0);
        read_header_bytes(reader, &mut bytes, start, path, place)?;
        // npyz multiplies the extents without a check, so no text that could overflow reaches it.
        if !product_fits(&bytes[start..]) {
            return Err(bad("an array of less than 2^63 elements", quoted(&bytes[start..])));
        }
        // Its parser tries each bracket in several ways, so its time doubles and more with each level.
        if deepest(&bytes[start..]) > MAX_DEPTH {
            let expected = format!("a header of at most {MAX_DEPTH} brackets in each other");
            return Err(bad(&expected, quoted(&bytes[start..])));
        }
        let header = NpyHeader::from_reader(&bytes[..])
            .map_err(|e| bad("a header that numpy writes", e.to_string()))?;
        Self::interpret(&header, bytes.len() as u64)
            .ok_or_else(|| bad(READABLE, header.dtype().descr()))
            .and_then(|header| match header.bytes() {
                Some(_) => Ok(header),
                None => Err(bad("an array that fits in memory", format!("{:?}", header.shape))),
            })
    }

    fn interpret(header: &NpyHeader, length: u64) -> Option<Self> {
        let npyz::DType::Plain(descr) = header.dtype() else {
            return None;
        };
        let size = descr.size_field();
        let kind = match (descr.type_char(), size) {
            (TypeChar::UnicodeStr, _) => Kind::Utf32,
            (TypeChar::ByteStr, _) => Kind::Padded,
            (kind, _) => {
                let name = match (kind, size) {
                    (TypeChar::Bool, 1) => "|b1".to_owned(),
                    (TypeChar::Int | TypeChar::Uint, 1) => format!("|{}1", kind.to_str()),
                    (
                        TypeChar::Int | TypeChar::Uint | TypeChar::Float | TypeChar::Complex,
                        size,
                    ) => format!("<{}{size}", kind.to_str()),
                    _ => return None,
                };
                Kind::Fixed(DType::ALL.into_iter().find(|d| d.numpy() == Some(name.as_str()))?)
            }
        };
        let item = descr.num_bytes()?;
        let swap = match (descr.endianness(), kind) {
            (Endianness::Big, Kind::Fixed(DType::C64 | DType::C128)) => item / 2,
            (Endianness::Big, Kind::Fixed(_)) => item,
            (Endianness::Big, Kind::Utf32) => 4,
            _ => 1,
        };
        let shape =
            header.shape().iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>()?;
        Some(Header { kind, shape, fortran: header.order() == Order::Fortran, item, swap, length })
    }

    /// Bytes of the elements; `None` beyond what memory can address.
    fn bytes(&self) -> Option<usize> {
        let extents = self.shape.iter().try_fold(self.item, |n, &extent| n.checked_mul(extent))?;
        isize::try_from(extents).ok()?;
        Some(extents)
    }

    pub(super) fn dtype(&self) -> DType {
        match self.kind {
            Kind::Fixed(dtype) => dtype,
            Kind::Utf32 => DType::Utf8,
            Kind::Padded => DType::Bytes,
        }
    }

    /// Elements of the source as elements of an array; `shape` is theirs.
    pub(super) fn decode(
        &self,
        mut bytes: Vec<u8>,
        shape: Vec<usize>,
        path: &Path,
        place: &str,
    ) -> Result<Array> {
        if self.swap > 1 {
            bytes.chunks_exact_mut(self.swap).for_each(<[u8]>::reverse);
        }
        if self.fortran {
            bytes = c_order(&bytes, &shape, self.item);
        }
        let wrong = |element: usize, expected: &str, found: String| {
            malformed(path, format!("{place}, element {element}"), expected, found)
        };
        let data = match self.kind {
            Kind::Fixed(dtype) => {
                if dtype == DType::Bool
                    && let Some(at) = bytes.iter().position(|&byte| byte > 1)
                {
                    return Err(wrong(at, "a bool stored as 0 or 1", bytes[at].to_string()));
                }
                Data::Bytes(bytes)
            }
            // numpy itself makes no difference between no byte and one zero byte.
            Kind::Padded | Kind::Utf32 if self.item == 0 => {
                Data::Strings(vec![Vec::new(); shape.iter().product()])
            }
            Kind::Padded => Data::Strings(bytes.chunks_exact(self.item).map(unpadded).collect()),
            Kind::Utf32 => Data::Strings(
                bytes
                    .chunks_exact(self.item)
                    .enumerate()
                    .map(|(at, chunk)| {
                        utf8(chunk).map_err(|code| {
                            wrong(at, "Unicode text", format!("the code {code:#x}"))
                        })
                    })
                    .collect::<Result<_>>()?,
            ),
        };
        Ok(Array { dtype: self.dtype(), shape, data })
    }
}

const READABLE: &str = "bool, integers, floats of 16, 32 or 64 bits, complex numbers or strings, not pickled or structured";

fn read_header_bytes(
    reader: &mut impl Read,
    bytes: &mut [u8],
    from: usize,
    path: &Path,
    place: &str,
) -> Result<()> {
    reader.read_exact(&mut bytes[from..]).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => {
            malformed(path, place, "the header of a .npy array", "the end of the data")
        }
        _ => Error::io("read the header", path, e),
    })
}

/// Whether the numbers in a header's text have a product below 2^63.
fn product_fits(text: &[u8]) -> bool {
    text.split(|byte| !byte.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| std::str::from_utf8(digits).ok()?.parse::<i64>().ok())
        .try_fold(1_i64, |product, number| product.checked_mul(number?.max(1)))
        .is_some()
}

/// The elements of a Fortran-order array in C order.
fn c_order(bytes: &[u8], shape: &[usize], item: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = item;
    for extent in shape {
        strides.push(stride);
        stride *= extent;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    let mut from = 0;
    while out.len() < bytes.len() {
        out.extend_from_slice(&bytes[from..from + item]);
        for dim in (0..shape.len()).rev() {
            index[dim] += 1;
            from += strides[dim];
            if index[dim] < shape[dim] {
                break;
            }
            from -= strides[dim] * shape[dim];
            index[dim] = 0;
        }
    }
    out
}

fn unpadded(chunk: &[u8]) -> Vec<u8> {
    let end = chunk.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    chunk[..end].to_vec()
}

/// UTF-32 to UTF-8, or the first code that is no character.
fn utf8(chunk: &[u8]) -> std::result::Result<Vec<u8>, u32> {
    let codes: Vec<u32> = chunk
        .chunks_exact(4)
        .map(|code| u32::from_le_bytes([code[0], code[1], code[2], code[3]]))
        .collect();
    let end = codes.iter().rposition(|&code| code != 0).map_or(0, |last| last + 1);
    let mut text = String::with_capacity(end);
    for &code in &codes[..end] {
        text.push(char::from_u32(code).ok_or(code)?);
    }
    Ok(text.into_bytes())
}

/// Exactly `length` bytes. The buffer grows as they arrive, so a lie about the length costs nothing.
pub(super) fn read_bytes(
    reader: &mut impl Read,
    length: usize,
    path: &Path,
    place: &str,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length.min(1 << 20));
    let read = reader.by_ref().take(length as u64).read_to_end(&mut bytes);
    read.map_err(|e| Error::io("read the array", path, e))?;
    if bytes.len() != length {
        let found = format!("{} bytes", bytes.len());
        return Err(malformed(path, place, format!("{length} bytes of elements"), found));
    }
    Ok(bytes)
}

fn read_array(reader: &mut impl Read, path: &Path, place: &str) -> Result<Array> {
    let header = Header::read(reader, path, place)?;
    // Checked when the header was read.
    let bytes = read_bytes(reader, header.bytes().unwrap_or(usize::MAX), path, place)?;
    let mut further = [0];
    match reader.read(&mut further) {
        Ok(0) => {}
        Ok(_) => return Err(malformed(path, place, "the end of the data", "further bytes")),
        Err(e) => return Err(Error::io("read the array", path, e)),
    }
    let shape = header.shape.clone();
    header.decode(bytes, shape, path, place)
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).map_err(|e| Error::io("open the file", path, e))?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

/// Reads a `.npy` file.
///
/// # Errors
/// [`Error::Io`], or [`Error::Convert`] if it is malformed or of a type that is not read.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Array> {
    let path = path.as_ref();
    read_array(&mut open(path)?, path, "the array")
}

/// Reads a `.npz` file: its arrays by name, in the file's order.
///
/// # Errors
/// [`Error::Io`], or [`Error::Convert`] if it is malformed or has arrays of types that are not read.
pub fn read_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Array)>> {
    let path = path.as_ref();
    let archive = |place: &str, e: zip::result::ZipError| match e {
        zip::result::ZipError::Io(e) => Error::io("read the archive", path, e),
        e => malformed(path, place, "a .npz archive", e.to_string()),
    };
    let mut zip = ZipArchive::new(open(path)?).map_err(|e| archive("the archive", e))?;
    let mut arrays: Vec<(String, Array)> = Vec::with_capacity(zip.len());
    for index in 0..zip.len() {
        let place = format!("entry {index}");
        let mut entry = zip.by_index(index).map_err(|e| archive(&place, e))?;
        let name = entry.name().map_err(|e| archive(&place, e))?.into_owned();
        let Some(name) = name.strip_suffix(".npy") else {
            return Err(malformed(path, place, "arrays named <name>.npy", quoted(name.as_bytes())));
        };
        let place = format!("array {name:?}");
        if arrays.iter().any(|(known, _)| known == name) {
            return Err(malformed(path, place, "each array once", "a second one"));
        }
        arrays.push((name.to_owned(), read_array(&mut entry, path, &place)?));
    }
    Ok(arrays)
}
