//! Damages a copy of a file, finds the damage, and saves the samples that it did not hit.

use std::error::Error;

use fencepost::{
    Attribute, DType, Dataset, NewSample, Schema, TensorView, VerifyOptions, Writer, dims, salvage,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.fence");
    let schema =
        Schema::builder().attribute(Attribute::new("x", DType::U64, dims!["n"])).build()?;
    let mut writer = Writer::create(&path, schema)?;
    for index in 0..1000u64 {
        let x = vec![index; 100];
        writer.push(&NewSample::new().tensor("x", TensorView::from_slice(&x, &[100])?))?;
    }
    writer.finish()?;

    let mut bytes = std::fs::read(&path)?;
    bytes[500_000] ^= 1;
    let damaged = folder.path().join("damaged.fence");
    std::fs::write(&damaged, bytes)?;

    let report = Dataset::open(&damaged)?.verify()?;
    for bad in &report.bad_blocks {
        println!(
            "bytes {:?} are damaged: {:?}, samples {:?}",
            bad.bytes, bad.attributes, bad.samples
        );
    }
    let saved = folder.path().join("saved.fence");
    let report = salvage(&damaged, &saved, VerifyOptions::new())?;
    println!("saved {} of {} samples", report.summary.samples, report.samples);
    assert!(Dataset::open(&saved)?.verify()?.ok());
    Ok(())
}
