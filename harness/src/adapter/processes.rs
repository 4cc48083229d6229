//! The processes of one subject: started when a clause wants them, called, killed, and raced.

use super::launch::{Launch, StartError};
use super::session::Session;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use storeproof_contract::backend::{Manifest, Side};
use storeproof_contract::call::{Answer, Fault, FaultKind};
use storeproof_contract::json::Json;
use storeproof_contract::race::{KillAt, Lane, Race, Raced, Stamp};

/// The most processes of one subject at a time.
pub const PROCESSES_MAX: usize = 8;
/// How long a call is taken to last before one was measured.
const USUAL_MS: u64 = 2;

/// The processes by place. Which place a subject's own child has is for the backend to say.
pub(super) struct Processes {
    launch: Launch,
    slots: Vec<Slot>,
    /// How long a call of each method usually takes, to kill a process in the middle of one.
    usual: BTreeMap<&'static str, Duration>,
    notes: Vec<String>,
}

/// One place.
enum Slot {
    Running(Box<Session>),
    /// Nobody is there, and why.
    Empty(Fault),
}

impl Processes {
    /// No process yet; further ones are started by `launch`.
    pub(super) fn new(launch: Launch) -> Self {
        Self { launch, slots: Vec::new(), usual: BTreeMap::new(), notes: Vec::new() }
    }

    /// How they are started.
    pub(super) fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Puts a running session in a place.
    pub(super) fn put(&mut self, place: usize, session: Session) {
        while self.slots.len() <= place {
            self.slots.push(Slot::Empty(Fault::new(FaultKind::Bench, "no such process yet")));
        }
        self.slots[place] = Slot::Running(Box::new(session));
    }

    /// The session in a place.
    pub(super) fn session(&mut self, place: usize) -> Option<&mut Session> {
        match self.slots.get_mut(place) {
            Some(Slot::Running(session)) => Some(session),
            Some(Slot::Empty(_)) | None => None,
        }
    }

    /// Why nobody is in a place.
    pub(super) fn gone(&self, place: usize) -> Fault {
        match self.slots.get(place) {
            Some(Slot::Empty(fault)) => fault.clone(),
            Some(Slot::Running(_)) | None => Fault::new(FaultKind::Bench, "no such process"),
        }
    }

    /// Takes a session out of its place, leaving `why`; its own fault goes before that.
    pub(super) fn take(&mut self, place: usize, why: Fault) -> Option<Session> {
        let slot = self.slots.get_mut(place)?;
        match std::mem::replace(slot, Slot::Empty(why)) {
            Slot::Running(mut session) => {
                self.notes.extend(session.take_notes());
                if let Some(fault) = session.fault() {
                    *slot = Slot::Empty(fault.clone());
                }
                Some(*session)
            }
            Slot::Empty(before) => {
                *slot = Slot::Empty(before);
                None
            }
        }
    }

    /// Says why nobody is in a place.
    pub(super) fn leave(&mut self, place: usize, why: Fault) {
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Slot::Empty(why);
        }
    }

    /// What was noted since the last look.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        for slot in &mut self.slots {
            if let Slot::Running(session) = slot {
                self.notes.extend(session.take_notes());
            }
        }
        std::mem::take(&mut self.notes)
    }

    /// Gives the calls of each process `budget` together.
    pub(super) fn begin_clause(&mut self, budget: Duration) {
        for slot in &mut self.slots {
            if let Slot::Running(session) = slot {
                session.begin_clause(budget);
            }
        }
    }

    /// Ends every process decently.
    pub(super) fn finish(&mut self) {
        for slot in self.slots.drain(..) {
            if let Slot::Running(session) = slot {
                self.notes.extend(session.finish());
            }
        }
    }

    /// Starts one more child that must declare what `expected` declares.
    pub(super) fn start(&self, expected: &Manifest) -> Result<Session, Fault> {
        let session = Session::start(&self.launch).map_err(|error| match error {
            StartError::Handshake(fault) => {
                Fault::new(fault.kind, format!("the child did not start again: {}", fault.message))
            }
            StartError::NotStartable { .. } | StartError::WrongMajor { .. } => {
                Fault::new(FaultKind::Died, format!("the child did not start again: {error}"))
            }
        })?;
        match difference(expected, session.manifest()) {
            None => Ok(session),
            Some(what) => {
                let message = format!("started again, the subject declares something else: {what}");
                Err(Fault::new(FaultKind::BadReply, message))
            }
        }
    }

    /// Sees to it that each of `places` has a running process, no two the same and none the bench.
    pub(super) fn run(
        &mut self,
        places: std::ops::Range<usize>,
        expected: &Manifest,
        budget: Duration,
    ) -> Result<Vec<Side>, Fault> {
        if places.len() > PROCESSES_MAX {
            let message =
                format!("{} processes were asked for; {PROCESSES_MAX} is the most", places.len());
            return Err(Fault::new(FaultKind::Limit, message));
        }
        for place in places.clone() {
            if self.session(place).is_some_and(|session| session.is_alive()) {
                continue;
            }
            self.take(place, Fault::new(FaultKind::Died, "the process exited by itself"));
            let mut session = self.start(expected)?;
            session.begin_clause(budget);
            self.put(place, session);
        }
        self.check_ids(places.clone())?;
        Ok(places.filter_map(|place| u8::try_from(place).ok()).map(Side).collect())
    }

    /// Two handles on one process would prove nothing of two processes.
    fn check_ids(&mut self, places: std::ops::Range<usize>) -> Result<(), Fault> {
        let mut seen: BTreeMap<u64, String> = BTreeMap::new();
        seen.insert(u64::from(std::process::id()), "the bench itself".to_owned());
        for place in places {
            let Some(id) = self.session(place).map(|session| session.process_id()) else {
                continue;
            };
            let who = format!("process {}", Side(u8::try_from(place).unwrap_or(u8::MAX)).letter());
            if !is_running(id) {
                // In a container of its own that may be true.
                self.notes
                    .push(format!("{who} says that its pid is {id}; no such process is seen here"));
            }
            if let Some(other) = seen.insert(id, who.clone()) {
                let message = format!(
                    "{who} says that its pid is {id}, which is the pid of {other}: a clause about two \
                     processes needs two"
                );
                return Err(Fault::new(FaultKind::BadReply, message));
            }
        }
        Ok(())
    }

    /// One call, timed.
    pub(super) fn call(&mut self, place: usize, method: &'static str, params: &Json) -> Answer {
        let Some(session) = self.session(place) else { return Answer::Fault(self.gone(place)) };
        let started = Instant::now();
        let answer = session.call(method, params);
        let took = started.elapsed();
        self.usual
            .entry(method)
            .and_modify(|usual| *usual = (*usual * 3 + took) / 4)
            .or_insert(took);
        answer
    }

    fn delay(&self, method: &'static str, at: f64) -> Duration {
        let usual = self.usual.get(method).copied();
        usual.unwrap_or(Duration::from_millis(USUAL_MS)).mul_f64(at.clamp(0.0, 100.0))
    }

    /// See [`storeproof_contract::backend::Backend::call_and_kill`].
    pub(super) fn call_and_kill(
        &mut self,
        place: usize,
        method: &'static str,
        params: &Json,
        at: f64,
    ) -> Result<Option<Answer>, Fault> {
        let delay = self.delay(method, at);
        let gone = self.gone(place);
        let session = self.session(place).ok_or(gone)?;
        let answer = session.call_and_kill(method, params, delay);
        self.take(place, Fault::new(FaultKind::Died, "the bench killed the process"));
        answer
    }

    /// See [`storeproof_contract::backend::Backend::kill`].
    pub(super) fn kill(&mut self, place: usize) -> Result<(), Fault> {
        let gone = self.gone(place);
        self.session(place).ok_or(gone)?.kill();
        self.take(place, Fault::new(FaultKind::Died, "the bench killed the process"));
        Ok(())
    }

    /// See [`storeproof_contract::backend::Backend::race`]: a thread a process, which takes its lanes in
    /// random turns.
    pub(super) fn race(&mut self, race: Race<'_>) -> Result<Vec<Raced>, Fault> {
        let Race { lanes, kill, seed } = race;
        let mut by_place: BTreeMap<usize, Vec<Numbered<'_>>> = BTreeMap::new();
        for (number, (side, lane)) in lanes.into_iter().enumerate() {
            by_place.entry(usize::from(side.0)).or_default().push((number, lane));
        }
        let delays: BTreeMap<&'static str, Duration> = self.usual.clone();
        let clock = self.launch.space.clock();
        let order = AtomicU64::new(0);
        let stamp =
            || Stamp { order: order.fetch_add(1, Ordering::SeqCst) + 1, ms: clock.now_ms() };
        // Held until all threads are there, so that they set out together.
        let gate = Mutex::new(());
        let told = Mutex::new(Vec::new());
        let mut racers = Vec::new();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let Some(lanes) = by_place.remove(&place) else { continue };
            let Slot::Running(session) = slot else {
                return Err(Fault::new(FaultKind::Died, "a process of the race is not running"));
            };
            let side = Side(u8::try_from(place).unwrap_or(u8::MAX));
            let kill = kill.filter(|kill| kill.side == side);
            let rng = fastrand::Rng::with_seed(seed ^ u64::from(side.0));
            racers.push(Racer { side, session, lanes, kill, rng });
        }
        if !by_place.is_empty() {
            return Err(Fault::new(FaultKind::Died, "a process of the race is not running"));
        }
        thread::scope(|scope| {
            let held = gate.lock();
            for racer in racers {
                let (stamp, gate, told, delays) = (&stamp, &gate, &told, &delays);
                // Deeply nested answers are parsed by recursion, as in a worker.
                let spawned = thread::Builder::new()
                    .stack_size(super::DEEP_STACK_BYTES)
                    .spawn_scoped(scope, move || {
                        drop(gate.lock());
                        let own = racer.run(stamp, delays);
                        told.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
                    });
                if let Err(error) = spawned {
                    return Err(Fault::new(FaultKind::Bench, format!("no thread: {error}")));
                }
            }
            drop(held);
            Ok(())
        })?;
        if let Some(kill) = kill {
            let place = usize::from(kill.side.0);
            if let Some(session) = self.session(place) {
                session.kill();
            }
            self.take(place, Fault::new(FaultKind::Died, "the bench killed the process"));
        }
        let mut told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
        told.sort_by_key(|call: &Raced| call.sent.order);
        Ok(told)
    }
}

/// A lane with its place in the race.
type Numbered<'l> = (usize, Box<dyn Lane + 'l>);

/// Whether a process of that number runs, whoever owns it.
fn is_running(id: u64) -> bool {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    // Not being allowed to signal it says that it is there.
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// One process with the lanes that call it.
struct Racer<'s, 'l> {
    side: Side,
    session: &'s mut Session,
    lanes: Vec<Numbered<'l>>,
    kill: Option<KillAt>,
    rng: fastrand::Rng,
}

impl Racer<'_, '_> {
    fn run(
        mut self,
        stamp: &dyn Fn() -> Stamp,
        usual: &BTreeMap<&'static str, Duration>,
    ) -> Vec<Raced> {
        let mut told = Vec::new();
        let mut answered = 0;
        while !self.lanes.is_empty() {
            let turn = self.rng.usize(..self.lanes.len());
            let (number, lane) = &mut self.lanes[turn];
            let number = *number;
            let Some((method, params)) = lane.next() else {
                self.lanes.remove(turn);
                continue;
            };
            let kill = self.kill.filter(|kill| answered >= kill.after);
            let sent = stamp();
            let answer = match kill {
                None => Some(self.session.call(method, &params)),
                Some(kill) => {
                    let usual = usual.get(method).copied();
                    let usual = usual.unwrap_or(Duration::from_millis(USUAL_MS));
                    let after = usual.mul_f64(kill.at.clamp(0.0, 100.0));
                    match self.session.call_and_kill(method, &params, after) {
                        Ok(answer) => answer,
                        Err(fault) => Some(Answer::Fault(fault)),
                    }
                }
            };
            let at = answer.is_some().then(stamp);
            if let Some(answer) = &answer {
                lane.answered(answer);
            }
            let ends = kill.is_some() || matches!(answer, Some(Answer::Fault(_)));
            let side = self.side;
            told.push(Raced { lane: number, side, method, params, sent, answered: at, answer });
            if ends {
                break;
            }
            answered += 1;
        }
        told
    }
}

/// What two handshakes of one subject declare differently. Process ids and what a subject says of its
/// server may well differ from start to start.
fn difference(first: &Manifest, again: &Manifest) -> Option<String> {
    let declared = |manifest: &Manifest| {
        let manifest = Manifest { pid: None, server: None, ..manifest.clone() };
        serde_json::to_value(manifest).unwrap_or_default()
    };
    let (first, again) = (declared(first), declared(again));
    let names = first.as_object().into_iter().chain(again.as_object()).flat_map(|o| o.keys());
    let name = names.into_iter().find(|name| first.get(name) != again.get(name))?;
    let shown = |side: &Json| side.get(name).map_or("nothing".to_owned(), Json::to_string);
    Some(format!("`{name}` was {} and is {}", shown(&first), shown(&again)))
}
