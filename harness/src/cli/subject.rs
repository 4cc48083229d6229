//! The subject of a command line, bundled or behind `--`, as commands start it.

use super::{Failure, store};
use crate::adapter::{Launch, LocalBackend, ProcessBackend, RunSpace, StartError, Timing};
use crate::plan::Known;
use crate::run::BoxedStand;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use storeproof_contract::backend::{Backend as _, Manifest};

/// The greatest seed: what every JSON reader keeps exactly.
pub(super) const SEED_MAX: u64 = (1 << 53) - 1;

/// What a command line says of its subject.
#[derive(Clone, Copy)]
pub(super) struct Starting<'a> {
    /// A bundled store.
    pub subject: Option<&'a str>,
    /// A child's command, where there is no bundled store.
    pub command: &'a [OsString],
    /// How long each call may take.
    pub timeout: Duration,
    /// How long start and handshake may take.
    pub startup_timeout: Duration,
    /// How often a process is killed in each clause about kills.
    pub kill_rounds: u32,
    /// Where a bundled store finds its server, if not where its environment variable says.
    pub url: Option<&'a str>,
}

/// The subject as it stands when the plan is made.
pub(super) enum Found {
    /// It can be judged.
    Standing { stand: BoxedStand, known: Known, manifest: Box<Manifest> },
    /// It started and did not shake hands: every asked clause is an error.
    Silent(String),
}

impl Starting<'_> {
    /// Starts the first subject and learns what it declares.
    pub(super) fn stand(&self, seed: u64, space: &Arc<RunSpace>) -> Result<Found, Failure> {
        if let Some(name) = self.subject {
            return self.local(name, seed, space);
        }
        match ProcessBackend::start(self.launch(seed, space)) {
            Ok(backend) => {
                let backend = backend.with_kill_rounds(self.kill_rounds);
                let manifest = backend.manifest().clone();
                let caps = Box::new(manifest.capabilities.clone());
                let known = Known::Declared { caps, hooks: None };
                Ok(Found::Standing {
                    stand: Box::new(backend),
                    known,
                    manifest: Box::new(manifest),
                })
            }
            Err(StartError::Handshake(fault)) => {
                Ok(Found::Silent(format!("the handshake failed: {fault}")))
            }
            Err(error @ (StartError::NotStartable { .. } | StartError::WrongMajor { .. })) => {
                Err(Failure::nothing_ran(error))
            }
        }
    }

    fn launch(&self, seed: u64, space: &Arc<RunSpace>) -> Launch {
        self.launch_of(self.command.iter().cloned(), seed, space)
    }

    fn launch_of(
        &self,
        words: impl IntoIterator<Item = OsString>,
        seed: u64,
        space: &Arc<RunSpace>,
    ) -> Launch {
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let mut launch = Launch::new(program, words, seed, Arc::clone(space));
        launch.timing =
            Timing { call: self.timeout, startup: self.startup_timeout, ..Timing::default() };
        launch
    }

    fn local(&self, name: &str, seed: u64, space: &Arc<RunSpace>) -> Result<Found, Failure> {
        let chosen = store::choose(name, self.url, space.folder().join("stores"))?;
        // Where clauses want processes of their own, this program serves the same store to itself.
        let own = std::env::current_exe().map_err(|error| {
            Failure::nothing_ran(format!("this program cannot find itself: {error}"))
        })?;
        let words = [own.into_os_string(), "serve".into(), name.into()];
        let mut peers = self.launch_of(words, seed, space);
        peers.env.extend(chosen.server());
        let mut backend = LocalBackend::new(Box::new(move || chosen.make()), Arc::clone(space))
            .with_peers(peers, self.kill_rounds);
        let manifest = backend.manifest().clone();
        match backend.hooks() {
            Ok(hooks) => {
                let caps = Box::new(manifest.capabilities.clone());
                let known = Known::Declared { caps, hooks: Some(hooks) };
                Ok(Found::Standing {
                    stand: Box::new(backend),
                    known,
                    manifest: Box::new(manifest),
                })
            }
            Err(fault) => Ok(Found::Silent(format!("the store does not open: {fault}"))),
        }
    }

    pub(super) fn base_name(&self) -> String {
        match (self.subject, self.command.first()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(program)) => {
                let name = Path::new(program).file_name().unwrap_or(program);
                name.to_string_lossy().into_owned()
            }
            (None, None) => String::new(),
        }
    }
}

/// A flag that Ctrl-C and SIGTERM raise.
pub(super) fn interruption() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    ctrlc::set_handler(move || raised.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::nothing_ran(format!("Ctrl-C cannot be watched for: {error}")))?;
    Ok(flag)
}

/// A seed that differs from run to run.
pub(super) fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos =
        u64::from(since.subsec_nanos()) ^ since.as_secs().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (nanos ^ u64::from(std::process::id())) & SEED_MAX
}
