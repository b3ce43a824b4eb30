//! The one error type of the library, and the faults a file's bytes can have.
//!
//! [`Error`] is what every public call returns. [`FormatError`] is the part that knows only bytes: it is produced by
//! `format`, which has no paths, and becomes [`Error::Format`] as soon as a path is known. Every message says where,
//! what was expected, what was found, and what to do.

#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use crate::format::DType;

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whatever can go wrong in fencepost.
///
/// Match on the variants; the texts are for people and may change.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused an operation on a file or folder.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// What was being done, as a verb phrase (`"read 4096 bytes at offset 0"`).
        action: Box<str>,
        /// The file or folder.
        path: Box<Path>,
        /// What the operating system said.
        source: io::Error,
    },
    /// The bytes of a file break a rule of the format.
    #[error("{}: {fault}", path.display())]
    Format {
        /// The file.
        path: Box<Path>,
        /// The broken rule.
        fault: Box<FormatError>,
    },
    /// The host is big-endian; fencepost files are little-endian and are served without conversion.
    #[error(
        "this host is big-endian and fencepost serves little-endian files without conversion: use a little-endian host"
    )]
    BigEndianHost,
    /// A schema breaks a rule, before anything was written.
    #[error("schema: {place}: {problem}")]
    Schema {
        /// The attribute or axis.
        place: Box<str>,
        /// What is wrong and what to do.
        problem: Box<str>,
    },
    /// A sample was refused by a writer. Nothing of it was written and the writer is still usable.
    #[error(transparent)]
    Sample(Box<SampleError>),
    /// A writer met an I/O error earlier; what it holds cannot become a valid file.
    #[error("{}: this writer failed earlier ({reason}) and cannot go on: drop it, mend the cause and write again; nothing was published", path.display())]
    WriterPoisoned {
        /// The file that was to be written.
        path: Box<Path>,
        /// The earlier error.
        reason: Box<str>,
    },
    /// The target of `create_new` exists.
    #[error("{}: already exists: choose another name, or use `create` to replace it when the new file is complete", path.display())]
    AlreadyExists {
        /// The file.
        path: Box<Path>,
    },
    /// The finished file could not be given its name; it is complete and stays under the temporary name.
    #[error("{}: the finished file could not be moved here ({source}); it is complete and kept as {}: rename it by hand, or remove it", path.display(), kept.display())]
    Publish {
        /// The intended name.
        path: Box<Path>,
        /// Where the complete file is.
        kept: Box<Path>,
        /// What the operating system said.
        source: io::Error,
    },
    /// An index beyond the dataset.
    #[error("sample {index} does not exist: the dataset has {len} samples (0..{len})")]
    IndexOutOfRange {
        /// The index asked for.
        index: u64,
        /// Number of samples.
        len: u64,
    },
    /// A boolean mask of another length than the dataset.
    #[error(
        "the mask has {found} entries but the dataset has {expected} samples: give one entry per sample"
    )]
    MaskLength {
        /// Number of samples.
        expected: u64,
        /// Entries in the mask.
        found: u64,
    },
    /// No attribute or axis of that name.
    #[error("no {kind} named {name:?}: this dataset has {available}")]
    UnknownName {
        /// `"attribute"` or `"axis"`.
        kind: &'static str,
        /// The name asked for.
        name: Box<str>,
        /// The names there are.
        available: Box<str>,
    },
    /// An attribute that this version of the library cannot read; the other attributes are served.
    #[error(
        "attribute {attribute:?} cannot be read: {reason}; the other attributes can, or use a newer fencepost"
    )]
    AttributeRefused {
        /// The attribute.
        attribute: Box<str>,
        /// Why.
        reason: Box<str>,
    },
    /// A sample lacks an optional attribute.
    #[error(
        "sample {sample} has no value of the optional attribute {attribute:?}: use `find`, which gives `None`"
    )]
    Absent {
        /// The attribute.
        attribute: Box<str>,
        /// The sample's index in the file.
        sample: u64,
    },
    /// A typed view of another type than the attribute's.
    #[error("the values are {found}, not {expected}: ask for {found}, or convert a copy")]
    WrongDType {
        /// The type asked for.
        expected: DType,
        /// The type that is there.
        found: DType,
    },
    /// A borrowed view was asked of bytes that are not in memory as they are.
    #[error("attribute {attribute:?} cannot be borrowed: {reason}")]
    NotBorrowable {
        /// The attribute.
        attribute: Box<str>,
        /// Why, and what to call instead.
        reason: Box<str>,
    },
    /// A whole-arena tensor was asked where the layout has none.
    #[error(
        "attribute {attribute:?} has no whole tensor in the file: {reason}; `materialize` builds it ({bytes} bytes)"
    )]
    NotContiguous {
        /// The attribute.
        attribute: Box<str>,
        /// Why.
        reason: Box<str>,
        /// What building it would take.
        bytes: u64,
    },
    /// An operation that this call cannot do with these arguments.
    #[error("{what}: {problem}")]
    Unsupported {
        /// The operation.
        what: Box<str>,
        /// Why not, and what to do instead.
        problem: Box<str>,
    },
    /// Two files that are to be served or written as one have other schemas.
    #[error("{}: its samples do not go with those of {}: {difference}", path.display(), other.display())]
    SchemasDiffer {
        /// The file that differs.
        path: Box<Path>,
        /// The file that it was compared with.
        other: Box<Path>,
        /// The first difference: what was expected, what was found.
        difference: Box<str>,
    },
    /// Files that were opened together do not belong together, or some are missing.
    #[error("{}: {problem}", path.display())]
    Shards {
        /// The file or folder.
        path: Box<Path>,
        /// What was expected, what was found, and what to do.
        problem: Box<str>,
    },
    /// One sample kept a batch from being made.
    #[error("sample {sample} cannot be batched: {source}")]
    BatchSample {
        /// Its index, as it was asked for.
        sample: u64,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// A thread of a loader panicked. It is a bug in this library.
    #[error("a thread of the loader panicked at batch {batch}: {message}; please report it")]
    LoaderPanic {
        /// Number of the batch in its epoch.
        batch: u64,
        /// What the panic said.
        message: Box<str>,
    },
    /// A saved state does not belong to this loader.
    #[error(
        "the saved state does not fit this loader: {what} was {saved}, is {current} here; {advice}"
    )]
    LoaderState {
        /// The part that differs.
        what: &'static str,
        /// Its value in the saved state.
        saved: Box<str>,
        /// Its value here.
        current: Box<str>,
        /// What to do.
        advice: &'static str,
    },
    /// A source file of an importer is malformed.
    #[error("{}: {place}: expected {expected}, found {found}", path.display())]
    Convert {
        /// The source file.
        path: Box<Path>,
        /// Line, byte or record in it.
        place: Box<str>,
        /// What the source format asks for.
        expected: Box<str>,
        /// What is there.
        found: Box<str>,
    },
}

/// Why a writer refused one sample: see [`Error::Sample`].
#[derive(Debug, thiserror::Error)]
#[error("sample {sample}, attribute {attribute:?}: expected {expected}, found {found}{}", hint(.advice))]
pub struct SampleError {
    /// The index that the sample would have had.
    pub sample: u64,
    /// The attribute or axis.
    pub attribute: String,
    /// What the schema asks for.
    pub expected: String,
    /// What the sample has.
    pub found: String,
    /// What to do, or empty.
    pub advice: String,
}

fn hint(advice: &str) -> String {
    if advice.is_empty() { String::new() } else { format!(" ({advice})") }
}

/// A rule of the format that some bytes break. The rules are numbered in `format-spec/SPEC.md`.
///
/// [`code`](FormatError::code) gives the short stable name that the hostile files of `format-spec/vectors` list.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The first eight bytes are not the signature.
    #[error(
        "not a fencepost file: expected the signature 89 46 4e 43 50 0d 0a 1a, found {found}; {advice}"
    )]
    Magic {
        /// The bytes found, in hex.
        found: String,
        /// What probably happened.
        advice: &'static str,
    },
    /// A major version that this library does not know.
    #[error(
        "format version {major}.{minor} is not readable: this library reads versions 1.x; use a newer fencepost"
    )]
    Version {
        /// Major version of the file.
        major: u16,
        /// Minor version of the file.
        minor: u16,
    },
    /// A critical feature that this library does not know.
    #[error(
        "the file needs features that this library lacks (critical feature bits {unknown:#x}): use a newer fencepost"
    )]
    CriticalFeature {
        /// The unknown bits.
        unknown: u64,
    },
    /// The file is shorter than it says.
    #[error(
        "the file is cut off: expected {expected} bytes, found {found}; copy it again from its source"
    )]
    Truncated {
        /// Length that it should have.
        expected: u64,
        /// Length that it has.
        found: u64,
    },
    /// The file is longer than it says.
    #[error(
        "the file goes on beyond its end: expected {expected} bytes, found {found}; something was appended, or two files were joined"
    )]
    TrailingBytes {
        /// Length that it should have.
        expected: u64,
        /// Length that it has.
        found: u64,
    },
    /// A checksum does not match.
    #[error(
        "{what} is damaged: expected CRC-32 {expected:08x}, found {found:08x}; restore the file, or `salvage` what is whole"
    )]
    Checksum {
        /// What it covers.
        what: String,
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// A field of the header, or the place it describes, is out of its bounds.
    #[error("header field {field} is wrong: expected {expected}, found {found}")]
    Header {
        /// The field.
        field: &'static str,
        /// The rule.
        expected: String,
        /// The value.
        found: String,
    },
    /// The directory is not the strict JSON that the format asks for.
    #[error("the directory is not valid: {problem}")]
    Json {
        /// What is wrong and where.
        problem: String,
    },
    /// Two members of the same object, or two axes or attributes, share a name.
    #[error("the directory has {what} {name:?} twice")]
    Duplicate {
        /// `"key"`, `"axis"`, `"attribute"`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An entry of the directory breaks a rule.
    #[error("directory entry {place}: expected {expected}, found {found}")]
    Directory {
        /// Where in the directory.
        place: String,
        /// The rule.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A section lies outside the bytes that sections may use.
    #[error(
        "section {section} (bytes {offset}..+{length}) is out of bounds: sections lie within {low}..{high}"
    )]
    SectionBounds {
        /// Index in the section list.
        section: usize,
        /// Its offset.
        offset: u64,
        /// Its length.
        length: u64,
        /// First byte that a section may use.
        low: u64,
        /// End of the bytes that sections may use.
        high: u64,
    },
    /// A section does not start at a multiple of the alignment.
    #[error("section {section} starts at {offset}, which is no multiple of {alignment}")]
    SectionAlignment {
        /// Index in the section list.
        section: usize,
        /// Its offset.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// Two sections share bytes.
    #[error("sections {first} and {second} overlap at byte {offset}")]
    SectionOverlap {
        /// Index of the section that starts first.
        first: usize,
        /// Index of the other.
        second: usize,
        /// Where the other starts.
        offset: u64,
    },
    /// A size computed from the directory does not fit in 63 bits.
    #[error("{place}: the size is beyond 2^63 - 1 bytes")]
    Overflow {
        /// Where in the directory.
        place: String,
    },
    /// A section has another length than what refers to it asks for.
    #[error("{place}: section {section} should have {expected} bytes, has {found}")]
    SectionSize {
        /// What refers to it.
        place: String,
        /// Index in the section list.
        section: usize,
        /// Bytes asked for by the counts.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// An entry of an offsets table breaks the rules of tables.
    #[error(
        "{table}: entry {entry} is wrong: expected {expected}, found {found}; run `verify`, then `salvage`"
    )]
    Offsets {
        /// The table.
        table: String,
        /// Index of the entry.
        entry: u64,
        /// The rule.
        expected: String,
        /// The value.
        found: u64,
    },
    /// A bool byte is neither 0 nor 1.
    #[error(
        "attribute {attribute:?}: element {element} is a bool stored as {found}: expected 0 or 1; run `verify`, then `salvage`"
    )]
    Bool {
        /// The attribute.
        attribute: String,
        /// Index of the element in the sample.
        element: u64,
        /// The byte.
        found: u8,
    },
    /// A `utf8` value is not UTF-8.
    #[error(
        "attribute {attribute:?}: not valid UTF-8 from byte {at} of the value; run `verify`, then `salvage`"
    )]
    Utf8 {
        /// The attribute.
        attribute: String,
        /// First bad byte, counted from the start of the value.
        at: u64,
    },
    /// Bytes that must be zero are not.
    #[error("{what} must be zero: byte {offset} of the file is {found:#04x}")]
    Padding {
        /// What the bytes are.
        what: String,
        /// The first bad byte.
        offset: u64,
        /// Its value.
        found: u8,
    },
    /// The header's or the directory's copy at the end of the file differs from the first.
    #[error("the copy of the {what} differs from the {what}, first at byte {offset} of the file")]
    Copy {
        /// `"header"` or `"directory"`.
        what: &'static str,
        /// The first byte of the copy that differs.
        offset: u64,
    },
    /// A fault of one of several files that were checked together.
    #[error("{}: {fault}", path.display())]
    InFile {
        /// The file.
        path: Box<Path>,
        /// What is wrong with it.
        fault: Box<FormatError>,
    },
}

impl FormatError {
    /// The short stable name of the broken rule, as listed in the specification.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Magic { .. } => "magic",
            Self::Version { .. } => "version",
            Self::CriticalFeature { .. } => "critical-feature",
            Self::Truncated { .. } => "truncated",
            Self::TrailingBytes { .. } => "trailing-bytes",
            Self::Checksum { .. } => "checksum",
            Self::Header { .. } => "header",
            Self::Json { .. } => "json",
            Self::Duplicate { .. } => "duplicate",
            Self::Directory { .. } => "directory",
            Self::SectionBounds { .. } => "section-bounds",
            Self::SectionAlignment { .. } => "section-alignment",
            Self::SectionOverlap { .. } => "section-overlap",
            Self::Overflow { .. } => "overflow",
            Self::SectionSize { .. } => "section-size",
            Self::Offsets { .. } => "offsets",
            Self::Bool { .. } => "bool",
            Self::Utf8 { .. } => "utf8",
            Self::Padding { .. } => "padding",
            Self::Copy { .. } => "copy",
            Self::InFile { fault, .. } => fault.code(),
        }
    }

    /// The same fault, with the file it was found in.
    pub fn at(self, path: &Path) -> Error {
        Error::Format { path: path.into(), fault: Box::new(self) }
    }
}

impl Error {
    /// An I/O error with what was being done and where.
    pub fn io(action: impl Into<Box<str>>, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io { action: action.into(), path: path.into().into_boxed_path(), source }
    }

    /// The fault of a file's bytes, if that is what this error is.
    pub fn format_fault(&self) -> Option<&FormatError> {
        match self {
            Error::Format { fault, .. } => Some(fault),
            _ => None,
        }
    }

    pub(crate) fn schema(place: impl Into<Box<str>>, problem: impl Into<Box<str>>) -> Self {
        Error::Schema { place: place.into(), problem: problem.into() }
    }
}

// An error is moved through every call of the hot path, so its size is part of the speed.
const _: () = assert!(size_of::<Error>() <= 72);
