//! The sample reports in `samples/`: each form of each record, byte for byte.
//!
//! `UPDATE_GOLDEN=1 cargo test -p storeproof-reports --test golden` writes them anew; read the
//! difference before it is committed.

mod common;

use std::path::{Path, PathBuf};

use storeproof_reports::record::{Outcome, Record, Verdict};
use storeproof_reports::terminal::{self, Style};
use storeproof_reports::{html, json, junit, write_atomically};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// The one member that changes with each release.
fn without_version(xml: &str) -> String {
    let key = "name=\"storeproof.version\" value=\"";
    xml.replace(&format!("{key}{}\"", env!("CARGO_PKG_VERSION")), &format!("{key}VERSION\""))
}

fn hold(name: &str, seen: &str) {
    let path = samples().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        write_atomically(&path, seen.as_bytes()).expect("a golden file");
        return;
    }
    let golden = std::fs::read_to_string(&path).expect("a golden file; UPDATE_GOLDEN=1 writes it");
    if golden != seen {
        let at = golden.lines().zip(seen.lines()).position(|(golden, seen)| golden != seen);
        let at = at.unwrap_or_else(|| golden.lines().count().min(seen.lines().count()));
        let short = |text: &str| -> String {
            text.lines().nth(at).unwrap_or("(nothing)").chars().take(300).collect()
        };
        panic!("{name} differs at line {}:\n- {}\n+ {}", at + 1, short(&golden), short(seen));
    }
}

fn hold_all(name: &str, record: &Record) {
    let text = json::to_string(record);
    hold(&format!("{name}.json"), &text);
    // All other forms are drawn from what was read back: the JSON report says all there is to say.
    let record = json::parse(&text).expect("our own report");
    hold(&format!("{name}.xml"), &without_version(&junit::write(&record)));
    hold(&format!("{name}.html"), &html::write(&record));
    let style = Style { color: false, verbose: false, width: 100 };
    hold(&format!("{name}.txt"), &terminal::render(&record, style));
    let verbose = Style { color: true, verbose: true, width: 72 };
    hold(&format!("{name}.verbose.ansi"), &terminal::render(&record, verbose));
}

#[test]
fn calm() {
    hold_all("calm", &common::calm());
}

#[test]
fn hostile() {
    let record = common::hostile();
    for outcome in Outcome::ALL {
        assert!(record.summary.count(outcome) > 0, "no {}", outcome.word());
    }
    hold_all("hostile", &record);
}

#[test]
fn zero() {
    hold_all("zero", &common::zero());
}

/// 5,000 cases, and more text than one file may hold.
fn large() -> (Record, Record) {
    let row = |n: usize, outcome, message: &str| {
        let id = format!("mailbox/core/clause-{n}/face-{}", n % 7);
        common::row(&id, "mailbox/core", outcome, Some(message))
    };
    let mounts = || vec![common::mount("mailbox/core", Verdict::Mounted, None, 5_000)];
    let many = (0..5_000).map(|n| row(n, Outcome::ALL[n % 9], "short")).collect();
    let flood = "a line of output\n".repeat(12 * 1024 * 1024 / 17);
    let mut loud: Vec<_> = (0..2).map(|n| row(n, Outcome::Fail, &flood)).collect();
    loud.extend((2..400).map(|n| row(n, Outcome::Error, &flood[..170_000])));
    (common::record("many", mounts(), many), common::record("loud", mounts(), loud))
}

#[test]
fn a_large_run_stays_a_file_that_dashboards_take() {
    let (many, loud) = large();
    for record in [many, loud] {
        let xml = junit::write(&record);
        assert!(xml.len() < 25_000_000, "{} is {} bytes", record.subject.name, xml.len());
        assert_eq!(xml.matches("<testcase ").count(), record.clauses.len());
    }
}

/// For `tests/consumers.py`: `STOREPROOF_SAMPLES=DIR cargo test ... -- --ignored large_samples`.
#[test]
#[ignore = "writes the large samples that are not kept in the repository"]
fn large_samples() {
    let folder = std::env::var_os("STOREPROOF_SAMPLES").expect("STOREPROOF_SAMPLES");
    let (many, loud) = large();
    for record in [many, loud] {
        for (kind, text) in [
            ("xml", junit::write(&record)),
            ("json", json::to_string(&record)),
            ("html", html::write(&record)),
        ] {
            let path = Path::new(&folder).join(format!("{}.{kind}", record.subject.name));
            write_atomically(&path, text.as_bytes()).expect("a large sample");
        }
    }
}
