//! What every report says about a record and the record does not spell out.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use sha2::{Digest as _, Sha256};

use crate::record::{Mount, Outcome, Record, Row, Summary, Verdict};
use crate::text::{floor_boundary, grouped};

/// The longest name in a report.
pub(crate) const NAME_BYTES_MAX: usize = 4 * 1024;

/// A name that is too long keeps its head and the hash of the whole, so it stays unique and stable.
pub(crate) fn shortened(name: &str) -> String {
    if name.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let digest = Sha256::digest(name.as_bytes());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}… sha256:{hash}", &name[..floor_boundary(name, NAME_BYTES_MAX - 100)])
}

/// One suite with its rows and mounts, in the order of the record.
pub(crate) struct Suite<'a> {
    pub(crate) id: &'a str,
    pub(crate) mounts: Vec<&'a Mount>,
    pub(crate) rows: Vec<&'a Row>,
}

impl Suite<'_> {
    pub(crate) fn summary(&self) -> Summary {
        count(self.rows.iter().copied())
    }
}

/// Every suite that has a mount or a row: mounts first, as they are in plan order.
pub(crate) fn suites(record: &Record) -> Vec<Suite<'_>> {
    let mut suites: Vec<Suite<'_>> = Vec::new();
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    let ids = record.mounts.iter().map(|mount| &mount.suite);
    for id in ids.chain(record.clauses.iter().map(|row| &row.suite)) {
        at.entry(id).or_insert_with(|| {
            suites.push(Suite { id, mounts: Vec::new(), rows: Vec::new() });
            suites.len() - 1
        });
    }
    for mount in &record.mounts {
        suites[at[mount.suite.as_str()]].mounts.push(mount);
    }
    for row in &record.clauses {
        suites[at[row.suite.as_str()]].rows.push(row);
    }
    suites
}

/// The rows a mount stands for: those of its suite, and of its face where it has one.
pub(crate) fn mount_summary(record: &Record, mount: &Mount) -> Summary {
    let faces = record.mounts.iter().filter(|other| other.suite == mount.suite).count();
    count(record.clauses.iter().filter(|row| {
        row.suite == mount.suite
            && match &mount.face {
                Some(face) if faces > 1 => is_of_face(row, face),
                _ => true,
            }
    }))
}

/// Whether the first component after the clause id is `face` (or its percent-encoded form).
fn is_of_face(row: &Row, face: &str) -> bool {
    let rest = row.id.strip_prefix(row.clause.as_str()).unwrap_or_default();
    rest.split('/').nth(1).is_some_and(|part| part == face || part == component(face))
}

/// One component of a case id: `/`, `%` and control characters percent-encoded.
pub(crate) fn component(name: &str) -> String {
    encode(name, |c| matches!(c, '/' | '%') || c.is_control())
}

/// `text` with the characters that `odd` picks percent-encoded.
pub(crate) fn encode(text: &str, odd: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut buffer = [0; 4];
    for c in text.chars() {
        if odd(c) {
            for byte in c.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn count<'a>(rows: impl Iterator<Item = &'a Row>) -> Summary {
    let mut tally: BTreeMap<Outcome, usize> = BTreeMap::new();
    for row in rows {
        *tally.entry(row.outcome).or_default() += 1;
    }
    let of = |outcome| tally.get(&outcome).copied().unwrap_or_default();
    Summary {
        pass: of(Outcome::Pass),
        fail: of(Outcome::Fail),
        error: of(Outcome::Error),
        tolerated: of(Outcome::Tolerated),
        expected_fail: of(Outcome::ExpectedFail),
        unexpected_pass: of(Outcome::UnexpectedPass),
        exempt: of(Outcome::Exempt),
        not_declared: of(Outcome::NotDeclared),
        not_run: of(Outcome::NotRun),
    }
}

/// What a row says for itself; else why its suite is not mounted; else a sentence that nothing was
/// recorded. Never empty: a dashboard shows an empty reason as no reason.
pub(crate) fn message<'a>(record: &'a Record, row: &'a Row) -> Cow<'a, str> {
    if let Some(message) = row.message.as_deref().filter(|text| !text.trim().is_empty()) {
        return Cow::Borrowed(message);
    }
    let unmounted = matches!(row.outcome, Outcome::NotDeclared | Outcome::Exempt);
    let mount = record
        .mounts
        .iter()
        .filter(|mount| unmounted && mount.suite == row.suite && mount.verdict != Verdict::Mounted)
        .find_map(|mount| mount.reason.as_deref());
    match (mount, row.outcome) {
        (Some(reason), _) => Cow::Borrowed(reason),
        (None, Outcome::UnexpectedPass) => Cow::Borrowed(
            "expected to fail, but it did not; take its line out of the --expect file",
        ),
        (None, outcome) => Cow::Owned(format!("{}: no reason was recorded", outcome.word())),
    }
}

/// The word of a mount verdict.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Mounted => "mounted",
        Verdict::NotDeclared => "not-declared",
        Verdict::Exempt => "exempt",
        Verdict::Refused => "refused",
    }
}

/// `mailbox/core`, or `read-back-shape/faces · notes` where the mount is of a face.
pub(crate) fn mount_name(mount: &Mount) -> String {
    match &mount.face {
        Some(face) => format!("{} · {face}", mount.suite),
        None => mount.suite.clone(),
    }
}

/// `34 judged: 33 pass, 1 fail · 12 not-declared`: every count that is not zero.
pub(crate) fn counts(summary: &Summary) -> String {
    let part = |outcomes: &[Outcome]| {
        let words: Vec<String> = outcomes
            .iter()
            .filter(|outcome| summary.count(**outcome) > 0)
            .map(|outcome| format!("{} {}", grouped(summary.count(*outcome)), outcome.word()))
            .collect();
        words.join(", ")
    };
    let mut text = format!("{} judged", grouped(summary.judged()));
    let judged = part(&[
        Outcome::Pass,
        Outcome::Fail,
        Outcome::Tolerated,
        Outcome::ExpectedFail,
        Outcome::UnexpectedPass,
    ]);
    if !judged.is_empty() {
        text = format!("{text}: {judged}");
    }
    let rest = part(&[Outcome::Error, Outcome::Exempt, Outcome::NotDeclared, Outcome::NotRun]);
    if rest.is_empty() { text } else { format!("{text} · {rest}") }
}

/// What the exit status means, in one sentence.
pub(crate) fn exit_meaning(summary: &Summary) -> String {
    let cases = |n: usize| if n == 1 { "1 case".into() } else { format!("{} cases", grouped(n)) };
    match summary.exit_status() {
        1 => format!("exit 1: the subject broke {}", cases(summary.fail)),
        3 => format!("exit 3: {} could not be judged", cases(summary.error)),
        2 if summary.unexpected_pass > 0 => {
            format!("exit 2: {} expected to fail did not", cases(summary.unexpected_pass))
        }
        2 => "exit 2: nothing was judged".into(),
        _ if summary.tolerated + summary.expected_fail > 0 => {
            "exit 0: nothing was broken that is not on record".into()
        }
        _ => "exit 0: every judged case held".into(),
    }
}

/// `1.2 s`, `3 min 20 s`, `12 ms`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=59_999 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// `name`, or `name#2` and so on where it was taken before: two rows of one name would let the
/// second hide the first.
pub(crate) fn unique(taken: &mut HashSet<String>, name: String) -> String {
    let mut candidate = name.clone();
    let mut n = 1;
    while !taken.insert(candidate.clone()) {
        n += 1;
        candidate = format!("{name}#{n}");
    }
    candidate
}
