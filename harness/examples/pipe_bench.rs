//! What the bench costs: round trips per second of the raw pipe and of a `Session`, against the same
//! child, in turns within one run. `pipe_bench [CMD ARG...]`; without a command it is its own child.
//! Exits with 1 where a session makes less than [`RATIO_MIN`] of the pipe's round trips.
//!
//! What it does not measure: clauses, transcripts and reports, which come on top.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{self, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;
use storeproof::adapter::{Launch, RunSpace, Session, on_deep_stack, serve};
use storeproof_contract::call::Answer;
use storeproof_contract::mailbox::mutant::model;
use storeproof_contract::world::{Clockwork, World};

/// How often raw pipe and session take turns.
const ROUNDS: usize = 101;
/// Round trips a turn, a multiple of three. Turns are short, so that what else the machine does weighs
/// on both sides of a ratio alike.
const TRIPS: usize = 1_500;
/// What the issue demands.
const RATIO_MIN: f64 = 0.60;
/// The argument that makes this program the child.
const CHILD: &str = "child";

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failed> {
    let mut command: Vec<OsString> = std::env::args_os().skip(1).collect();
    if command.first().is_some_and(|word| word == CHILD) {
        let served = on_deep_stack(|| {
            serve(model(World::new(Clockwork::Caller)), BufReader::new(io::stdin()), io::stdout())
        });
        served??;
        return Ok(ExitCode::SUCCESS);
    }
    if command.is_empty() {
        command = vec![std::env::current_exe()?.into(), CHILD.into()];
    }
    let mut raw = Raw::start(&command)?;
    let mut bench = Bench::start(&command)?;
    let mut columns = [const { Vec::new() }; 5];
    for round in 0..=ROUNDS {
        let pipe = rate(|| raw.appends())?;
        let (appends, boxes) = (rate(|| bench.appends())?, rate(|| bench.boxes())?);
        // The first is only for warming up.
        if round > 0 {
            let row = [pipe, appends, boxes, appends / pipe, boxes / pipe];
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
    }
    let [pipe, appends, boxes, appends_ratio, ratio] = columns.map(median);
    let mut out = io::stdout().lock();
    writeln!(out, "round trips per second, medians of {ROUNDS} turns of {TRIPS}:")?;
    writeln!(out, "  raw pipe, one append line     {pipe:>9.0}")?;
    writeln!(out, "  session, append               {appends:>9.0}  ratio {appends_ratio:.2}")?;
    writeln!(out, "  session, append claim ack     {boxes:>9.0}  ratio {ratio:.2}")?;
    writeln!(out, "must be at least {RATIO_MIN:.2}")?;
    Ok(if ratio >= RATIO_MIN { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn rate(turn: impl FnOnce() -> Result<(), Failed>) -> Result<f64, Failed> {
    let started = Instant::now();
    turn()?;
    Ok(TRIPS as f64 / started.elapsed().as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn append_params(store: &str) -> Value {
    json!({
        "store": store, "scope": "default", "handle": "worker-1",
        "body": { "kind": "task", "text": "look at the build and tell me why it is red", "n": 17 },
        "now": 1_800_000_000_000_u64,
    })
}

/// Blocking writes and reads, and nothing else.
struct Raw {
    stdin: ChildStdin,
    stdout: ChildStdout,
    reply: Vec<u8>,
    append: Vec<u8>,
    drop: Vec<u8>,
}

impl Raw {
    #[expect(clippy::disallowed_methods, reason = "the raw pipe is what is measured against")]
    fn start(command: &[OsString]) -> Result<Self, Failed> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut raw = Self {
            stdin: stdin.ok_or("no stdin")?,
            stdout: stdout.ok_or("no stdout")?,
            reply: vec![0; 64 * 1024],
            append: Vec::new(),
            drop: Vec::new(),
        };
        let opened = raw.trip(&line("store/open", &json!({})))?;
        let opened: Value = serde_json::from_slice(&raw.reply[..opened])?;
        let store = opened["result"]["store"].as_str().ok_or("no store")?;
        let params = append_params(store);
        raw.append = line("mailbox/append", &params);
        raw.drop = line("mailbox/drop", &params);
        Ok(raw)
    }

    fn appends(&mut self) -> Result<(), Failed> {
        let append = std::mem::take(&mut self.append);
        for _ in 0..TRIPS {
            self.trip(&append)?;
        }
        self.append = append;
        let drop = self.drop.clone();
        self.trip(&drop)?;
        Ok(())
    }

    fn trip(&mut self, line: &[u8]) -> Result<usize, Failed> {
        self.stdin.write_all(line)?;
        let mut count = 0;
        loop {
            count += self.stdout.read(&mut self.reply[count..])?;
            if count == 0 || self.reply[count - 1] == b'\n' {
                return Ok(count);
            }
        }
    }
}

fn line(method: &str, params: &Value) -> Vec<u8> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    format!("{request}\n").into_bytes()
}

/// The same through a session.
struct Bench {
    session: Session,
    append: Value,
    claim: Value,
    ack: Value,
}

impl Bench {
    fn start(command: &[OsString]) -> Result<Self, Failed> {
        let space = RunSpace::create(Arc::default())?;
        let mut session = Session::start(&Launch::new(&command[0], &command[1..], 1, space))?;
        session.begin_clause(std::time::Duration::from_secs(600));
        let opened = result(session.call("store/open", &json!({})))?;
        let store = opened["store"].as_str().ok_or("no store")?;
        let append = append_params(store);
        let mut claim = append.clone();
        let members = claim.as_object_mut().ok_or("no object")?;
        members.remove("body");
        members.insert("owner".into(), json!("owner-1"));
        let mut ack = claim.clone();
        claim["ttlMs"] = json!(30_000);
        ack["lease"] = json!("");
        Ok(Self { session, append, claim, ack })
    }

    fn appends(&mut self) -> Result<(), Failed> {
        for _ in 0..TRIPS {
            result(self.session.call("mailbox/append", &self.append))?;
        }
        result(self.session.call("mailbox/drop", &self.append))?;
        Ok(())
    }

    fn boxes(&mut self) -> Result<(), Failed> {
        for _ in 0..TRIPS / 3 {
            result(self.session.call("mailbox/append", &self.append))?;
            let mut claimed = result(self.session.call("mailbox/claim", &self.claim))?;
            self.ack["lease"] = claimed["lease"].take();
            self.ack["upTo"] = claimed["messages"][0]["seq"].take();
            result(self.session.call("mailbox/ack", &self.ack))?;
        }
        Ok(())
    }
}

fn result(answer: Answer) -> Result<Value, Failed> {
    if let Answer::Result(value) = answer {
        return Ok(value);
    }
    Err(answer.shown().to_string().into())
}
