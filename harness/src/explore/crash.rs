//! Crash states of stores that say where their bytes are: what is on disk before and after one
//! operation, every way in which a crash can have left it between the two, opened again and judged.
//!
//! No file system is simulated and nobody is killed: the bench copies the store's root before and after
//! an operation, builds the states that lie between, and lets the subject attach to a copy. Between
//! lie: each file that grew (or is new) cut at every byte of what was added; each file that was
//! replaced, in the order of the replacements, old or new; each file that went away, still there. The
//! operation itself then counts as a call without an answer. What else changed in place is tried as it
//! was before and as it was after, and only a state in which both fail is a finding.
//!
//! **Not seen:** the order of writes within one file that is changed in place, files that came and went
//! during the operation, and what a disk does that loses synced bytes.

mod disk;

use super::judge::{Judge, Violation};
use disk::{State, look, machine, states, write};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use storeproof_contract::backend::{Backend, Clock, Side};
use storeproof_contract::call::{Answer, Fault, FaultKind, RpcError};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::history::{Call, Rules, Stamp, When};

/// The most claims that empty one box.
const DRAIN_MAX: usize = 200;
/// Where the caller's clock starts, in epoch milliseconds.
const START_MS: u64 = 1_800_000_000_137;
/// How long a lease lives, in milliseconds.
const TTL_MS: u64 = 61_234;

/// What enumerating crash states came to.
#[derive(Clone, Debug, Default)]
pub struct Crashed {
    /// Operations whose states were built.
    pub operations: u64,
    /// States that were opened and judged.
    pub states: u64,
    /// Operations that left nothing to build, by why.
    pub passed_over: BTreeMap<&'static str, u64>,
    /// What was found, at most one for each kind of operation.
    pub findings: Vec<CrashFinding>,
}

/// A crash state that a subject does not survive.
#[derive(Clone, Debug)]
pub struct CrashFinding {
    /// What it breaks.
    pub violation: Violation,
    /// The operation that was cut short.
    pub operation: &'static str,
    /// What the state is: which file, cut where.
    pub state: String,
    /// The calls before it, each with its answer, as lines.
    pub steps: Vec<String>,
}

/// Runs `operations` random operations on a fresh storage, and judges every crash state of each.
///
/// `None` where the subject does not say where its bytes are.
///
/// # Errors
/// A fault where the subject gave no answer to judge, or a copy cannot be made below `scratch`.
pub fn crash_states(
    backend: &mut dyn Backend,
    scratch: &Path,
    operations: u32,
    seed: u64,
) -> Result<Option<Crashed>, Fault> {
    let opened = result(backend.call(Side::HERE, "store/open", &json!({})), "store/open")?;
    let mut crashed = Crashed::default();
    let (Some(store), Some(root), Some(location)) =
        (opened["store"].as_str(), opened["root"].as_str(), opened.get("location"))
    else {
        backend.call(Side::HERE, "store/close", &json!({ "store": opened["store"] }));
        if let Some(location) = opened.get("location") {
            backend.call(Side::HERE, "store/destroy", &json!({ "location": location }));
        }
        return Ok(None);
    };
    // Where the copies cannot be named, the subject would only be shown its own storage again.
    if moved(location, Path::new(root), scratch) == *location {
        crashed.passed_over.insert("the location does not name the root", u64::from(operations));
    }
    let mut drill = Drill {
        rules: Rules::new(backend.manifest().capabilities.clock, granularity_ms(backend)),
        backend,
        store: store.to_owned(),
        root: PathBuf::from(root),
        location: location.clone(),
        scratch: scratch.to_owned(),
        rng: fastrand::Rng::with_seed(seed),
        judge: None,
        order: 0,
        now_ms: START_MS,
        lease: None,
        steps: Vec::new(),
        copies: 0,
    };
    let count = if crashed.passed_over.is_empty() { operations } else { 0 };
    for _ in 0..count {
        drill.one(&mut crashed)?;
    }
    drill.backend.call(Side::HERE, "store/close", &json!({ "store": store }));
    drill.backend.call(Side::HERE, "store/destroy", &json!({ "location": location }));
    Ok(Some(crashed))
}

fn granularity_ms(backend: &dyn Backend) -> u64 {
    backend.manifest().limits.lease_granularity_ms.unwrap_or(1).max(1)
}

fn result(answer: Answer, method: &str) -> Result<Json, Fault> {
    match answer {
        Answer::Result(result) => Ok(result),
        Answer::Error(error) => {
            let message = format!("{method} answered {}", error.to_json());
            Err(Fault::new(FaultKind::Errored, message))
        }
        Answer::Fault(fault) => Err(fault),
    }
}

/// The operation that was cut short, and what is known from before it.
struct Cut<'c> {
    folders: &'c BTreeSet<PathBuf>,
    judge: &'c Judge,
    method: &'static str,
    params: &'c Json,
}

struct Drill<'b> {
    backend: &'b mut dyn Backend,
    store: String,
    root: PathBuf,
    location: Json,
    scratch: PathBuf,
    rng: fastrand::Rng,
    rules: Rules,
    /// None before the first call.
    judge: Option<Judge>,
    order: u64,
    now_ms: u64,
    /// A lease that is held: its box, its id, and what it delivered.
    lease: Option<(String, String, Vec<u64>)>,
    steps: Vec<String>,
    copies: u64,
}

impl Drill<'_> {
    /// One operation with all its crash states.
    fn one(&mut self, crashed: &mut Crashed) -> Result<(), Fault> {
        let (method, params) = self.draw();
        let before = look(&self.root)?;
        let judge = self.judge().clone();
        let called = self.call(&self.store.clone(), method, &params)?;
        let after = look(&self.root)?;
        let (Some(before), Some(after)) = (before, after) else {
            *crashed.passed_over.entry("the root is too large to copy").or_default() += 1;
            return self.go_on(called);
        };
        let states = states(&before.files, &after.files);
        if states.is_empty() {
            *crashed.passed_over.entry("nothing on disk changed").or_default() += 1;
        } else {
            crashed.operations += 1;
        }
        let known = crashed.findings.iter().any(|finding| finding.operation == method);
        if !known {
            for state in states {
                crashed.states += 1;
                let cut = Cut { folders: &after.folders, judge: &judge, method, params: &params };
                let Some(violation) = self.survives(&state, &cut)? else {
                    continue;
                };
                crashed.findings.push(CrashFinding {
                    violation,
                    operation: method,
                    state: state.words,
                    steps: self.steps.clone(),
                });
                break;
            }
        }
        self.go_on(called)
    }

    fn judge(&mut self) -> &mut Judge {
        let rules = self.rules.clone();
        self.judge.get_or_insert_with(|| Judge::new(rules))
    }

    /// Takes the operation's real answer in.
    fn go_on(&mut self, called: Call) -> Result<(), Fault> {
        self.steps.push(format!("{} -> {}", called.asked(), called.came()));
        // A violation here is no crash's: exploring finds it by itself.
        if let Err(violation) = self.judge().see(&called) {
            let message =
                format!("before any crash {} is broken: {}", violation.clause, violation.seen);
            return Err(Fault::new(FaultKind::Errored, message));
        }
        Ok(())
    }

    fn draw(&mut self) -> (&'static str, Json) {
        let of = if self.rng.bool() { "alpha" } else { "beta" };
        let now = self.now();
        let on = |of: &str| json!({ "scope": "default", "handle": of, "now": now });
        if let Some((of, lease, seqs)) = self.lease.take() {
            let mut params = on(&of);
            let at = self.rng.usize(..seqs.len().max(1));
            params["owner"] = json!("ann");
            params["lease"] = json!(lease);
            params["upTo"] = json!(seqs.get(at).copied().unwrap_or(1));
            return ("mailbox/ack", params);
        }
        let mut params = on(of);
        match self.rng.u8(..) {
            0..140 => {
                let long = "x".repeat(self.rng.usize(..60));
                params["body"] = json!(format!("m{}{long}", self.order));
                ("mailbox/append", params)
            }
            140..205 => {
                params["owner"] = json!("ann");
                params["ttlMs"] = json!(TTL_MS.max(3 * self.rules.granularity_ms));
                ("mailbox/claim", params)
            }
            205..235 => ("mailbox/reap", json!({ "now": now })),
            235.. => ("mailbox/drop", params),
        }
    }

    fn now(&mut self) -> u64 {
        match self.rules.clock {
            Clock::Caller => self.now_ms,
            Clock::Wall => self.backend.now_ms(),
        }
    }

    /// One call, as a history has it.
    fn call(&mut self, store: &str, method: &'static str, params: &Json) -> Result<Call, Fault> {
        let mut params = params.clone();
        params["store"] = json!(store);
        let sent = Stamp { order: self.order + 1, ms: self.now() };
        let answer = self.backend.call(Side::HERE, method, &params);
        if let Answer::Fault(fault) = &answer {
            return Err(fault.clone());
        }
        let answered = Stamp { order: self.order + 2, ms: self.now() };
        self.order += 2;
        let when = When { sent, answered: Some(answered), lane: 0, process: 0 };
        let call = Call::read(method, &params, &answer, when)?;
        if let (Answer::Result(result), "mailbox/claim") = (&answer, method) {
            self.hold(&params, result);
        }
        Ok(call)
    }

    fn hold(&mut self, params: &Json, result: &Json) {
        let (Some(of), Some(lease)) = (params["handle"].as_str(), result["lease"].as_str()) else {
            return;
        };
        let seqs = result["messages"].as_array().into_iter().flatten();
        let seqs = seqs.filter_map(|message| message["seq"].as_u64()).collect();
        self.lease = Some((of.to_owned(), lease.to_owned(), seqs));
    }

    /// The violation that a crash state shows, in each of its variants.
    fn survives(&mut self, state: &State, cut: &Cut<'_>) -> Result<Option<Violation>, Fault> {
        let mut found = None;
        for files in &state.variants {
            match self.judged(files, cut)? {
                None => return Ok(None),
                Some(violation) => found = Some(violation),
            }
        }
        Ok(found)
    }

    fn judged(
        &mut self,
        files: &BTreeMap<PathBuf, Vec<u8>>,
        cut: &Cut<'_>,
    ) -> Result<Option<Violation>, Fault> {
        self.copies += 1;
        let copy = self.scratch.join(format!("crash-{}", self.copies));
        write(&copy, cut.folders, files).map_err(|error| machine("cannot write", &copy, &error))?;
        let held = self.lease.take();
        let verdict = self.judged_in(&copy, &mut cut.judge.clone(), cut.method, cut.params);
        self.lease = held;
        // A store may keep files in its copy; whatever stays goes with the run's scratch folder.
        let _ = fs::remove_dir_all(&copy);
        verdict
    }

    fn judged_in(
        &mut self,
        copy: &Path,
        judge: &mut Judge,
        method: &'static str,
        params: &Json,
    ) -> Result<Option<Violation>, Fault> {
        let location = moved(&self.location, &self.root, copy);
        let attached =
            self.backend.call(Side::HERE, "store/attach", &json!({ "location": location }));
        let store = match attached {
            Answer::Result(result) => result["store"].as_str().unwrap_or_default().to_owned(),
            Answer::Error(error) => return Ok(Some(refused_attach(method, &error))),
            Answer::Fault(fault) => return Err(fault),
        };
        let sent = Stamp { order: self.order + 1, ms: params["now"].as_u64().unwrap_or(0) };
        self.order += 1;
        let silent = Answer::Fault(Fault::new(FaultKind::Died, "the crash"));
        let when = When { sent, answered: None, lane: 1, process: 0 };
        let mut cut = params.clone();
        cut["store"] = json!("before the crash");
        let mut seen = judge.see(&Call::read(method, &cut, &silent, when)?).err();
        let mut store = store;
        if seen.is_none() {
            // What is written next must not be joined to what was torn; only who opens again can tell.
            seen = self.appended_after(&store, judge)?;
            self.backend.call(Side::HERE, "store/close", &json!({ "store": store }));
            store = match self.backend.call(
                Side::HERE,
                "store/attach",
                &json!({ "location": location }),
            ) {
                Answer::Result(result) => result["store"].as_str().unwrap_or_default().to_owned(),
                Answer::Error(error) => return Ok(Some(refused_attach(method, &error))),
                Answer::Fault(fault) => return Err(fault),
            };
        }
        for of in ["alpha", "beta"] {
            if seen.is_some() {
                break;
            }
            seen = self.drained(&store, of, judge)?;
        }
        self.backend.call(Side::HERE, "store/close", &json!({ "store": store }));
        Ok(seen.map(|violation| Violation { clause: clause_of(method).to_owned(), ..violation }))
    }

    /// One more append to the storage that was opened again: one, so that a store that writes its whole
    /// state at a time does not mend by a second what the first spoiled.
    fn appended_after(
        &mut self,
        store: &str,
        judge: &mut Judge,
    ) -> Result<Option<Violation>, Fault> {
        let now = self.now();
        let params =
            json!({ "scope": "default", "handle": "alpha", "body": "after the crash", "now": now });
        let append = match self.call(store, "mailbox/append", &params) {
            Ok(append) => append,
            Err(Fault { kind: FaultKind::Errored, message }) => {
                return Ok(Some(unreadable("alpha", &message)));
            }
            Err(fault) => return Err(fault),
        };
        Ok(judge.see(&append).err())
    }

    /// Claims and acks until `null`, when every lease from before has run out (by the caller's clock).
    fn drained(
        &mut self,
        store: &str,
        of: &str,
        judge: &mut Judge,
    ) -> Result<Option<Violation>, Fault> {
        let (now, ttl_ms) = (self.now_ms, TTL_MS.max(3 * self.rules.granularity_ms));
        self.now_ms += 2 * ttl_ms + self.rules.granularity_ms;
        let seen = self.drained_now(store, of, judge, ttl_ms);
        self.now_ms = now;
        seen
    }

    fn drained_now(
        &mut self,
        store: &str,
        of: &str,
        judge: &mut Judge,
        ttl_ms: u64,
    ) -> Result<Option<Violation>, Fault> {
        for _ in 0..DRAIN_MAX {
            let now = self.now();
            let mut params = json!({
                "scope": "default", "handle": of, "owner": "survivor", "ttlMs": ttl_ms, "now": now,
            });
            let claim = match self.call(store, "mailbox/claim", &params) {
                Ok(claim) => claim,
                Err(Fault { kind: FaultKind::Errored, message }) => {
                    return Ok(Some(unreadable(of, &message)));
                }
                Err(fault) => return Err(fault),
            };
            if let Err(violation) = judge.see(&claim) {
                return Ok(Some(violation));
            }
            let Some((_, lease, seqs)) = self.lease.take() else { return Ok(None) };
            params["lease"] = json!(lease);
            params["upTo"] = json!(seqs.last().copied().unwrap_or(1));
            let ack = self.call(store, "mailbox/ack", &params)?;
            if let Err(violation) = judge.see(&ack) {
                return Ok(Some(violation));
            }
        }
        Err(Fault::new(FaultKind::Limit, format!("{DRAIN_MAX} claims and acks did not empty {of}")))
    }
}

fn refused_attach(method: &str, error: &RpcError) -> Violation {
    Violation {
        clause: clause_of(method).to_owned(),
        kind: "attach/refusal".to_owned(),
        promised: "a storage opens again, whatever moment the crash came at".to_owned(),
        seen: format!("store/attach answered {}", error.to_json()),
        drawing: None,
    }
}

fn unreadable(of: &str, message: &str) -> Violation {
    Violation {
        clause: String::new(),
        kind: "claim/error".to_owned(),
        promised: "what was receipted can be read again, whatever moment the crash came at"
            .to_owned(),
        seen: format!("on {of}: {message}"),
        drawing: None,
    }
}

/// The clause that a crash in this operation is about.
fn clause_of(method: &str) -> &'static str {
    match method {
        "mailbox/append" => "mailbox/cross-process/kill-mid-append",
        "mailbox/reap" => "mailbox/cross-process/kill-mid-reap",
        _ => "mailbox/core/reopen",
    }
}

/// The location with the copy's folder wherever the root stood.
fn moved(location: &Json, root: &Path, copy: &Path) -> Json {
    let (root, copy) = (root.to_string_lossy(), copy.to_string_lossy());
    match location {
        Json::String(text) => {
            let rest = text.strip_prefix(root.as_ref());
            let is_below = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
            Json::String(is_below.map_or_else(|| text.clone(), |rest| format!("{copy}{rest}")))
        }
        Json::Array(items) => items
            .iter()
            .map(|item| moved(item, Path::new(root.as_ref()), Path::new(copy.as_ref())))
            .collect(),
        Json::Object(members) => Json::Object(
            members
                .iter()
                .map(|(name, item)| {
                    (name.clone(), moved(item, Path::new(root.as_ref()), Path::new(copy.as_ref())))
                })
                .collect(),
        ),
        Json::Null | Json::Bool(_) | Json::Number(_) => location.clone(),
    }
}
