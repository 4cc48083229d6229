//! One trial of one clause: the calls, the clock, the transcript, and how a trial ends.

use crate::backend::{Backend, Capabilities, Clock, Limits, Side};
use crate::call::{
    Answer, Fault, FaultKind, INVALID_PARAMS, METHOD_MISSING, REFUSED, Refusal, RpcError,
};
use crate::clause::Clause;
use crate::host::{AttachResult, Nothing, OpenResult};
use crate::json::Json;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::path::Path;

mod several;

/// How often a clause whose timing could not be decided is tried before it becomes an `error`.
pub const TRIES_MAX: u32 = 3;
/// Where the caller's clock starts in every case (epoch milliseconds); an odd moment, so that a store
/// that rounds its times to seconds or minutes shows it.
const CALLER_START_MS: u64 = 1_800_000_000_137;
/// The most calls one trial may make; beyond it the subject is leading the clause on for ever.
const CALLS_PER_TRIAL_MAX: usize = 20_000;
/// The same for each kill of a clause about kills, where more of them are asked for than usual.
const CALLS_PER_KILL_MAX: usize = 400;

/// What a clause says of the subject: `Ok` means that it held.
pub type Verdict = Result<(), Stop>;

/// Why a trial ended before its clause could say that it held.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The subject broke the clause.
    Broken {
        /// What the contract promises at this point.
        promised: String,
        /// What the subject did.
        seen: String,
    },
    /// Nothing could be judged.
    Fault(Fault),
    /// An answer came too early or too late to prove anything about time; try again.
    Undecided(String),
}

/// Ends a trial as a violation: what was promised, and what was seen.
pub fn broken<T>(promised: impl Into<String>, seen: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Broken { promised: promised.into(), seen: seen.into() })
}

/// One call of the transcript.
#[derive(Clone, Debug)]
pub struct Step {
    /// The process, where the clause is about more than one.
    pub side: Option<Side>,
    /// Wire method, or `bench/...` for what the bench itself did.
    pub call: &'static str,
    /// The params as sent.
    pub params: Json,
    /// What came back.
    pub answer: Answer,
}

/// How a case came out, with everything a report needs.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// `Ok` where the clause held.
    pub verdict: Verdict,
    /// The calls of the last trial.
    pub steps: Vec<Step>,
    /// What a person should look at though it decides nothing.
    pub advisories: Vec<String>,
    /// Calls that overlapped and cannot all stand, as data for a drawing.
    pub picture: Option<Json>,
}

/// The answer of an operation that may be refused.
pub type Answered<T> = Result<T, Refusal>;

/// When a call was sent and answered, in epoch milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Not later than the subject received it.
    pub sent_ms: u64,
    /// Not earlier than the subject answered it.
    pub answered_ms: u64,
}

/// A storage that this trial opened.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreRef {
    /// The process in which it is open.
    pub side: Side,
    /// The id for further calls to that process.
    pub id: String,
    /// How to attach again; none where the subject gave none.
    pub location: Option<Json>,
    /// The folder that holds all its bytes, where the subject said so.
    pub root: Option<String>,
}

/// One trial of one clause.
pub struct Trial<'b> {
    backend: &'b mut dyn Backend,
    caps: Capabilities,
    limits: Limits,
    attempt: u32,
    caller_now_ms: u64,
    last: Moment,
    steps: Vec<Step>,
    advisories: Vec<String>,
    picture: Option<Json>,
    open: Vec<(Side, String)>,
    locations: Vec<(Side, Json)>,
    /// Whether a second process takes part, so that steps say whose they are.
    tells_sides: bool,
    rng: fastrand::Rng,
}

/// Judges one clause: up to [`TRIES_MAX`] trials, each on a fresh storage. `seed` decides everything
/// that is random in it.
pub fn judge(clause: &Clause, backend: &mut dyn Backend, seed: u64) -> Judgement {
    let mut attempt = 1;
    loop {
        let mut trial = Trial::new(backend, seed, attempt);
        let verdict = (clause.check)(&mut trial);
        let verdict = match trial.clean_up() {
            Some(fault) if breaks_protocol(&fault) => Err(Stop::Fault(fault)),
            Some(_) | None => verdict,
        };
        let Trial { steps, advisories, picture, .. } = trial;
        match verdict {
            Err(Stop::Undecided(why)) if attempt == TRIES_MAX => {
                let message =
                    format!("{why}; the same in {TRIES_MAX} tries, so nothing was decided");
                let verdict = Err(Stop::Fault(Fault::new(FaultKind::Undecided, message)));
                return Judgement { verdict, steps, advisories, picture };
            }
            Err(Stop::Undecided(_)) => attempt += 1,
            Ok(()) | Err(Stop::Broken { .. } | Stop::Fault(_)) => {
                return Judgement { verdict, steps, advisories, picture };
            }
        }
    }
}

impl<'b> Trial<'b> {
    fn new(backend: &'b mut dyn Backend, seed: u64, attempt: u32) -> Self {
        let manifest = backend.manifest();
        let (caps, limits) = (manifest.capabilities.clone(), manifest.limits.clone());
        Self {
            backend,
            caps,
            limits,
            attempt,
            caller_now_ms: CALLER_START_MS,
            last: Moment { sent_ms: CALLER_START_MS, answered_ms: CALLER_START_MS },
            steps: Vec::new(),
            advisories: Vec::new(),
            picture: None,
            open: Vec::new(),
            locations: Vec::new(),
            tells_sides: false,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// What the subject declared.
    #[must_use]
    pub fn caps(&self) -> &Capabilities {
        &self.caps
    }

    /// Seeded random numbers.
    pub fn rng(&mut self) -> &mut fastrand::Rng {
        &mut self.rng
    }

    /// Notes something for a person that decides nothing; said once.
    pub fn advise(&mut self, advisory: impl Into<String>) {
        let advisory = advisory.into();
        if !self.advisories.contains(&advisory) {
            self.advisories.push(advisory);
        }
    }

    /// Keeps the data of a picture for the reports.
    pub fn draw(&mut self, picture: Json) {
        self.picture = Some(picture);
    }

    /// How coarse the subject's lease clock is, in milliseconds; at least 1.
    #[must_use]
    pub fn granularity_ms(&self) -> u64 {
        self.limits.lease_granularity_ms.unwrap_or(1).max(1)
    }

    /// Which trial of the clause this is, from 1; later ones use longer leases.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether leases are judged by the `now` that calls carry.
    #[must_use]
    pub fn is_caller_clock(&self) -> bool {
        self.caps.clock == Clock::Caller
    }

    /// When the last call was sent and answered.
    #[must_use]
    pub fn last(&self) -> Moment {
        self.last
    }

    /// The `now` for the next call.
    pub fn now_ms(&mut self) -> u64 {
        if self.is_caller_clock() { self.caller_now_ms } else { self.backend.now_ms() }
    }

    /// Lets time pass until `until_ms`: at once on the caller's clock, by waiting on the wall's.
    ///
    /// # Errors
    /// A fault where the wait was cut short.
    pub fn wait_until(&mut self, until_ms: u64) -> Verdict {
        if self.is_caller_clock() {
            self.caller_now_ms = self.caller_now_ms.max(until_ms);
            return Ok(());
        }
        self.backend.wait_until(until_ms).map_err(Stop::Fault)
    }

    /// Lets `ms` milliseconds pass.
    ///
    /// # Errors
    /// A fault where the wait was cut short.
    pub fn wait(&mut self, ms: u64) -> Verdict {
        let until = self.now_ms() + ms;
        self.wait_until(until)
    }

    /// Names that a careless store would turn into paths outside `store`'s root.
    ///
    /// # Errors
    /// A fault of the bench.
    pub fn lay_snares(&mut self, store: &StoreRef) -> Result<Vec<String>, Stop> {
        self.backend.lay_snares(store.root.as_deref()).map_err(Stop::Fault)
    }

    /// What appeared or changed where the snares point; it goes into the transcript too.
    ///
    /// # Errors
    /// A fault of the bench.
    pub fn sprung_snares(&mut self) -> Result<Vec<String>, Stop> {
        let sprung = self.backend.sprung_snares().map_err(Stop::Fault)?;
        self.steps.push(Step {
            side: None,
            call: "bench/look-outside",
            params: json!({}),
            answer: Answer::Result(json!(sprung)),
        });
        Ok(sprung)
    }

    /// One call; every answer, faults included, goes into the transcript.
    ///
    /// # Errors
    /// A fault, where the subject gave no answer.
    pub fn call(
        &mut self,
        on: Side,
        method: &'static str,
        params: Json,
    ) -> Result<Result<Json, RpcError>, Stop> {
        self.check_limit()?;
        let sent_ms = self.now_ms();
        let answer = self.backend.call(on, method, &params);
        self.last = Moment { sent_ms, answered_ms: self.now_ms() };
        self.tell(on, method, params, answer.clone());
        match answer {
            Answer::Result(result) => Ok(Ok(result)),
            Answer::Error(error) => Ok(Err(error)),
            Answer::Fault(fault) => Err(Stop::Fault(fault)),
        }
    }

    fn check_limit(&self) -> Verdict {
        let limit = CALLS_PER_TRIAL_MAX.max(CALLS_PER_KILL_MAX * self.kill_rounds() as usize);
        if self.steps.len() < limit {
            return Ok(());
        }
        let message = format!("the clause made {limit} calls and saw no end");
        Err(Stop::Fault(Fault::new(FaultKind::Limit, message)))
    }

    fn tell(&mut self, on: Side, call: &'static str, params: Json, answer: Answer) {
        let side = self.tells_sides.then_some(on);
        self.steps.push(Step { side, call, params, answer });
    }

    /// One call whose result has the form `T`, or which is refused.
    ///
    /// `bad_argument` says that the clause itself sent an argument that the contract lets a store
    /// refuse; only then does -32602 count as a refusal.
    ///
    /// # Errors
    /// A violation where the method is missing, a fault for everything that is no answer.
    pub fn ask<T: DeserializeOwned>(
        &mut self,
        on: Side,
        method: &'static str,
        params: Json,
        bad_argument: bool,
    ) -> Result<Answered<T>, Stop> {
        let answer = self.call(on, method, params)?;
        self.read(method, answer, bad_argument)
    }

    /// What an answer says, as [`Trial::ask`] reads it; for calls that were made in a race.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn read<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        answer: Result<Json, RpcError>,
        bad_argument: bool,
    ) -> Result<Answered<T>, Stop> {
        match answer {
            Ok(result) => match T::deserialize(&result) {
                Ok(value) => Ok(Ok(value)),
                Err(error) => {
                    let seen = crate::json::excerpt(&result);
                    let message =
                        format!("{method} answered {seen}: {}", form_words(&error.to_string()));
                    Err(Stop::Fault(Fault::new(FaultKind::BadForm, message)))
                }
            },
            Err(error) => self.refusal(method, error, bad_argument).map(Err),
        }
    }

    /// One call that the contract gives the store no reason to refuse.
    ///
    /// # Errors
    /// A violation where it is refused all the same; otherwise as [`Trial::ask`].
    pub fn must<T: DeserializeOwned>(
        &mut self,
        on: Side,
        method: &'static str,
        params: Json,
        promised: &str,
    ) -> Result<T, Stop> {
        match self.ask(on, method, params, false)? {
            Ok(value) => Ok(value),
            Err(refusal) => broken(promised, format!("{method} was {refusal}")),
        }
    }

    fn refusal(
        &mut self,
        method: &str,
        error: RpcError,
        bad_argument: bool,
    ) -> Result<Refusal, Stop> {
        match error.code {
            REFUSED => {
                let reason = error.reason().to_owned();
                if reason.is_empty() {
                    self.advise(format!("{method} was refused without data.reason"));
                }
                Ok(Refusal { reason, message: error.message })
            }
            INVALID_PARAMS if bad_argument => {
                self.advise(format!(
                    "{method} refused a bad argument with -32602, not with a reason code"
                ));
                Ok(Refusal { reason: String::new(), message: error.message })
            }
            METHOD_MISSING => broken(
                format!("a subject has every method of what it declares, {method} among them"),
                format!(
                    "{method} answered -32601 (no such method): {}",
                    crate::json::cut(&error.message)
                ),
            ),
            code => {
                let said = crate::json::cut(&error.message);
                let message =
                    format!("{method} answered error {code}, which is no refusal: {said}");
                Err(Stop::Fault(Fault::new(FaultKind::Errored, message)))
            }
        }
    }

    /// Opens a fresh, empty storage.
    ///
    /// # Errors
    /// A violation where it is refused, a fault otherwise.
    pub fn open(&mut self) -> Result<StoreRef, Stop> {
        self.open_on(Side::HERE)
    }

    /// Opens a fresh, empty storage in one of the subject's processes.
    ///
    /// # Errors
    /// As [`Trial::open`].
    pub fn open_on(&mut self, side: Side) -> Result<StoreRef, Stop> {
        let promised = "store/open gives a fresh, empty store";
        let OpenResult { store, location, root } =
            self.must(side, "store/open", json!({}), promised)?;
        if let Some(root) = root.as_deref().filter(|root| !Path::new(root).is_absolute()) {
            let message =
                format!("store/open answered the root {root:?}, which is no absolute path");
            return Err(Stop::Fault(Fault::new(FaultKind::BadForm, message)));
        }
        self.open.push((side, store.clone()));
        if let Some(location) = &location
            && !self.locations.iter().any(|(_, known)| known == location)
        {
            self.locations.push((side, location.clone()));
        }
        Ok(StoreRef { side, id: store, location, root })
    }

    /// Closes a store.
    ///
    /// # Errors
    /// A violation where it is refused, a fault otherwise.
    pub fn close(&mut self, store: &StoreRef) -> Verdict {
        let promised = "store/close is accepted, once or again";
        let Nothing {} =
            self.must(store.side, "store/close", json!({ "store": store.id }), promised)?;
        self.open.retain(|(on, id)| *on != store.side || *id != store.id);
        Ok(())
    }

    /// Closes a store and attaches to the same storage again.
    ///
    /// # Errors
    /// A violation where the subject gave no location or refuses, a fault otherwise.
    pub fn reopen(&mut self, store: &StoreRef) -> Result<StoreRef, Stop> {
        let Some(location) = store.location.clone() else {
            return broken(
                "a subject that declares durable gives every store a location to attach to",
                "store/open answered without a location",
            );
        };
        self.close(store)?;
        self.attach(store.side, location, store.root.clone())
    }

    /// Attaches one of the subject's processes to the storage behind `store`, which may stay open.
    ///
    /// # Errors
    /// A violation where the subject gave no location or refuses, a fault otherwise.
    pub fn attach_on(&mut self, side: Side, store: &StoreRef) -> Result<StoreRef, Stop> {
        let Some(location) = store.location.clone() else {
            return broken(
                "a subject that declares crossProcessSafe gives every store a location to attach to",
                "store/open answered without a location",
            );
        };
        self.attach(side, location, store.root.clone())
    }

    fn attach(
        &mut self,
        side: Side,
        location: Json,
        root: Option<String>,
    ) -> Result<StoreRef, Stop> {
        let promised = "store/attach opens the same storage again";
        let params = json!({ "location": location });
        let AttachResult { store } = self.must(side, "store/attach", params, promised)?;
        self.open.push((side, store.clone()));
        Ok(StoreRef { side, id: store, location: Some(location), root })
    }

    /// Closes and, where it can be, removes everything this trial opened. What goes wrong here is
    /// noted, and the fault that ended it is answered.
    fn clean_up(&mut self) -> Option<Fault> {
        if self.steps.last().is_some_and(|step| matches!(step.answer, Answer::Fault(_))) {
            return None;
        }
        let closes = std::mem::take(&mut self.open)
            .into_iter()
            .map(|(side, store)| (side, "store/close", json!({ "store": store })));
        let destroys = std::mem::take(&mut self.locations)
            .into_iter()
            .map(|(side, location)| (side, "store/destroy", json!({ "location": location })));
        let calls: Vec<(Side, &'static str, Json)> = closes.chain(destroys).collect();
        for (side, method, params) in calls {
            let answer = self.backend.call(side, method, &params);
            let is_optional = method == "store/destroy";
            match &answer {
                Answer::Result(_) => {}
                Answer::Error(error) if is_optional && error.code == METHOD_MISSING => {}
                Answer::Error(_) => {
                    self.advise(format!("{method} at the end of the case: {}", answer.shown()));
                }
                Answer::Fault(fault) => {
                    self.advise(format!("{method} at the end of the case: {}", answer.shown()));
                    return Some(fault.clone());
                }
            }
        }
        None
    }
}

/// Whether the child's lines no longer fit the calls, so that no answer of the trial can be trusted.
/// A child that hangs or dies when its stores are closed has answered what was judged.
fn breaks_protocol(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::BadLine | FaultKind::BadReply)
}

/// Serde's words without the names of our types.
fn form_words(words: &str) -> String {
    let mut kept = Vec::new();
    let mut skip = false;
    for word in words.split(' ') {
        if skip {
            skip = false;
            continue;
        }
        skip = word == "struct";
        kept.push(if skip { "an object" } else { word });
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::form_words;

    #[test]
    fn a_fault_names_no_type_of_ours() {
        let words = "invalid type: boolean `false`, expected struct ClaimResult";
        assert_eq!(form_words(words), "invalid type: boolean `false`, expected an object");
    }
}
