//! Files of other formats. Whatever is imported opens and verifies.

use std::path::Path;

use fencepost::convert::{
    self, ImportOptions, csv as tables, import_csv, import_graph6, import_npy, import_npz,
    import_tu, npy as arrays,
};
use fencepost::{DType, Dataset, Result, Summary};

/// Ends of the names of a TU set's files, in the order in which the input has them, divided by the byte 0xff.
pub const TU_FILES: [&str; 9] = [
    "A",
    "graph_indicator",
    "graph_labels",
    "node_labels",
    "edge_labels",
    "node_attributes",
    "edge_attributes",
    "graph_attributes",
    "smiles",
];

/// Tables, in the order in which the input has them, divided by the byte 0xff.
pub const CSV_FILES: [&str; 3] = ["nodes", "edges", "graphs"];

/// Names of whole arrays, in the order in which the input has them, each behind its length in two bytes.
pub const WHOLE_FILES: [&str; 6] =
    ["x", "nodes_offsets", "edge_index", "edges_offsets", "smiles", "y"];

fn check(imported: Result<Summary>, out: &Path) {
    match imported {
        Ok(summary) => {
            let dataset = Dataset::load(out).expect("what an importer writes");
            assert_eq!(dataset.len(), summary.samples);
            let report = dataset.verify().expect("readable");
            assert!(report.ok(), "{report:?}");
        }
        // The words of every error are made, and a file that is refused publishes nothing.
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!out.exists());
        }
    }
    let _absent = std::fs::remove_file(out);
}

fn fresh(name: &str) -> std::path::PathBuf {
    let folder = crate::scratch().join(name);
    let _absent = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

pub fn graph6(text: &[u8]) {
    let mut reader = convert::graph6::Reader::new(text, "memory.g6");
    let mut graph = convert::graph6::Graph::default();
    while let Ok(true) = reader.read(&mut graph) {
        let nodes = graph.num_nodes() as i64;
        assert!(graph.edge_index().iter().all(|&node| (0..nodes).contains(&node)));
        assert_eq!(graph.edge_index().len(), 2 * graph.num_edges());
    }
    let folder = crate::scratch();
    let (input, out) = (folder.join("in.g6"), folder.join("graph6.fence"));
    std::fs::write(&input, text).expect("room for the file");
    check(import_graph6(&input, &out, ImportOptions::new()), &out);
}

pub fn tu(input: &[u8]) {
    let Some((&flags, text)) = input.split_first() else { return };
    let folder = fresh("tu");
    for (end, bytes) in TU_FILES.iter().zip(text.split(|&byte| byte == 0xff)) {
        if !bytes.is_empty() {
            std::fs::write(folder.join(format!("DS_{end}.txt")), bytes).expect("room for the file");
        }
    }
    let options =
        convert::tu::Options::new().use_node_attr(flags & 1 != 0).use_edge_attr(flags & 2 != 0);
    let out = crate::scratch().join("tu.fence");
    check(import_tu(&folder, &out, &options, ImportOptions::new()), &out);
}

pub fn csv(input: &[u8]) {
    let Some((&flags, text)) = input.split_first() else { return };
    let folder = fresh("csv");
    for (name, bytes) in CSV_FILES.iter().zip(text.split(|&byte| byte == 0xff)) {
        if !bytes.is_empty() {
            std::fs::write(folder.join(format!("{name}.csv")), bytes).expect("room for the file");
        }
    }
    let mut options = tables::Options::new();
    if flags & 1 != 0 {
        options = options.delimiter(b';');
    }
    let asked = [
        (2, tables::Part::Graphs, "a", DType::Utf8),
        (4, tables::Part::Nodes, "b", DType::I64),
        (8, tables::Part::Edges, "c", DType::F64),
        (16, tables::Part::Nodes, "d", DType::Utf8),
    ];
    for (flag, part, name, dtype) in asked {
        if flags & flag != 0 {
            options = options.column(part, name, name, dtype);
        }
    }
    let out = crate::scratch().join("csv.fence");
    check(import_csv(&folder, &out, &options, ImportOptions::new()), &out);
}

pub fn npy(input: &[u8]) {
    let Some((&which, bytes)) = input.split_first() else { return };
    let out = crate::scratch().join("npy.fence");
    match which % 4 {
        0 => {
            let path = crate::scratch().join("array.npy");
            std::fs::write(&path, bytes).expect("room for the file");
            let _refused = arrays::read_npy(&path);
        }
        1 => {
            let path = crate::scratch().join("arrays.npz");
            std::fs::write(&path, bytes).expect("room for the file");
            let _refused = arrays::read_npz(&path);
        }
        2 => {
            let folder = fresh("npz");
            std::fs::write(folder.join("sample_0.npz"), bytes).expect("room for the file");
            check(import_npz(&folder, &out, "x", None, ImportOptions::new()), &out);
        }
        _ => {
            let folder = fresh("whole");
            let mut rest = bytes;
            for name in WHOLE_FILES {
                let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
                let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
                let (file, after) = after.split_at(length);
                if !file.is_empty() {
                    std::fs::write(folder.join(format!("{name}.npy")), file)
                        .expect("room for the file");
                }
                rest = after;
            }
            let cuts = arrays::Options::new();
            check(import_npy(&folder, &out, &cuts, ImportOptions::new()), &out);
        }
    }
}
