//! Mapped files: the only module with unsafe code.
//!
//! Four things need it: mapping a file, whose contract is handed to the caller of [`Storage::map`]; mapping several side by
//! side; giving pages back; and two system calls that no safe crate offers (`mincore`, `getrusage`).

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::{Mmap, MmapOptions};

use super::files::Files;
use super::store::{Access, Inner, MemoryUse, Storage, advise_files};
use crate::error::{Error, Result};

/// Mapped files, each at its positions.
pub(super) struct Mapped {
    map: Mmap,
    /// Whether the kernel was told not to read ahead: only then is `touched` looked at.
    random: AtomicBool,
    touched: TouchedPages,
}

impl Storage {
    /// Maps a file: its pages come into memory as they are touched, and all processes that map it share them.
    ///
    /// Pages are read one at a time until [`advise`](Storage::advise) says otherwise. Where the promise below cannot
    /// be given, [`open`](Storage::open) serves the same bytes.
    ///
    /// # Safety
    ///
    /// As long as the returned value lives, nobody, in this process or another:
    ///
    /// 1. changes bytes of the file. `as_slice` lends them as `&[u8]`, which the compiler takes to be constant;
    /// 2. makes the file shorter. A page behind the new end kills the process with a signal when it is touched.
    ///
    /// Renaming or deleting the file, and publishing another under its name as [`PendingFile`](super::PendingFile)
    /// does, is harmless: the mapping keeps the old file alive. Files on network filesystems can be changed by hosts
    /// that nobody here knows of.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened or mapped, or is a folder, a device or a pipe.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller's promise for this file is what `map_all` asks for.
        unsafe { Self::map_all(&[path]) }
    }

    /// Maps these files side by side, each at its [`positions`](Storage::positions): all are one slice.
    ///
    /// # Safety
    ///
    /// As [`map`](Storage::map), for each of them.
    ///
    /// # Errors
    ///
    /// As [`map`](Storage::map); [`Error::Unsupported`] for more than one file where the system is no Unix.
    ///
    /// # Panics
    ///
    /// If there is no file.
    pub unsafe fn map_all<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let files = Files::open(paths)?;
        let path = &files.places()[0].path;
        let len = files.end();
        let failed = |source| Error::io(format!("map {len} bytes of"), &**path, source);
        let in_memory = usize::try_from(len).map_err(|_| {
            failed(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "more than this host can address; open it by position instead",
            ))
        })?;
        let map = if let (1, Some(file)) = (files.places().len(), files.handle(0)) {
            // SAFETY: `MmapOptions::map` asks that the file be not modified while it is mapped, in this process or out of
            // it (memmap2 0.9, "Safety" of `Mmap`). That is what this function's caller has promised. `in_memory` is the
            // length that the file had a moment ago, so no page of the mapping lies behind its end.
            unsafe { MmapOptions::new().len(in_memory).map(file.file()) }.map_err(failed)?
        } else {
            // SAFETY: the caller's promise for all of the files, handed on.
            unsafe { side_by_side(&files, in_memory) }?
        };
        let touched = TouchedPages::new(len);
        let mapped = Mapped { map, random: AtomicBool::new(false), touched };
        mapped.advise(&files, Access::Random);
        Ok(Storage { files, inner: Inner::Mapped(mapped) })
    }
}

/// Address space for all files, and each file mapped into it at its positions. What is between them reads as zero.
///
/// # Safety
///
/// As [`Storage::map_all`].
#[cfg(unix)]
unsafe fn side_by_side(files: &Files, len: usize) -> Result<Mmap> {
    let advice = "the system may allow fewer mappings (vm.max_map_count) or less address space: open the files by \
                  position, or compact them into one";
    let failed = |action: String, path: &Path, source: io::Error| {
        Error::io(action, path, io::Error::new(source.kind(), format!("{source}; {advice}")))
    };
    // Nothing of it is ever written, so no memory has to be set aside for it.
    let reserved = MmapOptions::new().len(len.max(1)).no_reserve_swap().map_anon();
    let region = reserved.and_then(memmap2::MmapMut::make_read_only).map_err(|source| {
        failed(format!("reserve {len} bytes of address space for"), &files.places()[0].path, source)
    })?;
    for (file, place) in files.open_files() {
        let (start, end) = (place.positions.start as usize, place.positions.end as usize);
        if start == end {
            continue;
        }
        let address = region[start..end].as_ptr().cast_mut().cast();
        // SAFETY: mmap(2) with MAP_FIXED replaces what is mapped at `address..address + (end - start)`, rounded up to pages.
        // That lies in `region`, which this function owns, which nobody has seen yet, and which a file's positions do not
        // share with the next one's, as each starts at a multiple of the largest page; `region` unmaps all of it when it is
        // dropped, whatever is mapped there by then. The address is a multiple of the page size: so are the region's start
        // and the file's. That the file's bytes neither change nor go away is the caller's promise; it had them a moment ago.
        let mapped = unsafe {
            rustix::mm::mmap(
                address,
                end - start,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED | rustix::mm::MapFlags::FIXED,
                file.file(),
                0,
            )
        };
        mapped.map_err(|source| {
            failed(format!("map {} bytes of", end - start), &place.path, source.into())
        })?;
    }
    Ok(region)
}

#[cfg(not(unix))]
unsafe fn side_by_side(files: &Files, _len: usize) -> Result<Mmap> {
    Err(Error::Unsupported {
        what: format!("map of {} files as one", files.places().len()).into(),
        problem: "this system cannot map files side by side: open them by position, or compact them into one".into(),
    })
}

impl Mapped {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.map
    }

    pub(super) fn advise(&self, files: &Files, access: Access) {
        #[cfg(unix)]
        {
            let advice = match access {
                Access::Random => memmap2::Advice::Random,
                Access::Sequential => memmap2::Advice::Sequential,
            };
            let _refused = self.map.advise(advice);
        }
        advise_files(files, access);
        self.random.store(access == Access::Random, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn touch(&self, files: &Files, ranges: &[Range<u64>]) {
        if !cfg!(unix) || !self.random.load(Ordering::Relaxed) {
            return;
        }
        if time_to_look() {
            self.look_for_evictions();
        }
        if !ranges.iter().all(|range| self.touched.has(range)) {
            self.ask(files, ranges);
        }
    }

    /// Prefetches what was never touched, all of it before the caller touches the first.
    #[cold]
    fn ask(&self, files: &Files, ranges: &[Range<u64>]) {
        let mut runs = PageRuns::new(files);
        for range in ranges {
            if let Some((first, last)) = self.touched.missing(range) {
                runs.add(first, last);
            }
        }
        runs.ask();
        for range in ranges {
            self.touched.set(range);
        }
    }

    /// Forgets which pages were touched if this thread has waited for the disk all the same.
    #[cold]
    fn look_for_evictions(&self) {
        if major_faults().is_some_and(waited_too_often) {
            self.touched.clear();
        }
    }

    pub(super) fn release(&self, ranges: &[Range<u64>]) {
        #[cfg(unix)]
        for range in ranges {
            let page = page_size();
            let len = self.map.len() as u64;
            let start = range.start.min(len).next_multiple_of(page);
            // The file's last page is whole if the range reaches the file's end, although the file may not fill it.
            let end = if range.end >= len { len } else { range.end / page * page };
            if start >= end {
                continue;
            }
            // SAFETY: `UncheckedAdvice::DontNeed` can lose the content of pages. Those of a shared, read-only mapping
            // of a file have no content but the file's: a later access reads it again (madvise(2), MADV_DONTNEED:
            // "up-to-date contents of the underlying mapped file"), and by the contract of `Storage::map` those are the
            // bytes that any `&[u8]` into the mapping has seen. `start..end` lies within the mapping, as checked above.
            let _refused = unsafe {
                self.map.unchecked_advise_range(
                    memmap2::UncheckedAdvice::DontNeed,
                    start as usize,
                    (end - start) as usize,
                )
            };
            self.touched.unset(&(start..end));
        }
        #[cfg(not(unix))]
        let _ = ranges;
    }

    pub(super) fn memory(&self, files: &Files, nothing: MemoryUse) -> MemoryUse {
        let len = self.map.len() as u64;
        let mapping = mapping_in_smaps(self.map.as_ptr().addr() as u64, len);
        MemoryUse {
            resident_bytes: resident_bytes(files, &self.map),
            private_bytes: mapping.as_ref().map(|mapping| mapping.private),
            mapped_bytes: len,
            touched_bytes: mapping.as_ref().map(|mapping| mapping.rss),
            ..nothing
        }
    }
}

/// Asks the kernel to read the pages of these ranges.
pub(super) fn prefetch(files: &Files, ranges: &[Range<u64>]) {
    let mut runs = PageRuns::new(files);
    for range in ranges {
        let end = range.end.min(files.end());
        if range.start < end {
            runs.add(range.start >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT);
        }
    }
    runs.ask();
}

/// How many runs are collected: enough for a sample of many attributes. Longer lists are asked for part by part.
const PAGE_RUNS: usize = 64;

/// Runs of pages to be asked for, collected so that neighbours become one request. Lives on the stack: the path of a
/// cold access allocates nothing either.
struct PageRuns<'a> {
    files: &'a Files,
    /// First and last page, sorted by the first.
    runs: [(u64, u64); PAGE_RUNS],
    len: usize,
}

impl<'a> PageRuns<'a> {
    /// The kernel cuts a single request to what the device reads ahead or takes in one go, whichever is more, and
    /// forgets the rest. This is the default of the former and a size that every device takes.
    const REQUEST: u64 = 128 << 10;

    fn new(files: &'a Files) -> Self {
        Self { files, runs: [(0, 0); PAGE_RUNS], len: 0 }
    }

    fn add(&mut self, first: u64, last: u64) {
        if self.len == PAGE_RUNS {
            self.ask();
        }
        // By insertion: a sample's ranges come almost in order.
        let mut at = self.len;
        while at > 0 && self.runs[at - 1].0 > first {
            self.runs[at] = self.runs[at - 1];
            at -= 1;
        }
        self.runs[at] = (first, last);
        self.len += 1;
    }

    /// Sends the requests, and is empty afterwards.
    fn ask(&mut self) {
        let mut runs = self.runs[..self.len].iter().copied();
        if let Some((mut first, mut last)) = runs.next() {
            for (next_first, next_last) in runs {
                if next_first <= last + 1 {
                    last = last.max(next_last);
                } else {
                    self.request(first, last);
                    (first, last) = (next_first, next_last);
                }
            }
            self.request(first, last);
        }
        self.len = 0;
    }

    /// Starts reading the pages from `first` to `last`. An error is no news to anyone: the reads that follow will meet
    /// it again if it matters.
    fn request(&self, first: u64, last: u64) {
        let mut start = first << PAGE_SHIFT;
        let end = (last + 1) << PAGE_SHIFT;
        while start < end {
            let index = self.files.index_at(start);
            let place = &self.files.places()[index].positions;
            let Some(file) = self.files.handle(index).filter(|_| start < place.end) else {
                // Behind a file, where the next one is to come.
                let Some(next) = self.files.places().get(index + 1) else { return };
                start = next.positions.start;
                continue;
            };
            let len = (end.min(place.end) - start).min(Self::REQUEST);
            will_need(file.file(), start - place.start, len);
            start += len;
        }
    }
}

/// POSIX_FADV_WILLNEED, for mapped files too: MADV_WILLNEED comes down to it after it has looked up the mapping, which
/// takes as long again (seven pages in memory: 3.2 µs by fadvise, 7.2 by madvise, 5.0 by one process_madvise).
fn will_need(file: &File, start: u64, len: u64) {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    if let Some(len) = std::num::NonZeroU64::new(len) {
        let _refused = rustix::fs::fadvise(file, start, Some(len), rustix::fs::Advice::WillNeed);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let _ = (file, start, len);
}

#[cfg_attr(not(unix), allow(dead_code, reason = "pages are given back on unix only"))]
fn page_size() -> u64 {
    #[cfg(unix)]
    return rustix::param::page_size() as u64;
    #[cfg(not(unix))]
    return 4096;
}

/// Pages that the bits and requests are counted in: 4 KiB, also where the system's are larger, so that the shift is a
/// constant. The kernel rounds requests to its own pages.
const PAGE_SHIFT: u32 = 12;

/// One bit for each page of a mapped file: set once the page has been asked for.
///
/// A page fault waits for the disk, and a sample lies in several places; faulting on one after the other costs one
/// latency each. Asking for all of them first costs one in all, but a system call for each, which is more than the
/// whole access takes once the pages are there. So it has to be known cheaply whether a page was touched before.
/// `mincore` would be a system call as well, and lies to those who do not own the file. These bits are a guess, and may
/// be wrong both ways at no harm:
///
/// - clear although the page is there (another process read it): one needless request;
/// - set although the page is gone (evicted): the access waits for each of its pages. This thread's major faults then
///   grow, which every [`LOOK_EVERY`]th call of a thread notices; the bits are cleared and the guessing starts anew.
///
/// Relaxed loads and stores do: no other memory depends on a bit.
struct TouchedPages {
    words: Vec<AtomicU64>,
    /// A bit for each [`WORDS_PER_PART`] words, set when one of them was written: what is to be cleared. The words come
    /// as zeroed memory that takes no space until it is written, and clearing must not write all of it.
    parts: Vec<AtomicU64>,
}

/// Words that one bit of `parts` stands for: a page of them, 128 MiB of the file.
const WORDS_PER_PART: usize = 512;

impl TouchedPages {
    fn new(len: u64) -> Self {
        // It was mapped, so its length fits into usize, and so does a 32,768th of it.
        let words = len.div_ceil(1 << PAGE_SHIFT).div_ceil(64) as usize;
        Self {
            words: bytemuck::zeroed_vec(words),
            parts: bytemuck::zeroed_vec(words.div_ceil(WORDS_PER_PART).div_ceil(64)),
        }
    }

    /// First and last page of a range, if it has any.
    #[inline]
    fn pages(&self, range: &Range<u64>) -> Option<(u64, u64)> {
        (range.start < range.end)
            .then(|| (range.start >> PAGE_SHIFT, (range.end - 1) >> PAGE_SHIFT))
    }

    /// Whether all pages of a range have been touched. Pages behind the end count as touched: there is nothing to ask.
    #[inline]
    fn has(&self, range: &Range<u64>) -> bool {
        let Some((first, last)) = self.pages(range) else { return true };
        if first / 64 != last / 64 {
            return self.missing(range).is_none();
        }
        let mask = mask(first % 64, last % 64);
        match self.words.get((first / 64) as usize) {
            Some(word) => word.load(Ordering::Relaxed) & mask == mask,
            None => true,
        }
    }

    /// The first and the last page of a range that were never touched.
    // Kept out of the hot path: inlined there, it doubles what a warm access costs.
    #[inline(never)]
    fn missing(&self, range: &Range<u64>) -> Option<(u64, u64)> {
        let mut found: Option<(u64, u64)> = None;
        self.for_each_word(range, |index, word, mask| {
            let clear = !word.load(Ordering::Relaxed) & mask;
            if clear != 0 {
                let base = index as u64 * 64;
                let first = base + u64::from(clear.trailing_zeros());
                let last = base + 63 - u64::from(clear.leading_zeros());
                found = Some((found.map_or(first, |(first, _)| first), last));
            }
        });
        found
    }

    fn set(&self, range: &Range<u64>) {
        self.for_each_word(range, |index, word, mask| {
            word.fetch_or(mask, Ordering::Relaxed);
            let part = index / WORDS_PER_PART;
            self.parts[part / 64].fetch_or(1 << (part % 64), Ordering::Relaxed);
        });
    }

    #[cfg_attr(not(unix), allow(dead_code, reason = "pages are given back on unix only"))]
    fn unset(&self, range: &Range<u64>) {
        self.for_each_word(range, |_, word, mask| {
            if word.load(Ordering::Relaxed) & mask != 0 {
                word.fetch_and(!mask, Ordering::Relaxed);
            }
        });
    }

    fn clear(&self) {
        for (index, part) in self.parts.iter().enumerate() {
            let mut dirty = part.swap(0, Ordering::Relaxed);
            while dirty != 0 {
                let start = (index * 64 + dirty.trailing_zeros() as usize) * WORDS_PER_PART;
                let end = (start + WORDS_PER_PART).min(self.words.len());
                for word in &self.words[start..end] {
                    word.store(0, Ordering::Relaxed);
                }
                dirty &= dirty - 1;
            }
        }
    }

    fn for_each_word(&self, range: &Range<u64>, mut f: impl FnMut(usize, &AtomicU64, u64)) {
        let Some((first, last)) = self.pages(range) else { return };
        let end = (last / 64 + 1).min(self.words.len() as u64) as usize;
        let start = (first / 64).min(end as u64) as usize;
        for (index, word) in (start..).zip(&self.words[start..end]) {
            let base = index as u64 * 64;
            f(index, word, mask(first.saturating_sub(base), (last - base).min(63)));
        }
    }
}

/// The bits from `first` to `last`, both included.
#[inline]
fn mask(first: u64, last: u64) -> u64 {
    (u64::MAX >> (63 - (last - first))) << first
}

/// How many calls of [`Mapped::touch`] a thread makes between two looks at its page faults. A look costs about half a
/// microsecond, so a call's share of it is two nanoseconds.
const LOOK_EVERY: u32 = 256;

/// Major faults between two looks that are put up with: below this, waiting for them costs less than asking again for
/// everything that was ever touched.
const FAULTS_ALLOWED: i64 = 8;

thread_local! {
    static LOOK: Look = const { Look { calls_left: Cell::new(0), faults_seen: Cell::new(-1) } };
}

/// What a thread remembers between two looks at its page faults.
struct Look {
    calls_left: Cell<u32>,
    /// Major faults at the last look; negative before the first.
    faults_seen: Cell<i64>,
}

#[inline]
fn time_to_look() -> bool {
    LOOK.with(|look| {
        let left = look.calls_left.get();
        let due = left == 0;
        look.calls_left.set(if due { LOOK_EVERY - 1 } else { left - 1 });
        due
    })
}

/// Whether the faults since the last look are too many.
///
/// The look belongs to the thread and not to a file, since the count does; which file's bits are cleared is whichever
/// is being touched. With many files touched in turn each is cleared as often, in proportion to its accesses, as one
/// alone would be.
fn waited_too_often(faults: i64) -> bool {
    LOOK.with(|look| {
        let seen = look.faults_seen.replace(faults);
        seen >= 0 && faults - seen > FAULTS_ALLOWED
    })
}

/// What this thread has waited for and read so far (on systems that count by process: the process).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DiskUse {
    /// Page faults that had to wait for the disk.
    pub major_faults: u64,
    /// Blocks of 512 bytes that this thread had the disk read, by faults, reads or requests to read ahead. Bytes that
    /// were in the page cache count nothing, and so this tells a cold file from a warm one at the price of one system
    /// call for as many ranges as one likes. 0 on systems and filesystems that do not count.
    pub blocks_read: u64,
}

/// See [`DiskUse`]. Takes about a third of a microsecond.
pub(crate) fn disk_use() -> Option<DiskUse> {
    #[cfg(unix)]
    {
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
        const WHO: libc::c_int = libc::RUSAGE_THREAD;
        #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
        const WHO: libc::c_int = libc::RUSAGE_SELF;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage(2) writes one `struct rusage` to where its second argument points; that is writable memory
        // of this type, and nothing else refers to it.
        let outcome = unsafe { libc::getrusage(WHO, usage.as_mut_ptr()) };
        if outcome != 0 {
            return None;
        }
        // SAFETY: `rusage` has integer fields only, for which every bit pattern is valid, and all of it was zeroed.
        let usage = unsafe { usage.assume_init() };
        // Counters; a long that is negative after all counts as 0.
        Some(DiskUse {
            major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
            blocks_read: u64::try_from(usage.ru_inblock).unwrap_or(0),
        })
    }
    #[cfg(not(unix))]
    None
}

/// How many times this thread has waited for the disk in a page fault.
fn major_faults() -> Option<i64> {
    disk_use().map(|usage| i64::try_from(usage.major_faults).unwrap_or(i64::MAX))
}

/// Bytes of files in the page cache: see [`resident_bytes`]. Maps them for the purpose, and touches no page of the
/// mappings.
pub(super) fn cached_bytes(files: &Files) -> Option<u64> {
    if !may_see_residency(files) {
        return None;
    }
    files
        .open_files()
        .map(|(file, place)| {
            let len = usize::try_from(place.positions.end - place.positions.start).ok()?;
            if len == 0 {
                return Some(0);
            }
            // SAFETY: `MmapOptions::map` asks that the file be not modified as long as its bytes can be seen through the
            // mapping. Nobody looks at them: the mapping does not leave this function, which passes its address to
            // mincore(2) alone, and that reads no page.
            let map = unsafe { MmapOptions::new().len(len).map(file.file()) }.ok()?;
            pages_in_memory(&map)
        })
        .sum()
}

/// Bytes of a mapping whose pages are in the page cache. `None` where the kernel would not tell the truth.
fn resident_bytes(files: &Files, map: &Mmap) -> Option<u64> {
    if may_see_residency(files) { pages_in_memory(map) } else { None }
}

/// Bytes of a mapping whose pages are in memory.
fn pages_in_memory(map: &Mmap) -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        /// Pages of one call, and bytes of the buffer that tells of them.
        const PAGES: usize = 16 << 10;
        let page = page_size() as usize;
        let mut flags = vec![0u8; PAGES.min(map.len().div_ceil(page))];
        let mut resident = 0;
        for chunk in map.chunks(PAGES * page) {
            // SAFETY: mincore(2) writes one byte for each page of the `length` bytes from `addr` on: `flags` has at
            // least as many, PAGES or the number of pages of the whole mapping. `addr` has to be a multiple of the page
            // size: a mapping starts at one, and so does each chunk of it. The pages themselves are not read.
            let outcome = unsafe {
                libc::mincore(chunk.as_ptr().cast_mut().cast(), chunk.len(), flags.as_mut_ptr())
            };
            if outcome != 0 {
                return None;
            }
            let pages = chunk.len().div_ceil(page);
            resident += flags[..pages].iter().filter(|&&flag| flag & 1 != 0).count() * page;
        }
        Some((resident as u64).min(map.len() as u64))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = map;
        None
    }
}

/// Whether the kernel tells this process which pages of the files are in memory.
fn may_see_residency(files: &Files) -> bool {
    files.open_files().all(|(file, _)| may_see_residency_of(file.file()))
}

/// The same of one file. Since Linux 5.2 that is a secret among
/// those who own the file or may write it (`can_do_mincore` in mm/mincore.c); to others every page is said to be there.
fn may_see_residency_of(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::MetadataExt;
        let owner = file
            .metadata()
            .is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw());
        // By descriptor, as the path may lead to another file by now.
        owner
            || rustix::fs::accessat(
                rustix::fs::CWD,
                format!("/proc/self/fd/{}", file.as_raw_fd()),
                rustix::fs::Access::WRITE_OK,
                rustix::fs::AtFlags::EACCESS,
            )
            .is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        false
    }
}

/// What /proc/self/smaps says about a mapping.
#[derive(Debug, PartialEq, Eq)]
struct InSmaps {
    rss: u64,
    private: u64,
}

/// Looks a mapping up by its address. `None` where there is no such file.
fn mapping_in_smaps(start: u64, len: u64) -> Option<InSmaps> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    parse_smaps(&std::fs::read_to_string("/proc/self/smaps").ok()?, start, len)
}

/// The kernel may keep one mapping as several entries, so all that overlap it are summed.
fn parse_smaps(smaps: &str, start: u64, len: u64) -> Option<InSmaps> {
    let mut sum = None;
    let mut ours = false;
    for line in smaps.lines() {
        let Some((head, rest)) = line.split_once([' ', '\t']) else { continue };
        if let Some(field) = head.strip_suffix(':') {
            if !ours {
                continue;
            }
            let kib = || rest.split_ascii_whitespace().next()?.parse::<u64>().ok();
            let sum: &mut InSmaps = sum.get_or_insert(InSmaps { rss: 0, private: 0 });
            match field {
                "Rss" => sum.rss += kib()? * 1024,
                "Private_Clean" | "Private_Dirty" => sum.private += kib()? * 1024,
                _ => {}
            }
        } else {
            let (low, high) = head.split_once('-')?;
            let low = u64::from_str_radix(low, 16).ok()?;
            let high = u64::from_str_radix(high, 16).ok()?;
            ours = low < start.saturating_add(len) && start < high;
        }
    }
    sum
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::storage::Backing;

    fn file_of(pages: u64) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..pages * page_size()).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn map(path: &Path) -> Storage {
        // SAFETY: the file lies in a folder that this test has made, and no test changes it while it is mapped.
        unsafe { Storage::map(path) }.unwrap()
    }

    fn mapped(storage: &Storage) -> &Mapped {
        match &storage.inner {
            Inner::Mapped(mapped) => mapped,
            _ => panic!("not mapped"),
        }
    }

    #[test]
    fn bits_follow_ranges() {
        let pages = TouchedPages::new(1000 * 4096);
        assert!(!pages.has(&(0..1)));
        assert!(pages.has(&(7..7)), "nothing is needed of an empty range");
        assert!(pages.has(&(1 << 40..1 << 41)), "nor behind the end");
        pages.set(&(4095..4097));
        assert!(pages.has(&(0..8192)));
        assert!(!pages.has(&(0..8193)));
        assert_eq!(pages.missing(&(0..4 * 4096)), Some((2, 3)));
        // Across words.
        pages.set(&(60 * 4096..200 * 4096));
        assert!(pages.has(&(60 * 4096..200 * 4096)));
        assert!(!pages.has(&(59 * 4096..61 * 4096)));
        assert!(!pages.has(&(199 * 4096..200 * 4096 + 1)));
        assert_eq!(pages.missing(&(0..1000 * 4096)), Some((2, 999)));
        assert_eq!(pages.missing(&(100 * 4096..202 * 4096)), Some((200, 201)));
        pages.unset(&(64 * 4096..128 * 4096));
        assert_eq!(pages.missing(&(60 * 4096..200 * 4096)), Some((64, 127)));
        pages.clear();
        assert!(pages.words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn clearing_reaches_every_part() {
        let page = 4096;
        let len = page * 64 * WORDS_PER_PART as u64 * 70;
        let pages = TouchedPages::new(len);
        for offset in [0, len / 3, len / 2, len - 1] {
            pages.set(&(offset..offset + 1));
            assert!(pages.has(&(offset..offset + 1)));
        }
        pages.clear();
        for offset in [0, len / 3, len / 2, len - 1] {
            assert!(!pages.has(&(offset..offset + 1)));
        }
    }

    #[test]
    fn bits_agree_with_a_plain_set() {
        let mut state = 1u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let pages = TouchedPages::new(777 * 4096 - 5);
        // The last word has bits for pages behind the end, which is all that is known of it there.
        let mut set = vec![false; 777usize.next_multiple_of(64)];
        for _ in 0..2000 {
            let start = random(777 * 4096);
            let most = 3 * 4096 * (1 + random(80));
            let range = start..start + random(most);
            let all: Vec<usize> = (0..set.len())
                .filter(|&p| (p as u64 * 4096) < range.end && range.start < (p as u64 + 1) * 4096)
                .filter(|_| !range.is_empty())
                .collect();
            let missing = all.iter().filter(|&&p| !set[p]).map(|&p| p as u64);
            let ends = missing.clone().min().zip(missing.max());
            assert_eq!(pages.has(&range), ends.is_none());
            assert_eq!(pages.missing(&range), ends);
            match random(3) {
                0 => {
                    pages.set(&range);
                    all.iter().for_each(|&p| set[p] = true);
                }
                1 => {
                    pages.unset(&range);
                    all.iter().for_each(|&p| set[p] = false);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn touching_marks_pages_and_only_under_random_access() {
        let (_folder, path) = file_of(100);
        let storage = map(&path);
        let page = page_size();
        let ranges = [5 * page..5 * page + 10, 70 * page - 1..72 * page];
        storage.advise(Access::Sequential);
        storage.touch(&ranges);
        assert!(!mapped(&storage).touched.has(&ranges[0]));
        storage.advise(Access::Random);
        storage.touch(&ranges);
        assert!(ranges.iter().all(|range| mapped(&storage).touched.has(range)));
        assert!(!mapped(&storage).touched.has(&(6 * page..6 * page + 1)));
        storage.release(std::slice::from_ref(&(0..71 * page + 5)));
        assert!(!mapped(&storage).touched.has(&ranges[0]));
        assert!(mapped(&storage).touched.has(&(71 * page..72 * page)), "only whole pages");
        let slice = storage.as_slice().unwrap();
        assert!(slice.iter().zip(0u64..).all(|(&byte, i)| byte == (i % 251) as u8));
    }

    #[test]
    fn more_ranges_than_room_and_ranges_beyond_the_end() {
        let (_folder, path) = file_of(300);
        let storage = map(&path);
        let page = page_size();
        let mut ranges: Vec<_> = (0..300).rev().map(|i| i * page..i * page + 1).collect();
        ranges.push(299 * page..u64::MAX);
        ranges.push(u64::MAX - 1..u64::MAX);
        #[expect(clippy::reversed_empty_ranges, reason = "a caller's mistake must do no harm")]
        ranges.push(9..3);
        storage.prefetch(&ranges);
        storage.touch(&ranges);
        storage.release(&ranges);
        assert!(storage.backing() == Backing::Mapped);
    }

    #[test]
    fn runs_of_pages_are_sorted_and_joined() {
        let (_folder, path) = file_of(1);
        let files = Files::open(&[path]).unwrap();
        let mut runs = PageRuns::new(&files);
        for (first, last) in [(9, 9), (3, 4), (5, 5), (1, 1), (3, 3)] {
            runs.add(first, last);
        }
        assert_eq!(runs.runs[..runs.len], [(1, 1), (3, 4), (3, 3), (5, 5), (9, 9)]);
        runs.ask();
        assert_eq!(runs.len, 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn prefetched_pages_arrive_and_no_others() {
        let (_folder, path) = file_of(600);
        let storage = map(&path);
        let file = storage.files.handle(0).unwrap().file();
        // Written back and dropped, so that what is resident afterwards was asked for.
        file.sync_all().unwrap();
        rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let page = page_size();
        if storage.memory().resident_bytes != Some(0) {
            return; // A filesystem without a cache to drop (tmpfs).
        }
        storage.touch(&[
            10 * page..11 * page,
            400 * page + 1..400 * page + 2,
            500 * page..501 * page,
        ]);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while storage.memory().resident_bytes < Some(3 * page) {
            assert!(std::time::Instant::now() < deadline, "{:?}", storage.memory());
            std::thread::yield_now();
        }
        // The filesystem may keep pages in larger units, but nowhere near the megabytes of read-ahead.
        let resident = storage.memory().resident_bytes.unwrap();
        assert!(resident <= 3 * 4 * page, "{resident}");
    }

    #[test]
    fn faults_clear_the_bits_only_when_there_are_many() {
        LOOK.with(|look| look.faults_seen.set(-1));
        assert!(!waited_too_often(1_000), "the first look only takes note");
        assert!(!waited_too_often(1_008));
        assert!(waited_too_often(1_017));
        assert!(!waited_too_often(1_017));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn evicted_pages_are_noticed() {
        let (_folder, path) = file_of(2000);
        let storage = map(&path);
        let inner = mapped(&storage);
        let page = page_size();
        let at = |i: u64| i * page..i * page + 1;
        (0..2000).for_each(|i| storage.touch(std::slice::from_ref(&at(i))));
        // As the kernel does when it needs memory: the pages go, the bits stay.
        let file = storage.files.handle(0).unwrap().file();
        file.sync_all().unwrap();
        // SAFETY: as in `release`: these pages have no content but the file's.
        unsafe { inner.map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) }.unwrap();
        rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        if storage.memory().resident_bytes != Some(0) {
            return; // A filesystem without a cache to drop (tmpfs).
        }
        let mut sum = 0;
        for i in 1..1200 {
            storage.touch(std::slice::from_ref(&at(i)));
            sum += u64::from(storage.as_slice().unwrap()[(i * page) as usize]);
            if !inner.touched.has(&at(1999)) {
                break;
            }
        }
        assert!(sum > 0 && !inner.touched.has(&at(1999)), "the bits were never cleared");
    }

    #[test]
    fn a_look_is_due_once_in_so_many_calls() {
        LOOK.with(|look| look.calls_left.set(0));
        let due = (0..LOOK_EVERY * 4).filter(|_| time_to_look()).count();
        assert_eq!(due, 4);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_tells_of_the_mapping() {
        let (_folder, path) = file_of(64);
        let storage = map(&path);
        let page = page_size();
        let before = storage.memory();
        assert_eq!(before.file_bytes, 64 * page);
        assert_eq!(before.mapped_bytes, 64 * page);
        assert_eq!(before.resident_bytes, Some(64 * page), "it was just written, by its owner");
        let sum: u64 = storage.as_slice().unwrap().iter().map(|&byte| u64::from(byte)).sum();
        assert!(sum > 0);
        let after = storage.memory();
        assert_eq!(after.touched_bytes, Some(64 * page));
        assert_eq!(after.private_bytes, Some(64 * page), "no other process maps it");
        storage.release(std::slice::from_ref(&(0..u64::MAX)));
        assert_eq!(storage.memory().touched_bytes, Some(0));
        assert_eq!(Storage::open(&path).unwrap().memory().resident_bytes, Some(64 * page));
    }

    #[test]
    fn smaps_entries_are_matched_by_address_and_summed() {
        let smaps = "\
00400000-00401000 r-xp 00000000 08:02 1 /bin/x
Rss:                   4 kB
Private_Clean:         4 kB
7f0000000000-7f0000002000 r--s 00000000 08:02 2 /d/a b: c.fence
Size:                  8 kB
Rss:                   8 kB
Private_Clean:         0 kB
Private_Dirty:         4 kB
VmFlags: rd sh mr mw me ms rr
7f0000002000-7f0000003000 r--s 00002000 08:02 2 /d/a b: c.fence
Rss:                   4 kB
Private_Clean:         4 kB
7f0000003000-7f0000004000 rw-p 00000000 00:00 0
Rss:                   4 kB
";
        assert_eq!(
            parse_smaps(smaps, 0x7f00_0000_0000, 0x3000),
            Some(InSmaps { rss: 12 << 10, private: 8 << 10 })
        );
        assert_eq!(parse_smaps(smaps, 0x5000_0000, 0x1000), None);
    }

    #[test]
    fn an_empty_file_is_mapped_as_nothing() {
        let (_folder, path) = file_of(0);
        let storage = map(&path);
        assert_eq!(storage.as_slice(), Some(&[][..]));
        let ranges = [0..10, 4096..5000];
        storage.touch(&ranges);
        storage.prefetch(&ranges);
        storage.release(&ranges);
        assert_eq!(storage.memory().file_bytes, 0);
    }
}
