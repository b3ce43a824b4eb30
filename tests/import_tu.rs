//! Text sets in the TU layout, against tensors computed here from the whole files the way PyTorch Geometric does.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fencepost::convert::tu::{Graph, Layout, Options, Reader, Target};
use fencepost::convert::{ImportOptions, import_tu};
use fencepost::{Dataset, Error};

const B3DB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/B3DB");

fn read_all(folder: &Path, options: &Options) -> Result<(Layout, Vec<Graph>), Error> {
    let mut reader = Reader::open(folder, options)?;
    let mut graph = Graph::default();
    let mut graphs = Vec::new();
    while reader.read(&mut graph)? {
        graphs.push(graph.clone());
    }
    Ok((reader.layout().clone(), graphs))
}

fn both() -> Options {
    Options::new().use_node_attr(true).use_edge_attr(true)
}

/// A folder with the files of a set named `T`.
fn set(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(format!("T_{name}.txt")), text).unwrap();
    }
    folder
}

// --- B3DB: 1,000 molecules ---

fn lines(name: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{B3DB}/B3DB_{name}.txt")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn numbers(name: &str) -> Vec<Vec<f64>> {
    let row = |line: &String| line.split(',').map(|field| field.trim().parse().unwrap()).collect();
    lines(name).iter().map(row).collect()
}

/// One-hot classes of a single label column, as whole-set code finds them.
fn classes(labels: &[Vec<f64>]) -> (f64, usize) {
    let least = labels.iter().map(|row| row[0]).fold(f64::INFINITY, f64::min);
    let most = labels.iter().map(|row| row[0]).fold(f64::NEG_INFINITY, f64::max);
    (least, (most - least) as usize + 1)
}

fn feature_row(attributes: Option<&[f64]>, label: f64, (least, classes): (f64, usize)) -> Vec<f32> {
    let mut row: Vec<f32> = attributes.unwrap_or(&[]).iter().map(|&value| value as f32).collect();
    row.extend((0..classes).map(|class| if label == least + class as f64 { 1.0 } else { 0.0 }));
    row
}

#[test]
fn b3db_atoms_and_bonds_match_the_text_files() {
    let (layout, graphs) = read_all(Path::new(B3DB), &Options::new()).unwrap();
    let indicator: Vec<usize> =
        lines("graph_indicator").iter().map(|l| l.parse().unwrap()).collect();
    let mut atoms = vec![0; 1000];
    for graph in &indicator {
        atoms[graph - 1] += 1;
    }
    let mut directed = vec![BTreeSet::new(); 1000];
    for edge in numbers("A") {
        let graph = indicator[edge[0] as usize - 1];
        assert_eq!(graph, indicator[edge[1] as usize - 1]);
        directed[graph - 1].insert((edge[0] as i64, edge[1] as i64));
    }
    assert_eq!(
        (layout.num_graphs, layout.num_nodes, layout.num_edge_lines),
        (1000, 22_445, 48_384)
    );
    assert!(layout.streamed);
    assert_eq!(graphs.len(), 1000);
    for (i, graph) in graphs.iter().enumerate() {
        assert_eq!(graph.num_nodes, atoms[i], "graph {i}");
        assert_eq!(graph.num_edges, directed[i].len(), "graph {i}");
        assert_eq!(graph.edge_index.len(), 2 * graph.num_edges);
    }
    assert_eq!(graphs.iter().map(|g| g.num_nodes).sum::<usize>(), 22_445);
    assert_eq!(graphs.iter().map(|g| g.num_edges).sum::<usize>(), 48_384);
}

/// Heavy atoms and bonds of a molecule, counted in its SMILES: a third opinion, which also shows that texts and graphs are
/// not shifted against each other.
fn count_smiles(smiles: &str) -> (usize, usize) {
    let bytes = smiles.as_bytes();
    let (mut atoms, mut parts, mut closures, mut i) = (0, 1, 0, 0);
    while i < bytes.len() {
        match bytes[i] {
            b'[' => {
                atoms += 1;
                i += bytes[i..].iter().position(|&b| b == b']').unwrap();
            }
            b'C' if bytes.get(i + 1) == Some(&b'l') => {
                atoms += 1;
                i += 1;
            }
            b'B' if bytes.get(i + 1) == Some(&b'r') => {
                atoms += 1;
                i += 1;
            }
            b'%' => {
                closures += 1;
                i += 2;
            }
            b'0'..=b'9' => closures += 1,
            b'.' => parts += 1,
            byte if byte.is_ascii_alphabetic() => atoms += 1,
            _ => {}
        }
        i += 1;
    }
    (atoms, atoms - parts + closures / 2)
}

#[test]
fn b3db_atoms_and_bonds_match_the_smiles() {
    let (layout, graphs) = read_all(Path::new(B3DB), &Options::new()).unwrap();
    assert_eq!(layout.texts, ["smiles"]);
    assert_eq!(layout.ignored, Vec::<std::path::PathBuf>::new());
    for (graph, smiles) in graphs.iter().zip(lines("smiles")) {
        assert_eq!(graph.texts, [smiles.as_str()]);
        assert_eq!((graph.num_nodes, graph.num_edges / 2), count_smiles(&smiles), "{smiles}");
    }
}

#[test]
fn b3db_tensors_are_those_of_pyg() {
    let indicator: Vec<usize> =
        lines("graph_indicator").iter().map(|l| l.parse().unwrap()).collect();
    let node_labels = numbers("node_labels");
    let node_attributes = numbers("node_attributes");
    let edge_labels = numbers("edge_labels");
    let node_classes = classes(&node_labels);
    let edge_classes = classes(&edge_labels);
    let graph_labels: Vec<i64> = numbers("graph_labels").iter().map(|row| row[0] as i64).collect();
    let ranks: BTreeSet<i64> = graph_labels.iter().copied().collect();

    for use_attributes in [false, true] {
        let options = Options::new().use_node_attr(use_attributes);
        let (layout, graphs) = read_all(Path::new(B3DB), &options).unwrap();
        assert_eq!(layout.num_node_attributes, 4);
        assert_eq!(layout.num_node_labels, node_classes.1);
        assert_eq!(layout.x, Some(node_classes.1 + if use_attributes { 4 } else { 0 }));
        assert_eq!(layout.edge_attr, Some(edge_classes.1));
        assert_eq!(layout.y, Some(Target { float: false, columns: 1, per_node: false }));

        // All edges of the set at once, by source and target; B3DB has neither loops nor parallel edges.
        let mut edges = BTreeMap::new();
        for (edge, label) in numbers("A").iter().zip(&edge_labels) {
            let row = feature_row(None, label[0], edge_classes);
            assert_eq!(edges.insert((edge[0] as usize - 1, edge[1] as usize - 1), row), None);
        }
        let mut first = 0;
        for (i, graph) in graphs.iter().enumerate() {
            let end = first + indicator[first..].iter().take_while(|&&of| of == i + 1).count();
            let x: Vec<f32> = (first..end)
                .flat_map(|node| {
                    let attributes = use_attributes.then_some(&node_attributes[node][..]);
                    feature_row(attributes, node_labels[node][0], node_classes)
                })
                .collect();
            assert_eq!(graph.x, x, "graph {i}");
            let own: Vec<_> = edges.range((first, 0)..(end, 0)).collect();
            let sources = own.iter().map(|((source, _), _)| (source - first) as i64);
            let targets = own.iter().map(|((_, target), _)| (target - first) as i64);
            assert_eq!(graph.edge_index, sources.chain(targets).collect::<Vec<_>>(), "graph {i}");
            assert_eq!(
                graph.edge_attr,
                own.iter().flat_map(|(_, row)| row.to_vec()).collect::<Vec<_>>()
            );
            let rank = ranks.iter().position(|&label| label == graph_labels[i]).unwrap();
            assert_eq!(graph.y_label, [rank as i64]);
            first = end;
        }
    }
}

#[test]
fn the_imported_b3db_has_the_same_graphs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("b3db.fence");
    let options = Options::new().use_node_attr(true);
    let mut last = None;
    let import = ImportOptions::new().progress(|p| last = Some((p.samples, p.done, p.total)));
    assert_eq!(import_tu(B3DB, &out, &options, import).unwrap().samples, 1000);
    assert_eq!(last, Some((1000, 1000, 1000)));

    let dataset = Dataset::load(&out).unwrap();
    assert!(dataset.verify().unwrap().ok());
    let schema: Vec<_> = dataset
        .schema()
        .attributes()
        .iter()
        .map(|a| format!("{} {}{}", a.name(), a.dtype(), a.pattern()))
        .collect();
    assert_eq!(
        schema[1..],
        ["edge_index i64[2, edges]", "edge_attr f32[edges, 4]", "y i64[1]", "smiles utf8[]",]
    );
    let (_, graphs) = read_all(Path::new(B3DB), &options).unwrap();
    let smiles = lines("smiles");
    for (index, graph) in graphs.iter().enumerate() {
        let sample = dataset.get(index as u64).unwrap();
        assert_eq!(sample.axis_len("nodes").unwrap(), graph.num_nodes as u64);
        assert_eq!(sample.axis_len("edges").unwrap(), graph.num_edges as u64);
        assert_eq!(sample.slice::<f32>("x").unwrap(), graph.x);
        assert_eq!(sample.slice::<i64>("edge_index").unwrap(), graph.edge_index);
        assert_eq!(sample.slice::<f32>("edge_attr").unwrap(), graph.edge_attr);
        assert_eq!(sample.slice::<i64>("y").unwrap(), graph.y_label);
        assert_eq!(sample.attr("smiles").unwrap().as_str().unwrap(), smiles[index]);
        // The third opinion again, on the file.
        let counts = (graph.num_nodes, graph.num_edges / 2);
        assert_eq!(counts, count_smiles(&smiles[index]));
    }
    assert_eq!(dataset.axis_total("nodes").unwrap().0, 22_445);
    assert_eq!(dataset.axis_total("edges").unwrap().0, 48_384);
}

// --- small sets with every part ---

/// Two graphs: a triangle with a loop and a parallel edge, and a pair of nodes.
const A: &str = "1, 2\n2, 1\n3, 3\n2, 3\n1, 2\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n";
const INDICATOR: &str = "1\n1\n1\n2\n2\n";
const EDGE_LABELS: &str = "7\n7\n9\n8\n9\n8\n7\n7\n8\n8\n";
const EDGE_ATTRIBUTES: &str = "0.5,1\n0.25,2\n100,100\n3,3\n0.125,4\n5,5\n6,6\n7,7\n8,8\n9,9\n";

#[test]
fn loops_go_and_parallel_edges_are_added() {
    let files = [
        ("A", A),
        ("graph_indicator", INDICATOR),
        ("edge_labels", EDGE_LABELS),
        ("edge_attributes", EDGE_ATTRIBUTES),
    ];
    let folder = set(&files);
    let (layout, graphs) = read_all(folder.path(), &both()).unwrap();
    assert_eq!((layout.name.as_str(), layout.num_graphs, layout.num_nodes), ("T", 2, 5));
    assert_eq!((layout.num_edge_attributes, layout.num_edge_labels), (2, 3));
    assert_eq!((layout.x, layout.edge_attr, layout.y), (None, Some(5), None));
    assert_eq!(graphs[0].num_nodes, 3);
    assert_eq!(graphs[0].edge_index, [0, 0, 1, 1, 2, 2, 1, 2, 0, 2, 0, 1]);
    #[rustfmt::skip]
    assert_eq!(graphs[0].edge_attr, [
        0.625, 5.0, 1.0, 0.0, 1.0, // 1-2 twice, labels 7 and 9
        6.0, 6.0, 1.0, 0.0, 0.0,
        0.25, 2.0, 1.0, 0.0, 0.0,
        3.0, 3.0, 0.0, 1.0, 0.0,
        7.0, 7.0, 1.0, 0.0, 0.0,
        5.0, 5.0, 0.0, 1.0, 0.0,
    ]);
    assert_eq!(graphs[1].edge_index, [0, 1, 1, 0]);
    assert_eq!(graphs[1].edge_attr, [8.0, 8.0, 0.0, 1.0, 0.0, 9.0, 9.0, 0.0, 1.0, 0.0]);

    // Without the attributes, the labels alone.
    let (layout, graphs) = read_all(folder.path(), &Options::new()).unwrap();
    assert_eq!((layout.num_edge_attributes, layout.edge_attr), (2, Some(3)));
    assert_eq!(graphs[0].edge_attr[..3], [1.0, 0.0, 1.0]);
}

#[test]
fn sums_are_rounded_in_the_order_of_the_file() {
    // In f32, (1 + 2^-24) + 2^-24 is 1, and the other order is not.
    let small = "0.000000059604644775390625";
    for (attributes, sum) in [
        (format!("1\n{small}\n{small}\n"), 1.0),
        (format!("{small}\n{small}\n1\n"), 1.0 + f32::EPSILON),
    ] {
        let folder = set(&[
            ("A", "1,2\n1,2\n1,2\n"),
            ("graph_indicator", "1\n1\n"),
            ("edge_attributes", &attributes),
        ]);
        let (_, graphs) = read_all(folder.path(), &both()).unwrap();
        assert_eq!(graphs[0].edge_attr, [sum]);
    }
    // Text is rounded to f64 and then to f32, as in Python: this value is just above the middle of two f32, and rounds
    // down because f64 cannot tell it from the middle.
    let text = "1.00000005960464477539062500000000001";
    let folder = set(&[("A", "1,2\n"), ("graph_indicator", "1\n1\n"), ("edge_attributes", text)]);
    let (_, graphs) = read_all(folder.path(), &both()).unwrap();
    assert_eq!(graphs[0].edge_attr, [1.0]);
    assert_eq!(text.parse::<f32>().unwrap(), 1.0 + f32::EPSILON);
}

#[test]
fn edges_in_any_order_give_the_same_graphs() {
    let edges: Vec<_> = A.lines().zip(EDGE_LABELS.lines()).zip(EDGE_ATTRIBUTES.lines()).collect();
    let files = [
        ("A", A),
        ("graph_indicator", INDICATOR),
        ("edge_labels", EDGE_LABELS),
        ("edge_attributes", EDGE_ATTRIBUTES),
    ];
    let folder = set(&files);
    let (layout, expected) = read_all(folder.path(), &both()).unwrap();
    assert!(layout.streamed);
    for step in [3, 7, 9] {
        let (mut a, mut labels, mut attributes) = (String::new(), String::new(), String::new());
        for i in 0..edges.len() {
            let ((edge, label), attribute) = edges[i * step % edges.len()];
            a += &format!("{edge}\n");
            labels += &format!("{label}\n");
            attributes += &format!("{attribute}\n");
        }
        let files = [
            ("A", a.as_str()),
            ("graph_indicator", INDICATOR),
            ("edge_labels", &labels),
            ("edge_attributes", &attributes),
        ];
        let folder = set(&files);
        let (layout, graphs) = read_all(folder.path(), &both()).unwrap();
        assert!(!layout.streamed);
        assert_eq!(graphs, expected, "step {step}");
    }
}

#[test]
fn labels_and_attributes_of_nodes() {
    let files = [
        ("A", "1,2\n"),
        ("graph_indicator", "1\n1\n2\n"),
        ("node_labels", "-1, 5\n1, 5\n0, 7"),
        ("node_attributes", "1.5, nan\r\n-2e-3, inf\r\n+3, .5\r\n"),
    ];
    let folder = set(&files);
    let (layout, graphs) = read_all(folder.path(), &both()).unwrap();
    assert_eq!((layout.num_node_attributes, layout.num_node_labels, layout.x), (2, 6, Some(8)));
    assert_eq!(graphs[0].x[0], 1.5);
    assert!(graphs[0].x[1].is_nan());
    assert_eq!(graphs[0].x[2..8], [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(graphs[0].x[8..], [-0.002, f32::INFINITY, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(graphs[1].x, [3.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    // A graph without edges at the end is kept.
    assert_eq!((graphs.len(), graphs[1].num_edges), (2, 0));

    // Only attributes, not asked for: `x` has no columns, as in PyG.
    fs::remove_file(folder.path().join("T_node_labels.txt")).unwrap();
    let (layout, graphs) = read_all(folder.path(), &Options::new()).unwrap();
    assert_eq!((layout.num_node_attributes, layout.x), (2, Some(0)));
    assert!(graphs[0].x.is_empty());
}

#[test]
fn targets() {
    let base = [("A", "1,2\n3,4\n"), ("graph_indicator", "1\n1\n3\n3\n")];
    let with = |name, text| {
        let folder = set(&[base[0], base[1], (name, text)]);
        read_all(folder.path(), &Options::new()).unwrap()
    };
    // Ranks among all labels; graph 2 has no node.
    let (layout, graphs) = with("graph_labels", "10\n-1\n3\n");
    assert_eq!(layout.y, Some(Target { float: false, columns: 1, per_node: false }));
    assert_eq!(graphs.iter().map(|g| g.num_nodes).collect::<Vec<_>>(), [2, 0, 2]);
    assert_eq!(graphs.iter().map(|g| g.y_label[0]).collect::<Vec<_>>(), [2, 0, 1]);
    // Several columns share one ranking.
    let (layout, graphs) = with("graph_labels", "10,5\n5,10\n7,7\n");
    assert_eq!(layout.y, Some(Target { float: false, columns: 2, per_node: false }));
    assert_eq!(graphs[0].y_label, [2, 0]);
    assert_eq!(graphs[2].y_label, [1, 1]);
    // A line for each node.
    let (layout, graphs) = with("graph_labels", "1\n2\n2\n1\n");
    assert_eq!(layout.y, Some(Target { float: false, columns: 1, per_node: true }));
    assert_eq!(graphs[0].y_label, [0, 1]);
    assert!(graphs[1].y_label.is_empty());
    assert_eq!(graphs[2].y_label, [1, 0]);
    // Attributes win over labels.
    let folder = set(&[
        base[0],
        base[1],
        ("graph_labels", "1\n2\n3\n"),
        ("graph_attributes", "0.1,1\n0.2,2\n0.3,3\n"),
    ]);
    let (layout, graphs) = read_all(folder.path(), &Options::new()).unwrap();
    assert_eq!(layout.y, Some(Target { float: true, columns: 2, per_node: false }));
    assert_eq!(graphs[1].y_value, [0.2, 2.0]);
}

#[test]
fn texts_and_other_files() {
    let base = [("A", "1,2\n"), ("graph_indicator", "1\n1\n2\n")];
    let folder = set(&[
        base[0],
        base[1],
        ("smiles", "CC\n\n"),
        ("name", "é, ü\r\nb"),
        ("readme", "one line\n"),
    ]);
    let (layout, graphs) = read_all(folder.path(), &Options::new()).unwrap();
    assert_eq!(layout.texts, ["name", "smiles"]);
    assert_eq!(layout.ignored, [folder.path().join("T_readme.txt")]);
    assert_eq!(graphs[0].texts, ["é, ü", "CC"]);
    assert_eq!(graphs[1].texts, ["b", ""]);

    fs::write(folder.path().join("T_smiles.txt"), b"CC\nC\xff\n").unwrap();
    let error = read_all(folder.path(), &Options::new()).unwrap_err().to_string();
    assert!(error.contains("T_smiles.txt: line 2, byte 2: expected UTF-8 text"), "{error}");
}

#[test]
fn the_set_in_the_folder() {
    let folder = set(&[("A", "1,1\n"), ("graph_indicator", "1\n")]);
    fs::write(folder.path().join("U_x_A.txt"), "1,2\n").unwrap();
    fs::write(folder.path().join("U_x_graph_indicator.txt"), "1\n1\n").unwrap();
    let error = read_all(folder.path(), &Options::new()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("2 sets (T, U_x)"), "{error}");
    let (layout, _) = read_all(folder.path(), &Options::new().name("U_x")).unwrap();
    assert_eq!((layout.name.as_str(), layout.num_nodes), ("U_x", 2));
    let error = read_all(folder.path(), &Options::new().name("V")).unwrap_err();
    assert!(
        matches!(&error, Error::Io { path, .. } if path.ends_with("V_graph_indicator.txt")),
        "{error}"
    );
    let empty = tempfile::tempdir().unwrap();
    let error = read_all(empty.path(), &Options::new()).unwrap_err().to_string();
    assert!(error.contains("expected a file <name>_A.txt, found none"), "{error}");
}

#[test]
fn malformed_files_are_named() {
    let good = [
        ("A", "1, 2\n2, 1\n3, 4\n"),
        ("graph_indicator", "1\n1\n2\n2\n"),
        ("node_labels", "0\n1\n0\n1\n"),
        ("node_attributes", "1,2\n3,4\n5,6\n7,8\n"),
        ("edge_labels", "0\n0\n1\n"),
        ("edge_attributes", "0.5\n0.5\n1\n"),
        ("graph_labels", "0\n1\n"),
    ];
    assert_eq!(read_all(set(&good).path(), &both()).unwrap().1.len(), 2);
    let cases: &[(&str, &str, &str, &str, &str)] = &[
        ("A", "1, 2\n2, x\n3, 4\n", "line 2, column 2", "an integer", "\"x\""),
        ("A", "1, 2\n2, 1.0\n3, 4\n", "line 2, column 2", "an integer", "\"1.0\""),
        ("A", "1, 2\n\n3, 4\n", "line 2, column 1", "an integer", "an empty line"),
        ("A", "1, 2\n2\n3, 4\n", "line 2", "2 values, as in the first line", "1"),
        ("A", "1\n2\n3\n", "line 1", "two node numbers", "1 values"),
        ("A", "1, 2\n0, 1\n3, 4\n", "line 2", "a node in 1..=4", "0"),
        ("A", "1, 2\n2, 1\n3, 5\n", "line 3", "a node in 1..=4", "5"),
        (
            "A",
            "1, 2\n2, 3\n3, 4\n",
            "line 2",
            "within one graph (nodes 1..=2)",
            "from node 2 to node 3",
        ),
        (
            "A",
            "3, 4\n2, 3\n1, 2\n",
            "line 2",
            "within one graph (nodes 1..=2)",
            "from node 2 to node 3",
        ),
        ("graph_indicator", "1\n2\n1\n2\n", "line 3", "listed graph by graph", "graph 1"),
        ("graph_indicator", "0\n1\n1\n2\n", "line 1", "from 1", "0"),
        ("graph_indicator", "1\n1\n2\n9999999999\n", "line 4", "as many graphs as", "9999999999"),
        ("graph_indicator", "1,1\n1,1\n2,1\n2,1\n", "line 1", "the number of a graph", "2 values"),
        ("node_labels", "0\n1\n0\n", "after line 3", "as many lines as there are nodes", "the end"),
        (
            "node_labels",
            "0\n1\n0\n1\n1\n",
            "line 5",
            "4 lines, one for each node",
            "a further line",
        ),
        ("node_labels", "0\n1\n0\n9999999\n", "column 1", "at most 65536 classes", "0 to 9999999"),
        (
            "node_labels",
            "-9223372036854775808\n1\n0\n9223372036854775807\n",
            "column 1",
            "at most 65536 classes",
            "labels from",
        ),
        (
            "node_labels",
            "0\n1\n0\n9223372036854775808\n",
            "line 4, column 1",
            "an integer",
            "92233",
        ),
        ("node_attributes", "1,2\n3,4\n5\n7,8\n", "line 3", "2 values", "1"),
        ("node_attributes", "1,2\n3,\n5,6\n7,8\n", "line 2, column 2", "a number", "\"\""),
        (
            "node_attributes",
            "1,2\n3,4\n5,6\n",
            "after line 3",
            "as many lines as there are nodes",
            "the end",
        ),
        ("edge_labels", "0\n0\n", "after line 2", "nodes or edges", "the end"),
        ("edge_labels", "0\n0\n0\n0\n", "line 4", "3 lines, one for each edge", "a further line"),
        (
            "edge_attributes",
            "0.5\n0.5\n1\n1\n",
            "line 4",
            "3 lines, one for each edge",
            "a further line",
        ),
        ("graph_labels", "0\n", "after line 1", "2 lines (one for each graph) or 4", "1 lines"),
        ("graph_labels", "0\n1.5\n", "line 2, column 1", "an integer", "\"1.5\""),
    ];
    for (name, text, place, expected, found) in cases {
        let files: Vec<_> =
            good.iter().map(|f| if f.0 == *name { (*name, *text) } else { *f }).collect();
        match read_all(set(&files).path(), &both()) {
            Err(Error::Convert { path, place: at, expected: e, found: f }) => {
                assert!(
                    path.ends_with(format!("T_{name}.txt")),
                    "{name} {text:?}: {}",
                    path.display()
                );
                assert_eq!(&*at, *place, "{name} {text:?}: {e}, {f}");
                assert!(e.contains(expected), "{name} {text:?}: expected {e:?}");
                assert!(f.contains(found), "{name} {text:?}: found {f:?}");
            }
            other => panic!("{name} {text:?}: {other:?}"),
        }
    }
    // The same for edges that are sorted in memory.
    let unsorted = [("A", "3, 4\n2, 1\n1, 2\n"), good[1], ("edge_labels", "0\n0\n0\n0\n")];
    let error = read_all(set(&unsorted).path(), &both()).unwrap_err().to_string();
    assert!(error.contains("T_edge_labels.txt: line 4: expected 3 lines"), "{error}");
}

#[test]
fn an_empty_set_is_a_set() {
    let folder = set(&[("A", ""), ("graph_indicator", "")]);
    let (layout, graphs) = read_all(folder.path(), &Options::new()).unwrap();
    assert_eq!((layout.num_graphs, layout.x, graphs.len()), (0, None, 0));
}

/// Every combination of parts is a schema that the writer takes: no `x` columns, `y` for nodes, of several columns, floats.
#[test]
fn imported_shapes() {
    let base = [("A", "1,2\n3,4\n"), ("graph_indicator", "1\n1\n3\n3\n")];
    /// Further files of the set, and the schema.
    type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
    let cases: &[Case] = &[
        (&[], &["edge_index i64[2, edges]"]),
        (&[("node_attributes", "1\n2\n3\n4\n")], &["x f32[nodes, 0]", "edge_index i64[2, edges]"]),
        (&[("graph_labels", "1\n2\n3\n4\n")], &["edge_index i64[2, edges]", "y i64[nodes]"]),
        (&[("graph_labels", "1,1\n2,1\n3,1\n")], &["edge_index i64[2, edges]", "y i64[1, 2]"]),
        (&[("graph_attributes", "1\n2\n3\n")], &["edge_index i64[2, edges]", "y f32[1]"]),
        (&[("edge_labels", "1\n2\n")], &["edge_index i64[2, edges]", "edge_attr f32[edges, 2]"]),
        (&[("formula", "a\nb\nc\n")], &["edge_index i64[2, edges]", "formula utf8[]"]),
    ];
    for (further, expected) in cases {
        let folder = set(&[&base[..], further].concat());
        let out = folder.path().join("out.fence");
        import_tu(folder.path(), &out, &Options::new(), ImportOptions::new()).unwrap();
        let dataset = Dataset::load(&out).unwrap();
        let attributes = dataset.schema().attributes().iter();
        let schema: Vec<_> =
            attributes.map(|a| format!("{} {}{}", a.name(), a.dtype(), a.pattern())).collect();
        assert_eq!(schema, *expected);
        let nodes = |i| dataset.get(i).unwrap().axis_len("nodes").unwrap();
        assert_eq!([nodes(0), nodes(1), nodes(2)], [2, 0, 2]);
        assert_eq!(dataset.get(2).unwrap().slice::<i64>("edge_index").unwrap(), [0, 1]);
    }
}
