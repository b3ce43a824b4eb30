//! What the fuzz targets do; the targets themselves only name one of these.
//!
//! A target fails by a panic, by a sanitizer's report, by taking too long, or by asking for more memory at once than the
//! limit that `ci/fuzz.sh` sets.

mod damage;
#[path = "../../tests/support/faults.rs"]
mod faults;
#[expect(dead_code, reason = "written for the vectors, of which this uses a part")]
#[path = "../../examples/make_vectors/forge.rs"]
mod forge;
mod importers;
mod mutate;
mod state;
mod touch;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use damage::{Damage, damage};
pub use importers::{CSV_FILES, TU_FILES, WHOLE_FILES, csv, graph6, npy, tu};
pub use mutate::{Mutation, mutate};
pub use state::loader_state;
pub use writer::{Work, writer};

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("fuzz/ has a parent")
}

/// The golden files, in the order of their names.
pub fn golden() -> &'static [Vec<u8>] {
    static GOLDEN: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    GOLDEN.get_or_init(|| {
        vectors("golden").iter().map(|path| std::fs::read(path).expect("a golden file")).collect()
    })
}

/// The paths of the golden or hostile files.
pub fn vectors(part: &str) -> Vec<PathBuf> {
    let folder = root().join("format-spec").join("vectors").join(part);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of vectors")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "fence"))
        .collect();
    paths.sort();
    paths
}

/// A folder of this process, in memory where the system has such a place.
pub(crate) fn scratch() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let make = || {
        let memory = Path::new("/dev/shm");
        let within = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        tempfile::Builder::new().prefix("fencepost-fuzz-").tempdir_in(within).expect("a folder")
    };
    FOLDER.get_or_init(make).path()
}

/// The directory of a file, as its header places it.
pub fn directory_of(file: &[u8]) -> Option<&[u8]> {
    let field = |at: usize| {
        let bytes = file.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (at, length) = (field(40)?, field(48)?);
    file.get(at..at.checked_add(length)?)
}

/// Any bytes.
pub fn open(bytes: &[u8]) {
    touch::touch(bytes);
}

/// Any bytes, with every checksum that can be found made right.
pub fn open_sealed(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    mutate::seal(&mut bytes);
    touch::touch(&bytes);
}

/// Any text as the directory of a file that is right otherwise, and as user metadata.
pub fn directory(text: &[u8]) {
    let file = golden().iter().max_by_key(|file| directory_of(file).map(<[u8]>::len));
    let mut forge = forge::Forge::open(file.expect("there are golden files"));
    let owned = text.to_vec();
    forge.text = Some(Box::new(move |directory: &mut Vec<u8>| directory.clone_from(&owned)));
    touch::touch(&forge.seal());
    if let Ok(text) = std::str::from_utf8(text) {
        // Refused or taken, and what is taken is what `metadata` gives back.
        let taken = fencepost::Writer::options().metadata(text);
        drop(taken);
    }
}
