//! `fencepost probe`: one process of the demo, so that what it is charged for memory and faults is one file's over one
//! backing. Not for people: it talks with its parent in lines of JSON.

#![forbid(unsafe_code)]

use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

use fencepost::{Dataset, Error};
use serde::{Deserialize, Serialize};

use super::demo::access;
use crate::args::ProbeArgs;
use crate::failure::{Failure, Result, Verdict};
use crate::map::map;
use crate::output::Output;
use crate::process::{self, Faults, Memory};

/// What it took to open a file and to read all of it once, in random order.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) seconds: f64,
    pub(super) faults: Option<Faults>,
    pub(super) disk_bytes: Option<u64>,
}

/// Memory before the file was opened, and now.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Footprint {
    pub(super) before: Option<Memory>,
    pub(super) after: Option<Memory>,
}

/// Reads, and tells what that took; then at each further line of stdin tells its memory, so that the parent can ask several
/// such processes while all of them have the file open.
pub(crate) fn run(args: &ProbeArgs, out: &mut Output) -> Result<Verdict> {
    let mut requests = std::io::stdin().lock().lines();
    let mut next = || requests.next().transpose().map(|line| line.is_some());
    out.json(&"ready")?;
    out.finish()?;
    if !next()? {
        return Ok(Verdict::Fine);
    }
    let (faults, disk) = (process::faults(), process::disk_bytes());
    let started = Instant::now();
    drop(read_all(args)?);
    let reading = Reading {
        seconds: started.elapsed().as_secs_f64(),
        faults: process::faults().zip(faults).map(|(now, then)| Faults {
            minor: now.minor - then.minor,
            major: now.major - then.major,
        }),
        disk_bytes: process::disk_bytes().zip(disk).map(|(now, then)| now - then),
    };
    // A second time, now that the program's own pages are all there: what comes on top is the file's.
    let before = process::memory();
    let _open = read_all(args)?;
    out.json(&reading)?;
    out.finish()?;
    while next()? {
        out.json(&Footprint { before, after: process::memory() })?;
        out.finish()?;
    }
    Ok(Verdict::Fine)
}

fn read_all(args: &ProbeArgs) -> Result<Dataset> {
    let dataset = open(&args.backing, &args.file)?;
    let order = access::shuffled(dataset.len(), 0);
    std::hint::black_box(access::sum(&dataset, &order)?);
    Ok(dataset)
}

pub(super) fn open(backing: &str, path: &Path) -> Result<Dataset> {
    let opened: Result<Dataset, Error> = match backing {
        "resident" => Dataset::load(path),
        "mapped" => map(path),
        "positional" => Dataset::open(path),
        other => return Err(Failure::Run(format!("no backing named {other:?}"))),
    };
    Ok(opened?)
}
