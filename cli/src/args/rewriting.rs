//! Options of the commands that make new files of the samples of others.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};

use super::parse_count;

const KEYS: &str = "\
JSON keys:
  files: [{path, samples, file_bytes}], seconds";

/// What they all take.
#[derive(Debug, Args)]
pub(crate) struct Rewriting {
    /// Store each attribute as the smallest type that holds every value exactly
    #[arg(long)]
    pub(crate) narrow: bool,
    /// Refuse to replace a file
    #[arg(long)]
    pub(crate) no_clobber: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the samples of several files to one, file after file
///
/// The files have to agree in names, types, shapes and axes; how values are stored may differ.
/// The user metadata are those of the first file.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = format!("{KEYS}

Examples:
  fencepost concat monday.fence tuesday.fence -o both.fence
  fencepost concat --json part-*.fence -o all.fence | jq '.files[0].samples'"))]
pub(crate) struct ConcatArgs {
    /// The files, in order
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The new file
    #[arg(short = 'o', long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
}

/// Write the samples of a file to several
///
/// Into parts of so many samples or about so many bytes, named FILE-00000.fence and so on; or
/// into named parts, by shares of all samples or by lists of indices.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = format!("{KEYS}

Examples:
  fencepost split qm9.fence parts/ --samples 10k
  fencepost split qm9.fence parts/ --bytes 1G
  fencepost split qm9.fence sets/ --part train=0.8 --part val=0.1 --part test=0.1 --shuffle 7
  fencepost split qm9.fence sets/ --indices train=train.txt --indices test=test.txt"))]
#[command(override_usage = "fencepost split [OPTIONS] <FILE> <FOLDER> <how to part>")]
#[command(group = ArgGroup::new("how").required(true).args(["samples", "bytes", "parts", "indices"]))]
pub(crate) struct SplitArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The folder of the new files; made if it is not there
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Parts of so many samples; 20M, 130k and 1_000 are understood
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub(crate) samples: Option<u64>,
    /// Parts of about so many bytes: as many samples as take them on average
    #[arg(long, value_name = "BYTES", value_parser = parse_positive)]
    pub(crate) bytes: Option<u64>,
    /// A part with this share of the samples (can be given more than once)
    #[arg(long = "part", value_name = "NAME=SHARE", value_parser = parse_share)]
    pub(crate) parts: Vec<(String, f64)>,
    /// A part with the samples that a text file lists, one index a line (more than once)
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_list)]
    pub(crate) indices: Vec<(String, PathBuf)>,
    /// Choose the samples of shares at random, by this seed
    #[arg(long, value_name = "SEED", requires = "parts")]
    pub(crate) shuffle: Option<u64>,
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
}

/// Write a file anew: with other attributes, stored smaller, or one of many
#[derive(Debug, Args)]
#[command(after_long_help = format!("{KEYS}

Examples:
  fencepost compact --narrow b3db.fence small.fence
  fencepost compact qm9/ qm9.fence                                # a folder of shards
  fencepost compact qm9.fence --with embeddings.fence both.fence
  fencepost compact --drop smiles --drop pos b3db.fence bare.fence"))]
pub(crate) struct CompactArgs {
    /// The file, or a folder of shards
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,
    /// A file that adds attributes to its samples (can be given more than once)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) with: Vec<PathBuf>,
    /// The new file
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Keep only this attribute (can be given more than once)
    #[arg(long = "select", value_name = "NAME")]
    pub(crate) selected: Vec<String>,
    /// Leave this attribute out (can be given more than once)
    #[arg(long = "drop", value_name = "NAME", conflicts_with = "selected")]
    pub(crate) dropped: Vec<String>,
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
}

/// Write the samples of a file in another order
///
/// Shuffled once, so that reading from front to back is reading in random order; or sorted by
/// size, so that samples of a batch need little padding. Memory: 8 bytes a sample.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = format!("{KEYS}

Examples:
  fencepost repack b3db.fence shuffled.fence --order shuffle:7
  fencepost repack b3db.fence sorted.fence --order by:nodes
  fencepost repack b3db.fence listed.fence --order order.txt     # one index a line"))]
pub(crate) struct RepackArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The new file
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// shuffle:SEED, by:AXIS (shortest first), or a text file with one index a line
    #[arg(long, value_name = "ORDER", value_parser = Order::parse)]
    pub(crate) order: Order,
    #[command(flatten)]
    pub(crate) rewriting: Rewriting,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    Shuffle(u64),
    By(String),
    Listed(PathBuf),
}

impl Order {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("shuffle", seed)) => Ok(Order::Shuffle(
                seed.parse().map_err(|_| "expected a whole number behind shuffle:")?,
            )),
            Some(("by", axis)) if !axis.is_empty() => Ok(Order::By(axis.into())),
            _ => Ok(Order::Listed(text.into())),
        }
    }
}

fn parse_positive(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("a part has at least one".into()),
        number => Ok(number),
    }
}

/// A name becomes part of a file's.
fn parse_name(text: &str) -> Result<(String, &str), String> {
    match text.split_once('=') {
        Some((name, rest))
            if !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']) =>
        {
            Ok((name.into(), rest))
        }
        _ => Err("expected NAME=..., the name that of a file".into()),
    }
}

fn parse_share(text: &str) -> Result<(String, f64), String> {
    let (name, share) = parse_name(text)?;
    match share.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok((name, share)),
        _ => Err("expected a share from 0 to 1, such as train=0.8".into()),
    }
}

fn parse_list(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = parse_name(text)?;
    Ok((name, file.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_shares_and_names() {
        assert_eq!(Order::parse("shuffle:7"), Ok(Order::Shuffle(7)));
        assert_eq!(Order::parse("by:nodes"), Ok(Order::By("nodes".into())));
        assert_eq!(Order::parse("order.txt"), Ok(Order::Listed("order.txt".into())));
        assert!(Order::parse("shuffle:x").is_err());
        assert_eq!(parse_share("train=0.8"), Ok(("train".into(), 0.8)));
        for wrong in ["0.8", "=0.8", "a=1.5", "a=x", "../a=0.1", ".a=0.1", "a=NaN"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_positive("0").unwrap_err(), "a part has at least one");
    }
}
