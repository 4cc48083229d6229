//! Makes a finding small: fewer steps first, then simpler ones, as long as the same clause is broken by
//! the same kind of answer.
//!
//! Where calls overlap, a smaller script counts only if it shows the finding in [`RACE_HITS`] of at most
//! [`RACE_RUNS`] runs, or as often as the script that was found, where that shows it less often.

use super::judge::Violation;
use super::run::{End, Run, run};
use super::script::{Act, Script, SeqRef, Span, StepId, Until};
use super::search::Bench;
use super::tell;
use serde::{Deserialize, Serialize};

/// How many runs a finding may take to be made small, unless told otherwise.
pub const SHRINK_RUNS_MAX: u32 = 3_000;
/// How often a race must show the finding…
pub const RACE_HITS: u32 = 3;
/// …in so many runs.
pub const RACE_RUNS: u32 = 10;

/// How often a script with overlapping calls shows its finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// So often.
    pub hits: u32,
    /// In so many runs.
    pub runs: u32,
}

/// A finding made small.
#[derive(Clone, Debug)]
pub struct Small {
    /// The script, its steps numbered from 1.
    pub script: Script,
    /// What it breaks.
    pub violation: Violation,
    /// See [`Rate`].
    pub rate: Option<Rate>,
    /// Its steps with the answers that they were given.
    pub told: Vec<String>,
}

/// Makes `script` small, which was seen to break `violation` at the step `last`.
pub fn shrink(
    bench: &mut dyn Bench,
    script: &Script,
    violation: &Violation,
    last: Option<StepId>,
    seed: u64,
    runs: u32,
) -> Small {
    let mut shrinker = Shrinker {
        bench,
        seed,
        left: runs,
        race_hits: RACE_HITS,
        script: script.clone(),
        violation: violation.clone(),
    };
    // Steps behind the answer that was forbidden were never carried out.
    if !script.is_concurrent()
        && let Some(at) = script.steps.iter().position(|step| Some(step.id) == last)
    {
        shrinker.script.steps.truncate(at + 1);
    }
    if script.is_concurrent() {
        shrinker.race_hits = shrinker.hits(script).min(RACE_HITS);
    }
    if shrinker.race_hits > 0 {
        loop {
            let before = shrinker.script.clone();
            shrinker.fewer_steps();
            shrinker.simpler_steps();
            shrinker.fewer_names();
            if shrinker.script == before || shrinker.left == 0 {
                break;
            }
        }
    }
    shrinker.finished()
}

struct Shrinker<'b> {
    bench: &'b mut dyn Bench,
    seed: u64,
    /// Runs that may still be made.
    left: u32,
    /// How often a race must show the finding; 0 where the one that was found did not show it again.
    race_hits: u32,
    script: Script,
    violation: Violation,
}

impl Shrinker<'_> {
    fn run_once(&mut self, script: &Script, seed: u64) -> Option<(Violation, Run)> {
        let backend = self.bench.fresh().ok()?;
        let done = run(script, backend, seed);
        match &done.end {
            End::Forbidden(seen) if seen.is_same(&self.violation) => {
                Some((Violation::clone(seen), done))
            }
            End::Forbidden(_) | End::Allowed | End::NoVerdict(_) => None,
        }
    }

    /// How often a race shows the finding in [`RACE_RUNS`] runs.
    fn hits(&mut self, script: &Script) -> u32 {
        let runs = RACE_RUNS.min(self.left);
        self.left -= runs;
        let seed = self.seed;
        let shown =
            (0..runs).filter(|round| self.run_once(script, seed ^ u64::from(*round)).is_some());
        u32::try_from(shown.count()).unwrap_or(u32::MAX)
    }

    /// What `script` was seen to break, if it is the same finding and shows often enough.
    fn shows(&mut self, script: &Script) -> Option<Violation> {
        let (hits_wanted, runs) =
            if script.is_concurrent() { (self.race_hits, RACE_RUNS) } else { (1, 1) };
        let (mut hits, mut seen) = (0, None);
        for round in 0..runs {
            if self.left == 0 || hits + (runs - round) < hits_wanted {
                return None;
            }
            self.left -= 1;
            if let Some((violation, _)) = self.run_once(script, self.seed ^ u64::from(round)) {
                (hits, seen) = (hits + 1, Some(violation));
            }
            if hits == hits_wanted {
                return seen;
            }
        }
        None
    }

    /// Takes `candidate` if it shows the finding too.
    fn take(&mut self, candidate: Script) -> bool {
        if candidate == self.script || candidate.steps.is_empty() {
            return false;
        }
        let Some(violation) = self.shows(&candidate) else { return false };
        (self.script, self.violation) = (candidate, violation);
        true
    }

    /// Takes out stretches of steps, from the back: halves, quarters, … single ones.
    fn fewer_steps(&mut self) {
        let mut size = self.script.steps.len().div_ceil(2);
        while size > 0 {
            let mut end = self.script.steps.len();
            while end > 0 {
                let start = end.saturating_sub(size);
                let mut candidate = self.script.clone();
                candidate.steps.drain(start..end);
                self.take(candidate);
                end = start.min(self.script.steps.len());
            }
            size /= 2;
        }
    }

    /// Makes each step simpler, from the front.
    fn simpler_steps(&mut self) {
        for at in 0..self.script.steps.len() {
            while simpler(&self.script.steps[at].act).into_iter().any(|act| {
                let mut candidate = self.script.clone();
                candidate.steps[at].act = act;
                self.take(candidate)
            }) {}
            let step = &self.script.steps[at];
            if step.lane > 0 {
                let mut candidate = self.script.clone();
                candidate.steps[at].lane = 0;
                self.take(candidate);
            }
            if self.script.steps[at].process > 0 {
                let mut candidate = self.script.clone();
                candidate.steps[at].process = 0;
                self.take(candidate);
            }
        }
    }

    /// Lets boxes, owners and processes be one and the same.
    fn fewer_names(&mut self) {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        for (from, to) in pairs(&owned(self.script.boxes())) {
            let mut candidate = self.script.clone();
            let names = candidate.steps.iter_mut().filter_map(|step| step.act.of_mut());
            names.filter(|name| **name == from).for_each(|name| name.clone_from(&to));
            self.take(candidate);
        }
        for (from, to) in pairs(&owned(self.script.owners())) {
            let mut candidate = self.script.clone();
            let names = candidate.steps.iter_mut().filter_map(|step| step.act.owner_mut());
            names.filter(|name| **name == from).for_each(|name| name.clone_from(&to));
            self.take(candidate);
        }
        if self.script.processes() > 1 {
            let mut candidate = self.script.clone();
            candidate.steps.iter_mut().for_each(|step| step.process = 0);
            self.take(candidate);
        }
        if self.script.is_concurrent() {
            let mut candidate = self.script.clone();
            candidate.steps.iter_mut().for_each(|step| step.lane = 0);
            self.take(candidate);
        }
    }

    fn finished(mut self) -> Small {
        let script = self.script.renumbered();
        let runs = if script.is_concurrent() { RACE_RUNS } else { 1 };
        let (mut hits, mut told) = (0, Vec::new());
        for round in 0..runs {
            // The words of the violation are to be those of the script as it is now.
            if let Some((violation, run)) = self.run_once(&script, self.seed ^ u64::from(round)) {
                (hits, self.violation, told) = (hits + 1, violation, tell::steps(&script, &run));
            }
        }
        let rate = script.is_concurrent().then_some(Rate { hits, runs });
        if told.is_empty() {
            told = tell::asked(&script);
        }
        Small { script, violation: self.violation, rate, told }
    }
}

fn pairs(names: &[String]) -> Vec<(String, String)> {
    let pair = |at: usize| names[..at].iter().map(move |to| (names[at].clone(), to.clone()));
    (0..names.len()).rev().flat_map(pair).collect()
}

/// What a step may be instead, the simplest first. Each is simpler than the one it stands for, so that
/// making simpler comes to an end.
fn simpler(act: &Act) -> Vec<Act> {
    let mut found = Vec::new();
    match act {
        Act::Append { of, body, times } => {
            let of = || of.clone();
            if *times > 1 {
                for fewer in [1, times / 2, times - 1] {
                    found.push(Act::Append { of: of(), body: body.clone(), times: fewer.max(1) });
                }
            }
            if body != "m" {
                found.push(Act::Append { of: of(), body: "m".to_owned(), times: *times });
                let half = body.get(..body.len() / 2).unwrap_or("m");
                if half.len() > 1 {
                    found.push(Act::Append { of: of(), body: half.to_owned(), times: *times });
                }
            }
        }
        Act::Claim { of, owner, ttl, max } => {
            let claim = |ttl: Span, max: Option<u64>| Act::Claim {
                of: of.clone(),
                owner: owner.clone(),
                ttl,
                max,
            };
            if *ttl != Span::Short {
                found.push(claim(Span::Short, *max));
            }
            if let Some(most) = max {
                found.push(claim(*ttl, None));
                if *most > 1 {
                    found.push(claim(*ttl, Some(1)));
                }
            }
        }
        Act::Ack { of, owner, lease, up_to } => {
            if !matches!(up_to, SeqRef::LastOf(_)) {
                let ack = |up_to: SeqRef| Act::Ack {
                    of: of.clone(),
                    owner: owner.clone(),
                    lease: *lease,
                    up_to,
                };
                if let Some(claim) = lease.claim() {
                    found.push(ack(SeqRef::LastOf(claim)));
                    if *up_to != SeqRef::NthOf(claim, 0) {
                        found.push(ack(SeqRef::NthOf(claim, 0)));
                    }
                }
            }
        }
        Act::Renew { of, owner, lease, ttl } => {
            if *ttl != Span::Short {
                let (of, owner) = (of.clone(), owner.clone());
                found.push(Act::Renew { of, owner, lease: *lease, ttl: Span::Short });
            }
        }
        Act::Drain { of, owner, max } => {
            let claim =
                Act::Claim { of: of.clone(), owner: owner.clone(), ttl: Span::Short, max: *max };
            found.push(claim);
            if max.is_some() {
                found.push(Act::Drain { of: of.clone(), owner: owner.clone(), max: None });
            }
        }
        Act::Wait { until: Until::In(span) } => {
            for shorter in [Span::Brief, Span::Short, Span::Middle] {
                if shorter < *span {
                    found.push(Act::Wait { until: Until::In(shorter) });
                }
            }
        }
        Act::Wait { until: Until::Past(_) | Until::JustBefore(_) }
        | Act::Release { .. }
        | Act::Peek { .. }
        | Act::Drop { .. }
        | Act::Reap
        | Act::Reopen => {}
    }
    found
}
