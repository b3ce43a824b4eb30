//! Runs this very program again under a memory limit of its own, page cache counted.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// What a limited run came to.
#[derive(Debug)]
pub(crate) struct Limited {
    pub status: ExitStatus,
    /// Most bytes that the group used, page cache included.
    pub peak: u64,
}

/// A control group that is removed when dropped.
struct Group {
    path: PathBuf,
    peak: &'static str,
}

impl Drop for Group {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir(&self.path);
    }
}

impl Group {
    /// Under cgroup v2 where it has the memory controller, under v1 elsewhere. Needs the rights to make one.
    fn new(bytes: u64) -> std::io::Result<Self> {
        let name = format!("fencepost-bench-{}", std::process::id());
        let unified = Path::new("/sys/fs/cgroup/cgroup.controllers");
        let (root, limit, peak) = if unified.exists() {
            ("/sys/fs/cgroup", "memory.max", "memory.peak")
        } else {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes")
        };
        let path = Path::new(root).join(name);
        std::fs::create_dir(&path)?;
        let group = Group { path, peak };
        std::fs::write(group.path.join(limit), bytes.to_string())?;
        Ok(group)
    }
}

/// Runs `arguments` with this program in a group limited to `bytes`. An error means that there is no such group to be
/// had here: the caller reports the run as skipped, never as passed.
pub(crate) fn run_limited(bytes: u64, arguments: &[&str]) -> std::io::Result<Limited> {
    let group = Group::new(bytes)?;
    // The shell joins the group before it becomes the program, so that the program's first page counts.
    let status = Command::new("sh")
        .arg("-c")
        .arg(r#"echo $$ > "$0/cgroup.procs" && exec "$@""#)
        .arg(&group.path)
        .arg(std::env::current_exe()?)
        .args(arguments)
        .status()?;
    let peak = std::fs::read_to_string(group.path.join(group.peak))?;
    Ok(Limited { status, peak: peak.trim().parse().unwrap_or(0) })
}
