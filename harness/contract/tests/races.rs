//! The clauses about two processes over many seeds: the model is never blamed, and each of their wrong
//! stores is found again and again.

use storeproof_contract::mailbox::mutant;
use storeproof_contract::sim::{SimTime, judge_in};
use storeproof_contract::suite::{clauses, mutants};
use storeproof_contract::trial::Stop;

const SUITE: &str = "mailbox/cross-process";
const TIMES: [SimTime; 2] = [SimTime::Caller, SimTime::Wall];

#[test]
fn the_model_is_never_blamed() {
    for (suite, clause) in clauses().filter(|(suite, _)| suite.id == SUITE) {
        for time in TIMES {
            for seed in 0..60 {
                let judged = judge_in(time, clause, mutant::model, seed);
                let id = suite.clause_id(clause);
                assert_eq!(judged.verdict, Ok(()), "{id} {time:?} seed {seed}");
            }
        }
    }
}

#[test]
fn each_mutant_is_found_with_twenty_seeds_of_twenty() {
    let mut missed = Vec::new();
    for (_, clause, mutant) in mutants().filter(|(suite, _, _)| suite.id == SUITE) {
        for time in TIMES {
            for seed in 0..20 {
                let judged = judge_in(time, clause, mutant.make, seed);
                if !matches!(judged.verdict, Err(Stop::Broken { .. })) {
                    missed.push(format!(
                        "{} {time:?} seed {seed}: {:?}",
                        mutant.name, judged.verdict
                    ));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}
