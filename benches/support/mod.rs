//! Shared by the benchmarks: sets made from a seed, alternated rounds, intervals of ratios.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use std::path::Path;
use std::time::Instant;

use fencepost::{Attribute, DType, NewSample, Schema, TensorView, Writer, dims};

/// SplitMix64 (Steele, Lea and Flood, 2014): enough randomness for orders and sizes, the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`. The bias of the remainder is far below what a benchmark can see.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn shuffled(&mut self, count: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..count).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.below(at as u64 + 1) as usize);
        }
        order
    }
}

/// Attributes of the QM9-like set.
pub(crate) fn qm9_schema() -> Schema {
    Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 11]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"),
        )
        .attribute(Attribute::new("edge_attr", DType::F32, dims!["edges", 4]))
        .attribute(Attribute::new("pos", DType::F32, dims!["nodes", 3]))
        .attribute(Attribute::new("y", DType::F32, dims![1, 19]))
        .build()
        .expect("the schema keeps the rules")
}

/// Writes graphs of the sizes of QM9: 18 ± 3 nodes, two edges a node.
pub(crate) fn write_qm9_like(path: &Path, samples: u64) {
    let mut random = Random(1);
    let mut writer = Writer::create(path, qm9_schema()).expect("a writable folder");
    let values: Vec<f32> = (0..4096).map(|_| random.below(1000) as f32 / 100.0).collect();
    for _ in 0..samples {
        // The sum of three dice of 0..=6 has mean 9 and deviation 3.5.
        let nodes = 9 + (random.below(7) + random.below(7) + random.below(7)) as usize;
        let edges: Vec<i64> = (0..4 * nodes).map(|_| random.below(nodes as u64) as i64).collect();
        let at = random.below(1024) as usize;
        let part = |length: usize| &values[at..at + length];
        writer
            .push(
                &NewSample::new()
                    .tensor(
                        "x",
                        TensorView::from_slice(part(11 * nodes), &[nodes, 11]).expect("fits"),
                    )
                    .tensor(
                        "edge_index",
                        TensorView::from_slice(&edges, &[2, 2 * nodes]).expect("fits"),
                    )
                    .tensor(
                        "edge_attr",
                        TensorView::from_slice(part(8 * nodes), &[2 * nodes, 4]).expect("fits"),
                    )
                    .tensor(
                        "pos",
                        TensorView::from_slice(part(3 * nodes), &[nodes, 3]).expect("fits"),
                    )
                    .tensor("y", TensorView::from_slice(part(19), &[1, 19]).expect("fits")),
            )
            .expect("the sample fits");
    }
    writer.finish().expect("a file");
}

/// Runs the cases in turn, `rounds` times, and gives the seconds of each case in each round. The first round warms up and
/// is not counted.
pub(crate) fn alternate(rounds: usize, cases: &mut [(&str, &mut dyn FnMut())]) -> Vec<Vec<f64>> {
    let mut seconds = vec![Vec::with_capacity(rounds); cases.len()];
    for round in 0..=rounds {
        for (case, (_, run)) in cases.iter_mut().enumerate() {
            let start = Instant::now();
            run();
            let elapsed = start.elapsed().as_secs_f64();
            if round > 0 {
                seconds[case].push(elapsed);
            }
        }
    }
    seconds
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// The median of the ratios round by round, and its 95 % bootstrap interval.
pub(crate) fn ratio(numerator: &[f64], denominator: &[f64]) -> (f64, f64, f64) {
    let ratios: Vec<f64> =
        numerator.iter().zip(denominator).map(|(one, other)| one / other).collect();
    let mut random = Random(7);
    let mut medians: Vec<f64> = (0..2000)
        .map(|_| {
            let resample: Vec<f64> =
                ratios.iter().map(|_| ratios[random.below(ratios.len() as u64) as usize]).collect();
            median(&resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (median(&ratios), medians[50], medians[1949])
}

/// `ratio` as text.
pub(crate) fn ratio_text(numerator: &[f64], denominator: &[f64]) -> String {
    let (middle, low, high) = ratio(numerator, denominator);
    format!("{middle:.2} [{low:.2}, {high:.2}]")
}

/// The value of a field of `/proc/self/io`, 0 where there is none.
pub(crate) fn io_counter(field: &str) -> u64 {
    std::fs::read_to_string("/proc/self/io")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(": ")?.parse().ok())
        .unwrap_or(0)
}
