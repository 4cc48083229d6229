//! A Rust subject in this process as a backend: the same clock and snares as a child gets, and a panic
//! of the store is the store's death, not the bench's.

use super::backend::Stand;
use super::launch::Launch;
use super::processes::Processes;
use super::snares::Snares;
use super::space::{RunSpace, wait_until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use storeproof_contract::backend::{Backend, KILL_ROUNDS, Manifest, Side};
use storeproof_contract::call::{Answer, Fault, FaultKind};
use storeproof_contract::host::Host;
use storeproof_contract::json::Json;
use storeproof_contract::race::{Race, Raced};
use storeproof_contract::subject::Subject;
use storeproof_contract::suite::Hooks;

/// The most calls one clause may make of a subject in this process, which no deadline can stop.
pub const CALLS_PER_CLAUSE_MAX: u32 = 65_000;
/// How long the calls of one clause may take together, until it is told otherwise.
const CLAUSE_S_MAX: u64 = 120;

/// Makes a fresh subject.
pub type MakeSubject = Box<dyn FnMut() -> Box<dyn Subject> + Send>;

/// A subject in this process.
pub struct LocalBackend {
    make: MakeSubject,
    host: Host,
    manifest: Manifest,
    space: Arc<RunSpace>,
    snares: Snares,
    calls: u32,
    budget: Duration,
    spent: Duration,
    waited: Duration,
    dead: Option<Fault>,
    /// The same store behind a pipe, for clauses about several processes: this one is the bench's own.
    peers: Option<Processes>,
    kill_rounds: u32,
}

/// Where the peers' places begin: the value in this process has the first.
const PEERS: usize = 1;

impl LocalBackend {
    /// A subject made by `make`, which is asked again after a panic.
    #[must_use]
    pub fn new(mut make: MakeSubject, space: Arc<RunSpace>) -> Self {
        let host = Host::new(make());
        let manifest = host.manifest().clone();
        let snares = Snares::new(space.folder());
        Self {
            make,
            host,
            manifest,
            space,
            snares,
            calls: 0,
            budget: Duration::from_secs(CLAUSE_S_MAX),
            spent: Duration::ZERO,
            waited: Duration::ZERO,
            dead: None,
            peers: None,
            kill_rounds: KILL_ROUNDS,
        }
    }

    /// The same subject with a command that serves it from processes of their own, and how often they
    /// are killed in each clause about kills.
    #[must_use]
    pub fn with_peers(mut self, launch: Launch, kill_rounds: u32) -> Self {
        self.peers = Some(Processes::new(launch));
        self.kill_rounds = kill_rounds;
        self
    }

    fn peers(&mut self) -> Result<&mut Processes, Fault> {
        self.peers.as_mut().ok_or_else(|| {
            Fault::new(FaultKind::Bench, "this subject cannot be started as a process of its own")
        })
    }

    /// The hooks that its stores really have.
    ///
    /// # Errors
    /// A fault where no store opens to look at.
    pub fn hooks(&mut self) -> Result<Hooks, Fault> {
        let looked = catch_unwind(AssertUnwindSafe(|| self.host.hooks()));
        match looked {
            Ok(Ok(hooks)) => Ok(hooks),
            Ok(Err(error)) => {
                Err(Fault::new(FaultKind::Errored, format!("store/open at the mount: {error}")))
            }
            Err(panic) => Err(self.bury(panicked("store/open", panic.as_ref()))),
        }
    }

    fn bury(&mut self, fault: Fault) -> Fault {
        self.dead = Some(fault.clone());
        fault
    }

    /// A limit that the clause has run into.
    fn exhausted(&self) -> Option<Fault> {
        if self.space.is_interrupted() {
            return Some(Fault::new(FaultKind::Interrupted, "the run was interrupted"));
        }
        if self.calls >= CALLS_PER_CLAUSE_MAX {
            let message = format!("the clause made {CALLS_PER_CLAUSE_MAX} calls and saw no end");
            return Some(Fault::new(FaultKind::Limit, message));
        }
        if self.spent >= self.budget {
            let message =
                format!("the calls took {:?}, the clause has {:?}", self.spent, self.budget);
            return Some(Fault::new(FaultKind::Deadline, message));
        }
        None
    }
}

impl Backend for LocalBackend {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn call(&mut self, on: Side, method: &'static str, params: &Json) -> Answer {
        if on != Side::HERE {
            return match self.peers() {
                Ok(peers) => peers.call(usize::from(on.0), method, params),
                Err(fault) => Answer::Fault(fault),
            };
        }
        if let Some(fault) = self.dead.clone().or_else(|| self.exhausted()) {
            return Answer::Fault(fault);
        }
        self.calls += 1;
        let started = Instant::now();
        // After a panic nothing of the host is used again: `renew` makes a fresh one.
        let answer = catch_unwind(AssertUnwindSafe(|| self.host.call(method, params)));
        self.spent += started.elapsed();
        match answer {
            Ok(answer) => answer,
            Err(panic) => Answer::Fault(self.bury(panicked(method, panic.as_ref()))),
        }
    }

    fn processes(&mut self, count: usize) -> Result<Vec<Side>, Fault> {
        let (manifest, budget) = (self.manifest.clone(), self.budget);
        self.peers()?.run(PEERS..PEERS + count, &manifest, budget)
    }

    fn call_and_kill(
        &mut self,
        on: Side,
        method: &'static str,
        params: &Json,
        at: f64,
    ) -> Result<Option<Answer>, Fault> {
        self.peers()?.call_and_kill(usize::from(on.0), method, params, at)
    }

    fn kill(&mut self, side: Side) -> Result<(), Fault> {
        self.peers()?.kill(usize::from(side.0))
    }

    fn race(&mut self, race: Race<'_>) -> Result<Vec<Raced>, Fault> {
        self.peers()?.race(race)
    }

    fn deadline_ms(&self) -> u64 {
        let timing = self.peers.as_ref().map(|peers| peers.launch().timing);
        u64::try_from(timing.unwrap_or_default().call.as_millis()).unwrap_or(u64::MAX)
    }

    fn kill_rounds(&self) -> u32 {
        self.kill_rounds
    }

    fn now_ms(&mut self) -> u64 {
        self.space.clock().now_ms()
    }

    fn wait_until(&mut self, until_ms: u64) -> Result<(), Fault> {
        wait_until(&self.space, &mut self.waited, until_ms, std::thread::sleep)
    }

    fn lay_snares(&mut self, root: Option<&str>) -> Result<Vec<String>, Fault> {
        self.snares.lay(root)
    }

    fn sprung_snares(&mut self) -> Result<Vec<String>, Fault> {
        self.snares.sprung()
    }
}

impl Stand for LocalBackend {
    fn renew(&mut self) -> Result<(), Fault> {
        if self.dead.is_some() {
            let made = catch_unwind(AssertUnwindSafe(|| Host::new((self.make)())));
            self.host = made.map_err(|panic| panicked("a fresh start", panic.as_ref()))?;
            self.dead = None;
        }
        Ok(())
    }

    fn begin_clause(&mut self, budget: Duration) {
        self.snares.clear();
        self.calls = 0;
        self.budget = budget;
        (self.spent, self.waited) = (Duration::ZERO, Duration::ZERO);
        if let Some(peers) = &mut self.peers {
            peers.begin_clause(budget);
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.peers.as_mut().map(Processes::take_notes).unwrap_or_default()
    }

    fn finish(&mut self) {
        self.snares.clear();
        if let Some(peers) = &mut self.peers {
            peers.finish();
        }
        let _: Answer = self.call(Side::HERE, "shutdown", &Json::Object(serde_json::Map::new()));
    }
}

fn panicked(doing: &str, panic: &(dyn std::any::Any + Send)) -> Fault {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Fault::new(FaultKind::Died, format!("the store panicked in {doing}: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use storeproof_contract::mailbox::mutant::model;
    use storeproof_contract::subject::{Opened, Reply};
    use storeproof_contract::world::{Clockwork, World};

    /// Panics at its second `store/open`.
    struct Fragile(Box<dyn Subject>, u32);

    impl Subject for Fragile {
        fn manifest(&self) -> Manifest {
            self.0.manifest()
        }
        fn open(&mut self) -> Reply<Opened> {
            self.1 += 1;
            assert!(self.1 < 2, "the second store is too much");
            self.0.open()
        }
    }

    fn backend() -> LocalBackend {
        let space = RunSpace::create(Arc::default()).expect("scratch folder");
        LocalBackend::new(
            Box::new(|| Box::new(Fragile(model(World::new(Clockwork::Caller)), 0))),
            space,
        )
    }

    #[test]
    fn a_panic_ends_the_clause_and_a_fresh_subject_serves_the_next() {
        let mut backend = backend();
        let open = |backend: &mut LocalBackend| backend.call(Side::HERE, "store/open", &json!({}));
        assert!(matches!(open(&mut backend), Answer::Result(_)));
        let Answer::Fault(fault) = open(&mut backend) else { panic!("no fault") };
        assert_eq!(fault.kind, FaultKind::Died);
        assert!(fault.message.contains("store/open: the second store is too much"), "{fault}");
        assert_eq!(open(&mut backend), Answer::Fault(fault));
        backend.renew().expect("a fresh subject");
        backend.begin_clause(Duration::from_secs(9));
        assert!(matches!(open(&mut backend), Answer::Result(_)));
    }

    #[test]
    fn calls_are_limited_in_number_and_time_and_the_clock_is_the_runs() {
        let mut backend = backend();
        backend.begin_clause(Duration::ZERO);
        let Answer::Fault(fault) = backend.call(Side::HERE, "store/open", &json!({})) else {
            panic!("none")
        };
        assert_eq!(fault.kind, FaultKind::Deadline);
        backend.begin_clause(Duration::from_secs(60));
        backend.calls = CALLS_PER_CLAUSE_MAX;
        let Answer::Fault(fault) = backend.call(Side::HERE, "store/open", &json!({})) else {
            panic!("none")
        };
        assert_eq!(fault.kind, FaultKind::Limit);
        let until = backend.now_ms() + 30;
        backend.wait_until(until).expect("waited");
        assert!(backend.now_ms() >= until);
        let fault = backend.wait_until(until + 3_600_000).expect_err("an hour");
        assert_eq!(fault.kind, FaultKind::Limit);
    }
}
