//! A new file gets its name only when it is complete.
//!
//! It is written under a temporary name in the folder of its target, and then: its bytes are synced, it is renamed, the
//! folder is synced. In this order, because a name may reach the disk before the bytes it stands for: without the first
//! sync a loss of power can leave a torn file under the final name. The second sync makes "it is written" true when we
//! say it.
//!
//! The writer holds a lock on the temporary file. The system drops it when the process ends, however it ends, so a
//! temporary file without a lock belongs to nobody, and the next writer to the same target removes it.

#![forbid(unsafe_code)]

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::{NamedTempFile, TempPath};

use super::disk::{Disk, RealDisk};
use crate::error::{Error, Result};

/// End of the temporary names: `.{target}.{random}.fence-tmp`.
const TEMP_SUFFIX: &str = ".fence-tmp";

/// End of the names of files that are complete but could not be published: `{target}.{random}.unpublished`. Another one
/// than that of the temporary names, so that no later writer takes them for litter.
const KEPT_SUFFIX: &str = ".unpublished";

/// How much of the target's name goes into the temporary one: names end at 255 bytes on most filesystems.
const MAX_STEM_BYTES: usize = 200;

/// As many links in a row as Linux follows.
const MAX_LINKS: usize = 40;

/// What to do about a file that has the target's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Publish {
    /// Take its place. It stays whole until that moment.
    Replace,
    /// Leave it alone: publishing is an error.
    New,
}

/// A file that is being written, and has no name yet but a temporary one.
///
/// Dropped, it is removed. The target is not touched before [`publish`](PendingFile::publish).
///
/// A target that is a symbolic link is followed: the file that it leads to is replaced, or made, and the link stays.
/// [`Publish::New`] refuses any link, as opening with `create_new` does.
///
/// ```
/// use std::io::Write;
/// use fencepost::storage::{PendingFile, Publish};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let target = folder.path().join("numbers");
/// let pending = PendingFile::create(&target, Publish::New)?;
/// pending.file().write_all(b"1 2 3")?;
/// assert!(!target.exists());
/// pending.publish()?;
/// assert_eq!(std::fs::read(&target)?, b"1 2 3");
/// # Ok(())
/// # }
/// ```
pub struct PendingFile {
    /// As the caller named it, for messages.
    named: Box<Path>,
    /// Where it is going to be: absolute, links followed.
    target: PathBuf,
    mode: Publish,
    // The file comes before the path: Windows removes no open file.
    file: File,
    temp: TempPath,
    disk: Arc<dyn Disk>,
}

impl PendingFile {
    /// Begins a file that shall be named `target`, and removes what dead writers to the same target left behind.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] under [`Publish::New`] if the name is taken; [`Error::Io`] if the target is a folder, a
    /// device or a pipe, or if no file can be made in its folder.
    pub fn create(target: impl AsRef<Path>, mode: Publish) -> Result<Self> {
        Self::create_on(Arc::new(RealDisk), target, mode)
    }

    /// [`create`](PendingFile::create), on a disk of the caller's.
    ///
    /// # Errors
    ///
    /// As for [`create`](PendingFile::create).
    pub fn create_on(disk: Arc<dyn Disk>, target: impl AsRef<Path>, mode: Publish) -> Result<Self> {
        let named = target.as_ref();
        let target = resolve(named, mode)?;
        let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it has no file name");
            return Err(Error::io("write", named, source));
        };
        let stem = stem(&name.to_string_lossy());
        remove_leftovers(&*disk, folder, &stem);
        let (file, temp) = create_locked(folder, &stem)
            .map_err(|source| Error::io("make a temporary file beside", named, source))?;
        Ok(Self { named: named.into(), mode, file, temp, disk, target })
    }

    /// The file, open for reading and writing. Its lock belongs to this handle: leave it be.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The target, as the caller named it.
    pub fn target(&self) -> &Path {
        &self.named
    }

    /// The folder that the file is in.
    pub fn folder(&self) -> &Path {
        // `create_on` has made a file in it.
        self.target.parent().unwrap_or(Path::new("."))
    }

    /// The disk that the file is on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Begins anew with an empty file, and gives the one so far back, which has no name any more.
    ///
    /// # Errors
    ///
    /// As for [`create`](PendingFile::create). This file stays as it was then.
    pub fn renew(&mut self) -> Result<File> {
        let fresh = Self::create_on(self.disk.clone(), &self.named, self.mode)?;
        let old = std::mem::replace(self, fresh);
        // Its name goes with `old.temp`; a file that is open does not mind.
        Ok(old.file)
    }

    /// Gives the file its name: afterwards it is there, complete, and stays after a loss of power.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if the bytes cannot be made durable. Nothing was published, and the file is removed; or, should
    ///   the message speak of the folder, the file was published, and its name may not survive a loss of power.
    /// - [`Error::AlreadyExists`] if the name was taken and was to be left alone. The file is removed.
    /// - [`Error::Publish`] if the file cannot be renamed, for example onto a file that is mapped on Windows. The file
    ///   is complete and kept under the name that the error tells.
    pub fn publish(self) -> Result<()> {
        let Self { named, target, mode, file, temp, disk } = self;
        disk.sync(&file)
            .map_err(|source| Error::io("make the bytes durable of", &*named, source))?;
        // From here on a failure keeps the file; a name that cannot be kept is one that is left to the next writer.
        let temp = temp
            .keep()
            .map_err(|failure| Error::io("keep the temporary file of", &*named, failure.error))?;
        let renamed = match mode {
            Publish::Replace => disk.rename(&temp, &target),
            Publish::New => disk.rename_new(&temp, &target),
        };
        if let Err(source) = renamed {
            if mode == Publish::New && source.kind() == io::ErrorKind::AlreadyExists {
                drop(file);
                let _litter = disk.remove(&temp);
                return Err(Error::AlreadyExists { path: named });
            }
            let kept = keep(&*disk, temp, &target);
            return Err(Error::Publish { path: named, kept: kept.into(), source });
        }
        // The lock was held until the file had its name, as somebody would have removed it otherwise.
        drop(file);
        disk.sync_folder(target.parent().unwrap_or(Path::new("."))).map_err(|source| {
            Error::io(
                "make the name durable (the file is complete and in place) in the folder of",
                &*named,
                source,
            )
        })
    }
}

impl fmt::Debug for PendingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingFile")
            .field("target", &self.target)
            .field("mode", &self.mode)
            .field("temp", &self.temp)
            .finish_non_exhaustive()
    }
}

/// Where the file is going to be: follows links, and refuses what a file must not replace.
fn resolve(named: &Path, mode: Publish) -> Result<PathBuf> {
    let failed = |source| Error::io("write", named, source);
    let mut target = std::path::absolute(named).map_err(failed)?;
    for _ in 0..MAX_LINKS {
        let metadata = match fs::symlink_metadata(&target) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(error) => return Err(failed(error)),
        };
        if metadata.is_dir() {
            let source = io::Error::new(io::ErrorKind::IsADirectory, "it is a folder");
            return Err(failed(source));
        }
        if mode == Publish::New {
            return Err(Error::AlreadyExists { path: named.into() });
        }
        if metadata.is_file() {
            return Ok(target);
        }
        if !metadata.is_symlink() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a pipe");
            return Err(failed(source));
        }
        let leads_to = fs::read_link(&target).map_err(failed)?;
        target.pop();
        target.push(leads_to);
    }
    Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "too many symbolic links")))
}

/// The target's name, or as much of it as fits into a longer name. Two long names may share it; since only files
/// without a lock are removed by it, that does no harm.
fn stem(name: &str) -> String {
    // `str::floor_char_boundary` is younger than the oldest toolchain that this has to compile with.
    let fits = (0..=MAX_STEM_BYTES.min(name.len())).rev().find(|&at| name.is_char_boundary(at));
    name[..fits.unwrap_or(0)].to_owned()
}

/// Makes a temporary file and locks it. Where there are no locks it does without: no other writer gets one either, so
/// none takes the file for litter.
fn create_locked(folder: &Path, stem: &str) -> io::Result<(File, TempPath)> {
    let prefix = format!(".{stem}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(TEMP_SUFFIX).rand_bytes(8);
    // The kernel takes the umask off, as for any file that is made the plain way.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        let (file, temp) = NamedTempFile::into_parts(builder.tempfile_in(folder)?);
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                // Another writer found it in the moment before the lock and is about to remove it.
                continue;
            }
            Err(TryLockError::Error(_unsupported)) => return Ok((file, temp)),
            // ... or has just done so.
            Ok(()) if temp.try_exists()? => return Ok((file, temp)),
            Ok(()) => {}
        }
    }
}

/// Removes temporary files of the same target that no living process holds. Litter is no reason to fail: what cannot be
/// looked at or removed stays.
fn remove_leftovers(disk: &dyn Disk, folder: &Path, stem: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_leftover = is_temp_name(&entry.file_name().to_string_lossy(), stem)
            // Not a link, which opening would follow, nor a pipe, which opening would wait for.
            && entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_leftover {
            continue;
        }
        // For writing, which is what some filesystems ask of an exclusive lock.
        let Ok(file) = File::options().write(true).open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            // Removed while we hold the lock: its maker, should it be just about to lock it, sees either.
            let _stays = disk.remove(&entry.path());
        }
    }
}

/// Whether `name` is `.{stem}.{random}.fence-tmp`. The random part has no dot, so a target `a` is not given the files
/// of a target `a.b`.
fn is_temp_name(name: &str, stem: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|rest| rest.strip_prefix(stem))
        .and_then(|rest| rest.strip_prefix('.'))
        .and_then(|rest| rest.strip_suffix(TEMP_SUFFIX))
        .is_some_and(|random| {
            !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Moves a complete file that could not be published out of the reach of the next writer, if that is possible, and
/// tells where it is.
fn keep(disk: &dyn Disk, temp: PathBuf, target: &Path) -> PathBuf {
    let name = temp.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let random = name
        .strip_suffix(TEMP_SUFFIX)
        .and_then(|rest| rest.rsplit_once('.'))
        .map_or(name.as_str(), |(_, random)| random);
    let stem = stem(&target.file_name().unwrap_or_default().to_string_lossy());
    let kept = temp.with_file_name(format!("{stem}.{random}{KEPT_SUFFIX}"));
    match disk.rename_new(&temp, &kept) {
        Ok(()) => kept,
        Err(_) => temp,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn pending(target: &Path, mode: Publish, bytes: &[u8]) -> PendingFile {
        let pending = PendingFile::create(target, mode).unwrap();
        pending.file().write_all(bytes).unwrap();
        pending
    }

    #[test]
    fn the_old_file_stays_whole_until_the_new_one_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.fence");
        fs::write(&target, b"old").unwrap();
        let new = pending(&target, Publish::Replace, b"new");
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder.path()).len(), 2);
        new.publish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.fence"]);
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(pending(&folder.path().join("a.fence"), Publish::Replace, b"half"));
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn new_refuses_what_exists_at_both_ends() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.fence");
        let new = pending(&target, Publish::New, b"new");
        fs::write(&target, b"was faster").unwrap();
        assert!(matches!(new.publish(), Err(Error::AlreadyExists { path }) if *path == *target));
        assert!(matches!(
            PendingFile::create(&target, Publish::New),
            Err(Error::AlreadyExists { .. })
        ));
        assert_eq!(fs::read(&target).unwrap(), b"was faster");
        assert_eq!(names(folder.path()), ["a.fence"]);
        let other = folder.path().join("b.fence");
        pending(&other, Publish::New, b"b").publish().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"b");
    }

    #[test]
    fn leftovers_are_removed_and_live_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.fence");
        for name in [".a.fence.AbC123.fence-tmp", ".a.fence.zzzzzzzz.fence-tmp"] {
            fs::write(folder.path().join(name), b"dead").unwrap();
        }
        let others = [
            ".a.fence.b.AbC123.fence-tmp", // of the target a.fence.b
            ".b.fence.AbC123.fence-tmp",
            ".a.fence..fence-tmp",
            "a.fence.AbC123.unpublished",
        ];
        for name in others {
            fs::write(folder.path().join(name), b"not ours").unwrap();
        }
        let first = pending(&target, Publish::Replace, b"first");
        let second = pending(&target, Publish::Replace, b"second");
        assert_eq!(names(folder.path()).len(), others.len() + 2);
        second.publish().unwrap();
        first.publish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"first");
        let mut expected: Vec<_> = others.iter().map(|&name| name.to_owned()).collect();
        expected.push("a.fence".to_owned());
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn writers_that_clean_up_at_once_do_not_remove_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.fence");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        pending(&target, Publish::Replace, b"whole").publish().unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["a.fence"]);
    }

    #[test]
    fn folders_and_missing_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [Publish::Replace, Publish::New] {
            let error = PendingFile::create(folder.path(), mode).unwrap_err();
            assert!(
                matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::IsADirectory),
                "{error}"
            );
            let error = PendingFile::create(folder.path().join("no/a.fence"), mode).unwrap_err();
            assert!(
                matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound),
                "{error}"
            );
        }
        assert!(PendingFile::create("/", Publish::Replace).is_err());
        assert!(PendingFile::create("", Publish::Replace).is_err());
    }

    #[test]
    fn long_and_odd_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), "é".repeat(127), ".hidden".to_owned(), "a b\n".to_owned()] {
            let target = folder.path().join(name);
            pending(&target, Publish::Replace, b"1").publish().unwrap();
            assert_eq!(fs::read(&target).unwrap(), b"1");
        }
        assert_eq!(names(folder.path()).len(), 4);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("data");
        fs::create_dir(&inner).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("data/hop", &link).unwrap();
        std::os::unix::fs::symlink("real.fence", inner.join("hop")).unwrap();
        // It leads nowhere yet: the file is made where it points.
        pending(&link, Publish::Replace, b"1").publish().unwrap();
        assert_eq!(fs::read(inner.join("real.fence")).unwrap(), b"1");
        pending(&link, Publish::Replace, b"2").publish().unwrap();
        assert_eq!(fs::read(inner.join("real.fence")).unwrap(), b"2");
        assert!(link.is_symlink() && inner.join("hop").is_symlink());
        assert_eq!(names(&inner), ["hop", "real.fence"]);
        assert!(matches!(
            PendingFile::create(&link, Publish::New),
            Err(Error::AlreadyExists { .. })
        ));
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(matches!(PendingFile::create(&circle, Publish::Replace), Err(Error::Io { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_a_plain_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        File::create(&plain).unwrap();
        let target = folder.path().join("a.fence");
        pending(&target, Publish::Replace, b"1").publish().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&target), mode(&plain));
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused() {
        let error = PendingFile::create("/dev/null", Publish::Replace).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }

    /// A disk that fails one step.
    #[derive(Debug)]
    struct Failing(&'static str);

    impl Disk for Failing {
        fn sync(&self, file: &File) -> io::Result<()> {
            if self.0 == "sync" { Err(io::ErrorKind::StorageFull.into()) } else { file.sync_all() }
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            if self.0 == "rename" {
                Err(io::ErrorKind::PermissionDenied.into())
            } else {
                fs::rename(from, to)
            }
        }

        fn sync_folder(&self, folder: &Path) -> io::Result<()> {
            if self.0 == "sync_folder" {
                Err(io::ErrorKind::Other.into())
            } else {
                RealDisk.sync_folder(folder)
            }
        }
    }

    #[test]
    fn a_failed_step_leaves_the_old_file_or_the_new_one() {
        for (step, expected) in [("sync", "old"), ("rename", "old"), ("sync_folder", "new")] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("a.fence");
            fs::write(&target, b"old").unwrap();
            let disk = Arc::new(Failing(step));
            let new = PendingFile::create_on(disk, &target, Publish::Replace).unwrap();
            new.file().write_all(b"new").unwrap();
            let error = new.publish().unwrap_err();
            assert_eq!(fs::read_to_string(&target).unwrap(), expected, "{step}");
            if step == "rename" {
                let Error::Publish { kept, .. } = &error else { panic!("{error}") };
                assert_eq!(fs::read(kept).unwrap(), b"new");
                // The next writer takes the name and leaves the kept file alone.
                pending(&target, Publish::Replace, b"newer").publish().unwrap();
                assert_eq!(fs::read(kept).unwrap(), b"new");
                assert_eq!(names(folder.path()).len(), 2);
            } else {
                assert!(matches!(error, Error::Io { .. }), "{error}");
                assert_eq!(names(folder.path()), ["a.fence"], "{step}");
            }
        }
    }
}
