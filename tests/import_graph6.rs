//! graph6 and sparse6 against decoders, encoders and counts written here from the format's description.

#![forbid(unsafe_code)]

use std::collections::HashSet;

use fencepost::convert::graph6::{Graph, Reader};
use fencepost::convert::{ImportOptions, import_graph6};
use fencepost::{Dataset, Error, Writer};
use proptest::prelude::*;

const CONNECTED_8: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/connected-8.g6");

fn read_all(bytes: &[u8]) -> Result<Vec<Graph>, Error> {
    let mut reader = Reader::new(bytes, "test.g6");
    let mut graph = Graph::default();
    let mut graphs = Vec::new();
    while reader.read(&mut graph)? {
        graphs.push(graph.clone());
    }
    Ok(graphs)
}

/// The edges of a line of a file whose graphs all have 8 nodes: byte 0 is 8 + 63, and 5 bytes carry 28 bits.
fn edges_of_8(line: &str) -> Vec<(i64, i64)> {
    let bytes = line.as_bytes();
    assert_eq!((bytes[0], bytes.len()), (b'G', 6));
    let bits: u32 = bytes[1..].iter().fold(0, |bits, byte| bits << 6 | u32::from(byte - 63));
    let mut edges = Vec::new();
    let mut place = 29;
    for column in 1..8 {
        for row in 0..column {
            if bits >> place & 1 == 1 {
                edges.push((row, column));
            }
            place -= 1;
        }
    }
    edges
}

fn is_connected(nodes: usize, edges: &[(i64, i64)]) -> bool {
    let mut parent: Vec<usize> = (0..nodes).collect();
    fn root(parent: &[usize], mut node: usize) -> usize {
        while parent[node] != node {
            node = parent[node];
        }
        node
    }
    let mut parts = nodes;
    for &(u, v) in edges {
        let (u, v) = (root(&parent, u as usize), root(&parent, v as usize));
        if u != v {
            parent[u] = v;
            parts -= 1;
        }
    }
    parts == 1
}

/// The columns of `edge_index`.
fn columns(graph: &Graph) -> Vec<(i64, i64)> {
    let (sources, targets) = graph.edge_index().split_at(graph.num_edges());
    sources.iter().copied().zip(targets.iter().copied()).collect()
}

/// What `edge_index` should be: both directions, loops once, in order.
fn both_directions(edges: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut all: Vec<_> = edges.to_vec();
    all.extend(edges.iter().filter(|(u, v)| u != v).map(|&(u, v)| (v, u)));
    all.sort();
    all
}

#[test]
fn all_connected_graphs_on_8_nodes() {
    let text = std::fs::read_to_string(CONNECTED_8).unwrap();
    let mut reader = Reader::open(CONNECTED_8).unwrap();
    let mut graph = Graph::default();
    let mut by_edges = [0; 29];
    let mut sum = 0;
    let mut distinct = HashSet::new();
    for line in text.lines() {
        assert!(reader.read(&mut graph).unwrap());
        let edges = edges_of_8(line);
        assert_eq!(graph.num_nodes(), 8);
        assert_eq!(graph.num_edges(), 2 * edges.len(), "line {}", reader.line());
        assert_eq!(columns(&graph), both_directions(&edges), "line {}", reader.line());
        let (forward, back): (Vec<_>, Vec<_>) =
            columns(&graph).into_iter().partition(|(u, v)| u < v);
        assert_eq!(forward.len(), back.len());
        assert!(is_connected(8, &forward), "line {}", reader.line());
        by_edges[edges.len()] += 1;
        sum += graph.num_edges();
        assert!(distinct.insert(columns(&graph)));
    }
    assert!(!reader.read(&mut graph).unwrap());
    assert_eq!(reader.bytes(), text.len() as u64);

    // Known numbers: 11,117 connected graphs on 8 nodes, 23 of them trees, one complete and one short of an edge.
    assert_eq!(distinct.len(), 11_117);
    assert_eq!((by_edges[7], by_edges[27], by_edges[28]), (23, 1, 1));
    assert_eq!(by_edges[..7], [0; 7]);
    let edges: usize = by_edges.iter().enumerate().map(|(edges, graphs)| edges * graphs).sum();
    assert_eq!(sum, 2 * edges);
}

#[test]
fn the_imported_file_has_all_connected_graphs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("connected.fence");
    let mut calls = Vec::new();
    let options = ImportOptions::new().progress(|p| calls.push((p.samples, p.done, p.total)));
    let summary = import_graph6(CONNECTED_8, &out, options).unwrap();
    assert_eq!(summary.samples, 11_117);
    let bytes = std::fs::metadata(CONNECTED_8).unwrap().len();
    assert!(calls.is_sorted());
    assert_eq!(calls[0], (64, 64 * 7, bytes));
    assert_eq!(calls.last(), Some(&(11_117, bytes, bytes)));

    let dataset = Dataset::load(&out).unwrap();
    assert_eq!(dataset.len(), 11_117);
    assert_eq!(dataset.schema().axes(), ["nodes", "edges"]);
    assert!(dataset.verify().unwrap().ok());
    let text = std::fs::read_to_string(CONNECTED_8).unwrap();
    let mut sum = 0;
    for (index, line) in text.lines().enumerate() {
        let sample = dataset.get(index as u64).unwrap();
        let expected = both_directions(&edges_of_8(line));
        assert_eq!(sample.axis_len("nodes").unwrap(), 8);
        assert_eq!(sample.axis_len("edges").unwrap(), expected.len() as u64);
        let value = sample.attr("edge_index").unwrap();
        assert_eq!(value.shape(), [2, expected.len()]);
        let (sources, targets) = value.as_slice::<i64>().unwrap().split_at(expected.len());
        let columns: Vec<_> = sources.iter().copied().zip(targets.iter().copied()).collect();
        assert_eq!(columns, expected, "graph {index}");
        assert!(is_connected(8, &columns));
        sum += expected.len();
    }
    assert_eq!(dataset.axis_total("edges").unwrap().0, sum as u64);
    assert_eq!(dataset.axis_total("nodes").unwrap(), (8 * 11_117, Some(8)));
}

#[test]
fn a_bad_file_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("a.g6"), folder.path().join("a.fence"));
    std::fs::write(&input, "Bw\nB!\n").unwrap();
    let error = import_graph6(&input, &out, ImportOptions::new()).unwrap_err();
    assert!(
        matches!(&error, Error::Convert { place, .. } if &**place == "line 2, byte 2"),
        "{error}"
    );
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");

    // A file that is there is replaced by a whole one, or kept if so asked.
    std::fs::write(&input, "Bw\n").unwrap();
    std::fs::write(&out, "before").unwrap();
    let error = import_graph6(&input, &out, ImportOptions::new().create_new(true)).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(std::fs::read(&out).unwrap(), b"before");
    let options =
        ImportOptions::new().writer(Writer::options().metadata(r#"{"source": "a"}"#).unwrap());
    import_graph6(&input, &out, options).unwrap();
    let dataset = Dataset::open(&out).unwrap();
    assert_eq!((dataset.len(), dataset.metadata()), (1, r#"{"source":"a"}"#));
}

/// Node numbers of any size, without edges and without memory for them.
#[test]
fn empty_graphs_of_many_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("a.s6"), folder.path().join("a.fence"));
    std::fs::write(&input, ":~~~~~~~~\n:?\n").unwrap();
    import_graph6(&input, &out, ImportOptions::new()).unwrap();
    let dataset = Dataset::load(&out).unwrap();
    assert_eq!(dataset.get(0).unwrap().axis_len("nodes").unwrap(), (1 << 36) - 1);
    assert_eq!(dataset.get(0).unwrap().attr("edge_index").unwrap().shape(), [2, 0]);
    assert_eq!(dataset.get(1).unwrap().axis_len("nodes").unwrap(), 0);
}

#[test]
fn examples_of_the_format_description() {
    let graphs = read_all(b"DQc\n:Fa@x^\n").unwrap();
    assert_eq!(graphs[0].num_nodes(), 5);
    assert_eq!(graphs[0].pairs(), [(0, 2), (1, 3), (0, 4), (3, 4)]);
    assert_eq!(graphs[1].num_nodes(), 7);
    assert_eq!(graphs[1].pairs(), [(0, 1), (0, 2), (1, 2), (5, 6)]);
    assert_eq!(graphs[1].edge_index(), [0, 0, 1, 1, 2, 2, 5, 6, 1, 2, 0, 2, 0, 1, 6, 5]);
    // Sizes from the description: 30, 12345, 460175067.
    for (line, nodes) in [(":]", 30), (":~B?x", 12_345), (":~~?ZZZZZ", 460_175_067)] {
        assert_eq!(read_all(line.as_bytes()).unwrap()[0].num_nodes(), nodes);
    }
}

#[test]
fn headers_line_ends_and_small_graphs() {
    for text in [
        &b">>graph6<<Bw\n:Fa@x^\n"[..],
        b">>graph6<<\nBw\n:Fa@x^\n",
        b">>sparse6<<Bw\r\n:Fa@x^\r\n",
        b"Bw\n:Fa@x^",
    ] {
        let graphs = read_all(text).unwrap();
        let sizes: Vec<_> = graphs.iter().map(|g| (g.num_nodes(), g.num_edges())).collect();
        assert_eq!(sizes, [(3, 6), (7, 8)]);
    }
    for empty in [&b""[..], b">>graph6<<", b">>sparse6<<\n"] {
        assert_eq!(read_all(empty).unwrap(), []);
    }
    // No node, one node, one node with a loop.
    let graphs = read_all(b"?\n@\n:?\n:@\n:@^\n").unwrap();
    let sizes: Vec<_> = graphs.iter().map(|g| (g.num_nodes(), g.num_edges())).collect();
    assert_eq!(sizes, [(0, 0), (1, 0), (0, 0), (1, 0), (1, 1)]);
    assert_eq!(graphs[4].edge_index(), [0, 0]);
    // The most nodes that the format can say.
    assert_eq!(read_all(b":~~~~~~~~").unwrap()[0].num_nodes(), (1 << 36) - 1);
}

#[test]
fn malformed_lines_are_named() {
    let cases: &[(&[u8], &str, &str, &str)] = &[
        (b"Bw\n\nBw\n", "line 2, byte 1", "a graph", "an empty line"),
        (b"Bw\nB w\n", "line 2, byte 2", "63..=126", "32"),
        (b"B\x7f\n", "line 1, byte 2", "63..=126", "127"),
        (b"B\xc3\xa9\n", "line 1, byte 2", "63..=126", "195"),
        (b"&BP_\n", "line 1, byte 1", "digraph6 is not read", "'&'"),
        (b":Fa@x^\n;Fa@x^\n", "line 2, byte 1", "incremental sparse6", "';'"),
        (b">>digraph6<<&BP_\n", "line 1, byte 1", "digraph6 is not read", ">>digraph6<<"),
        (b">>planar_code<<\x05", "line 1, byte 1", ">>graph6<< or >>sparse6<<", ">>planar_code<<"),
        (b"Bw\n>>graph6<<Bw\n", "line 2, byte 1", "63..=126", "62"),
        // Length.
        (b"Bw\nB\n", "line 2, byte 2", "1 bytes of adjacency for 3 nodes", "0 bytes"),
        (b"Bw?\n", "line 1, byte 2", "1 bytes of adjacency for 3 nodes", "2 bytes"),
        (b"@?\n", "line 1, byte 2", "0 bytes", "1 bytes"),
        (b"G???F\n", "line 1, byte 2", "5 bytes of adjacency for 8 nodes", "4 bytes"),
        (b"~~~~~~~~\n", "line 1, byte 9", "for 68719476735 nodes", "0 bytes"),
        // Number of nodes.
        (b"~\n", "line 1, byte 1", "in 4 bytes", "ends after 1"),
        (b"~?@\n", "line 1, byte 1", "in 4 bytes", "ends after 3"),
        (b":~~?????\n", "line 1, byte 2", "in 8 bytes", "ends after 7"),
        (b":\n", "line 1, byte 2", "a number of nodes", "the end of the line"),
        (b":~??F\n", "line 1, byte 2", "at least 63 nodes", "7"),
        (b":~~?????F\n", "line 1, byte 2", "at least 258048 nodes", "7"),
        // Padding.
        (b"Bx\n", "line 1, byte 2", "3 zero bits", "111001"),
        (b"G???F|\n", "line 1, byte 6", "2 zero bits", "111101"),
        (b":Fa@x^~\n", "line 1, byte 6", "less than 6 bits of padding", "bits that make no edge"),
        (b":Fa@x\\\n", "line 1, byte 6", "padding of one bits", "01"),
        (b">>sparse6<<:A???\n:A~~\n", "line 2, byte 3", "less than 6 bits", "10 bits"),
    ];
    for (text, place, expected, found) in cases {
        match read_all(text) {
            Err(Error::Convert { path, place: at, expected: e, found: f }) => {
                let shown = text.escape_ascii();
                assert_eq!(path.to_str(), Some("test.g6"));
                assert_eq!(&*at, *place, "{shown}: {e}, {f}");
                assert!(e.contains(expected), "{shown}: expected {e:?}");
                assert!(f.contains(found), "{shown}: found {f:?}");
            }
            other => panic!("{}: {other:?}", text.escape_ascii()),
        }
    }
}

/// A bad line stops the file, and what was read before it is good.
#[test]
fn graphs_before_a_bad_line_are_read() {
    let mut reader = Reader::new(&b"Bw\nBw\nB!\n"[..], "three.g6");
    let mut graph = Graph::default();
    assert!(reader.read(&mut graph).unwrap());
    assert!(reader.read(&mut graph).unwrap());
    let message = reader.read(&mut graph).unwrap_err().to_string();
    assert_eq!(message, "three.g6: line 3, byte 2: expected a byte in 63..=126, found 33 (\"!\")");
}

/// `N(n)` of the format description.
fn encode_number(n: u64) -> Vec<u8> {
    let digits = |count: u32| (0..count).rev().map(move |i| (n >> (6 * i) & 63) as u8 + 63);
    match n {
        0..=62 => vec![n as u8 + 63],
        63..=258_047 => [126].into_iter().chain(digits(3)).collect(),
        _ => [126, 126].into_iter().chain(digits(6)).collect(),
    }
}

fn encode_bits(bits: &[bool]) -> impl Iterator<Item = u8> {
    assert_eq!(bits.len() % 6, 0);
    bits.chunks(6).map(|six| six.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)) + 63)
}

/// `edges` without loops, smaller node first, each once.
fn encode_graph6(n: u64, edges: &HashSet<(u64, u64)>) -> Vec<u8> {
    let mut bits = Vec::new();
    for column in 0..n {
        bits.extend((0..column).map(|row| edges.contains(&(row, column))));
    }
    bits.resize(bits.len().next_multiple_of(6), false);
    encode_number(n).into_iter().chain(encode_bits(&bits)).collect()
}

/// `edges` smaller node first, in any order; loops and repetitions allowed.
fn encode_sparse6(n: u64, edges: &[(u64, u64)]) -> Vec<u8> {
    let k = (0..64).find(|k| n <= 1 << k).unwrap();
    let mut bits: Vec<bool> = Vec::new();
    let mut unit = |b: bool, x: u64| {
        bits.push(b);
        bits.extend((0..k).rev().map(|i| x >> i & 1 == 1));
    };
    let mut edges = edges.to_vec();
    edges.sort_by_key(|&(u, v)| (v, u));
    let mut current = 0;
    for &(u, v) in &edges {
        if v > current + 1 {
            unit(true, v);
            unit(false, u);
        } else {
            unit(v == current + 1, u);
        }
        current = v;
    }
    let padding = bits.len().next_multiple_of(6) - bits.len();
    let special = [(2, 1), (4, 2), (8, 3), (16, 4)].contains(&(n, k));
    let touches = |node| edges.iter().any(|&(u, v)| u == node || v == node);
    if special && touches(n - 2) && !touches(n - 1) && padding > k as usize {
        bits.push(false);
    }
    bits.resize(bits.len().next_multiple_of(6), true);
    [b':'].into_iter().chain(encode_number(n)).chain(encode_bits(&bits)).collect()
}

fn simple_graph() -> impl Strategy<Value = (u64, HashSet<(u64, u64)>)> {
    (0_u64..80).prop_flat_map(|n| {
        let edge = (0..n.max(2), 0..n.max(2)).prop_map(|(a, b)| (a.min(b), a.max(b)));
        (Just(n), prop::collection::hash_set(edge, 0..120)).prop_map(|(n, mut edges)| {
            edges.retain(|&(u, v)| u != v && v < n);
            (n, edges)
        })
    })
}

fn multigraph() -> impl Strategy<Value = (u64, Vec<(u64, u64)>)> {
    // Small ones for the padding rules; the sizes where the number of nodes takes more bytes.
    let n = prop_oneof![0_u64..20, 60_u64..66, 258_045_u64..258_051, 1_u64 << 35..1 << 36];
    n.prop_flat_map(|n| {
        let node = prop_oneof![0..n.max(1), n.saturating_sub(3)..n.max(1)];
        let edge = (node.clone(), node).prop_map(|(a, b)| (a.min(b), a.max(b)));
        (Just(n), prop::collection::vec(edge, 0..40)).prop_map(|(n, mut edges)| {
            edges.retain(|&(_, v)| v < n);
            (n, edges)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn graph6_comes_back((n, edges) in simple_graph()) {
        let graphs = read_all(&encode_graph6(n, &edges)).unwrap();
        prop_assert_eq!(graphs.len(), 1);
        prop_assert_eq!(graphs[0].num_nodes(), n);
        let read: HashSet<_> = graphs[0].pairs().iter().copied().collect();
        prop_assert_eq!(graphs[0].pairs().len(), edges.len());
        prop_assert_eq!(&read, &edges);
        let edges: Vec<_> = edges.iter().map(|&(u, v)| (u as i64, v as i64)).collect();
        prop_assert_eq!(columns(&graphs[0]), both_directions(&edges));
    }

    #[test]
    fn sparse6_comes_back((n, mut edges) in multigraph()) {
        let graphs = read_all(&encode_sparse6(n, &edges)).unwrap();
        prop_assert_eq!(graphs[0].num_nodes(), n);
        edges.sort();
        let mut read = graphs[0].pairs().to_vec();
        read.sort();
        prop_assert_eq!(&read, &edges);
        let edges: Vec<_> = edges.iter().map(|&(u, v)| (u as i64, v as i64)).collect();
        prop_assert_eq!(columns(&graphs[0]), both_directions(&edges));
    }

    /// Both forms of one graph are one graph.
    #[test]
    fn graph6_and_sparse6_agree((n, edges) in simple_graph()) {
        let list: Vec<_> = edges.iter().copied().collect();
        let text = [encode_graph6(n, &edges), b"\n".to_vec(), encode_sparse6(n, &list)].concat();
        let graphs = read_all(&text).unwrap();
        prop_assert_eq!(graphs[0].num_nodes(), graphs[1].num_nodes());
        prop_assert_eq!(graphs[0].edge_index(), graphs[1].edge_index());
    }

    /// A line cut anywhere, or with a byte too many, is never another graph of the same nodes without notice.
    #[test]
    fn cut_graph6_is_refused((n, edges) in simple_graph(), cut in any::<prop::sample::Index>()) {
        let line = encode_graph6(n, &edges);
        let cut = cut.index(line.len());
        if cut > 0 && n > 1 {
            prop_assert!(read_all(&line[..cut]).is_err());
        }
        prop_assert!(read_all(&[&line[..], b"?"].concat()).is_err());
    }

    /// Any bytes give graphs or an error, and never a panic; node numbers stay below the number of nodes.
    #[test]
    fn any_bytes_are_safe(text in prop::collection::vec(prop_oneof![58_u8..128, Just(b'\n'), Just(b'~')], 0..60)) {
        if let Ok(graphs) = read_all(&text) {
            for graph in graphs {
                prop_assert!(graph.edge_index().iter().all(|&node| (node as u64) < graph.num_nodes()));
            }
        }
    }
}
