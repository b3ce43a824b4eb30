//! Files that every reader must read, with what is in them.

use std::borrow::Cow;

use fencepost::{
    Attribute, DType, Dim, Element, F8E4M3, F8E5M2, Increment, NewSample, Schema, Shard,
    StringsView, TensorView, Writer, dims,
};
use half::{bf16, f16};
use serde_json::{Map, Value as Json, json};

use super::forge::{Forge, put};

/// A golden file.
pub(crate) struct Golden {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// What is in it, as in SPEC.md 22.
    pub(crate) expected: Json,
}

/// The value of one attribute in one sample.
#[derive(Clone)]
pub(crate) enum Cell {
    Absent,
    Tensor(Vec<usize>, Vec<u8>),
    Strings(Vec<usize>, Vec<Vec<u8>>),
}

fn tensor<T: Element>(shape: &[usize], values: &[T]) -> Cell {
    Cell::Tensor(shape.to_vec(), bytemuck::cast_slice(values).to_vec())
}

fn bools(shape: &[usize], values: &[u8]) -> Cell {
    Cell::Tensor(shape.to_vec(), values.to_vec())
}

fn strings<S: AsRef<[u8]>>(shape: &[usize], values: &[S]) -> Cell {
    Cell::Strings(shape.to_vec(), values.iter().map(|value| value.as_ref().to_vec()).collect())
}

fn text(value: &str) -> Cell {
    strings(&[], &[value])
}

/// One sample: values by name, and lengths of axes that no value tells.
type Row = (Vec<(Cow<'static, str>, Cell)>, Vec<(&'static str, u64)>);

fn row(values: Vec<(&'static str, Cell)>) -> Row {
    row_with(values, vec![])
}

fn row_with(values: Vec<(&'static str, Cell)>, axes: Vec<(&'static str, u64)>) -> Row {
    (values.into_iter().map(|(name, cell)| (name.into(), cell)).collect(), axes)
}

fn schema(axes: &[&str], attributes: Vec<Attribute>) -> Schema {
    let builder = axes.iter().fold(Schema::builder(), |builder, axis| builder.axis(*axis));
    attributes.into_iter().fold(builder, |builder, one| builder.attribute(one)).build().unwrap()
}

/// What is to be written.
pub(crate) struct Source {
    schema: Schema,
    rows: Vec<Row>,
    alignment: u64,
    metadata: &'static str,
    statistics: bool,
    shard: Option<Shard>,
}

impl Source {
    fn new(schema: Schema, rows: Vec<Row>) -> Self {
        Source { schema, rows, alignment: 64, metadata: "{}", statistics: true, shard: None }
    }

    /// Writes it with the library.
    pub(crate) fn write(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("golden.fence");
        let mut writer = Writer::options()
            .alignment(self.alignment)
            .and_then(|options| options.statistics(self.statistics).metadata(self.metadata))
            .and_then(|options| match &self.shard {
                Some(shard) => options.shard(shard.clone()),
                None => Ok(options),
            })
            .and_then(|options| options.create(&path, self.schema.clone()))
            .expect("a writer");
        for row in &self.rows {
            self.push(&mut writer, row);
        }
        writer.finish().expect("a file");
        std::fs::read(&path).expect("the file")
    }

    fn push(&self, writer: &mut Writer, (values, axes): &Row) {
        let binary: Vec<Vec<&[u8]>> = values
            .iter()
            .map(|(_, cell)| match cell {
                Cell::Strings(_, strings) => strings.iter().map(Vec::as_slice).collect(),
                _ => vec![],
            })
            .collect();
        let texts: Vec<Vec<&str>> = binary
            .iter()
            .map(|list| list.iter().filter_map(|bytes| std::str::from_utf8(bytes).ok()).collect())
            .collect();
        let mut sample = NewSample::new();
        for (index, (name, cell)) in values.iter().enumerate() {
            let dtype = self.schema.attribute(name).expect("an attribute").dtype();
            match cell {
                Cell::Absent => {}
                Cell::Tensor(shape, bytes) => {
                    sample.push(name, TensorView::from_bytes(dtype, shape, bytes).expect("bytes"));
                }
                Cell::Strings(shape, _) if shape.is_empty() => sample.push(
                    name,
                    match dtype {
                        DType::Utf8 => StringsView::scalar(texts[index][0]),
                        _ => StringsView::scalar_bytes(binary[index][0]),
                    },
                ),
                Cell::Strings(shape, _) => sample.push(
                    name,
                    match dtype {
                        DType::Utf8 => StringsView::list(&texts[index], shape).expect("strings"),
                        _ => StringsView::list_bytes(&binary[index], shape).expect("strings"),
                    },
                ),
            }
        }
        for (axis, length) in axes {
            sample.push_axis(axis, *length);
        }
        writer.push(&sample).expect("a sample that fits");
    }

    /// What readers must find, from what was pushed.
    fn expected(&self) -> Json {
        let lengths: Map<String, Json> = self
            .schema
            .axes()
            .iter()
            .map(|axis| {
                let lengths: Vec<u64> =
                    self.rows.iter().map(|row| self.length(axis, row)).collect();
                (axis.clone(), json!(lengths))
            })
            .collect();
        let attributes: Map<String, Json> = self
            .schema
            .attributes()
            .iter()
            .map(|attribute| (attribute.name().to_owned(), describe(attribute)))
            .collect();
        let values: Vec<Json> = self
            .rows
            .iter()
            .map(|(values, _)| {
                let shown = values.iter().map(|(name, cell)| {
                    let dtype = self.schema.attribute(name).expect("an attribute").dtype();
                    (name.clone().into_owned(), show(dtype, cell))
                });
                Json::Object(shown.collect())
            })
            .collect();
        let metadata: Json = serde_json::from_str(self.metadata).expect("JSON");
        json!({
            "samples": self.rows.len(), "axes": lengths, "attributes": attributes, "refused": [],
            "metadata": metadata, "values": values, "base": null,
            "shard": self.shard.as_ref().map(|shard| json!({
                "dataset": shard.dataset, "number": shard.number, "first": shard.first, "last": shard.last, "source": shard.source,
            })),
        })
    }

    fn length(&self, axis: &str, (values, axes): &Row) -> u64 {
        if let Some((_, length)) = axes.iter().find(|(name, _)| *name == axis) {
            return *length;
        }
        let told = values.iter().find_map(|(name, cell)| {
            let attribute = self.schema.attribute(name)?;
            let at = attribute.shape().iter().position(|dim| *dim == Dim::from(axis))?;
            match cell {
                Cell::Absent => None,
                Cell::Tensor(shape, _) | Cell::Strings(shape, _) => Some(shape[at] as u64),
            }
        });
        told.unwrap_or_else(|| panic!("nothing tells the length of {axis}"))
    }
}

fn describe(attribute: &Attribute) -> Json {
    let shape: Vec<Json> = attribute
        .shape()
        .iter()
        .map(|dim| match dim {
            Dim::Fixed(extent) => json!(extent),
            Dim::Axis(axis) => json!(axis),
        })
        .collect();
    let increment = match attribute.increment_rule() {
        Increment::None => Json::Null,
        Increment::Axis(axis) => json!(axis),
        Increment::PerRow(rows) => json!(rows),
        Increment::Attribute(name) => json!({ "attribute": name }),
    };
    json!({
        "dtype": attribute.dtype().name(), "shape": shape, "cat_dim": attribute.cat_dim_index(),
        "increment": increment, "optional": attribute.is_optional(), "hidden": attribute.is_hidden(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn show(dtype: DType, cell: &Cell) -> Json {
    match cell {
        Cell::Absent => Json::Null,
        Cell::Tensor(shape, bytes) => {
            json!({ "dtype": dtype.name(), "shape": shape, "hex": hex(bytes) })
        }
        Cell::Strings(shape, strings) => {
            let strings: Vec<String> = strings.iter().map(|string| hex(string)).collect();
            json!({ "dtype": dtype.name(), "shape": shape, "strings": strings })
        }
    }
}

/// Three molecules, the worked example of the specification.
fn three_samples() -> Source {
    let schema = schema(
        &[],
        vec![
            Attribute::new("x", DType::F32, dims!["nodes", 2]),
            Attribute::new("edge_index", DType::I64, dims![2, "edges"])
                .stored(DType::U8)
                .increment_by("nodes"),
            Attribute::new("y", DType::F64, dims![]),
            Attribute::new("smiles", DType::Utf8, dims![]),
        ],
    );
    let molecule = |x: &[f32], edges: &[i64], y: f64, smiles: &str| {
        row(vec![
            ("x", tensor(&[x.len() / 2, 2], x)),
            ("edge_index", tensor(&[2, edges.len() / 2], edges)),
            ("y", tensor(&[], &[y])),
            ("smiles", text(smiles)),
        ])
    };
    let rows = vec![
        molecule(&[6.0, 0.0, 6.0, 0.5, 8.0, 1.5], &[0, 1, 1, 2, 1, 0, 2, 1], -1.25, "CCO"),
        molecule(&[6.0, 0.0], &[], 0.0, "C"),
        molecule(&[6.0, 0.0, 7.0, 0.25], &[0, 1, 1, 0], 2.5, "C#N"),
    ];
    Source { statistics: false, ..Source::new(schema, rows) }
}

/// Attributes of many kinds, without and with samples.
fn many_kinds() -> Schema {
    schema(
        &["rings"],
        vec![
            Attribute::new("x", DType::F32, dims!["nodes", 3]),
            Attribute::new("edge_index", DType::I64, dims![2, "edges"])
                .stored(DType::U16)
                .increment_by("nodes"),
            Attribute::new("distance", DType::F64, dims!["nodes", "nodes"]).stored(DType::F32),
            Attribute::new("y", DType::F32, dims![1, 2]),
            Attribute::new("charge", DType::I8, dims!["nodes"]).optional(),
            Attribute::new("weight", DType::F64, dims![]).optional(),
            Attribute::new("smiles", DType::Utf8, dims![]),
            Attribute::new("labels", DType::Utf8, dims!["nodes"]),
            Attribute::new("aromatic", DType::Bool, dims!["edges"]),
        ],
    )
}

fn kinds_row(nodes: usize, edges: usize, rings: u64) -> Row {
    let labels: Vec<String> = (0..nodes).map(|node| format!("n{node}")).collect();
    row_with(
        vec![
            ("x", tensor(&[nodes, 3], &(0..nodes * 3).map(|k| k as f32 / 2.0).collect::<Vec<_>>())),
            (
                "edge_index",
                tensor(
                    &[2, edges],
                    &(0..2 * edges).map(|k| (k % nodes) as i64).collect::<Vec<_>>(),
                ),
            ),
            (
                "distance",
                tensor(
                    &[nodes, nodes],
                    &(0..nodes * nodes).map(|k| k as f64 / 4.0).collect::<Vec<_>>(),
                ),
            ),
            ("y", tensor(&[1, 2], &[nodes as f32, edges as f32])),
            ("charge", tensor(&[nodes], &(0..nodes).map(|k| k as i8 - 1).collect::<Vec<_>>())),
            ("weight", if edges > 0 { tensor(&[], &[edges as f64]) } else { Cell::Absent }),
            ("smiles", text(&"C".repeat(nodes))),
            ("labels", strings(&[nodes], &labels)),
            ("aromatic", bools(&[edges], &(0..edges).map(|k| (k % 2) as u8).collect::<Vec<_>>())),
        ],
        vec![("rings", rings)],
    )
}

fn every_dtype() -> Source {
    let attribute = |dtype: DType| Attribute::new(dtype.name(), dtype, dims!["rows"]);
    let schema = schema(&[], DType::ALL.into_iter().map(attribute).collect());
    // Bits that a conversion would lose: signed zeros, infinities, subnormals, quiet and signalling NaN with payloads.
    let f32s = [0x8000_0000u32, 0x7f80_0000, 1, 0x7fc0_0001, 0xff80_0001].map(f32::from_bits);
    let f64s = [1u64 << 63, 0xfff0 << 48, 1, 0x7ff8_0000_0000_0001, 0x7ff0_0000_0000_0001]
        .map(f64::from_bits);
    let full = row(vec![
        ("bool", bools(&[5], &[0, 1, 1, 0, 1])),
        ("u8", tensor(&[5], &[0u8, 1, 127, 128, 255])),
        ("u16", tensor(&[5], &[0u16, 1, 255, 256, u16::MAX])),
        ("u32", tensor(&[5], &[0u32, 1, 0x0102_0304, 1 << 31, u32::MAX])),
        ("u64", tensor(&[5], &[0u64, 1, 0x0102_0304_0506_0708, 1 << 63, u64::MAX])),
        ("i8", tensor(&[5], &[0i8, 1, -1, i8::MIN, i8::MAX])),
        ("i16", tensor(&[5], &[0i16, 1, -1, i16::MIN, i16::MAX])),
        ("i32", tensor(&[5], &[0i32, 1, -1, i32::MIN, i32::MAX])),
        ("i64", tensor(&[5], &[0i64, 1, -1, i64::MIN, i64::MAX])),
        ("f16", tensor(&[5], &[0x8000u16, 0x7c00, 1, 0x7e01, 0xfc01].map(f16::from_bits))),
        ("bf16", tensor(&[5], &[0x8000u16, 0x7f80, 1, 0x7fc1, 0xff81].map(bf16::from_bits))),
        ("f32", tensor(&[5], &f32s)),
        ("f64", tensor(&[5], &f64s)),
        ("c64", tensor(&[5], &f32s.map(|re| [re, -1.5]))),
        ("c128", tensor(&[5], &f64s.map(|re| [re, -1.5]))),
        ("f8e4m3", tensor(&[5], &[0x80u8, 0x7e, 1, 0x7f, 0xff].map(F8E4M3))),
        ("f8e5m2", tensor(&[5], &[0x80u8, 0x7c, 1, 0x7d, 0xfe].map(F8E5M2))),
        ("utf8", strings(&[5], &["", "a", "\0", "ß\u{301}", "\u{1f9ea}"])),
        ("bytes", strings(&[5], &[&b""[..], b"a", b"\0", b"\xff\xfe", b"\xed\xa0\x80"])),
    ]);
    let empty = full.0.iter().map(|(name, cell)| {
        let cell = match cell {
            Cell::Strings(..) => Cell::Strings(vec![0], vec![]),
            _ => Cell::Tensor(vec![0], vec![]),
        };
        (name.clone(), cell)
    });
    let empty = (empty.collect(), vec![]);
    Source { statistics: false, ..Source::new(schema, vec![full, empty]) }
}

fn all_strings() -> Source {
    let schema = schema(
        &[],
        vec![
            Attribute::new("title", DType::Utf8, dims![]),
            Attribute::new("blob", DType::Bytes, dims![]),
            Attribute::new("pair", DType::Utf8, dims![2]),
            Attribute::new("words", DType::Utf8, dims!["words"]),
            Attribute::new("table", DType::Bytes, dims!["words", 2]),
            Attribute::new("square", DType::Utf8, dims!["words", "words"]),
            Attribute::new("none", DType::Utf8, dims![0]),
        ],
    );
    let one = |title: &str, blob: &[u8], words: &[&str]| {
        let n = words.len();
        let table: Vec<Vec<u8>> = (0..2 * n).map(|k| vec![k as u8; k]).collect();
        let square: Vec<String> = (0..n * n).map(|k| "é".repeat(k % 3)).collect();
        row(vec![
            ("title", text(title)),
            ("blob", strings(&[], &[blob])),
            ("pair", strings(&[2], &[title, ""])),
            ("words", strings(&[n], words)),
            ("table", strings(&[n, 2], &table)),
            ("square", strings(&[n, n], &square)),
            ("none", strings::<&str>(&[0], &[])),
        ])
    };
    Source::new(
        schema,
        vec![
            one("", b"", &[]),
            one("Grüße, 世界", b"\0\xff\0", &["", "a", ""]),
            one("line\nbreak\0zero", b"plain", &["\u{10ffff}"]),
            one("", b"", &["x", "yz"]),
        ],
    )
}

/// A graph with two kinds of nodes.
fn several_axes() -> Source {
    let schema = schema(
        &["author", "paper", "wrote", "cites", "year", "unused"],
        vec![
            Attribute::new("author.x", DType::F32, dims!["author", 2]),
            Attribute::new("paper.x", DType::BF16, dims!["paper"]),
            Attribute::new("wrote.edge_index", DType::I64, dims![2, "wrote"])
                .increment(Increment::PerRow(vec![Some("author".into()), Some("paper".into())])),
            Attribute::new("cites.edge_index", DType::I32, dims![2, "cites"]).increment_by("paper"),
            Attribute::new("half", DType::I16, dims![2, "cites"])
                .increment(Increment::PerRow(vec![None, Some("paper".into())])),
            Attribute::new("year", DType::U16, dims!["year"]),
        ],
    );
    let one = |author: usize, paper: usize, wrote: usize, cites: usize, unused: u64| {
        row_with(
            vec![
                ("author.x", tensor(&[author, 2], &vec![author as f32; author * 2])),
                ("paper.x", tensor(&[paper], &vec![bf16::from_f32(1.5); paper])),
                ("wrote.edge_index", tensor(&[2, wrote], &vec![0i64; 2 * wrote])),
                ("cites.edge_index", tensor(&[2, cites], &vec![1i32; 2 * cites])),
                ("half", tensor(&[2, cites], &vec![0i16; 2 * cites])),
                ("year", tensor(&[1], &[1990 + author as u16])),
            ],
            vec![("unused", unused)],
        )
    };
    Source::new(schema, vec![one(2, 3, 1, 2, 7), one(1, 2, 0, 3, 0), one(3, 2, 2, 0, 1 << 40)])
}

fn two_ragged() -> Source {
    let schema = schema(
        &[],
        vec![
            Attribute::new("adjacency", DType::Bool, dims!["nodes", "nodes"]),
            Attribute::new("incidence", DType::I8, dims!["nodes", "edges"]),
            Attribute::new("blocks", DType::F32, dims!["edges", 2, "nodes"]).cat_dim(2),
            Attribute::new("maybe", DType::I64, dims!["nodes", "edges"])
                .stored(DType::I8)
                .optional()
                .stack(),
        ],
    );
    let one = |nodes: usize, edges: usize, maybe: bool| {
        let count = |n: usize| (0..n).collect::<Vec<usize>>();
        row(vec![
            (
                "adjacency",
                bools(
                    &[nodes, nodes],
                    &count(nodes * nodes).iter().map(|k| (k % 2) as u8).collect::<Vec<_>>(),
                ),
            ),
            (
                "incidence",
                tensor(
                    &[nodes, edges],
                    &count(nodes * edges).iter().map(|&k| k as i8 - 2).collect::<Vec<_>>(),
                ),
            ),
            (
                "blocks",
                tensor(
                    &[edges, 2, nodes],
                    &count(2 * nodes * edges).iter().map(|&k| k as f32).collect::<Vec<_>>(),
                ),
            ),
            (
                "maybe",
                if maybe {
                    tensor(
                        &[nodes, edges],
                        &count(nodes * edges).iter().map(|&k| -(k as i64)).collect::<Vec<_>>(),
                    )
                } else {
                    Cell::Absent
                },
            ),
        ])
    };
    Source::new(
        schema,
        vec![one(2, 3, true), one(0, 4, true), one(3, 0, false), one(1, 1, false), one(4, 2, true)],
    )
}

fn optional() -> Source {
    let schema = schema(
        &[],
        vec![
            Attribute::new("scalar", DType::F32, dims![]).optional(),
            Attribute::new("matrix", DType::I16, dims![2, 2]).optional(),
            Attribute::new("ragged", DType::U32, dims!["n"]).optional(),
            Attribute::new("rows", DType::F64, dims!["n", 2]).stored(DType::I16).optional(),
            Attribute::new("text", DType::Utf8, dims![]).optional(),
            Attribute::new("pair", DType::Bytes, dims![2]).optional(),
            Attribute::new("list", DType::Utf8, dims!["n"]).optional(),
            Attribute::new("flag", DType::Bool, dims![]).optional(),
            Attribute::new("never", DType::F32, dims!["n"]).optional(),
            Attribute::new("always", DType::U8, dims![1]).optional(),
        ],
    );
    // More than eight samples, so that the bitmap has a second byte with unused bits.
    let rows = (0..11usize)
        .map(|i| {
            let n = [2, 0, 1, 3][i % 4];
            let when = |bit: usize, cell: Cell| if i >> bit & 1 == 1 { cell } else { Cell::Absent };
            let words: Vec<String> = (0..n).map(|k| format!("{i}.{k}")).collect();
            row_with(
                vec![
                    ("scalar", when(0, tensor(&[], &[i as f32 + 0.5]))),
                    ("matrix", when(1, tensor(&[2, 2], &[i as i16; 4]))),
                    ("ragged", when(0, tensor(&[n], &vec![i as u32; n]))),
                    ("rows", when(2, tensor(&[n, 2], &vec![-(i as f64); 2 * n]))),
                    ("text", when(3, text(if i == 9 { "" } else { "here" }))),
                    ("pair", when(0, strings(&[2], &[&b"\xff"[..], b""]))),
                    ("list", when(1, strings(&[n], &words))),
                    ("flag", when(2, bools(&[], &[(i % 2) as u8]))),
                    ("never", Cell::Absent),
                    ("always", tensor(&[1], &[i as u8])),
                ],
                vec![("n", n as u64)],
            )
        })
        .collect();
    Source::new(schema, rows)
}

/// Axes, and tables of an attribute's own, whose entries are the same share a section.
fn shared_offsets() -> Source {
    let schema = schema(
        &[],
        vec![
            Attribute::new("a", DType::U8, dims!["a"]),
            Attribute::new("b", DType::F32, dims!["b", 2]),
            Attribute::new("c", DType::U16, dims!["c"]),
            Attribute::new("own", DType::U8, dims!["a"]).optional(),
            Attribute::new("text", DType::Utf8, dims![]),
        ],
    );
    let rows = [3usize, 0, 2]
        .into_iter()
        .enumerate()
        .map(|(i, n)| {
            row(vec![
                ("a", tensor(&[n], &vec![i as u8; n])),
                ("b", tensor(&[n, 2], &vec![i as f32; 2 * n])),
                ("c", tensor(&[n + i], &vec![i as u16; n + i])),
                ("own", tensor(&[n], &vec![9u8; n])),
                ("text", text(&"t".repeat(n))),
            ])
        })
        .collect();
    Source::new(schema, rows)
}

/// Every legal pair, at the ends of its range.
fn narrow(floats: bool) -> Source {
    use DType::*;
    let pairs: &[(DType, &[DType])] = &[
        (U16, &[U8]),
        (U32, &[U8, U16]),
        (U64, &[U8, U16, U32]),
        (I16, &[U8, I8]),
        (I32, &[U8, I8, U16, I16]),
        (I64, &[U8, I8, U16, I16, U32, I32]),
        (F32, &[U8, I8, U16, I16, F16, BF16]),
        (F64, &[U8, I8, U16, I16, U32, I32, F16, BF16, F32]),
    ];
    let range = |stored: DType| -> (i64, i64) {
        match stored {
            U8 => (0, 255),
            I8 => (-128, 127),
            U16 => (0, 65535),
            I16 => (-32768, 32767),
            U32 => (0, 0xffff_ffff),
            _ => (-0x8000_0000, 0x7fff_ffff),
        }
    };
    // Signed zero, least subnormal, greatest, infinity, a quiet NaN with all of its payload, of each narrow float.
    let singles = |stored: DType| -> Vec<f32> {
        let bits = match stored {
            F16 => [0x8000_0000u32, 0x3380_0000, 0x477f_e000, 0xff80_0000, 0xffff_e000],
            BF16 => [0x8000_0000, 0x0001_0000, 0x7f7f_0000, 0xff80_0000, 0xffff_0000],
            _ => [0x8000_0000, 1, 0x7f7f_ffff, 0xff80_0000, 0xffff_ffff],
        };
        bits.map(f32::from_bits).to_vec()
    };
    let (mut attributes, mut cells) = (vec![], vec![]);
    for &(dtype, all) in pairs {
        for &stored in all.iter().filter(|_| dtype.is_float() == floats) {
            let name = format!("{dtype} as {stored}");
            attributes.push(Attribute::new(name.clone(), dtype, dims![5]).stored(stored));
            let (low, high) = range(stored);
            let whole = [0, 1, low, high, high / 2];
            let bytes: Vec<u8> = match (dtype, stored.is_float()) {
                (F32, true) => singles(stored).iter().flat_map(|x| x.to_le_bytes()).collect(),
                (F64, true) => singles(stored)
                    .iter()
                    .flat_map(|x| {
                        let (bits, nan) = (x.to_bits(), x.is_nan());
                        let wide = if nan {
                            u64::from(bits >> 31) << 63
                                | 0x7ff << 52
                                | u64::from(bits & 0x7f_ffff) << 29
                        } else {
                            f64::from(*x).to_bits()
                        };
                        wide.to_le_bytes()
                    })
                    .collect(),
                (F32, false) => whole.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
                (F64, false) => whole.iter().flat_map(|&x| (x as f64).to_le_bytes()).collect(),
                _ => whole.iter().flat_map(|x| x.to_le_bytes()[..dtype.size()].to_vec()).collect(),
            };
            cells.push((name.into(), Cell::Tensor(vec![5], bytes)));
        }
    }
    Source { statistics: false, ..Source::new(schema(&[], attributes), vec![(cells, vec![])]) }
}

const METADATA: &str = r#"{
    "text": "quote \" backslash \\ slash / tab \t newline \n null \u0000 delete \u007f",
    "ключ": "значение \ud83d\ude80 \u2028",
    "integers": [0, -1, 9223372036854775807, -9223372036854775808],
    "floats": [0.1, -0.0, 1e300, 5e-324, 31.245270191439438, 123456789012345680.0, 1.0],
    "nested": {"empty": {}, "list": [], "null": null, "bools": [true, false]},
    "pyg": {"profile": "reserved; readers that do not know it give it as it is"},
    "": "an empty key"
}"#;

fn metadata() -> Source {
    let schema = schema(&[], vec![Attribute::new("x", DType::U8, dims![])]);
    let rows = vec![row(vec![("x", tensor(&[], &[7u8]))])];
    Source { metadata: METADATA, ..Source::new(schema, rows) }
}

/// Names that trip whoever makes paths, identifiers or terminal output of them.
fn names() -> Source {
    let names = [
        "größe",
        "名前",
        "имя",
        "\u{1f600}",
        "e\u{301}",
        "é",
        " leading space",
        "../../escape",
        "a/b\\c",
        "tab\tand\nnewline",
        "nul\0byte",
        "\u{1b}[31mred",
        "quote\"and'",
        "\u{202e}desrever",
    ];
    let mut attributes: Vec<Attribute> =
        names.iter().map(|name| Attribute::new(*name, DType::U8, dims![])).collect();
    attributes.push(Attribute::new("x".repeat(1024), DType::U8, dims![]));
    attributes.push(Attribute::new("по узлам", DType::I64, dims!["узлы"]).increment_by("узлы"));
    let mut values: Vec<(Cow<'static, str>, Cell)> =
        attributes.iter().map(|a| (a.name().to_owned().into(), tensor(&[], &[1u8]))).collect();
    values.pop();
    let rows = (0..2)
        .map(|i| {
            let mut values = values.clone();
            values.push(("по узлам".into(), tensor(&[i + 1], &vec![i as i64; i + 1])));
            (values, vec![])
        })
        .collect();
    Source { statistics: false, ..Source::new(schema(&[], attributes), rows) }
}

fn increments() -> Source {
    let schema = schema(
        &["nodes"],
        vec![
            Attribute::new("pair", DType::I64, dims![2, "pairs"])
                .increment(Increment::Attribute("pair.step".into())),
            Attribute::new("pair.step", DType::I64, dims![2, 1]).hidden(),
            Attribute::new("group", DType::I32, dims!["nodes"])
                .increment(Increment::Attribute("group.step".into())),
            Attribute::new("group.step", DType::I32, dims![]).stored(DType::U8).hidden(),
            Attribute::new("root", DType::U16, dims![]).increment_by("nodes").stack(),
        ],
    );
    let one = |nodes: usize, pairs: usize| {
        row(vec![
            ("pair", tensor(&[2, pairs], &vec![0i64; 2 * pairs])),
            ("pair.step", tensor(&[2, 1], &[nodes as i64, -1])),
            ("group", tensor(&[nodes], &(0..nodes as i32).collect::<Vec<_>>())),
            ("group.step", tensor(&[], &[nodes as i32])),
            ("root", tensor(&[], &[0u16])),
        ])
    };
    Source::new(schema, vec![one(2, 1), one(3, 0), one(1, 4)])
}

/// Every sample has the same lengths, so there is no table; the schema is that of ragged attributes all the same.
fn constant_axes() -> Source {
    let schema = schema(
        &["never"],
        vec![
            Attribute::new("x", DType::F32, dims!["nodes", 2]),
            Attribute::new("square", DType::U8, dims!["nodes", "nodes"]),
            Attribute::new("words", DType::Utf8, dims!["nodes"]),
        ],
    );
    let rows = (0..4)
        .map(|i| {
            row_with(
                vec![
                    ("x", tensor(&[3, 2], &[i as f32; 6])),
                    ("square", tensor(&[3, 3], &[i as u8; 9])),
                    ("words", strings(&[3], &["", "b", "cc"])),
                ],
                vec![("never", 0)],
            )
        })
        .collect();
    Source::new(schema, rows)
}

/// Totals from 2^32 on have u64 tables; extents beside a 0 may have any product.
fn wide_offsets() -> Source {
    let schema = schema(
        &["alone"],
        vec![
            Attribute::new("thin", DType::F64, dims!["long", 0]),
            Attribute::new("cube", DType::U8, dims!["long", "long", "long", 0]),
            Attribute::new("fixed", DType::U8, dims![1u64 << 62, 4, 0]),
        ],
    );
    let one = |long: usize, alone: u64| {
        row_with(
            vec![
                ("thin", tensor::<f64>(&[long, 0], &[])),
                ("cube", tensor::<u8>(&[long, long, long, 0], &[])),
                ("fixed", tensor::<u8>(&[1 << 62, 4, 0], &[])),
            ],
            vec![("alone", alone)],
        )
    };
    // `alone` ends one below 2^32, which still fits u32.
    Source::new(schema, vec![one(1 << 40, 7), one(3, 0), one(0, u64::from(u32::MAX) - 7)])
}

/// More than one block in a section, the last one short.
fn blocks() -> Source {
    let schema = schema(
        &[],
        vec![Attribute::new("a", DType::U8, dims!["n"]), Attribute::new("b", DType::U16, dims![])],
    );
    let one = |n: usize, b: u16| {
        row(vec![
            ("a", tensor(&[n], &(0..n).map(|k| (k / 256) as u8).collect::<Vec<_>>())),
            ("b", tensor(&[], &[b])),
        ])
    };
    Source::new(schema, vec![one(65536, 1), one(10, 2)])
}

fn file_of(name: &'static str, source: &Source) -> Golden {
    let bytes = source.write();
    assert!(
        Forge::open(&bytes).seal() == bytes,
        "{name}: the writer strays from the specification"
    );
    Golden { name, bytes, expected: source.expected() }
}

/// One of the files of a dataset.
fn shard(name: &'static str, shard: Shard) -> Golden {
    let source = Source { shard: Some(shard), ..three_samples() };
    file_of(name, &source)
}

/// Further attributes of the samples of `three_samples`.
fn overlay() -> Golden {
    let base = three_samples().write();
    let number = |at: usize, len: usize| {
        base[at..at + len].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let base = json!({
        "file_bytes": number(24, 8), "samples": number(32, 8), "directory_crc": number(80, 4), "checksums_crc": number(84, 4),
    });
    let source = Source::new(
        schema(&[], vec![Attribute::new("energy", DType::F64, dims![])]),
        (0..3).map(|at| row(vec![("energy", tensor(&[], &[f64::from(at) / 4.0]))])).collect(),
    );
    let mut golden = file_of("overlay", &source);
    let mut forge = Forge::open(&golden.bytes);
    forge.directory["base"] = base.clone();
    golden.bytes = forge.seal();
    golden.expected["base"] = base;
    golden
}

/// What a 1.0 reader must make of a file of version 1.7: reserved bytes in use, members and sections that it does not
/// know, and attributes that it cannot read.
fn future_minor() -> Golden {
    let source = three_samples();
    let mut forge = Forge::open(&source.write());
    forge.minor = 7;
    forge.header = Some(Box::new(|header| put(header, 88, &[0xaa; 4004])));
    forge.sections.push(b"a section of a purpose to come".to_vec());
    let root = forge.directory.as_object_mut().expect("an object");
    root.insert("index".into(), json!({ "section": forge.sections.len() - 1, "deep": [[[0.5]]] }));
    root.insert("hereafter".into(), json!({ "number": 3 }));
    forge.attribute("x")["codec"] = json!("a member to come");
    forge.axis("nodes")["sorted"] = json!(true);
    forge.list = Some(Box::new(|list| list[0]["tier"] = json!("cold")));
    let mut refused = vec![];
    for (name, entry) in [
        ("new dtype", json!({ "dtype": "f4e2m1", "shape": ["unknown axis", -1] })),
        ("new storage", json!({ "dtype": "f32", "stored": "f8e4m3fnuz" })),
        ("new encoding", json!({ "dtype": "f32", "encoding": "zstd", "frames": 12 })),
        ("new requirement", json!({ "dtype": "f32", "requires": ["scale"], "total": "any" })),
    ] {
        let mut entry = entry;
        entry["name"] = json!(name);
        forge.directory["attributes"].as_array_mut().expect("a list").push(entry);
        refused.push(name);
    }
    // Incremented by an attribute that is refused: readable all the same.
    forge.attribute("edge_index")["increment"] = json!({ "attribute": "new dtype" });
    let mut expected = source.expected();
    expected["refused"] = json!(refused);
    expected["attributes"]["edge_index"]["increment"] = json!({ "attribute": "new dtype" });
    Golden { name: "future_minor", bytes: forge.seal(), expected }
}

/// Legal and unlike what the library writes: sections in another order with gaps, a directory with white space and
/// escapes, nulls for absent members, a table for a constant axis.
fn odd_layout() -> Golden {
    let source = Source::new(many_kinds(), vec![kinds_row(2, 1, 0), kinds_row(2, 1, 0)]);
    let mut forge = Forge::open(&source.write());
    forge.compact = false;
    let nodes = forge.sections.len();
    forge.sections.push([0u32, 2, 4].iter().flat_map(|entry| entry.to_le_bytes()).collect());
    *forge.axis("nodes") =
        json!({ "name": "nodes", "total": 4, "offsets": nodes, "stored": "u32", "constant": null });
    forge.attribute("x")["encoding"] = json!("raw");
    forge.attribute("x")["requires"] = json!([]);
    forge.attribute("x")["stored"] = json!("f32");
    forge.attribute("y")["optional"] = json!(false);
    forge.attribute("y")["stored"] = Json::Null;
    forge.attribute("smiles").as_object_mut().expect("an object").remove("cat_dim");
    forge.directory["metadata"] = Json::Null;
    forge.text = Some(Box::new(|text| {
        let value: Json = serde_json::from_slice(text).expect("JSON");
        let pretty = serde_json::to_string_pretty(&value).expect("text");
        *text = format!("\r\n\t {}\n", pretty.replace("\"smiles\"", "\"\\u0073mil\\u0065s\""))
            .into_bytes();
    }));
    Golden { name: "odd_layout", bytes: forge.seal(), expected: source.expected() }
}

/// Everything that the hostile files need, each axis used by one attribute, so that each lie has one victim.
pub(crate) fn base() -> Vec<u8> {
    let schema = schema(
        &[],
        vec![
            Attribute::new("x", DType::F32, dims!["nodes", 2]),
            Attribute::new("flags", DType::Bool, dims!["flags"]),
            Attribute::new("title", DType::Utf8, dims![]),
            Attribute::new("tags", DType::Utf8, dims!["tags"]),
            Attribute::new("square", DType::I64, dims!["side", "side"]).stored(DType::U8),
            Attribute::new("mark", DType::F64, dims![]).optional(),
            Attribute::new("note", DType::Utf8, dims![]).optional(),
            Attribute::new("couple", DType::Utf8, dims![2]).optional(),
            Attribute::new("runs", DType::U16, dims!["runs"]).optional(),
            Attribute::new("ids", DType::I64, dims![2, "links"])
                .increment(Increment::Attribute("step".into())),
            Attribute::new("step", DType::I64, dims![]).hidden(),
            Attribute::new("y", DType::F64, dims![3]),
        ],
    );
    let rows = (0..5usize)
        .map(|i| {
            let pick = |lengths: [usize; 5]| lengths[i];
            let (nodes, flags, tags) =
                (pick([1, 2, 0, 3, 1]), pick([2, 0, 1, 1, 3]), pick([0, 2, 1, 3, 2]));
            let (side, runs, links) =
                (pick([1, 0, 2, 1, 2]), pick([2, 1, 2, 0, 1]), pick([1, 1, 0, 0, 2]));
            let words: Vec<String> = (0..tags).map(|k| "é".repeat(k + 1)).collect();
            let when = |present: bool, cell: Cell| if present { cell } else { Cell::Absent };
            row_with(
                vec![
                    ("x", tensor(&[nodes, 2], &vec![i as f32; 2 * nodes])),
                    ("flags", bools(&[flags], &vec![1; flags])),
                    ("title", text(["one", "zwei", "três", "", "пять"][i])),
                    ("tags", strings(&[tags], &words)),
                    ("square", tensor(&[side, side], &vec![i as i64; side * side])),
                    ("mark", when(i != 1, tensor(&[], &[i as f64]))),
                    ("note", when(i % 3 == 0, text("note"))),
                    ("couple", when(i % 3 == 0, strings(&[2], &["a", "b"]))),
                    ("runs", when(i % 2 == 0, tensor(&[runs], &vec![i as u16; runs]))),
                    ("ids", tensor(&[2, links], &vec![0i64; 2 * links])),
                    ("step", tensor(&[], &[i as i64])),
                    ("y", tensor(&[3], &[i as f64; 3])),
                ],
                vec![("runs", runs as u64)],
            )
        })
        .collect();
    Source::new(schema, rows).write()
}

/// As little as possible: three samples of one ragged attribute, and one of fixed size.
pub(crate) fn small() -> Vec<u8> {
    let schema = schema(
        &[],
        vec![
            Attribute::new("x", DType::I32, dims!["nodes"]).increment_by("nodes"),
            Attribute::new("y", DType::F32, dims![2]),
        ],
    );
    let rows = [2usize, 0, 3]
        .into_iter()
        .map(|nodes| {
            row(vec![
                ("x", tensor(&[nodes], &vec![0i32; nodes])),
                ("y", tensor(&[2], &[0.5f32, -0.5])),
            ])
        })
        .collect();
    Source { statistics: false, metadata: r#"{"user":1}"#, ..Source::new(schema, rows) }.write()
}

/// Every golden file.
pub(crate) fn all() -> Vec<Golden> {
    let nothing = Source::new(schema(&[], vec![]), vec![]);
    let no_attributes = Source::new(
        schema(&["nodes"], vec![]),
        vec![row_with(vec![], vec![("nodes", 2)]), row_with(vec![], vec![("nodes", 0)])],
    );
    // Lengths that no values stand for may be any numbers, though no memory holds a batch of them and no number their sum.
    let huge_lengths = Source::new(
        schema(&["nodes"], vec![Attribute::new("none", DType::U8, dims![1u64 << 62, 0])]),
        [1 << 50, 1 << 60, (1 << 62) - 1, 0, 3]
            .map(|nodes| {
                row_with(vec![("none", tensor::<u8>(&[1 << 62, 0], &[]))], vec![("nodes", nodes)])
            })
            .into(),
    );
    let no_samples = Source::new(many_kinds(), vec![]);
    let one_sample = Source::new(many_kinds(), vec![kinds_row(3, 4, 1)]);
    let zero_lengths = Source::new(
        many_kinds(),
        vec![
            kinds_row(0, 0, 0),
            kinds_row(2, 1, 0),
            kinds_row(0, 0, 0),
            kinds_row(1, 0, 2),
            kinds_row(0, 0, 0),
        ],
    );
    let pages = Source {
        alignment: 4096,
        statistics: false,
        ..Source::new(
            schema(&[], vec![Attribute::new("x", DType::F32, dims![2])]),
            vec![row(vec![("x", tensor(&[2], &[1.0f32, 2.0]))])],
        )
    };
    vec![
        file_of("nothing", &nothing),
        file_of("no_attributes", &no_attributes),
        file_of("huge_lengths", &huge_lengths),
        file_of("no_samples", &no_samples),
        file_of("one_sample", &one_sample),
        file_of("three_samples", &three_samples()),
        file_of("zero_lengths", &zero_lengths),
        file_of("every_dtype", &every_dtype()),
        file_of("strings", &all_strings()),
        file_of("several_axes", &several_axes()),
        file_of("two_ragged", &two_ragged()),
        file_of("optional", &optional()),
        file_of("shared_offsets", &shared_offsets()),
        file_of("narrow_integers", &narrow(false)),
        file_of("narrow_floats", &narrow(true)),
        file_of("metadata", &metadata()),
        file_of("names", &names()),
        file_of("increments", &increments()),
        file_of("constant_axes", &constant_axes()),
        file_of("wide_offsets", &wide_offsets()),
        file_of("alignment_4096", &pages),
        file_of("blocks", &blocks()),
        future_minor(),
        odd_layout(),
        shard(
            "shard",
            Shard {
                first: Some(7),
                last: true,
                source: Some("row 12".into()),
                ..Shard::new("molecules", 2)
            },
        ),
        shard("shard_without_first", Shard::new("π", 0)),
        overlay(),
    ]
}
