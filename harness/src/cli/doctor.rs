//! `storeproof doctor`: shakes hands with an adapter, tries one call of each kind, and says in plain
//! words what to mend.

use super::{Ended, Failure, words};
use crate::adapter::{Launch, ProcessBackend, RunSpace, Stand as _, StartError, on_deep_stack};
use crate::exit_code;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use storeproof_contract::backend::{Backend as _, Capabilities, Clock, Manifest, Side};
use storeproof_contract::call::{Answer, Fault, FaultKind, METHOD_MISSING, REFUSED};
use storeproof_contract::json::{Json, cut};
use storeproof_reports::text::{terminal_line, terminal_text};

/// How long all calls of an examination may take together.
const BUDGET: Duration = Duration::from_secs(120);
/// The lifetime of the leases that it claims (milliseconds).
const TTL_MS: u64 = 600_000;

const EXAMPLES: &str = "\
Examples:
  storeproof doctor -- python3 my_store.py
  storeproof doctor -- node my-store.mjs";

/// Tries an adapter: handshake, declared capabilities, one call of each kind, and what to mend.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The command that starts the adapter
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> Ended {
    on_deep_stack(|| examine(args)).map_err(Failure::not_judged)?
}

fn examine(args: &Args) -> Ended {
    let space = RunSpace::create(Arc::new(AtomicBool::new(false))).map_err(Failure::nothing_ran)?;
    let mut command = args.command.iter().cloned();
    let program = command.next().unwrap_or_default();
    let launch = Launch::new(program, command, 0, space);
    let backend = match ProcessBackend::start(launch) {
        Ok(backend) => backend,
        Err(StartError::Handshake(fault)) => {
            let advice = advice_on(&fault).unwrap_or("Answer initialize before anything else.");
            words::result(&format!(
                "handshake   FAILED  {}\n\nadvice\n  - {advice}\n",
                terminal_text(&fault.to_string())
            ));
            return Ok(exit_code::NOT_JUDGED);
        }
        Err(error @ (StartError::NotStartable { .. } | StartError::WrongMajor { .. })) => {
            return Err(Failure::nothing_ran(error));
        }
    };
    let mut visit =
        Visit { backend, page: String::new(), advice: Vec::new(), broken: 0, unclear: 0 };
    visit.backend.begin_clause(BUDGET);
    visit.introduce();
    visit.examine_stores();
    visit.backend.finish();
    for note in visit.backend.take_notes() {
        visit.advise(&format!("Noted: {note}"));
    }
    words::result(&visit.close());
    Ok(visit.status())
}

/// One examination.
struct Visit {
    backend: ProcessBackend,
    page: String,
    advice: Vec<String>,
    broken: u32,
    unclear: u32,
}

/// What an answer ought to be.
enum Wanted {
    /// A result in which each of these members stands.
    Result(&'static [&'static str]),
    /// A refusal with this reason.
    Refusal(&'static str),
    /// The result `null`.
    Null,
}

impl Visit {
    fn introduce(&mut self) {
        let manifest = self.backend.manifest().clone();
        let who = &manifest.subject;
        let language = who.language.as_deref().map(|l| format!(", {l}")).unwrap_or_default();
        self.line("handshake", "ok", &format!("{} {}{language}", who.name, who.version));
        self.line("protocol", "ok", &format!("{} with kit {}", manifest.protocol, manifest.kit));
        self.line("declares", "", &declared(&manifest.capabilities));
        self.advise_on_declaration(&manifest);
    }

    fn advise_on_declaration(&mut self, manifest: &Manifest) {
        let caps = &manifest.capabilities;
        if !caps.mailbox && !caps.is_queue() {
            self.advise("Nothing is declared that can be certified: declare mailbox: true if this is a mailbox store.");
        }
        if caps.mailbox && caps.is_queue() {
            self.broken += 1;
            self.advise("Declare mailbox or queue, not both: a store leases either the whole box or each message.");
        }
        if caps.tombstone && !caps.tenancy {
            self.broken += 1;
            self.advise("tombstone needs tenancy: declare both, or take tombstone back.");
        }
        if caps.mailbox && caps.clock == Clock::Wall {
            self.advise(
                "Leases are judged by the store's own clock, so the bench has to wait for each expiry. If the store \
                 judges them by the `now` of each call, declare clock: \"caller\": it is exact, and much faster.",
            );
        }
        if manifest.pid.is_none() {
            self.advise("initialize answered no pid; cross-process checks need it.");
        }
    }

    fn examine_stores(&mut self) {
        let caps = self.backend.manifest().capabilities.clone();
        if !caps.mailbox && !caps.is_queue() {
            return;
        }
        let Some(opened) = self.try_call("store/open", json!({}), &Wanted::Result(&["store"]))
        else {
            return;
        };
        let store = opened["store"].clone();
        let location = opened.get("location").cloned();
        if (caps.durable || caps.cross_process_safe) && location.is_none() {
            self.broken += 1;
            self.advise("durable and crossProcessSafe need a location in the answer to store/open, to attach again by.");
        }
        self.examine_mailbox(&store, &caps);
        if caps.tombstone {
            let on = |more| on(&store, "doomed", self.backend_now(), more);
            let (tombstone, append) = (on(json!({})), on(json!({ "body": "late" })));
            self.try_call("recipient/tombstone", tombstone, &Wanted::Result(&[]));
            self.try_call("mailbox/append", append, &Wanted::Refusal("recipient_deleted"));
        }
        self.examine_end(&store, location);
    }

    fn backend_now(&self) -> u64 {
        // Any moment will do for leases that nobody waits for.
        1_800_000_000_000
    }

    fn examine_mailbox(&mut self, store: &Json, caps: &Capabilities) {
        let now = self.backend_now();
        let at = |more| on(store, "inbox", now, more);
        self.try_call(
            "mailbox/claim",
            at(json!({ "owner": "ann", "ttlMs": TTL_MS })),
            &Wanted::Null,
        );
        self.try_call(
            "mailbox/append",
            at(json!({ "body": { "text": "hello" } })),
            &Wanted::Result(&["seq"]),
        );
        self.try_call("mailbox/append", at(json!({ "body": "again" })), &Wanted::Result(&["seq"]));
        let claim = at(json!({ "owner": "ann", "ttlMs": TTL_MS, "max": 1 }));
        let Some(claimed) =
            self.try_call("mailbox/claim", claim, &Wanted::Result(&["lease", "messages"]))
        else {
            return;
        };
        let lease = claimed["lease"].clone();
        let seq = claimed["messages"][0]["seq"].clone();
        if caps.mailbox {
            self.try_call(
                "mailbox/claim",
                at(json!({ "owner": "bob", "ttlMs": TTL_MS })),
                &Wanted::Null,
            );
        }
        if caps.peek {
            self.try_call("mailbox/peek", at(json!({})), &Wanted::Result(&["messages"]));
        }
        if caps.renew {
            let renew = at(json!({ "owner": "ann", "lease": lease, "ttlMs": TTL_MS }));
            self.try_call("mailbox/renew", renew, &Wanted::Result(&[]));
        }
        let ack =
            |owner: &str, lease: &Json| at(json!({ "owner": owner, "lease": lease, "upTo": seq }));
        let (foreign, own) = (ack("bob", &lease), ack("ann", &lease));
        self.try_call("mailbox/ack", foreign, &Wanted::Refusal("lease_not_held"));
        self.try_call("mailbox/ack", own, &Wanted::Result(&["acked"]));
        if caps.release {
            let claim = at(json!({ "owner": "ann", "ttlMs": TTL_MS }));
            if let Some(claimed) =
                self.try_call("mailbox/claim", claim, &Wanted::Result(&["lease"]))
            {
                let release = at(json!({ "owner": "ann", "lease": claimed["lease"] }));
                self.try_call("mailbox/release", release, &Wanted::Result(&[]));
            }
        }
        self.try_call("mailbox/reap", json!({ "store": store, "now": now }), &Wanted::Result(&[]));
        self.try_call("mailbox/drop", at(json!({})), &Wanted::Result(&["dropped"]));
    }

    fn examine_end(&mut self, store: &Json, location: Option<Json>) {
        self.try_call("store/close", json!({ "store": store }), &Wanted::Result(&[]));
        let claim =
            on(store, "inbox", self.backend_now(), json!({ "owner": "ann", "ttlMs": TTL_MS }));
        self.try_call("mailbox/claim", claim, &Wanted::Refusal("closed"));
        let Some(location) = location else { return };
        let attach = json!({ "location": location });
        if let Some(again) =
            self.try_call("store/attach", attach.clone(), &Wanted::Result(&["store"]))
        {
            self.try_call("store/close", json!({ "store": again["store"] }), &Wanted::Result(&[]));
        }
        let answer = self.backend.call(Side::HERE, "store/destroy", &attach);
        let missing = matches!(&answer, Answer::Error(error) if error.code == METHOD_MISSING);
        if missing {
            self.line(
                "store/destroy",
                "-",
                "not there; it is optional, and tidies up after each case",
            );
        } else {
            self.weigh("store/destroy", &answer, &Wanted::Result(&[]));
        }
    }

    /// One call; `None` unless it answered what was wanted.
    fn try_call(&mut self, method: &'static str, params: Json, wanted: &Wanted) -> Option<Json> {
        let answer = self.backend.call(Side::HERE, method, &params);
        self.weigh(method, &answer, wanted)
    }

    fn weigh(&mut self, method: &str, answer: &Answer, wanted: &Wanted) -> Option<Json> {
        let shown = cut(&answer.shown().to_string());
        match (answer, wanted) {
            (Answer::Result(result), Wanted::Result(members)) if has(result, members) => {
                self.line(method, "ok", &cut(&result.to_string()));
                return Some(result.clone());
            }
            (Answer::Result(Value::Null), Wanted::Null) => {
                self.line(method, "ok", "null, as it should");
                return Some(Json::Null);
            }
            (Answer::Error(error), Wanted::Refusal(reason)) if error.code == REFUSED => {
                self.line(method, "ok", &format!("refused with {}, as it should", error.reason()));
                if error.reason() != *reason {
                    self.advise(&format!(
                        "{method}: the contract's word for this refusal is {reason}."
                    ));
                }
                return Some(Json::Null);
            }
            (Answer::Fault(fault), _) => {
                self.unclear += 1;
                self.line(method, "FAULT", &fault.to_string());
                if let Some(advice) = advice_on(fault) {
                    self.advise(advice);
                }
            }
            (Answer::Error(error), _) => {
                self.broken += 1;
                self.line(method, "WRONG", &shown);
                self.advise_on_error(method, error.code);
            }
            (Answer::Result(_), _) => {
                self.broken += 1;
                self.line(method, "WRONG", &shown);
                self.advise(&wrong_result(method, wanted));
            }
        }
        None
    }

    fn advise_on_error(&mut self, method: &str, code: i64) {
        self.advise(&match code {
            METHOD_MISSING => format!("{method} answers \"no such method\": serve it, or take back the capability that promises it."),
            REFUSED => format!("{method} was refused although nothing was wrong with the call."),
            -32602 => format!("{method} calls its params invalid: names on the wire are camelCase and exactly those of the protocol page."),
            _ => format!("{method} answered error {code}, which is a fault: only -32001 with data.reason is a refusal."),
        });
    }

    fn advise(&mut self, advice: &str) {
        if !self.advice.iter().any(|said| said == advice) {
            self.advice.push(advice.to_owned());
        }
    }

    fn line(&mut self, what: &str, how: &str, detail: &str) {
        let _ = writeln!(self.page, "{what:19}  {how:5}  {}", terminal_line(detail));
    }

    fn close(&self) -> String {
        let mut page = self.page.clone();
        if !self.advice.is_empty() {
            let _ = write!(page, "\nadvice\n");
            for advice in &self.advice {
                let _ = writeln!(page, "  - {}", terminal_line(advice));
            }
        }
        let _ = writeln!(
            page,
            "\n{}",
            match (self.broken, self.unclear) {
                (0, 0) => "Looks well. Next: storeproof certify -- (the same command)".to_owned(),
                (broken, unclear) =>
                    format!("{broken} wrong, {unclear} without an answer that can be judged"),
            }
        );
        page
    }

    fn status(&self) -> u8 {
        match (self.broken, self.unclear) {
            (0, 0) => exit_code::OK,
            (0, _) => exit_code::NOT_JUDGED,
            _ => exit_code::FINDING,
        }
    }
}

fn on(store: &Json, handle: &str, now: u64, more: Json) -> Json {
    let mut params = json!({ "store": store, "scope": "default", "handle": handle });
    if let (Some(params), Json::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more);
    }
    params["now"] = json!(now);
    params
}

fn has(result: &Json, members: &[&str]) -> bool {
    members.iter().all(|member| result.get(member).is_some())
}

fn wrong_result(method: &str, wanted: &Wanted) -> String {
    match wanted {
        Wanted::Result([]) => format!("{method} answers an object, {{}} will do."),
        Wanted::Result(members) => {
            format!("{method} answers an object with {}.", members.join(" and "))
        }
        Wanted::Refusal(reason) => {
            format!(
                "{method} has to refuse here, loudly: error -32001 with data {{\"reason\": \"{reason}\"}}."
            )
        }
        Wanted::Null => {
            format!("{method} answers null here: the box is empty, or leased to somebody else.")
        }
    }
}

fn declared(caps: &Capabilities) -> String {
    let value = serde_json::to_value(caps).unwrap_or_default();
    let words = value.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::Bool(true) => name.clone(),
        Value::Bool(false)
        | Value::Null
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            format!("{name}={value}")
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Plain words for the mistakes that adapters make most.
fn advice_on(fault: &Fault) -> Option<&'static str> {
    match fault.kind {
        FaultKind::BadLine => Some(
            "Something other than protocol went to stdout. stdout carries one JSON message a line and nothing else: \
             send logs and prints to stderr.",
        ),
        FaultKind::Deadline => Some(
            "No answer came in time. Flush stdout after each line, read stdin line by line, and answer every request.",
        ),
        FaultKind::Died => Some(
            "The program ended. Its last words on stderr are above; run the command by hand to see more.",
        ),
        FaultKind::BadReply => Some(
            "A reply carries jsonrpc \"2.0\", the integer id of its request, and exactly one of result and error.",
        ),
        FaultKind::BadForm => Some(
            "The result lacks a member or has one of another type; see the table in docs/PROTOCOL.md.",
        ),
        FaultKind::Errored
        | FaultKind::Limit
        | FaultKind::Undecided
        | FaultKind::Interrupted
        | FaultKind::Bench => None,
    }
}
