//! A bench without files, processes or waiting: runs clauses against a [`Subject`] in simulated time.
//! Laws, mutants and the kill table use it; what it says about the wall clock is exact.

use crate::backend::{Backend, Manifest};
use crate::call::{Answer, Fault, FaultKind};
use crate::host::Host;
use crate::json::Json;
use crate::subject::Subject;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most calls one case may make before the simulation calls it a runaway.
const CALLS_PER_CASE_MAX: u32 = 50_000;
/// Where simulated wall time starts: an arbitrary epoch millisecond.
const START_MS: u64 = 1_700_000_000_000;
/// The folder that simulated snares pretend to lie beside.
const SNARES: [&str; 4] = ["../snare", "..\\snare", "/snare-root/snare", "a/../../snare"];

/// A wall clock that only the simulation moves.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<AtomicU64>);

impl SimClock {
    /// A clock at the simulation's start.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(START_MS)))
    }

    /// The simulated epoch millisecond.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn advance_to(&self, ms: u64) {
        self.0.fetch_max(ms, Ordering::Relaxed);
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Which clock a simulated store lives by.
#[derive(Clone, Debug)]
pub enum Clockwork {
    /// The `now` of each call.
    Caller,
    /// The simulated wall clock.
    Wall(SimClock),
}

/// Adds to each call's duration: simulated slowness in milliseconds, drawn by the caller.
pub type Slowness = Box<dyn FnMut() -> u64 + Send>;

/// The simulated bench.
pub struct Sim {
    host: Host,
    manifest: Manifest,
    clock: SimClock,
    slowness: Option<Slowness>,
    calls: u32,
}

impl Sim {
    /// A bench for one subject, whose wall clock (if it lives by one) is `clock`.
    #[must_use]
    pub fn new(subject: Box<dyn Subject>, clock: SimClock) -> Self {
        let host = Host::new(subject);
        let manifest = host.manifest().clone();
        Self { host, manifest, clock, slowness: None, calls: 0 }
    }

    /// The same bench on a slow machine: before and after each call, time passes as `slowness` says.
    #[must_use]
    pub fn slowed(mut self, slowness: Slowness) -> Self {
        self.slowness = Some(slowness);
        self
    }

    /// The host behind the bench.
    pub fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    fn pass_time(&mut self) {
        if let Some(slowness) = &mut self.slowness {
            let ms = slowness();
            self.clock.advance_to(self.clock.now_ms() + ms);
        }
    }
}

impl Backend for Sim {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn call(&mut self, method: &'static str, params: &Json) -> Answer {
        self.calls += 1;
        if self.calls > CALLS_PER_CASE_MAX {
            let message = format!("the case made more than {CALLS_PER_CASE_MAX} calls");
            return Answer::Fault(Fault::new(FaultKind::Limit, message));
        }
        self.pass_time();
        let answer = self.host.call(method, params);
        self.pass_time();
        answer
    }

    fn now_ms(&mut self) -> u64 {
        self.clock.now_ms()
    }

    fn wait_until(&mut self, until_ms: u64) -> Result<(), Fault> {
        self.clock.advance_to(until_ms);
        self.pass_time();
        Ok(())
    }

    fn lay_snares(&mut self, _root: Option<&str>) -> Result<Vec<String>, Fault> {
        Ok(SNARES.iter().map(|name| (*name).to_owned()).collect())
    }

    fn sprung_snares(&mut self) -> Result<Vec<String>, Fault> {
        Ok(self.host.subject().escaped())
    }
}

/// Which clock a simulated run lives by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimTime {
    /// The caller's clock.
    Caller,
    /// The simulated wall clock.
    Wall,
}

/// Judges one clause against a store made by `make`, in simulated time, on an idle machine.
pub fn judge_in(
    time: SimTime,
    clause: &crate::clause::Clause,
    make: fn(Clockwork) -> Box<dyn Subject>,
    seed: u64,
) -> crate::trial::Judgement {
    let clock = SimClock::new();
    let clockwork = match time {
        SimTime::Caller => Clockwork::Caller,
        SimTime::Wall => Clockwork::Wall(clock.clone()),
    };
    crate::trial::judge(clause, &mut Sim::new(make(clockwork), clock), seed)
}
