//! Steps that run side by side: the worker of a lane, and the verdict on a history with overlaps.

use super::judge::{Violation, kind_of};
use super::memory::{Doing, Memory};
use super::run::{End, Told, lock};
use super::script::{Step, StepId};
use super::terms::Terms;
use serde_json::Value as Json;
use std::sync::{Arc, Mutex};
use storeproof_contract::call::{Answer, Fault, FaultKind};
use storeproof_contract::mailbox::history::{Call, Limits, Rules, Stamp, Verdict, When, check};
use storeproof_contract::race::Lane;

/// How wide a drawing may be.
const DRAWING_CHARS_MAX: usize = 100;

/// Makes the calls of one lane, each from what all lanes were answered so far.
pub(super) struct Worker {
    steps: std::vec::IntoIter<Step>,
    doing: Option<Doing>,
    memory: Arc<Mutex<Memory>>,
    terms: Terms,
    store: String,
    now_ms: u64,
    /// The step of every call so far.
    made: Arc<Mutex<Vec<StepId>>>,
    /// The call under way.
    asked: Option<(StepId, &'static str, Json)>,
}

impl Worker {
    pub(super) fn new(
        steps: Vec<Step>,
        memory: Arc<Mutex<Memory>>,
        terms: Terms,
        store: String,
        now_ms: u64,
        made: Arc<Mutex<Vec<StepId>>>,
    ) -> Self {
        let steps = steps.into_iter();
        Self { steps, doing: None, memory, terms, store, now_ms, made, asked: None }
    }
}

impl Lane for Worker {
    fn next(&mut self) -> Option<(&'static str, Json)> {
        loop {
            if let Some(doing) = &mut self.doing {
                let next = doing.next(&lock(&self.memory), &self.terms, &self.store, self.now_ms);
                if let Some((method, params)) = next {
                    lock(&self.made).push(doing.id);
                    self.asked = Some((doing.id, method, params.clone()));
                    return Some((method, params));
                }
            }
            let step = self.steps.next()?;
            self.doing = Some(Doing::new(step.id, step.act));
        }
    }

    fn answered(&mut self, answer: &Answer) {
        let Some((id, method, params)) = self.asked.take() else { return };
        // The real moments are noted when the race is over; until then only ids matter.
        let at = Stamp { order: 0, ms: self.now_ms };
        let when = When { sent: at, answered: Some(at), lane: 0, process: 0 };
        let Ok(call) = Call::read(method, &params, answer, when) else { return };
        if let Some(doing) = &mut self.doing {
            doing.answered(&call.outcome);
        }
        lock(&self.memory).learn(id, &call, &self.terms);
    }
}

/// Judges a whole history in which calls overlapped.
pub(super) fn judge(told: &[Told], rules: &Rules) -> End {
    let history: Vec<Call> = told.iter().map(|told| told.call.clone()).collect();
    match check(&history, rules, &Limits::default()) {
        Verdict::True => End::Allowed,
        Verdict::Unknown(why) => End::NoVerdict(Fault::new(FaultKind::Undecided, why)),
        Verdict::False(found) => End::Forbidden(Box::new(Violation {
            clause: found.blame.clause.to_owned(),
            kind: kind_of(&found.calls[found.bad]),
            promised: found.blame.promised.clone(),
            seen: found.blame.seen.clone(),
            drawing: Some(found.lanes().text(DRAWING_CHARS_MAX)),
        })),
    }
}

/// The same where there were overlaps at all.
pub(super) fn judge_if(overlapped: bool, told: &[Told], rules: &Rules) -> Option<End> {
    overlapped.then(|| judge(told, rules))
}
