//! The search in simulated time: right stores give no finding, wrong ones do, scripts mean the same after
//! steps were taken out.

#[path = "../contract/tests/odd/stores.rs"]
mod stores;

use proptest::prelude::*;
use rayon::prelude::*;
use storeproof::explore::generate::{Scope, script};
use storeproof::explore::search::{Ask, Bench as _, Finding, Searched, search};
use storeproof::explore::shrink::SHRINK_RUNS_MAX;
use storeproof::explore::sim::SimBench;
use storeproof::explore::unseen::seen;
use storeproof::explore::{End, Script, Terms, run};
use storeproof_contract::mailbox::mutant::model;
use storeproof_contract::sim::{Make, SimTime};
use storeproof_contract::suite::mutants;

/// How many cases find each wrong store.
const CASES: u64 = 2_000;

fn explore(time: SimTime, make: Make, seed: u64, cases: u64, shrink_runs: u32) -> Searched {
    let ask = Ask { cases, seed, single: true, several: true, stop_at_first: true, shrink_runs };
    search(&mut SimBench::new(time, make), &ask, &mut || true, &mut |_| {}).expect("a subject")
}

fn told(finding: &Finding) -> String {
    let found = &finding.violation;
    let head = format!("{} ({}): {}; {}", found.clause, found.kind, found.promised, found.seen);
    format!("case {}: {head}\n{}", finding.case, finding.told.join("\n"))
}

fn make_of(name: &str) -> Make {
    mutants().find(|(.., mutant)| mutant.name == name).expect("a mutant").2.make
}

#[test]
fn right_stores_give_no_finding() {
    let right: Vec<(&str, Make)> =
        [("the model", model as Make)].into_iter().chain(stores::ODD).collect();
    right.par_iter().for_each(|(name, make)| {
        for time in [SimTime::Caller, SimTime::Wall] {
            for seed in 1..=5 {
                let searched = explore(time, *make, seed, 100, SHRINK_RUNS_MAX);
                let first = searched.findings.first().map(told).unwrap_or_default();
                assert!(searched.findings.is_empty(), "{name} {time:?} {seed}: {first}");
                assert_eq!(searched.no_verdict, (0, None), "{name} {time:?} {seed}");
            }
        }
    });
}

#[test]
fn every_wrong_store_that_can_be_seen_is_found() {
    let all: Vec<_> = seen().collect();
    let missed: Vec<&str> = all
        .par_iter()
        .filter(|(.., mutant)| {
            explore(SimTime::Caller, mutant.make, 1, CASES, 0).findings.is_empty()
        })
        .map(|(.., mutant)| mutant.name)
        .collect();
    assert!(all.len() > 200, "{}", all.len());
    assert!(missed.is_empty(), "not found in {CASES} cases: {missed:?}");
}

#[test]
fn a_finding_is_made_as_small_as_it_is() {
    for (name, clause, steps) in [
        ("no-fence", "mailbox/core/", 3),
        ("seq-restarts-after-drop", "mailbox/core/seq-", 3),
        ("partial-ack-takes-all", "mailbox/core/ack-", 4),
        ("overtaken-lease-acks", "mailbox/ownership/", 5),
        ("leases-die-on-close", "mailbox/core/", 4),
    ] {
        let searched = explore(SimTime::Caller, make_of(name), 3, CASES, SHRINK_RUNS_MAX);
        let first = searched.findings.first().expect(name);
        assert!(first.violation.clause.starts_with(clause), "{name}: {}", told(first));
        assert!(first.script.steps.len() <= steps, "{name}: {}", told(first));
    }
}

#[test]
fn a_race_is_found_with_its_rate() {
    let searched =
        explore(SimTime::Caller, make_of("claim-read-then-written"), 1, CASES, SHRINK_RUNS_MAX);
    let first = searched.findings.first().expect("a finding");
    let rate = first.rate.expect("a race");
    assert!(rate.runs == 10 && rate.hits >= 1, "{rate:?} {}", told(first));
    assert!(first.violation.drawing.is_some());
}

#[test]
fn the_same_seed_draws_the_same() {
    let make = make_of("fence-by-prefix");
    let [one, two] = [(); 2].map(|()| explore(SimTime::Caller, make, 5, CASES, SHRINK_RUNS_MAX));
    assert_eq!(one.findings.first().map(told), two.findings.first().map(told));
    assert_eq!(one.cases, two.cases);
}

#[test]
fn a_run_that_came_nowhere_says_so() {
    let searched = explore(SimTime::Caller, model, 1, 1, 0);
    let terms = Terms::of(SimBench::new(SimTime::Caller, model).fresh().expect("sim").manifest());
    assert!(!searched.reached.missing(&terms, true).is_empty());
    let searched = explore(SimTime::Caller, model, 1, 300, 0);
    // The model leaves nobody a gap, so that in simulated time no call overlaps another.
    assert_eq!(searched.reached.missing(&terms, true), ["overlapping calls"]);
}

fn drawn(seed: u64) -> Script {
    let terms = Terms::of(SimBench::new(SimTime::Caller, model).fresh().expect("sim").manifest());
    let scope = Scope { terms, single: true, several: true };
    script(&mut fastrand::Rng::with_seed(seed), &scope)
}

proptest! {
    #[test]
    fn scripts_come_back_from_json_as_they_were(seed in any::<u64>()) {
        let script = drawn(seed);
        prop_assert_eq!(script.check(), Ok(()));
        let text = serde_json::to_string(&script).expect("JSON");
        let back: Script = serde_json::from_str(&text).expect("a script");
        prop_assert_eq!(back, script);
    }

    #[test]
    fn whatever_steps_are_taken_out_the_rest_can_be_run_and_judged(
        seed in any::<u64>(),
        kept in proptest::collection::vec(any::<bool>(), 80),
    ) {
        let mut script = drawn(seed);
        let mut kept = kept.into_iter().cycle();
        script.steps.retain(|_| kept.next().unwrap_or(true));
        prop_assume!(!script.steps.is_empty());
        let renumbered = script.renumbered();
        prop_assert_eq!(renumbered.check(), Ok(()));
        let ends = [&script, &renumbered].map(|script| {
            let mut bench = SimBench::new(SimTime::Caller, model);
            let done = run(script, bench.fresh().expect("sim"), 1);
            let calls: Vec<_> = done.told.into_iter().map(|told| told.call).collect();
            (done.end, calls)
        });
        prop_assert_eq!(&ends[0].0, &End::Allowed);
        // Numbers of steps mean nothing: the same calls are made and answered.
        prop_assert_eq!(&ends[0], &ends[1]);
    }
}
