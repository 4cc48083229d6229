//! Every clause that the contract has today holds for every bundled store that mounts its suite.

mod common;

use std::path::Path;
use storeproof_contract::sim::{Sim, SimClock};
use storeproof_contract::suite::{Mount, suites};
use storeproof_contract::trial::judge;

/// Any seed will do; the bench draws others.
const SEED: u64 = 0x5EED;

fn holds_everything(name: &str) {
    let base = tempfile::tempdir().unwrap();
    let mut judged = 0;
    let mut broken = Vec::new();
    for suite in suites() {
        let hooks = sim(name, base.path()).host().hooks().unwrap();
        let manifest = sim(name, base.path()).host().manifest().clone();
        match suite.mount(&manifest.capabilities, Some(hooks)) {
            Mount::Mounted => {}
            Mount::NotDeclared(_) => continue,
            Mount::Refused(why) => panic!("{} is refused for {name}: {why}", suite.id),
        }
        for clause in suite.clauses {
            if clause.needs.is_some_and(|need| !manifest.capabilities.has(need)) {
                continue;
            }
            let judgement = judge(clause, &mut sim(name, base.path()), SEED);
            judged += 1;
            if judgement.verdict.is_err() || !judgement.advisories.is_empty() {
                let id = suite.clause_id(clause);
                broken.push(format!("{id}: {:?} {:?}", judgement.verdict, judgement.advisories));
            }
        }
    }
    assert!(judged > 0, "nothing was judged");
    assert!(broken.is_empty(), "{name}, {judged} judged:\n{}", broken.join("\n"));
    let left: Vec<_> = std::fs::read_dir(base.path()).unwrap().collect();
    assert!(left.is_empty(), "storages were left behind: {left:?}");
}

fn sim(name: &str, base: &Path) -> Sim {
    let subject = common::subject(name, base);
    Sim::new(subject, SimClock::new())
}

#[cfg(feature = "memory")]
#[test]
fn memory_keeps_the_contract() {
    holds_everything("memory");
}

#[cfg(feature = "jsonl")]
#[test]
fn jsonl_keeps_the_contract() {
    holds_everything("jsonl");
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_keeps_the_contract() {
    holds_everything("sqlite");
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_keeps_the_contract() {
    if common::has_server("postgres") {
        holds_everything("postgres");
    }
}

#[cfg(feature = "redis")]
#[test]
fn redis_keeps_the_contract() {
    if common::has_server("redis") {
        holds_everything("redis");
    }
}

#[test]
fn an_unknown_name_is_no_store() {
    assert!(storeproof_reference_stores::bundled("memroy").is_none());
}
