//! Figures of the long runs, for `docs/reliability.md`: written by the runs themselves, so that nobody has to copy them.

#![allow(dead_code, reason = "each of its users takes its own part")]

use std::path::Path;

/// Whether this is a long run: `make crash` says so.
pub(crate) fn is_long() -> bool {
    std::env::var_os("FENCEPOST_LONG").is_some_and(|value| value != "0")
}

/// `long` in a long run, `short` in `make test`.
pub(crate) fn scaled(short: u64, long: u64) -> u64 {
    if is_long() { long } else { short }
}

/// Writes the figures of `topic` to the folder that FENCEPOST_RECORD names, if it does, and shows them.
pub(crate) fn record(topic: &str, figures: &[(&str, u64)]) {
    let figures: serde_json::Map<String, serde_json::Value> =
        figures.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    println!("{topic}: {}", serde_json::Value::from(figures.clone()));
    let Some(folder) = std::env::var_os("FENCEPOST_RECORD") else { return };
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock behind 1970")
        .as_secs();
    let text = serde_json::json!({ "finished": now, "long": is_long(), "figures": figures });
    let path = Path::new(&folder).join(format!("{topic}.json"));
    std::fs::create_dir_all(&folder).expect("the folder of records");
    std::fs::write(&path, format!("{text:#}\n")).expect("room for the record");
}
