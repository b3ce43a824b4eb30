//! Loss of power: every order in which a disk may have kept what it was not yet told to keep.
//!
//! The disk is the real one with a recorder before it. From the recorded calls, every state is made that a crash after any
//! of them may leave: each write since the file's last sync kept, lost, or torn at its 512-byte sectors; each change of a
//! name since the folder's last sync kept or lost.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};

use fencepost::storage::{Disk, RealDisk};
use fencepost::{Strategy, Writer};

use crate::record::{record, scaled};
use crate::versions::{self, Random};

const SECTOR: u64 = 512;

/// All subsets of up to this many changes are tried, and a sample of the subsets of more.
const ALL_SUBSETS: usize = 10;

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
    Collapse(u64, u64),
    Insert(u64, u64),
    Punch(u64, u64),
}

#[derive(Debug, Clone)]
enum Op {
    /// To the file of that number.
    Change(usize, Change),
    Sync(usize),
    SyncFolder,
    /// The file gets the target's name.
    Rename(usize),
    Remove,
}

#[derive(Debug, Default)]
struct Log {
    ops: Vec<Op>,
    /// Numbers of files, by inode. The handles keep an inode from being given to another file.
    files: HashMap<u64, usize>,
    held: Vec<File>,
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Log>);

impl Recorder {
    fn number(&self, file: &File) -> usize {
        let inode = file.metadata().unwrap().ino();
        let mut log = self.0.lock().unwrap();
        let next = log.files.len();
        if let Some(&known) = log.files.get(&inode) {
            return known;
        }
        log.files.insert(inode, next);
        // By its name in /proc and not by `try_clone`, which would share the writer's lock and keep it.
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
            log.held.push(again);
        }
        next
    }

    fn note(&self, op: Op) {
        self.0.lock().unwrap().ops.push(op);
    }

    fn change(&self, file: &File, change: Change) {
        let number = self.number(file);
        self.note(Op::Change(number, change));
    }
}

impl Disk for Recorder {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let written = RealDisk.write_at(file, bytes, offset)?;
        self.change(file, Change::Write(offset, bytes[..written].to_vec()));
        Ok(written)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        RealDisk.set_len(file, len)?;
        self.change(file, Change::Length(len));
        Ok(())
    }

    fn collapse(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        RealDisk.collapse(file, offset, len)?;
        self.change(file, Change::Collapse(offset, len));
        Ok(())
    }

    fn insert(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        RealDisk.insert(file, offset, len)?;
        self.change(file, Change::Insert(offset, len));
        Ok(())
    }

    fn punch(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        RealDisk.punch(file, offset, len)?;
        self.change(file, Change::Punch(offset, len));
        Ok(())
    }

    fn copy_range(
        &self,
        from: &File,
        from_offset: u64,
        to: &File,
        to_offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let copied = RealDisk.copy_range(from, from_offset, to, to_offset, len)?;
        let mut bytes = vec![0; copied];
        to.read_exact_at(&mut bytes, to_offset)?;
        self.change(to, Change::Write(to_offset, bytes));
        Ok(copied)
    }

    // Nothing has to be durable here: what matters is when it was asked for.
    fn sync(&self, file: &File) -> io::Result<()> {
        let number = self.number(file);
        self.note(Op::Sync(number));
        Ok(())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.note(Op::SyncFolder);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let number = self.number(&File::open(from)?);
        RealDisk.rename(from, to)?;
        self.note(Op::Rename(number));
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let number = self.number(&File::open(from)?);
        RealDisk.rename_new(from, to)?;
        self.note(Op::Rename(number));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)?;
        self.note(Op::Remove);
        Ok(())
    }
}

/// A file's bytes, without the terabytes of nothing that lie between the sections while they grow.
#[derive(Debug, Clone, Default)]
struct Image {
    length: u64,
    /// Sectors that were written to, by number.
    sectors: BTreeMap<u64, [u8; SECTOR as usize]>,
}

impl Image {
    fn apply(&mut self, change: &Change, keep: &mut dyn FnMut() -> bool) {
        match *change {
            Change::Write(offset, ref bytes) => {
                let end = offset + bytes.len() as u64;
                let mut at = offset;
                while at < end {
                    let next = ((at / SECTOR + 1) * SECTOR).min(end);
                    if keep() {
                        let sector =
                            self.sectors.entry(at / SECTOR).or_insert([0; SECTOR as usize]);
                        let part = &bytes[(at - offset) as usize..(next - offset) as usize];
                        sector[(at % SECTOR) as usize..][..part.len()].copy_from_slice(part);
                        self.length = self.length.max(next);
                    }
                    at = next;
                }
            }
            Change::Length(length) => {
                self.fill(length, self.length.max(length));
                self.length = length;
            }
            // Whole blocks, and so whole sectors.
            Change::Collapse(offset, length) => {
                self.fill(offset, offset + length);
                self.shift(offset + length, offset);
                self.length -= length.min(self.length);
            }
            Change::Insert(offset, length) => {
                self.shift(offset, offset + length);
                self.length += length;
            }
            Change::Punch(offset, length) => self.fill(offset, offset + length),
        }
    }

    /// Zeros from one byte to another.
    fn fill(&mut self, from: u64, to: u64) {
        let within: Vec<u64> =
            self.sectors.range(from / SECTOR..to.div_ceil(SECTOR)).map(|(&at, _)| at).collect();
        for number in within {
            let (start, end) = (number * SECTOR, (number + 1) * SECTOR);
            let sector = self.sectors.get_mut(&number).unwrap();
            sector[(from.max(start) - start) as usize..(to.min(end) - start) as usize].fill(0);
        }
    }

    /// What lies from `from` on lies from `to` on.
    fn shift(&mut self, from: u64, to: u64) {
        assert!(from.is_multiple_of(SECTOR) && to.is_multiple_of(SECTOR));
        let behind = self.sectors.split_off(&(from / SECTOR));
        self.sectors.retain(|&at, _| at < to / SECTOR);
        let moved =
            behind.into_iter().map(|(at, sector)| (at - from / SECTOR + to / SECTOR, sector));
        self.sectors.extend(moved);
    }

    fn is(&self, bytes: &[u8]) -> bool {
        const ZEROS: [u8; SECTOR as usize] = [0; SECTOR as usize];
        self.length == bytes.len() as u64
            && bytes.chunks(SECTOR as usize).zip(0..).all(|(part, number)| {
                let sector = self.sectors.get(&number).unwrap_or(&ZEROS);
                sector[..part.len()] == *part
            })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length as usize];
        for (number, sector) in &self.sectors {
            let at = (number * SECTOR) as usize;
            let length = bytes.len().saturating_sub(at).min(SECTOR as usize);
            bytes[at..at + length].copy_from_slice(&sector[..length]);
        }
        bytes
    }
}

/// What the target's name holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Held {
    Old,
    Nothing,
    New,
    Torn,
}

#[derive(Debug, Default)]
struct Tally {
    states: u64,
    prefixes: u64,
    /// How often each was found.
    held: HashMap<Held, u64>,
    /// States in which the publish had already been reported as done.
    after: HashMap<Held, u64>,
}

/// Every state that a crash after the first `prefix` calls may leave.
fn crash(ops: &[Op], prefix: usize, old: Option<&[u8]>, new: &[u8], seed: u64, tally: &mut Tally) {
    let done = &ops[..prefix];
    let synced = |file: usize| {
        done.iter().rposition(|op| matches!(op, Op::Sync(synced) if *synced == file)).unwrap_or(0)
    };
    let folder_synced = done.iter().rposition(|op| matches!(op, Op::SyncFolder)).unwrap_or(0);
    let rename = done.iter().enumerate().rev().find_map(|(at, op)| match op {
        Op::Rename(file) => Some((at, *file)),
        _ => None,
    });
    // What may be lost: places in `done`.
    let mut open: Vec<usize> = Vec::new();
    for (at, op) in done.iter().enumerate() {
        match op {
            Op::Change(file, _) if at >= synced(*file) => open.push(at),
            Op::Rename(_) | Op::Remove if at >= folder_synced => open.push(at),
            _ => {}
        }
    }
    let subsets: u64 =
        if open.len() <= ALL_SUBSETS { 1 << open.len() } else { scaled(500, 10_000) };
    let mut random = Random(seed);
    // What the renamed file holds whatever is lost.
    let mut durable = Image::default();
    if let Some((_, file)) = rename {
        for (at, op) in done.iter().enumerate() {
            match op {
                Op::Change(of, change) if *of == file && open.binary_search(&at).is_err() => {
                    durable.apply(change, &mut || true);
                }
                _ => {}
            }
        }
    }
    for subset in 0..subsets {
        let mask: Vec<u64> = if open.len() <= ALL_SUBSETS {
            vec![subset]
        } else {
            (0..open.len().div_ceil(64)).map(|_| random.next()).collect()
        };
        let kept = |at: usize| match open.binary_search(&at) {
            Ok(bit) => mask[bit / 64] >> (bit % 64) & 1 == 1,
            Err(_) => true,
        };
        for torn in [false, true] {
            tally.states += 1;
            let held = match rename {
                Some((at, file)) if kept(at) => {
                    let mut image = durable.clone();
                    for &at in &open {
                        let Op::Change(of, change) = &done[at] else { continue };
                        if *of == file && kept(at) {
                            image.apply(change, &mut || !torn || random.next() & 1 == 0);
                        }
                    }
                    if image.is(new) { Held::New } else { Held::Torn }
                }
                _ if old.is_some() => Held::Old,
                _ => Held::Nothing,
            };
            *tally.held.entry(held).or_default() += 1;
            if prefix == ops.len() {
                *tally.after.entry(held).or_default() += 1;
            }
        }
    }
}

fn tally(ops: &[Op], old: Option<&[u8]>, new: &[u8]) -> Tally {
    let mut tally = Tally::default();
    for prefix in 0..=ops.len() {
        tally.prefixes += 1;
        crash(ops, prefix, old, new, prefix as u64, &mut tally);
    }
    tally
}

struct Published {
    ops: Vec<Op>,
    old: Option<Vec<u8>>,
    new: Vec<u8>,
}

const STRATEGIES: [Strategy; 4] =
    [Strategy::Auto, Strategy::Collapse, Strategy::CopyRange, Strategy::Copy];

/// Publishes one file with a recorder before the disk; `None` where the filesystem cannot do it in this way.
fn publish(strategy: Strategy, existing: bool, samples: u64, buffer: usize) -> Option<Published> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    if existing {
        versions::write(&path, Writer::options(), 1, 3).unwrap();
    }
    let old = existing.then(|| fs::read(&path).unwrap());
    let disk = Arc::new(Recorder::default());
    let options = Writer::options().disk(disk.clone()).strategy(strategy).buffer_bytes(buffer);
    match versions::write(&path, options, 2, samples) {
        Ok(_) => {}
        Err(error) if strategy == Strategy::Collapse => {
            println!("not tried: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let new = fs::read(&path).unwrap();
    let ops = std::mem::take(&mut disk.0.lock().unwrap().ops);
    Some(Published { ops, old, new })
}

#[test]
fn a_crash_at_any_moment_leaves_the_old_file_or_the_new_one() {
    let (mut states, mut prefixes, mut publishes, mut calls) = (0, 0, 0, 0);
    for strategy in STRATEGIES {
        for existing in [false, true] {
            for (samples, buffer) in [(2, 32 << 20), (60, 32 << 20), (60, 4096)] {
                let Some(published) = publish(strategy, existing, samples, buffer) else {
                    continue;
                };
                let Published { ops, old, new } = published;
                let what = format!("{strategy:?}, existing {existing}, {samples} samples");
                let tally = tally(&ops, old.as_deref(), &new);
                assert_eq!(tally.held.get(&Held::Torn), None, "{what}: {tally:?}");
                let before = if existing { Held::Old } else { Held::Nothing };
                // That all of them are met shows that the recording is of a publish, and of one that was cut everywhere.
                assert!(tally.held[&before] > 0 && tally.held[&Held::New] > 0, "{what}: {tally:?}");
                assert_eq!(tally.after.keys().collect::<Vec<_>>(), [&Held::New], "{what}");
                states += tally.states;
                prefixes += tally.prefixes;
                calls += ops.len() as u64;
                publishes += 1;
            }
        }
    }
    assert!(publishes >= 18, "only {publishes} publishes were recorded");
    record(
        "power",
        &[
            ("publishes", publishes),
            ("calls_recorded", calls),
            ("prefixes", prefixes),
            ("states", states),
            ("torn", 0),
        ],
    );
}

/// The checker itself: a publish that leaves out a step, or takes two in the wrong order, is found.
#[test]
fn a_publish_that_is_done_wrong_is_found() {
    let published = publish(Strategy::Auto, true, 60, 32 << 20).unwrap();
    let Published { ops, old, new } = published;
    let (old, at) =
        (old.as_deref(), |wanted: fn(&Op) -> bool| ops.iter().rposition(wanted).unwrap());
    let sync = at(|op| matches!(op, Op::Sync(_)));
    let rename = at(|op| matches!(op, Op::Rename(_)));
    let folder = at(|op| matches!(op, Op::SyncFolder));

    let mut without_sync = ops.clone();
    without_sync.remove(sync);
    assert!(tally(&without_sync, old, &new).held[&Held::Torn] > 0);

    let mut renamed_first = ops.clone();
    renamed_first.swap(sync, rename);
    assert!(tally(&renamed_first, old, &new).held[&Held::Torn] > 0);

    let mut without_folder = ops.clone();
    without_folder.remove(folder);
    let without_folder = tally(&without_folder, old, &new);
    assert_eq!(without_folder.held.get(&Held::Torn), None);
    assert!(without_folder.after[&Held::Old] > 0, "what was reported as done may be lost");
}

/// A crash leaves the temporary file as well, or parts of it. The next writer takes it away.
#[test]
fn one_further_write_takes_away_what_a_crash_left() {
    let published = publish(Strategy::Auto, true, 20, 32 << 20).unwrap();
    let Published { ops, old, new } = published;
    let mut random = Random(5);
    let mut left = 0;
    for prefix in 0..ops.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.fence");
        fs::write(&path, old.as_deref().unwrap()).unwrap();
        let renamed = ops[..prefix].iter().any(|op| matches!(op, Op::Rename(_)));
        if renamed {
            fs::write(&path, &new).unwrap();
        } else {
            let mut image = Image::default();
            for op in &ops[..prefix] {
                if let Op::Change(_, change) = op {
                    image.apply(change, &mut || random.next() & 1 == 0);
                }
            }
            let name = format!(".a.fence.{:08}.fence-tmp", random.below(100_000_000));
            fs::write(folder.path().join(name), image.bytes()).unwrap();
            left += 1;
        }
        assert_eq!(versions::check(&path), if renamed { 2 } else { 1 });
        versions::write(&path, Writer::options(), 3, 1).unwrap();
        assert_eq!(versions::check(&path), 3);
        assert!(versions::litter(folder.path()).is_empty());
    }
    assert!(left > 0);
}
