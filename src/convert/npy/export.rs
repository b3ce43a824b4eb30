//! From datasets to numpy files.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use npyz::WriterBuilder;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::convert::import::{Progress, ProgressFn, Ticker};
use crate::error::{Error, Result};
use crate::format::{Attribute, DType, Dim, StringsView, Value};
use crate::reader::{Dataset, SampleBuf};

/// Options of exports. A file that exists is never replaced.
#[derive(Default)]
#[must_use]
pub struct ExportOptions<'p> {
    compress: bool,
    progress: Option<ProgressFn<'p>>,
}

impl<'p> ExportOptions<'p> {
    /// The defaults: not compressed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses the arrays of `.npz` files, as `numpy.savez_compressed` does.
    pub fn compress(mut self, compress: bool) -> Self {
        self.compress = compress;
        self
    }

    /// Calls this every few samples, and at the end.
    pub fn progress(mut self, progress: impl FnMut(Progress) + 'p) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }
}

impl fmt::Debug for ExportOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportOptions").field("compress", &self.compress).finish_non_exhaustive()
    }
}

/// What an export has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportSummary {
    /// Samples.
    pub samples: u64,
    /// Files.
    pub files: u64,
}

/// numpy's name of elements of `dtype`. Types that numpy lacks are unsigned integers of their size, to be viewed as what they
/// are.
fn descr(dtype: DType) -> &'static str {
    dtype.numpy().unwrap_or(if dtype.size() == 2 { "<u2" } else { "|u1" })
}

/// Writes the header of an array; the elements follow.
fn write_header(writer: impl Write, descr: &str, shape: &[u64]) -> io::Result<()> {
    let descr =
        descr.parse().map_err(|e: npyz::ParseTypeStrError| io::Error::other(e.to_string()))?;
    npyz::WriteOptions::new_header_only()
        .dtype(npyz::DType::new_scalar(descr))
        .shape(shape)
        .writer(writer)
        .write_header_only()?;
    Ok(())
}

/// A name from a file becomes the name of another: it must not lead elsewhere.
fn check_name(kind: &str, name: &str) -> Result<()> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name && !name.contains(['\\', '\0']) => {
            Ok(())
        }
        _ => Err(Error::Unsupported {
            what: format!("{kind} {name:?}").into(),
            problem:
                "its name cannot be the name of a file: export the other attributes with `project`"
                    .into(),
        }),
    }
}

fn create(path: &Path) -> Result<File> {
    File::create_new(path).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path: path.into() },
        _ => Error::io("create the file", path, e),
    })
}

fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| Error::io("create the folder", folder, e))
}

/// The attributes of a view, in file order.
fn attributes(dataset: &Dataset) -> Vec<&Attribute> {
    dataset.attribute_names().filter_map(|name| dataset.schema().attribute(name)).collect()
}

/// Writes each sample to a file of its own, `sample_0.npz` and so on, with an array for each attribute: what
/// [`import_npz`](crate::convert::import_npz) and `numpy.load` read. To export some samples or attributes, pass a view:
/// [`Dataset::range`], [`Dataset::select`], [`Dataset::project`].
///
/// `utf8` becomes numpy's `<U`, lists of `bytes` become `S`, one `bytes` value an array of `uint8`; `bf16` and the 8-bit floats
/// become unsigned integers of their bits. An attribute that a sample lacks is left out. The length along an axis that none of a
/// sample's arrays runs along is an integer `num_<axis>`.
///
/// # Errors
/// [`Error::Io`]; [`Error::AlreadyExists`]; [`Error::Unsupported`] for names that cannot be files' names, and for strings that
/// end in a zero character, which numpy would drop; errors of reading. Files written until then stay.
pub fn export_npz(
    dataset: &Dataset,
    folder: impl AsRef<Path>,
    options: ExportOptions<'_>,
) -> Result<ExportSummary> {
    let folder = folder.as_ref();
    create_folder(folder)?;
    let attributes = attributes(dataset);
    for attribute in &attributes {
        check_name("attribute", attribute.name())?;
    }
    let method =
        if options.compress { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let entry = SimpleFileOptions::default().compression_method(method);
    let digits = dataset.len().saturating_sub(1).checked_ilog10().unwrap_or(0) as usize + 1;
    let mut buffer = SampleBuf::new();
    let mut elements = Vec::new();
    let mut ticker = Ticker::new(options.progress);
    for index in 0..dataset.len() {
        let sample = dataset.read(index, &mut buffer)?;
        let path = folder.join(format!("sample_{index:0digits$}.npz"));
        let mut zip = ZipWriter::new(BufWriter::new(create(&path)?));
        let failed =
            |e: zip::result::ZipError| Error::io("write the archive", path.as_path(), e.into());
        let mut add = |name: &str, descr: &str, shape: &[u64], bytes: &[u8]| -> Result<()> {
            // Zip's first form ends at 4 GiB; the header and what deflate adds are far below the margin.
            let entry = entry.large_file(bytes.len() > 0xff00_0000);
            zip.start_file(format!("{name}.npy"), entry).map_err(failed)?;
            write_header(&mut zip, descr, shape)
                .and_then(|()| zip.write_all(bytes))
                .map_err(|e| Error::io("write the array", path.as_path(), e))
        };
        let mut covered = BTreeSet::new();
        for (attribute, (name, value)) in attributes.iter().zip(sample.iter()) {
            let value = value?;
            if value.is_some() {
                covered.extend(attribute.ragged_dims());
            }
            match value {
                None => {}
                Some(Value::Tensor(tensor)) => {
                    let shape: Vec<u64> = tensor.shape().iter().map(|&n| n as u64).collect();
                    add(name, descr(tensor.dtype()), &shape, tensor.bytes())?;
                }
                Some(Value::Strings(strings)) => {
                    let (descr, shape) = strings_array(name, &strings, &mut elements)?;
                    add(name, &descr, &shape, &elements)?;
                }
            }
        }
        for axis in dataset.schema().axes().iter().filter(|axis| !covered.contains(axis.as_str())) {
            let length = sample.axis_len(axis)? as i64;
            add(&format!("num_{axis}"), descr(DType::I64), &[], &length.to_le_bytes())?;
        }
        let mut writer = zip.finish().map_err(failed)?;
        writer.flush().map_err(|e| Error::io("write the archive", path.as_path(), e))?;
        ticker.tick(index + 1, dataset.len());
    }
    ticker.end(dataset.len());
    Ok(ExportSummary { samples: dataset.len(), files: dataset.len() })
}

/// Strings as numpy has them: all of the longest one's length, padded with zeros.
fn strings_array(
    name: &str,
    strings: &StringsView<'_>,
    out: &mut Vec<u8>,
) -> Result<(String, Vec<u64>)> {
    out.clear();
    let mut shape: Vec<u64> = strings.shape().iter().map(|&n| n as u64).collect();
    let text = strings.dtype() == DType::Utf8;
    if !text && shape.is_empty() {
        let bytes = strings.bytes(0).unwrap_or_default();
        out.extend_from_slice(bytes);
        shape.push(bytes.len() as u64);
        return Ok((descr(DType::U8).to_owned(), shape));
    }
    if strings.iter().any(|string| string.last() == Some(&0)) {
        return Err(Error::Unsupported {
            what: format!("attribute {name:?}").into(),
            problem: "a string ends in a zero character, which numpy drops: export the other attributes with `project`"
                .into(),
        });
    }
    let count = |string: &[u8]| String::from_utf8_lossy(string).chars().count();
    // numpy has no strings of length 0.
    if text {
        let longest = strings.iter().map(count).max().unwrap_or(0).max(1);
        for string in strings.iter() {
            let end = out.len() + 4 * longest;
            for character in String::from_utf8_lossy(string).chars() {
                out.extend_from_slice(&u32::from(character).to_le_bytes());
            }
            out.resize(end, 0);
        }
        return Ok((format!("<U{longest}"), shape));
    }
    let longest = strings.iter().map(<[u8]>::len).max().unwrap_or(0).max(1);
    for string in strings.iter() {
        let end = out.len() + longest;
        out.extend_from_slice(string);
        out.resize(end, 0);
    }
    Ok((format!("|S{longest}"), shape))
}

/// A `.npy` file in the making, whose length is known only at the end.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: BufWriter<File>,
    descr: &'static str,
    count: u64,
}

impl Growing {
    /// Room for the header, whatever the count.
    const ROOM: usize = 128;

    fn create(folder: &Path, name: &str, dtype: DType) -> Result<Self> {
        let path = folder.join(format!("{name}.npy"));
        let mut file = BufWriter::new(create(&path)?);
        file.write_all(&[0; Self::ROOM]).map_err(|e| Error::io("write the array", &path, e))?;
        Ok(Growing { path, file, descr: descr(dtype), count: 0 })
    }

    fn append(&mut self, count: u64, bytes: &[u8]) -> Result<()> {
        self.count += count;
        self.file.write_all(bytes).map_err(|e| Error::io("write the array", &self.path, e))
    }

    fn append_i64(&mut self, value: u64) -> Result<()> {
        self.append(1, &(value as i64).to_le_bytes())
    }

    fn finish(mut self) -> Result<()> {
        let mut header = Vec::new();
        let written = write_header(&mut header, self.descr, &[self.count]).and_then(|()| {
            // The text is padded with spaces before its closing newline, and its length stands in front of it.
            header.pop();
            header.resize(Self::ROOM - 1, b' ');
            header.push(b'\n');
            header[8..10].copy_from_slice(&(Self::ROOM as u16 - 10).to_le_bytes());
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&header)?;
            self.file.flush()
        });
        written.map_err(|e| Error::io("write the array", &self.path, e))
    }
}

/// The file or files of one attribute.
enum Target {
    /// One array of all samples: rows of samples, or parts along the concatenated dimension. One writer for each index of the
    /// dimensions before that one.
    Whole { path: PathBuf, parts: Vec<BufWriter<File>>, absent: usize },
    /// Values back to back, a table of where samples start, and for lists of strings the ends of elements.
    Flat { values: Growing, offsets: Growing, ends: Option<Growing> },
}

/// Most rows before the concatenated dimension, since each takes an open file.
const MAX_ROWS: u64 = 64;

/// Writes whole arrays and tables: `<attribute>.npy` and `<axis>_offsets.npy`, what [`import_npy`](crate::convert::import_npy)
/// reads.
///
/// | attribute | array |
/// | --- | --- |
/// | fixed size | `[samples, ...]` |
/// | one ragged dimension | the concatenation along it, cut by the axis' table: `x` `[total, 11]`, `edge_index` `[2, total]` |
/// | several ragged dimensions, or optional and ragged | flat, and `<attribute>_offsets.npy` counts elements |
/// | strings | the bytes as `uint8`, `<attribute>_offsets.npy` counts them; lists also have `<attribute>_ends.npy` |
/// | optional | also `<attribute>_valid.npy`, bools; an absent value of fixed size is zeros |
///
/// Memory follows the largest sample. Types that numpy lacks are as in [`export_npz`].
///
/// # Errors
/// As [`export_npz`]. Files written until then stay.
pub fn export_npy(
    dataset: &Dataset,
    folder: impl AsRef<Path>,
    options: ExportOptions<'_>,
) -> Result<ExportSummary> {
    let folder = folder.as_ref();
    create_folder(folder)?;
    let attributes = attributes(dataset);
    let axes = dataset.schema().axes();
    for axis in axes {
        check_name("axis", axis)?;
    }
    for attribute in &attributes {
        check_name("attribute", attribute.name())?;
    }
    let totals = write_tables(dataset, folder, axes)?;
    let total =
        |name: &str| axes.iter().position(|axis| axis == name).map_or(0, |axis| totals[axis]);
    let mut files = axes.len() as u64;
    let mut targets = Vec::new();
    let mut valid = Vec::new();
    for attribute in &attributes {
        let target = Target::create(folder, attribute, dataset.len(), total)?;
        files += target.files();
        targets.push(target);
        let name = format!("{}_valid", attribute.name());
        let validity = attribute.is_optional().then(|| Growing::create(folder, &name, DType::Bool));
        files += u64::from(validity.is_some());
        valid.push(validity.transpose()?);
    }
    let mut buffer = SampleBuf::new();
    let mut ticker = Ticker::new(options.progress);
    for index in 0..dataset.len() {
        let sample = dataset.read(index, &mut buffer)?;
        for ((attribute, target), valid) in attributes.iter().zip(&mut targets).zip(&mut valid) {
            let value = sample.find(attribute.name())?;
            if let Some(valid) = valid {
                valid.append(1, &[u8::from(value.is_some())])?;
            }
            target.append(value)?;
        }
        ticker.tick(index + 1, dataset.len());
    }
    targets.into_iter().try_for_each(Target::finish)?;
    valid.into_iter().flatten().try_for_each(Growing::finish)?;
    ticker.end(dataset.len());
    Ok(ExportSummary { samples: dataset.len(), files })
}

/// Writes the table of each axis; gives the totals.
fn write_tables(dataset: &Dataset, folder: &Path, axes: &[String]) -> Result<Vec<u64>> {
    let mut totals = vec![0; axes.len()];
    let mut tables = axes
        .iter()
        .map(|axis| {
            let mut table = Growing::create(folder, &format!("{axis}_offsets"), DType::I64)?;
            table.append_i64(0)?;
            Ok(table)
        })
        .collect::<Result<Vec<_>>>()?;
    // Without attributes, only the axes' own tables are read.
    let lengths = dataset.project::<&str>(&[])?;
    let mut buffer = SampleBuf::new();
    for index in 0..lengths.len() {
        let sample = lengths.read(index, &mut buffer)?;
        for ((axis, total), table) in axes.iter().zip(&mut totals).zip(&mut tables) {
            // A view may repeat samples, so that the sum is not bounded by the file.
            *total = u64::checked_add(*total, sample.axis_len(axis)?)
                .filter(|total| i64::try_from(*total).is_ok())
                .ok_or_else(|| Error::Unsupported {
                    what: format!("axis {axis:?}").into(),
                    problem: "the lengths add up to more than 2^63 - 1: export fewer samples"
                        .into(),
                })?;
            table.append_i64(*total)?;
        }
    }
    tables.into_iter().try_for_each(Growing::finish)?;
    Ok(totals)
}

impl Target {
    fn create(
        folder: &Path,
        attribute: &Attribute,
        samples: u64,
        total: impl Fn(&str) -> u64,
    ) -> Result<Self> {
        let name = attribute.name();
        let dtype = attribute.dtype();
        let ragged: Vec<&str> = attribute.ragged_dims().collect();
        if dtype.is_string() || ragged.len() > 1 || (ragged.len() == 1 && attribute.is_optional()) {
            let values = Growing::create(folder, name, dtype)?;
            let mut offsets = Growing::create(folder, &format!("{name}_offsets"), DType::I64)?;
            offsets.append_i64(0)?;
            let list = dtype.is_string() && !attribute.shape().is_empty();
            let ends = list.then(|| Growing::create(folder, &format!("{name}_ends"), DType::I64));
            return Ok(Target::Flat { values, offsets, ends: ends.transpose()? });
        }
        let mut shape: Vec<u64> = attribute
            .shape()
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(extent) => *extent,
                Dim::Axis(axis) => total(axis),
            })
            .collect();
        let dim = match attribute.shape().iter().position(|dim| matches!(dim, Dim::Axis(_))) {
            Some(dim) => dim,
            None => {
                shape.insert(0, samples);
                0
            }
        };
        let rows = shape[..dim].iter().try_fold(1, |n: u64, &extent| n.checked_mul(extent));
        let Some(rows) = rows.filter(|&rows| rows <= MAX_ROWS) else {
            return Err(Error::Unsupported {
                what: format!("attribute {name:?} of shape {}", attribute.pattern()).into(),
                problem: format!(
                    "more than {MAX_ROWS} rows before the ragged dimension: export it as .npz, or the others with `project`"
                )
                .into(),
            });
        };
        let path = folder.join(format!("{name}.npy"));
        let failed = |e| Error::io("write the array", &path, e);
        let mut header = Vec::new();
        write_header(&mut header, descr(dtype), &shape).map_err(failed)?;
        // The arena of the file has these bytes, so the product fits; a view that repeats samples may not.
        let row =
            shape[dim..].iter().try_fold(dtype.size() as u64, |n, &extent| n.checked_mul(extent));
        let length = row.and_then(|row| row.checked_mul(rows)).and_then(|n| n.checked_add(1 << 20));
        let (Some(row), Some(_)) = (row, length.filter(|&n| i64::try_from(n).is_ok())) else {
            return Err(Error::Unsupported {
                what: format!("attribute {name:?}").into(),
                problem: "the array would be longer than a file can be: export fewer samples"
                    .into(),
            });
        };
        let mut file = create(&path)?;
        file.write_all(&header).map_err(failed)?;
        let parts = (0..rows)
            .map(|part| {
                let mut file = fs::OpenOptions::new().write(true).open(&path)?;
                file.seek(SeekFrom::Start(header.len() as u64 + part * row))?;
                Ok(BufWriter::new(file))
            })
            .collect::<io::Result<_>>()
            .map_err(failed)?;
        let fixed = if ragged.is_empty() { shape[1..].iter().product::<u64>() } else { 0 };
        Ok(Target::Whole { path, parts, absent: fixed as usize * dtype.size() })
    }

    fn files(&self) -> u64 {
        match self {
            Target::Whole { .. } => 1,
            Target::Flat { ends, .. } => 2 + u64::from(ends.is_some()),
        }
    }

    fn append(&mut self, value: Option<Value<'_>>) -> Result<()> {
        match self {
            Target::Whole { path, parts, absent } => {
                let zeros;
                let bytes = match &value {
                    Some(Value::Tensor(tensor)) => tensor.bytes(),
                    _ => {
                        zeros = vec![0; *absent];
                        &zeros
                    }
                };
                let part = bytes.len() / parts.len().max(1);
                for (at, writer) in parts.iter_mut().enumerate() {
                    let written = writer.write_all(&bytes[at * part..][..part]);
                    written.map_err(|e| Error::io("write the array", path.as_path(), e))?;
                }
            }
            Target::Flat { values, offsets, ends } => {
                match value {
                    Some(Value::Tensor(tensor)) => {
                        values.append(tensor.len() as u64, tensor.bytes())?;
                    }
                    Some(Value::Strings(strings)) => {
                        for string in strings.iter() {
                            values.append(string.len() as u64, string)?;
                            if let Some(ends) = ends {
                                ends.append_i64(values.count)?;
                            }
                        }
                    }
                    None => {}
                }
                offsets.append_i64(values.count)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        match self {
            Target::Whole { path, parts, .. } => parts.into_iter().try_for_each(|mut part| {
                part.flush().map_err(|e| Error::io("write the array", path.as_path(), e))
            }),
            Target::Flat { values, offsets, ends } => {
                values.finish()?;
                offsets.finish()?;
                ends.map_or(Ok(()), Growing::finish)
            }
        }
    }
}
