//! A bench without files, processes or waiting: runs clauses against a [`Subject`] in simulated time.
//! Laws, mutants and the kill table use it; what it says about the wall clock is exact.
//!
//! A process is a [`Host`] of its own; what they share is the [`World`]. In a race one call runs at a
//! time, except that inside a gap of one process's operation (see [`World::gap`]) another process makes
//! a whole call. A process that is killed in a call is killed before it, at its first gap, or after it.

use crate::backend::{Backend, Manifest, Side};
use crate::call::{Answer, Fault, FaultKind};
use crate::host::Host;
use crate::json::Json;
use crate::race::{KillAt, Lane, Race, Raced, Stamp};
use crate::subject::Subject;
use crate::suite::{Mount, Suite};
use crate::world::{Gap, InGap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::world::{Clockwork, SimClock, World};

/// The most calls one case may make before the simulation calls it a runaway.
const CALLS_PER_CASE_MAX: u32 = 50_000;
/// The most processes at a time.
const PROCESSES_MAX: usize = 8;
/// The folder that simulated snares pretend to lie beside.
const SNARES: [&str; 4] = ["../snare", "..\\snare", "/snare-root/snare", "a/../../snare"];

/// Adds to each call's duration: simulated slowness in milliseconds, drawn by the caller.
pub type Slowness = Box<dyn FnMut() -> u64 + Send>;

/// Makes one process of the subject.
pub type Make = fn(World) -> Box<dyn Subject>;

/// The simulated bench.
pub struct Sim {
    make: Make,
    world: World,
    manifest: Manifest,
    clock: SimClock,
    /// By [`Side`]; none where a process was killed.
    processes: Vec<Option<Process>>,
    stage: Arc<Mutex<Stage>>,
    slowness: Option<Slowness>,
    calls: u32,
}

/// A process can be called while another one is in a gap of its own call.
type Process = Arc<Mutex<Host>>;

/// What happens in the next gap.
enum Stage {
    Quiet,
    /// The process that reaches a gap is killed there.
    Killing {
        killed: bool,
    },
    /// Somebody else may act.
    Racing(Box<Racing>),
}

impl Sim {
    /// A bench for the subject that `make` makes, living by `clock`'s time or its callers'.
    #[must_use]
    pub fn new(time: SimTime, clock: SimClock, make: Make) -> Self {
        let stage = Arc::new(Mutex::new(Stage::Quiet));
        let in_gap: InGap = {
            let stage = Arc::clone(&stage);
            Arc::new(move || in_gap(&stage))
        };
        let clockwork = match time {
            SimTime::Caller => Clockwork::Caller,
            SimTime::Wall => Clockwork::Wall(clock.clone()),
        };
        let world = World::new(clockwork).with_gap(in_gap);
        let host = Host::new(make(world.clone()));
        let manifest = host.manifest().clone();
        let processes = vec![Some(Arc::new(Mutex::new(host)))];
        Self { make, world, manifest, clock, processes, stage, slowness: None, calls: 0 }
    }

    /// The same bench on a slow machine: before and after each call, time passes as `slowness` says.
    #[must_use]
    pub fn slowed(mut self, slowness: Slowness) -> Self {
        self.slowness = Some(slowness);
        self
    }

    fn pass_time(&mut self) {
        if let Some(slowness) = &mut self.slowness {
            let ms = slowness();
            self.clock.advance_to(self.clock.now_ms() + ms);
        }
    }

    fn process(&self, side: Side) -> Result<Process, Fault> {
        let found = self.processes.get(usize::from(side.0)).cloned().flatten();
        found.ok_or_else(|| Fault::new(FaultKind::Died, "the process was killed"))
    }

    fn count(&mut self, calls: usize) -> Result<(), Fault> {
        self.calls = self.calls.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
        if self.calls > CALLS_PER_CASE_MAX {
            let message = format!("the case made more than {CALLS_PER_CASE_MAX} calls");
            return Err(Fault::new(FaultKind::Limit, message));
        }
        Ok(())
    }
}

impl Backend for Sim {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn call(&mut self, on: Side, method: &'static str, params: &Json) -> Answer {
        let process = match self.count(1).and_then(|()| self.process(on)) {
            Ok(process) => process,
            Err(fault) => return Answer::Fault(fault),
        };
        self.pass_time();
        let answer = lock(&process).call(method, params);
        self.pass_time();
        if self.world.take_hang() {
            // A real bench has to kill what no longer answers.
            self.processes[usize::from(on.0)] = None;
            return Answer::Fault(Fault::new(FaultKind::Deadline, format!("{method}: no reply")));
        }
        answer
    }

    fn processes(&mut self, count: usize) -> Result<Vec<Side>, Fault> {
        if count > PROCESSES_MAX {
            let message = format!("{count} processes were asked for; {PROCESSES_MAX} is the most");
            return Err(Fault::new(FaultKind::Limit, message));
        }
        if self.processes.len() < count {
            self.processes.resize_with(count, || None);
        }
        for process in self.processes.iter_mut().take(count) {
            process.get_or_insert_with(|| {
                Arc::new(Mutex::new(Host::new((self.make)(self.world.clone()))))
            });
        }
        Ok((0..count).filter_map(|i| u8::try_from(i).ok()).map(Side).collect())
    }

    fn call_and_kill(
        &mut self,
        on: Side,
        method: &'static str,
        params: &Json,
        at: f64,
    ) -> Result<Option<Answer>, Fault> {
        self.count(1)?;
        let process = self.process(on)?;
        self.pass_time();
        let answer = killed_in(&process, &self.stage, method, params, at);
        self.pass_time();
        self.processes[usize::from(on.0)] = None;
        Ok(answer)
    }

    fn kill(&mut self, side: Side) -> Result<(), Fault> {
        self.process(side)?;
        self.processes[usize::from(side.0)] = None;
        Ok(())
    }

    fn race(&mut self, race: Race<'_>) -> Result<Vec<Raced>, Fault> {
        let kill = race.kill;
        let mut lanes = Vec::new();
        let mut racing = Racing {
            processes: Vec::new(),
            clock: self.clock.clone(),
            world: self.world.clone(),
            rng: fastrand::Rng::with_seed(race.seed),
            order: 0,
            kill,
            answered: 0,
            in_flight: None,
            waiting: Vec::new(),
            told: Vec::new(),
        };
        for (side, lane) in race.lanes {
            racing.processes.push((side, self.process(side)?));
            lanes.push(lane);
        }
        let raced = run_race(&self.stage, racing, lanes);
        self.count(raced.len())?;
        if let Some(kill) = kill {
            self.processes[usize::from(kill.side.0)] = None;
        }
        Ok(raced)
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
        let process = self.process(Side::HERE)?;
        let escaped = lock(&process).subject().escaped();
        Ok(escaped)
    }
}

/// The call of a process that is killed in it: before it, at its first gap, or when it was carried out,
/// with the answer lost or just got out.
fn killed_in(
    process: &Mutex<Host>,
    stage: &Mutex<Stage>,
    method: &str,
    params: &Json,
    at: f64,
) -> Option<Answer> {
    const AT_A_GAP: f64 = 0.25;
    const CARRIED_OUT: f64 = 0.7;
    const ANSWERED: f64 = 0.9;
    if at < AT_A_GAP {
        return None;
    }
    if at < CARRIED_OUT {
        *lock(stage) = Stage::Killing { killed: false };
    }
    let answer = lock(process).call(method, params);
    let stage = std::mem::replace(&mut *lock(stage), Stage::Quiet);
    let killed = matches!(stage, Stage::Killing { killed: true });
    (!killed && at >= ANSWERED).then_some(answer)
}

fn in_gap(stage: &Mutex<Stage>) -> Gap {
    let taken = std::mem::replace(&mut *lock(stage), Stage::Quiet);
    match taken {
        Stage::Quiet => Gap::Over,
        Stage::Killing { .. } => {
            *lock(stage) = Stage::Killing { killed: true };
            Gap::Killed
        }
        Stage::Racing(mut racing) => {
            // While it acts the stage is quiet: gaps do not nest.
            racing.act_beside();
            *lock(stage) = Stage::Racing(racing);
            Gap::Over
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A race under way. Lanes cannot be called from inside a gap (they are the clause's own), so each
/// lane's next call is fetched beforehand and waits here.
struct Racing {
    processes: Vec<(Side, Process)>,
    clock: SimClock,
    world: World,
    rng: fastrand::Rng,
    order: u64,
    kill: Option<KillAt>,
    /// How many calls the process that is to be killed has answered.
    answered: usize,
    /// The process whose call is under way.
    in_flight: Option<Side>,
    /// By lane: the call it makes next.
    waiting: Vec<Option<(&'static str, Json)>>,
    told: Vec<Raced>,
}

fn run_race(
    stage: &Mutex<Stage>,
    mut racing: Racing,
    mut lanes: Vec<Box<dyn Lane + '_>>,
) -> Vec<Raced> {
    racing.waiting = lanes.iter_mut().map(|lane| lane.next()).collect();
    let mut heard = 0;
    let mut dead = None;
    while let Some(lane) = racing.choose(None) {
        let (side, process) = racing.processes[lane].clone();
        let Some((method, params)) = racing.waiting[lane].take() else { break };
        let sent = racing.stamp();
        let kill = racing.kill.filter(|kill| kill.side == side && kill.after <= racing.answered);
        let answer = if let Some(kill) = kill {
            dead = Some(side);
            racing.kill = None;
            killed_in(&process, stage, method, &params, kill.at)
        } else {
            racing.in_flight = Some(side);
            *lock(stage) = Stage::Racing(Box::new(racing));
            let answer = lock(&process).call(method, &params);
            let Stage::Racing(back) = std::mem::replace(&mut *lock(stage), Stage::Quiet) else {
                return Vec::new();
            };
            racing = *back;
            racing.in_flight = None;
            Some(answer)
        };
        racing.end(lane, side, method, params, sent, answer);
        // Whoever acted in a gap is told here too.
        for call in &racing.told[heard..] {
            if let Some(answer) = &call.answer {
                lanes[call.lane].answered(answer);
                if !matches!(answer, Answer::Fault(_)) {
                    racing.waiting[call.lane] = lanes[call.lane].next();
                }
            }
        }
        heard = racing.told.len();
        for (waiting, (on, _)) in racing.waiting.iter_mut().zip(&racing.processes) {
            if Some(*on) == dead {
                *waiting = None;
            }
        }
    }
    let mut told = racing.told;
    told.sort_by_key(|call| call.sent.order);
    told
}

impl Racing {
    /// A lane with a call to make whose process is free, at random.
    fn choose(&mut self, busy: Option<Side>) -> Option<usize> {
        let free: Vec<usize> = (0..self.waiting.len())
            .filter(|lane| self.waiting[*lane].is_some() && Some(self.processes[*lane].0) != busy)
            .collect();
        (!free.is_empty()).then(|| free[self.rng.usize(..free.len())])
    }

    fn stamp(&mut self) -> Stamp {
        self.order += 1;
        Stamp { order: self.order, ms: self.clock.now_ms() }
    }

    /// Another process makes a whole call, more often than not.
    fn act_beside(&mut self) {
        if self.rng.u8(..) < 64 {
            return;
        }
        let Some(lane) = self.choose(self.in_flight) else { return };
        let (side, process) = self.processes[lane].clone();
        if self.kill.is_some_and(|kill| kill.side == side && kill.after <= self.answered) {
            return;
        }
        let Some((method, params)) = self.waiting[lane].take() else { return };
        let sent = self.stamp();
        let answer = lock(&process).call(method, &params);
        self.end(lane, side, method, params, sent, Some(answer));
    }

    fn end(
        &mut self,
        lane: usize,
        side: Side,
        method: &'static str,
        params: Json,
        sent: Stamp,
        answer: Option<Answer>,
    ) {
        let hangs = self.world.take_hang();
        let silent =
            || Answer::Fault(Fault::new(FaultKind::Deadline, format!("{method}: no reply")));
        let answer = if hangs { Some(silent()) } else { answer };
        let answered = answer.is_some().then(|| self.stamp());
        if self.kill.is_some_and(|kill| kill.side == side) {
            self.answered += 1;
        }
        self.told.push(Raced { lane, side, method, params, sent, answered, answer });
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

/// Whether the suite stands before what `make` makes: its other clauses say nothing of it.
#[must_use]
pub fn mounts(suite: &Suite, make: Make) -> bool {
    let manifest = make(World::new(Clockwork::Caller)).manifest();
    suite.mount(&manifest.capabilities, None) == Mount::Mounted
}

/// Judges one clause against a store made by `make`, in simulated time, on an idle machine.
pub fn judge_in(
    time: SimTime,
    clause: &crate::clause::Clause,
    make: Make,
    seed: u64,
) -> crate::trial::Judgement {
    crate::trial::judge(clause, &mut Sim::new(time, SimClock::new(), make), seed)
}
