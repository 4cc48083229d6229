//! The history of one case: calls of races and calls between them, as the checker of histories reads
//! them.

use super::history::{Call, Rules, When};
use crate::backend::{Clock, Side};
use crate::call::{Answer, Fault, FaultKind};
use crate::json::Json;
use crate::race::{Raced, Stamp};
use crate::trial::{Stop, Trial, Verdict};
use std::collections::BTreeMap;

/// Calls with their places in one order, over several races.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The calls so far, in the order of sending.
    pub calls: Vec<Call>,
    /// What they are judged by: who was killed is noted there.
    pub rules: Rules,
    order: u64,
    /// The lanes and processes before this race.
    lanes: usize,
    /// Which process is running at which side; a new one has a new number.
    running: BTreeMap<Side, usize>,
    processes: usize,
}

impl Recorded {
    /// Nothing so far, of a subject with this clock.
    #[must_use]
    pub fn new(clock: Clock, granularity_ms: u64) -> Self {
        Self {
            calls: Vec::new(),
            rules: Rules::new(clock, granularity_ms),
            order: 0,
            lanes: 0,
            running: BTreeMap::new(),
            processes: 0,
        }
    }

    fn process(&mut self, side: Side) -> usize {
        *self.running.entry(side).or_insert_with(|| {
            self.processes += 1;
            self.processes - 1
        })
    }

    /// Notes that the process at `side` is gone.
    pub fn died(&mut self, side: Side) {
        let process = self.process(side);
        self.running.remove(&side);
        self.rules.deaths.insert(process, self.order);
    }

    /// Takes in a race whose lanes are all over.
    ///
    /// # Errors
    /// A fault where an answer has not its form.
    pub fn race(&mut self, raced: &[Raced]) -> Verdict {
        let before = self.order;
        let mut lanes = 0;
        for call in raced {
            let at = |stamp: Stamp| Stamp { order: before + stamp.order, ..stamp };
            let (sent, answered) = (at(call.sent), call.answered.map(at));
            self.order = self.order.max(answered.unwrap_or(sent).order).max(sent.order);
            lanes = lanes.max(call.lane + 1);
            let process = self.process(call.side);
            let when = When { sent, answered, lane: self.lanes + call.lane, process };
            let died = || Answer::Fault(Fault::new(FaultKind::Died, "killed"));
            let answer = call.answer.clone().unwrap_or_else(died);
            self.add(call.method, &call.params, &answer, when)?;
        }
        self.lanes += lanes;
        Ok(())
    }

    /// Makes one call while no race runs, and takes it in.
    ///
    /// # Errors
    /// A fault where there is no answer, or not of its form.
    pub fn call(
        &mut self,
        t: &mut Trial<'_>,
        on: Side,
        method: &'static str,
        params: &Json,
    ) -> Result<Answer, Stop> {
        let answer = match t.call(on, method, params.clone())? {
            Ok(result) => Answer::Result(result),
            Err(error) => Answer::Error(error),
        };
        let last = t.last();
        let sent = Stamp { order: self.order + 1, ms: last.sent_ms };
        let answered = Stamp { order: self.order + 2, ms: last.answered_ms };
        self.order += 2;
        let process = self.process(on);
        let when = When { sent, answered: Some(answered), lane: self.lanes, process };
        self.lanes += 1;
        self.add(method, params, &answer, when)?;
        Ok(answer)
    }

    fn add(&mut self, method: &str, params: &Json, answer: &Answer, mut when: When) -> Verdict {
        if self.rules.clock == Clock::Caller {
            // By the caller's clock a call happens at the `now` that it carries.
            let ms = params.get("now").and_then(Json::as_u64).unwrap_or(when.sent.ms);
            when.sent.ms = ms;
            when.answered = when.answered.map(|answered| Stamp { ms, ..answered });
        }
        self.calls.push(Call::read(method, params, answer, when).map_err(Stop::Fault)?);
        Ok(())
    }
}
