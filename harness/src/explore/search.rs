//! The search: one case after another, each finding made small once, and what the run came to.

use super::generate::{self, Scope};
use super::judge::Violation;
use super::reached::Reached;
use super::run::{End, Run, run};
use super::script::Script;
use super::shrink::{self, Rate};
use super::terms::Terms;
use storeproof_contract::backend::Backend;
use storeproof_contract::call::{Fault, FaultKind};

/// The most findings of one run, each another clause or kind of answer.
pub const FINDINGS_MAX: usize = 20;
/// After so many cases without a verdict in a row the search gives up.
pub const FAULTS_MAX: u32 = 5;

/// Whoever lends a backend for each script.
pub trait Bench {
    /// A backend that has nothing open, with a subject that runs.
    ///
    /// # Errors
    /// A fault where there is no subject.
    fn fresh(&mut self) -> Result<&mut dyn Backend, Fault>;
}

/// What to explore.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The most cases.
    pub cases: u64,
    /// Decides every case.
    pub seed: u64,
    /// See [`Scope::single`].
    pub single: bool,
    /// See [`Scope::several`].
    pub several: bool,
    /// Whether to stop at the first finding.
    pub stop_at_first: bool,
    /// How many runs a finding may take to be made small.
    pub shrink_runs: u32,
}

/// A finding, as small as it got.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The script that shows it.
    pub script: Script,
    /// What it breaks.
    pub violation: Violation,
    /// The case that found it, from 1.
    pub case: u64,
    /// How many cases found it.
    pub cases: u64,
    /// How often the script shows it, where calls overlap.
    pub rate: Option<Rate>,
    /// The script's steps with the answers that it was given.
    pub told: Vec<String>,
}

/// What a search came to.
#[derive(Clone, Debug, Default)]
pub struct Searched {
    /// How many cases were run.
    pub cases: u64,
    /// How many of them had no verdict, and the last reason.
    pub no_verdict: (u64, Option<Fault>),
    /// The findings.
    pub findings: Vec<Finding>,
    /// What was reached.
    pub reached: Reached,
}

/// Told to whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// So many cases are done.
    Cases(u64),
    /// A finding is being made small.
    Shrinking(&'a Violation),
}

/// Explores until the cases or the time are over: `goes_on` is asked before each case.
///
/// # Errors
/// A fault where no subject can be had.
pub fn search(
    bench: &mut dyn Bench,
    ask: &Ask,
    goes_on: &mut dyn FnMut() -> bool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<Searched, Fault> {
    let terms = Terms::of(bench.fresh()?.manifest());
    let scope = Scope { terms, single: ask.single, several: ask.several };
    let mut searched = Searched::default();
    let mut faults = 0;
    while searched.cases < ask.cases && goes_on() {
        searched.cases += 1;
        let case = searched.cases;
        let seed = case_seed(ask.seed, case);
        let script = generate::script(&mut fastrand::Rng::with_seed(seed), &scope);
        let done = run(&script, bench.fresh()?, seed);
        searched.reached.add(&done.reached);
        match &done.end {
            End::Allowed => faults = 0,
            End::NoVerdict(fault) => {
                searched.no_verdict.0 += 1;
                searched.no_verdict.1 = Some(fault.clone());
                faults += 1;
                if fault.kind == FaultKind::Interrupted || faults >= FAULTS_MAX {
                    break;
                }
            }
            End::Forbidden(_) => {
                faults = 0;
                let seen = simplest(bench, Seen { script, done, seed, case });
                keep(bench, ask, &mut searched.findings, seen, watch);
                if ask.stop_at_first || searched.findings.len() >= FINDINGS_MAX {
                    break;
                }
            }
        }
        watch(Progress::Cases(searched.cases));
    }
    Ok(searched)
}

/// A case that was seen to break the contract.
struct Seen {
    script: Script,
    done: Run,
    seed: u64,
    case: u64,
}

/// The case without its races, where it breaks something without them too: what shows one call after
/// the other is easier to read, and shows every time.
fn simplest(bench: &mut dyn Bench, seen: Seen) -> Seen {
    let Some(script) = without_overlaps(&seen.script, &seen.done) else { return seen };
    let Ok(backend) = bench.fresh() else { return seen };
    let done = run(&script, backend, seen.seed);
    match done.end {
        End::Forbidden(_) => Seen { script, done, ..seen },
        End::Allowed | End::NoVerdict(_) => seen,
    }
}

/// Counts a finding that is known, and makes a new one small.
fn keep(
    bench: &mut dyn Bench,
    ask: &Ask,
    findings: &mut Vec<Finding>,
    seen: Seen,
    watch: &mut dyn FnMut(Progress<'_>),
) {
    let Seen { script, done, seed, case } = seen;
    let End::Forbidden(violation) = done.end else { return };
    if let Some(known) = findings.iter_mut().find(|known| known.violation.is_same(&violation)) {
        known.cases += 1;
        return;
    }
    watch(Progress::Shrinking(&violation));
    let last = done.told.last().map(|told| told.step);
    let small = shrink::shrink(bench, &script, &violation, last, seed, ask.shrink_runs);
    let shrink::Small { script, violation, rate, told } = small;
    findings.push(Finding { script, violation, case, cases: 1, rate, told });
}

/// The same steps one after the other, in the order in which the calls were sent.
fn without_overlaps(script: &Script, done: &Run) -> Option<Script> {
    if !script.is_concurrent() {
        return None;
    }
    let sent = |id| done.told.iter().position(|told| told.step == id);
    let mut flat = script.clone();
    let mut at = 0;
    while at < flat.steps.len() {
        let racing = flat.steps[at..].iter().take_while(|step| step.lane > 0).count();
        flat.steps[at..at + racing].sort_by_key(|step| sent(step.id).unwrap_or(usize::MAX));
        at += racing.max(1);
    }
    flat.steps.iter_mut().for_each(|step| step.lane = 0);
    Some(flat)
}

/// Each case draws from a seed of its own, so that it is the same whatever came before it.
#[must_use]
pub fn case_seed(seed: u64, case: u64) -> u64 {
    let mixed =
        (seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}
