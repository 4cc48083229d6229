//! Runs the built binary and reads what it wrote.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// The built binary, started at the repository's root.
#[expect(clippy::disallowed_methods, reason = "tests start the binary that they test")]
pub fn storeproof<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_storeproof"));
    command.args(args).current_dir(root()).env("NO_COLOR", "1");
    command
}

/// The example program `name`, which `cargo test` builds beside the tests.
pub fn example(name: &str) -> String {
    let tests = std::env::current_exe().expect("this test");
    let target = tests.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    let path = target.join("examples").join(name);
    assert!(path.is_file(), "{} is not built: run `cargo build --examples`", path.display());
    path.to_string_lossy().into_owned()
}

/// How one `certify` ended.
pub struct Certified {
    /// Exit status.
    pub status: i32,
    /// The JSON report.
    pub json: Value,
    /// What was printed to stdout.
    pub stdout: String,
    /// What was said on stderr.
    pub stderr: String,
}

impl Certified {
    /// Outcome by case id.
    pub fn outcomes(&self) -> BTreeMap<String, String> {
        let rows = self.json["clauses"].as_array().expect("rows");
        rows.iter().map(|row| (text(&row["id"]), text(&row["outcome"]))).collect()
    }

    /// The ids that ended in `outcome`.
    pub fn ids(&self, outcome: &str) -> Vec<String> {
        self.outcomes().into_iter().filter(|(_, o)| o == outcome).map(|(id, _)| id).collect()
    }

    /// One row.
    pub fn row(&self, id: &str) -> &Value {
        let rows = self.json["clauses"].as_array().expect("rows");
        rows.iter().find(|row| row["id"] == id).expect("a row of that id")
    }
}

/// A JSON string's text.
pub fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// Certifies with a JSON report; `args` are everything behind `certify`.
pub fn certify(args: &[&str]) -> Certified {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("report.json");
    let path = json.to_string_lossy().into_owned();
    let Output { status, stdout, stderr } =
        storeproof(["certify", "--json", &path].iter().chain(args)).output().expect("the binary");
    let written = std::fs::read_to_string(&json).unwrap_or_else(|_| "null".to_owned());
    Certified {
        status: status.code().unwrap_or(-1),
        json: serde_json::from_str(&written).expect("a JSON report"),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Whether `variable` says where a server is; says loudly that a test does not run where it does not, and
/// fails where all tests must run.
pub fn has_server(variable: &str) -> bool {
    if std::env::var_os(variable).is_some() {
        return true;
    }
    assert!(
        std::env::var_os("STOREPROOF_ALL_TESTS").is_none(),
        "{variable} is not set, and STOREPROOF_ALL_TESTS is; eval \"$(scripts/services start)\""
    );
    let _ = writeln!(
        std::io::stderr(),
        "\n*** NOT RUN: this test needs {variable}; eval \"$(scripts/services start)\" ***"
    );
    false
}

/// Whether `program` is on this machine; says loudly that a test does not run where it is not, and
/// fails where all tests must run.
#[expect(clippy::disallowed_methods, reason = "tests look for the tools that they need")]
pub fn has(program: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    assert!(
        std::env::var_os("STOREPROOF_ALL_TESTS").is_none(),
        "{program} is not on this machine, and STOREPROOF_ALL_TESTS is set"
    );
    let _ = writeln!(
        std::io::stderr(),
        "\n*** NOT RUN: this test needs {program}, which is not on this machine ***"
    );
    false
}
