//! `fencepost demo`: real molecules and graphs, imported, verified, looked at, and read over the three backings.

#![forbid(unsafe_code)]

pub(super) mod access;
mod compare;
mod molecule;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fencepost::convert::{self, ImportOptions, tu};
use fencepost::{Dataset, Summary, Writer};
use serde::Serialize;

use super::{info, verify};
use crate::args::DemoArgs;
use crate::failure::{Failure, Result, Verdict};
use crate::output::{BOLD, Output};
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    sets: Vec<SetReport>,
}

#[derive(Debug, Serialize)]
struct SetReport {
    name: &'static str,
    samples: u64,
    file_bytes: u64,
    verified: bool,
    #[serde(flatten)]
    comparison: compare::Comparison,
}

/// A set of the demo, imported.
struct Set {
    name: &'static str,
    path: PathBuf,
    dataset: Dataset,
}

pub(crate) fn run(args: &DemoArgs, out: &mut Output) -> Result<Verdict> {
    let temporary = tempfile::Builder::new()
        .prefix("fencepost-demo-")
        .tempdir()
        .map_err(|error| Failure::Run(format!("cannot make a temporary folder: {error}")))?;
    let folder = args.keep.as_deref().unwrap_or(temporary.path());
    let mut talk = Talk { out, quiet: args.json };

    talk.heading("1. Import")?;
    let sets = import(&args.data, folder, &mut talk)?;

    talk.heading("2. What is in the molecules (fencepost info)")?;
    talk.say(|out| info::print(&sets[0].dataset, out))?;

    talk.heading("3. Every checksum, table and value (fencepost verify)")?;
    let mut reports = Vec::new();
    let mut whole = true;
    for set in &sets {
        let report = verify::check(&set.dataset, None)?;
        talk.say(|out| verify::print(&set.path, &report, out))?;
        whole &= report.ok();
        reports.push((set, report.ok()));
    }

    talk.heading("4. One molecule")?;
    talk.say(|out| molecule::show(&sets[0].dataset, out))?;

    talk.heading("5. The same files over three backings")?;
    let mut report = Report { sets: Vec::new() };
    for (set, verified) in reports {
        let comparison = compare::compare(&set.path, args.rounds)?;
        talk.say(|out| compare::print(set.name, &set.dataset, &comparison, out))?;
        report.sets.push(SetReport {
            name: set.name,
            samples: set.dataset.len(),
            file_bytes: set.dataset.file_bytes(),
            verified,
            comparison,
        });
    }
    talk.say(compare::explain)?;
    if args.json {
        out.json(&report)?;
    } else {
        closing(args, out)?;
    }
    Ok(Verdict::of(whole))
}

fn closing(args: &DemoArgs, out: &mut Output) -> Result<()> {
    match &args.keep {
        Some(folder) => writeln!(
            out,
            "\nNext: fencepost head {0}, then your own graphs: fencepost import --help",
            text::printable(&folder.join("b3db.fence").display().to_string())
        )?,
        None => writeln!(
            out,
            "\nNext: fencepost import tu {} b3db.fence && fencepost head b3db.fence, then your own graphs: fencepost import --help",
            text::printable(&args.data.join("B3DB").display().to_string())
        )?,
    }
    Ok(())
}

/// Prints for people; with --json there is nobody.
struct Talk<'o> {
    out: &'o mut Output,
    quiet: bool,
}

impl Talk<'_> {
    fn heading(&mut self, title: &str) -> Result<()> {
        self.say(|out| Ok(writeln!(out, "\n{BOLD}{title}{BOLD:#}")?))?;
        self.say(|out| Ok(writeln!(out)?))
    }

    /// What is said is seen at once, because the next step may take its time.
    fn say(&mut self, print: impl FnOnce(&mut Output) -> Result<()>) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        print(self.out)?;
        self.out.finish()
    }
}

fn import(data: &Path, folder: &Path, talk: &mut Talk<'_>) -> Result<Vec<Set>> {
    let molecules = (data.join("B3DB"), folder.join("b3db.fence"));
    let graphs = (data.join("connected-8.g6"), folder.join("connected-8.fence"));
    for source in [&molecules.0, &graphs.0] {
        if !source.exists() {
            return Err(Failure::Run(format!(
                "{} is not there: name the folder of the demo's data with --data (examples/data of the repository)",
                source.display()
            )));
        }
    }
    let options = |source: &str| -> Result<ImportOptions<'static>> {
        let metadata = serde_json::json!({ "source": source }).to_string();
        Ok(ImportOptions::new().writer(Writer::options().metadata(&metadata)?))
    };
    let set =
        |name, what, path: PathBuf, started: Instant, summary: Summary, talk: &mut Talk<'_>| {
            talk.say(|out| {
                writeln!(
                    out,
                    "  {name}: {}, {} in {}",
                    text::counted(summary.samples, what),
                    text::bytes(summary.file_bytes),
                    text::seconds(started.elapsed().as_secs_f64())
                )?;
                Ok(())
            })?;
            let dataset = Dataset::open(&path)?;
            Ok::<Set, Failure>(Set { name, path, dataset })
        };
    let started = Instant::now();
    let tu = tu::Options::new().use_node_attr(true);
    let source = "B3DB, the Blood-Brain Barrier Database, doi:10.1038/s41597-021-01069-5, CC0";
    let summary = convert::import_tu(&molecules.0, &molecules.1, &tu, options(source)?)?;
    let molecules = set("molecules", "molecule", molecules.1, started, summary, talk)?;
    let started = Instant::now();
    let source = "geng -c 8: every connected graph on 8 nodes";
    let summary = convert::import_graph6(&graphs.0, &graphs.1, options(source)?)?;
    let graphs = set("graphs", "graph", graphs.1, started, summary, talk)?;
    Ok(vec![molecules, graphs])
}
