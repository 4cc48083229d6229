//! Carries a script out on a fresh storage and judges what comes back.
//!
//! Where nothing overlaps, the run stops at the first answer that the contract forbids. Once calls have
//! overlapped, the whole history is judged at the end.

use super::judge::{Judge, Violation};
use super::lanes::{self, Worker};
use super::memory::{Doing, Memory};
use super::reached::{Reached, Watch};
use super::script::{Act, Script, Step, StepId};
use super::terms::Terms;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex, PoisonError};
use storeproof_contract::backend::{Backend, Clock, Side};
use storeproof_contract::call::{Answer, Fault, FaultKind};
use storeproof_contract::host::{AttachResult, OpenResult};
use storeproof_contract::mailbox::history::{Call, Stamp, When};
use storeproof_contract::race::{Lane, Race, Raced};

/// Where the caller's clock starts (epoch milliseconds); an odd moment, so that a store that rounds
/// its times shows it.
const CALLER_START_MS: u64 = 1_800_000_000_137;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Run {
    /// Every call, in the order of sending.
    pub told: Vec<Told>,
    /// Steps that could not be asked of this subject, and why.
    pub left_out: Vec<(StepId, String)>,
    /// The verdict.
    pub end: End,
    /// The places that it came to.
    pub reached: Reached,
}

/// One call of a run.
#[derive(Clone, Debug)]
pub struct Told {
    /// The step that made it.
    pub step: StepId,
    /// The worker's lane; 0 outside races.
    pub lane: u8,
    /// The process that was asked.
    pub process: u8,
    /// The call.
    pub call: Call,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The contract allows every answer.
    Allowed,
    /// It forbids one, which the step at its place in [`Run::told`] was given.
    Forbidden(Box<Violation>),
    /// There was no verdict.
    NoVerdict(Fault),
}

/// Runs `script` and judges it. `seed` decides the order of events where nothing else does.
pub fn run(script: &Script, backend: &mut dyn Backend, seed: u64) -> Run {
    let terms = Terms::of(backend.manifest());
    let mut runner = Runner {
        backend,
        terms,
        memory: Arc::default(),
        judge: Judge::new(terms.rules()),
        watch: Watch::new(terms),
        told: Vec::new(),
        left_out: Vec::new(),
        stores: Vec::new(),
        location: None,
        now_ms: CALLER_START_MS,
        order: 0,
        overlapped: false,
        rng: fastrand::Rng::with_seed(seed),
    };
    let end = match runner.carry_out(script) {
        Ok(()) if runner.overlapped => lanes::judge(&runner.told, &terms.rules()),
        Ok(()) => End::Allowed,
        Err(Stopped::Forbidden(violation)) => End::Forbidden(violation),
        Err(Stopped::Fault(fault)) => {
            // What was heard before the fault may be forbidden all the same.
            match lanes::judge_if(runner.overlapped, &runner.told, &terms.rules()) {
                Some(End::Forbidden(violation)) => End::Forbidden(violation),
                Some(End::Allowed | End::NoVerdict(_)) | None => End::NoVerdict(fault),
            }
        }
    };
    let end = match (runner.clean_up(&end), end) {
        (Some(fault), End::Allowed) if breaks_protocol(&fault) => End::NoVerdict(fault),
        (_, end) => end,
    };
    let Runner { told, left_out, watch, .. } = runner;
    Run { told, left_out, end, reached: watch.reached }
}

/// Whether the child's lines no longer fit the calls, so that none of its answers can be trusted.
fn breaks_protocol(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::BadLine | FaultKind::BadReply)
}

enum Stopped {
    Forbidden(Box<Violation>),
    Fault(Fault),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

struct Runner<'b> {
    backend: &'b mut dyn Backend,
    terms: Terms,
    memory: Arc<Mutex<Memory>>,
    judge: Judge,
    watch: Watch,
    told: Vec<Told>,
    left_out: Vec<(StepId, String)>,
    /// By process: where it is and its open store's id.
    stores: Vec<(Side, String)>,
    location: Option<Json>,
    /// The caller's clock.
    now_ms: u64,
    order: u64,
    /// Whether calls have overlapped, so that the states are not known one by one.
    overlapped: bool,
    rng: fastrand::Rng,
}

impl Runner<'_> {
    fn carry_out(&mut self, script: &Script) -> Result<(), Stopped> {
        self.open(script)?;
        let mut rest = script.steps.as_slice();
        while let Some(step) = rest.first() {
            let racing = rest.iter().take_while(|step| step.lane > 0).count();
            if racing > 0 {
                self.race(&rest[..racing])?;
                rest = &rest[racing..];
            } else {
                self.alone(step)?;
                rest = &rest[1..];
            }
        }
        Ok(())
    }

    /// Opens a fresh storage in the first process and attaches the others to it.
    fn open(&mut self, script: &Script) -> Result<(), Stopped> {
        let processes = script.processes();
        if processes > 1 && !self.terms.cross_process {
            let message = format!(
                "the script asks {processes} processes, and the subject does not declare crossProcessSafe"
            );
            return Err(Fault::new(FaultKind::Bench, message).into());
        }
        let sides = if processes > 1 || script.is_concurrent() {
            self.backend.processes(processes)?
        } else {
            vec![Side::HERE]
        };
        let opened = self.ask(sides[0], "store/open", &json!({}))?;
        let OpenResult { store, location, .. } = serde_json::from_value(opened.clone())
            .map_err(|error| bad_form("store/open", &opened, &error))?;
        self.stores.push((sides[0], store));
        self.location = location;
        for side in &sides[1..] {
            let store = self.attach(*side)?;
            self.stores.push((*side, store));
        }
        Ok(())
    }

    fn attach(&mut self, side: Side) -> Result<String, Fault> {
        let Some(location) = self.location.clone() else {
            let message = "store/open answered without a location, so that nobody can attach";
            return Err(Fault::new(FaultKind::BadForm, message));
        };
        let attached = self.ask(side, "store/attach", &json!({ "location": location }))?;
        serde_json::from_value(attached.clone())
            .map(|AttachResult { store }| store)
            .map_err(|error| bad_form("store/attach", &attached, &error))
    }

    /// A call that is not judged; whatever is no result is a fault.
    fn ask(&mut self, side: Side, method: &'static str, params: &Json) -> Result<Json, Fault> {
        match self.backend.call(side, method, params) {
            Answer::Result(result) => Ok(result),
            Answer::Error(error) => {
                let message = format!("{method} answered the error {}", error.to_json());
                Err(Fault::new(FaultKind::Errored, message))
            }
            Answer::Fault(fault) => Err(fault),
        }
    }

    /// The time by which leases are judged.
    fn now_ms(&mut self) -> u64 {
        match self.terms.clock {
            Clock::Caller => self.now_ms,
            Clock::Wall => self.backend.now_ms(),
        }
    }

    fn stamp(&mut self) -> Stamp {
        self.order += 1;
        Stamp { order: self.order, ms: self.now_ms() }
    }

    fn alone(&mut self, step: &Step) -> Result<(), Stopped> {
        if let Some(lacks) = self.terms.lacks(&step.act) {
            let why = format!("the subject does not declare {lacks}");
            self.left_out.push((step.id, why));
            return Ok(());
        }
        let process = usize::from(step.process);
        match &step.act {
            Act::Wait { until } => {
                let now_ms = self.now_ms();
                let until_ms = lock(&self.memory).until_ms(*until, now_ms, &self.terms);
                match (until_ms, self.terms.clock) {
                    (None, _) => {}
                    (Some(until_ms), Clock::Caller) => self.now_ms = self.now_ms.max(until_ms),
                    (Some(until_ms), Clock::Wall) => self.backend.wait_until(until_ms)?,
                }
                Ok(())
            }
            Act::Reopen => {
                let now_ms = self.now_ms();
                self.watch.reopened(now_ms);
                let (side, store) = self.stores[process].clone();
                self.ask(side, "store/close", &json!({ "store": store }))?;
                self.stores[process].1 = self.attach(side)?;
                Ok(())
            }
            Act::Append { .. }
            | Act::Claim { .. }
            | Act::Ack { .. }
            | Act::Release { .. }
            | Act::Renew { .. }
            | Act::Peek { .. }
            | Act::Drop { .. }
            | Act::Reap
            | Act::Drain { .. } => self.calls(step),
        }
    }

    fn calls(&mut self, step: &Step) -> Result<(), Stopped> {
        let (side, store) = self.stores[usize::from(step.process)].clone();
        let mut doing = Doing::new(step.id, step.act.clone());
        loop {
            let now_ms = self.now_ms();
            let next = doing.next(&lock(&self.memory), &self.terms, &store, now_ms);
            let Some((method, params)) = next else { return Ok(()) };
            let sent = self.stamp();
            let answer = self.backend.call(side, method, &params);
            let answered = Some(self.stamp());
            if let Answer::Fault(fault) = answer {
                return Err(fault.into());
            }
            let when = When { sent, answered, lane: 0, process: usize::from(step.process) };
            let call = Call::read(method, &params, &answer, when)?;
            doing.answered(&call.outcome);
            lock(&self.memory).learn(step.id, &call, &self.terms);
            self.watch.see(&call);
            let judged = if self.overlapped { Ok(()) } else { self.judge.see(&call) };
            self.told.push(Told { step: step.id, lane: 0, process: step.process, call });
            judged.map_err(|violation| Stopped::Forbidden(Box::new(violation)))?;
        }
    }

    /// Runs neighbouring steps side by side, a lane in the process of its first step.
    fn race(&mut self, steps: &[Step]) -> Result<(), Stopped> {
        let mut names: Vec<u8> = steps.iter().map(|step| step.lane).collect();
        names.sort_unstable();
        names.dedup();
        let now_ms = self.now_ms();
        let (mut lanes, mut workers, mut made) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let mut own: Vec<Step> = Vec::new();
            for step in steps.iter().filter(|step| step.lane == name) {
                match self.terms.lacks(&step.act) {
                    Some(lacks) => {
                        let why = format!("the subject does not declare {lacks}");
                        self.left_out.push((step.id, why));
                    }
                    None => own.push(step.clone()),
                }
            }
            let Some(first) = own.first() else { continue };
            let process = first.process;
            let (side, store) = self.stores[usize::from(process)].clone();
            let calls: Arc<Mutex<Vec<StepId>>> = Arc::default();
            made.push(Arc::clone(&calls));
            workers.push((name, process));
            let worker =
                Worker::new(own, Arc::clone(&self.memory), self.terms, store, now_ms, calls);
            lanes.push((side, Box::new(worker) as Box<dyn Lane>));
        }
        let seed = self.rng.u64(..);
        let raced = self.backend.race(Race { lanes, kill: None, seed })?;
        self.overlapped = true;
        self.hear(raced, &workers, &made, now_ms)
    }

    fn hear(
        &mut self,
        raced: Vec<Raced>,
        workers: &[(u8, u8)],
        made: &[Arc<Mutex<Vec<StepId>>>],
        now_ms: u64,
    ) -> Result<(), Stopped> {
        let base = self.order;
        let mut places = vec![0; workers.len()];
        let mut gone = None;
        let mut last = base;
        for told in raced {
            let stamp = |stamp: storeproof_contract::race::Stamp| Stamp {
                order: base + stamp.order,
                ms: match self.terms.clock {
                    Clock::Caller => now_ms,
                    Clock::Wall => stamp.ms,
                },
            };
            let (lane, process) = workers[told.lane];
            let (sent, answered) = (stamp(told.sent), told.answered.map(stamp));
            last = last.max(sent.order).max(answered.map_or(0, |at| at.order));
            let step = lock(&made[told.lane]).get(places[told.lane]).copied().unwrap_or(0);
            places[told.lane] += 1;
            let silent = || Fault::new(FaultKind::Died, "the process was killed in this call");
            let answer = told.answer.unwrap_or_else(|| Answer::Fault(silent()));
            if let Answer::Fault(fault) = &answer {
                gone.get_or_insert_with(|| fault.clone());
            }
            let when =
                When { sent, answered, lane: usize::from(lane), process: usize::from(process) };
            let call = Call::read(told.method, &told.params, &answer, when)?;
            lock(&self.memory).learn_again(step, &call, &self.terms);
            self.watch.see(&call);
            self.told.push(Told { step, lane, process, call });
        }
        self.order = last;
        self.watch.reached.overlapping += overlapping(&self.told);
        gone.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Closes and, where it can be, removes what was opened. Answers the fault that ended it.
    fn clean_up(&mut self, end: &End) -> Option<Fault> {
        if matches!(end, End::NoVerdict(_)) {
            return None;
        }
        let closes: Vec<(Side, &'static str, Json)> = std::mem::take(&mut self.stores)
            .into_iter()
            .map(|(side, store)| (side, "store/close", json!({ "store": store })))
            .collect();
        let first = closes.first().map(|(side, ..)| *side);
        let destroy = first
            .zip(self.location.take())
            .map(|(side, location)| (side, "store/destroy", json!({ "location": location })));
        for (side, method, params) in closes.into_iter().chain(destroy) {
            if let Answer::Fault(fault) = self.backend.call(side, method, &params) {
                return Some(fault);
            }
        }
        None
    }
}

/// How many of the calls overlapped another one of another lane.
fn overlapping(told: &[Told]) -> u64 {
    let ends = |told: &Told| told.call.answered.map_or(u64::MAX, |at| at.order);
    let pairs = told
        .windows(2)
        .filter(|pair| pair[0].lane != pair[1].lane && pair[1].call.sent.order < ends(&pair[0]));
    pairs.count() as u64
}

fn bad_form(method: &str, result: &Json, error: &serde_json::Error) -> Fault {
    let message =
        format!("{method} answered {}: {error}", storeproof_contract::json::excerpt(result));
    Fault::new(FaultKind::BadForm, message)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
