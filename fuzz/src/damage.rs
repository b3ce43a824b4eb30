//! Damage to a valid file: verify finds it, and salvage saves nothing that is wrong.

use arbitrary::Arbitrary;
use fencepost::{Dataset, Sample, SampleBuf, VerifyOptions, salvage};

use crate::touch::{own, touch};

#[derive(Arbitrary, Debug)]
pub enum Hit {
    Flip(u32, u8),
    Zero(u32, u16),
    Write(u32, Vec<u8>),
    /// A sector that went to another place.
    Stray(u8, u8),
}

#[derive(Arbitrary, Debug)]
pub struct Damage {
    pub file: u8,
    pub hits: Vec<Hit>,
}

fn same(one: &Sample<'_>, two: &Sample<'_>) {
    for (name, value) in one.iter() {
        let value = value.expect("it was whole");
        // What this version cannot read, or needs what it cannot read, is left out.
        let Ok(other) = two.find(name) else { continue };
        assert_eq!(value.as_ref().map(own), other.as_ref().map(own), "{name}");
    }
}

pub fn damage(damage: &Damage) {
    let files = crate::golden();
    let good = &files[damage.file as usize % files.len()];
    let mut bad = good.clone();
    for hit in damage.hits.iter().take(8) {
        match hit {
            Hit::Flip(at, bit) => {
                let at = *at as usize % bad.len();
                bad[at] ^= 1 << (bit % 8);
            }
            Hit::Zero(at, length) => {
                let at = *at as usize % bad.len();
                let end = bad.len().min(at + *length as usize);
                bad[at..end].fill(0);
            }
            Hit::Write(at, bytes) => {
                let at = *at as usize % bad.len();
                let length = bytes.len().min(bad.len() - at);
                bad[at..at + length].copy_from_slice(&bytes[..length]);
            }
            Hit::Stray(from, to) => {
                let sectors = bad.len() / 512;
                let (from, to) = (*from as usize % sectors * 512, *to as usize % sectors * 512);
                bad.copy_within(from..from + 512, to);
            }
        }
    }
    touch(&bad);
    let folder = crate::scratch();
    let (damaged, saved) = (folder.join("damaged.fence"), folder.join("saved.fence"));
    std::fs::write(&damaged, &bad).expect("room for the file");
    let _absent = std::fs::remove_file(&saved);
    let verified = Dataset::open(&damaged).and_then(|dataset| dataset.verify());
    if bad != *good {
        assert!(!verified.is_ok_and(|report| report.ok()), "the damage is not found");
    }
    let Ok(report) = salvage(&damaged, &saved, VerifyOptions::new()) else { return };
    let original = Dataset::from_bytes(good).expect("a golden file");
    let rescued = Dataset::load(&saved).expect("what salvage writes");
    assert!(rescued.verify().expect("readable").ok());
    assert_eq!(rescued.len() + report.lost_samples(), original.len());
    if bad == *good {
        assert_eq!(report.lost_samples(), 0);
    }
    let (mut one, mut two) = (SampleBuf::new(), SampleBuf::new());
    let kept = (0..original.len()).filter(|at| !report.lost.iter().any(|lost| lost.contains(at)));
    for (new, old) in kept.enumerate() {
        let original = original.read(old, &mut one).expect("a golden sample");
        let rescued = rescued.read(new as u64, &mut two).expect("a sample that was saved");
        same(&original, &rescued);
    }
}
