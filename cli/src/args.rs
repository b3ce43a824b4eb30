//! The command line: every option of every command, and the texts of `--help`.

#![forbid(unsafe_code)]

mod rewriting;

#[cfg(feature = "npz")]
use std::ops::Range;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
#[cfg(feature = "csv")]
use fencepost::{DType, convert::csv};

pub(crate) use self::rewriting::{
    CompactArgs, ConcatArgs, Order, RepackArgs, Rewriting, SplitArgs,
};
use crate::planned::PlannedAttribute;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// Datasets of variable-size samples in one file: look at them, check them, make them.
///
/// Data goes to stdout, talk to stderr. Every report has --json: one JSON document on one
/// line, whose keys are listed by the command's --help and stay as they are.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version, styles = STYLES, verbatim_doc_comment)]
#[command(disable_help_subcommand = true, propagate_version = false)]
#[command(after_help = "\
Exit codes:
  0  fine
  1  the file is bad: damaged, cut off, not of this format, or a source that cannot be imported
  2  could not run: wrong usage, a file that is not there, a full disk

Examples:
  fencepost import tu examples/data/B3DB b3db.fence
  fencepost info b3db.fence
  fencepost verify b3db.fence && echo whole")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Info(InfoArgs),
    Head(HeadArgs),
    Stats(StatsArgs),
    Verify(VerifyArgs),
    Salvage(SalvageArgs),
    /// Make a file of a set in another format
    #[command(after_help = "\
Examples:
  fencepost import graph6 examples/data/connected-8.g6 connected-8.fence
  fencepost import tu examples/data/B3DB b3db.fence")]
    Import {
        #[command(subcommand)]
        format: ImportFormat,
    },
    /// Write the samples of a file in another format
    #[cfg(feature = "npz")]
    #[command(after_help = "\
Examples:
  fencepost export npz b3db.fence samples/
  fencepost export npy b3db.fence arrays/")]
    Export {
        #[command(subcommand)]
        format: ExportFormat,
    },
    Concat(ConcatArgs),
    Split(SplitArgs),
    Compact(CompactArgs),
    Repack(RepackArgs),
    Plan(PlanArgs),
    Demo(DemoArgs),
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Probe(ProbeArgs),
}

/// Show what is in a file: schema, sizes, and the backing that fits this machine
///
/// Reads header, directory and statistics, and none of the samples. An attribute's own axis
/// that has the same lengths as another (an inferred `x` has the axis `x`, as long as `nodes`)
/// is shown under the other's name; `shape` of --json has the file's own names.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
JSON keys:
  path, samples, file_bytes, format_version, alignment, fingerprint, metadata,
  files: [{path, samples: [start, end], fingerprint, base,
           shard: {dataset, number, first, last, source} or null}],
  axes: [{name, total, constant, min, mean, max, same_as}],
  attributes: [{name, dtype, stored, shape, pattern, cat_dim, increment, optional, hidden,
                bytes, share}],
  refused: [{name, reason}], other_bytes,
  backing: {recommended, reason, resident, resident_reason, filesystem: {name, kind},
            memory: {available_bytes, bound} or null}

Examples:
  fencepost info b3db.fence
  fencepost info --json b3db.fence | jq -r '.attributes[] | [.name, .bytes] | @tsv'"
)]
pub(crate) struct InfoArgs {
    /// The file, or a folder of shards
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the first samples, or those from an index on
///
/// Long values are abbreviated as numpy does it; --json prints them in full.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON keys:
  path, samples,
  head: [{index, axes: {NAME: length}, values: {NAME: {dtype, shape, values}}}]
  An attribute that a sample lacks is null. Values are nested as the shape says, [] if there
  are none. Complex numbers are [real, imaginary], `bytes` are hex digits, and numbers that
  JSON lacks are the strings \"NaN\", \"Infinity\" and \"-Infinity\".

Examples:
  fencepost head b3db.fence
  fencepost head -n 2 --attribute smiles --attribute y b3db.fence
  fencepost head --index 17 --json b3db.fence | jq '.head[0].values.x.shape'")]
pub(crate) struct HeadArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// How many samples [default: 5, or 1 with --index]
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count)]
    pub(crate) count: Option<u64>,
    /// The first sample to show
    #[arg(long, value_name = "I", value_parser = parse_count)]
    pub(crate) index: Option<u64>,
    /// Show only this attribute (can be given more than once)
    #[arg(long = "attribute", value_name = "NAME")]
    pub(crate) attributes: Vec<String>,
    /// Print full values as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the statistics that were gathered when the file was written
///
/// Least, mean and greatest value and the number of NaN of each attribute, lengths of strings,
/// lengths along each axis. No sample is read.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
JSON keys:
  path, samples,
  attributes: [{name, dtype, kind: \"values\", count, nan, min, mean, max}
               or {name, dtype, kind: \"string-bytes\", count, min, mean, max}],
  axes: [{name, count, min, mean, max}]
  `attributes` and `axes` are null if the file was written without statistics. What is not
  there (the least of no values) is null; numbers that JSON lacks are strings.

Examples:
  fencepost stats b3db.fence
  fencepost stats --json b3db.fence | jq '.axes[] | select(.name == \"nodes\").max'"
)]
pub(crate) struct StatsArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check every checksum, table, copy and padding byte
///
/// Lists every bad block with the attributes and samples that it hits, and every other broken
/// rule. Exit code 1 if there is one. Checksums are CRC-32: they find accidents, not attackers.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
JSON keys:
  path, ok, opened, blocks, bytes,
  bad_blocks: [{path, section, block, start, end, expected, found, attributes,
                samples: [[first, end]]}],
  problems: [{code, message}], refused: [NAME]
  `start` and `end` are bytes of the file. `found` is null if the system could not read the
  block. Ranges of samples end before `end`. `opened` is false if header or directory are so
  damaged that nothing behind them was checked. `refused` attributes need a newer fencepost:
  of their sections only the checksums were checked.

Examples:
  fencepost verify b3db.fence
  fencepost verify --json b3db.fence | jq '.bad_blocks[].samples'
  find . -name '*.fence' -exec fencepost verify {} \\;"
)]
pub(crate) struct VerifyArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Check with this many threads [default: as many as may run]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write what is whole of a damaged file to a new one
///
/// The new file has every sample whose blocks are all as they were written, in the same order.
/// The damaged file is not changed, and a file that exists is not replaced. Exit code 0 if
/// nothing was lost; 1 if samples or attributes were, or if the file is beyond salvage.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
JSON keys:
  path, output, samples, saved, lost: [[first, end]], lost_samples,
  lost_attributes: [{name, reason}], bad_blocks, problems, file_bytes
  Ranges are of the damaged file's indices and end before `end`; `bad_blocks` and `problems`
  are counts.

Examples:
  fencepost salvage damaged.fence whole.fence
  fencepost salvage --json damaged.fence whole.fence | jq .lost"
)]
pub(crate) struct SalvageArgs {
    /// The damaged file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The new file
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Check with this many threads [default: as many as may run]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const IMPORT_KEYS: &str = "\
JSON keys:
  path, samples, file_bytes, bytes_written, joined, joined_reason, seconds
  `joined` is the way in which sections were put together; `joined_reason` says why no
  cheaper one, or is null.";

/// What every import takes beside its source.
#[derive(Debug, Args)]
pub(crate) struct ImportTarget {
    /// The new file; one of this name is replaced when the new one is complete
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Refuse to replace a file
    #[arg(long)]
    pub(crate) no_clobber: bool,
    /// User metadata: a JSON object, or @FILE with one
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    /// Where sections start: at multiples of a power of two from 64 on
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    pub(crate) alignment: u64,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportFormat {
    /// A graph6 or sparse6 file of nauty: one graph a line
    ///
    /// The file gets the axes `nodes` and `edges` and the attribute `edge_index`, i64[2, edges],
    /// as PyTorch Geometric has it.
    #[command(verbatim_doc_comment, after_long_help = format!("{IMPORT_KEYS}

Examples:
  fencepost import graph6 examples/data/connected-8.g6 connected-8.fence"))]
    Graph6 {
        /// The graph6 or sparse6 file
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        source: PathBuf,
        #[command(flatten)]
        target: ImportTarget,
    },
    /// A text set of the TU Dortmund collection: a folder with DS_A.txt and others
    ///
    /// The tensors are those that PyTorch Geometric's TUDataset makes; further files with a line
    /// for each graph become attributes of text.
    #[command(verbatim_doc_comment, after_long_help = format!("{IMPORT_KEYS}

Examples:
  fencepost import tu examples/data/B3DB b3db.fence
  fencepost import tu --use-node-attr --metadata '{{\"source\": \"B3DB\"}}' examples/data/B3DB b3db.fence"))]
    Tu {
        /// The folder
        #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        source: PathBuf,
        /// The set's name, the prefix of its files; needed if the folder has several sets
        #[arg(long)]
        name: Option<String>,
        /// Begin `x` with the node attributes
        #[arg(long)]
        use_node_attr: bool,
        /// Begin `edge_attr` with the edge attributes
        #[arg(long)]
        use_edge_attr: bool,
        #[command(flatten)]
        target: ImportTarget,
    },
    #[cfg(feature = "csv")]
    /// A graph dump as tables: a folder with nodes.csv, edges.csv and graphs.csv
    ///
    /// The first line of each file names its columns. In all files, graph_id says which graph a
    /// row is of; rows of a graph stand together, and graphs have the same order in every file.
    ///
    ///   nodes.csv   node_id: what edges call the node (without it: 0, 1, ... in each graph)
    ///   edges.csv   src_id, dst_id: the ends (also source, target, src, dst)
    ///   graphs.csv  num_nodes: needed where there is no nodes.csv
    ///
    /// `label` becomes `y` of graphs, `node_label`, `edge_label`. Other columns are numbers: those
    /// of nodes.csv become `x`, those of edges.csv `edge_attr`, f32 and side by side; each of
    /// graphs.csv becomes an attribute. A cell may hold a list: "0.1,0.2" or [0.1, 0.2].
    #[command(verbatim_doc_comment, after_long_help = format!("{IMPORT_KEYS}

Examples:
  fencepost import csv dump/ dump.fence
  fencepost import csv --column graphs.smiles=utf8 --column nodes.label=y:i64 dump/ dump.fence"))]
    Csv {
        /// The folder
        #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        source: PathBuf,
        /// Make an attribute of this column: i64, f32, f64 or utf8 (can be given more than once)
        #[arg(long = "column", value_name = "FILE.COLUMN=[NAME:]DTYPE", value_parser = AskedColumn::parse)]
        columns: Vec<AskedColumn>,
        /// The character between cells; \t is a tab
        #[arg(long, value_name = "CHARACTER", default_value = ",", value_parser = parse_delimiter)]
        delimiter: u8,
        #[command(flatten)]
        target: ImportTarget,
    },
    #[cfg(feature = "npz")]
    /// A folder with one .npz (or .npy) file for each sample
    ///
    /// Samples come in the natural order of the files' names. The schema is inferred from the
    /// first one by the names that PyTorch Geometric gives a meaning; an integer scalar
    /// `num_nodes` is the length along the axis `nodes`.
    #[command(verbatim_doc_comment, after_long_help = format!("{IMPORT_KEYS}

Examples:
  fencepost import npz samples/ samples.fence
  fencepost import npz --array pos clouds/ clouds.fence     # a folder of .npy files"))]
    Npz {
        /// The folder
        #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        source: PathBuf,
        /// What to call the one array of .npy files
        #[arg(long, value_name = "NAME", default_value = "x")]
        array: String,
        #[command(flatten)]
        target: ImportTarget,
    },
    #[cfg(feature = "npz")]
    /// A folder of whole .npy arrays with tables of offsets
    ///
    /// Each table (<name>_offsets.npy, offsets.npy or ptr.npy; N+1 entries) becomes an axis, each
    /// other array an attribute that is cut by the table whose last entry is its length, or one
    /// row a sample.
    #[command(verbatim_doc_comment, after_long_help = format!("{IMPORT_KEYS}

Examples:
  fencepost import npy arrays/ out.fence                        # x.npy, nodes_offsets.npy, ...
  fencepost import npy --along pos=nodes --per-sample y arrays/ out.fence"))]
    Npy {
        /// The folder
        #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        source: PathBuf,
        /// Cut this array by the table of that axis (can be given more than once)
        #[arg(long, value_name = "ARRAY=AXIS", value_parser = parse_pair)]
        along: Vec<(String, String)>,
        /// Take row i of this array for sample i (can be given more than once)
        #[arg(long, value_name = "ARRAY")]
        per_sample: Vec<String>,
        #[command(flatten)]
        target: ImportTarget,
    },
}

#[cfg(feature = "npz")]
const EXPORT_KEYS: &str = "\
JSON keys:
  path, folder, samples, files, seconds";

/// What every export takes.
#[cfg(feature = "npz")]
#[derive(Debug, Args)]
pub(crate) struct ExportSource {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The folder to write to, made if it is not there; no file is replaced
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Export only this attribute (can be given more than once)
    #[arg(long = "attribute", value_name = "NAME")]
    pub(crate) attributes: Vec<String>,
    /// Export only these samples: START..END, END not included
    #[arg(long, value_name = "START..END", value_parser = parse_range)]
    pub(crate) range: Option<Range<u64>>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "npz")]
#[derive(Debug, Subcommand)]
pub(crate) enum ExportFormat {
    /// A .npz file for each sample, with an array for each attribute
    #[command(after_long_help = format!("{EXPORT_KEYS}

Examples:
  fencepost export npz b3db.fence samples/
  fencepost export npz --compress --range 0..100 b3db.fence first-100/"))]
    Npz {
        #[command(flatten)]
        source: ExportSource,
        /// Compress, as numpy.savez_compressed does
        #[arg(long)]
        compress: bool,
    },
    /// Whole arrays and tables of offsets as .npy files
    #[command(after_long_help = format!("{EXPORT_KEYS}

Examples:
  fencepost export npy b3db.fence arrays/
  fencepost export npy --attribute x b3db.fence arrays/"))]
    Npy {
        #[command(flatten)]
        source: ExportSource,
    },
}

/// Show what a file costs in memory over each backing, before or after it is written
///
/// For a file, or for counts: the number of samples, and each attribute's dtype and mean extents.
///
/// An attribute is NAME:DTYPE:EXTENT:EXTENT... as its shape is written, extents being means over
/// the samples. An extent can name its axis (nodes=18.1), whose table is then counted once; of
/// others, the one that batching concatenates along differs from sample to sample (the last if
/// the name contains `index` or is `face`, else the first). The extent of utf8 and bytes is the
/// mean length of a string.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
The rule of thumb: resident pays when the file is under half of the memory that this process
may use (limits of containers counted) and one process reads it; mapped on local filesystems;
positional on network and FUSE filesystems.

JSON keys:
  path, samples, file_bytes, processes,
  attributes: [{name, dtype, bytes}] and axes: [{name, bytes}] (null for a file),
  bill: [{backing, private_bytes, private_bytes_all, cache_bytes, open_bytes}],
  backing: as in `fencepost info --json`

Examples:
  fencepost plan b3db.fence
  fencepost plan --processes 8 b3db.fence
  fencepost plan --samples 20M --attribute x:f32:nodes=18.1:11 --attribute edge_index:i64:2:37.3
  fencepost plan --samples 130_000 --attribute pos:f32:18:3 --at /mnt/data"
)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["file", "samples"])))]
pub(crate) struct PlanArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath, conflicts_with_all = ["samples", "attributes", "at"])]
    pub(crate) file: Option<PathBuf>,
    /// Number of samples; 20M, 130k and 1_000 are understood
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "attributes")]
    pub(crate) samples: Option<u64>,
    /// An attribute with its mean extents (can be given more than once)
    #[arg(long = "attribute", value_name = "NAME:DTYPE:EXTENT:...", requires = "samples", value_parser = PlannedAttribute::parse)]
    pub(crate) attributes: Vec<PlannedAttribute>,
    /// The folder where the file is to lie
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) at: PathBuf,
    /// Processes that read the file at the same time, DataLoader workers included
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) processes: u64,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Import real molecules and graphs, verify them, and compare the three backings
///
/// Works in a temporary folder (TMPDIR says where) and takes some seconds.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON keys:
  sets: [{name, samples, file_bytes, verified,
          rates: [{backing, open_seconds, random_gets_per_second, sequential_gets_per_second}],
          cold: [{backing, seconds, disk_bytes, minor_faults, major_faults}],
          memory: [{backing, processes, private_bytes, shared_bytes}]}]
  Rates are medians over alternated rounds; memory is per process, beyond what the process
  had before it opened the file. `cold` is null if the page cache cannot be emptied of the
  file, and `memory` where the system does not tell it.

Examples:
  fencepost demo
  fencepost demo --keep . && fencepost head b3db.fence")]
pub(crate) struct DemoArgs {
    /// The folder with B3DB/ and connected-8.g6
    #[arg(long, value_name = "DIR", default_value = "examples/data", value_hint = ValueHint::DirPath)]
    pub(crate) data: PathBuf,
    /// Keep the imported files in this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) keep: Option<PathBuf>,
    /// Rounds of each measurement
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: u64,
    /// Print the measurements as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  fencepost completions bash > ~/.local/share/bash-completion/completions/fencepost
  fencepost completions zsh > \"${fpath[1]}/_fencepost\"
  fencepost completions fish > ~/.config/fish/completions/fencepost.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// One process of the demo: opens a file, reads all of it, tells what that took
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    pub(crate) backing: String,
    pub(crate) file: PathBuf,
}

/// A number with `_` anywhere and one of k, M, G behind it.
fn parse_count(text: &str) -> Result<u64, String> {
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    let (digits, factor) = match plain.strip_suffix(['k', 'K', 'M', 'G']) {
        Some(digits) => (
            digits,
            match plain.as_bytes()[digits.len()] {
                b'k' | b'K' => 1_000,
                b'M' => 1_000_000,
                _ => 1_000_000_000,
            },
        ),
        None => (plain.as_str(), 1),
    };
    let number: u64 =
        digits.parse().map_err(|_| "expected a number such as 20000, 20k or 1_000_000")?;
    number.checked_mul(factor).ok_or_else(|| "the number is too large".to_owned())
}

#[cfg(feature = "npz")]
fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = text.split_once("..").ok_or("expected START..END, such as 0..100")?;
    let range = parse_count(start)?..parse_count(end)?;
    if range.start > range.end {
        return Err("the end is before the start".into());
    }
    Ok(range)
}

#[cfg(feature = "npz")]
fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((array, axis)) if !array.is_empty() && !axis.is_empty() => {
            Ok((array.into(), axis.into()))
        }
        _ => Err("expected ARRAY=AXIS, such as pos=nodes".into()),
    }
}

/// A column of a table and the attribute to make of it: `graphs.smiles=utf8`, `nodes.label=y:i64`.
#[cfg(feature = "csv")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AskedColumn {
    pub(crate) part: csv::Part,
    pub(crate) column: String,
    pub(crate) name: String,
    pub(crate) dtype: DType,
}

#[cfg(feature = "csv")]
impl AskedColumn {
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected FILE.COLUMN=DTYPE or FILE.COLUMN=NAME:DTYPE, such as graphs.smiles=utf8 (FILE is graphs, nodes or edges)";
        // Names of columns may hold any character, names of attributes and dtypes not.
        let (from, to) = text.rsplit_once('=').ok_or(EXPECTED)?;
        let (part, column) = from.split_once('.').ok_or(EXPECTED)?;
        let part = match part {
            "graphs" => csv::Part::Graphs,
            "nodes" => csv::Part::Nodes,
            "edges" => csv::Part::Edges,
            _ => return Err(EXPECTED.into()),
        };
        let (name, dtype) = to.rsplit_once(':').unwrap_or((column, to));
        let dtype = dtype.parse().map_err(|_| EXPECTED)?;
        if column.is_empty() || name.is_empty() {
            return Err(EXPECTED.into());
        }
        Ok(AskedColumn { part, column: column.into(), name: name.into(), dtype })
    }
}

#[cfg(feature = "csv")]
fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        &[byte] if byte != b'"' && byte != b'\n' && byte != b'\r' => Ok(byte),
        _ => Err("expected one ASCII character, and not a quote or the end of a line".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn counts_have_separators_and_units() {
        assert_eq!(parse_count("1_000"), Ok(1000));
        assert_eq!(parse_count("20M"), Ok(20_000_000));
        assert_eq!(parse_count("130k"), Ok(130_000));
        assert_eq!(parse_count("2G"), Ok(2_000_000_000));
        for wrong in ["", "k", "-1", "1.5", "20 M", "1kk", "99999999999G"] {
            assert!(parse_count(wrong).is_err(), "{wrong:?}");
        }
    }

    #[cfg(feature = "csv")]
    #[test]
    fn columns_and_delimiters() {
        let asked = |part, column: &str, name: &str, dtype| {
            Ok(AskedColumn { part, column: column.into(), name: name.into(), dtype })
        };
        let parse = AskedColumn::parse;
        assert_eq!(
            parse("graphs.smiles=utf8"),
            asked(csv::Part::Graphs, "smiles", "smiles", DType::Utf8)
        );
        assert_eq!(parse("nodes.a.b=c=y:i64"), asked(csv::Part::Nodes, "a.b=c", "y", DType::I64));
        for wrong in ["x", "x=i64", "files.x=i64", "nodes.x=i65", "nodes.=i64", "nodes.x=:i64"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!((parse_delimiter("\\t"), parse_delimiter(";")), (Ok(b'\t'), Ok(b';')));
        for wrong in ["", "::", "\"", "\n", "\u{b7}"] {
            assert!(parse_delimiter(wrong).is_err(), "{wrong:?}");
        }
    }

    #[cfg(feature = "npz")]
    #[test]
    fn ranges_and_pairs() {
        assert_eq!(parse_range("0..1k"), Ok(0..1000));
        assert!(parse_range("5..4").is_err());
        assert!(parse_range("5").is_err());
        assert_eq!(parse_pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(parse_pair("=b").is_err());
    }
}
