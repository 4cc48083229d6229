//! `storeproof replay`: a saved script once more, on one subject or on two side by side.

use super::subject::{Found, Starting, fresh_seed, interruption};
use super::words;
use super::{Ended, Failure, span};
use crate::adapter::{RunSpace, on_deep_stack};
use crate::exit_code;
use crate::explore::against::parting;
use crate::explore::file::{FILE_BYTES_MAX, Mode, Replay};
use crate::explore::search::Bench as _;
use crate::explore::stand::StandBench;
use crate::explore::{End, Run, run as run_script, tell};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use storeproof_contract::backend::KILL_ROUNDS;
use storeproof_contract::call::{Fault, FaultKind};
use storeproof_reports::text::terminal_text;

/// How often a script with overlapping calls is run until it shows its finding.
const RACE_RUNS_MAX: u64 = 50;
/// How often any other is run where nothing is seen: the wall clock may have been too slow.
const RUNS_MAX: u64 = 3;

const EXAMPLES: &str = "\
Examples:
  storeproof replay finding.json -- python3 my_store.py
  storeproof replay finding.json sqlite
  storeproof replay finding.json --against memory -- python3 my_store.py

Exit status: 0 the violation is not reproduced, and the subjects agree; 1 it is, or they part; 2 nothing
ran; 3 there was no verdict.";

/// Runs a replay file on a subject, and says where two subjects part.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The replay file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A bundled store (see `storeproof list stores`)
    #[arg(value_name = "SUBJECT", required_unless_present = "command", conflicts_with = "command")]
    subject: Option<String>,
    /// A bundled store to run it on too, answer by answer
    #[arg(long, value_name = "SUBJECT")]
    against: Option<String>,
    /// Where the server of a bundled store is [default: what its environment variable says]
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// How long each call may take
    #[arg(long, value_name = "D", default_value = "10s", value_parser = span::parse)]
    timeout: Duration,
    /// How long start and handshake of a child may take
    #[arg(long, value_name = "D", default_value = "30s", value_parser = span::parse)]
    startup_timeout: Duration,
    /// The command that starts a subject which speaks the protocol
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> Ended {
    on_deep_stack(|| replay(args)).map_err(Failure::not_judged)?
}

fn replay(args: &Args) -> Ended {
    let file = read(args)?;
    let interrupted = interruption()?;
    let space = RunSpace::create(Arc::clone(&interrupted)).map_err(|error| {
        Failure::nothing_ran(format!("no scratch folder can be made (TMPDIR says where): {error}"))
    })?;
    let ours = carry_out(&file, &args.starting(args.subject.as_deref()), &space)?;
    let mut page = said(&file, &ours);
    let mut status = ours.status;
    if let Some(name) = &args.against {
        let starting = Starting { command: &[], ..args.starting(Some(name)) };
        let theirs = carry_out(&file, &starting, &space)?;
        let (words, parted) = compared(&file, &ours, &theirs);
        page += &words;
        status = match (status, parted) {
            (exit_code::FINDING, _) | (_, Some(true)) => exit_code::FINDING,
            (exit_code::OK, Some(false)) => theirs.status,
            (_, None | Some(false)) => exit_code::NOT_JUDGED,
        };
    }
    let _ = writeln!(page, "exit {status}");
    words::result(&page);
    Ok(status)
}

impl Args {
    fn starting<'a>(&'a self, subject: Option<&'a str>) -> Starting<'a> {
        Starting {
            subject,
            command: &self.command,
            timeout: self.timeout,
            startup_timeout: self.startup_timeout,
            kill_rounds: KILL_ROUNDS,
            url: self.url.as_deref(),
        }
    }
}

fn read(args: &Args) -> Result<Replay, Failure> {
    let shown = args.file.display();
    let unreadable = |error: std::io::Error| Failure::nothing_ran(format!("{shown}: {error}"));
    let size = std::fs::metadata(&args.file).map_err(unreadable)?.len();
    if size > FILE_BYTES_MAX {
        let message =
            format!("{shown}: {size} bytes are more than the {FILE_BYTES_MAX} that are read");
        return Err(Failure::nothing_ran(message));
    }
    let text = std::fs::read_to_string(&args.file).map_err(unreadable)?;
    Replay::read(&text).map_err(|why| Failure::nothing_ran(format!("{shown}: {why}")))
}

/// What a subject made of the file.
struct Made {
    name: String,
    run: Run,
    verdict: String,
    status: u8,
    runs: u64,
}

fn carry_out(
    file: &Replay,
    starting: &Starting<'_>,
    space: &Arc<RunSpace>,
) -> Result<Made, Failure> {
    let seed = fresh_seed();
    let (stand, manifest) = match starting.stand(seed, space)? {
        Found::Standing { stand, manifest, .. } => (stand, *manifest),
        Found::Silent(why) => return Err(Failure::not_judged(why)),
    };
    if !manifest.capabilities.mailbox {
        return Err(Failure::nothing_ran("the subject declares no mailbox"));
    }
    let most = if file.mode == Mode::Concurrent { RACE_RUNS_MAX } else { RUNS_MAX };
    let mut bench = StandBench(stand);
    let mut made = None;
    let mut runs = 0;
    // A subject that cannot run it at all will not the next time either.
    let goes_on = |made: &Option<Run>| match made.as_ref().map(|run| &run.end) {
        None | Some(End::Allowed) => true,
        Some(End::NoVerdict(fault)) => fault.kind == FaultKind::Undecided,
        Some(End::Forbidden(_)) => false,
    };
    while runs < most && goes_on(&made) {
        runs += 1;
        let backend =
            bench.fresh().map_err(|fault: Fault| Failure::not_judged(fault.to_string()))?;
        made = Some(run_script(&file.steps, backend, seed ^ runs));
    }
    bench.0.finish();
    let run = made.ok_or_else(|| Failure::not_judged("it was never run"))?;
    let (verdict, status) = verdict(file, &run, runs);
    Ok(Made { name: manifest.subject.name, run, verdict, status, runs })
}

/// The verdict on one subject, and the exit status that it asks for.
fn verdict(file: &Replay, run: &Run, runs: u64) -> (String, u8) {
    match &run.end {
        End::Forbidden(found) if found.clause == file.clause && found.kind == file.kind => {
            (format!("reproduced: {}", found.clause), exit_code::FINDING)
        }
        End::Forbidden(found) => (
            format!("another violation than the file's {}: {}", file.clause, found.clause),
            exit_code::FINDING,
        ),
        End::NoVerdict(fault) => (format!("no verdict: {fault}"), exit_code::NOT_JUDGED),
        // What could not be asked may be what shows it.
        End::Allowed if !run.left_out.is_empty() => {
            let words = format!("no verdict: {} steps were left out", run.left_out.len());
            (words, exit_code::NOT_JUDGED)
        }
        End::Allowed => (format!("not reproduced in {runs} runs: {}", file.clause), exit_code::OK),
    }
}

fn said(file: &Replay, made: &Made) -> String {
    let found = &file.found_on;
    let mut out = format!(
        "{} ({}), found on {} {}\n  promised: {}\n  seen then: {}\non {}, run {}:\n",
        terminal_text(&file.clause),
        terminal_text(&file.kind),
        terminal_text(&found.name),
        terminal_text(&found.version),
        terminal_text(&file.expected),
        terminal_text(&file.seen),
        terminal_text(&made.name),
        made.runs
    );
    for line in tell::steps(&file.steps, &made.run) {
        let _ = writeln!(out, "  {}", terminal_text(&line));
    }
    if let End::Forbidden(found) = &made.run.end {
        let _ = writeln!(out, "  promised: {}", terminal_text(&found.promised));
        let _ = writeln!(out, "  seen now: {}", terminal_text(&found.seen));
        for line in found.drawing.iter().flat_map(|drawing| drawing.lines()) {
            let _ = writeln!(out, "    {}", terminal_text(line));
        }
    }
    let _ = writeln!(out, "{}", terminal_text(&made.verdict));
    out
}

/// Where the two part, and whether they do; nobody knows where calls overlapped.
fn compared(file: &Replay, ours: &Made, theirs: &Made) -> (String, Option<bool>) {
    let mut out = format!("against {}: {}\n", theirs.name, terminal_text(&theirs.verdict));
    if file.mode == Mode::Concurrent {
        out += "answers of overlapping calls are not compared one by one\n";
        let judged = ours.status != exit_code::NOT_JUDGED && theirs.status != exit_code::NOT_JUDGED;
        return (out, judged.then_some(ours.status != theirs.status));
    }
    if let Some(part) = parting(&file.steps, &ours.run, &theirs.run) {
        let _ = writeln!(
            out,
            "they part at step {}:\n  {}: {}\n  {}: {}",
            part.step,
            terminal_text(&ours.name),
            terminal_text(&part.first),
            terminal_text(&theirs.name),
            terminal_text(&part.second)
        );
        return (out, Some(true));
    }
    out += "they agree\n";
    (out, Some(false))
}
