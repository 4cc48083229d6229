//! `storeproof explore`: random scripts against a mailbox, and what they find, small enough to read.

use super::subject::{Found, SEED_MAX, Starting, fresh_seed, interruption};
use super::words;
use super::{Ended, Failure, span};
use crate::adapter::{RunSpace, on_deep_stack};
use crate::exit_code;
use crate::explore::Terms;
use crate::explore::crash::{Crashed, crash_states};
use crate::explore::file::Replay;
use crate::explore::generate::Scope;
use crate::explore::search::{Ask, Bench as _, Finding, Progress, Searched, search};
use crate::explore::shrink::SHRINK_RUNS_MAX;
use crate::explore::stand::StandBench;
use crate::pattern::Pattern;
use indicatif::{ProgressBar, ProgressStyle};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use storeproof_contract::backend::{Capability, KILL_ROUNDS, Manifest};
use storeproof_contract::suite::suites;
use storeproof_reports::text::terminal_text;
use storeproof_reports::write_atomically;

/// How many cases are run, unless told otherwise.
const CASES: u64 = 200;
/// How many cases there are to one operation whose crash states are built.
const CASES_PER_CRASH: u64 = 20;
/// The fewest and the most such operations.
const CRASHES_MIN: u32 = 5;
/// See [`CRASHES_MIN`].
const CRASHES_MAX: u32 = 100;
/// How many of the calls before a crash are told.
const STEPS_TOLD_MAX: usize = 12;
/// How often a plain line is said.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// The suites that are searched one call after the other, in one process.
const SINGLE: [&str; 2] = ["mailbox/core", "mailbox/ownership"];
/// The suite that is searched over several processes, with calls that overlap.
const SEVERAL: &str = "mailbox/cross-process";

const EXAMPLES: &str = "\
Examples:
  storeproof explore sqlite --cases 2000
  storeproof explore -- python3 my_store.py
  storeproof explore --time 5m --seed 7 --save findings -- node my-store.mjs

Exit status: 0 nothing was found; 1 a finding; 2 nothing ran; 3 a case had no verdict, or the run never
came to a place where stores go wrong.";

/// Searches a mailbox for answers that the contract forbids, and saves the smallest script of each.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A bundled store (see `storeproof list stores`)
    #[arg(value_name = "SUBJECT", required_unless_present = "command", conflicts_with = "command")]
    subject: Option<String>,
    /// Where to search (repeatable): mailbox/core and mailbox/ownership one call after the other in one
    /// process, mailbox/cross-process over several processes with calls that overlap [default: all that
    /// the subject declares]
    #[arg(long = "suite", value_name = "P")]
    suites: Vec<String>,
    /// The most cases
    #[arg(long, value_name = "N", default_value_t = CASES, value_parser = clap::value_parser!(u64).range(1..))]
    cases: u64,
    /// How long to search at most, such as 30s or 5m
    #[arg(long, value_name = "D", value_parser = span::parse)]
    time: Option<Duration>,
    /// Decides every case [default: a new one each time, shown in the result]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=SEED_MAX))]
    seed: Option<u64>,
    /// The folder for replay files
    #[arg(long, value_name = "DIR", default_value = "storeproof-findings")]
    save: PathBuf,
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
    on_deep_stack(|| explore(args)).map_err(Failure::not_judged)?
}

fn explore(args: &Args) -> Ended {
    let (single, several) = args.asked()?;
    if args.save.exists() && !args.save.is_dir() {
        let message = format!("--save {} is no folder", args.save.display());
        return Err(Failure::nothing_ran(message));
    }
    let interrupted = interruption()?;
    let space = RunSpace::create(Arc::clone(&interrupted)).map_err(|error| {
        Failure::nothing_ran(format!("no scratch folder can be made (TMPDIR says where): {error}"))
    })?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let (stand, manifest) = match args.starting().stand(seed, &space)? {
        Found::Standing { stand, manifest, .. } => (stand, *manifest),
        Found::Silent(why) => return Err(Failure::not_judged(why)),
    };
    check_declared(&manifest, single, several)?;
    let ask = Ask {
        cases: args.cases,
        seed,
        single,
        several,
        stop_at_first: false,
        shrink_runs: SHRINK_RUNS_MAX,
    };
    let mut bench = StandBench(stand);
    let searched = args.search(&mut bench, &ask, &interrupted);
    let crashed = match (&searched, single && has_files(&manifest)) {
        (Ok(_), true) => Some(crash(&mut bench, &space, &ask)),
        (Ok(_) | Err(_), _) => None,
    };
    bench.0.finish();
    let searched = searched.map_err(|fault| Failure::not_judged(fault.to_string()))?;
    let crashed = crashed.transpose().map_err(|fault| Failure::not_judged(fault.to_string()))?;
    let files = args.save(&searched.findings, seed, &manifest);
    let scope = Scope { terms: Terms::of(&manifest), single, several };
    let crashed = crashed.flatten();
    let (verdict, status) = verdict(&searched, crashed.as_ref(), &scope);
    let mut page = page(&searched, &scope, &manifest, seed);
    if let Some(crashed) = &crashed {
        page += &crash_page(crashed);
    }
    for (number, (finding, file)) in (1..).zip(searched.findings.iter().zip(&files)) {
        page += &args.finding(number, finding, file.as_deref().ok(), searched.cases);
    }
    let _ = write!(page, "\n{verdict}\nexit {status}\n");
    words::result(&page);
    if let Some(Err(why)) = files.into_iter().find(Result::is_err) {
        words::note(&why);
    }
    Ok(status)
}

/// Whether crash states can be built: the bytes are in files, if `store/open` says where.
fn has_files(manifest: &Manifest) -> bool {
    manifest.capabilities.durable
}

/// The crash states of a few operations; none where the subject says no root.
fn crash(
    bench: &mut StandBench,
    space: &RunSpace,
    ask: &Ask,
) -> Result<Option<Crashed>, storeproof_contract::call::Fault> {
    let operations = u32::try_from(ask.cases / CASES_PER_CRASH).unwrap_or(u32::MAX);
    let operations = operations.clamp(CRASHES_MIN, CRASHES_MAX);
    crash_states(bench.fresh()?, space.folder(), operations, ask.seed)
}

fn crash_page(crashed: &Crashed) -> String {
    let mut out = format!(
        "crash states: {} of {} operations, each opened again and judged",
        crashed.states, crashed.operations
    );
    for (why, count) in &crashed.passed_over {
        let _ = write!(out, "; {count} operations passed over ({why})");
    }
    out.push('\n');
    for found in &crashed.findings {
        let violation = &found.violation;
        let _ = writeln!(
            out,
            "\ncrash in {}: {} ({})",
            found.operation, violation.clause, violation.kind
        );
        let _ = writeln!(out, "  state: {}", terminal_text(&found.state));
        let _ = writeln!(out, "  promised: {}", terminal_text(&violation.promised));
        let _ = writeln!(out, "  seen: {}", terminal_text(&violation.seen));
        let told = found.steps.len().saturating_sub(STEPS_TOLD_MAX);
        if told > 0 {
            let _ = writeln!(out, "  … {told} calls before");
        }
        for line in &found.steps[told..] {
            let _ = writeln!(out, "  {}", terminal_text(line));
        }
    }
    out
}

/// What a subject must declare for what was asked.
fn check_declared(manifest: &Manifest, single: bool, several: bool) -> Result<(), Failure> {
    let caps = &manifest.capabilities;
    if !caps.mailbox || caps.is_queue() {
        let what = if caps.mailbox { "mailbox and queue" } else { "no mailbox" };
        return Err(Failure::nothing_ran(format!(
            "the subject declares {what}; explore searches mailboxes"
        )));
    }
    if several && !single && !caps.cross_process_safe {
        return Err(Failure::nothing_ran(format!(
            "{SEVERAL} was asked for, and the subject does not declare {}",
            Capability::CrossProcessSafe.word()
        )));
    }
    Ok(())
}

impl Args {
    fn starting(&self) -> Starting<'_> {
        Starting {
            subject: self.subject.as_deref(),
            command: &self.command,
            timeout: self.timeout,
            startup_timeout: self.startup_timeout,
            kill_rounds: KILL_ROUNDS,
            url: self.url.as_deref(),
        }
    }

    /// Whether one process alone is searched, and whether several are.
    fn asked(&self) -> Result<(bool, bool), Failure> {
        if self.suites.is_empty() {
            return Ok((true, true));
        }
        let (mut single, mut several) = (false, false);
        for text in &self.suites {
            let pattern = Pattern::new(text);
            if !suites().iter().any(|suite| pattern.takes(suite.id)) {
                return Err(Failure::nothing_ran(format!("--suite {text:?} takes no suite")));
            }
            let (one, more) = (SINGLE.iter().any(|id| pattern.takes(id)), pattern.takes(SEVERAL));
            if !one && !more {
                return Err(Failure::nothing_ran(format!(
                    "explore searches {}, {} and {SEVERAL}, not what --suite {text:?} takes",
                    SINGLE[0], SINGLE[1]
                )));
            }
            (single, several) = (single || one, several || more);
        }
        Ok((single, several))
    }

    fn search(
        &self,
        bench: &mut StandBench,
        ask: &Ask,
        interrupted: &AtomicBool,
    ) -> Result<Searched, storeproof_contract::call::Fault> {
        let started = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(ask.cases);
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let mut said = Instant::now();
        let mut goes_on = || {
            let in_time = self.time.is_none_or(|time| started.elapsed() < time);
            in_time && !interrupted.load(Ordering::Relaxed)
        };
        let searched = search(bench, ask, &mut goes_on, &mut |progress| match (progress, &bar) {
            (Progress::Cases(done), Some(bar)) => {
                bar.set_position(done);
                bar.set_message("");
            }
            (Progress::Shrinking(found), Some(bar)) => {
                bar.set_message(format!("makes a finding small: {}", found.clause));
            }
            (Progress::Cases(done), None) if said.elapsed() >= LINE_EVERY => {
                said = Instant::now();
                words::note(&format!("{done} of {} cases done", ask.cases));
            }
            (Progress::Cases(_), None) => {}
            (Progress::Shrinking(found), None) => {
                words::note(&format!("makes a finding small: {}", found.clause));
            }
        });
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        searched
    }

    /// Writes a replay file for each finding.
    fn save(
        &self,
        findings: &[Finding],
        seed: u64,
        manifest: &Manifest,
    ) -> Vec<Result<PathBuf, String>> {
        let write = |finding: &Finding| {
            let subject = &manifest.subject;
            let replay = Replay::of(finding, seed, &subject.name, &subject.version);
            let text = replay.to_text().map_err(|error| error.to_string())?;
            let path = self.save.join(replay.file_name().map_err(|error| error.to_string())?);
            std::fs::create_dir_all(&self.save)
                .map_err(|error| format!("{}: {error}", self.save.display()))?;
            write_atomically(&path, text.as_bytes()).map_err(|error| error.to_string())?;
            Ok(path)
        };
        findings.iter().map(write).collect()
    }

    fn finding(&self, number: u32, found: &Finding, file: Option<&Path>, cases: u64) -> String {
        let violation = &found.violation;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "\nfinding {number}: {} ({}), in {} of {cases} cases, first in case {}",
            violation.clause, violation.kind, found.cases, found.case
        );
        let _ = writeln!(out, "  promised: {}", terminal_text(&violation.promised));
        let _ = writeln!(out, "  seen: {}", terminal_text(&violation.seen));
        for line in &found.told {
            let _ = writeln!(out, "  {}", terminal_text(line));
        }
        if let Some(drawing) = &violation.drawing {
            let _ = writeln!(out, "  the calls that cannot stand together:");
            for line in drawing.lines() {
                let _ = writeln!(out, "    {}", terminal_text(line));
            }
        }
        if let Some(rate) = found.rate {
            let _ = writeln!(out, "  shown in {} of {} runs", rate.hits, rate.runs);
        }
        match file {
            Some(file) => {
                let _ = writeln!(out, "  replay: {}", self.replay(file));
            }
            None => {
                let _ = writeln!(out, "  replay: the file could not be written");
            }
        }
        out
    }

    /// The command line that runs a file again.
    fn replay(&self, file: &Path) -> String {
        let file = file.to_string_lossy();
        let command: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let file = words::shell_words([&*file]);
        match &self.subject {
            Some(name) => format!("storeproof replay {file} {}", words::shell_words([&**name])),
            None => {
                let command = words::shell_words(command.iter().map(AsRef::as_ref));
                format!("storeproof replay {file} -- {command}")
            }
        }
    }
}

fn page(searched: &Searched, scope: &Scope, manifest: &Manifest, seed: u64) -> String {
    let (reached, subject) = (&searched.reached, &manifest.subject);
    let out = format!(
        "explored {} {}: {} cases, {} calls, seed {seed}\nreached:",
        terminal_text(&subject.name),
        terminal_text(&subject.version),
        searched.cases,
        reached.calls
    );
    let places = reached.places(&scope.terms, scope.overlaps());
    let places: Vec<String> = places.iter().map(|(place, n)| format!(" {place} {n}")).collect();
    out + &places.join(",") + "\n"
}

/// The last word, and the exit status.
fn verdict(searched: &Searched, crashed: Option<&Crashed>, scope: &Scope) -> (String, u8) {
    if searched.cases == 0 {
        return ("nothing ran".to_owned(), exit_code::NOTHING_RAN);
    }
    let findings = searched.findings.len() + crashed.map_or(0, |crashed| crashed.findings.len());
    if findings > 0 {
        let s = if findings == 1 { "" } else { "s" };
        return (format!("{findings} finding{s}"), exit_code::FINDING);
    }
    if let (1.., Some(fault)) = &searched.no_verdict {
        let words = format!(
            "inconclusive: {} cases had no verdict; the last: {}",
            searched.no_verdict.0,
            terminal_text(&fault.to_string())
        );
        return (words, exit_code::NOT_JUDGED);
    }
    let missing = searched.reached.missing(&scope.terms, scope.overlaps());
    if !missing.is_empty() {
        let words = format!("inconclusive: the run never came to: {}", missing.join(", "));
        return (words, exit_code::NOT_JUDGED);
    }
    ("nothing was found".to_owned(), exit_code::OK)
}
