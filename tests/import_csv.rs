//! Graph dumps as tables: the shapes that real ones have, and an error that says where for each that is wrong.

#![cfg(feature = "csv")]
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fencepost::convert::csv::{Graph, LONGEST_ROW, Options, Part, Reader, Values};
use fencepost::convert::{ImportOptions, import_csv, import_tu, tu};
use fencepost::{DType, Dataset, Error, Sample, TensorView};
use tempfile::TempDir;

const B3DB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/B3DB");

fn dump(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(format!("{name}.csv")), text).unwrap();
    }
    folder
}

fn read_all(folder: &Path, options: &Options) -> Result<Vec<Graph>, Error> {
    let mut reader = Reader::open(folder, options)?;
    let mut graph = Graph::default();
    let mut graphs = Vec::new();
    while reader.read(&mut graph)? {
        graphs.push(graph.clone());
    }
    assert_eq!(reader.bytes(), reader.layout().bytes, "what was read when all was read");
    Ok(graphs)
}

/// Imports; what comes out verifies.
fn import(folder: &Path, options: &Options) -> Result<Dataset, Error> {
    let out = folder.join("out.fence");
    let summary = import_csv(folder, &out, options, ImportOptions::new())?;
    let dataset = Dataset::load(&out)?;
    assert!(dataset.verify()?.ok());
    assert_eq!(dataset.len(), summary.samples);
    Ok(dataset)
}

fn tensor<'a>(sample: &Sample<'a>, name: &str) -> TensorView<'a> {
    *sample.attr(name).unwrap().as_tensor().unwrap()
}

fn text<'a>(sample: &Sample<'a>, name: &str) -> &'a str {
    sample.attr(name).unwrap().as_str().unwrap()
}

/// File, place, expected and found of the error that reading ends with.
fn refused(files: &[(&str, &str)], options: &Options) -> (String, String, String, String) {
    let folder = dump(files);
    match read_all(folder.path(), options) {
        Err(Error::Convert { path, place, expected, found }) => {
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            // An import says the same and leaves nothing behind.
            let out = folder.path().join("out.fence");
            import_csv(folder.path(), &out, options, ImportOptions::new()).unwrap_err();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), files.len());
            (file, place.into(), expected.into(), found.into())
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refuses(files: &[(&str, &str)], file: &str, place: &str, expected: &str, found: &str) {
    refuses_with(&Options::new(), files, file, place, expected, found);
}

#[track_caller]
fn refuses_with(
    options: &Options,
    files: &[(&str, &str)],
    file: &str,
    place: &str,
    expected: &str,
    found: &str,
) {
    let error = refused(files, options);
    assert_eq!((error.0.as_str(), error.1.as_str()), (file, place), "{error:?}");
    assert!(error.2.contains(expected) && error.3.contains(found), "{error:?}");
}

const NODES: &str = "graph_id,node_id,charge,mass\n1,a,0.5,12\n1,b,-1,16\n3,a,0,12\n";
const EDGES: &str = "graph_id,src_id,dst_id,order\n1,a,b,1\n1,b,a,2\n";
const GRAPHS: &str = "graph_id,label\n1,0\n2,1\n3,0\n";

// --- What real dumps look like ---

/// Lines of a file of the TU set, each without blanks.
fn lines(name: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{B3DB}/B3DB_{name}.txt")).unwrap();
    text.lines().map(|line| line.replace(", ", ",")).collect()
}

#[test]
fn thousand_molecules_as_tables_are_those_of_their_tu_set() {
    let (indicator, attributes, texts) =
        (lines("graph_indicator"), lines("node_attributes"), lines("smiles"));
    let mut nodes = String::from("graph_id,node_id,a,b,c,d\r\n");
    for (node, (graph, values)) in indicator.iter().zip(&attributes).enumerate() {
        // Nodes are called by their number in the set, as a database would.
        write!(nodes, "{graph},{},{values}\r\n", node + 1).unwrap();
    }
    let mut edges: Vec<(usize, usize)> = lines("A")
        .iter()
        .map(|line| {
            let (source, target) = line.split_once(',').unwrap();
            (source.parse().unwrap(), target.parse().unwrap())
        })
        .collect();
    // The TU reader orders edges; this one leaves them in the order of the file.
    edges.sort_unstable();
    let mut edge_text = String::from("graph_id,source,target\n");
    for (source, target) in &edges {
        writeln!(edge_text, "{},{source},{target}", indicator[source - 1]).unwrap();
    }
    let mut graphs = String::from("smiles,graph_id,label\n");
    for (at, (smiles, label)) in texts.iter().zip(lines("graph_labels")).enumerate() {
        writeln!(graphs, "\"{smiles}\",{},{label}", at + 1).unwrap();
    }
    let folder = dump(&[("nodes", &nodes), ("edges", &edge_text), ("graphs", &graphs)]);
    let options = Options::new().column(Part::Graphs, "smiles", "smiles", DType::Utf8);
    let tables = import(folder.path(), &options).unwrap();

    let out = folder.path().join("tu.fence");
    let set = tu::Options::new().use_node_attr(true);
    import_tu(B3DB, &out, &set, ImportOptions::new()).unwrap();
    let set = Dataset::load(&out).unwrap();
    assert_eq!(tables.len(), 1000);
    for index in 0..1000 {
        let (table, tu) = (tables.get(index).unwrap(), set.get(index).unwrap());
        assert_eq!(
            table.slice::<i64>("edge_index").unwrap(),
            tu.slice::<i64>("edge_index").unwrap(),
            "{index}"
        );
        assert_eq!(text(&table, "smiles"), text(&tu, "smiles"));
        let (x, wide) = (tensor(&table, "x"), tensor(&tu, "x"));
        assert_eq!((x.shape()[0], x.shape()[1]), (wide.shape()[0], 4));
        let rows = wide.as_slice::<f32>().unwrap().chunks(wide.shape()[1]);
        let first: Vec<f32> = rows.flat_map(|row| row[..4].to_vec()).collect();
        assert_eq!(x.as_slice::<f32>().unwrap(), first, "{index}");
    }
}

/// The columns that DGL's `CSVDataset` reads: ids are any text, features are lists in quotes.
#[test]
fn lists_in_cells_and_labels_of_everything() {
    let nodes = "graph_id,node_id,feat,label\n\
        g1,n1,\"0.1, 0.2,0.3\",0\ng1,n2,\"0.4,0.5,0.6\",1\ng0,n1,\"7,8,9\",2\n";
    let edges = "graph_id,src_id,dst_id,feat,label\ng1,n2,n1,[1.5],3\ng1,n1,n1,[ 2 ],4\n";
    let graphs = "graph_id,feat,label\ng1,\"[1,2]\",0.5\ng0,\"3,4\",1\n";
    let folder = dump(&[("nodes", nodes), ("edges", edges), ("graphs", graphs)]);
    let dataset = import(folder.path(), &Options::new()).unwrap();
    let shape = |name: &str| {
        let sample = dataset.get(0).unwrap();
        let tensor = tensor(&sample, name);
        (tensor.dtype(), tensor.shape().to_vec())
    };
    assert_eq!(shape("x"), (DType::F32, vec![2, 3]));
    assert_eq!(shape("node_label"), (DType::I64, vec![2]));
    assert_eq!(shape("edge_attr"), (DType::F32, vec![2, 1]));
    assert_eq!(shape("edge_label"), (DType::I64, vec![2]));
    assert_eq!(shape("feat"), (DType::I64, vec![1, 2]));
    assert_eq!(shape("y"), (DType::F32, vec![1]));
    let (first, second) = (dataset.get(0).unwrap(), dataset.get(1).unwrap());
    assert_eq!(first.slice::<f32>("x").unwrap(), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
    assert_eq!(first.slice::<i64>("edge_index").unwrap(), [1, 0, 0, 0]);
    assert_eq!(first.slice::<f32>("edge_attr").unwrap(), [1.5, 2.0]);
    assert_eq!(first.slice::<i64>("edge_label").unwrap(), [3, 4]);
    assert_eq!((first.axis_len("nodes").unwrap(), second.axis_len("edges").unwrap()), (2, 0));
    assert_eq!(second.slice::<i64>("node_label").unwrap(), [2]);
    assert_eq!(second.slice::<i64>("feat").unwrap(), [3, 4]);
    assert_eq!(second.slice::<f32>("y").unwrap(), [1.0]);
}

#[test]
fn graphs_may_lack_nodes_and_edges() {
    let folder = dump(&[("nodes", NODES), ("edges", EDGES), ("graphs", GRAPHS)]);
    let dataset = import(folder.path(), &Options::new()).unwrap();
    let lengths = |axis| (0..3).map(|i| dataset.axis_len(i, axis).unwrap()).collect::<Vec<_>>();
    assert_eq!((lengths("nodes"), lengths("edges")), (vec![2, 0, 1], vec![2, 0, 0]));
    assert_eq!(dataset.get(1).unwrap().slice::<i64>("y").unwrap(), [1]);
    assert_eq!(dataset.get(2).unwrap().slice::<f32>("x").unwrap(), [0.0, 12.0]);
}

#[test]
fn nodes_that_are_only_counted_are_numbered() {
    let graphs = "graph,num_nodes,name\n10,3,a\n11,0,\n12,1,\"c, \"\"d\"\"\n e\"\n";
    let edges = "graph,src,dst\n10,0,2\n10,2,1\n12,0,0\n";
    let folder = dump(&[("edges", edges), ("graphs", graphs)]);
    let options = Options::new().column(Part::Graphs, "name", "title", DType::Utf8);
    let dataset = import(folder.path(), &options).unwrap();
    let edges: Vec<Vec<i64>> = (0..3)
        .map(|i| dataset.get(i).unwrap().slice::<i64>("edge_index").unwrap().to_vec())
        .collect();
    assert_eq!(edges, [vec![0, 2, 2, 1], vec![], vec![0, 0]]);
    assert_eq!(dataset.get(0).unwrap().axis_len("nodes").unwrap(), 3);
    assert_eq!(text(&dataset.get(1).unwrap(), "title"), "");
    assert_eq!(text(&dataset.get(2).unwrap(), "title"), "c, \"d\"\n e");
}

/// A point set has no edges, and with a delimiter of another country a comma makes no list.
#[test]
fn tabs_points_and_columns_that_are_asked_for() {
    let nodes =
        "\u{feff}graph_id\tx\ty\telement\tcharge\n1\t0.1\t1e3\tC\t-1\n1\tnan\t-inf\tO, \t2\n";
    let folder = dump(&[("nodes", nodes)]);
    let options = Options::new()
        .delimiter(b'\t')
        .column(Part::Nodes, "element", "element", DType::Utf8)
        .column(Part::Nodes, "charge", "z", DType::I64)
        .column(Part::Nodes, "y", "height", DType::F64);
    let dataset = import(folder.path(), &options).unwrap();
    assert_eq!(dataset.schema().axes(), ["nodes"]);
    let names: Vec<&str> = dataset.attribute_names().collect();
    assert_eq!(names, ["element", "z", "height", "x"]);
    let sample = dataset.get(0).unwrap();
    let x = sample.slice::<f32>("x").unwrap();
    assert!(x[0] == 0.1 && x[1].is_nan());
    assert_eq!(sample.slice::<f64>("height").unwrap(), [1000.0, f64::NEG_INFINITY]);
    assert_eq!(sample.slice::<i64>("z").unwrap(), [-1, 2]);
    let elements = sample.attr("element").unwrap();
    let elements = elements.as_strings().unwrap();
    assert_eq!((elements.text(0), elements.text(1)), (Some("C"), Some("O, ")));
    refuses_with(
        &Options::new().delimiter(b';'),
        &[("nodes", "graph_id;x\n1;0,5\n")],
        "nodes.csv",
        "line 2, column \"x\"",
        "a number",
        "0,5",
    );
}

#[test]
fn buffers_of_another_reader_are_made_to_fit() {
    let folder = dump(&[("nodes", NODES), ("edges", EDGES), ("graphs", GRAPHS)]);
    let mut used = Graph {
        num_nodes: 9,
        num_edges: 9,
        edge_index: vec![9; 18],
        values: vec![Values::Text(vec!["9".into()]); 7],
    };
    Reader::open(folder.path(), &Options::new()).unwrap().read(&mut used).unwrap();
    assert_eq!(used, read_all(folder.path(), &Options::new()).unwrap()[0]);
}

#[test]
fn tables_without_rows_are_a_file_without_samples() {
    let nodes = "graph_id,node_id,a,b,label\n";
    let edges = "graph_id,src,dst,w\n";
    for files in [&[("nodes", nodes)][..], &[("nodes", nodes), ("edges", edges)]] {
        let dataset = import(dump(files).path(), &Options::new()).unwrap();
        assert!(dataset.is_empty());
    }
}

#[test]
fn no_line_end_at_the_end_and_empty_lines() {
    let folder = dump(&[("nodes", "graph_id,a\n\n1,2\n\n\n1,3")]);
    let graphs = read_all(folder.path(), &Options::new()).unwrap();
    assert_eq!(graphs[0].values, [Values::F32(vec![2.0, 3.0])]);
}

#[test]
fn the_last_digit_of_a_number_counts() {
    let numbers = "graph_id,a,b,c\n1,16777217,0.1,9007199254740993\n";
    let folder = dump(&[("nodes", numbers)]);
    let options = Options::new().column(Part::Nodes, "b", "b", DType::F64).column(
        Part::Nodes,
        "c",
        "c",
        DType::I64,
    );
    let graphs = read_all(folder.path(), &options).unwrap();
    let expected = [
        Values::F64(vec![0.1]),
        Values::I64(vec![9_007_199_254_740_993]),
        Values::F32(vec![16_777_216.0]),
    ];
    assert_eq!(graphs[0].values, expected);
}

// --- What is refused ---

#[test]
fn rows_of_a_graph_stand_together() {
    let torn = "graph_id,node_id,a\n1,a,1\n2,a,1\n1,b,1\n";
    refuses(&[("nodes", torn)], "nodes.csv", "line 4, column \"graph_id\"", "ascend", "\"1\"");
    let torn = "graph_id,node_id,a\nu,a,1\nv,a,1\nu,b,1\n";
    let place = "line 4, column \"graph_id\"";
    refuses(&[("nodes", torn)], "nodes.csv", place, "together", "\"u\"");
    let nodes = "graph_id,node_id\nu,a\nv,a\n";
    let edges = "graph_id,src,dst\nu,a,a\nv,a,a\nu,a,a\n";
    refuses(&[("nodes", nodes), ("edges", edges)], "edges.csv", place, "together", "\"u\"");
    let nodes = "graph_id,node_id\n7,a\n08,a\n";
    let edges = "graph_id,src,dst\n7,a,a\n8,a,a\n7,a,a\n";
    refuses(&[("nodes", nodes), ("edges", edges)], "edges.csv", place, "ascend", "\"7\"");
    let graphs = "graph_id,label\n1,0\n1,0\n";
    let place = "line 3, column \"graph_id\"";
    refuses(&[("nodes", NODES), ("graphs", graphs)], "graphs.csv", place, "ascend", "\"1\"");
    let mixed = "graph_id,a\n1,1\nb,1\n";
    refuses(&[("nodes", mixed)], "nodes.csv", place, "whole number", "\"b\"");
}

#[test]
fn no_file_has_a_graph_that_the_first_one_lacks() {
    let graphs = "graph_id,label\n1,0\n3,0\n";
    let edges = "graph_id,src_id,dst_id\n1,a,b\n2,a,a\n";
    let place = "line 3, column \"graph_id\"";
    refuses(
        &[("nodes", NODES), ("edges", edges), ("graphs", graphs)],
        "edges.csv",
        place,
        "graphs.csv and nodes.csv",
        "\"2\"",
    );
    let place = "line 4, column \"graph_id\"";
    let graphs = "graph_id,label\n1,0\n2,0\n";
    refuses(&[("nodes", NODES), ("graphs", graphs)], "nodes.csv", place, "of graphs.csv", "\"3\"");
    // Texts, in another order.
    let nodes = "graph_id,node_id\nu,a\nv,a\n";
    let edges = "graph_id,src,dst\nv,a,a\nu,a,a\n";
    let place = "line 3, column \"graph_id\"";
    refuses(&[("nodes", nodes), ("edges", edges)], "edges.csv", place, "same order", "\"u\"");
}

#[test]
fn edges_end_at_nodes_of_their_graph() {
    let edges = "graph_id,src_id,dst_id\n1,a,c\n";
    let place = "line 2, column \"dst_id\"";
    refuses(
        &[("nodes", NODES), ("edges", edges)],
        "edges.csv",
        place,
        "2 nodes of graph 1",
        "\"c\"",
    );
    for end in ["2", "-1", "x", "", "1.0", "9223372036854775808"] {
        let edges = format!("graph_id,src_id,dst_id\n1,{end},1\n");
        let nodes = "graph_id,a\n1,0\n1,0\n";
        let place = "line 2, column \"src_id\"";
        let files = [("nodes", nodes), ("edges", edges.as_str())];
        refuses(&files, "edges.csv", place, "from 0 on of the 2 nodes", &format!("\"{end}\""));
    }
    let twice = "graph_id,node_id\n1,a\n1,a\n";
    refuses(&[("nodes", twice)], "nodes.csv", "line 3, column \"node_id\"", "once", "\"a\"");
}

#[test]
fn counted_nodes_are_compared() {
    for count in ["3", "0", "-1", "many", "9223372036854775808"] {
        let graphs = format!("graph_id,num_nodes\n1,{count}\n3,1\n");
        let error = refused(&[("nodes", NODES), ("graphs", &graphs)], &Options::new());
        match count {
            "3" | "0" => assert_eq!((error.0.as_str(), error.3.as_str()), ("nodes.csv", "2")),
            _ => assert_eq!(error.1, "line 2, column \"num_nodes\""),
        }
    }
    // As many as they are, but no more than a file can have.
    let graphs = format!("graph_id,num_nodes\n1,{0}\n2,{0}\n3,{0}\n", i64::MAX);
    let folder = dump(&[("graphs", &graphs)]);
    assert!(matches!(import(folder.path(), &Options::new()), Err(Error::Sample(_))));
}

#[test]
fn numbers_are_numbers_in_every_row() {
    for (cell, expected) in [
        ("", "a number"),
        ("N/A", "a number"),
        ("1e39", "f32"),
        ("0x10", "a number"),
        ("1_000", "a number"),
        ("\"1,2\"", "a number"),
        ("[1]", "a number"),
    ] {
        let nodes = format!("graph_id,a,b\n1,2,3\n1,4,{cell}\n");
        let place = "line 3, column \"b\"";
        refuses(&[("nodes", &nodes)], "nodes.csv", place, expected, "");
    }
    let whole = "graph_id,label\n1,0\n2,0.5\n";
    let files = [("nodes", "graph_id\n1\n"), ("graphs", whole)];
    refuses(&files, "graphs.csv", "line 3, column \"label\"", "another dtype", "0.5");
    let asked = Options::new().column(Part::Graphs, "label", "y", DType::F32);
    let folder = dump(&files);
    let dataset = import(folder.path(), &asked).unwrap();
    assert_eq!(dataset.get(1).unwrap().slice::<f32>("y").unwrap(), [0.5]);
    for (cell, found) in [("\"1,2\"", "2"), ("\"1,2,3,4\"", "4"), ("1", "1"), ("[]", "0")] {
        let nodes = format!("graph_id,a\n1,\"1,2,3\"\n1,{cell}\n");
        let place = "line 3, column \"a\"";
        refuses(&[("nodes", &nodes)], "nodes.csv", place, "3 numbers, as in the first row", found);
    }
}

#[test]
fn rows_have_the_cells_of_the_first_line() {
    let place = "line 3";
    refuses(&[("nodes", "graph_id,a\n1,2\n1\n")], "nodes.csv", place, "2 cells", "1");
    refuses(&[("nodes", "graph_id,a\n1,2\n1,2,3\n")], "nodes.csv", place, "2 cells", "quoted");
}

#[test]
fn columns_have_names_and_meanings() {
    let header = |text: &str, place: &str, expected: &str, found: &str| {
        refuses(&[("nodes", text)], "nodes.csv", place, expected, found);
    };
    header("", "line 1", "names of columns", "empty file");
    header(",graph_id,a\n0,1,2\n", "line 1, column 1", "index=False", "");
    header("graph_id,a,a\n1,2,3\n", "line 1, column 3", "once", "\"a\" again");
    header("id,a\n1,2\n", "line 1", "graph_id or graph", "id, a");
    header("graph_id,graph\n1,2\n", "line 1", "one column of", "graph_id, graph");
    let edges = "graph_id,src,target\n1,a,b\n";
    refuses(&[("nodes", NODES), ("edges", "graph_id,src\n")], "edges.csv", "line 1", "dst", "src");
    for name in ["x", "edge_index"] {
        let graphs = format!("graph_id,{name}\n1,2\n3,4\n");
        let files = [("nodes", NODES), ("edges", edges), ("graphs", &graphs)];
        let place = format!("line 1, column {name:?}");
        refuses(&files, "graphs.csv", &place, "no other attribute", name);
    }
    let asked = |part, column| Options::new().column(part, column, "y", DType::I64);
    let file = [("nodes", NODES)];
    refuses_with(&asked(Part::Nodes, "q"), &file, "nodes.csv", "line 1", "\"q\"", "graph_id, node");
    refuses_with(&asked(Part::Edges, "q"), &file, "edges.csv", "folder", "\"q\"", "no such file");
    let folder = dump(&file);
    let options = Options::new().column(Part::Nodes, "mass", "mass", DType::U8);
    let unsupported = [
        Reader::open(folder.path(), &options).unwrap_err(),
        Reader::open(dump(&[("edges", EDGES)]).path(), &Options::new()).unwrap_err(),
        Reader::open(dump(&[("graphs", GRAPHS)]).path(), &Options::new()).unwrap_err(),
    ];
    assert!(unsupported.iter().all(|error| matches!(error, Error::Unsupported { .. })));
}

#[test]
fn a_quote_that_is_not_closed_does_not_read_the_rest() {
    let text = "x".repeat(LONGEST_ROW + (1 << 17));
    let nodes = format!("graph_id,a\n1,2\n1,\"{text}");
    refuses(&[("nodes", &nodes)], "nodes.csv", "line 3", "a row of at most", "quote");
}
