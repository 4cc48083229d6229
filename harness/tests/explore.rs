//! The search in simulated time: right stores give no finding, wrong ones do.

#[path = "../contract/tests/odd/stores.rs"]
mod stores;

use storeproof::explore::search::{Ask, Finding, Searched, search};
use storeproof::explore::shrink::SHRINK_RUNS_MAX;
use storeproof::explore::sim::SimBench;
use storeproof_contract::mailbox::mutant::model;
use storeproof_contract::sim::{Make, SimTime};
use storeproof_contract::suite::mutants;

fn explore(time: SimTime, make: Make, seed: u64, cases: u64) -> Searched {
    let ask = Ask {
        cases,
        seed,
        single: true,
        several: true,
        stop_at_first: true,
        shrink_runs: SHRINK_RUNS_MAX,
    };
    search(&mut SimBench::new(time, make), &ask, &mut || true, &mut |_| {}).expect("a subject")
}

fn told(finding: &Finding) -> String {
    let mut text = format!(
        "{} ({}): {}; {}\n",
        finding.violation.clause,
        finding.violation.kind,
        finding.violation.promised,
        finding.violation.seen
    );
    for step in &finding.script.steps {
        text += &format!("  {} [{} {}] {}\n", step.id, step.lane, step.process, step.act);
    }
    text
}

#[test]
fn right_stores_give_no_finding() {
    let right = [("the model", model as Make)].into_iter().chain(stores::ODD);
    for (name, make) in right {
        for time in [SimTime::Caller, SimTime::Wall] {
            for seed in 1..=10 {
                let searched = explore(time, make, seed, 100);
                let first = searched.findings.first().map(told).unwrap_or_default();
                assert!(searched.findings.is_empty(), "{name} {time:?} {seed}: {first}");
                assert_eq!(searched.no_verdict.0, 0, "{name} {:?}", searched.no_verdict);
            }
        }
    }
}

#[test]
#[ignore = "a survey, to be read"]
fn survey() {
    use rayon::prelude::*;
    let rows: Vec<_> = mutants()
        .filter(|(suite, ..)| !matches!(suite.id, "mailbox/tenancy" | "mailbox/tombstone"))
        .filter(|(_, clause, _)| {
            !matches!(clause.slug, "body-fidelity" | "close" | "invalid-input")
        })
        .collect();
    let lines: Vec<(bool, String)> = rows
        .par_iter()
        .map(|(suite, clause, mutant)| {
            let searched = explore(SimTime::Caller, mutant.make, 1, 2000);
            let id = suite.clause_id(clause);
            match searched.findings.first() {
                Some(f) => (true, format!("{} of {id}: case {}\n{}", mutant.name, f.case, told(f))),
                None => {
                    let why = &searched.no_verdict;
                    (false, format!("{} of {id}: NOT FOUND {why:?}", mutant.name))
                }
            }
        })
        .collect();
    for (_, line) in &lines {
        println!("{line}");
    }
    println!("{} of {}", lines.iter().filter(|(found, _)| *found).count(), lines.len());
}
