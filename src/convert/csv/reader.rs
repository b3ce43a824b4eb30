//! From tables to graphs.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::Path;

use super::column::{self, Values};
use super::groups::{Groups, Order};
use super::table::Table;
use crate::convert::{malformed, quoted};
use crate::error::{Error, Result};
use crate::format::DType;

/// A file of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `graphs.csv`
    Graphs,
    /// `nodes.csv`
    Nodes,
    /// `edges.csv`
    Edges,
}

impl Part {
    fn file(self) -> &'static str {
        match self {
            Part::Graphs => "graphs.csv",
            Part::Nodes => "nodes.csv",
            Part::Edges => "edges.csv",
        }
    }

    /// What the column `label` is called.
    fn label(self) -> &'static str {
        match self {
            Part::Graphs => "y",
            Part::Nodes => "node_label",
            Part::Edges => "edge_label",
        }
    }

    /// The attribute of all columns that are not asked for, side by side.
    fn features(self) -> Option<&'static str> {
        match self {
            Part::Graphs => None,
            Part::Nodes => Some("x"),
            Part::Edges => Some("edge_attr"),
        }
    }
}

#[derive(Debug, Clone)]
struct Asked {
    part: Part,
    column: String,
    name: String,
    dtype: DType,
}

/// What to make of the tables.
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    delimiter: u8,
    asked: Vec<Asked>,
}

impl Default for Options {
    fn default() -> Self {
        Options { delimiter: b',', asked: Vec::new() }
    }
}

impl Options {
    /// Commas, and what [the module](super) says.
    pub fn new() -> Self {
        Options::default()
    }

    /// The byte between cells (default: a comma). With another one, only brackets make a list of a cell.
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Makes the attribute `name` of a column: i64, f32, f64 or utf8.
    pub fn column(
        mut self,
        part: Part,
        column: impl Into<String>,
        name: impl Into<String>,
        dtype: DType,
    ) -> Self {
        self.asked.push(Asked { part, column: column.into(), name: name.into(), dtype });
        self
    }
}

/// An attribute that columns make.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// The attribute.
    pub name: String,
    /// The file of its columns.
    pub part: Part,
    /// Its dtype.
    pub dtype: DType,
    /// Values a row; `None` if there is one and no dimension for it.
    pub width: Option<usize>,
}

/// What the tables have, known after [`Reader::open`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// Attributes beside `edge_index`.
    pub columns: Vec<Column>,
    /// Whether there are edges, so that there is an `edge_index`.
    pub edges: bool,
    /// Bytes of all files.
    pub bytes: u64,
}

/// One graph, in buffers that the next one uses again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    /// Number of nodes.
    pub num_nodes: u64,
    /// Number of edges: columns of `edge_index`.
    pub num_edges: usize,
    /// `[2, num_edges]`.
    pub edge_index: Vec<i64>,
    /// In the order of [`Layout::columns`].
    pub values: Vec<Values>,
}

/// A column of a table that goes into an attribute.
#[derive(Debug)]
struct Source {
    column: usize,
    /// Of [`Layout::columns`].
    attribute: usize,
    width: Option<usize>,
}

/// A table, and where its columns go.
#[derive(Debug)]
struct Rows {
    groups: Groups,
    sources: Vec<Source>,
}

impl Rows {
    fn table(&self) -> &Table {
        self.groups.table()
    }

    /// Reads the row, and goes to the next.
    fn take(&mut self, values: &mut [Values]) -> Result<()> {
        for source in &self.sources {
            values[source.attribute].read(self.groups.table(), source.column, source.width)?;
        }
        self.groups.advance()
    }
}

/// Reads tables graph by graph.
///
/// ```no_run
/// use fencepost::convert::csv::{Graph, Options, Reader};
///
/// let mut reader = Reader::open("dump/", &Options::new())?;
/// let mut graph = Graph::default();
/// while reader.read(&mut graph)? {
///     println!("{} nodes, {} edges", graph.num_nodes, graph.num_edges);
/// }
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    layout: Layout,
    graphs: Option<Rows>,
    nodes: Option<Rows>,
    edges: Option<Rows>,
    /// Columns of `graphs`, `nodes` and `edges`.
    num_nodes: Option<usize>,
    node_id: Option<usize>,
    ends: [usize; 2],
    order: Order,
    /// Numbers of the nodes of the present graph by their ids.
    ids: HashMap<Box<[u8]>, i64>,
    targets: Vec<i64>,
}

impl Reader {
    /// Opens a folder, and reads the first line and row of each file.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::Convert`] if one is malformed or lacks a column,
    /// [`Error::Unsupported`] if files are missing or a dtype is none that a cell can be read as.
    pub fn open(folder: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let folder = folder.as_ref();
        let mut layout = Layout { columns: Vec::new(), edges: false, bytes: 0 };
        if let Some(asked) = options.asked.iter().find(|a| Values::none_of(a.dtype).is_none()) {
            return Err(Error::Unsupported {
                what: format!("the column {:?} as {}", asked.column, asked.dtype).into(),
                problem: "cells can be read as i64, f32, f64 or utf8".into(),
            });
        }
        let mut open = |part: Part, own: &mut dyn FnMut(&Table) -> Result<Vec<usize>>| {
            Rows::open(folder, part, options, &mut layout, own)
        };
        let (mut node_id, mut num_nodes, mut ends) = (None, None, [0; 2]);
        let nodes = open(Part::Nodes, &mut |table| {
            node_id = find(table, &["node_id", "node"])?;
            Ok(node_id.into_iter().collect())
        })?;
        let edges = open(Part::Edges, &mut |table| {
            ends = [
                required(table, &["src_id", "source", "src"])?,
                required(table, &["dst_id", "target", "dst"])?,
            ];
            Ok(ends.to_vec())
        })?;
        let graphs = open(Part::Graphs, &mut |table| {
            num_nodes = find(table, &["num_nodes"])?;
            Ok(num_nodes.into_iter().collect())
        })?;
        layout.edges = edges.is_some();
        if nodes.is_none() && num_nodes.is_none() {
            return Err(Error::Unsupported {
                what: folder.display().to_string().into(),
                problem: "without nodes.csv, a graphs.csv with the column num_nodes is needed"
                    .into(),
            });
        }
        Ok(Reader {
            layout,
            graphs,
            nodes,
            edges,
            num_nodes,
            node_id,
            ends,
            order: Order::Start,
            ids: HashMap::new(),
            targets: Vec::new(),
        })
    }

    /// What the tables have.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of all files that were read.
    pub fn bytes(&self) -> u64 {
        let tables = [&self.graphs, &self.nodes, &self.edges];
        tables.into_iter().flatten().map(|rows| rows.table().bytes()).sum()
    }

    /// Reads the next graph into `graph`; false after the last.
    ///
    /// # Errors
    /// [`Error::Convert`] naming file, line and column if something is malformed. The reader is of no further use then.
    pub fn read(&mut self, graph: &mut Graph) -> Result<bool> {
        graph.num_nodes = 0;
        graph.num_edges = 0;
        graph.edge_index.clear();
        graph.values.resize_with(self.layout.columns.len(), Values::default);
        for (values, column) in graph.values.iter_mut().zip(&self.layout.columns) {
            values.begin(column.dtype);
        }

        let first = self.graphs.as_ref().or(self.nodes.as_ref());
        let Some(first) = first.filter(|rows| rows.groups.has_row()) else {
            self.check_ends()?;
            return Ok(false);
        };
        self.order.enter(&first.groups)?;
        let told = self.read_graph(graph)?;
        self.read_nodes(graph, told)?;
        self.read_edges(graph)?;
        for rows in [&self.graphs, &self.nodes, &self.edges].into_iter().flatten() {
            if rows.groups.has_row() {
                self.order.check_new(&rows.groups)?;
            }
        }
        Ok(true)
    }

    /// The row of `graphs.csv`; returns how many nodes it tells of.
    fn read_graph(&mut self, graph: &mut Graph) -> Result<Option<u64>> {
        let Some(rows) = &mut self.graphs else { return Ok(None) };
        let mut told = None;
        if let Some(column) = self.num_nodes {
            let cell = rows.table().cell(column);
            // Node numbers are i64.
            let number = std::str::from_utf8(cell).ok().and_then(|text| text.parse::<i64>().ok());
            let Some(number) = number.and_then(|number| u64::try_from(number).ok()) else {
                return Err(rows.table().fault(column, "a number of nodes", quoted(cell)));
            };
            told = Some(number);
            graph.num_nodes = number;
        }
        rows.take(&mut graph.values)?;
        Ok(told)
    }

    fn read_nodes(&mut self, graph: &mut Graph, told: Option<u64>) -> Result<()> {
        let Some(rows) = &mut self.nodes else { return Ok(()) };
        self.ids.clear();
        graph.num_nodes = 0;
        while rows.groups.is_at(&self.order) {
            if let Some(column) = self.node_id {
                let id = rows.table().cell(column);
                if self.ids.insert(id.into(), graph.num_nodes as i64).is_some() {
                    let expected = "each id once in a graph";
                    return Err(rows.table().fault(column, expected, quoted(id)));
                }
            }
            graph.num_nodes += 1;
            rows.take(&mut graph.values)?;
        }
        match told {
            Some(told) if told != graph.num_nodes => {
                let place = format!("graph {}", self.order);
                let expected = format!("{told} rows, as graphs.csv says");
                let found = graph.num_nodes.to_string();
                Err(malformed(rows.table().path(), place, expected, found))
            }
            _ => Ok(()),
        }
    }

    fn read_edges(&mut self, graph: &mut Graph) -> Result<()> {
        let Some(rows) = &mut self.edges else { return Ok(()) };
        self.targets.clear();
        while rows.groups.is_at(&self.order) {
            for (column, nodes) in
                self.ends.into_iter().zip([&mut graph.edge_index, &mut self.targets])
            {
                let id = rows.table().cell(column);
                let number = match self.node_id {
                    Some(_) => self.ids.get(id).copied(),
                    None => std::str::from_utf8(id).ok().and_then(|text| text.parse().ok()),
                };
                match number.filter(|&n: &i64| n >= 0 && (n as u64) < graph.num_nodes) {
                    Some(number) => nodes.push(number),
                    None => {
                        let of = match self.node_id {
                            Some(_) => "the node_id of one of",
                            None => "a number from 0 on of",
                        };
                        let expected =
                            format!("{of} the {} nodes of graph {}", graph.num_nodes, self.order);
                        return Err(rows.table().fault(column, expected, quoted(id)));
                    }
                }
            }
            rows.take(&mut graph.values)?;
        }
        graph.num_edges = self.targets.len();
        graph.edge_index.append(&mut self.targets);
        Ok(())
    }

    /// No file goes on after the last graph.
    fn check_ends(&self) -> Result<()> {
        let first = if self.graphs.is_some() { Part::Graphs } else { Part::Nodes };
        for rows in [&self.nodes, &self.edges].into_iter().flatten() {
            if rows.groups.has_row() {
                return Err(rows.groups.fault(format!(
                    "a graph of {}, in the order that it has there",
                    first.file()
                )));
            }
        }
        Ok(())
    }
}

impl Rows {
    /// Opens the file, if it is there. `own` tells which columns have a meaning and are not values.
    fn open(
        folder: &Path,
        part: Part,
        options: &Options,
        layout: &mut Layout,
        own: &mut dyn FnMut(&Table) -> Result<Vec<usize>>,
    ) -> Result<Option<Self>> {
        let path = folder.join(part.file());
        let length = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if let Some(asked) = options.asked.iter().find(|asked| asked.part == part) {
                    let expected = format!("a file with the column {:?}", asked.column);
                    return Err(malformed(&path, "folder", expected, "no such file"));
                }
                return Ok(None);
            }
            Err(error) => return Err(Error::io("ask for the length", &path, error)),
        };
        layout.bytes += length;
        let table = Table::open(&path, options.delimiter)?;
        let id = required(&table, &["graph_id", "graph"])?;
        let mut taken = own(&table)?;
        taken.push(id);
        let groups = Groups::new(table, id)?;
        let sources = sources(&groups, part, &taken, options, &mut layout.columns)?;
        Ok(Some(Rows { groups, sources }))
    }
}

/// Which attributes the columns of a table make; its first row tells how many numbers a cell has.
fn sources(
    groups: &Groups,
    part: Part,
    taken: &[usize],
    options: &Options,
    attributes: &mut Vec<Column>,
) -> Result<Vec<Source>> {
    let table = groups.table();
    let mut sources = Vec::new();
    let mut asked_for = taken.to_vec();
    let mut add = |column: usize, name: &str, dtype: Option<DType>| {
        let width = column::width(table, column);
        let whole = || column::is_whole(table, column);
        let dtype = dtype.unwrap_or_else(|| if whole() { DType::I64 } else { DType::F32 });
        let width = width.filter(|_| dtype != DType::Utf8);
        if attributes.iter().any(|attribute| attribute.name == name) || name == "edge_index" {
            let place = format!("line 1, column {:?}", table.columns()[column]);
            let expected = "a name that no other attribute has (ask for another one)";
            return Err(malformed(table.path(), place, expected, format!("{name:?}")));
        }
        sources.push(Source { column, attribute: attributes.len(), width });
        attributes.push(Column { name: name.to_owned(), part, dtype, width });
        Ok(())
    };
    for asked in options.asked.iter().filter(|asked| asked.part == part) {
        let Some(column) = find(table, &[&asked.column])? else {
            return Err(table.header_fault(format!("a column {:?}", asked.column)));
        };
        add(column, &asked.name, Some(asked.dtype))?;
        asked_for.push(column);
    }
    let mut side_by_side = Vec::new();
    for (column, name) in table.columns().iter().enumerate() {
        if asked_for.contains(&column) {
            continue;
        }
        if name == "label" {
            add(column, part.label(), None)?;
        } else if part.features().is_some() {
            side_by_side.push(column);
        } else {
            add(column, name, None)?;
        }
    }
    if let (Some(name), Some(&first)) = (part.features(), side_by_side.first()) {
        add(first, name, Some(DType::F32))?;
        sources.pop();
        let attribute = attributes.len() - 1;
        let each = side_by_side.into_iter().map(|column| Source {
            column,
            attribute,
            width: column::width(table, column),
        });
        let start = sources.len();
        sources.extend(each);
        let all = sources[start..].iter().map(|source| source.width.unwrap_or(1)).sum();
        attributes[attribute].width = Some(all);
    }
    Ok(sources)
}

/// The column of one of these names.
fn find(table: &Table, names: &[&str]) -> Result<Option<usize>> {
    let mut found = table
        .columns()
        .iter()
        .enumerate()
        .filter(|(_, name)| names.contains(&name.as_str()))
        .map(|(at, _)| at);
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(table.header_fault(format!("one column of {}", names.join(", ")))),
    }
}

fn required(table: &Table, names: &[&str]) -> Result<usize> {
    find(table, names)?
        .ok_or_else(|| table.header_fault(format!("a column {}", names.join(" or "))))
}
