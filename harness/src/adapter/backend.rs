//! A child process as a backend that clauses are judged on: one session after another, and further
//! processes of the same command where a clause is about more than one.

use super::launch::{Launch, StartError};
use super::processes::Processes;
use super::session::Session;
use super::snares::Snares;
use std::time::Duration;
use storeproof_contract::backend::{Backend, KILL_ROUNDS, Manifest, Side};
use storeproof_contract::call::{Answer, Fault, FaultKind};
use storeproof_contract::json::Json;
use storeproof_contract::race::{Race, Raced};

/// How many restarts may fail one after the other before a subject is given up.
pub const RESTARTS_FAILED_MAX: u32 = 3;

/// A backend as the runner handles it between clauses.
pub trait Stand: Backend + Send {
    /// Makes ready for the next clause: a subject that is gone is started again.
    ///
    /// # Errors
    /// A fault where there is no subject to judge; the clause is an `error`, the next one may try again.
    fn renew(&mut self) -> Result<(), Fault>;

    /// Gives the calls from here on `budget` together, and forgets the snares of the clause before.
    fn begin_clause(&mut self, budget: Duration);

    /// What a person should know of the subject besides its answers, since the last look.
    fn take_notes(&mut self) -> Vec<String>;

    /// Ends the subject decently; what does not end by itself is killed.
    fn finish(&mut self);
}

/// The place of the subject's own child; the others are its peers.
const OWN: usize = 0;

/// A subject in a child process.
pub struct ProcessBackend {
    processes: Processes,
    manifest: Manifest,
    restarts_failed: u32,
    snares: Snares,
    notes: Vec<String>,
    budget: Duration,
    kill_rounds: u32,
}

impl ProcessBackend {
    /// Starts the subject and shakes hands.
    ///
    /// # Errors
    /// Why there is nothing to judge.
    pub fn start(launch: Launch) -> Result<Self, StartError> {
        let mut session = Session::start(&launch)?;
        let manifest = session.manifest().clone();
        let snares = Snares::new(session.folder());
        let notes = session.take_notes();
        let mut processes = Processes::new(launch);
        processes.put(OWN, session);
        Ok(Self {
            processes,
            manifest,
            restarts_failed: 0,
            snares,
            notes,
            budget: Duration::from_secs(super::session::CLAUSE_S_MAX),
            kill_rounds: KILL_ROUNDS,
        })
    }

    /// The same backend, killing as often as told in each clause about kills.
    #[must_use]
    pub fn with_kill_rounds(mut self, rounds: u32) -> Self {
        self.kill_rounds = rounds;
        self
    }

    /// How its children are started.
    #[must_use]
    pub fn launch(&self) -> &Launch {
        self.processes.launch()
    }

    /// The running session, where there is one.
    pub fn session(&mut self) -> Option<&mut Session> {
        self.processes.session(OWN)
    }

    /// Ends the child at once, as the machine would; [`Stand::renew`] starts the next.
    pub fn kill_own(&mut self) {
        // An error means that it is gone already.
        let _ = self.processes.kill(OWN);
    }
}

impl Backend for ProcessBackend {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn call(&mut self, on: Side, method: &'static str, params: &Json) -> Answer {
        self.processes.call(usize::from(on.0), method, params)
    }

    fn processes(&mut self, count: usize) -> Result<Vec<Side>, Fault> {
        let before = self.processes.session(OWN).map(|session| session.folder().to_owned());
        let sides = self.processes.run(OWN..OWN + count, &self.manifest, self.budget)?;
        let now = self.processes.session(OWN).map(|session| session.folder().to_owned());
        if let (true, Some(folder)) = (before != now, now) {
            self.snares = Snares::new(&folder);
        }
        Ok(sides)
    }

    fn call_and_kill(
        &mut self,
        on: Side,
        method: &'static str,
        params: &Json,
        at: f64,
    ) -> Result<Option<Answer>, Fault> {
        self.processes.call_and_kill(usize::from(on.0), method, params, at)
    }

    fn kill(&mut self, side: Side) -> Result<(), Fault> {
        self.processes.kill(usize::from(side.0))
    }

    fn race(&mut self, race: Race<'_>) -> Result<Vec<Raced>, Fault> {
        self.processes.race(race)
    }

    fn deadline_ms(&self) -> u64 {
        u64::try_from(self.launch().timing.call.as_millis()).unwrap_or(u64::MAX)
    }

    fn kill_rounds(&self) -> u32 {
        self.kill_rounds
    }

    fn now_ms(&mut self) -> u64 {
        self.launch().space.clock().now_ms()
    }

    fn wait_until(&mut self, until_ms: u64) -> Result<(), Fault> {
        let gone = self.processes.gone(OWN);
        match self.processes.session(OWN) {
            Some(session) => session.wait_until(until_ms),
            None => Err(gone),
        }
    }

    fn lay_snares(&mut self, root: Option<&str>) -> Result<Vec<String>, Fault> {
        self.snares.lay(root)
    }

    fn sprung_snares(&mut self) -> Result<Vec<String>, Fault> {
        self.snares.sprung()
    }
}

impl Stand for ProcessBackend {
    fn renew(&mut self) -> Result<(), Fault> {
        if let Some(session) = self.processes.session(OWN) {
            if session.is_alive() {
                return Ok(());
            }
            if session.fault().is_none() {
                self.notes
                    .push("the child exited between two clauses and was started again".into());
            }
        }
        self.processes.take(OWN, Fault::new(FaultKind::Died, "the subject was ended"));
        let gone = self.processes.gone(OWN);
        if self.restarts_failed >= RESTARTS_FAILED_MAX {
            let message = format!(
                "the subject can no longer be started: {RESTARTS_FAILED_MAX} starts in a row failed; \
                 the last: {}",
                gone.message
            );
            return Err(Fault::new(gone.kind, message));
        }
        match self.processes.start(&self.manifest) {
            Ok(session) => {
                self.restarts_failed = 0;
                self.snares = Snares::new(session.folder());
                self.processes.put(OWN, session);
                Ok(())
            }
            Err(fault) => {
                self.restarts_failed += 1;
                self.processes.leave(OWN, fault.clone());
                Err(fault)
            }
        }
    }

    fn begin_clause(&mut self, budget: Duration) {
        self.budget = budget;
        self.snares.clear();
        self.processes.begin_clause(budget);
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.notes.extend(self.processes.take_notes());
        std::mem::take(&mut self.notes)
    }

    fn finish(&mut self) {
        self.snares.clear();
        self.processes.finish();
        self.notes.extend(self.processes.take_notes());
    }
}
