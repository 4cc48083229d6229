//! Crash states over a real child: a store that mends a torn line survives all of them; one that starts
//! empty, refuses to open, or writes on behind it does not.

mod support;

use support::{has, storeproof};

fn explored(habit: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let save = folder.path().to_string_lossy().into_owned();
    let child = "harness/tests/children/torn.py";
    let args = [
        "explore",
        "--suite",
        "mailbox/core",
        "--cases",
        "60",
        "--seed",
        "7",
        "--save",
        &save,
        "--",
        "python3",
        child,
        habit,
    ];
    let output = storeproof(args).output().expect("the binary");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_torn_last_line_is_mended_or_found() {
    if !has("python3") {
        return;
    }
    let (status, page) = explored("mends");
    assert!(page.contains("crash states: ") && !page.contains("crash in "), "{page}");
    assert_eq!(status, Some(0), "{page}");
    let habits = [
        ("empty", "kill-mid-append"),
        ("refuses", "store/attach answered"),
        ("glues", "kill-mid-append"),
    ];
    for (habit, words) in habits {
        let (status, page) = explored(habit);
        assert_eq!(status, Some(1), "{page}");
        assert!(page.contains("crash in mailbox/append") && page.contains(words), "{page}");
        assert!(page.contains("cut at byte"), "{page}");
    }
}

#[test]
fn the_durable_file_stores_survive_every_crash_state() {
    for store in ["jsonl", "sqlite"] {
        let args = ["explore", store, "--suite", "mailbox/core", "--cases", "60", "--seed", "11"];
        let output = storeproof(args).output().expect("the binary");
        let page = String::from_utf8_lossy(&output.stdout);
        let states = page.lines().find_map(|line| line.strip_prefix("crash states: "));
        let count: u64 =
            states.and_then(|told| told.split(' ').next()?.parse().ok()).expect("a count");
        assert!(count > 50, "{page}");
        assert_eq!(output.status.code(), Some(0), "{page}");
    }
}
