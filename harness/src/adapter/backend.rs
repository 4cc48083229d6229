//! A child process as a backend that clauses are judged on: one session after another.

use super::launch::{Launch, StartError};
use super::session::Session;
use super::snares::Snares;
use std::time::Duration;
use storeproof_contract::backend::{Backend, Manifest};
use storeproof_contract::call::{Answer, Fault, FaultKind};
use storeproof_contract::json::Json;

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

/// A subject in a child process.
pub struct ProcessBackend {
    launch: Launch,
    /// Where there is none, `gone` says why.
    session: Option<Session>,
    gone: Fault,
    manifest: Manifest,
    restarts_failed: u32,
    snares: Snares,
    notes: Vec<String>,
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
        let gone = Fault::new(FaultKind::Bench, "the subject was ended");
        Ok(Self {
            launch,
            session: Some(session),
            gone,
            manifest,
            restarts_failed: 0,
            snares,
            notes,
        })
    }

    /// How its children are started.
    #[must_use]
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// The running session, where there is one.
    pub fn session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// Ends the child at once, as the machine would; [`Stand::renew`] starts the next.
    pub fn kill(&mut self) {
        self.let_go();
        self.gone = Fault::new(FaultKind::Died, "the bench killed the child");
    }

    /// Keeps the session's notes and drops it, which kills what is left of it.
    fn let_go(&mut self) {
        if let Some(mut session) = self.session.take() {
            self.notes.extend(session.take_notes());
            if let Some(fault) = session.fault() {
                self.gone = fault.clone();
            }
        }
    }

    fn restart(&mut self) -> Result<Session, Fault> {
        let session = Session::start(&self.launch).map_err(|error| match error {
            StartError::Handshake(fault) => {
                Fault::new(fault.kind, format!("the child did not start again: {}", fault.message))
            }
            StartError::NotStartable { .. } | StartError::WrongMajor { .. } => {
                Fault::new(FaultKind::Died, format!("the child did not start again: {error}"))
            }
        })?;
        match difference(&self.manifest, session.manifest()) {
            None => Ok(session),
            Some(what) => {
                let message = format!("started again, the subject declares something else: {what}");
                Err(Fault::new(FaultKind::BadReply, message))
            }
        }
    }
}

impl Backend for ProcessBackend {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn call(&mut self, method: &'static str, params: &Json) -> Answer {
        match &mut self.session {
            Some(session) => session.call(method, params),
            None => Answer::Fault(self.gone.clone()),
        }
    }

    fn now_ms(&mut self) -> u64 {
        self.launch.space.clock().now_ms()
    }

    fn wait_until(&mut self, until_ms: u64) -> Result<(), Fault> {
        match &mut self.session {
            Some(session) => session.wait_until(until_ms),
            None => Err(self.gone.clone()),
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
        if let Some(session) = &self.session {
            if session.is_alive() {
                return Ok(());
            }
            if session.fault().is_none() {
                self.notes
                    .push("the child exited between two clauses and was started again".into());
            }
        }
        self.let_go();
        if self.restarts_failed >= RESTARTS_FAILED_MAX {
            let message = format!(
                "the subject can no longer be started: {RESTARTS_FAILED_MAX} starts in a row failed; \
                 the last: {}",
                self.gone.message
            );
            return Err(Fault::new(self.gone.kind, message));
        }
        match self.restart() {
            Ok(session) => {
                self.restarts_failed = 0;
                self.snares = Snares::new(session.folder());
                self.session = Some(session);
                Ok(())
            }
            Err(fault) => {
                self.restarts_failed += 1;
                self.gone = fault.clone();
                Err(fault)
            }
        }
    }

    fn begin_clause(&mut self, budget: Duration) {
        self.snares.clear();
        if let Some(session) = &mut self.session {
            session.begin_clause(budget);
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        if let Some(session) = &mut self.session {
            self.notes.extend(session.take_notes());
        }
        std::mem::take(&mut self.notes)
    }

    fn finish(&mut self) {
        self.snares.clear();
        if let Some(session) = self.session.take() {
            self.notes.extend(session.finish());
        }
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
