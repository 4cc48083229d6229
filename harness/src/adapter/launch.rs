//! How a subject's process is started, how long it may take, and how a start can fail.

use super::frame::LINE_BYTES_MAX;
use super::space::RunSpace;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use storeproof_contract::call::Fault;

/// How long a call may take unless told otherwise.
pub const CALL_S_MAX: u64 = 10;
/// How long start and handshake may take together unless told otherwise.
pub const STARTUP_S_MAX: u64 = 30;
/// How long a child may take to answer `shutdown`, and again to exit after it.
pub const GRACE_S_MAX: u64 = 2;

/// How long a child may take, and how much it may say at once.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For each call.
    pub call: Duration,
    /// For start and handshake together.
    pub startup: Duration,
    /// To answer `shutdown`, and again to exit after it.
    pub grace: Duration,
    /// The longest line on its stdout.
    pub line_bytes_max: usize,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(CALL_S_MAX),
            startup: Duration::from_secs(STARTUP_S_MAX),
            grace: Duration::from_secs(GRACE_S_MAX),
            line_bytes_max: LINE_BYTES_MAX,
        }
    }
}

/// Everything that starts one more child of the same subject.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program, looked up as the shell would.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables set besides the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// The run's seed, told in the handshake.
    pub seed: u64,
    /// How long the child may take.
    pub timing: Timing,
    /// What it shares with the other children of the run.
    pub space: Arc<RunSpace>,
}

impl Launch {
    /// A launch of `program` with `args`, the default [`Timing`] and nothing added to the environment.
    #[must_use]
    pub fn new(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
        seed: u64,
        space: Arc<RunSpace>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            seed,
            timing: Timing::default(),
            space,
        }
    }

    /// The command as a person typed it, for messages.
    #[must_use]
    pub fn command_line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// The program's name without its folders: what a subject is called before it has said its name.
    #[must_use]
    pub fn base_name(&self) -> String {
        let name = Path::new(&self.program).file_name().unwrap_or(&self.program);
        name.to_string_lossy().into_owned()
    }
}

/// Why a subject's process does not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The program cannot be started at all: nothing runs, exit 2.
    #[error("{command} cannot be started: {why}")]
    NotStartable {
        /// The command line.
        command: String,
        /// What the machine said.
        why: String,
    },
    /// Another major version of the protocol or the kit: nothing runs, exit 2.
    #[error(
        "the subject speaks {what} {theirs}, this bench {what} {ours}: the majors must be equal"
    )]
    WrongMajor {
        /// `protocol` or `kit`.
        what: &'static str,
        /// The subject's version.
        theirs: String,
        /// The bench's version.
        ours: &'static str,
    },
    /// The handshake failed: every asked clause is an `error`, exit 3.
    #[error("the handshake failed: {0}")]
    Handshake(Fault),
}
