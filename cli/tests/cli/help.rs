//! Texts of help: golden files in `tests/help`. `FENCEPOST_BLESS=1 cargo test -p fencepost-cli help` writes them anew.

use std::path::Path;

use crate::run;

const COMMANDS: &[(&str, &[&str])] = &[
    ("fencepost", &[]),
    ("info", &["info"]),
    ("head", &["head"]),
    ("stats", &["stats"]),
    ("verify", &["verify"]),
    ("salvage", &["salvage"]),
    ("import", &["import"]),
    ("import-graph6", &["import", "graph6"]),
    ("import-tu", &["import", "tu"]),
    ("import-csv", &["import", "csv"]),
    ("import-npz", &["import", "npz"]),
    ("import-npy", &["import", "npy"]),
    ("export", &["export"]),
    ("export-npz", &["export", "npz"]),
    ("export-npy", &["export", "npy"]),
    ("concat", &["concat"]),
    ("split", &["split"]),
    ("compact", &["compact"]),
    ("repack", &["repack"]),
    ("plan", &["plan"]),
    ("demo", &["demo"]),
    ("completions", &["completions"]),
];

fn help(command: &[&str], flag: &str) -> String {
    let mut process = crate::support::command();
    process.args(command).arg(flag);
    crate::support::finish(process).ok().replace("fencepost.exe", "fencepost")
}

#[test]
fn help_is_what_it_was() {
    let bless = std::env::var_os("FENCEPOST_BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for (name, command) in COMMANDS {
        let file = folder.join(format!("{name}.txt"));
        let found = help(command, "--help");
        if bless {
            std::fs::write(&file, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
        assert!(
            found == expected,
            "the help of {name} is not that of {}: if it should be, run the tests with FENCEPOST_BLESS=1\n{found}",
            file.display()
        );
    }
}

#[test]
fn every_command_has_a_golden_help_with_examples() {
    let listed = help(&[], "--help");
    let commands = listed.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for line in commands.lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(
            COMMANDS.iter().any(|(_, command)| command == &[name]),
            "{name} has no golden help"
        );
    }
    for (name, command) in COMMANDS {
        let text = help(command, "--help");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
        assert!(text.contains("\nExamples:\n"), "{name}: no examples");
        assert!(help(command, "-h").len() <= help(command, "--help").len());
    }
}

#[test]
fn every_report_has_json_and_lists_its_keys() {
    for (name, command) in COMMANDS {
        let text = help(command, "--help");
        let report = !matches!(*name, "fencepost" | "import" | "export" | "completions");
        assert_eq!(report, text.contains("\n      --json\n"), "{name}");
        assert_eq!(report, text.contains("JSON keys:"), "{name}");
    }
}

#[test]
fn wrong_usage_is_2() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["info"],
        &["info", "a", "b"],
        &["head", "-n", "many", "a"],
        &["plan"],
        &["plan", "--samples", "5"],
        &["plan", "--attribute", "x:f32:3"],
        &["plan", "a", "--samples", "5", "--attribute", "x:f32:3"],
        &["plan", "--samples", "5", "--attribute", "x:float:3"],
        &["export", "npz", "--range", "5..4", "a", "b"],
        &["concat", "-o", "a"],
        &["concat", "a"],
        &["split", "a", "b"],
        &["split", "a", "b", "--samples", "0"],
        &["split", "a", "b", "--samples", "5", "--part", "c=0.5"],
        &["split", "a", "b", "--samples", "5", "--shuffle", "1"],
        &["compact", "--select", "x", "--drop", "y", "a", "b"],
        &["repack", "a", "b"],
        &["completions", "cmd"],
    ] {
        let mut process = crate::support::command();
        process.args(arguments);
        let run = crate::support::finish(process);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(run!("--version").ok(), format!("fencepost {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_name_the_commands_of_people() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run!("completions", shell).ok();
        for command in ["info", "salvage", "graph6", "completions"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(!script.contains("probe"), "{shell} offers a command that is not for people");
    }
}

#[cfg(unix)]
#[test]
fn bash_takes_its_completions() {
    let script = run!("completions", "bash").ok();
    let file = crate::support::folder();
    let path = file.path().join("fencepost.bash");
    std::fs::write(&path, script).unwrap();
    match std::process::Command::new("bash").arg("-n").arg(&path).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}
