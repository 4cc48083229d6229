//! The built binary over real processes: every wrong store of `mailbox/cross-process` is found, and
//! nobody is left behind.

mod support;

use storeproof_contract::suite::mutants;
use support::{certify, example};

/// How often each wrong store is judged; `STOREPROOF_RUNS` says otherwise.
const RUNS: usize = 1;

#[test]
fn every_wrong_store_of_two_processes_is_found_over_real_ones() {
    let runs = std::env::var("STOREPROOF_RUNS").ok().and_then(|runs| runs.parse().ok());
    let wrong_store = example("wrong_store");
    let mut missed = Vec::new();
    for (suite, clause, mutant) in mutants().filter(|(s, ..)| s.id == "mailbox/cross-process") {
        let id = suite.clause_id(clause);
        for run in 1..=runs.unwrap_or(RUNS) {
            let args = ["--timeout", "700ms", "--clause", &id, "--", &wrong_store, mutant.name];
            let certified = certify(&args);
            if (certified.status, certified.ids("fail")) != (1, vec![id.clone()]) {
                missed.push(format!("{} in run {run}: {}", mutant.name, certified.stdout));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {}", missed.len(), missed.join("\n"));
}

#[test]
fn a_store_of_one_process_is_refused_by_name_and_not_declared_by_pattern() {
    let by_name = certify(&["memory", "--suite", "mailbox/cross-process"]);
    assert_eq!(by_name.status, 2, "{}", by_name.stderr);
    assert!(by_name.stderr.contains("crossProcessSafe"), "{}", by_name.stderr);
    let by_pattern = certify(&["memory", "--suite", "mailbox/**"]);
    assert_eq!(by_pattern.status, 0, "{}", by_pattern.stdout);
    let not_declared = by_pattern.ids("not-declared");
    assert!(not_declared.iter().any(|id| id.starts_with("mailbox/cross-process/")));
}

#[test]
fn transcripts_say_which_process_was_called() {
    let wrong_store = example("wrong_store");
    let id = "mailbox/cross-process/warm-cache";
    let run = certify(&["--clause", id, "--", &wrong_store, "box-cached-at-first-claim"]);
    let steps = run.row(id)["steps"].as_array().expect("steps").clone();
    let sides: std::collections::BTreeSet<_> =
        steps.iter().filter_map(|step| step["process"].as_str()).collect();
    assert_eq!(sides.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    assert!(run.stdout.contains("B: mailbox/claim"), "{}", run.stdout);
}
