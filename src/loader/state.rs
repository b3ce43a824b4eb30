//! Where a loader is, as a small JSON text that another one goes on from.

#![forbid(unsafe_code)]

use serde_json::{Value as Json, json};

use crate::error::{Error, Result};

/// The version of the text.
const VERSION: u64 = 1;

/// What must be the same, and where one is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoaderState {
    /// Of the file: its fingerprint.
    pub file: String,
    /// Of the view: which samples, in which order.
    pub rows: String,
    pub sampler: Json,
    pub epoch: u64,
    /// Samples of all ranks together, or, with batches by size, batches.
    pub consumed: u64,
}

impl LoaderState {
    pub(super) fn to_text(&self) -> String {
        json!({
            "fencepost_loader": VERSION,
            "file": self.file,
            "rows": self.rows,
            "sampler": self.sampler,
            "epoch": self.epoch,
            "consumed": self.consumed,
        })
        .to_string()
    }

    /// Reads a text, and checks that it fits a loader whose own state is `here`.
    pub(super) fn parse(text: &str, here: &LoaderState) -> Result<(u64, u64)> {
        let differs = |what, saved: String, current: String, advice| Error::LoaderState {
            what,
            saved: saved.into(),
            current: current.into(),
            advice,
        };
        let not_a_state = |found: String| {
            differs(
                "the text",
                found,
                "a text from `state_dict`".into(),
                "hand back the text as it was given",
            )
        };
        let saved: Json =
            serde_json::from_str(text).map_err(|error| not_a_state(error.to_string()))?;
        match saved.get("fencepost_loader").and_then(Json::as_u64) {
            Some(VERSION) => {}
            Some(version) => {
                return Err(differs(
                    "the version",
                    version.to_string(),
                    VERSION.to_string(),
                    "use the fencepost that saved it",
                ));
            }
            None => return Err(not_a_state("other JSON".into())),
        }
        let number = |key: &str| {
            saved.get(key).and_then(Json::as_u64).ok_or_else(|| not_a_state(format!("no {key:?}")))
        };
        let compare = |what, key: &str, current: &Json, advice| {
            let saved = saved.get(key).unwrap_or(&Json::Null);
            if saved == current {
                Ok(())
            } else {
                Err(differs(what, saved.to_string(), current.to_string(), advice))
            }
        };
        compare(
            "the file",
            "file",
            &here.file.as_str().into(),
            "open the file that it was saved with",
        )?;
        compare(
            "the view",
            "rows",
            &here.rows.as_str().into(),
            "select the same samples in the same order",
        )?;
        compare(
            "the sampler",
            "sampler",
            &here.sampler,
            "build it with the same options; with another number of ranks, change the batch size so that their product stays",
        )?;
        Ok((number("epoch")?, number("consumed")?))
    }
}
