//! Every clause that the contract has today holds for every bundled store that mounts its suite.

mod common;

use std::cell::RefCell;
use std::path::PathBuf;
use storeproof_contract::host::Host;
use storeproof_contract::sim::{SimTime, World, judge_in};
use storeproof_contract::subject::Subject;
use storeproof_contract::suite::{Mount, suites};

/// Any seed will do; the bench draws others.
const SEED: u64 = 0x5EED;

thread_local! {
    /// What `made` makes in this test: the bench in simulated time takes a plain function.
    static MADE: RefCell<(&'static str, PathBuf)> = RefCell::default();
}

fn made(_world: World) -> Box<dyn Subject> {
    MADE.with_borrow(|(name, base)| common::subject(name, base))
}

fn holds_everything(name: &'static str) {
    let base = tempfile::tempdir().unwrap();
    MADE.set((name, base.path().to_path_buf()));
    let mut host = Host::new(common::subject(name, base.path()));
    let hooks = host.hooks().unwrap();
    let capabilities = host.manifest().capabilities.clone();
    let mut judged = 0;
    let mut broken = Vec::new();
    for suite in suites() {
        match suite.mount(&capabilities, Some(hooks)) {
            Mount::Mounted => {}
            Mount::NotDeclared(_) => continue,
            Mount::Refused(why) => panic!("{} is refused for {name}: {why}", suite.id),
        }
        for clause in suite.clauses {
            if clause.needs.is_some_and(|need| !capabilities.has(need)) {
                continue;
            }
            let judgement = judge_in(SimTime::Caller, clause, made, SEED);
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
