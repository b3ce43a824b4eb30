//! graph6 and sparse6: the text formats of nauty and its many users, one undirected graph a line.
//!
//! A line is a number of nodes `n` (1, 4 or 8 bytes) and a bit vector in bytes of 6 bits, each plus 63:
//!
//! - **graph6**: the upper triangle of the adjacency matrix, column after column;
//! - **sparse6** (starts with `:`): edges as steps and targets, with padding that has its own rules. Loops and parallel
//!   edges are allowed and kept.
//!
//! The file may start with `>>graph6<<` or `>>sparse6<<`, and graphs of both kinds may be mixed. digraph6 (`&`) and
//! incremental sparse6 (`;`) are refused by name. Reading is strict: the shortest form of `n`, no byte outside 63..=126,
//! exactly as many bytes as `n` asks for, zero padding in graph6, and in sparse6 no more padding than the last byte has
//! room for. So a file that was cut off or joined wrongly is found at the line where it happened.
//!
//! [`Reader`] yields graphs in PyTorch Geometric's form: `edge_index` of shape `[2, edges]` holds each undirected edge in
//! both directions (a loop once), ordered by source and then target.
//!
//! ```
//! use fencepost::convert::graph6::{Graph, Reader};
//!
//! // The path of 3 nodes, and a triangle.
//! let mut reader = Reader::new(&b"Bg\nBw\n"[..], "two.g6");
//! let mut graph = Graph::default();
//! assert!(reader.read(&mut graph)?);
//! assert_eq!(graph.num_nodes(), 3);
//! assert_eq!(graph.edge_index(), [0, 1, 1, 2, 1, 0, 2, 1]);
//! assert!(reader.read(&mut graph)?);
//! assert_eq!(graph.num_edges(), 6);
//! assert!(!reader.read(&mut graph)?);
//! # Ok::<(), fencepost::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::{malformed, quoted};
use crate::error::Result;

/// One graph, in buffers that the next one uses again.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Graph {
    num_nodes: u64,
    pairs: Vec<(u64, u64)>,
    directed: Vec<(u64, u64)>,
    edge_index: Vec<i64>,
}

impl Graph {
    /// Number of nodes.
    pub fn num_nodes(&self) -> u64 {
        self.num_nodes
    }

    /// The edges as the file lists them, each once, smaller node first.
    pub fn pairs(&self) -> &[(u64, u64)] {
        &self.pairs
    }

    /// Columns of [`edge_index`](Graph::edge_index): twice the edges of the file, loops counted once.
    pub fn num_edges(&self) -> usize {
        self.edge_index.len() / 2
    }

    /// The sources of all edges, then the targets: a C-order tensor of shape `[2, num_edges]`.
    pub fn edge_index(&self) -> &[i64] {
        &self.edge_index
    }

    fn clear(&mut self) {
        self.num_nodes = 0;
        self.pairs.clear();
        self.edge_index.clear();
    }

    /// Fills `edge_index` from `pairs`.
    fn direct(&mut self) {
        self.directed.clear();
        for &(u, v) in &self.pairs {
            self.directed.push((u, v));
            if u != v {
                self.directed.push((v, u));
            }
        }
        self.directed.sort_unstable();
        // Node numbers are below 2^36, so the conversion to i64 is exact.
        self.edge_index.extend(self.directed.iter().map(|&(source, _)| source as i64));
        self.edge_index.extend(self.directed.iter().map(|&(_, target)| target as i64));
    }
}

/// Reads a graph6 or sparse6 file graph by graph.
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
}

impl Reader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Reader { lines: Lines::open(path.as_ref())? })
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads from anything; `name` is what messages call it.
    pub fn new(reader: R, name: impl Into<PathBuf>) -> Self {
        Reader { lines: Lines::new(reader, name) }
    }

    /// Reads the next graph into `graph`; false (and an empty graph) at the end of the file.
    ///
    /// # Errors
    /// [`Error::Convert`](crate::Error::Convert) naming line and byte if the line is no graph.
    pub fn read(&mut self, graph: &mut Graph) -> Result<bool> {
        graph.clear();
        if !self.lines.advance()? {
            return Ok(false);
        }
        let mut skipped = 0;
        if self.lines.number() == 1 && self.lines.line().starts_with(b">>") {
            skipped = header(self.lines.line()).map_err(|fault| self.fault(0, fault))?;
            // nauty writes the first graph right behind the header; others give the header a line of its own.
            if skipped == self.lines.line().len() {
                skipped = 0;
                if !self.lines.advance()? {
                    return Ok(false);
                }
            }
        }
        decode(&self.lines.line()[skipped..], graph).map_err(|fault| self.fault(skipped, fault))?;
        Ok(true)
    }

    /// Number of the line of the last graph read, from 1.
    pub fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Bytes of the source that have been read.
    pub fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn fault(&self, skipped: usize, fault: Fault) -> crate::Error {
        let place = format!("line {}, byte {}", self.lines.number(), skipped + fault.at + 1);
        malformed(self.lines.path(), place, fault.expected, fault.found)
    }
}

/// What is wrong with a line, at a byte counted from 0.
struct Fault {
    at: usize,
    expected: String,
    found: String,
}

impl Fault {
    fn new(at: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Fault { at, expected: expected.into(), found: found.into() }
    }
}

/// Length of the file header that `line` starts with.
fn header(line: &[u8]) -> Result<usize, Fault> {
    for known in [&b">>graph6<<"[..], b">>sparse6<<"] {
        if line.starts_with(known) {
            return Ok(known.len());
        }
    }
    let end = line.windows(2).position(|w| w == b"<<").map_or(line.len(), |at| at + 2);
    let found = quoted(&line[..end]);
    if line.starts_with(b">>digraph6<<") {
        return Err(Fault::new(0, UNDIRECTED, format!("the header {found}")));
    }
    Err(Fault::new(0, "the header >>graph6<< or >>sparse6<<, or none", found))
}

const UNDIRECTED: &str = "undirected graphs in graph6 or sparse6 (digraph6 is not read)";

/// The bytes that carry 6 bits each.
const BYTES: std::ops::RangeInclusive<u8> = 63..=126;

/// Decodes one line without its end.
fn decode(line: &[u8], graph: &mut Graph) -> Result<(), Fault> {
    let sparse = match line.first() {
        None => return Err(Fault::new(0, "a graph", "an empty line")),
        Some(b'&') => return Err(Fault::new(0, UNDIRECTED, "a digraph6 line ('&')")),
        Some(b';') => {
            let expected = "graph6 or sparse6 (write incremental sparse6 as sparse6 first)";
            return Err(Fault::new(0, expected, "an incremental sparse6 line (';')"));
        }
        Some(b':') => true,
        Some(_) => false,
    };
    let start = usize::from(sparse);
    if let Some(at) = line[start..].iter().position(|byte| !BYTES.contains(byte)) {
        let at = start + at;
        return Err(Fault::new(
            at,
            "a byte in 63..=126",
            format!("{} ({})", line[at], quoted(&line[at..=at])),
        ));
    }
    let (num_nodes, length) = number(&line[start..], start)?;
    let body = &line[start + length..];
    graph.num_nodes = num_nodes;
    if sparse {
        sparse6(num_nodes, body, start + length, graph)?;
    } else {
        graph6(num_nodes, body, start + length, graph)?;
    }
    graph.direct();
    Ok(())
}

/// The number of nodes and the bytes that it takes. The bytes are known to be in `BYTES`; `at` is where they start.
fn number(bytes: &[u8], at: usize) -> Result<(u64, usize), Fault> {
    // One byte below 63; 126 and 3 bytes up to 258047; 126 126 and 6 bytes up to 2^36 - 1.
    let (skip, length, least) = match bytes {
        [126, 126, ..] => (2, 8, 258_048),
        [126, ..] => (1, 4, 63),
        [_, ..] => (0, 1, 0),
        [] => return Err(Fault::new(at, "a number of nodes", "the end of the line")),
    };
    let Some(digits) = bytes.get(skip..length) else {
        let expected = format!("a number of nodes in {length} bytes");
        return Err(Fault::new(at, expected, format!("a line that ends after {}", bytes.len())));
    };
    let value = digits.iter().fold(0, |value, byte| value << 6 | u64::from(byte - 63));
    if value < least {
        let expected = format!("at least {least} nodes in the form with {length} bytes");
        return Err(Fault::new(at, expected, value.to_string()));
    }
    Ok((value, length))
}

/// The upper triangle, column by column: (0,1), (0,2), (1,2), (0,3), ...
fn graph6(num_nodes: u64, body: &[u8], at: usize, graph: &mut Graph) -> Result<(), Fault> {
    // Below 2^71, so computed wider than any length can be.
    let bits = u128::from(num_nodes) * u128::from(num_nodes.saturating_sub(1)) / 2;
    let expected = bits.div_ceil(6);
    if body.len() as u128 != expected {
        let what = format!("{expected} bytes of adjacency for {num_nodes} nodes");
        return Err(Fault::new(at, what, format!("{} bytes", body.len())));
    }
    if let Some(last) = body.last() {
        // The length matches, so both fit.
        let padding = (expected * 6 - bits) as u32;
        if (last - 63) & ((1 << padding) - 1) != 0 {
            let found = format!("{:06b} in the last byte", last - 63);
            return Err(Fault::new(
                at + body.len() - 1,
                format!("{padding} zero bits of padding"),
                found,
            ));
        }
    }
    let (mut row, mut column) = (0, 1);
    for byte in body {
        let byte = byte - 63;
        for shift in (0..6).rev() {
            if byte >> shift & 1 == 1 {
                graph.pairs.push((row, column));
            }
            row += 1;
            if row == column {
                row = 0;
                column += 1;
            }
        }
    }
    Ok(())
}

/// Units of one bit `b` and `k` bits `x`: `b` steps the current node on, then `x` either becomes the current node (if it
/// is larger) or is joined to it.
fn sparse6(num_nodes: u64, body: &[u8], at: usize, graph: &mut Graph) -> Result<(), Fault> {
    // Bits that the number of the last node takes; 0 for one node, whose only possible edge is a loop.
    let k = num_nodes.saturating_sub(1).checked_ilog2().map_or(0, |log| log as usize + 1);
    let total = body.len() * 6;
    let bit = |i: usize| u64::from((body[i / 6] - 63) >> (5 - i % 6) & 1);
    let mut current = 0_u64;
    let mut position = 0;
    // Where the last unit that made an edge ends: what follows is padding.
    let mut used = 0;
    while position + 1 + k <= total {
        current += bit(position);
        let x = (position + 1..position + 1 + k).fold(0, |x, i| x << 1 | bit(i));
        position += 1 + k;
        if current >= num_nodes || x >= num_nodes {
            break;
        }
        if x > current {
            current = x;
        } else {
            graph.pairs.push((x, current));
            used = position;
        }
    }
    // Padding fills the last byte with ones; the first bit may be 0 where ones alone would read as a loop.
    let padding = total - used;
    let byte = at + used / 6;
    if padding >= 6 {
        let found = format!("{padding} bits that make no edge");
        return Err(Fault::new(
            byte,
            format!("edges among {num_nodes} nodes, then less than 6 bits of padding"),
            found,
        ));
    }
    if (used + 1..total).any(|i| bit(i) == 0) {
        let found: String = (used..total).map(|i| if bit(i) == 1 { '1' } else { '0' }).collect();
        return Err(Fault::new(byte, "padding of one bits (the first may be 0)", found));
    }
    Ok(())
}
