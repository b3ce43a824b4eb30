//! Whatever the way, the file is the one that a plain layout in memory gives.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Small numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let seed = self.below(251);
        (0..len).map(|i| ((i * 7 + i / 256 + seed) % 253 + 1) as u8).collect()
    }
}

/// What the file has to be: `None` is an abandoned slot.
fn plain_layout(slots: &[Option<Vec<u8>>], alignment: u64, directory: &[u8]) -> Vec<u8> {
    let mut file = vec![0; HEADER_SIZE];
    let mut sums = Vec::new();
    let pad = |file: &mut Vec<u8>, alignment: u64| {
        file.resize(file.len().next_multiple_of(alignment as usize), 0);
    };
    for section in slots.iter().flatten().filter(|section| !section.is_empty()) {
        pad(&mut file, alignment);
        file.extend_from_slice(section);
        for block in section.chunks(64 << 10) {
            sums.extend_from_slice(&crc32fast::hash(block).to_le_bytes());
        }
    }
    pad(&mut file, 64);
    file.extend_from_slice(&sums);
    pad(&mut file, 64);
    file.extend_from_slice(directory);
    pad(&mut file, 64);
    file.extend_from_slice(directory);
    pad(&mut file, 64);
    let header = header_of(file.len() as u64 + HEADER_SIZE as u64);
    file.extend_from_slice(&header);
    file[..HEADER_SIZE].copy_from_slice(&header);
    file
}

pub(super) fn header_of(file_length: u64) -> [u8; HEADER_SIZE] {
    let mut header = [0xab; HEADER_SIZE];
    header[..8].copy_from_slice(&file_length.to_le_bytes());
    header
}

/// What a test does to a spool, and to a model of it.
struct Script {
    slots: usize,
    steps: Vec<Step>,
}

enum Step {
    Append(usize, Vec<u8>),
    Abandon(usize),
    Read(usize),
}

impl Script {
    fn random(seed: u64, slots: usize, steps: usize, most: usize) -> Self {
        let mut random = Random(seed);
        let mut abandoned = vec![false; slots];
        let mut list = Vec::new();
        for _ in 0..steps {
            // Some slots stay empty, and some get most of the bytes.
            let slot = random.below(slots).min(random.below(slots));
            if slot % 7 == 3 || abandoned[slot] {
                continue;
            }
            let most = if random.below(10) == 0 { most } else { most / 20 + 2 };
            let len = random.below(most);
            let bytes = random.bytes(len);
            list.push(match random.below(40) {
                0 if slot % 3 == 1 => {
                    abandoned[slot] = true;
                    Step::Abandon(slot)
                }
                1..4 => Step::Read(slot),
                _ => Step::Append(slot, bytes),
            });
        }
        Self { slots, steps: list }
    }

    fn model(&self) -> Vec<Option<Vec<u8>>> {
        let mut slots = vec![Some(Vec::new()); self.slots];
        for step in &self.steps {
            match step {
                Step::Append(slot, bytes) => {
                    slots[*slot].as_mut().unwrap().extend_from_slice(bytes);
                }
                Step::Abandon(slot) => slots[*slot] = None,
                Step::Read(_) => {}
            }
        }
        slots
    }

    fn run(&self, spool: &mut Spool) -> Result<Vec<SlotId>> {
        let mut model = vec![Vec::new(); self.slots];
        let ids: Vec<_> = (0..self.slots).map(|_| spool.add_slot()).collect();
        for step in &self.steps {
            match step {
                Step::Append(slot, bytes) => {
                    spool.append(ids[*slot], bytes)?;
                    model[*slot].extend_from_slice(bytes);
                }
                Step::Abandon(slot) => spool.abandon(ids[*slot]),
                Step::Read(slot) => {
                    let written = &model[*slot];
                    assert_eq!(spool.len(ids[*slot]), written.len() as u64);
                    let start = written.len() / 3;
                    let mut part = vec![0; written.len() - start - written.len() / 7];
                    spool.read_at(ids[*slot], start as u64, &mut part)?;
                    assert_eq!(part, written[start..start + part.len()]);
                    let mut all = vec![0; written.len()];
                    spool.read_at(ids[*slot], 0, &mut all)?;
                    assert_eq!(all, *written);
                }
            }
        }
        Ok(ids)
    }

    /// Writes the file in one of the ways and compares it with the model.
    fn check(&self, alignment: u64, options: SpoolOptions) -> Option<SpoolSummary> {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.fence");
        let strategy = options.strategy;
        let slots = self.slots;
        let mut spool = match Spool::create(&target, Publish::Replace, alignment, slots, options) {
            Err(Error::Unsupported { problem, .. }) if strategy == Strategy::Collapse => {
                eprintln!("not tested here: {problem}");
                return None;
            }
            spool => spool.unwrap(),
        };
        let ids = self.run(&mut spool).unwrap();
        let model = self.model();
        let laid_out = spool.lay_out().unwrap();
        assert!(!target.exists());
        let layout = laid_out.layout().clone();
        let directory = b"{\"sections\":[]}";
        let mut told = None;
        let summary = laid_out
            .finish(directory, |places| {
                told = Some(*places);
                header_of(places.file_length)
            })
            .unwrap();
        let file = fs::read(&target).unwrap();
        let expected = plain_layout(&model, alignment, directory);
        assert_eq!(file.len(), expected.len());
        if let Some(at) = file.iter().zip(&expected).position(|(a, b)| a != b) {
            panic!("{strategy:?} differs at byte {at}");
        }
        let slice = |section: &Section| {
            &file[section.offset as usize..(section.offset + section.length) as usize]
        };
        for (id, bytes) in ids.iter().zip(&model) {
            match (layout.section_of(*id), bytes) {
                (None, None) => {}
                (Some(section), Some(bytes)) => {
                    let section = &layout.sections[section];
                    assert_eq!(slice(section), bytes);
                    assert_eq!(section.crc32, crc32fast::hash(bytes));
                    assert_eq!(section.offset == 0, bytes.is_empty());
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(layout.checksums.crc32, crc32fast::hash(slice(&layout.checksums)));
        let places = told.unwrap();
        assert_eq!(slice(&places.directory), directory);
        assert_eq!(places.directory.crc32, crc32fast::hash(directory));
        assert_eq!(places.file_length, file.len() as u64);
        assert_eq!(summary.file_length, file.len() as u64);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        Some(summary)
    }
}

fn options(budget: usize, strategy: Strategy, gap: Option<u64>) -> SpoolOptions {
    SpoolOptions { budget, strategy, gap, ..SpoolOptions::default() }
}

#[test]
fn every_way_gives_the_same_file() {
    for seed in 0..6 {
        let script = Script::random(seed, 1 + seed as usize * 4, 300, 60_000);
        let slots = script.slots;
        // Buffers of a few hundred bytes to a few pages, so that all of them overflow.
        for budget in [slots * 300, slots * 10_000] {
            for alignment in [4096, 64, 16_384] {
                let auto = script.check(alignment, options(budget, Strategy::Auto, None)).unwrap();
                if alignment == 64 {
                    assert!(auto.taken != Taken::Collapse && auto.reason.is_some(), "{auto:?}");
                }
                let copy = script.check(alignment, options(budget, Strategy::Copy, None)).unwrap();
                assert_eq!(copy.taken, Taken::Copy);
                let range = options(budget, Strategy::CopyRange, None);
                script.check(alignment, range).unwrap();
            }
            for gap in [None, Some(4096), Some(65_536)] {
                let collapse = options(budget, Strategy::Collapse, gap);
                if let Some(summary) = script.check(4096, collapse) {
                    assert_eq!(summary.taken, Taken::Collapse);
                    assert_eq!(summary.reason, None);
                }
            }
        }
        let buffered = script.check(4096, options(256 << 20, Strategy::Auto, None)).unwrap();
        assert_eq!((buffered.taken, buffered.reason), (Taken::Buffered, None));
    }
}

#[test]
fn no_slots_and_only_empty_ones() {
    for strategy in [Strategy::Auto, Strategy::Collapse, Strategy::CopyRange, Strategy::Copy] {
        for slots in [0, 1, 4] {
            Script { slots, steps: Vec::new() }.check(4096, options(1 << 20, strategy, None));
        }
        let script =
            Script { slots: 2, steps: vec![Step::Append(0, vec![1; 100_000]), Step::Abandon(0)] };
        script.check(4096, options(8192, strategy, None));
    }
}

#[test]
fn a_small_file_is_written_once_and_in_place() {
    let script = Script {
        slots: 10,
        steps: (0..10).map(|slot| Step::Append(slot, vec![7; 1000])).collect(),
    };
    let summary = script.check(64, SpoolOptions::default()).unwrap();
    assert_eq!(summary.taken, Taken::Buffered);
    // Sections, checksums, two directories, two headers; no padding, and nothing twice.
    assert_eq!(summary.bytes_written, 10_000 + 40 + 2 * 15 + 2 * 4096);
}

#[test]
fn thousands_of_slots_within_the_budget() {
    const SLOTS: usize = 3_000;
    const BUDGET: usize = 2 << 20;
    let mut random = Random(5);
    let mut steps = Vec::new();
    for round in 0..4 {
        for slot in 0..SLOTS {
            let len = random.below(1200) + usize::from(round == 3 && slot % 500 == 7) * 300_000;
            steps.push(Step::Append(slot, random.bytes(len)));
        }
    }
    let script = Script { slots: SLOTS, steps };
    for strategy in [Strategy::Auto, Strategy::CopyRange] {
        script.check(4096, options(BUDGET, strategy, None));
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.fence");
    let options = options(BUDGET, Strategy::Auto, None);
    let mut spool = Spool::create(&target, Publish::Replace, 4096, SLOTS, options).unwrap();
    script.run(&mut spool).unwrap();
    let buffers: usize = spool.slots.iter().map(|slot| slot.buffer.capacity()).sum();
    assert!(buffers <= BUDGET, "{buffers}");
}

#[test]
fn checksums_beyond_memory_go_to_the_side_file() {
    // So many slots that each holds the fewest checksums: those of 2 MiB.
    let mut random = Random(9);
    let steps =
        (0..9).flat_map(|_| [3, 20_000].map(|slot| Step::Append(slot, random.bytes(700_001))));
    let steps = steps.collect();
    Script { slots: 40_000, steps }.check(4096, options(32 << 20, Strategy::Auto, None)).unwrap();
}

/// A disk that takes a few bytes at a time, is interrupted now and then, and refuses what it is told to.
#[derive(Debug, Default)]
struct Odd {
    calls: AtomicU64,
    short: bool,
    no_insert: bool,
    no_copy_range: bool,
    no_punch: bool,
    /// Offsets from here on are too large.
    end: Option<u64>,
    /// The call that fails for want of space, as do all later ones.
    full_at: Option<u64>,
    /// How often room was made between two slots.
    inserts: Arc<AtomicU64>,
}

impl Odd {
    fn call(&self) -> io::Result<u64> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.full_at {
            Some(full) if call >= full => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(call),
        }
    }
}

impl Disk for Odd {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let call = self.call()?;
        if self.end.is_some_and(|end| offset >= end) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if !self.short {
            return RealDisk.write_at(file, bytes, offset);
        }
        match call % 5 {
            0 => Err(io::ErrorKind::Interrupted.into()),
            1 => RealDisk.write_at(file, &bytes[..bytes.len().min(1)], offset),
            _ => RealDisk.write_at(file, &bytes[..bytes.len().min(3001)], offset),
        }
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let call = self.call()?;
        match call % 3 {
            _ if !self.short => RealDisk.read_at(file, bytes, offset),
            0 => Err(io::ErrorKind::Interrupted.into()),
            _ => {
                let len = bytes.len().min(1777);
                RealDisk.read_at(file, &mut bytes[..len], offset)
            }
        }
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.call()?;
        file.set_len(len)
    }

    fn collapse(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        self.call()?;
        RealDisk.collapse(file, offset, len)
    }

    fn insert(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        self.call()?;
        self.inserts.fetch_add(1, Ordering::Relaxed);
        if self.no_insert {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        RealDisk.insert(file, offset, len)
    }

    fn punch(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        if self.no_punch {
            return Err(io::ErrorKind::Unsupported.into());
        }
        RealDisk.punch(file, offset, len)
    }

    fn copy_range(
        &self,
        from: &File,
        from_offset: u64,
        to: &File,
        to_offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let call = self.call()?;
        if self.no_copy_range && call.is_multiple_of(3) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let len = if self.short { len.min(5000) } else { len };
        RealDisk.copy_range(from, from_offset, to, to_offset, len)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.call()?;
        file.sync_all()
    }
}

fn on(disk: Odd, options: SpoolOptions) -> SpoolOptions {
    SpoolOptions { disk: Arc::new(disk), ..options }
}

const FORCED: [Strategy; 3] = [Strategy::Collapse, Strategy::CopyRange, Strategy::Copy];

#[test]
fn short_writes_and_interruptions_change_nothing() {
    let script = Script::random(77, 9, 120, 40_000);
    for strategy in FORCED {
        for gap in [None, Some(4096)] {
            let disk = Odd { short: true, ..Odd::default() };
            script.check(4096, on(disk, options(9 * 5000, strategy, gap)));
        }
    }
    let disk = Odd { short: true, ..Odd::default() };
    script.check(4096, on(disk, options(64 << 20, Strategy::Auto, None)));
}

#[test]
fn slots_that_outgrow_their_gaps_push_the_others_away() {
    let inserts = Arc::new(AtomicU64::new(0));
    let script = Script::random(3, 6, 200, 50_000);
    let disk = Odd { inserts: inserts.clone(), ..Odd::default() };
    let options = on(disk, options(6 * 4096, Strategy::Collapse, Some(4096)));
    if let Some(summary) = script.check(4096, options) {
        assert_eq!((summary.taken, summary.reason), (Taken::Collapse, None));
        assert!(inserts.load(Ordering::Relaxed) > 5);
    }
}

#[test]
fn slots_that_find_no_room_move_to_spill_files() {
    for seed in 0..4 {
        let script = Script::random(seed + 100, 11, 200, 50_000);
        let disks: [(Odd, Option<u64>); 3] = [
            // The gaps are small, and no more room is to be had.
            (Odd { no_insert: true, ..Odd::default() }, Some(8192)),
            (Odd { no_insert: true, no_punch: true, short: true, ..Odd::default() }, Some(8192)),
            // The gaps are large, and the file ends between two slots.
            (Odd { end: Some(1 << 30), ..Odd::default() }, None),
        ];
        for (disk, gap) in disks {
            let options = on(disk, options(11 * 2000, Strategy::Collapse, gap));
            if let Some(summary) = script.check(4096, options) {
                assert_eq!(summary.taken, Taken::CopyRange);
                assert!(summary.reason.unwrap().contains("no room"));
            }
        }
    }
}

#[test]
fn a_kernel_that_does_not_copy_is_replaced_midway() {
    let script = Script::random(31, 8, 200, 50_000);
    let disk = Odd { no_copy_range: true, ..Odd::default() };
    let summary =
        script.check(4096, on(disk, options(8 * 2000, Strategy::CopyRange, None))).unwrap();
    assert_eq!(summary.taken, Taken::Copy);
    assert!(summary.reason.is_some());
}

#[test]
fn bytes_of_abandoned_slots_stay_out_where_space_is_not_given_back() {
    for strategy in FORCED {
        for seed in 0..4 {
            let script = Script::random(seed + 50, 9, 300, 30_000);
            let disk = Odd { no_punch: true, ..Odd::default() };
            script.check(4096, on(disk, options(9 * 1000, strategy, Some(12_288))));
        }
    }
}

#[test]
fn a_full_disk_at_any_call_leaves_the_old_file_and_nothing_else() {
    let script = Script::random(8, 5, 40, 30_000);
    for strategy in [Strategy::Auto, Strategy::Collapse, Strategy::CopyRange, Strategy::Copy] {
        if script.check(4096, options(5 * 4096, strategy, Some(8192))).is_none() {
            continue; // Not on this filesystem.
        }
        let mut full_at = 0;
        loop {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("a.fence");
            fs::write(&target, b"old").unwrap();
            let disk = Arc::new(Odd { full_at: Some(full_at), ..Odd::default() });
            let options =
                SpoolOptions { disk: disk.clone(), ..options(5 * 4096, strategy, Some(8192)) };
            let outcome =
                Spool::create(&target, Publish::Replace, 4096, 5, options).and_then(|mut spool| {
                    if let Err(error) = script.run(&mut spool) {
                        // It stays refused.
                        for slot in (0..spool.slots.len()).map(SlotId) {
                            if !spool.slots[slot.0].abandoned {
                                let again = spool.append(slot, b"x").unwrap_err();
                                assert!(matches!(again, Error::WriterPoisoned { .. }), "{again}");
                            }
                        }
                        assert!(spool.lay_out().is_err());
                        return Err(error);
                    }
                    spool.lay_out()?.finish(b"{}", |places| header_of(places.file_length))
                });
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            match outcome {
                Ok(_) => break,
                Err(Error::Io { source, .. }) => {
                    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
                }
                Err(Error::Unsupported { .. }) if strategy == Strategy::Collapse => {}
                Err(other) => panic!("{other}"),
            }
            assert_eq!(fs::read(&target).unwrap(), b"old");
            full_at += 1;
            assert!(full_at < 10_000);
        }
        assert!(full_at > 5, "{strategy:?}");
    }
}

#[test]
fn a_dropped_spool_leaves_nothing() {
    for strategy in [Strategy::Auto, Strategy::CopyRange] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.fence");
        let mut spool: Spool =
            Spool::create(&target, Publish::New, 4096, 2, options(8192, strategy, None)).unwrap();
        let slot = spool.add_slot();
        spool.append(slot, &[1; 100_000]).unwrap();
        drop(spool);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_filesystem_in_memory_falls_back() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let target = folder.path().join("a.fence");
    let mut spool: Spool =
        Spool::create(&target, Publish::New, 4096, 2, options(8192, Strategy::Auto, None)).unwrap();
    let slot = spool.add_slot();
    spool.append(slot, &[1; 100_000]).unwrap();
    let laid_out = spool.lay_out().unwrap();
    let summary = laid_out.finish(b"{}", |places| header_of(places.file_length)).unwrap();
    assert!(matches!(summary.taken, Taken::CopyRange | Taken::Copy), "{summary:?}");
    assert!(summary.reason.unwrap().contains("neither ext4 nor XFS"));
    assert_eq!(fs::read(&target).unwrap(), plain_layout(&[Some(vec![1; 100_000])], 4096, b"{}"));
    let collapse = options(8192, Strategy::Collapse, None);
    assert!(matches!(
        Spool::create(&target, Publish::Replace, 4096, 2, collapse),
        Err(Error::Unsupported { .. })
    ));
}

/// The limit belongs to a process, so a child has it.
#[test]
#[cfg(unix)]
fn a_limit_on_file_sizes_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir().unwrap();
    // 8,192 units of 512 bytes.
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 8192 && exec \"$0\" --exact --ignored \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(format!("{}::child_with_a_limit", module_path!().split_once("::").unwrap().1))
        .env("FENCEPOST_TEST_FOLDER", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{:?}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by the test above, under a limit"]
fn child_with_a_limit() {
    let Some(folder) = std::env::var_os("FENCEPOST_TEST_FOLDER").map(PathBuf::from) else { return };
    let write = |len: usize, strategy| {
        let target = folder.join("a.fence");
        let mut spool: Spool =
            Spool::create(&target, Publish::Replace, 4096, 3, options(30_000, strategy, None))?;
        let slots = [(); 3].map(|()| spool.add_slot());
        for _ in 0..10 {
            for slot in slots {
                spool.append(slot, &vec![1; len / 30])?;
            }
        }
        spool.lay_out()?.finish(b"{}", |places| header_of(places.file_length))
    };
    // The sum of the pieces is beyond the limit, the file is not.
    let summary = write(3 << 20, Strategy::Auto).unwrap();
    assert_ne!(summary.taken, Taken::Collapse);
    #[cfg(target_os = "linux")]
    assert!(summary.reason.is_some());
    for strategy in [Strategy::Auto, Strategy::Copy] {
        let error = write(6 << 20, strategy).unwrap_err();
        assert!(
            matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn quotas_are_whole_pages_where_they_can_be() {
    for (budget, slots, expected) in [
        (32 << 20, 5, 4 << 20),
        (32 << 20, 100, 331_776),
        (32 << 20, 8192, 4096),
        (32 << 20, 8193, 4095),
        (32 << 20, 10_000_000, MIN_QUOTA),
        (0, 0, MIN_QUOTA),
    ] {
        assert_eq!(quota(budget, slots), expected, "{budget} over {slots}");
    }
}
