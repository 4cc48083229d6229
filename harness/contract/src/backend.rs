//! What whoever runs a clause must lend it: a subject to call, a clock, and places to watch.

use crate::call::{Answer, Fault};
use crate::json::Json;
use crate::race::{Race, Raced};
use serde::{Deserialize, Serialize};

/// Which of the subject's processes something happens in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side(pub u8);

impl Side {
    /// Where every clause begins: the subject itself, whether a child or a value in this process.
    pub const HERE: Self = Self(0);

    /// How transcripts call it: `A`, `B`, …
    #[must_use]
    pub fn letter(self) -> char {
        char::from(b'A' + self.0 % 26)
    }
}

/// How many times a process is killed in a clause about kills, unless told otherwise.
pub const KILL_ROUNDS: u32 = 20;

/// Everything a clause may use. One backend serves one case at a time.
pub trait Backend {
    /// What the subject declared of itself.
    fn manifest(&self) -> &Manifest;

    /// One call to a process of the subject; a fault where it gave no answer to judge.
    fn call(&mut self, on: Side, method: &'static str, params: &Json) -> Answer;

    /// As many running operating-system processes of the subject as asked for, all different from each
    /// other and from the bench; those of an earlier answer that still run are among them, in the same
    /// places.
    ///
    /// # Errors
    /// A fault where one cannot be started, or where two are one and the same process.
    fn processes(&mut self, count: usize) -> Result<Vec<Side>, Fault>;

    /// Sends one call and kills the process (SIGKILL) when about `at` of the time that such a call takes
    /// has passed: 0 is at once, 1 about when the answer is due. The answer is `None` where none came.
    ///
    /// # Errors
    /// A fault where the process was gone before, or could not be killed.
    fn call_and_kill(
        &mut self,
        on: Side,
        method: &'static str,
        params: &Json,
        at: f64,
    ) -> Result<Option<Answer>, Fault>;

    /// Kills a process (SIGKILL) between two calls.
    ///
    /// # Errors
    /// A fault where it could not be killed.
    fn kill(&mut self, side: Side) -> Result<(), Fault>;

    /// Runs the lanes side by side and tells every call in the order of sending.
    ///
    /// # Errors
    /// A fault where the race could not be held; what a lane's process did wrong stands in its calls.
    fn race(&mut self, race: Race<'_>) -> Result<Vec<Raced>, Fault>;

    /// How long a call may go unanswered before the bench ends its process, in milliseconds.
    fn deadline_ms(&self) -> u64 {
        10_000
    }

    /// How many times clauses about kills kill.
    fn kill_rounds(&self) -> u32 {
        KILL_ROUNDS
    }

    /// The wall clock in epoch milliseconds; it never goes back within a run.
    fn now_ms(&mut self) -> u64;

    /// Waits until [`Backend::now_ms`] is at least `until_ms`.
    ///
    /// # Errors
    /// A fault where the run was interrupted or the case has no time left.
    fn wait_until(&mut self, until_ms: u64) -> Result<(), Fault>;

    /// Lays snares: names that a careless store would turn into paths outside its own storage. `root`
    /// is the folder that the subject says holds all its bytes.
    ///
    /// # Errors
    /// A fault where the snares could not be laid.
    fn lay_snares(&mut self, root: Option<&str>) -> Result<Vec<String>, Fault>;

    /// What has appeared or changed at the places that the snares point at, one sentence each.
    ///
    /// # Errors
    /// A fault where the places could not be read.
    fn sprung_snares(&mut self) -> Result<Vec<String>, Fault>;
}

/// The result of `initialize`: who the subject is and what it declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Protocol version, `MAJOR` or `MAJOR.MINOR`.
    pub protocol: String,
    /// Kit version, `MAJOR.MINOR`.
    pub kit: String,
    /// Who the subject is.
    pub subject: Identity,
    /// The subject's process id.
    #[serde(default)]
    pub pid: Option<u64>,
    /// What it declares; an absent capability is not declared.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Read faces, for the read-back suites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faces: Vec<Json>,
    /// Declared limits.
    #[serde(default)]
    pub limits: Limits,
    /// How to restart the server behind the subject, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Json>,
}

/// The coarsest lease clock that is judged, in milliseconds: a day. Beyond it expiry means nothing.
pub const LEASE_GRANULARITY_MS_MAX: u64 = 24 * 3_600_000;
/// From here on the report says how little a subject's granularity leaves to judge, in milliseconds.
const GRANULARITY_TOLD_MS: u64 = 10_000;

impl Manifest {
    /// Holds the declared values to their bounds, which their types cannot.
    ///
    /// # Errors
    /// What is out of bounds, for a person.
    pub fn check(&self) -> Result<(), String> {
        match self.limits.lease_granularity_ms {
            Some(g) if g > LEASE_GRANULARITY_MS_MAX => Err(format!(
                "limits.leaseGranularityMs is {g}; the most that can be judged is {LEASE_GRANULARITY_MS_MAX}"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// What a person should know of the declaration though it decides nothing.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let g = self.limits.lease_granularity_ms.filter(|g| *g > GRANULARITY_TOLD_MS)?;
        Some(format!("leases are judged to the declared granularity of {g} ms only"))
    }
}

/// Who a subject is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Implementation language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Where to read about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
}

/// What a subject declares. Absent means false; unknown members are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// It is a mailbox store (one lease fences a whole box).
    #[serde(skip_serializing_if = "is_false")]
    pub mailbox: bool,
    /// It is a work queue (one lease a message): `true` or an object of differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Json>,
    /// What was receipted survives close, reopen and kill.
    #[serde(skip_serializing_if = "is_false")]
    pub durable: bool,
    /// It keeps scopes apart.
    #[serde(skip_serializing_if = "is_false")]
    pub tenancy: bool,
    /// Several processes may share one storage.
    #[serde(skip_serializing_if = "is_false")]
    pub cross_process_safe: bool,
    /// It sees recipients that are being deleted.
    #[serde(skip_serializing_if = "is_false")]
    pub tombstone: bool,
    /// It serves `mailbox/peek`.
    #[serde(skip_serializing_if = "is_false")]
    pub peek: bool,
    /// It serves `mailbox/release`.
    #[serde(skip_serializing_if = "is_false")]
    pub release: bool,
    /// It serves `mailbox/renew`.
    #[serde(skip_serializing_if = "is_false")]
    pub renew: bool,
    /// It takes several calls at once and may answer out of order.
    #[serde(skip_serializing_if = "is_false")]
    pub concurrent: bool,
    /// Which clock judges leases; absent means the wall clock.
    pub clock: Clock,
    /// Memory methods: `true`, or the list of those served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Json>,
    /// Bundle methods: `true`, or the list of those served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Json>,
    /// Site-rule methods: `true`, or the list of those served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_rules: Option<Json>,
}

impl Capabilities {
    /// Whether the subject declares to be a work queue.
    #[must_use]
    pub fn is_queue(&self) -> bool {
        matches!(&self.queue, Some(value) if *value != Json::Bool(false) && !value.is_null())
    }

    /// Whether `capability` is declared.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Mailbox => self.mailbox,
            Capability::Durable => self.durable,
            Capability::Tenancy => self.tenancy,
            Capability::CrossProcessSafe => self.cross_process_safe,
            Capability::Tombstone => self.tombstone,
            Capability::Peek => self.peek,
            Capability::Release => self.release,
            Capability::Renew => self.renew,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if hands a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Which clock judges a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The `now` that the caller hands in.
    Caller,
    /// The subject's own clock; the bench has to wait.
    #[default]
    Wall,
}

/// A capability that a suite or a clause can need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// See [`Capabilities::mailbox`].
    Mailbox,
    /// See [`Capabilities::durable`].
    Durable,
    /// See [`Capabilities::tenancy`].
    Tenancy,
    /// See [`Capabilities::cross_process_safe`].
    CrossProcessSafe,
    /// See [`Capabilities::tombstone`].
    Tombstone,
    /// See [`Capabilities::peek`].
    Peek,
    /// See [`Capabilities::release`].
    Release,
    /// See [`Capabilities::renew`].
    Renew,
}

impl Capability {
    /// Its name on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Mailbox => "mailbox",
            Self::Durable => "durable",
            Self::Tenancy => "tenancy",
            Self::CrossProcessSafe => "crossProcessSafe",
            Self::Tombstone => "tombstone",
            Self::Peek => "peek",
            Self::Release => "release",
            Self::Renew => "renew",
        }
    }
}

/// Limits that a subject declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Longest name it keeps, in bytes of UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_name_bytes: Option<u64>,
    /// Largest body it keeps, in bytes of JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<u64>,
    /// How coarse its lease clock is, in milliseconds; absent means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_granularity_ms: Option<u64>,
}
