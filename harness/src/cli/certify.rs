//! `storeproof certify`: judge a subject and write the reports.

use super::subject::{Found, SEED_MAX, Starting, fresh_seed, interruption};
use super::{Ended, Failure, span, store, words};
use crate::adapter::RunSpace;
use crate::event::Event;
use crate::expect::Expectations;
use crate::pattern::Pattern;
use crate::plan::{Ask, Known, Plan, Shard};
use crate::record::{Frame, Judged, Replay, record};
use crate::run::{BoxedStand, run as run_plan};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use storeproof_contract::KIT;
use storeproof_contract::backend::KILL_ROUNDS;
use storeproof_reports::record::{Record, Run};
use storeproof_reports::{html, json, junit, terminal, write_atomically};

mod progress;

/// What the calls of one clause may take together at least, in seconds.
const CLAUSE_S_MIN: u64 = 600;
/// The same, as a multiple of what one call may take.
const CLAUSE_CALLS: u32 = 30;
/// The most workers.
const JOBS_MAX: usize = 64;
/// The most kills in one clause.
const KILL_ROUNDS_MAX: i64 = 100_000;
/// What the calls of one clause may take for each kill beyond the usual ones, in seconds.
const KILL_ROUND_S: u64 = 10;

const EXAMPLES: &str = "\
Examples:
  storeproof certify sqlite
  storeproof certify --junit report.xml -- python3 my_store.py
  storeproof certify --suite mailbox/core --seed 7 -- node my-store.mjs
  storeproof certify --expect known.toml -- ./my-store --in /tmp";

/// Judges a subject by every clause of the suites that it declares.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A bundled store (see `storeproof list stores`)
    #[arg(value_name = "SUBJECT", required_unless_present = "command", conflicts_with = "command")]
    subject: Option<String>,
    /// The server of a bundled store that has one [default: STOREPROOF_POSTGRES_URL or
    /// STOREPROOF_REDIS_URL]
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// Only suites that this pattern takes (repeatable; `*` is one component, `**` any number)
    #[arg(long = "suite", value_name = "P")]
    suites: Vec<String>,
    /// Only clauses that this pattern takes (repeatable)
    #[arg(long = "clause", value_name = "P")]
    clauses: Vec<String>,
    /// Decides everything random in the run [default: a new one each time, shown in every report]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=SEED_MAX))]
    seed: Option<u64>,
    /// How many subjects are judged side by side, each a child process of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = jobs)]
    jobs: usize,
    /// How long each call may take, such as 2s or 500ms
    #[arg(long, value_name = "D", default_value = "10s", value_parser = span::parse)]
    timeout: Duration,
    /// How long start and handshake of a child may take
    #[arg(long, value_name = "D", default_value = "30s", value_parser = span::parse)]
    startup_timeout: Duration,
    /// How often a process is killed in each clause about kills
    #[arg(long, value_name = "N", default_value_t = KILL_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=KILL_ROUNDS_MAX))]
    kill_rounds: u32,
    /// The frozen set of clauses to judge by
    #[arg(long, value_name = "V", default_value = KIT)]
    kit: String,
    /// Judge only the Kth of N shares of the cases, such as 1/3
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Known failures, as TOML tables [[expect]] with clause and reason
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a JSON report
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the last line only
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
    /// Print every row with all its steps
    #[arg(long, short)]
    verbose: bool,
    /// The command that starts a subject which speaks the protocol
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=JOBS_MAX).contains(&n) => Ok(n),
        Ok(_) | Err(_) => Err(format!("a number from 1 to {JOBS_MAX}")),
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((k, n)) if 1 <= k && k <= n => Ok(Shard { k, n }),
        Some(_) | None => Err("write K/N with 1 <= K <= N, such as 1/3".to_owned()),
    }
}

/// How a report is drawn from a record.
type Draw = fn(&Record) -> String;

pub(super) fn run(args: &Args) -> Ended {
    let ask = Ask {
        suites: args.suites.iter().map(|p| Pattern::new(p)).collect(),
        clauses: args.clauses.iter().map(|p| Pattern::new(p)).collect(),
        shard: args.shard,
    };
    ask.check().map_err(Failure::nothing_ran)?;
    let expected = match &args.expect {
        None => Expectations::default(),
        Some(path) => Expectations::read(path).map_err(Failure::nothing_ran)?,
    };
    check_kit(&args.kit)?;
    args.reports().try_for_each(|(_, path)| check_folder(path))?;

    let interrupted = interruption()?;
    let space = RunSpace::create(Arc::clone(&interrupted)).map_err(|error| {
        Failure::nothing_ran(format!("no scratch folder can be made (TMPDIR says where): {error}"))
    })?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let started = Instant::now();
    let run = Run {
        seed,
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        duration_ms: 0,
        shard: args.shard.map(|shard| shard.to_string()),
    };
    let found = args.starting().stand(seed, &space)?;
    let (stand, known, manifest) = match found {
        Found::Standing { stand, known, manifest } => (Some(stand), known, Some(*manifest)),
        Found::Silent(why) => (None, Known::Nothing(why), None),
    };
    let mut plan = Plan::new(&ask, &known);
    let fallback_name = args.starting().base_name();
    let mut frame = Frame { manifest, fallback_name, run, replay: args.replay(seed), expected };

    let refusal = plan.refusal().filter(|_| stand.is_some());
    if let Some(refusal) = &refusal {
        plan.call_off(refusal);
    }
    let mut judged = Judged::new();
    if let (Some(stand), None) = (stand, &refusal) {
        let stands = args.more_stands(stand, plan.to_judge(), seed, &space);
        judged = args.judge(&plan, stands, seed, &interrupted)?;
    }
    frame.run.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let record = record(&plan, judged, &frame);
    let written = args.write(&record);
    match refusal {
        // Found before the run: nothing ran, and the reports say so with an error in each asked row.
        Some(refusal) => Err(Failure::nothing_ran(refusal)),
        None => {
            args.print(&record, written.is_ok());
            written?;
            Ok(record.summary.exit_status())
        }
    }
}

impl Args {
    fn starting(&self) -> Starting<'_> {
        Starting {
            subject: self.subject.as_deref(),
            command: &self.command,
            timeout: self.timeout,
            startup_timeout: self.startup_timeout,
            kill_rounds: self.kill_rounds,
            url: self.url.as_deref(),
        }
    }

    fn reports(&self) -> impl Iterator<Item = (Draw, &Path)> {
        let all: [(Draw, &Option<PathBuf>); 3] =
            [(junit::write, &self.junit), (json::to_string, &self.json), (html::write, &self.html)];
        all.into_iter().filter_map(|(write, path)| Some((write, path.as_deref()?)))
    }

    /// The first subject and as many more as there are jobs and cases for.
    fn more_stands(
        &self,
        first: BoxedStand,
        cases: usize,
        seed: u64,
        space: &Arc<RunSpace>,
    ) -> Vec<BoxedStand> {
        let mut stands = vec![first];
        while stands.len() < self.jobs.min(cases) {
            match self.starting().stand(seed, space) {
                Ok(Found::Standing { stand, .. }) => stands.push(stand),
                Ok(Found::Silent(why)) => {
                    words::note(&format!("goes on with {} subjects: {why}", stands.len()));
                    break;
                }
                Err(failure) => {
                    words::note(&format!(
                        "goes on with {} subjects: {}",
                        stands.len(),
                        failure.message
                    ));
                    break;
                }
            }
        }
        stands
    }

    fn judge(
        &self,
        plan: &Plan,
        stands: Vec<BoxedStand>,
        seed: u64,
        interrupted: &AtomicBool,
    ) -> Result<Judged, Failure> {
        let more_kills = u64::from(self.kill_rounds.saturating_sub(KILL_ROUNDS));
        let budget = Duration::from_secs(CLAUSE_S_MIN + more_kills * KILL_ROUND_S)
            .max(self.timeout.saturating_mul(CLAUSE_CALLS));
        let mut progress = progress::Progress::new(plan, self.quiet);
        let mut judged = Judged::new();
        run_plan(plan, stands, seed, budget, interrupted, |event| {
            progress.watch(&event);
            match event {
                Event::Began { .. } => {}
                Event::Ended { case, judgement, ms } => {
                    judged.insert(case, (*judgement, ms));
                }
            }
        })
        .map_err(|error| Failure::not_judged(format!("no worker can be started: {error}")))?;
        progress.end();
        Ok(judged)
    }

    /// The command line that runs one case again.
    fn replay(&self, seed: u64) -> Replay {
        let mut options = vec!["--seed".to_owned(), seed.to_string()];
        for (option, value, default) in
            [("--timeout", self.timeout, "10s"), ("--startup-timeout", self.startup_timeout, "30s")]
        {
            if span::parse(default) != Ok(value) {
                options.extend([option.to_owned(), format!("{}ms", value.as_millis())]);
            }
        }
        if self.kill_rounds != KILL_ROUNDS {
            options.extend(["--kill-rounds".to_owned(), self.kill_rounds.to_string()]);
        }
        let options = words::shell_words(options.iter().map(String::as_str));
        match &self.subject {
            Some(name) => Replay {
                before: format!(
                    "storeproof certify {}{}",
                    words::shell_words([name.as_str()]),
                    store::replayed_url(name, self.url.as_deref())
                ),
                after: format!(" {options}"),
            },
            None => {
                let command: Vec<_> =
                    self.command.iter().map(|word| word.to_string_lossy()).collect();
                let command = words::shell_words(command.iter().map(AsRef::as_ref));
                Replay {
                    before: "storeproof certify".to_owned(),
                    after: format!(" {options} -- {command}"),
                }
            }
        }
    }

    fn write(&self, record: &Record) -> Result<(), Failure> {
        let mut first = Ok(());
        for (write, path) in self.reports() {
            if let Err(error) = write_atomically(path, write(record).as_bytes()) {
                words::note(&error.to_string());
                first =
                    first.and(Err(Failure::not_judged("a report could not be written, see above")));
            }
        }
        first
    }

    fn print(&self, record: &Record, written: bool) {
        let mut rendered = terminal::render(record, words::style(self.verbose));
        if !written && let Some((all_but_status, _)) = rendered.trim_end().rsplit_once('\n') {
            // The last line tells the exit status, which is now another one.
            rendered = format!("{all_but_status}\nexit 3: a report could not be written\n");
        }
        if self.quiet {
            let last = rendered.trim_end().lines().last().unwrap_or_default();
            words::result(&format!("{last}\n"));
        } else {
            words::result(&rendered);
        }
    }
}

fn check_kit(kit: &str) -> Result<(), Failure> {
    if kit == KIT {
        return Ok(());
    }
    Err(Failure::nothing_ran(format!("this build judges by kit {KIT}; it has no kit {kit:?}")))
}

/// Finds out before the run, not after it, that a report has nowhere to go.
fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() && !path.is_dir() {
        return Ok(());
    }
    let what = if path.is_dir() { "is a folder" } else { "lies in a folder that does not exist" };
    Err(Failure::nothing_ran(format!("the report {} {what}", path.display())))
}
