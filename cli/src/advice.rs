//! Which backing fits, in reports.

#![forbid(unsafe_code)]

use std::io::Write;

use fencepost::plan::Recommendation;
use serde::Serialize;

use crate::failure::Result;
use crate::output::{BOLD, Output};

#[derive(Debug, Serialize)]
pub(crate) struct BackingReport {
    recommended: String,
    reason: String,
    resident: &'static str,
    resident_reason: String,
    filesystem: FilesystemReport,
    memory: Option<MemoryReport>,
}

#[derive(Debug, Serialize)]
struct FilesystemReport {
    name: String,
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct MemoryReport {
    available_bytes: u64,
    bound: &'static str,
}

impl From<&Recommendation> for BackingReport {
    fn from(advice: &Recommendation) -> Self {
        BackingReport {
            recommended: advice.backing.to_string(),
            reason: advice.reason.clone(),
            resident: advice.resident.name(),
            resident_reason: advice.resident_reason(),
            filesystem: FilesystemReport {
                name: advice.filesystem.name.to_string(),
                kind: advice.filesystem.kind.name(),
            },
            memory: advice.memory.map(|memory| MemoryReport {
                available_bytes: memory.bytes,
                bound: memory.bound.name(),
            }),
        }
    }
}

impl BackingReport {
    pub(crate) fn print(&self, out: &mut Output) -> Result<()> {
        writeln!(out, "{BOLD}backing for this machine: {}{BOLD:#}", self.recommended)?;
        writeln!(out, "  {}.", self.reason)?;
        writeln!(out, "  {}.", self.resident_reason)?;
        Ok(())
    }
}
