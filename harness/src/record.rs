//! Plan and events to the record that every report is drawn from: the only file where the bench's
//! words and the reports' words meet.

use crate::expect::Expectations;
use crate::plan::{Case, Fate, Plan, PlannedMount};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use storeproof_contract::KIT;
use storeproof_contract::backend::Manifest;
use storeproof_contract::suite;
use storeproof_contract::trial::{Judgement, Stop};
use storeproof_reports::record::{
    Mount, Outcome, Record, Row, Run, SCHEMA, Step, Subject, Summary, Tier, Verdict,
};

/// The longest params or answer that a step keeps whole, in bytes of JSON: 1 MiB and its envelope.
const VALUE_BYTES_MAX: usize = (1 << 20) + 4096;
/// The deepest params or answer that a step keeps whole; common readers stop at a few hundred.
const VALUE_LEVELS_MAX: usize = 100;
/// How many characters are shown of what is not kept whole.
const CUT_CHARS: usize = 1024;

/// What the bench knows besides plan and events.
#[derive(Debug)]
pub struct Frame {
    /// The subject's handshake, if there was one.
    pub manifest: Option<Manifest>,
    /// What to call the subject where there was none.
    pub fallback_name: String,
    /// How the run was made.
    pub run: Run,
    /// The command line that runs one case again, with `{clause}` where its id goes.
    pub replay: Replay,
    /// Known failures.
    pub expected: Expectations,
}

/// The words of a command line before and after `--clause ID`.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Up to the clause.
    pub before: String,
    /// From the clause on.
    pub after: String,
}

impl Replay {
    /// The command line for one case.
    #[must_use]
    pub fn of(&self, id: &str) -> String {
        format!("{} --clause {id}{}", self.before, self.after)
    }
}

/// What was judged: by place in the plan, the judgement and its milliseconds.
pub type Judged = BTreeMap<usize, (Judgement, u64)>;

/// Draws up the record.
#[must_use]
pub fn record(plan: &Plan, judged: Judged, frame: &Frame) -> Record {
    let mut judged = judged;
    let clauses: Vec<Row> = plan
        .cases
        .iter()
        .enumerate()
        .map(|(i, case)| match judged.remove(&i) {
            Some((judgement, ms)) => judged_row(case, judgement, ms, frame),
            None => unjudged_row(case, frame),
        })
        .collect();
    Record {
        schema: SCHEMA.to_owned(),
        kit: KIT.to_owned(),
        subject: subject(frame),
        run: frame.run.clone(),
        mounts: plan.mounts.iter().map(mount).collect(),
        summary: Summary::of(&clauses),
        clauses,
    }
}

fn subject(frame: &Frame) -> Subject {
    match &frame.manifest {
        None => Subject {
            name: frame.fallback_name.clone(),
            version: String::new(),
            language: None,
            capabilities: serde_json::json!({}),
            limits: None,
        },
        Some(manifest) => {
            let limits = serde_json::to_value(&manifest.limits).unwrap_or_default();
            Subject {
                name: manifest.subject.name.clone(),
                version: manifest.subject.version.clone(),
                language: manifest.subject.language.clone(),
                capabilities: serde_json::to_value(&manifest.capabilities).unwrap_or_default(),
                limits: limits
                    .as_object()
                    .is_some_and(|limits| !limits.is_empty())
                    .then_some(limits),
            }
        }
    }
}

fn mount(planned: &PlannedMount) -> Mount {
    let (verdict, reason) = match &planned.mount {
        suite::Mount::Mounted => (Verdict::Mounted, None),
        suite::Mount::NotDeclared(reason) => (Verdict::NotDeclared, Some(reason.clone())),
        suite::Mount::Refused(reason) => (Verdict::Refused, Some(reason.clone())),
    };
    Mount { suite: planned.suite.id.to_owned(), face: None, verdict, reason, cases: planned.cases }
}

fn judged_row(case: &Case, judgement: Judgement, ms: u64, frame: &Frame) -> Row {
    let (outcome, message) = match judgement.verdict {
        Ok(()) => (Outcome::Pass, None),
        Err(Stop::Broken { promised, seen }) => {
            (Outcome::Fail, Some(format!("promised: {promised}\nseen: {seen}")))
        }
        Err(Stop::Fault(fault)) => (Outcome::Error, Some(fault.to_string())),
        Err(Stop::Undecided(why)) => (Outcome::Error, Some(format!("undecided: {why}"))),
    };
    let (outcome, expected) = frame.expected.apply(&case.id, outcome);
    let message = match (message, expected) {
        (Some(message), Some(expected)) => Some(format!("{message}\n{expected}")),
        (message, expected) => message.or(expected),
    };
    let told = outcome != Outcome::Pass;
    let steps = judgement.steps.into_iter().zip(1..).map(|(step, n)| Step {
        n,
        process: step.side.map(|side| side.letter().to_string()),
        call: step.call.to_owned(),
        params: readable(step.params),
        answer: readable(step.answer.shown()),
    });
    Row {
        ms,
        message,
        steps: told.then(|| steps.collect()),
        // The two crates meet in the form of the data; a picture of another form is left out.
        lanes: judgement.picture.and_then(|picture| serde_json::from_value(picture).ok()),
        replay: told.then(|| frame.replay.of(&case.id)),
        advisories: (!judgement.advisories.is_empty()).then_some(judgement.advisories),
        ..blank_row(case, outcome)
    }
}

/// The value, or where no reader of JSON would get through it (too long, too deep) what it was.
fn readable(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= VALUE_BYTES_MAX && levels(&value, VALUE_LEVELS_MAX) {
        return value;
    }
    let head: String = text.chars().take(CUT_CHARS).collect();
    json!({ "cut": head, "bytes": text.len() })
}

/// Whether the value is nested no deeper than `left` levels.
fn levels(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left > 0 && items.iter().all(|item| levels(item, left - 1)),
        Value::Object(members) => left > 0 && members.values().all(|item| levels(item, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn unjudged_row(case: &Case, frame: &Frame) -> Row {
    let (outcome, message) = match &case.fate {
        Fate::NotDeclared(reason) => (Outcome::NotDeclared, reason.clone()),
        Fate::NotRun(reason) => (Outcome::NotRun, reason.clone()),
        Fate::Error(reason) => (Outcome::Error, reason.clone()),
        Fate::Judge => {
            (Outcome::Error, "interrupted: the run ended before this case was judged".to_owned())
        }
    };
    let replay = (outcome == Outcome::Error).then(|| frame.replay.of(&case.id));
    Row { message: Some(message), replay, ..blank_row(case, outcome) }
}

fn blank_row(case: &Case, outcome: Outcome) -> Row {
    Row {
        id: case.id.clone(),
        clause: case.suite.clause_id(case.clause),
        suite: case.suite.id.to_owned(),
        tier: match case.suite.tier {
            suite::Tier::T1 => Tier::T1,
            suite::Tier::T2 => Tier::T2,
        },
        outcome,
        ms: 0,
        message: None,
        steps: None,
        lanes: None,
        replay: None,
        advisories: None,
    }
}
