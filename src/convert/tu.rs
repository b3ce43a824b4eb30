//! Text sets in the layout of the TU Dortmund collection, read to the tensors that PyTorch Geometric makes of them.
//!
//! A set `DS` is a folder of comma-separated text files, a line for each edge, node or graph:
//!
//! | file | a line is | |
//! | --- | --- | --- |
//! | `DS_A.txt` | an edge `source, target` (node numbers from 1) | required |
//! | `DS_graph_indicator.txt` | the graph (from 1) of a node | required |
//! | `DS_node_labels.txt`, `DS_edge_labels.txt` | one or more integers | optional |
//! | `DS_node_attributes.txt`, `DS_edge_attributes.txt` | one or more numbers | optional |
//! | `DS_graph_labels.txt` | one or more integers | optional |
//! | `DS_graph_attributes.txt` | one or more numbers | optional |
//! | `DS_<name>.txt` | text, if the file has as many lines as the set has graphs | optional |
//!
//! What comes out equals `torch_geometric.datasets.TUDataset`:
//!
//! - `x` = node attributes, then the node labels one-hot (each column: its least label is class 0, and there are as many
//!   classes as the largest needs); `edge_attr` likewise. As in PyG, attributes are left out unless [`Options`] ask for them.
//! - `edge_index`: self-loops removed, ordered by source and then target, parallel edges merged and their `edge_attr` added.
//!   Node numbers start at 0 in each graph.
//! - `y` = graph attributes (f32), else graph labels as ranks among all labels of the set (i64). A file with a line for each
//!   node instead of each graph gives a `y` for each node.
//!
//! Where PyG goes astray, this reader does not follow: it keeps the last line of a file without a final newline, keeps
//! graphs without edges at the end of a set, and refuses edges between graphs and nodes that are not listed graph by graph
//! (PyG gives wrong graphs for both).
//!
//! # Memory
//! [`Reader::open`] goes through labels, indicator and edges once to learn sizes and classes, then graphs are read one by
//! one. If the edges are not listed graph by graph, they cannot be streamed: all of them are then held in memory, sorted,
//! at 32 bytes an edge and 4 for each column of `edge_attr` ([`Layout::streamed`] tells).
//!
//! ```no_run
//! use fencepost::convert::tu::{Graph, Options, Reader};
//!
//! let mut reader = Reader::open("B3DB", &Options::default().use_node_attr(true))?;
//! let mut graph = Graph::default();
//! while reader.read(&mut graph)? {
//!     println!("{} nodes, {} edges", graph.num_nodes, graph.num_edges);
//! }
//! # Ok::<(), fencepost::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::{malformed, quoted};
use crate::error::{Error, Result};

/// Most classes that the labels of nodes or edges may give together; more is a sign of ids used as labels.
pub const MAX_CLASSES: usize = 65_536;

/// What to read of a set.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Options {
    name: Option<String>,
    use_node_attr: bool,
    use_edge_attr: bool,
}

impl Options {
    /// PyG's defaults: labels, but no node or edge attributes.
    pub fn new() -> Self {
        Options::default()
    }

    /// The set's name, the prefix of its files. Needed if the folder has several sets.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Whether `x` starts with the node attributes (default false, as in PyG).
    pub fn use_node_attr(mut self, yes: bool) -> Self {
        self.use_node_attr = yes;
        self
    }

    /// Whether `edge_attr` starts with the edge attributes (default false, as in PyG).
    pub fn use_edge_attr(mut self, yes: bool) -> Self {
        self.use_edge_attr = yes;
        self
    }
}

/// The target `y` of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// True for graph attributes (f32), false for graph labels (i64).
    pub float: bool,
    /// Numbers in a line of the file; 1 gives `[1]` a graph, more give `[1, columns]`.
    pub columns: usize,
    /// Whether the file has a line for each node, which gives `[nodes]` or `[nodes, columns]`.
    pub per_node: bool,
}

/// What a set has, known after [`Reader::open`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// The set's name.
    pub name: String,
    /// Number of graphs.
    pub num_graphs: u64,
    /// Number of nodes of all graphs.
    pub num_nodes: u64,
    /// Lines of the edge file, before self-loops are removed and parallel edges merged.
    pub num_edge_lines: u64,
    /// Columns of the node attribute file, whether used or not; 0 without one.
    pub num_node_attributes: usize,
    /// Classes of the node labels; 0 without labels.
    pub num_node_labels: usize,
    /// Columns of the edge attribute file, whether used or not; 0 without one.
    pub num_edge_attributes: usize,
    /// Classes of the edge labels; 0 without labels.
    pub num_edge_labels: usize,
    /// Columns of `x`; `None` without node files. `Some(0)` if there are only attributes and they are not used, as in PyG.
    pub x: Option<usize>,
    /// Columns of `edge_attr`, like `x`.
    pub edge_attr: Option<usize>,
    /// The target.
    pub y: Option<Target>,
    /// Names of the further files with one line of text a graph.
    pub texts: Vec<String>,
    /// Further files of the set that have another number of lines, and are left out.
    pub ignored: Vec<PathBuf>,
    /// Whether the edges are read in step with the nodes; false if they had to be sorted in memory.
    pub streamed: bool,
}

/// One graph, in buffers that the next one uses again. Tensors are in C order.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Graph {
    /// Number of nodes.
    pub num_nodes: usize,
    /// Number of edges: columns of `edge_index`.
    pub num_edges: usize,
    /// `[2, num_edges]`.
    pub edge_index: Vec<i64>,
    /// `[num_nodes, Layout::x]`.
    pub x: Vec<f32>,
    /// `[num_edges, Layout::edge_attr]`.
    pub edge_attr: Vec<f32>,
    /// `y`, if it is labels.
    pub y_label: Vec<i64>,
    /// `y`, if it is attributes.
    pub y_value: Vec<f32>,
    /// The lines of the text files, in the order of [`Layout::texts`].
    pub texts: Vec<String>,
}

/// Reads a set graph by graph.
#[derive(Debug)]
pub struct Reader {
    layout: Layout,
    indicator: Table,
    nodes: Features,
    edges: Edges,
    target: Option<TargetReader>,
    texts: Vec<Lines<BufReader<File>>>,
    /// Graphs read.
    graph: u64,
    /// Graph (from 1) of the node line that has been read and belongs to a later graph.
    ahead: Option<u64>,
    /// Nodes read.
    node: u64,
    scratch: Vec<Edge>,
    features: Vec<f32>,
}

impl Reader {
    /// Opens a set and goes through its files once to learn what is in them.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::Convert`] if one is malformed or two do not fit together,
    /// [`Error::Unsupported`] if the folder does not say which set is meant.
    pub fn open(folder: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let files = Files::find(folder.as_ref(), options.name.as_deref())?;
        let indicator_path = files.required("graph_indicator");
        let edge_path = files.required("A");
        let (num_graphs, num_nodes) = scan_indicator(&indicator_path)?;
        let scan = scan_edges(&edge_path, &indicator_path, num_nodes)?;

        let nodes = Features::open(&files, "node", options.use_node_attr)?;
        let edge_features = Features::open(&files, "edge", options.use_edge_attr)?;
        let target = TargetReader::open(&files, num_graphs, num_nodes)?;
        let mut texts = Vec::new();
        let mut text_names = Vec::new();
        let mut ignored = Vec::new();
        for (name, path) in &files.others {
            if count_lines(path)? == num_graphs {
                texts.push(Lines::open(path)?);
                text_names.push(name.clone());
            } else {
                ignored.push(path.clone());
            }
        }
        let layout = Layout {
            name: files.name.clone(),
            num_graphs,
            num_nodes,
            num_edge_lines: scan.lines,
            num_node_attributes: nodes.num_attributes,
            num_node_labels: nodes.num_classes(),
            num_edge_attributes: edge_features.num_attributes,
            num_edge_labels: edge_features.num_classes(),
            x: nodes.columns(),
            edge_attr: edge_features.columns(),
            y: target.as_ref().map(|t| t.target),
            texts: text_names,
            ignored,
            streamed: scan.grouped,
        };
        let edges = Edges::open(&edge_path, edge_features, &scan, num_nodes)?;
        Ok(Reader {
            layout,
            indicator: Table::open(&indicator_path)?,
            nodes,
            edges,
            target,
            texts,
            graph: 0,
            ahead: None,
            node: 0,
            scratch: Vec::new(),
            features: Vec::new(),
        })
    }

    /// What the set has.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of graphs read so far.
    pub fn position(&self) -> u64 {
        self.graph
    }

    /// Reads the next graph into `graph`; false after the last.
    ///
    /// # Errors
    /// [`Error::Convert`] naming file and line if something is malformed. The reader is of no further use then.
    pub fn read(&mut self, graph: &mut Graph) -> Result<bool> {
        graph.edge_index.clear();
        graph.x.clear();
        graph.edge_attr.clear();
        graph.y_label.clear();
        graph.y_value.clear();
        if self.graph == self.layout.num_graphs {
            graph.num_nodes = 0;
            graph.num_edges = 0;
            graph.texts.clear();
            self.check_ends()?;
            return Ok(false);
        }
        let first = self.node;
        self.read_nodes(graph)?;
        graph.num_nodes = (self.node - first) as usize;
        self.read_edges(first..self.node, graph)?;
        if let Some(target) = &mut self.target {
            let rows = if target.target.per_node { graph.num_nodes } else { 1 };
            for _ in 0..rows {
                target.read(graph)?;
            }
        }
        graph.texts.resize_with(self.texts.len(), String::new);
        for (lines, text) in self.texts.iter_mut().zip(&mut graph.texts) {
            if !lines.advance()? {
                return Err(ends_early(lines.path(), lines.number(), "a line for each graph"));
            }
            text.clear();
            text.push_str(lines.text()?);
        }
        self.graph += 1;
        Ok(true)
    }

    fn read_nodes(&mut self, graph: &mut Graph) -> Result<()> {
        let this = self.graph + 1;
        loop {
            let of = match self.ahead {
                Some(of) => of,
                None if self.indicator.next()? => indicator_value(&mut self.indicator)?,
                None => return Ok(()),
            };
            if of != this {
                // Scanned as ascending; if the file has changed since, this ends in an error at the next file.
                self.ahead = Some(of);
                return Ok(());
            }
            self.ahead = None;
            self.node += 1;
            self.nodes.read(&mut graph.x)?;
        }
    }

    fn read_edges(&mut self, nodes: Range<u64>, graph: &mut Graph) -> Result<()> {
        let width = self.edges.width();
        self.scratch.clear();
        self.features.clear();
        while let Some((source, target)) = self.edges.next_from(&nodes, &mut self.features)? {
            if source == target {
                self.features.truncate(self.scratch.len() * width);
                continue;
            }
            let order = self.scratch.len();
            self.scratch.push(Edge {
                source: source - nodes.start,
                target: target - nodes.start,
                order,
            });
        }
        // The order of the file decides among equals, so that sums come out as PyG's to the last bit.
        self.scratch.sort_unstable();
        let mut last = None;
        for edge in &self.scratch {
            let row = &self.features[edge.order * width..][..width];
            if last == Some((edge.source, edge.target)) {
                let start = graph.edge_attr.len() - width;
                for (sum, value) in graph.edge_attr[start..].iter_mut().zip(row) {
                    *sum += value;
                }
                continue;
            }
            last = Some((edge.source, edge.target));
            graph.edge_index.push(edge.source as i64);
            graph.edge_attr.extend_from_slice(row);
        }
        graph.num_edges = graph.edge_index.len();
        last = None;
        for edge in &self.scratch {
            if last != Some((edge.source, edge.target)) {
                graph.edge_index.push(edge.target as i64);
            }
            last = Some((edge.source, edge.target));
        }
        Ok(())
    }

    /// Files that go on when all graphs are read do not belong to this set.
    fn check_ends(&mut self) -> Result<()> {
        let nodes = format!("{} lines, one for each node", self.layout.num_nodes);
        for table in self.nodes.tables() {
            table.expect_end(&nodes)?;
        }
        self.edges.check_end(self.layout.num_edge_lines)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    source: u64,
    target: u64,
    /// Place in the graph, and in the buffer of its features.
    order: usize,
}

fn ends_early(path: &Path, lines: u64, expected: &str) -> Error {
    malformed(path, format!("after line {lines}"), expected, "the end of the file")
}

/// Number of lines, without looking at them.
fn count_lines(path: &Path) -> Result<u64> {
    let mut lines = Lines::open(path)?;
    while lines.advance()? {}
    Ok(lines.number())
}

/// The files of one set.
struct Files {
    folder: PathBuf,
    name: String,
    /// Names of the files of the known kinds.
    known: Vec<&'static str>,
    /// Name and path of the others, by name.
    others: Vec<(String, PathBuf)>,
}

const KINDS: [&str; 8] = [
    "A",
    "graph_indicator",
    "node_labels",
    "node_attributes",
    "edge_labels",
    "edge_attributes",
    "graph_labels",
    "graph_attributes",
];

impl Files {
    fn find(folder: &Path, name: Option<&str>) -> Result<Self> {
        let unreadable = |e| Error::io("list the folder", folder, e);
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension() == Some(OsStr::new("txt"))
                && let Some(stem) = path.file_stem().and_then(OsStr::to_str)
            {
                names.push(stem.to_owned());
            }
        }
        names.sort();
        let name = match name {
            Some(name) => name.to_owned(),
            None => {
                let sets: Vec<_> = names.iter().filter_map(|n| n.strip_suffix("_A")).collect();
                match sets[..] {
                    [one] => one.to_owned(),
                    [] => {
                        return Err(malformed(folder, "the folder", "a file <name>_A.txt", "none"));
                    }
                    _ => {
                        return Err(Error::Unsupported {
                            what: format!("{}", folder.display()).into(),
                            problem: format!(
                                "the folder has {} sets ({}): name the one to import",
                                sets.len(),
                                sets.join(", ")
                            )
                            .into(),
                        });
                    }
                }
            }
        };
        let prefix = format!("{name}_");
        let suffixes: Vec<_> = names.iter().filter_map(|n| n.strip_prefix(&prefix)).collect();
        let known: Vec<_> = KINDS.into_iter().filter(|kind| suffixes.contains(kind)).collect();
        let others = suffixes
            .iter()
            .filter(|suffix| !KINDS.contains(suffix))
            .map(|suffix| (suffix.to_string(), folder.join(format!("{prefix}{suffix}.txt"))))
            .collect();
        Ok(Files { folder: folder.to_owned(), name, known, others })
    }

    fn required(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}_{kind}.txt", self.name))
    }

    fn optional(&self, kind: &str) -> Option<PathBuf> {
        self.known.contains(&kind).then(|| self.required(kind))
    }
}

/// Lines of numbers, separated by commas, as many in each line as in the first.
#[derive(Debug)]
struct Table {
    lines: Lines<BufReader<File>>,
    columns: Option<usize>,
    integers: Vec<i64>,
    floats: Vec<f32>,
}

impl Table {
    fn open(path: &Path) -> Result<Self> {
        Ok(Table {
            lines: Lines::open(path)?,
            columns: None,
            integers: Vec::new(),
            floats: Vec::new(),
        })
    }

    /// Columns of the first line; 0 for an empty file.
    fn peek_columns(path: &Path) -> Result<usize> {
        let mut lines = Lines::open(path)?;
        if !lines.advance()? {
            return Ok(0);
        }
        Ok(lines.line().split(|&byte| byte == b',').count())
    }

    fn next(&mut self) -> Result<bool> {
        self.lines.advance()
    }

    fn expect(&mut self, what: &str) -> Result<()> {
        if self.next()? {
            Ok(())
        } else {
            Err(ends_early(self.lines.path(), self.lines.number(), what))
        }
    }

    fn expect_end(&mut self, expected: &str) -> Result<()> {
        if self.next()? { Err(self.fault(expected, "a further line")) } else { Ok(()) }
    }

    fn fault(&self, expected: &str, found: impl Into<Box<str>>) -> Error {
        malformed(self.lines.path(), self.lines.place(), expected, found)
    }

    fn integers(&mut self) -> Result<&[i64]> {
        self.integers.clear();
        parse(
            &self.lines,
            &mut self.columns,
            "an integer",
            |text| text.parse::<i64>().ok(),
            &mut self.integers,
        )?;
        Ok(&self.integers)
    }

    /// Numbers as PyG reads them: to f64 first, then rounded to f32.
    fn floats(&mut self) -> Result<&[f32]> {
        self.floats.clear();
        let number = |text: &str| text.parse::<f64>().ok().map(|value| value as f32);
        parse(&self.lines, &mut self.columns, "a number", number, &mut self.floats)?;
        Ok(&self.floats)
    }
}

fn parse<T>(
    lines: &Lines<BufReader<File>>,
    columns: &mut Option<usize>,
    what: &str,
    convert: impl Fn(&str) -> Option<T>,
    values: &mut Vec<T>,
) -> Result<()> {
    for field in lines.line().split(|&byte| byte == b',') {
        let field = field.trim_ascii();
        let value = std::str::from_utf8(field).ok().and_then(&convert).ok_or_else(|| {
            let place = format!("line {}, column {}", lines.number(), values.len() + 1);
            let found =
                if lines.line().is_empty() { "an empty line".into() } else { quoted(field) };
            malformed(lines.path(), place, what, found)
        })?;
        values.push(value);
    }
    let expected = *columns.get_or_insert(values.len());
    if values.len() != expected {
        let expected = format!("{expected} values, as in the first line");
        return Err(malformed(lines.path(), lines.place(), expected, values.len().to_string()));
    }
    Ok(())
}

/// The graph (from 1) of the current line of an indicator file.
fn indicator_value(table: &mut Table) -> Result<u64> {
    const EXPECTED: &str = "the number of a graph, from 1";
    match *table.integers()? {
        [value] if value >= 1 => Ok(value as u64),
        [value] => Err(table.fault(EXPECTED, value.to_string())),
        ref row => {
            let found = format!("{} values", row.len());
            Err(table.fault(EXPECTED, found))
        }
    }
}

/// Numbers of graphs and nodes; checks that nodes are listed graph by graph.
fn scan_indicator(path: &Path) -> Result<(u64, u64)> {
    let mut table = Table::open(path)?;
    let mut last = 0;
    while table.next()? {
        let value = indicator_value(&mut table)?;
        if value < last {
            let expected = format!("nodes listed graph by graph (graph {last} or a later one)");
            return Err(table.fault(&expected, format!("graph {value}")));
        }
        last = value;
    }
    // A graph without nodes is legal, a billion of them are a broken line.
    let nodes = table.lines.number();
    if last > nodes.saturating_mul(16).saturating_add(1 << 20) {
        let expected = format!("about as many graphs as there are nodes ({nodes})");
        return Err(table.fault(&expected, format!("graph {last}")));
    }
    Ok((last, nodes))
}

/// What a first pass over the edges tells.
struct EdgeScan {
    lines: u64,
    /// Whether the edges are listed graph by graph, in the order of the graphs.
    grouped: bool,
}

/// Checks every edge, and whether the edges can be read in step with the nodes.
fn scan_edges(edges: &Path, indicator: &Path, num_nodes: u64) -> Result<EdgeScan> {
    let mut table = Table::open(edges)?;
    let mut nodes = Table::open(indicator)?;
    let mut ahead = None;
    // Nodes of the graph that the last edge lies in.
    let mut graph = 0..0;
    let mut grouped = true;
    while table.next()? {
        let (source, target) = edge_value(&mut table, num_nodes)?;
        if !grouped {
            continue;
        }
        if source < graph.start {
            grouped = false;
            continue;
        }
        while source >= graph.end {
            // The next graph starts at the line that is ahead, or at the first.
            let of = match ahead.take() {
                Some(of) => of,
                None if nodes.next()? => indicator_value(&mut nodes)?,
                None => return Err(ends_early(indicator, graph.end, "a line for each node")),
            };
            graph = graph.end..graph.end + 1;
            while nodes.next()? {
                let next = indicator_value(&mut nodes)?;
                if next != of {
                    ahead = Some(next);
                    break;
                }
                graph.end += 1;
            }
        }
        check_inside(edges, table.lines.number(), &graph, source, target)?;
    }
    Ok(EdgeScan { lines: table.lines.number(), grouped })
}

/// The current line of an edge file, counted from 0.
fn edge_value(table: &mut Table, num_nodes: u64) -> Result<(u64, u64)> {
    match *table.integers()? {
        [source, target] => {
            for node in [source, target] {
                if node < 1 || node as u64 > num_nodes {
                    let expected = format!("a node in 1..={num_nodes}");
                    return Err(table.fault(&expected, node.to_string()));
                }
            }
            Ok((source as u64 - 1, target as u64 - 1))
        }
        ref row => {
            let found = format!("{} values", row.len());
            Err(table.fault("an edge: two node numbers", found))
        }
    }
}

/// An edge must end in the graph that it starts in.
fn check_inside(
    path: &Path,
    line: u64,
    graph: &Range<u64>,
    source: u64,
    target: u64,
) -> Result<()> {
    if graph.contains(&target) {
        return Ok(());
    }
    let expected = format!("an edge within one graph (nodes {}..={})", graph.start + 1, graph.end);
    let found = format!("an edge from node {} to node {}", source + 1, target + 1);
    Err(malformed(path, format!("line {line}"), expected, found))
}

/// The label columns of nodes or edges.
#[derive(Debug)]
struct Labels {
    table: Table,
    least: Vec<i64>,
    classes: Vec<usize>,
}

impl Labels {
    /// Finds the classes in one pass, then starts again.
    fn open(path: &Path) -> Result<Self> {
        let mut table = Table::open(path)?;
        let mut least = Vec::new();
        let mut most: Vec<i64> = Vec::new();
        while table.next()? {
            let row = table.integers()?;
            if least.is_empty() {
                least.extend_from_slice(row);
                most.extend_from_slice(row);
            }
            for ((value, least), most) in row.iter().zip(&mut least).zip(&mut most) {
                *least = (*least).min(*value);
                *most = (*most).max(*value);
            }
        }
        let mut classes = Vec::new();
        let mut total = 0_usize;
        for (column, (least, most)) in least.iter().zip(&most).enumerate() {
            // The difference of two i64 fits in u64.
            let distance = most.abs_diff(*least);
            let count = usize::try_from(distance).unwrap_or(usize::MAX).saturating_add(1);
            total = total.saturating_add(count);
            if total > MAX_CLASSES {
                let place = format!("column {}", column + 1);
                let expected = format!(
                    "labels that give at most {MAX_CLASSES} classes (ids and measures are attributes)"
                );
                return Err(malformed(
                    path,
                    place,
                    expected,
                    format!("labels from {least} to {most}"),
                ));
            }
            classes.push(count);
        }
        Ok(Labels { table: Table::open(path)?, least, classes })
    }

    fn read(&mut self, out: &mut Vec<f32>) -> Result<()> {
        self.table.expect("as many lines as there are nodes or edges")?;
        let start = out.len();
        out.resize(start + self.classes.iter().sum::<usize>(), 0.0);
        let mut column = start;
        // Only as many values as columns, each within the classes found, unless the file has changed since.
        for ((value, least), classes) in
            self.table.integers()?.iter().zip(&self.least).zip(&self.classes)
        {
            let class = value.abs_diff(*least) as usize;
            if class < *classes {
                out[column + class] = 1.0;
            }
            column += classes;
        }
        Ok(())
    }
}

/// The rows of `x` or `edge_attr`.
#[derive(Debug)]
struct Features {
    attributes: Option<Table>,
    num_attributes: usize,
    use_attributes: bool,
    labels: Option<Labels>,
}

impl Features {
    /// `of` is `node` or `edge`.
    fn open(files: &Files, of: &str, use_attributes: bool) -> Result<Self> {
        let attributes = files.optional(&format!("{of}_attributes"));
        let num_attributes = attributes.as_deref().map_or(Ok(0), Table::peek_columns)?;
        let attributes = attributes.filter(|_| use_attributes && num_attributes > 0);
        let labels = files.optional(&format!("{of}_labels"));
        Ok(Features {
            attributes: attributes.as_deref().map(Table::open).transpose()?,
            num_attributes,
            use_attributes,
            labels: labels.as_deref().map(Labels::open).transpose()?,
        })
    }

    fn num_classes(&self) -> usize {
        self.labels.as_ref().map_or(0, |labels| labels.classes.iter().sum())
    }

    /// Columns of a row; `None` if no file gives any, as PyG drops empty tensors.
    fn columns(&self) -> Option<usize> {
        (self.num_attributes > 0 || self.num_classes() > 0).then(|| self.width())
    }

    fn width(&self) -> usize {
        self.num_classes() + if self.use_attributes { self.num_attributes } else { 0 }
    }

    fn read(&mut self, out: &mut Vec<f32>) -> Result<()> {
        if let Some(table) = &mut self.attributes {
            table.expect("as many lines as there are nodes or edges")?;
            out.extend_from_slice(table.floats()?);
        }
        if let Some(labels) = &mut self.labels {
            labels.read(out)?;
        }
        Ok(())
    }

    fn tables(&mut self) -> impl Iterator<Item = &mut Table> {
        self.attributes.iter_mut().chain(self.labels.iter_mut().map(|labels| &mut labels.table))
    }
}

/// The edges of a set, graph after graph.
#[derive(Debug)]
enum Edges {
    Streamed(Box<StreamedEdges>),
    Sorted(SortedEdges),
}

/// Edges that are read in step with the nodes.
#[derive(Debug)]
struct StreamedEdges {
    table: Table,
    features: Features,
    num_nodes: u64,
    /// An edge that has been read and belongs to a later graph. Its features have not.
    ahead: Option<(u64, u64)>,
}

/// Edges that are all in memory, by source.
#[derive(Debug)]
struct SortedEdges {
    edges: Vec<FileEdge>,
    /// A row for each line of the file.
    features: Vec<f32>,
    width: usize,
    next: usize,
    path: PathBuf,
}

#[derive(Debug)]
struct FileEdge {
    source: u64,
    target: u64,
    /// Line of the file, from 0: the order among equal sources, and the row of its features.
    line: usize,
}

impl Edges {
    fn open(path: &Path, mut features: Features, scan: &EdgeScan, num_nodes: u64) -> Result<Self> {
        let mut table = Table::open(path)?;
        if scan.grouped {
            let streamed = StreamedEdges { table, features, num_nodes, ahead: None };
            return Ok(Edges::Streamed(Box::new(streamed)));
        }
        let mut edges = Vec::new();
        let mut rows = Vec::new();
        while table.next()? {
            let (source, target) = edge_value(&mut table, num_nodes)?;
            features.read(&mut rows)?;
            edges.push(FileEdge { source, target, line: edges.len() });
        }
        for table in features.tables() {
            table.expect_end(&format!("{} lines, one for each edge", edges.len()))?;
        }
        edges.sort_unstable_by_key(|edge| (edge.source, edge.line));
        let width = features.width();
        let path = path.to_owned();
        Ok(Edges::Sorted(SortedEdges { edges, features: rows, width, next: 0, path }))
    }

    fn width(&self) -> usize {
        match self {
            Edges::Streamed(edges) => edges.features.width(),
            Edges::Sorted(edges) => edges.width,
        }
    }

    /// The next edge that starts in `nodes`; its features are appended to `out`.
    fn next_from(&mut self, nodes: &Range<u64>, out: &mut Vec<f32>) -> Result<Option<(u64, u64)>> {
        match self {
            Edges::Streamed(edges) => edges.next_from(nodes, out),
            Edges::Sorted(edges) => edges.next_from(nodes, out),
        }
    }

    fn check_end(&mut self, lines: u64) -> Result<()> {
        if let Edges::Streamed(edges) = self {
            for table in edges.features.tables() {
                table.expect_end(&format!("{lines} lines, one for each edge"))?;
            }
        }
        Ok(())
    }
}

impl StreamedEdges {
    fn next_from(&mut self, nodes: &Range<u64>, out: &mut Vec<f32>) -> Result<Option<(u64, u64)>> {
        let (source, target) = match self.ahead.take() {
            Some(edge) => edge,
            None if self.table.next()? => edge_value(&mut self.table, self.num_nodes)?,
            None => return Ok(None),
        };
        if source >= nodes.end {
            self.ahead = Some((source, target));
            return Ok(None);
        }
        if source < nodes.start {
            let expected = "a file that does not change while it is read";
            return Err(self.table.fault(expected, "another edge than before"));
        }
        let lines = &self.table.lines;
        check_inside(lines.path(), lines.number(), nodes, source, target)?;
        self.features.read(out)?;
        Ok(Some((source, target)))
    }
}

impl SortedEdges {
    fn next_from(&mut self, nodes: &Range<u64>, out: &mut Vec<f32>) -> Result<Option<(u64, u64)>> {
        let Some(edge) = self.edges.get(self.next).filter(|edge| edge.source < nodes.end) else {
            return Ok(None);
        };
        check_inside(&self.path, edge.line as u64 + 1, nodes, edge.source, edge.target)?;
        self.next += 1;
        out.extend_from_slice(&self.features[edge.line * self.width..][..self.width]);
        Ok(Some((edge.source, edge.target)))
    }
}

#[derive(Debug)]
struct TargetReader {
    table: Table,
    target: Target,
    /// All labels, ascending: a label's rank is its class.
    ranks: Vec<i64>,
}

impl TargetReader {
    fn open(files: &Files, num_graphs: u64, num_nodes: u64) -> Result<Option<Self>> {
        let attributes = files.optional("graph_attributes");
        let float = attributes.is_some();
        let Some(path) = attributes.or_else(|| files.optional("graph_labels")) else {
            return Ok(None);
        };
        let mut table = Table::open(&path)?;
        let mut labels = BTreeSet::new();
        while table.next()? {
            if !float {
                labels.extend(table.integers()?);
            }
        }
        let lines = table.lines.number();
        if lines != num_graphs && lines != num_nodes {
            let expected = format!(
                "{num_graphs} lines (one for each graph) or {num_nodes} (one for each node)"
            );
            return Err(malformed(
                &path,
                format!("after line {lines}"),
                expected,
                format!("{lines} lines"),
            ));
        }
        let columns = Table::peek_columns(&path)?;
        let target = Target { float, columns, per_node: lines != num_graphs };
        Ok(Some(TargetReader {
            table: Table::open(&path)?,
            target,
            ranks: labels.into_iter().collect(),
        }))
    }

    fn read(&mut self, graph: &mut Graph) -> Result<()> {
        self.table.expect("a line for each graph or node")?;
        if self.target.float {
            graph.y_value.extend_from_slice(self.table.floats()?);
            return Ok(());
        }
        for label in self.table.integers()? {
            // Every label was seen in the first pass, unless the file has changed since.
            let (Ok(rank) | Err(rank)) = self.ranks.binary_search(label);
            graph.y_label.push(rank as i64);
        }
        Ok(())
    }
}
