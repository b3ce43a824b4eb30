//! numpy files: folders of samples in `.npy` or `.npz`, and whole arrays with tables of offsets.
//!
//! - [`Samples`] reads a folder with a file for each sample, in natural order (`s2` before `s10`): `.npz` files with named
//!   arrays (what `numpy.savez` and `savez_compressed` write), or `.npy` files with one array.
//! - [`Arrays`] reads a folder of whole arrays, each the samples' values back to back, with tables of N + 1 offsets.
//!
//! Every array comes out in C order and little-endian: big-endian and Fortran-order sources are converted. `<U` strings become
//! `utf8` and `S` strings `bytes` (without the zeros that numpy pads and cuts them with). Pickled objects, dates, records and
//! 80-bit floats are refused.
//!
//! # Whole arrays
//! ```text
//! folder/nodes_offsets.npy   [N + 1]    x.npy [total nodes, 11]   pos.npy [total nodes, 3]
//!        edges_offsets.npy   [N + 1]    edge_index.npy [2, total edges]
//!                                       y.npy [N, 19]
//! ```
//! A table is a file `<name>_offsets.npy`, `offsets.npy` or `ptr.npy`. An array with a table of its own name is cut by that one;
//! the others are cut by the one table that ends at their length, or have a row for each sample. Where lengths leave a choice,
//! [`Options`] has to name it, except that names which start with `edge` belong to the axis `edges` and others to `nodes` if
//! those fit. Arrays are cut along dimension 0, or along the last one if `index` is in their name or they are named `face`, as
//! PyTorch Geometric does. Memory follows the largest sample; tables are streamed as well.

#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use npyz::{Endianness, NpyHeader, Order, TypeChar, WriterBuilder};
use zip::ZipArchive;

use super::{malformed, quoted};
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
enum Kind {
    Fixed(DType),
    /// Strings in so many UTF-32 code points, padded with zeros.
    Utf32,
    /// Strings in so many bytes, padded with zeros.
    Padded,
}

/// The header of an array, as far as it matters.
#[derive(Debug, Clone)]
struct Header {
    kind: Kind,
    shape: Vec<usize>,
    fortran: bool,
    /// Bytes of an element.
    item: usize,
    /// Bytes of the parts of an element that have to be reversed; 1 if none.
    swap: usize,
    /// Bytes of the header itself.
    length: u64,
}

impl Header {
    /// Reads a header and nothing beyond it.
    fn read(reader: &mut impl Read, path: &Path, place: &str) -> Result<Self> {
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

    fn dtype(&self) -> DType {
        match self.kind {
            Kind::Fixed(dtype) => dtype,
            Kind::Utf32 => DType::Utf8,
            Kind::Padded => DType::Bytes,
        }
    }

    /// Elements of the source as elements of an array; `shape` is theirs.
    fn decode(
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
fn read_bytes(reader: &mut impl Read, length: usize, path: &Path, place: &str) -> Result<Vec<u8>> {
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

fn open(path: &Path) -> Result<BufReader<File>> {
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

/// Compares names as people do: runs of digits by their number.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let run = |s: &[u8]| s.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (x, rest_a) = a.split_at(run(a));
                let (y, rest_b) = b.split_at(run(b));
                let number = |s: &[u8]| -> usize { s.iter().take_while(|&&d| d == b'0').count() };
                let (p, q) = (&x[number(x)..], &y[number(y)..]);
                // Of equal numbers, the one with fewer leading zeros comes first.
                let order = p.len().cmp(&q.len()).then(p.cmp(q)).then(x.len().cmp(&y.len()));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) if x != y => return x.cmp(y),
            _ => (a, b) = (&a[1..], &b[1..]),
        }
    }
}

/// Files of a folder with one of the extensions, in natural order of their names.
fn list(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let unreadable = |e| Error::io("list the folder", folder, e);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(extension) = path.extension().and_then(OsStr::to_str) else {
            continue;
        };
        if !extensions.contains(&extension) {
            continue;
        }
        let name = path.file_name().and_then(OsStr::to_str).ok_or_else(|| {
            malformed(folder, "the folder", "file names in UTF-8", format!("{path:?}"))
        })?;
        names.push(name.to_owned());
    }
    names.sort_by(|a, b| natural(a, b));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// The name of a listed file without its extension.
fn stem(path: &Path) -> &str {
    path.file_stem().and_then(OsStr::to_str).unwrap_or_default()
}

/// A folder with a file for each sample.
#[derive(Debug)]
pub struct Samples {
    files: Vec<PathBuf>,
    next: usize,
    array: String,
}

impl Samples {
    /// Lists a folder's `.npz` or `.npy` files; `array` names the one array of a `.npy` file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Convert`] if there are none, or files of both kinds.
    pub fn open(folder: impl AsRef<Path>, array: impl Into<String>) -> Result<Self> {
        let folder = folder.as_ref();
        let files = list(folder, &["npy", "npz"])?;
        let zipped =
            files.iter().filter(|path| path.extension() == Some(OsStr::new("npz"))).count();
        if files.is_empty() || (zipped != 0 && zipped != files.len()) {
            let found = format!("{zipped} .npz and {} .npy files", files.len() - zipped);
            let expected = "samples as .npz files or as .npy files, not both";
            return Err(malformed(folder, "the folder", expected, found));
        }
        Ok(Samples { files, next: 0, array: array.into() })
    }

    /// The samples' files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The arrays of the next sample, or `None` after the last.
    ///
    /// # Errors
    /// As [`read_npy`] and [`read_npz`].
    pub fn read(&mut self) -> Result<Option<Vec<(String, Array)>>> {
        let Some(path) = self.files.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        if path.extension() == Some(OsStr::new("npz")) {
            return read_npz(path).map(Some);
        }
        Ok(Some(vec![(self.array.clone(), read_npy(path)?)]))
    }
}

/// How whole arrays are cut, where their names and lengths do not say it.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Options {
    cuts: BTreeMap<String, Option<String>>,
}

impl Options {
    /// Nothing beyond what names and lengths say.
    pub fn new() -> Self {
        Options::default()
    }

    /// Cuts an array by the table of this axis.
    pub fn along(mut self, array: impl Into<String>, axis: impl Into<String>) -> Self {
        self.cuts.insert(array.into(), Some(axis.into()));
        self
    }

    /// Takes row `i` of an array for sample `i`.
    pub fn per_sample(mut self, array: impl Into<String>) -> Self {
        self.cuts.insert(array.into(), None);
        self
    }
}

/// How one whole array gives samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayLayout {
    /// Name of the array.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents of a sample; `None` for the one along the axis.
    pub shape: Vec<Option<usize>>,
    /// Index of the axis in [`Arrays::axes`]; `None` if there is a row for each sample.
    pub axis: Option<usize>,
}

/// A folder of whole arrays and tables of offsets.
#[derive(Debug)]
pub struct Arrays {
    len: u64,
    next: u64,
    tables: Vec<Table>,
    axes: Vec<String>,
    arrays: Vec<Source>,
    layouts: Vec<ArrayLayout>,
}

/// Whether PyG concatenates attributes of this name along the last dimension.
pub(crate) fn along_last(name: &str) -> bool {
    name.contains("index") || name == "face"
}

impl Arrays {
    /// Opens the arrays of a folder and finds out how they are cut.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Convert`] if a file is malformed, tables differ in length, or an array fits none of them;
    /// [`Error::Unsupported`] if one fits several and `options` do not choose.
    pub fn open(folder: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let folder = folder.as_ref();
        let files = list(folder, &["npy"])?;
        let (tables, arrays): (Vec<&PathBuf>, Vec<&PathBuf>) =
            files.iter().partition(|path| axis_of_table(stem(path)).is_some());
        let names: Vec<&str> = arrays.iter().map(|path| stem(path)).collect();
        let tables =
            tables.into_iter().map(|path| Table::open(path, &names)).collect::<Result<Vec<_>>>()?;
        let Some(first) = tables.first() else {
            let expected = "a table of offsets: <name>_offsets.npy, offsets.npy or ptr.npy";
            return Err(malformed(folder, "the folder", expected, "none"));
        };
        let len = first.len;
        for (i, table) in tables.iter().enumerate() {
            if table.len != len {
                let expected = format!("{} entries, as in {}", len + 1, first.path.display());
                return Err(malformed(
                    &table.path,
                    "the array",
                    expected,
                    format!("{}", table.len + 1),
                ));
            }
            if let Some(other) = tables[..i].iter().find(|other| other.axis == table.axis) {
                let expected = format!("one table for the axis {}", table.axis);
                let found = format!("another one, {}", other.path.display());
                return Err(malformed(&table.path, "the folder", expected, found));
            }
        }
        for name in options.cuts.keys() {
            if !names.contains(&name.as_str()) {
                return Err(malformed(
                    folder,
                    "the folder",
                    format!("an array {name}.npy"),
                    "none",
                ));
            }
        }
        let mut sources = Vec::new();
        let mut layouts = Vec::new();
        for path in arrays {
            let (source, layout) = Source::open(path, &tables, len, options)?;
            sources.push(source);
            layouts.push(layout);
        }
        let axes = tables.iter().map(|table| table.axis.clone()).collect();
        Ok(Arrays { len, next: 0, tables, axes, arrays: sources, layouts })
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Names of the axes, one for each table.
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// The arrays, by name.
    pub fn arrays(&self) -> &[ArrayLayout] {
        &self.layouts
    }

    /// Reads the next sample: its length along each axis, and its arrays in the order of [`arrays`](Self::arrays). `None`
    /// after the last.
    ///
    /// # Errors
    /// [`Error::Convert`] if a table's entries are no offsets or a file is cut off.
    pub fn read(&mut self) -> Result<Option<(Vec<usize>, Vec<Array>)>> {
        if self.next == self.len {
            return Ok(None);
        }
        let lengths = self.tables.iter_mut().map(Table::next).collect::<Result<Vec<_>>>()?;
        let mut arrays = Vec::with_capacity(self.arrays.len());
        for source in &mut self.arrays {
            let length = source.axis.map_or(1, |axis| lengths[axis]);
            arrays.push(source.read(length, self.next)?);
        }
        self.next += 1;
        Ok(Some((lengths, arrays)))
    }
}

/// The axis that a file of this name would be a table of.
fn axis_of_table(stem: &str) -> Option<&str> {
    match stem {
        "ptr" => Some("nodes"),
        "offsets" => Some("rows"),
        _ => stem.strip_suffix("_offsets"),
    }
}

/// A table of offsets, entry by entry.
#[derive(Debug)]
struct Table {
    path: PathBuf,
    axis: String,
    /// The array of the same name, if there is one.
    array: Option<String>,
    /// Entries less one: the number of samples.
    len: u64,
    total: u64,
    reader: BufReader<File>,
    header: Header,
    entry: u64,
    last: u64,
}

impl Table {
    fn open(path: &Path, arrays: &[&str]) -> Result<Self> {
        let name = axis_of_table(stem(path)).unwrap_or_default();
        // PyG infers the number of nodes from `x`, and the number of edges from `edge_index`.
        let (axis, array) = match name {
            _ if !arrays.contains(&name) => (name, None),
            "x" => ("nodes", Some("x")),
            "edge_index" => ("edges", Some(name)),
            _ => (name, Some(name)),
        };
        let mut reader = open(path)?;
        let header = Header::read(&mut reader, path, "the header")?;
        if header.shape.len() != 1 || header.shape[0] == 0 || !header.dtype().is_integer() {
            let found = format!("{} {:?}", header.dtype(), header.shape);
            return Err(malformed(path, "the header", "a table of integers [samples + 1]", found));
        }
        let len = header.shape[0] as u64 - 1;
        let mut table = Table {
            path: path.to_owned(),
            axis: axis.to_owned(),
            array: array.map(str::to_owned),
            len,
            total: 0,
            reader,
            header,
            entry: 0,
            last: 0,
        };
        // The last entry is the length of what the table cuts; it is read first, then all from the start.
        table.seek(len)?;
        table.total = table.value()?;
        table.seek(0)?;
        table.entry = 0;
        let first = table.value()?;
        if first != 0 {
            return Err(malformed(path, "entry 0", "0", first.to_string()));
        }
        Ok(table)
    }

    fn seek(&mut self, entry: u64) -> Result<()> {
        let at = self.header.length + entry * self.header.item as u64;
        self.entry = entry;
        let sought = self.reader.seek(SeekFrom::Start(at));
        sought.map(|_| ()).map_err(|e| Error::io(format!("seek to byte {at}"), &self.path, e))
    }

    fn value(&mut self) -> Result<u64> {
        let place = format!("entry {}", self.entry);
        self.entry += 1;
        let bytes = read_bytes(&mut self.reader, self.header.item, &self.path, &place)?;
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(&bytes);
        if self.header.swap > 1 {
            wide[..bytes.len()].reverse();
        }
        let value = u64::from_le_bytes(wide);
        // A negative number of the same width has the uppermost bit.
        let signed =
            matches!(self.header.dtype(), DType::I8 | DType::I16 | DType::I32 | DType::I64);
        if value >> (8 * bytes.len() - 1) & 1 == 1 && (signed || bytes.len() == 8) {
            return Err(malformed(
                &self.path,
                place,
                "an offset from 0 to 2^63 - 1",
                "a negative number",
            ));
        }
        Ok(value)
    }

    /// The length of the next sample.
    fn next(&mut self) -> Result<usize> {
        let entry = self.entry;
        let value = self.value()?;
        if value < self.last || value > self.total {
            let expected = format!("an offset in {}..={}", self.last, self.total);
            return Err(malformed(
                &self.path,
                format!("entry {entry}"),
                expected,
                value.to_string(),
            ));
        }
        let length = value - self.last;
        self.last = value;
        usize::try_from(length).map_err(|_| {
            let place = format!("entry {entry}");
            malformed(&self.path, place, "a sample that fits in memory", length.to_string())
        })
    }
}

/// A whole array, read sample by sample.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    header: Header,
    axis: Option<usize>,
    /// Extents of a sample, with 1 where the length along the axis goes.
    shape: Vec<usize>,
    /// The dimension of the axis.
    dim: usize,
    /// One reader for each index of the dimensions before the axis, each in its own part of the file.
    readers: Vec<BufReader<File>>,
    /// Bytes of one step along the axis.
    step: usize,
}

/// Most rows before the axis that a whole array may have, since each takes an open file.
const MAX_ROWS: usize = 64;

impl Source {
    fn open(
        path: &Path,
        tables: &[Table],
        len: u64,
        options: &Options,
    ) -> Result<(Self, ArrayLayout)> {
        let name = stem(path);
        let header = Header::read(&mut open(path)?, path, "the header")?;
        let bad = |expected: String, found: String| malformed(path, "the header", expected, found);
        let rank = header.shape.len();
        if rank == 0 {
            return Err(bad("at least one dimension".into(), "a scalar".into()));
        }
        if header.fortran && rank > 1 {
            let expected = "C order (save numpy.ascontiguousarray(array))".into();
            return Err(bad(expected, "Fortran order".into()));
        }
        let last = if along_last(name) { rank - 1 } else { 0 };
        let fits = |axis: usize| header.shape[last] as u64 == tables[axis].total;
        let own = tables.iter().position(|table| table.array.as_deref() == Some(name));
        let axis = match (options.cuts.get(name), own) {
            (Some(None), _) => None,
            (Some(Some(axis)), _) => {
                let found = tables.iter().position(|table| table.axis == *axis);
                Some(found.ok_or_else(|| {
                    malformed(path, "the folder", format!("a table for the axis {axis}"), "none")
                })?)
            }
            (None, Some(own)) => Some(own),
            (None, None) => {
                let fitting: Vec<usize> = (0..tables.len()).filter(|&axis| fits(axis)).collect();
                let rows = header.shape[0] as u64 == len;
                let usual = if name.starts_with("edge") { "edges" } else { "nodes" };
                let usual = fitting.iter().copied().find(|&axis| tables[axis].axis == usual);
                match (&fitting[..], rows) {
                    ([], true) => None,
                    ([one], false) => Some(*one),
                    ([], false) => {
                        let totals: Vec<_> =
                            tables.iter().map(|t| format!("{} {}", t.total, t.axis)).collect();
                        let expected =
                            format!("a length of {} or {len} samples", totals.join(", "));
                        return Err(bad(expected, format!("the shape {:?}", header.shape)));
                    }
                    _ if usual.is_some() && !rows => usual,
                    _ => {
                        let mut choices: Vec<_> =
                            fitting.iter().map(|&axis| tables[axis].axis.as_str()).collect();
                        if rows {
                            choices.push("a row for each sample");
                        }
                        return Err(Error::Unsupported {
                            what: format!("{}", path.display()).into(),
                            problem: format!(
                                "its length fits {}: add a table {name}_offsets.npy, or say which one it is",
                                choices.join(" and ")
                            )
                            .into(),
                        });
                    }
                }
            }
        };
        let dim = if axis.is_some() { last } else { 0 };
        let total = axis.map_or(len, |axis| tables[axis].total);
        if header.shape[dim] as u64 != total {
            let expected = format!("{total} along dimension {dim}");
            return Err(bad(expected, format!("the shape {:?}", header.shape)));
        }
        let rows: usize = header.shape[..dim].iter().product();
        if rows > MAX_ROWS {
            let expected = format!("at most {MAX_ROWS} rows before the dimension that is cut");
            return Err(bad(expected, format!("the shape {:?}", header.shape)));
        }
        let step = header.shape[dim + 1..].iter().product::<usize>() * header.item;
        let readers = (0..rows as u64)
            .map(|row| {
                let mut reader = open(path)?;
                let at = header.length + row * total * step as u64;
                reader
                    .seek(SeekFrom::Start(at))
                    .map_err(|e| Error::io(format!("seek to byte {at}"), path, e))?;
                Ok(reader)
            })
            .collect::<Result<_>>()?;
        let mut shape = header.shape.clone();
        let mut pattern: Vec<_> = shape.iter().map(|&extent| Some(extent)).collect();
        match axis {
            Some(_) => {
                shape[dim] = 1;
                pattern[dim] = None;
            }
            None => {
                shape.remove(0);
                pattern.remove(0);
            }
        }
        let layout =
            ArrayLayout { name: name.to_owned(), dtype: header.dtype(), shape: pattern, axis };
        Ok((Source { path: path.to_owned(), header, axis, shape, dim, readers, step }, layout))
    }

    fn read(&mut self, length: usize, sample: u64) -> Result<Array> {
        let place = format!("sample {sample}");
        let mut shape = self.shape.clone();
        if self.axis.is_some() {
            shape[self.dim] = length;
        }
        // Within the array's size, which is known to fit, unless the tables lie; they were checked against it.
        let part = length.saturating_mul(self.step);
        let mut bytes = Vec::new();
        for reader in &mut self.readers {
            bytes.append(&mut read_bytes(reader, part, &self.path, &place)?);
        }
        let header = Header { fortran: false, ..self.header.clone() };
        header.decode(bytes, shape, &self.path, &place)
    }
}

/// Writes the header of a `.npy` file for elements of `dtype`; the elements follow. Types that numpy lacks are written as
/// unsigned integers of their size, to be viewed as what they are.
pub(crate) fn write_header(writer: &mut impl Write, dtype: DType, shape: &[u64]) -> io::Result<()> {
    let name = dtype.numpy().unwrap_or(match dtype.size() {
        2 => "<u2",
        _ => "|u1",
    });
    let descr =
        name.parse().map_err(|e: npyz::ParseTypeStrError| io::Error::other(e.to_string()))?;
    npyz::WriteOptions::new_header_only()
        .dtype(npyz::DType::new_scalar(descr))
        .shape(shape)
        .writer(writer)
        .write_header_only()?;
    Ok(())
}
