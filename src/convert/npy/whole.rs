//! Whole arrays, cut into samples by tables of offsets.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::array::{Array, Header, open, read_bytes};
use super::samples::{list, stem};
use crate::convert::malformed;
use crate::error::{Error, Result};
use crate::format::DType;

/// How whole arrays are cut, where their names and lengths do not say it.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Options {
    cuts: BTreeMap<String, Option<String>>,
    dims: BTreeMap<String, usize>,
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

    /// Cuts an array along this dimension.
    pub fn dim(mut self, array: impl Into<String>, dim: usize) -> Self {
        self.dims.insert(array.into(), dim);
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
        for name in options.cuts.keys().chain(options.dims.keys()) {
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
        let cut = match options.dims.get(name) {
            Some(&dim) if dim < rank => dim,
            Some(dim) => {
                return Err(bad(format!("a dimension {dim}"), format!("{:?}", header.shape)));
            }
            None if along_last(name) => rank - 1,
            None => 0,
        };
        let fits = |axis: usize| header.shape[cut] as u64 == tables[axis].total;
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
        let dim = if axis.is_some() { cut } else { 0 };
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
