//! What every source file of the workspace owes.

#![expect(clippy::disallowed_methods, reason = "tests of the tree read its files")]

use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a Rust file in which a newcomer still finds the way.
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !["target", ".git", "node_modules", ".gallery", "__pycache__"].contains(&&*name) {
                files(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

fn sources(ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    found.retain(|path| path.extension().is_some_and(|e| e == ending));
    found.sort();
    assert!(!found.is_empty(), "no {ending} file was found");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("UTF-8"))).collect()
}

#[test]
fn every_rust_file_says_what_it_is_for_and_stays_short() {
    for (path, text) in sources("rs") {
        assert!(text.starts_with("//! "), "{} begins without //!", path.display());
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn nothing_is_left_for_later() {
    let marks = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    for ending in ["rs", "py", "mjs"] {
        for (path, text) in sources(ending) {
            for mark in marks {
                assert!(!text.contains(mark), "{} holds {mark}", path.display());
            }
        }
    }
}

#[test]
fn the_law_and_the_record_never_meet() {
    for (manifest, banned) in [
        (
            "harness/contract/Cargo.toml",
            ["storeproof-reports", "storeproof-reference-stores"].as_slice(),
        ),
        ("reports/Cargo.toml", &["storeproof-contract", "storeproof-reference-stores"]),
        ("reference-stores/Cargo.toml", &["storeproof-reports"]),
    ] {
        let text = fs::read_to_string(root().join(manifest)).expect("a manifest");
        for name in banned {
            assert!(!text.contains(name), "{manifest} knows {name}");
        }
    }
}

#[test]
fn no_family_imports_another_and_no_clause_names_a_vendor() {
    let vendors = ["honker", "plainjob", "litequeue", "langgraph", "redis", "postgres", "sqlite"];
    for (path, text) in sources("rs") {
        let shown = path.display().to_string();
        if !shown.contains("contract/src/mailbox/") {
            continue;
        }
        for family in ["export_bundle", "read_back_shape", "site_rules"] {
            assert!(!text.contains(&format!("crate::{family}")), "{shown} imports {family}");
        }
        let lower = text.to_lowercase();
        for vendor in vendors {
            assert!(!lower.contains(vendor), "{shown} names {vendor}");
        }
    }
}

#[test]
fn scripts_say_on_line_two_what_they_do() {
    for entry in fs::read_dir(root().join("scripts")).expect("scripts/").flatten() {
        if entry.path().is_dir() {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("UTF-8");
        let second = text.lines().nth(1).unwrap_or_default();
        assert!(second.starts_with("# "), "{}: line 2 is {second:?}", entry.path().display());
    }
}
