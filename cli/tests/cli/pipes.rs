//! Readers who leave early, and outputs that take nothing.

use std::io::Read;
use std::process::Stdio;

use crate::support::{command, folder, graphs};

/// Reads a little of the output and leaves; gives exit code and stderr.
fn leave(arguments: &[&str], path: &std::path::Path) -> (Option<i32>, String) {
    let mut command = command();
    let mut child = command
        .args(arguments)
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_closed_pipe_is_success() {
    let folder = folder();
    let path = graphs(folder.path());
    // More than a pipe holds.
    for arguments in [&["head", "-n", "100k"][..], &["head", "--json", "-n", "100k"]] {
        assert_eq!(leave(arguments, &path), (Some(0), String::new()), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn the_verdict_does_not_depend_on_who_reads() {
    let folder = folder();
    let path = graphs(folder.path());
    let len = std::fs::metadata(&path).unwrap().len() as usize;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[len / 2] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    // The reader is gone before anything is written.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command().arg("verify").arg(&path).stdout(writer).stderr(Stdio::null()).status();
    assert_eq!(status.unwrap().code(), Some(1));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command().arg("--help").stdout(writer).status();
    assert_eq!(status.unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_2() {
    let folder = folder();
    let path = graphs(folder.path());
    for arguments in [&["info"][..], &["info", "--json"], &["head", "-n", "100k"], &["verify"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = command();
        command.args(arguments).arg(&path).stdout(full).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains("cannot write to stdout"), "{arguments:?}: {stderr}");
    }
}
