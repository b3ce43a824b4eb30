//! How much memory this process may still use: what the system has, and what control groups and limits leave of it.
//!
//! Texts of the kernel are parsed by functions that get them as text; only `Proc` reads files.

#![forbid(unsafe_code)]

use std::fmt;
use std::path::{Path, PathBuf};

/// Memory that a process may still use: [`memory_available`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryAvailable {
    /// Bytes, what the kernel would take back from the page cache included.
    pub bytes: u64,
    /// What sets the bound.
    pub bound: MemoryBound,
}

/// What bounds the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryBound {
    /// The machine's memory.
    System,
    /// A control group: of a container, a service or a batch job.
    Cgroup,
    /// The limit of the process' address space (`ulimit -v`).
    AddressSpace,
}

impl MemoryBound {
    /// A short stable name, for reports: `"system"`, `"cgroup"`, `"address-space"`.
    pub fn name(self) -> &'static str {
        match self {
            MemoryBound::System => "system",
            MemoryBound::Cgroup => "cgroup",
            MemoryBound::AddressSpace => "address-space",
        }
    }
}

impl fmt::Display for MemoryBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryBound::System => "what the machine has to spare",
            MemoryBound::Cgroup => "limit of its control group",
            MemoryBound::AddressSpace => "limit of its address space",
        })
    }
}

/// The memory that this process may still use: the least of what the machine has to spare, what the process' control groups
/// (version 1 and 2, all the way up) leave it, and its address-space limit. `None` = the system does not tell, as anywhere but
/// on Linux.
///
/// It is a figure for planning. Other processes take memory as well, and nothing is reserved by asking.
pub fn memory_available() -> Option<MemoryAvailable> {
    let system = Proc { root: PathBuf::from("/") };
    least([
        (system.machine(), MemoryBound::System),
        (system.cgroups(), MemoryBound::Cgroup),
        (address_space_left(), MemoryBound::AddressSpace),
    ])
}

/// The machine's figure must be known: a limit alone does not say that the memory is there.
fn least(bounds: [(Option<u64>, MemoryBound); 3]) -> Option<MemoryAvailable> {
    bounds[0].0?;
    let known = bounds.into_iter().filter_map(|(bytes, bound)| Some((bytes?, bound)));
    // The first of equals: the machine.
    let (bytes, bound) = known.min_by_key(|(bytes, _)| *bytes)?;
    Some(MemoryAvailable { bytes, bound })
}

/// Bytes of addresses that this process may still map, or `None` if there is no limit.
pub(super) fn address_space_left() -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
        let pages = std::fs::read_to_string("/proc/self/statm").ok();
        let used = pages.as_deref().and_then(parse_first_number).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_mul(rustix::param::page_size() as u64)))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    None
}

/// The kernel's files, below a root that tests can choose.
struct Proc {
    root: PathBuf,
}

impl Proc {
    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        let below = path.strip_prefix("/").unwrap_or(path);
        std::fs::read_to_string(self.root.join(below)).ok()
    }

    fn machine(&self) -> Option<u64> {
        parse_meminfo(&self.read("/proc/meminfo")?)
    }

    /// The least that any control group above this process leaves, or `None` if none has a limit.
    fn cgroups(&self) -> Option<u64> {
        let groups = self.read("/proc/self/cgroup")?;
        let mounts = self.read("/proc/self/mountinfo")?;
        let mounts = parse_mounts(&mounts);
        let mut least = None;
        for (version, group) in parse_groups(&groups) {
            for mount in mounts.iter().filter(|mount| mount.version == version) {
                for folder in mount.levels(group) {
                    let left = match version {
                        Version::One => self.left_v1(&folder),
                        Version::Two => self.left_v2(&folder),
                    };
                    least = match (least, left) {
                        (Some(one), Some(other)) => Some(u64::min(one, other)),
                        (one, other) => one.or(other),
                    };
                }
            }
        }
        least
    }

    fn left_v2(&self, folder: &Path) -> Option<u64> {
        let limit = |name| self.read(folder.join(name)).as_deref().and_then(parse_first_number);
        // Beyond `high` the kernel slows the group down until it gives memory back: nothing to plan with.
        let limits = [limit("memory.max"), limit("memory.high")];
        let limit = limits.into_iter().flatten().min()?;
        let used = parse_first_number(&self.read(folder.join("memory.current"))?)?;
        let stat = self.read(folder.join("memory.stat")).unwrap_or_default();
        let file = parse_stat(&stat, ["inactive_file", "active_file", "slab_reclaimable"]);
        Some(limit.saturating_sub(used.saturating_sub(file)))
    }

    fn left_v1(&self, folder: &Path) -> Option<u64> {
        let number = |name| self.read(folder.join(name)).as_deref().and_then(parse_first_number);
        // "No limit" is the greatest multiple of a page below 2^63.
        let limit = number("memory.limit_in_bytes").filter(|&limit| limit < 1 << 62)?;
        let used = number("memory.usage_in_bytes")?;
        let stat = self.read(folder.join("memory.stat")).unwrap_or_default();
        let file = parse_stat(&stat, ["total_inactive_file", "total_active_file"]);
        Some(limit.saturating_sub(used.saturating_sub(file)))
    }
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn parse_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    parse_first_number(line)?.checked_mul(1024)
}

/// The first word as a number; `None` for `max`, or if there is none.
fn parse_first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The sum of some lines of `memory.stat`: page cache and kernel memory that can be taken back. Shared memory is not in it.
fn parse_stat<const K: usize>(text: &str, keys: [&str; K]) -> u64 {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(key, _)| keys.contains(key))
        .filter_map(|(_, value)| parse_first_number(value))
        .fold(0, u64::saturating_add)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The memory groups of `/proc/self/cgroup`: `4:memory:/path` of version 1, `0::/path` of version 2.
fn parse_groups(text: &str) -> Vec<(Version, &str)> {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            if number == "0" && controllers.is_empty() {
                Some((Version::Two, path))
            } else if controllers.split(',').any(|controller| controller == "memory") {
                Some((Version::One, path))
            } else {
                None
            }
        })
        .collect()
}

/// Where the groups of one version are mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// The group that is mounted.
    root: String,
    point: PathBuf,
}

/// The mounts of `/proc/self/mountinfo` that have memory limits.
fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            // id parent device root point options [optional...] - type source super-options
            let (mount, filesystem) = line.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(3);
            let (root, point) = (mount.next()?, mount.next()?);
            let mut filesystem = filesystem.split(' ');
            let (kind, options) = (filesystem.next()?, filesystem.nth(1).unwrap_or_default());
            let version = match kind {
                "cgroup2" => Version::Two,
                "cgroup" if options.split(',').any(|option| option == "memory") => Version::One,
                _ => return None,
            };
            Some(Mount { version, root: unescape(root), point: unescape(point).into() })
        })
        .collect()
}

/// mountinfo writes space, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

impl Mount {
    /// The folders of a group and of all groups above it that can be seen, innermost first.
    fn levels(&self, group: &str) -> Vec<PathBuf> {
        let below = match group.strip_prefix(self.root.trim_end_matches('/')) {
            // A group outside of the mount (`/..`, or another name space's path): the mount is all that is seen of it.
            Some(below) if !group.starts_with("/..") => below,
            _ => "",
        };
        let mut folder = self.point.clone();
        let mut levels = vec![folder.clone()];
        for part in below.split('/').filter(|part| !part.is_empty()) {
            folder.push(part);
            levels.push(folder.clone());
        }
        levels.reverse();
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str =
        "MemTotal:       24683656 kB\nMemFree:        20187748 kB\nMemAvailable:   23561708 kB\n";

    /// A tree of fake kernel files.
    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, Proc) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = folder.path().to_owned();
        (folder, Proc { root })
    }

    #[test]
    fn meminfo_counts_in_kib() {
        assert_eq!(parse_meminfo(MEMINFO), Some(23_561_708 * 1024));
        assert_eq!(parse_meminfo("MemTotal: 1 kB\n"), None);
        assert_eq!(parse_meminfo("MemAvailable: much kB\n"), None);
        assert_eq!(parse_meminfo("MemAvailable: 18446744073709551615 kB\n"), None);
    }

    #[test]
    fn groups_of_both_versions() {
        let text = "9:name=systemd:/\n4:cpu,memory:/jobs/17:a\n0::/user.slice\n";
        assert_eq!(
            parse_groups(text),
            [(Version::One, "/jobs/17:a"), (Version::Two, "/user.slice")]
        );
        assert_eq!(parse_groups("nonsense\n1:memory\n"), []);
    }

    #[test]
    fn mounts_of_both_versions() {
        let text = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                    32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                    35 31 0:32 /docker/a\\040b /sys/fs/cgroup/memory rw shared:9 master:2 - cgroup cgroup rw,memory\n\
                    41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(
            parse_mounts(text),
            [
                Mount {
                    version: Version::One,
                    root: "/docker/a b".into(),
                    point: "/sys/fs/cgroup/memory".into()
                },
                Mount {
                    version: Version::Two,
                    root: "/".into(),
                    point: "/sys/fs/cgroup/unified".into()
                },
            ]
        );
    }

    #[test]
    fn levels_go_up_to_the_mount() {
        let mount = |root: &str| Mount {
            version: Version::Two,
            root: root.into(),
            point: "/sys/fs/cgroup".into(),
        };
        let paths = |mount: &Mount, group| {
            let levels = mount.levels(group).into_iter();
            levels.map(|path| path.to_str().unwrap().replace('\\', "/")).collect::<Vec<_>>()
        };
        assert_eq!(
            paths(&mount("/"), "/a/b"),
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]
        );
        // A container that sees the host's path of its own group, mounted as the root.
        assert_eq!(
            paths(&mount("/docker/1"), "/docker/1/job"),
            ["/sys/fs/cgroup/job", "/sys/fs/cgroup"]
        );
        assert_eq!(paths(&mount("/docker/1"), "/elsewhere"), ["/sys/fs/cgroup"]);
        assert_eq!(paths(&mount("/"), "/../../x"), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn version_2_counts_the_tightest_level() {
        let (_folder, system) = system(&[
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "0::/outer/inner\n"),
            ("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/outer/memory.max", "1000000\n"),
            ("/sys/fs/cgroup/outer/memory.current", "900000\n"),
            (
                "/sys/fs/cgroup/outer/memory.stat",
                "anon 100\ninactive_file 300000\nactive_file 100000\n",
            ),
            ("/sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("/sys/fs/cgroup/outer/inner/memory.high", "max\n"),
            ("/sys/fs/cgroup/outer/inner/memory.current", "10\n"),
        ]);
        // 900000 are used, of which 400000 are page cache.
        assert_eq!(system.cgroups(), Some(500_000));
        assert_eq!(system.machine(), Some(23_561_708 * 1024));
    }

    #[test]
    fn version_2_counts_high_as_a_limit() {
        let (_folder, system) = system(&[
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/memory.max", "1000\n"),
            ("/sys/fs/cgroup/memory.high", "700\n"),
            ("/sys/fs/cgroup/memory.current", "100\n"),
        ]);
        assert_eq!(system.cgroups(), Some(600));
    }

    #[test]
    fn version_1_counts_its_hierarchy() {
        let (_folder, system) = system(&[
            ("/proc/self/cgroup", "4:memory:/job\n0::/\n"),
            (
                "/proc/self/mountinfo",
                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n"),
            ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "536870912\n"),
            ("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "536870912\n"),
            (
                "/sys/fs/cgroup/memory/job/memory.stat",
                "inactive_file 7\ntotal_inactive_file 400000000\ntotal_active_file 36870912\n",
            ),
        ]);
        assert_eq!(system.cgroups(), Some(436_870_912));
    }

    #[test]
    fn a_group_that_is_over_its_limit_has_nothing_left() {
        let (_folder, system) = system(&[
            ("/proc/self/cgroup", "0::/\n"),
            ("/proc/self/mountinfo", "41 31 0:38 / /g rw - cgroup2 cgroup2 rw\n"),
            ("/g/memory.max", "1000\n"),
            ("/g/memory.current", "2000\n"),
        ]);
        assert_eq!(system.cgroups(), Some(0));
    }

    #[test]
    fn without_limits_or_files_there_is_no_bound() {
        let (_folder, bare) = system(&[]);
        assert_eq!((bare.machine(), bare.cgroups()), (None, None));
        let (_folder, unlimited) = system(&[
            ("/proc/self/cgroup", "0::/a\n"),
            ("/proc/self/mountinfo", "41 31 0:38 / /g rw - cgroup2 cgroup2 rw\n"),
            ("/g/a/memory.max", "max\n"),
        ]);
        assert_eq!(unlimited.cgroups(), None);
    }

    #[test]
    fn the_least_bound_is_named() {
        let of = |system, cgroup, space| {
            least([
                (system, MemoryBound::System),
                (cgroup, MemoryBound::Cgroup),
                (space, MemoryBound::AddressSpace),
            ])
            .map(|memory| (memory.bytes, memory.bound))
        };
        assert_eq!(of(Some(5), None, None), Some((5, MemoryBound::System)));
        assert_eq!(of(Some(5), Some(5), Some(9)), Some((5, MemoryBound::System)));
        assert_eq!(of(Some(5), Some(4), Some(9)), Some((4, MemoryBound::Cgroup)));
        assert_eq!(of(Some(5), Some(4), Some(3)), Some((3, MemoryBound::AddressSpace)));
        assert_eq!(of(None, Some(4), None), None);
    }
}
