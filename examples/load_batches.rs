//! Batches of graphs in random order, by two threads; stopped in the middle, and resumed by another loader.

use fencepost::{Attribute, DType, Dataset, Loader, NewSample, Schema, TensorView, Writer, dims};

fn main() -> fencepost::Result<()> {
    let folder = tempfile::tempdir()
        .map_err(|source| fencepost::Error::io("make a folder", std::env::temp_dir(), source))?;
    let path = folder.path().join("rings.fence");

    // Rings of 3 to 12 nodes.
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 1]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .build()?;
    let mut writer = Writer::create(&path, schema)?;
    for sample in 0..1000 {
        let nodes = 3 + sample % 10;
        let x = vec![sample as f32; nodes];
        let ring = (0..nodes as i64).chain((0..nodes as i64).map(|node| (node + 1) % nodes as i64));
        let edges: Vec<i64> = ring.collect();
        writer.push(
            &NewSample::new()
                .tensor("x", TensorView::from_slice(&x, &[nodes, 1])?)
                .tensor("edge_index", TensorView::from_slice(&edges, &[2, nodes])?),
        )?;
    }
    writer.finish()?;

    let dataset = Dataset::open(&path)?;
    let build = |threads| {
        Loader::builder(dataset.clone()).batch_size(64).shuffle(42).num_workers(threads).build()
    };

    let loader = build(2)?;
    let mut nodes = 0;
    for batch in loader.iter().take(5) {
        let batch = batch?;
        // One large graph: `edge_index` counts nodes of the whole batch, `batch` says which graph a node is of.
        nodes += batch.slice::<i64>("batch")?.len();
        println!("{batch:?}");
    }
    let state = loader.state_dict();
    println!("{nodes} nodes in 5 batches; resume with {state}");

    let resumed = build(0)?;
    resumed.load_state_dict(&state)?;
    let mut graphs = 0;
    for batch in &resumed {
        graphs += batch?.len();
    }
    println!("{graphs} graphs were left of the epoch");
    println!("{}", resumed.metrics());
    assert_eq!(graphs, 1000 - 5 * 64);
    Ok(())
}
