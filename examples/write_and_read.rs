//! Writes a few graphs, reads them back over every backing, and shows what a view is.

use std::error::Error;

use fencepost::{
    Attribute, DType, Dataset, NewSample, SampleBuf, Schema, TensorView, Writer, dims,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rings.fence");

    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 1]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .attribute(Attribute::new("name", DType::Utf8, dims![]))
        .build()?;
    let mut writer = Writer::create(&path, schema)?;
    for nodes in 3..10usize {
        let x: Vec<f32> = (0..nodes).map(|node| node as f32).collect();
        // A ring: node i to node i + 1, and the last to the first.
        let from = 0..nodes as i64;
        let to = from.clone().map(|node| (node + 1) % nodes as i64);
        let edges: Vec<i64> = from.clone().chain(to).collect();
        let name = format!("ring of {nodes}");
        writer.push(
            &NewSample::new()
                .tensor("x", TensorView::from_slice(&x, &[nodes, 1])?)
                .tensor("edge_index", TensorView::from_slice(&edges, &[2, nodes])?)
                .text("name", &name),
        )?;
    }
    let summary = writer.finish()?;
    println!(
        "wrote {} samples, {} bytes ({:?})",
        summary.samples, summary.file_bytes, summary.taken
    );

    // Resident and mapped datasets lend their bytes.
    let resident = Dataset::load(&path)?;
    let sample = resident.get(0)?;
    println!("{}: {:?}", sample.attr("name")?.as_str()?, sample.slice::<i64>("edge_index")?);

    // Every backing reads into a buffer that is used again and again.
    let positional = Dataset::open(&path)?;
    let mut buffer = SampleBuf::new();
    for index in 0..positional.len() {
        let sample = positional.read(index, &mut buffer)?;
        println!("{}: x has shape {:?}", sample.attr("name")?.as_str()?, sample.attr("x")?.shape());
    }

    // Views name samples and attributes; nothing is copied.
    let view = positional.select(&[6, 0, 6])?.project(&["name"])?;
    let mut names = Vec::new();
    for index in 0..view.len() {
        names.push(view.read(index, &mut buffer)?.attr("name")?.as_str()?.to_owned());
    }
    println!("a view: {}", names.join(", "));

    // All of an attribute at once, where the layout allows it.
    println!("all of x: {:?}", resident.tensor("x")?);
    println!("all of edge_index: {:?}", resident.materialize("edge_index")?.view());
    Ok(())
}
