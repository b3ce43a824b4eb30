//! Runs the binary, and makes the files that the tests look at.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fencepost::{Attribute, DType, NewSample, Schema, StringsView, TensorView, Writer, dims};
use serde_json::Value as Json;

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// It went well and had nothing to say beside its data.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "stdout: {}", self.stdout);
        self.stdout
    }

    /// Its exit code, and an error on stderr that has this part.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, part: &str) {
        assert_eq!(self.code, Some(code), "stderr: {}", self.stderr);
        assert!(self.stderr.starts_with("error: "), "stderr: {}", self.stderr);
        assert!(self.stderr.contains(part), "{part:?} is not in {:?}", self.stderr);
        assert_eq!(self.stdout, "");
    }

    /// As [`fails`](Self::fails), where something was printed before.
    #[track_caller]
    pub(crate) fn fails_after_talk(self, code: i32, part: &str) {
        Run { stdout: String::new(), ..self }.fails(code, part);
    }

    /// One JSON document on one line, whatever the exit code.
    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        assert_eq!(self.stdout.matches('\n').count(), 1, "{}", self.stdout);
        assert!(self.stdout.ends_with('\n'));
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs with these arguments.
#[macro_export]
macro_rules! run {
    ($($argument:expr),* $(,)?) => {{
        let mut command = $crate::support::command();
        $(command.arg($argument);)*
        $crate::support::finish(command)
    }};
}

pub(crate) fn finish(mut command: Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn data() -> PathBuf {
    repository().join("examples/data")
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A file with something of everything that reports have a word for.
pub(crate) fn mixed(folder: &Path) -> PathBuf {
    let path = folder.join("mixed.fence");
    let schema = Schema::builder()
        .axis("nodes")
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 3]))
        .attribute(
            Attribute::new("edge_index", DType::I64, dims![2, "edges"])
                .increment_by("nodes")
                .stored(DType::U8),
        )
        .attribute(Attribute::new("größe", DType::F64, dims![]).optional())
        .attribute(Attribute::new("name", DType::Utf8, dims![]))
        .attribute(Attribute::new("raw", DType::Bytes, dims!["nodes"]))
        .build()
        .unwrap();
    let mut writer = Writer::options()
        .metadata(r#"{"source":"test","n":9223372036854775807}"#)
        .unwrap()
        .create(&path, schema)
        .unwrap();
    for index in 0..10usize {
        let nodes = index + 1;
        let x: Vec<f32> = (0..nodes * 3).map(|k| k as f32 / 2.0).collect();
        let edges: Vec<i64> = (0..2 * index).map(|k| (k % nodes) as i64).collect();
        let size = [if index == 3 { f64::NAN } else { index as f64 }];
        let name = format!("sample {index} ✓\u{1b}[31m");
        let raw: Vec<Vec<u8>> = (0..nodes).map(|k| vec![0xff; k]).collect();
        let raw: Vec<&[u8]> = raw.iter().map(Vec::as_slice).collect();
        let mut sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[nodes, 3]).unwrap())
            .tensor("edge_index", TensorView::from_slice(&edges, &[2, index]).unwrap())
            .text("name", &name)
            .strings("raw", StringsView::list_bytes(&raw, &[nodes]).unwrap());
        if index % 3 == 0 {
            sample = sample.tensor("größe", TensorView::from_slice(&size, &[]).unwrap());
        }
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// A file whose schema was inferred: each attribute has an axis of its own.
pub(crate) fn inferred(folder: &Path) -> PathBuf {
    let path = folder.join("inferred.fence");
    let mut writer = Writer::options().create_inferred(&path).unwrap();
    for index in 1..5usize {
        let x = vec![0.5f32; index * 4];
        let pos = vec![1.0f32; index * 3];
        let edges = vec![0i64; 2 * index * index];
        let y = [index as i64];
        writer
            .push(
                &NewSample::new()
                    .tensor("x", TensorView::from_slice(&x, &[index, 4]).unwrap())
                    .tensor(
                        "edge_index",
                        TensorView::from_slice(&edges, &[2, index * index]).unwrap(),
                    )
                    .tensor("pos", TensorView::from_slice(&pos, &[index, 3]).unwrap())
                    .tensor("y", TensorView::from_slice(&y, &[1]).unwrap()),
            )
            .unwrap();
    }
    writer.finish().unwrap();
    path
}

/// All connected graphs on 8 nodes, imported by the binary.
pub(crate) fn graphs(folder: &Path) -> PathBuf {
    let path = folder.join("graphs.fence");
    run!("import", "graph6", data().join("connected-8.g6"), &path).ok();
    path
}
