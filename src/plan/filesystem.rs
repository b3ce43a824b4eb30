//! Which filesystem a file lies on, and whether its bytes can be trusted to stay below a mapping.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use crate::error::{Error, Result};

/// The filesystem that a file lies on: [`filesystem`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filesystem {
    /// Its name, such as `ext4`; of an unknown one, its number.
    pub name: Cow<'static, str>,
    /// Where its bytes are.
    pub kind: FilesystemKind,
}

/// Where a filesystem has its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FilesystemKind {
    /// On a disk of this machine.
    Local,
    /// In memory.
    Memory,
    /// On another machine, or on the host of this virtual one.
    Network,
    /// In the hands of a process: FUSE.
    Fuse,
    /// Unknown.
    Unknown,
}

impl FilesystemKind {
    /// A short stable name, for reports: `"local"`, `"memory"`, `"network"`, `"fuse"`, `"unknown"`.
    pub fn name(self) -> &'static str {
        match self {
            FilesystemKind::Local => "local",
            FilesystemKind::Memory => "memory",
            FilesystemKind::Network => "network",
            FilesystemKind::Fuse => "fuse",
            FilesystemKind::Unknown => "unknown",
        }
    }
}

impl Filesystem {
    pub(super) fn new(name: impl Into<Cow<'static, str>>, kind: FilesystemKind) -> Self {
        Filesystem { name: name.into(), kind }
    }
}

impl fmt::Display for Filesystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The filesystem that a file or folder lies on.
///
/// # Errors
/// [`Error::Io`] if it does not exist, or the system cannot tell.
pub fn filesystem(path: impl AsRef<Path>) -> Result<Filesystem> {
    let path = path.as_ref();
    look(path).map_err(|source| Error::io("ask for the filesystem", path, source))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn look(path: &Path) -> std::io::Result<Filesystem> {
    let found = rustix::fs::statfs(path)?;
    // Its type differs from one architecture to the next, its numbers have 32 bits on all.
    Ok(by_magic(found.f_type as u64 as u32))
}

#[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
fn look(path: &Path) -> std::io::Result<Filesystem> {
    let found = rustix::fs::statfs(path)?;
    let name: Vec<u8> =
        found.f_fstypename.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    let name = String::from_utf8_lossy(&name).into_owned();
    let local = found.f_flags as u64 & libc::MNT_LOCAL as u64 != 0;
    let kind = if name.contains("fuse") {
        FilesystemKind::Fuse
    } else if local {
        FilesystemKind::Local
    } else {
        FilesystemKind::Network
    };
    Ok(Filesystem::new(name, kind))
}

#[cfg(windows)]
fn look(path: &Path) -> std::io::Result<Filesystem> {
    use std::path::{Component, Prefix};
    // A drive letter of a network share becomes the share's name.
    let path = path.canonicalize()?;
    let Some(Component::Prefix(prefix)) = path.components().next() else {
        return Ok(Filesystem::new("unknown", FilesystemKind::Unknown));
    };
    Ok(match prefix.kind() {
        Prefix::UNC(..) | Prefix::VerbatimUNC(..) => {
            Filesystem::new("a network share", FilesystemKind::Network)
        }
        Prefix::Disk(_) | Prefix::VerbatimDisk(_) => {
            Filesystem::new("a drive of this machine", FilesystemKind::Local)
        }
        _ => Filesystem::new("unknown", FilesystemKind::Unknown),
    })
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "macos",
    target_os = "ios",
    target_os = "freebsd",
    windows
)))]
fn look(path: &Path) -> std::io::Result<Filesystem> {
    path.metadata()?;
    Ok(Filesystem::new("unknown", FilesystemKind::Unknown))
}

/// Linux' numbers, `f_type` of `statfs`: linux/magic.h, and for filesystems outside of the kernel tree their own headers.
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
const KNOWN: &[(u32, &str, FilesystemKind)] = {
    use FilesystemKind::{Fuse, Local, Memory, Network};
    &[
        (0x0000_ef53, "ext4", Local),
        (0x5846_5342, "xfs", Local),
        (0x9123_683e, "btrfs", Local),
        (0x2fc1_2fc1, "zfs", Local),
        (0xf2f5_2010, "f2fs", Local),
        (0xca45_1a4e, "bcachefs", Local),
        (0x3153_464a, "jfs", Local),
        (0x5265_4973, "reiserfs", Local),
        (0x0000_3434, "nilfs", Local),
        (0x7366_746e, "ntfs", Local),
        (0x5346_544e, "ntfs", Local),
        (0x2011_bab0, "exfat", Local),
        (0x0000_4d44, "vfat", Local),
        (0x0000_482b, "hfs+", Local),
        (0x0000_9660, "iso9660", Local),
        (0x1501_3346, "udf", Local),
        (0x7371_7368, "squashfs", Local),
        (0xe0f5_e1e2, "erofs", Local),
        (0x28cd_3d45, "cramfs", Local),
        // A union of folders that are nearly always local: the root of a container.
        (0x794c_7630, "overlayfs", Local),
        (0x0000_f15f, "ecryptfs", Local),
        (0x0102_1994, "tmpfs", Memory),
        (0x8584_58f6, "ramfs", Memory),
        (0x9584_58f6, "hugetlbfs", Memory),
        (0x0000_6969, "nfs", Network),
        (0x0000_517b, "smb", Network),
        (0xff53_4d42, "cifs", Network),
        (0xfe53_4d42, "smb2", Network),
        (0x0bd0_0bd0, "lustre", Network),
        (0x4750_4653, "gpfs", Network),
        (0x00c3_6400, "ceph", Network),
        (0x0102_1997, "9p", Network),
        (0x1983_0326, "beegfs", Network),
        (0x5346_414f, "afs", Network),
        (0x6b41_4653, "afs", Network),
        (0x7375_7245, "coda", Network),
        (0x0000_564c, "ncpfs", Network),
        (0xaad7_aaea, "panfs", Network),
        (0x2003_0528, "orangefs", Network),
        // Shared disks: another machine may write what is mapped here.
        (0x0116_1970, "gfs2", Network),
        (0x7461_636f, "ocfs2", Network),
        // Folders of the host of a virtual machine.
        (0x786f_4256, "vboxsf", Network),
        (0xbacb_acbc, "vmhgfs", Network),
        (0x7c7c_6673, "prl_fs", Network),
        (0x6573_5546, "fuse", Fuse),
    ]
};

#[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
fn by_magic(magic: u32) -> Filesystem {
    match KNOWN.iter().find(|(known, ..)| *known == magic) {
        Some(&(_, name, kind)) => Filesystem::new(name, kind),
        None => Filesystem::new(format!("filesystem {magic:#x}"), FilesystemKind::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_network_filesystems_are_known() {
        for magic in
            [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0bd0_0bd0, 0x4750_4653, 0x00c3_6400]
        {
            assert_eq!(by_magic(magic).kind, FilesystemKind::Network, "{magic:#x}");
        }
        assert_eq!(by_magic(0x6573_5546), Filesystem::new("fuse", FilesystemKind::Fuse));
        assert_eq!(by_magic(0xef53), Filesystem::new("ext4", FilesystemKind::Local));
    }

    #[test]
    fn an_unknown_number_is_named() {
        let unknown = by_magic(0x1234);
        assert_eq!(unknown.kind, FilesystemKind::Unknown);
        assert_eq!(unknown.to_string(), "filesystem 0x1234");
    }

    #[test]
    fn no_number_stands_twice() {
        for (at, (magic, name, _)) in KNOWN.iter().enumerate() {
            assert!(KNOWN[at + 1..].iter().all(|(other, ..)| other != magic), "{name}");
        }
    }

    #[test]
    fn the_folder_of_the_tests_has_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(filesystem(folder.path()).is_ok());
        assert!(matches!(filesystem(folder.path().join("absent")), Err(Error::Io { .. })));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn proc_is_not_taken_for_a_disk() {
        assert_eq!(filesystem("/proc").unwrap().kind, FilesystemKind::Unknown);
    }
}
