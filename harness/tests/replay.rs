//! The built binary: what explore saves, replay shows again on the wrong store and not on a right one.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use support::{example, storeproof};

struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

fn ran(args: &[&str]) -> Ran {
    let output = storeproof(args).output().expect("the binary");
    Ran {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

#[test]
fn what_explore_saves_is_reproduced_where_it_was_found_and_nowhere_else() {
    let wrong = example("wrong_store");
    for name in ["no-fence", "seq-restarts-after-drop", "over-reach-takes-undelivered"] {
        let folder = tempfile::tempdir().expect("a folder");
        let save = folder.path().to_string_lossy().into_owned();
        let args = ["explore", "--suite", "mailbox/core", "--seed", "7", "--save", &save];
        let found = ran(&[&args[..], &["--cases", "100", "--", &wrong, name]].concat());
        assert_eq!(found.status, 1, "{name}: {}{}", found.stdout, found.stderr);
        assert!(found.stdout.ends_with("exit 1\n"), "{}", found.stdout);
        let saved = files(folder.path());
        assert!(!saved.is_empty(), "{name}");
        for path in saved.into_iter().take(1) {
            let file = read(&path);
            let path = path.to_string_lossy().into_owned();
            assert_eq!(file["schema"], "storeproof.replay/1");
            assert_eq!(file["mode"], "sequential", "{file}");
            assert!(found.stdout.contains(&format!("storeproof replay {path} -- ")), "{path}");
            let again = ran(&["replay", &path, "--", &wrong, name]);
            assert_eq!(again.status, 1, "{}{}", again.stdout, again.stderr);
            let clause = file["clause"].as_str().expect("a clause");
            assert!(again.stdout.contains(&format!("reproduced: {clause}\n")), "{}", again.stdout);
            let right = ran(&["replay", &path, "sqlite"]);
            assert_eq!(right.status, 0, "{}{}", right.stdout, right.stderr);
            let both = ran(&["replay", &path, "--against", "sqlite", "--", &wrong, name]);
            assert_eq!(both.status, 1, "{}{}", both.stdout, both.stderr);
            assert!(both.stdout.contains("they part at step "), "{}", both.stdout);
            let alike = ran(&["replay", &path, "sqlite", "--against", "jsonl"]);
            assert_eq!(alike.status, 0, "{}{}", alike.stdout, alike.stderr);
            assert!(alike.stdout.contains("they agree"), "{}", alike.stdout);
        }
    }
}

#[test]
fn a_race_over_real_processes_is_found_and_reproduced() {
    let wrong = example("wrong_store");
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().to_string_lossy().into_owned();
    let name = "seq-read-then-written";
    let args = ["explore", "--suite", "mailbox/cross-process", "--seed", "7", "--save", &save];
    let found = ran(&[&args[..], &["--cases", "40", "--", &wrong, name]].concat());
    assert_eq!(found.status, 1, "{}{}", found.stdout, found.stderr);
    let saved = files(folder.path());
    let races: Vec<_> = saved.iter().filter(|path| read(path)["mode"] == "concurrent").collect();
    let path = races.first().expect("a race").to_string_lossy().into_owned();
    assert!(found.stdout.contains("the calls that cannot stand together"), "{}", found.stdout);
    let again = ran(&["replay", &path, "--", &wrong, name]);
    assert_eq!(again.status, 1, "{}{}", again.stdout, again.stderr);
    let right = ran(&["replay", &path, "jsonl"]);
    assert_eq!(right.status, 0, "{}{}", right.stdout, right.stderr);
    // One process cannot show what takes several: no verdict, and no pass.
    let memory = ran(&["replay", &path, "memory"]);
    assert_eq!(memory.status, 3, "{}{}", memory.stdout, memory.stderr);
}

#[test]
fn bundled_stores_give_no_finding() {
    for store in ["memory", "jsonl", "sqlite"] {
        let folder = tempfile::tempdir().expect("a folder");
        let save = folder.path().to_string_lossy().into_owned();
        let found = ran(&["explore", store, "--seed", "11", "--cases", "150", "--save", &save]);
        assert_eq!(found.status, 0, "{store}: {}{}", found.stdout, found.stderr);
        assert!(found.stdout.contains("nothing was found"), "{}", found.stdout);
        assert!(files(folder.path()).is_empty());
    }
}

#[test]
fn a_run_that_never_came_to_a_lease_that_expired_is_inconclusive() {
    let found = ran(&["explore", "memory", "--seed", "1", "--cases", "1"]);
    assert_eq!(found.status, 3, "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.contains("inconclusive: the run never came to: "), "{}", found.stdout);
}

#[test]
fn what_cannot_be_run_is_exit_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = serde_json::json!({
        "schema": "storeproof.replay/1", "kit": storeproof_contract::KIT, "seed": 1,
        "clause": "mailbox/core/claim-fences", "kind": "claim/delivery", "family": "mailbox",
        "mode": "sequential", "expected": "", "seen": "",
        "steps": [{"id": 1, "do": "append", "box": "a", "body": "m"}],
        "found_on": {"name": "x", "version": "1"},
    });
    let write = |value: &Value| {
        let path = folder.path().join("file.json");
        std::fs::write(&path, value.to_string()).expect("written");
        path.to_string_lossy().into_owned()
    };
    assert_eq!(ran(&["replay", &write(&good), "memory"]).status, 0);
    let changes: [(&str, Value, &str); 8] = [
        ("schema", "storeproof.replay/2".into(), "its schema is"),
        ("kit", "9.0".into(), "its kit is"),
        ("family", "queue".into(), "its family is"),
        ("mode", "concurrent".into(), "its mode"),
        ("mode", "other".into(), "has not the form"),
        ("steps", serde_json::json!([]), "steps"),
        ("steps", serde_json::json!([{"id": 1, "do": "peek", "box": "A b"}]), "is no name of"),
        ("steps", serde_json::json!([{"id": 1, "do": "sing"}]), "has not the form"),
    ];
    for (member, value, words) in changes {
        let mut bad = good.clone();
        bad[member] = value;
        let run = ran(&["replay", &write(&bad), "memory"]);
        assert_eq!(run.status, 2, "{member}: {}", run.stdout);
        assert!(run.stderr.contains(words), "{member}: {}", run.stderr);
    }
    for args in [
        &["replay", "/no/such/file", "memory"][..],
        &["replay", &write(&good), "no-such-store"],
        &["replay", &write(&good)],
        &["explore"],
        &["explore", "no-such-store"],
        &["explore", "memory", "--suite", "mailbox/cor"],
        &["explore", "memory", "--suite", "mailbox/tenancy"],
        &["explore", "memory", "--suite", "mailbox/cross-process"],
        &["explore", "memory", "--cases", "0"],
    ] {
        let run = ran(args);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{args:?}: {}", run.stderr);
    }
}
