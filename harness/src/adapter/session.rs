//! A conversation with one child: the handshake, numbered calls with deadlines, and a decent end.

use super::frame::{Incoming, Lines, parse};
use super::launch::{Launch, StartError, Timing};
use super::process::{Child, End, Turn};
use super::shown::shown;
use super::space::{RunSpace, SLICE, wait_until};
use serde::Deserialize as _;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storeproof_contract::backend::{Capabilities, Identity, Limits, Manifest};
use storeproof_contract::call::{Answer, Fault, FaultKind, RpcError};
use storeproof_contract::json::Json;
use storeproof_contract::{KIT, PROTOCOL};

/// How long the calls of one clause may take together, until [`Session::begin_clause`] says otherwise.
pub const CLAUSE_S_MAX: u64 = 120;
/// The most notes kept between two looks at them; beyond it they are only counted.
pub const NOTES_MAX: usize = 100;
/// How much of stderr a fault shows where the child did not die by itself.
const STDERR_SHOWN_BYTES: usize = 2_048;
/// Memory that is kept for the next request; what a larger one took is given back.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// One child that has passed the handshake. After a fault it is dead, and answers that fault for ever.
#[derive(Debug)]
pub struct Session {
    child: Child,
    lines: Lines,
    request: Vec<u8>,
    last_id: i64,
    space: Arc<RunSpace>,
    timing: Timing,
    manifest: Manifest,
    clause: Clause,
    notes: Vec<String>,
    notes_dropped: u64,
    dead: Option<Fault>,
}

/// What the running clause has used up.
#[derive(Clone, Copy, Debug)]
struct Clause {
    budget: Duration,
    spent: Duration,
    waited: Duration,
}

impl Clause {
    fn new(budget: Duration) -> Self {
        Self { budget, spent: Duration::ZERO, waited: Duration::ZERO }
    }
}

type Outcome = Result<Json, RpcError>;

impl Session {
    /// Starts a child and shakes hands with it, both within the start-up time.
    ///
    /// # Errors
    /// Why there is no session; the child is gone by then.
    pub fn start(launch: &Launch) -> Result<Self, StartError> {
        let started = Instant::now();
        let child = Child::spawn(launch)?;
        let mut session = Self {
            child,
            lines: Lines::new(launch.timing.line_bytes_max),
            request: Vec::new(),
            last_id: 0,
            space: Arc::clone(&launch.space),
            timing: launch.timing,
            manifest: blank(),
            clause: Clause::new(Duration::from_secs(CLAUSE_S_MAX)),
            notes: Vec::new(),
            notes_dropped: 0,
            dead: None,
        };
        match session.shake_hands(launch.seed, started) {
            Ok(()) => Ok(session),
            Err(StartError::Handshake(fault)) => Err(StartError::Handshake(session.bury(fault))),
            Err(error @ (StartError::WrongMajor { .. } | StartError::NotStartable { .. })) => {
                Err(error)
            }
        }
    }

    fn shake_hands(&mut self, seed: u64, started: Instant) -> Result<(), StartError> {
        let params = json!({
            "protocol": PROTOCOL,
            "kit": KIT,
            "harness": { "name": "storeproof", "version": env!("CARGO_PKG_VERSION") },
            "run": { "seed": seed },
        });
        let limit = self.timing.startup;
        let outcome = self
            .exchange("initialize", &params, started, limit, "start-up")
            .map_err(StartError::Handshake)?;
        let result = outcome.map_err(|error| {
            let message = format!("initialize answered an error: {}", error.to_json());
            StartError::Handshake(Fault::new(FaultKind::Errored, message))
        })?;
        // Before the rest: another major may have another form altogether.
        for (what, ours) in [("protocol", PROTOCOL), ("kit", KIT)] {
            if let Some(note) = compare_versions(what, &result, ours)? {
                self.note(note);
            }
        }
        self.manifest = Manifest::deserialize(&result)
            .map_err(|error| bad_manifest(&result, &error.to_string()))?;
        self.manifest.check().map_err(|why| bad_manifest(&result, &why))?;
        if let Some(remark) = self.manifest.remark() {
            self.note(remark);
        }
        Ok(())
    }

    /// What the subject declared.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The operating system's id of the child, which may be a launcher's.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The child's own TMPDIR.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.child.folder()
    }

    /// The fault that ended the session.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.dead.as_ref()
    }

    /// Whether the next call can reach the child: no fault so far, and it has not exited meanwhile.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.dead.is_none() && !self.child.has_exited()
    }

    /// Gives the calls from here on `budget` together; waiting for the wall clock is not counted.
    pub fn begin_clause(&mut self, budget: Duration) {
        self.clause = Clause::new(budget);
    }

    /// What was noted since the last look: notifications, other minor versions.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        if self.notes_dropped > 0 {
            notes.push(format!("and {} notes more", std::mem::take(&mut self.notes_dropped)));
        }
        notes
    }

    /// One call, within its deadline and what is left of the clause's.
    pub fn call(&mut self, method: &str, params: &Json) -> Answer {
        if let Some(fault) = &self.dead {
            return Answer::Fault(fault.clone());
        }
        let started = Instant::now();
        let left = self.clause.budget.saturating_sub(self.clause.spent);
        let (limit, whose) =
            if left < self.timing.call { (left, "clause") } else { (self.timing.call, "call") };
        let outcome = self.exchange(method, params, started, limit, whose);
        self.clause.spent += started.elapsed();
        match outcome {
            Ok(Ok(result)) => Answer::Result(result),
            Ok(Err(error)) => Answer::Error(error),
            Err(fault) => Answer::Fault(self.bury(fault)),
        }
    }

    /// Sends one call and kills the child `after` that, whether it has answered or not. Answers what came
    /// back, if anything did: also what stood in the pipe when it died.
    ///
    /// # Errors
    /// A fault where the child was gone before, or wrote what is no reply.
    pub fn call_and_kill(
        &mut self,
        method: &str,
        params: &Json,
        after: Duration,
    ) -> Result<Option<Answer>, Fault> {
        if let Some(fault) = &self.dead {
            return Err(fault.clone());
        }
        let outcome = self.cut_short(method, params, after);
        self.kill();
        match outcome? {
            None => Ok(None),
            Some(Ok(result)) => Ok(Some(Answer::Result(result))),
            Some(Err(error)) => Ok(Some(Answer::Error(error))),
        }
    }

    fn cut_short(
        &mut self,
        method: &str,
        params: &Json,
        after: Duration,
    ) -> Result<Option<Outcome>, Fault> {
        let id = self.last_id + 1;
        let at = At { method, id };
        self.buffered(&at, None)?;
        self.write_request(&at, params)?;
        self.last_id = id;
        let started = Instant::now();
        let mut written = self.child.write_some(&self.request).map_err(|e| at.machine(&e))?;
        loop {
            let left = after.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            let turn = self
                .child
                .turn(&self.request, &mut written, &mut self.lines, left.min(SLICE))
                .map_err(|error| at.machine(&error))?;
            match turn {
                Turn::Idle => {}
                Turn::Ended => break,
                Turn::Moved => {
                    if let Some(outcome) = self.buffered(&at, Some(id))? {
                        return Ok(Some(outcome));
                    }
                }
            }
        }
        self.child.strike();
        self.child.end(&mut self.lines);
        // Half a line is no answer: the kill cut it off.
        self.buffered(&at, Some(id))
    }

    /// Kills the child (SIGKILL) with all it started.
    pub fn kill(&mut self) {
        self.child.strike();
        self.child.end(&mut self.lines);
        if self.dead.is_none() {
            self.dead = Some(Fault::new(FaultKind::Died, "the bench killed the process"));
        }
    }

    /// The process id that the subject declared, else the operating system's of the child.
    #[must_use]
    pub fn process_id(&self) -> u64 {
        self.manifest.pid.unwrap_or_else(|| u64::from(self.pid()))
    }

    /// Waits for the wall clock while the child's stderr is drained.
    ///
    /// # Errors
    /// A fault where the run is interrupted or the clause has waited for too long.
    pub fn wait_until(&mut self, until_ms: u64) -> Result<(), Fault> {
        let (space, child) = (&self.space, &mut self.child);
        wait_until(space, &mut self.clause.waited, until_ms, |slice| child.idle(slice))
    }

    /// Asks the child to exit, and kills what is left after the grace. Says what was not as it should be.
    #[must_use]
    pub fn finish(mut self) -> Vec<String> {
        if self.is_alive() {
            self.ask_to_exit();
        }
        self.child.end(&mut self.lines);
        self.take_notes()
    }

    fn ask_to_exit(&mut self) {
        let grace = self.timing.grace;
        let outcome = self.exchange("shutdown", &json!({}), Instant::now(), grace, "grace");
        self.child.close_stdin();
        match outcome {
            // Whether it has `shutdown` or not: with its stdin closed it has nothing left to do.
            Ok(_) if self.child.wait_for_exit(grace) => {}
            Ok(_) => self.note(format!(
                "the child did not exit within {grace:?} of shutdown and was killed"
            )),
            Err(fault) => self.note(format!("the child was killed at shutdown: {fault}")),
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.notes_dropped += 1;
        }
    }

    /// Sends one request and reads until its reply, whatever else comes first.
    fn exchange(
        &mut self,
        method: &str,
        params: &Json,
        started: Instant,
        limit: Duration,
        whose: &str,
    ) -> Result<Outcome, Fault> {
        let id = self.last_id + 1;
        let at = At { method, id };
        // What came unasked after the last reply cannot be this call's.
        if let Some(outcome) = self.buffered(&at, None)? {
            return Ok(outcome);
        }
        self.write_request(&at, params)?;
        self.last_id = id;
        let mut written = self.child.write_some(&self.request).map_err(|e| at.machine(&e))?;
        let deadline = started + limit;
        let mut next_look = started + SLICE;
        loop {
            let now = Instant::now();
            if self.space.is_interrupted() {
                return Err(at.fault(FaultKind::Interrupted, "the run was interrupted"));
            }
            if now >= deadline {
                return Err(self.too_late(&at, limit, whose, written));
            }
            if now >= next_look {
                if self.child.has_exited() {
                    return self.reply_of_the_dead(&at, written);
                }
                next_look = now + SLICE;
            }
            let time = SLICE.min(deadline - now);
            let turn = self
                .child
                .turn(&self.request, &mut written, &mut self.lines, time)
                .map_err(|error| at.machine(&error))?;
            match turn {
                Turn::Idle => {}
                Turn::Ended => return self.reply_of_the_dead(&at, written),
                Turn::Moved => {
                    if let Some(outcome) = self.buffered(&at, Some(id))? {
                        return Ok(outcome);
                    }
                }
            }
        }
    }

    fn write_request(&mut self, at: &At<'_>, params: &Json) -> Result<(), Fault> {
        if self.request.capacity() > KEPT_BYTES_MAX {
            self.request = Vec::new();
        }
        let request = &mut self.request;
        request.clear();
        let (id, method) = (at.id, at.method);
        write!(request, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#)
            .and_then(|()| serde_json::to_writer(&mut *request, params).map_err(Into::into))
            .and_then(|()| request.write_all(b"}\n"))
            .map_err(|error| at.machine(&error))
    }

    /// Goes through the whole lines that are there, up to the reply to `asked`.
    fn buffered(&mut self, at: &At<'_>, asked: Option<i64>) -> Result<Option<Outcome>, Fault> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(fault) => return Err(at.on_line(self.lines.number(), &fault)),
            };
            match parse(line) {
                Ok(Incoming::Reply { id, outcome }) if Some(id) == asked => {
                    return Ok(Some(outcome));
                }
                Ok(Incoming::Reply { id, .. }) => {
                    let seen = shown(line);
                    let fault = self.stray(id, asked, &seen);
                    return Err(at.on_line(self.lines.number(), &fault));
                }
                Ok(Incoming::Notification(_)) => {
                    let note = format!("a notification, ignored: {}", shown(line));
                    self.note(note);
                }
                Err(fault) => return Err(at.on_line(self.lines.number(), &fault)),
            }
        }
    }

    fn stray(&self, id: i64, asked: Option<i64>, seen: &str) -> Fault {
        let answered = if asked.is_some() { self.last_id - 1 } else { self.last_id };
        let message = if (1..=answered).contains(&id) {
            format!("a repeated reply: call {id} was answered before: {seen}")
        } else {
            format!("a reply with the unknown id {id}, which was never sent: {seen}")
        };
        Fault::new(FaultKind::BadReply, message)
    }

    fn too_late(&self, at: &At<'_>, limit: Duration, whose: &str, written: usize) -> Fault {
        let detail = self.detail(written);
        let message = format!("no reply within {limit:?} (the {whose} deadline){detail}");
        at.fault(FaultKind::Deadline, &message)
    }

    /// The child is gone or has closed its stdout. Its last whole line may still be the reply.
    fn reply_of_the_dead(&mut self, at: &At<'_>, written: usize) -> Result<Outcome, Fault> {
        let End { how, was_killed } = self.child.end(&mut self.lines);
        if let Some(outcome) = self.buffered(at, Some(at.id))? {
            return Ok(outcome);
        }
        let closed = if was_killed { "it closed its stdout and went on, so " } else { "" };
        let handshake = at.method == "initialize";
        let when = if handshake { "before the handshake" } else { "before it answered" };
        let detail = self.detail(written);
        let message = format!("the child is gone: {closed}{how} {when}{detail}");
        Err(at.fault(FaultKind::Died, &message))
    }

    /// What a person should know besides: how far the request got, and what came of the reply.
    fn detail(&self, written: usize) -> String {
        let mut detail = String::new();
        let all = self.request.len();
        if written < all {
            let broken = if self.child.is_stdin_broken() { " (broken pipe)" } else { "" };
            detail = format!("; it took only {written} of the request's {all} bytes{broken}");
        }
        let half = self.lines.unfinished();
        if !half.is_empty() {
            detail += &format!("; half a line was on its stdout: {}", shown(half));
        }
        detail
    }

    /// Ends the session: nobody of the child's family is left, and `fault` is the answer from now on.
    fn bury(&mut self, fault: Fault) -> Fault {
        self.child.end(&mut self.lines);
        let most = if fault.kind == FaultKind::Died { usize::MAX } else { STDERR_SHOWN_BYTES };
        let words = self.child.last_words(most);
        let fault = Fault::new(fault.kind, format!("{}; {words}", fault.message));
        self.dead = Some(fault.clone());
        fault
    }
}

/// Which call something went wrong at.
struct At<'a> {
    method: &'a str,
    id: i64,
}

impl At<'_> {
    fn fault(&self, kind: FaultKind, message: &str) -> Fault {
        Fault::new(kind, format!("{} (call {}): {message}", self.method, self.id))
    }

    fn on_line(&self, number: u64, fault: &Fault) -> Fault {
        self.fault(fault.kind, &format!("stdout line {number}: {}", fault.message))
    }

    fn machine(&self, error: &std::io::Error) -> Fault {
        self.fault(FaultKind::Bench, &format!("the bench could not talk to the child: {error}"))
    }
}

fn bad_manifest(result: &Json, why: &str) -> StartError {
    let seen = shown(result.to_string().as_bytes());
    let message = format!("initialize answered what is no manifest ({why}): {seen}");
    StartError::Handshake(Fault::new(FaultKind::BadForm, message))
}

/// A note where the subject speaks another minor version than the bench.
fn compare_versions(
    what: &'static str,
    result: &Json,
    ours: &'static str,
) -> Result<Option<String>, StartError> {
    let theirs = result.get(what).and_then(Json::as_str).unwrap_or_default();
    let own = version(ours).unwrap_or_default();
    let Some(version) = version(theirs) else {
        return Err(bad_manifest(result, &format!("`{what}` is no version MAJOR.MINOR")));
    };
    if version.0 != own.0 {
        return Err(StartError::WrongMajor { what, theirs: theirs.to_owned(), ours });
    }
    Ok((version != own).then(|| {
        format!(
            "the subject speaks {what} {theirs}, this bench {what} {ours}: another minor version"
        )
    }))
}

/// `MAJOR` or `MAJOR.MINOR`; an absent minor is 0.
fn version(text: &str) -> Option<(u64, u64)> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    let number = |text: &str| {
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_digits.then(|| text.parse().ok()).flatten()
    };
    Some((number(major)?, number(minor)?))
}

/// Stands in until the handshake has answered.
fn blank() -> Manifest {
    Manifest {
        protocol: String::new(),
        kit: String::new(),
        subject: Identity {
            name: String::new(),
            version: String::new(),
            language: None,
            homepage: None,
        },
        pid: None,
        capabilities: Capabilities::default(),
        faces: Vec::new(),
        limits: Limits::default(),
        server: None,
    }
}
