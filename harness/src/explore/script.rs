//! Scripts: what to ask of a mailbox, step by step, without a word of any one subject's in it.
//!
//! A step names leases and seqs by the step that brings them about, so that a script means the same on
//! every subject and after any of its steps was taken out. A reference that leads nowhere (its step is
//! gone, or delivered nothing) is an invented lease, or seq 1: the call is still made.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most steps of one script.
pub const STEPS_MAX: usize = 2_000;
/// The most messages of one append step.
pub const TIMES_MAX: u32 = 200;
/// The most lanes that run side by side.
pub const LANES_MAX: u8 = 8;
/// The most processes of one script.
pub const PROCESSES_MAX: u8 = 4;
/// The most characters of a name.
const NAME_CHARS_MAX: usize = 16;
/// The most characters of a body.
pub const BODY_CHARS_MAX: usize = 1024;

/// Names a step, whatever becomes of its neighbours.
pub type StepId = u32;

/// What to ask, in order. Neighbouring steps with a lane above 0 run side by side, a lane a worker;
/// steps of lane 0 run one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// By which other steps refer to it.
    pub id: StepId,
    /// 0 alone, else the worker that takes it in a race.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lane: u8,
    /// The process that is asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub process: u8,
    /// What is asked.
    #[serde(flatten)]
    pub act: Act,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if hands a reference"
)]
fn is_zero(value: &u8) -> bool {
    *value == 0
}

/// What a step asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Act {
    /// Appends `body`; more than once with the number behind it.
    Append {
        /// The box.
        #[serde(rename = "box")]
        of: String,
        /// The body.
        body: String,
        /// How often.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        times: u32,
    },
    /// Claims.
    Claim {
        /// The box.
        #[serde(rename = "box")]
        of: String,
        /// Who claims.
        owner: String,
        /// How long the lease is to live.
        ttl: Span,
        /// The most messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    /// Acks.
    Ack {
        /// The box.
        #[serde(rename = "box")]
        of: String,
        /// Who acks.
        owner: String,
        /// With which lease.
        lease: LeaseRef,
        /// Up to where.
        up_to: SeqRef,
    },
    /// Gives a lease back.
    Release {
        /// The box.
        #[serde(rename = "box")]
        of: String,
        /// Who releases.
        owner: String,
        /// Which lease.
        lease: LeaseRef,
    },
    /// Prolongs a lease.
    Renew {
        /// The box.
        #[serde(rename = "box")]
        of: String,
        /// Who renews.
        owner: String,
        /// Which lease.
        lease: LeaseRef,
        /// How long it is to live from here.
        ttl: Span,
    },
    /// Looks.
    Peek {
        /// The box.
        #[serde(rename = "box")]
        of: String,
    },
    /// Empties a box.
    Drop {
        /// The box.
        #[serde(rename = "box")]
        of: String,
    },
    /// Housekeeping over the whole store.
    Reap,
    /// Claims and acks everything until `null`.
    Drain {
        /// The box.
        #[serde(rename = "box")]
        of: String,
        /// Who does.
        owner: String,
        /// The most messages of each claim.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    /// Lets time pass.
    Wait {
        /// Until when.
        until: Until,
    },
    /// Closes the store in this process and attaches to the storage again.
    Reopen,
}

fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if hands a reference"
)]
fn is_one(value: &u32) -> bool {
    *value == 1
}

/// A length of time in words, since what is quick by one clock is for ever by another. See
/// [`Span::ms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// Under half a second.
    Brief,
    /// The usual lease whose end matters.
    Short,
    /// A few times as long.
    Middle,
    /// Beyond the end of the script.
    Long,
    /// More than a day.
    Day,
}

/// Which lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeaseRef {
    /// The one that this step was given.
    Of(StepId),
    /// One that nobody was given.
    Invented,
    /// The id of that step's lease without its last character; invented where that is nothing.
    BeginningOf(StepId),
    /// The id of that step's lease with a character more.
    LongerThan(StepId),
    /// The id of that step's lease with its letters in the other case.
    OtherCaseOf(StepId),
}

/// Which seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SeqRef {
    /// The last receipt of this append.
    OfAppend(StepId),
    /// The last message that this claim delivered.
    LastOf(StepId),
    /// The message at this place, from 0, of what a claim delivered; the last where it delivered fewer.
    NthOf(StepId, u32),
    /// One less than that.
    BelowNth(StepId, u32),
    /// 2^53-1.
    Beyond,
}

/// Until when a wait lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// So long from now.
    In(Span),
    /// The first moment at which the lease of this step is surely over.
    Past(StepId),
    /// The last moment at which it surely lives.
    JustBefore(StepId),
}

impl Act {
    /// The box that it is about, if it is about one.
    #[must_use]
    pub fn of(&self) -> Option<&str> {
        match self {
            Self::Append { of, .. }
            | Self::Claim { of, .. }
            | Self::Ack { of, .. }
            | Self::Release { of, .. }
            | Self::Renew { of, .. }
            | Self::Peek { of }
            | Self::Drop { of }
            | Self::Drain { of, .. } => Some(of),
            Self::Reap | Self::Wait { .. } | Self::Reopen => None,
        }
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Append { of, .. }
            | Self::Claim { of, .. }
            | Self::Ack { of, .. }
            | Self::Release { of, .. }
            | Self::Renew { of, .. }
            | Self::Peek { of }
            | Self::Drop { of }
            | Self::Drain { of, .. } => Some(of),
            Self::Reap | Self::Wait { .. } | Self::Reopen => None,
        }
    }

    /// Who asks, where that is part of it.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Claim { owner, .. }
            | Self::Ack { owner, .. }
            | Self::Release { owner, .. }
            | Self::Renew { owner, .. }
            | Self::Drain { owner, .. } => Some(owner),
            Self::Append { .. }
            | Self::Peek { .. }
            | Self::Drop { .. }
            | Self::Reap
            | Self::Wait { .. }
            | Self::Reopen => None,
        }
    }

    /// The same, to be changed.
    pub fn owner_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Claim { owner, .. }
            | Self::Ack { owner, .. }
            | Self::Release { owner, .. }
            | Self::Renew { owner, .. }
            | Self::Drain { owner, .. } => Some(owner),
            Self::Append { .. }
            | Self::Peek { .. }
            | Self::Drop { .. }
            | Self::Reap
            | Self::Wait { .. }
            | Self::Reopen => None,
        }
    }

    /// Every reference in it, to be changed.
    fn references(&mut self) -> Vec<&mut StepId> {
        let mut found = Vec::new();
        let lease = match self {
            Self::Ack { lease, up_to, .. } => {
                match up_to {
                    SeqRef::OfAppend(id)
                    | SeqRef::LastOf(id)
                    | SeqRef::NthOf(id, _)
                    | SeqRef::BelowNth(id, _) => found.push(id),
                    SeqRef::Beyond => {}
                }
                Some(lease)
            }
            Self::Release { lease, .. } | Self::Renew { lease, .. } => Some(lease),
            Self::Wait { until } => {
                if let Until::Past(id) | Until::JustBefore(id) = until {
                    found.push(id);
                }
                None
            }
            Self::Append { .. }
            | Self::Claim { .. }
            | Self::Peek { .. }
            | Self::Drop { .. }
            | Self::Reap
            | Self::Drain { .. }
            | Self::Reopen => None,
        };
        match lease {
            Some(
                LeaseRef::Of(id)
                | LeaseRef::BeginningOf(id)
                | LeaseRef::LongerThan(id)
                | LeaseRef::OtherCaseOf(id),
            ) => found.push(id),
            Some(LeaseRef::Invented) | None => {}
        }
        found
    }
}

impl Script {
    /// How many processes it asks.
    #[must_use]
    pub fn processes(&self) -> usize {
        1 + self.steps.iter().map(|step| usize::from(step.process)).max().unwrap_or(0)
    }

    /// Whether any of it runs side by side.
    #[must_use]
    pub fn is_concurrent(&self) -> bool {
        self.steps.iter().any(|step| step.lane > 0)
    }

    /// The names of its boxes, in the order in which they come up.
    #[must_use]
    pub fn boxes(&self) -> Vec<&str> {
        distinct(self.steps.iter().filter_map(|step| step.act.of()))
    }

    /// Its owners, likewise.
    #[must_use]
    pub fn owners(&self) -> Vec<&str> {
        distinct(self.steps.iter().filter_map(|step| step.act.owner()))
    }

    /// The same script with its steps numbered from 1 in their order, and references that lead nowhere
    /// said to be that.
    #[must_use]
    pub fn renumbered(&self) -> Self {
        let ids: BTreeMap<StepId, StepId> =
            self.steps.iter().zip(1..).map(|(step, new)| (step.id, new)).collect();
        let mut next = self.clone();
        for (step, id) in next.steps.iter_mut().zip(1..) {
            step.id = id;
            for reference in step.act.references() {
                *reference = ids.get(reference).copied().unwrap_or(0);
            }
            if let Act::Ack { lease, .. } | Act::Release { lease, .. } | Act::Renew { lease, .. } =
                &mut step.act
                && lease.claim() == Some(0)
            {
                *lease = LeaseRef::Invented;
            }
        }
        next
    }

    /// Holds a script that came from outside to what can be asked and judged.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub fn check(&self) -> Result<(), String> {
        if self.steps.is_empty() || self.steps.len() > STEPS_MAX {
            return Err(format!("it has {} steps; 1 to {STEPS_MAX} can be run", self.steps.len()));
        }
        let mut seen = BTreeSet::new();
        for step in &self.steps {
            let id = step.id;
            if !seen.insert(id) {
                return Err(format!("two steps have the id {id}"));
            }
            if step.lane > LANES_MAX || step.process >= PROCESSES_MAX {
                return Err(format!(
                    "step {id}: at most {LANES_MAX} lanes and {PROCESSES_MAX} processes can be run"
                ));
            }
            if step.lane > 0 && matches!(step.act, Act::Wait { .. } | Act::Reopen) {
                return Err(format!("step {id}: a wait or a reopening has no place in a race"));
            }
            if let Some(what) = step.act.unfit() {
                return Err(format!("step {id}: {what}"));
            }
        }
        Ok(())
    }
}

impl Act {
    /// Only names and bodies that every store takes are asked, so that no refusal needs an excuse.
    fn unfit(&self) -> Option<String> {
        let plain = |name: &str| {
            let mut chars = name.chars();
            chars.next().is_some_and(|c| c.is_ascii_lowercase())
                && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
                && name.len() <= NAME_CHARS_MAX
        };
        let odd = [self.of(), self.owner()].into_iter().flatten().find(|name| !plain(name));
        if let Some(name) = odd {
            return Some(format!("{name:?} is no name of [a-z][a-z0-9]{{0,15}}"));
        }
        match self {
            Self::Append { body, times, .. } => {
                let fits = body.is_ascii() && body.len() <= BODY_CHARS_MAX;
                let fits = fits && !body.contains(|c: char| c.is_ascii_control());
                if !fits {
                    return Some(format!(
                        "a body is printable ASCII of at most {BODY_CHARS_MAX} characters"
                    ));
                }
                (*times == 0 || *times > TIMES_MAX)
                    .then(|| format!("an append is made 1 to {TIMES_MAX} times"))
            }
            Self::Claim { max, .. } | Self::Drain { max, .. } => {
                (*max == Some(0)).then(|| "max is above 0".to_owned())
            }
            Self::Ack { .. }
            | Self::Release { .. }
            | Self::Renew { .. }
            | Self::Peek { .. }
            | Self::Drop { .. }
            | Self::Reap
            | Self::Wait { .. }
            | Self::Reopen => None,
        }
    }
}

fn distinct<'s>(words: impl Iterator<Item = &'s str>) -> Vec<&'s str> {
    let mut found: Vec<&str> = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

impl LeaseRef {
    /// The claim whose lease it is, or looks like.
    #[must_use]
    pub fn claim(self) -> Option<StepId> {
        match self {
            Self::Of(id) | Self::BeginningOf(id) | Self::LongerThan(id) | Self::OtherCaseOf(id) => {
                Some(id)
            }
            Self::Invented => None,
        }
    }
}

impl Span {
    /// Its name in scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Brief => "brief",
            Self::Short => "short",
            Self::Middle => "middle",
            Self::Long => "long",
            Self::Day => "day",
        }
    }
}

impl fmt::Display for LeaseRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(id) => write!(f, "the lease of step {id}"),
            Self::Invented => f.write_str("an invented lease"),
            Self::BeginningOf(id) => write!(f, "the beginning of the lease of step {id}"),
            Self::LongerThan(id) => write!(f, "a longer id than the lease of step {id}"),
            Self::OtherCaseOf(id) => write!(f, "the lease of step {id} in the other case"),
        }
    }
}

impl fmt::Display for SeqRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfAppend(id) => write!(f, "the receipt of step {id}"),
            Self::LastOf(id) => write!(f, "the last message of step {id}"),
            Self::NthOf(id, n) => write!(f, "message {} of step {id}", n + 1),
            Self::BelowNth(id, n) => write!(f, "just below message {} of step {id}", n + 1),
            Self::Beyond => f.write_str("2^53-1"),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = |max: &Option<u64>| match max {
            Some(max) => format!(" {max}"),
            None => String::new(),
        };
        match self {
            Self::Append { of, body, times: 1 } => write!(f, "append {} to {of}", quoted(body)),
            Self::Append { of, body, times } => {
                write!(f, "append {} to {of}, {times} times", quoted(body))
            }
            Self::Claim { of, owner, ttl, max } => {
                write!(f, "{owner} claims{} of {of}, ttl {}", most(max), ttl.word())
            }
            Self::Ack { of, owner, lease, up_to } => {
                write!(f, "{owner} acks {of} with {lease}, up to {up_to}")
            }
            Self::Release { of, owner, lease } => write!(f, "{owner} releases {of} with {lease}"),
            Self::Renew { of, owner, lease, ttl } => {
                write!(f, "{owner} renews {of} with {lease}, ttl {}", ttl.word())
            }
            Self::Peek { of } => write!(f, "peek at {of}"),
            Self::Drop { of } => write!(f, "drop {of}"),
            Self::Reap => f.write_str("reap"),
            Self::Drain { of, owner, max } => {
                write!(f, "{owner} claims{} of {of} and acks, until null", most(max))
            }
            Self::Wait { until: Until::In(span) } => write!(f, "wait, {}", span.word()),
            Self::Wait { until: Until::Past(id) } => {
                write!(f, "wait until the lease of step {id} is over")
            }
            Self::Wait { until: Until::JustBefore(id) } => {
                write!(f, "wait until just before the end of the lease of step {id}")
            }
            Self::Reopen => f.write_str("close the store and attach again"),
        }
    }
}

fn quoted(body: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    match body.get(SHOWN_CHARS_MAX..) {
        Some(rest) if !rest.is_empty() => {
            format!("{:?}… ({} characters)", &body[..SHOWN_CHARS_MAX], body.len())
        }
        Some(_) | None => format!("{body:?}"),
    }
}
