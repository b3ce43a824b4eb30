//! From readers of other formats into a writer.

#![forbid(unsafe_code)]

use std::fmt;
use std::path::Path;

#[cfg(feature = "csv")]
use super::csv;
use super::{graph6, tu};
use crate::error::{Error, Result};
#[cfg(feature = "csv")]
use crate::format::StringsView;
use crate::format::{Attribute, DType, Dim, Schema, TensorView};
use crate::writer::{NewSample, Summary, Writer, WriterOptions};

/// How far an import or export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Samples converted.
    pub samples: u64,
    /// Of the whole, this much is done: bytes of the source where the number of samples is not known, else samples.
    pub done: u64,
    /// The whole.
    pub total: u64,
}

pub(super) type ProgressFn<'p> = Box<dyn FnMut(Progress) + 'p>;

/// Options of every import. The defaults replace an existing file when the new one is complete.
///
/// ```no_run
/// use fencepost::Writer;
/// use fencepost::convert::{ImportOptions, import_graph6};
///
/// let options = ImportOptions::new()
///     .writer(Writer::options().metadata(r#"{"source": "geng -c 8"}"#)?)
///     .progress(|p| eprintln!("{} of {} bytes", p.done, p.total));
/// let summary = import_graph6("connected-8.g6", "connected-8.fence", options)?;
/// println!("{} graphs", summary.samples);
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct ImportOptions<'p> {
    writer: WriterOptions,
    keep_existing: bool,
    progress: Option<ProgressFn<'p>>,
}

impl<'p> ImportOptions<'p> {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes with these options: metadata, alignment, checks.
    pub fn writer(mut self, options: WriterOptions) -> Self {
        self.writer = options;
        self
    }

    /// Makes an existing file an error, as [`Writer::create_new`] does.
    pub fn create_new(mut self, keep_existing: bool) -> Self {
        self.keep_existing = keep_existing;
        self
    }

    /// Calls this every few samples, and at the end.
    pub fn progress(mut self, progress: impl FnMut(Progress) + 'p) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// A writer of `schema`, or of the first sample's.
    pub(super) fn begin(self, out: &Path, schema: Option<Schema>) -> Result<Import<'p>> {
        let writer = match (schema, self.keep_existing) {
            (Some(schema), false) => self.writer.create(out, schema),
            (Some(schema), true) => self.writer.create_new(out, schema),
            (None, false) => self.writer.create_inferred(out),
            (None, true) => self.writer.create_new_inferred(out),
        };
        Ok(Import { writer: writer?, progress: Ticker::new(self.progress) })
    }
}

impl fmt::Debug for ImportOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportOptions")
            .field("writer", &self.writer)
            .field("keep_existing", &self.keep_existing)
            .finish_non_exhaustive()
    }
}

/// Calls a progress function now and then.
pub(super) struct Ticker<'p> {
    progress: Option<ProgressFn<'p>>,
    samples: u64,
}

impl<'p> Ticker<'p> {
    /// Samples between two calls.
    const EVERY: u64 = 64;

    pub(super) fn new(progress: Option<ProgressFn<'p>>) -> Self {
        Ticker { progress, samples: 0 }
    }

    /// One more sample.
    pub(super) fn tick(&mut self, done: u64, total: u64) {
        self.samples += 1;
        if self.samples.is_multiple_of(Self::EVERY) {
            self.call(done, total);
        }
    }

    pub(super) fn end(&mut self, total: u64) {
        self.call(total, total);
    }

    fn call(&mut self, done: u64, total: u64) {
        if let Some(progress) = &mut self.progress {
            progress(Progress { samples: self.samples, done, total });
        }
    }
}

/// A writer that reports.
pub(super) struct Import<'p> {
    writer: Writer,
    progress: Ticker<'p>,
}

impl Import<'_> {
    pub(super) fn push(&mut self, sample: &NewSample<'_>, done: u64, total: u64) -> Result<()> {
        self.writer.push(sample)?;
        self.progress.tick(done, total);
        Ok(())
    }

    pub(super) fn finish(mut self, total: u64) -> Result<Summary> {
        self.progress.end(total);
        self.writer.finish()
    }
}

/// Imports a graph6 or sparse6 file: see [`graph6`].
///
/// The file has the axes `nodes` and `edges` and the attribute `edge_index`, `i64[2, edges]`, as PyTorch Geometric has it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let (input, out) = (folder.path().join("two.g6"), folder.path().join("two.fence"));
/// # std::fs::write(&input, "Bg\nBw\n").unwrap();
/// use fencepost::Dataset;
/// use fencepost::convert::{ImportOptions, import_graph6};
///
/// import_graph6(&input, &out, ImportOptions::new())?;
/// let graphs = Dataset::load(&out)?;
/// assert_eq!(graphs.get(0)?.axis_len("nodes")?, 3);
/// assert_eq!(graphs.get(0)?.slice::<i64>("edge_index")?, [0, 1, 1, 2, 1, 0, 2, 1]);
/// # Ok::<(), fencepost::Error>(())
/// ```
///
/// # Errors
/// As [`graph6::Reader`] and [`Writer`]. Nothing is published then.
pub fn import_graph6(
    input: impl AsRef<Path>,
    out: impl AsRef<Path>,
    options: ImportOptions<'_>,
) -> Result<Summary> {
    let input = input.as_ref();
    let mut reader = graph6::Reader::open(input)?;
    let total = std::fs::metadata(input).map_err(|e| Error::io("ask for the length", input, e))?;
    let total = total.len();
    let schema = Schema::builder()
        .axis("nodes")
        .axis("edges")
        .attribute(
            Attribute::new("edge_index", DType::I64, [Dim::from(2), Dim::from("edges")])
                .increment_by("nodes"),
        )
        .build()?;
    let mut import = options.begin(out.as_ref(), Some(schema))?;
    let mut graph = graph6::Graph::default();
    while reader.read(&mut graph)? {
        let edges = TensorView::from_slice(graph.edge_index(), &[2, graph.num_edges()])?;
        let sample = NewSample::new().tensor("edge_index", edges).axis("nodes", graph.num_nodes());
        import.push(&sample, reader.bytes(), total)?;
    }
    import.finish(total)
}

/// Imports a text set in the TU layout: see [`tu`].
///
/// The file has the axes `nodes` and `edges` and the attributes that the set has files for, as PyTorch Geometric's `TUDataset`
/// makes them: `x` (`f32[nodes, _]`), `edge_index` (`i64[2, edges]`), `edge_attr` (`f32[edges, _]`), `y`, and a `utf8` attribute
/// for each file of texts.
///
/// ```no_run
/// use fencepost::convert::{ImportOptions, import_tu, tu};
///
/// let options = tu::Options::new().use_node_attr(true);
/// let summary = import_tu("examples/data/B3DB", "b3db.fence", &options, ImportOptions::new())?;
/// println!("{} graphs", summary.samples);
/// # Ok::<(), fencepost::Error>(())
/// ```
///
/// # Errors
/// As [`tu::Reader`] and [`Writer`]. Nothing is published then.
pub fn import_tu(
    folder: impl AsRef<Path>,
    out: impl AsRef<Path>,
    set: &tu::Options,
    options: ImportOptions<'_>,
) -> Result<Summary> {
    let mut reader = tu::Reader::open(folder, set)?;
    let layout = reader.layout().clone();
    let mut import = options.begin(out.as_ref(), Some(tu_schema(&layout)?))?;
    let mut graph = tu::Graph::default();
    while reader.read(&mut graph)? {
        let mut sample = NewSample::new().axis("nodes", graph.num_nodes as u64);
        if let Some(columns) = layout.x {
            sample.push("x", TensorView::from_slice(&graph.x, &[graph.num_nodes, columns])?);
        }
        sample
            .push("edge_index", TensorView::from_slice(&graph.edge_index, &[2, graph.num_edges])?);
        if let Some(columns) = layout.edge_attr {
            let shape = [graph.num_edges, columns];
            sample.push("edge_attr", TensorView::from_slice(&graph.edge_attr, &shape)?);
        }
        if let Some(y) = layout.y {
            let rows = if y.per_node { graph.num_nodes } else { 1 };
            let shape = [rows, y.columns];
            let shape = if y.columns == 1 { &shape[..1] } else { &shape };
            let values = if y.float {
                TensorView::from_slice(&graph.y_value, shape)?
            } else {
                TensorView::from_slice(&graph.y_label, shape)?
            };
            sample.push("y", values);
        }
        for (name, text) in layout.texts.iter().zip(&graph.texts) {
            sample = sample.text(name, text);
        }
        import.push(&sample, reader.position(), layout.num_graphs)?;
    }
    import.finish(layout.num_graphs)
}

fn tu_schema(layout: &tu::Layout) -> Result<Schema> {
    let mut schema = Schema::builder().axis("nodes").axis("edges");
    if let Some(columns) = layout.x {
        let shape = [Dim::from("nodes"), Dim::from(columns)];
        schema = schema.attribute(Attribute::new("x", DType::F32, shape));
    }
    let shape = [Dim::from(2), Dim::from("edges")];
    schema =
        schema.attribute(Attribute::new("edge_index", DType::I64, shape).increment_by("nodes"));
    if let Some(columns) = layout.edge_attr {
        let shape = [Dim::from("edges"), Dim::from(columns)];
        schema = schema.attribute(Attribute::new("edge_attr", DType::F32, shape));
    }
    if let Some(y) = layout.y {
        let mut shape = vec![if y.per_node { Dim::from("nodes") } else { Dim::from(1) }];
        if y.columns != 1 {
            shape.push(Dim::from(y.columns));
        }
        let dtype = if y.float { DType::F32 } else { DType::I64 };
        schema = schema.attribute(Attribute::new("y", dtype, shape));
    }
    for name in &layout.texts {
        schema = schema.attribute(Attribute::new(name, DType::Utf8, [] as [Dim; 0]));
    }
    schema.build()
}

/// Imports a graph dump as tables: see [`csv`].
///
/// The file has the axes `nodes` and, with an `edges.csv`, `edges`, the attribute `edge_index` (`i64[2, edges]`), and those that the
/// columns make: `x`, `edge_attr`, `y`, ...
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let out = folder.path().join("two.fence");
/// use fencepost::Dataset;
/// use fencepost::convert::{ImportOptions, csv, import_csv};
///
/// # let folder = folder.path();
/// std::fs::write(folder.join("nodes.csv"), "graph_id,node_id,mass\n1,a,12\n1,b,16\n2,a,12\n").unwrap();
/// std::fs::write(folder.join("edges.csv"), "graph_id,src_id,dst_id\n1,b,a\n").unwrap();
/// import_csv(folder, &out, &csv::Options::new(), ImportOptions::new())?;
/// let graphs = Dataset::load(&out)?;
/// assert_eq!(graphs.get(0)?.slice::<f32>("x")?, [12.0, 16.0]);
/// assert_eq!(graphs.get(0)?.slice::<i64>("edge_index")?, [1, 0]);
/// # Ok::<(), fencepost::Error>(())
/// ```
///
/// # Errors
/// As [`csv::Reader`] and [`Writer`]. Nothing is published then.
#[cfg(feature = "csv")]
pub fn import_csv(
    folder: impl AsRef<Path>,
    out: impl AsRef<Path>,
    tables: &csv::Options,
    options: ImportOptions<'_>,
) -> Result<Summary> {
    let mut reader = csv::Reader::open(folder, tables)?;
    let layout = reader.layout().clone();
    let mut import = options.begin(out.as_ref(), Some(csv_schema(&layout)?))?;
    let mut graph = csv::Graph::default();
    while reader.read(&mut graph)? {
        push_csv(&layout, &graph, reader.bytes(), &mut import)?;
    }
    import.finish(layout.bytes)
}

#[cfg(feature = "csv")]
fn push_csv(
    layout: &csv::Layout,
    graph: &csv::Graph,
    done: u64,
    import: &mut Import<'_>,
) -> Result<()> {
    let texts: Vec<Vec<&str>> = graph
        .values
        .iter()
        .map(|values| match values {
            csv::Values::Text(texts) => texts.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        })
        .collect();
    let mut sample = NewSample::new().axis("nodes", graph.num_nodes);
    if layout.edges {
        let edges = TensorView::from_slice(&graph.edge_index, &[2, graph.num_edges])?;
        sample.push("edge_index", edges);
    }
    for ((column, values), texts) in layout.columns.iter().zip(&graph.values).zip(&texts) {
        let rows = match column.part {
            csv::Part::Graphs => 1,
            // As many as rows of the file, so they are countable.
            csv::Part::Nodes => graph.num_nodes as usize,
            csv::Part::Edges => graph.num_edges,
        };
        let shape = [rows, column.width.unwrap_or(1)];
        let shape = if column.width.is_some() { &shape[..] } else { &shape[..1] };
        let name = column.name.as_str();
        match values {
            csv::Values::I64(values) => sample.push(name, TensorView::from_slice(values, shape)?),
            csv::Values::F32(values) => sample.push(name, TensorView::from_slice(values, shape)?),
            csv::Values::F64(values) => sample.push(name, TensorView::from_slice(values, shape)?),
            csv::Values::Text(_) if column.part == csv::Part::Graphs => {
                sample.push(name, StringsView::list(texts, &[])?);
            }
            csv::Values::Text(_) => sample.push(name, StringsView::list(texts, shape)?),
        }
    }
    import.push(&sample, done, layout.bytes)
}

#[cfg(feature = "csv")]
fn csv_schema(layout: &csv::Layout) -> Result<Schema> {
    let mut schema = Schema::builder().axis("nodes");
    if layout.edges {
        let shape = [Dim::from(2), Dim::from("edges")];
        let edges = Attribute::new("edge_index", DType::I64, shape).increment_by("nodes");
        schema = schema.axis("edges").attribute(edges);
    }
    for column in &layout.columns {
        let mut shape = match column.part {
            csv::Part::Graphs if column.dtype == DType::Utf8 => Vec::new(),
            csv::Part::Graphs => vec![Dim::from(1)],
            csv::Part::Nodes => vec![Dim::from("nodes")],
            csv::Part::Edges => vec![Dim::from("edges")],
        };
        shape.extend(column.width.map(Dim::from));
        schema = schema.attribute(Attribute::new(&column.name, column.dtype, shape));
    }
    schema.build()
}
