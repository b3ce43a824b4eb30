//! States of a loader: any text, and right texts with any numbers in them.

use fencepost::{Dataset, Loader, OnError};
use serde_json::Value as Json;

pub fn loader_state(input: &[u8]) {
    let Some((&which, rest)) = input.split_first() else { return };
    let files = crate::golden();
    let dataset = Dataset::from_bytes(&files[usize::from(which >> 3) % files.len()]);
    let mut builder =
        Loader::builder(dataset.expect("a golden file")).batch_size(2).on_error(OnError::Skip);
    if which & 1 != 0 {
        builder = builder.shuffle(7);
    }
    if which & 2 != 0 {
        builder = builder.rank(1, 2).drop_last(true);
    }
    let Ok(loader) = builder.build() else { return };
    let text = if which & 4 == 0 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        let mut state: Json = serde_json::from_str(&loader.state_dict()).expect("a state is JSON");
        let keys = ["epoch", "consumed", "fencepost_loader", "file", "rows"];
        for (key, number) in keys.iter().zip(rest.chunks_exact(8)) {
            let number = u64::from_le_bytes(number.try_into().expect("eight bytes"));
            state[*key] = number.into();
            if *key == "consumed" {
                break;
            }
        }
        state.to_string()
    };
    if let Err(error) = loader.load_state_dict(&text) {
        assert!(matches!(error, fencepost::Error::LoaderState { .. }), "{error}");
        return;
    }
    // What was taken goes on from there, and its own state is taken again.
    for epoch in 0..2 {
        let mut left = loader.num_batches().unwrap_or(0);
        for batch in loader.iter().take(20) {
            if batch.is_err() {
                break;
            }
            left = left.checked_sub(1).expect("more batches than were promised");
        }
        let state = loader.state_dict();
        loader.load_state_dict(&state).unwrap_or_else(|error| panic!("epoch {epoch}: {error}"));
    }
}
