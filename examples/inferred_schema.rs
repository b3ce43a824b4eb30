//! Lets the writer infer the schema from the first sample, by the names that PyG users give.

use std::error::Error;

use fencepost::{Dataset, NewSample, TensorView, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("graphs.fence");
    let mut writer = Writer::create_inferred(&path)?;
    for nodes in [2usize, 5, 3] {
        let pos = vec![0.0f32; nodes * 3];
        let edges = vec![0i64; 2 * nodes];
        let y = [nodes as i64];
        writer.push(
            &NewSample::new()
                .tensor("pos", TensorView::from_slice(&pos, &[nodes, 3])?)
                .tensor("edge_index", TensorView::from_slice(&edges, &[2, nodes])?)
                .tensor("y", TensorView::from_slice(&y, &[1])?),
        )?;
    }
    // A sample that does not fit is refused and named; nothing is promoted silently.
    let integers = [0i64; 6];
    let error = writer
        .push(
            &NewSample::new()
                .tensor("pos", TensorView::from_slice(&integers, &[2, 3])?)
                .tensor("edge_index", TensorView::from_slice(&[] as &[i64], &[2, 0])?)
                .tensor("y", TensorView::from_slice(&[1i64], &[1])?),
        )
        .unwrap_err();
    println!("refused: {error}");
    writer.finish()?;

    let dataset = Dataset::load(&path)?;
    for attribute in dataset.schema().attributes() {
        println!(
            "{}: {} {}, increment {:?}",
            attribute.name(),
            attribute.dtype(),
            attribute.pattern(),
            attribute.increment_rule(),
        );
    }
    println!("axes equal to `nodes`: {:?}", dataset.equal_axes("nodes")?);
    Ok(())
}
