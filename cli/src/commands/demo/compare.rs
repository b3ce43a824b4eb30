//! Measures one file over the three backings: rates in this process, faults and memory in processes of their own.

#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use fencepost::Dataset;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::access;
use crate::commands::probe::{self, Footprint, Reading};
use crate::failure::{Failure, Result};
use crate::output::{BOLD, Output};
use crate::progress::Progress;
use crate::table::{Column, Table};
use crate::{process, text};

const BACKINGS: [&str; 3] = ["resident", "mapped", "positional"];
/// Processes that read the file at the same time when memory is looked at.
const PROCESSES: usize = 2;
/// A round reads the whole set, as often as it takes to last this long.
const ROUND: Duration = Duration::from_millis(20);

#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    rates: Vec<Rates>,
    cold: Option<Vec<Cold>>,
    memory: Option<Vec<MemoryOf>>,
}

#[derive(Debug, Serialize)]
struct Rates {
    backing: &'static str,
    open_seconds: f64,
    random_gets_per_second: f64,
    sequential_gets_per_second: f64,
}

#[derive(Debug, Serialize)]
struct Cold {
    backing: &'static str,
    seconds: f64,
    disk_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
}

#[derive(Debug, Serialize)]
struct MemoryOf {
    backing: &'static str,
    processes: usize,
    private_bytes: u64,
    shared_bytes: u64,
}

pub(super) fn compare(path: &Path, rounds: u64) -> Result<Comparison> {
    let progress = Progress::count("measuring");
    // Rounds of rates, three cold processes, three times two warm ones.
    let total = rounds + 2 * BACKINGS.len() as u64;
    let mut done = 0;
    let mut step = || {
        done += 1;
        progress.set(done, total);
    };
    let rates = rates(path, rounds, &mut step)?;
    let cold = cold(path, &mut step)?;
    let memory = memory(path, &mut step)?;
    Ok(Comparison { rates, cold, memory })
}

fn rates(path: &Path, rounds: u64, step: &mut impl FnMut()) -> Result<Vec<Rates>> {
    let datasets =
        BACKINGS.iter().map(|backing| probe::open(backing, path)).collect::<Result<Vec<_>>>()?;
    let len = datasets[0].len();
    let sequential: Vec<u64> = (0..len).collect();
    let random = access::shuffled(len, 1);
    let mut samples = vec![[const { Vec::new() }; 3]; BACKINGS.len()];
    // The slowest decides how often, so that every backing does the same work; this also warms all of them.
    let mut repeats = 1;
    for dataset in &datasets {
        let once = time(dataset, &random, 1)?;
        let wanted = ROUND.as_secs_f64() / once.max(1e-6);
        repeats = repeats.max(wanted.ceil().min(1000.0) as u32);
    }
    for _ in 0..rounds {
        for (backing, dataset) in datasets.iter().enumerate() {
            samples[backing][0].push(time(dataset, &random, repeats)?);
            samples[backing][1].push(time(dataset, &sequential, repeats)?);
            let started = Instant::now();
            std::hint::black_box(probe::open(BACKINGS[backing], path)?);
            samples[backing][2].push(started.elapsed().as_secs_f64());
        }
        step();
    }
    let gets = len as f64 * f64::from(repeats);
    Ok(BACKINGS
        .iter()
        .zip(samples)
        .map(|(backing, [random, sequential, open])| Rates {
            backing,
            open_seconds: median(open),
            random_gets_per_second: gets / median(random),
            sequential_gets_per_second: gets / median(sequential),
        })
        .collect())
}

fn time(dataset: &Dataset, order: &[u64], repeats: u32) -> Result<f64> {
    let started = Instant::now();
    for _ in 0..repeats {
        std::hint::black_box(access::sum(dataset, order)?);
    }
    Ok(started.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        _ if values.is_empty() => f64::NAN,
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// One process a backing that finds nothing of the file in the page cache.
fn cold(path: &Path, step: &mut impl FnMut()) -> Result<Option<Vec<Cold>>> {
    let in_memory = fencepost::plan::filesystem(path)
        .is_ok_and(|found| found.kind == fencepost::plan::FilesystemKind::Memory);
    let mut all = Vec::new();
    for backing in BACKINGS {
        let mut probe = Probe::start(backing, path)?;
        if in_memory || !process::drop_cache(path) {
            return Ok(None);
        }
        let reading: Reading = probe.ask()?;
        let (Some(faults), Some(disk_bytes)) = (reading.faults, reading.disk_bytes) else {
            return Ok(None);
        };
        all.push(Cold {
            backing,
            seconds: reading.seconds,
            disk_bytes,
            minor_faults: faults.minor,
            major_faults: faults.major,
        });
        step();
    }
    Ok(Some(all))
}

/// Several processes a backing that have the file open at the same time; the mean of what each has for itself and shares.
fn memory(path: &Path, step: &mut impl FnMut()) -> Result<Option<Vec<MemoryOf>>> {
    let mut all = Vec::new();
    for backing in BACKINGS {
        let mut probes =
            (0..PROCESSES).map(|_| Probe::start(backing, path)).collect::<Result<Vec<Probe>>>()?;
        for probe in &mut probes {
            let _: Reading = probe.ask()?;
        }
        let (mut private, mut shared) = (0, 0);
        for probe in &mut probes {
            let footprint: Footprint = probe.ask()?;
            let (Some(before), Some(after)) = (footprint.before, footprint.after) else {
                return Ok(None);
            };
            private += after.private.saturating_sub(before.private);
            shared += after.shared.saturating_sub(before.shared);
        }
        all.push(MemoryOf {
            backing,
            processes: PROCESSES,
            private_bytes: private / PROCESSES as u64,
            shared_bytes: shared / PROCESSES as u64,
        });
        step();
    }
    Ok(Some(all))
}

/// A `fencepost probe` that waits for the next question.
struct Probe {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Probe {
    fn start(backing: &str, path: &Path) -> Result<Self> {
        let failed = |error| Failure::Run(format!("cannot start a process of the demo: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["probe", backing])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (questions, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or_else(|| Failure::Run("a process has no stdout".into()))?;
        let mut probe = Probe { child, questions, answers: BufReader::new(answers) };
        let _: String = probe.answer()?;
        Ok(probe)
    }

    fn ask<T: DeserializeOwned>(&mut self) -> Result<T> {
        if let Some(questions) = &mut self.questions {
            // If it has gone, its answer is missing, and that is the error.
            let _gone = questions.write_all(b"\n").and_then(|()| questions.flush());
        }
        self.answer()
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        read.ok()
            .and_then(|_| serde_json::from_str(&line).ok())
            .ok_or_else(|| Failure::Run("a process of the demo ended without an answer".into()))
    }
}

impl Drop for Probe {
    /// At the end of its stdin it ends by itself.
    fn drop(&mut self) {
        drop(self.questions.take());
        let _reaped = self.child.wait();
    }
}

pub(super) fn print(
    name: &str,
    dataset: &Dataset,
    comparison: &Comparison,
    out: &mut Output,
) -> Result<()> {
    writeln!(
        out,
        "  {BOLD}{name}{BOLD:#}: {}, {}, all values of a sample read at each get",
        text::counted(dataset.len(), "sample"),
        text::bytes(dataset.file_bytes())
    )?;
    let mut table = Table::new([
        ("backing", Column::Left),
        ("open", Column::Right),
        ("random gets/s", Column::Right),
        ("sequential gets/s", Column::Right),
        ("all once, cold", Column::Right),
        ("from disk", Column::Right),
        ("major faults", Column::Right),
        ("minor faults", Column::Right),
        ("private", Column::Right),
        ("shared", Column::Right),
    ]);
    let unknown = || "unknown".to_owned();
    for (at, rates) in comparison.rates.iter().enumerate() {
        let cold = comparison.cold.as_ref().and_then(|cold| cold.get(at));
        let memory = comparison.memory.as_ref().and_then(|memory| memory.get(at));
        table.row([
            rates.backing.to_owned(),
            text::seconds(rates.open_seconds),
            text::metric(rates.random_gets_per_second),
            text::metric(rates.sequential_gets_per_second),
            cold.map_or_else(unknown, |cold| text::seconds(cold.seconds)),
            cold.map_or_else(unknown, |cold| text::bytes(cold.disk_bytes)),
            cold.map_or_else(unknown, |cold| text::count(cold.major_faults)),
            cold.map_or_else(unknown, |cold| text::count(cold.minor_faults)),
            memory.map_or_else(unknown, |memory| text::bytes(memory.private_bytes)),
            memory.map_or_else(unknown, |memory| text::bytes(memory.shared_bytes)),
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(())
}

pub(super) fn explain(out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "  open, gets: warm, median of alternated rounds.\n  \
         cold, from disk, faults: a new process opens the file and reads every sample once in random order, nothing of it in the\n  \
         page cache. A mapped sample is asked for whole before it is touched, so its pages are there when it is: few major faults.\n  \
         private, shared: memory that the file costs each of {PROCESSES} processes which have it open. Private is paid for by each of\n  \
         them, shared once by all, and the page cache of a positional file (the kernel's, nobody's) is in neither."
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_few() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
