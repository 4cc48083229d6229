//! The record of one run: what every report is drawn from, and the JSON report itself
//! (`storeproof.report/1` of the command-line page).
//!
//! A record knows no clause, no backend and no protocol: ids, words and texts only.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema name every JSON report carries; another one is refused, never reinterpreted.
pub const SCHEMA: &str = "storeproof.report/1";

/// One run against one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The kit (frozen clause set) that was judged, such as `1.0`.
    pub kit: String,
    /// Who stood before the bench.
    pub subject: Subject,
    /// How the run was made.
    pub run: Run,
    /// One verdict a suite (and face, where the suite has faces), mounted or not.
    pub mounts: Vec<Mount>,
    /// One row a case; an unmounted clause has one row under its own id.
    pub clauses: Vec<Row>,
    /// How many rows ended in each outcome, zeros included.
    pub summary: Summary,
}

/// Who stood before the bench, as it introduced itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The name it gave; the command's base name where no handshake succeeded.
    pub name: String,
    /// The version it gave; empty where no handshake succeeded.
    pub version: String,
    /// Implementation language, if it said one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The capabilities object as declared.
    pub capabilities: Value,
    /// The limits object as declared, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Value>,
}

/// How the run was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The seed that, with the plan, decides the run (0..2^53-1).
    pub seed: u64,
    /// When it started, RFC 3339 in UTC, such as `2026-11-30T15:21:36Z`.
    pub started: String,
    /// Wall time of the whole run in milliseconds.
    pub duration_ms: u64,
    /// `K/N` where the run was one shard of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
}

/// The mount verdict of one suite (and face).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// Suite id, such as `mailbox/core`.
    pub suite: String,
    /// Face name, for suites that judge faces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, wherever the verdict is not plainly `mounted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many cases this mount has in the plan.
    pub cases: usize,
}

/// Whether a suite stands before the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Its clauses are judged.
    Mounted,
    /// The subject did not declare what the suite needs.
    NotDeclared,
    /// The subject gave a reason why nothing can be planted.
    Exempt,
    /// Declaration and hooks do not fit each other; nothing runs.
    Refused,
}

/// One case and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Case id: the clause id, then `/face` and `/form/variant` where there are any.
    pub id: String,
    /// Clause id, `family/suite/clause`.
    pub clause: String,
    /// Suite id.
    pub suite: String,
    /// `T1` or `T2`.
    pub tier: Tier,
    /// How it ended.
    pub outcome: Outcome,
    /// Wall time in milliseconds.
    pub ms: u64,
    /// What was promised and what was seen, or why nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The calls of the case in order, for cases that did not simply pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    /// Calls that overlapped and cannot all stand, as a picture of lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
    /// One command line that runs this case again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// What a person should look at though it decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advisories: Option<Vec<String>>,
}

/// One call of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Counts from 1.
    pub n: u32,
    /// The subject's process that was called, `A`, `B`, …, where the case is about several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The wire method, such as `mailbox/append`, or `bench/...` for what the bench itself did.
    pub call: String,
    /// The params as sent.
    pub params: Value,
    /// What came back: `{"result": ...}`, `{"error": {...}}` or `{"fault": "..."}`.
    pub answer: Value,
}

/// A concurrent history as data for a drawing: a lane a worker, time in moments counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// What each lane is called.
    pub lanes: Vec<String>,
    /// The calls, by the order of their sending.
    pub rows: Vec<LaneCall>,
}

/// One call in its lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCall {
    /// The place of its lane.
    pub lane: usize,
    /// The moment in which it was sent.
    pub start: usize,
    /// The moment in which it was answered; none where it never was.
    pub end: Option<usize>,
    /// The box.
    pub of: String,
    /// What was asked.
    pub label: String,
    /// What came back.
    pub answer: String,
    /// Whether this is the call that no order explains.
    pub bad: bool,
}

/// T1: every subject of the family owes it. T2: owed by those that declare the capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tier {
    /// Core.
    T1,
    /// Optional capability.
    T2,
}

/// How a case ended. A `fail` is a clause the subject broke; an `error` is what could not be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Judged, and it held.
    Pass,
    /// Judged, and it was broken.
    Fail,
    /// It could not be judged.
    Error,
    /// Judged, broken, and covered by a registered tolerance.
    Tolerated,
    /// Judged, broken, and named in the `--expect` file.
    ExpectedFail,
    /// Named in the `--expect` file, judged, and it did not fail.
    UnexpectedPass,
    /// The subject declared, with a reason, that nothing can be planted.
    Exempt,
    /// The capability, family or optional method is absent.
    NotDeclared,
    /// Left out by a shard or a filter.
    NotRun,
}

impl Outcome {
    /// Every outcome, in the order summaries show them.
    pub const ALL: [Self; 9] = [
        Self::Pass,
        Self::Fail,
        Self::Error,
        Self::Tolerated,
        Self::ExpectedFail,
        Self::UnexpectedPass,
        Self::Exempt,
        Self::NotDeclared,
        Self::NotRun,
    ];

    /// The word used in every report.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Tolerated => "tolerated",
            Self::ExpectedFail => "expected-fail",
            Self::UnexpectedPass => "unexpected-pass",
            Self::Exempt => "exempt",
            Self::NotDeclared => "not-declared",
            Self::NotRun => "not-run",
        }
    }
}

/// How many rows ended in each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "one count an outcome word, explained at `Outcome`")]
pub struct Summary {
    pub pass: usize,
    pub fail: usize,
    pub error: usize,
    pub tolerated: usize,
    pub expected_fail: usize,
    pub unexpected_pass: usize,
    pub exempt: usize,
    pub not_declared: usize,
    pub not_run: usize,
}

impl Summary {
    /// Counts `rows`.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        let mut summary = Self::default();
        for row in rows {
            *summary.slot(row.outcome) += 1;
        }
        summary
    }

    /// The count of one outcome.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        *self.clone().slot(outcome)
    }

    /// How many cases got a verdict.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.pass + self.fail + self.tolerated + self.expected_fail + self.unexpected_pass
    }

    /// The exit status these counts earn: 1 any `fail`; else 2 any `unexpected-pass`; else 3 any
    /// `error`; else 2 nothing judged; else 0.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        if self.fail > 0 {
            1
        } else if self.unexpected_pass > 0 {
            2
        } else if self.error > 0 {
            3
        } else if self.judged() == 0 {
            2
        } else {
            0
        }
    }

    fn slot(&mut self, outcome: Outcome) -> &mut usize {
        match outcome {
            Outcome::Pass => &mut self.pass,
            Outcome::Fail => &mut self.fail,
            Outcome::Error => &mut self.error,
            Outcome::Tolerated => &mut self.tolerated,
            Outcome::ExpectedFail => &mut self.expected_fail,
            Outcome::UnexpectedPass => &mut self.unexpected_pass,
            Outcome::Exempt => &mut self.exempt,
            Outcome::NotDeclared => &mut self.not_declared,
            Outcome::NotRun => &mut self.not_run,
        }
    }
}
