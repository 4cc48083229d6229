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
    let (mut found, mut all) = (0, 0);
    for (suite, clause, mutant) in mutants() {
        if matches!(suite.id, "mailbox/tenancy" | "mailbox/tombstone") {
            continue;
        }
        let searched = explore(SimTime::Caller, mutant.make, 1, 2000);
        all += 1;
        let id = suite.clause_id(clause);
        match searched.findings.first() {
            Some(finding) => {
                found += 1;
                println!("{} of {id}: case {}\n{}", mutant.name, finding.case, told(finding));
            }
            None => println!("{} of {id}: NOT FOUND {:?}", mutant.name, searched.no_verdict),
        }
    }
    println!("{found} of {all}");
}
