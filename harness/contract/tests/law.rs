//! What every clause owes: laws over the whole registry, so that a clause added tomorrow is held to
//! them without anybody remembering.

#![expect(clippy::disallowed_methods, reason = "tests of the tree read its files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use storeproof_contract::mailbox::mutant;
use storeproof_contract::sim::{Sim, SimClock, SimTime, judge_in, mounts};
use storeproof_contract::suite::{clauses, mutants, suites};
use storeproof_contract::trial::{Stop, judge};

const SEED: u64 = 7;
const TIMES: [SimTime; 2] = [SimTime::Caller, SimTime::Wall];

#[test]
fn ids_are_the_published_ones() {
    // An id is forever: a clause may be added to this list, never renamed or taken away.
    let published: BTreeSet<&str> = include_str!("ids.txt").lines().collect();
    let ids: Vec<String> = clauses().map(|(suite, clause)| suite.clause_id(clause)).collect();
    let unique: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(unique.len(), ids.len(), "an id stands twice");
    assert_eq!(unique, published);
}

#[test]
fn a_clause_lives_in_the_file_of_its_slug() {
    for (suite, clause) in clauses() {
        let path = format!("{}/{}.rs", suite.id, clause.slug).replace('-', "_");
        assert!(clause.at.ends_with(&path), "{} lives in {}", clause.slug, clause.at);
    }
}

#[test]
fn every_file_of_a_suite_is_registered() {
    for suite in suites() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(suite.id.replace('-', "_"));
        let files: BTreeSet<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "mod.rs")
            .collect();
        let registered: BTreeSet<String> =
            suite.clauses.iter().map(|c| format!("{}.rs", c.slug.replace('-', "_"))).collect();
        assert_eq!(files, registered, "{}", suite.id);
    }
}

#[test]
fn words_are_there() {
    for suite in suites() {
        assert!(!suite.about.is_empty() && !suite.ceiling.is_empty(), "{}", suite.id);
    }
    for (suite, clause) in clauses() {
        let id = suite.clause_id(clause);
        for sentence in [clause.statement, clause.why] {
            assert!(sentence.ends_with('.') && sentence.len() > 20, "{id}: {sentence:?}");
            assert!(
                sentence.starts_with(|c: char| c.is_uppercase() || c == '"'),
                "{id}: {sentence:?}"
            );
        }
        assert!(!clause.steps.is_empty(), "{id} says no steps");
        assert!(!clause.mutants.is_empty(), "{id} has no mutant: it does not exist");
    }
    let mut names = BTreeSet::new();
    for (suite, clause, mutant) in mutants() {
        assert!(names.insert(mutant.name), "the mutant {} stands twice", mutant.name);
        let is_verb = mutant.fault.starts_with(char::is_lowercase);
        assert!(is_verb, "{} {}: {}", suite.clause_id(clause), mutant.name, mutant.fault);
    }
}

#[test]
fn the_model_holds_every_clause_by_both_clocks() {
    for time in TIMES {
        for (suite, clause) in clauses() {
            let judged = judge_in(time, clause, mutant::model, SEED);
            assert_eq!(
                judged.verdict,
                Ok(()),
                "{} {time:?}: {:#?}",
                suite.clause_id(clause),
                judged.steps
            );
            assert!(judged.steps.len() > 1, "{} judged nothing", suite.clause_id(clause));
            assert_eq!(judged.advisories, Vec::<String>::new(), "{}", suite.clause_id(clause));
        }
    }
}

#[test]
fn the_page_of_clauses_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CLAUSES.md");
    let page = storeproof_contract::page::clauses();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/CLAUSES.md is not current: run scripts/regenerate");
}

/// Which clauses kill which mutant, by verdict alone: a fault or an undecided trial is no kill.
fn kills(time: SimTime) -> BTreeMap<&'static str, BTreeSet<String>> {
    mutants()
        .map(|(_, _, mutant)| {
            let killers = clauses()
                .filter(|(suite, _)| mounts(suite, mutant.make))
                .filter(|(_, clause)| {
                    matches!(
                        judge_in(time, clause, mutant.make, SEED).verdict,
                        Err(Stop::Broken { .. })
                    )
                })
                .map(|(suite, clause)| suite.clause_id(clause))
                .collect();
            (mutant.name, killers)
        })
        .collect()
}

#[test]
fn every_mutant_is_killed_by_its_own_clause_and_each_clause_is_once_the_only_killer() {
    for time in TIMES {
        let table = kills(time);
        let mut sole: BTreeSet<&str> = BTreeSet::new();
        let mut survivors = Vec::new();
        for (suite, clause, mutant) in mutants() {
            let id = suite.clause_id(clause);
            let killers = &table[mutant.name];
            if !killers.contains(&id) {
                survivors
                    .push(format!("{} is not killed by {id}, only by {killers:?}", mutant.name));
            }
            if let (1, Some(only)) = (killers.len(), killers.first()) {
                sole.insert(only);
            }
        }
        assert!(survivors.is_empty(), "{time:?}: {survivors:#?}");
        let never: Vec<String> = clauses()
            .filter(|(suite, clause)| {
                clause.never_sole.is_none() && !sole.contains(suite.clause_id(clause).as_str())
            })
            .map(|(suite, clause)| {
                let id = suite.clause_id(clause);
                let own: Vec<_> = clause.mutants.iter().map(|m| (m.name, &table[m.name])).collect();
                format!("{id}: {own:#?}")
            })
            .collect();
        assert!(never.is_empty(), "{time:?}: never the only killer: {never:#?}");
        let excused: Vec<_> = clauses()
            .filter(|(suite, clause)| {
                clause.never_sole.is_some() && sole.contains(suite.clause_id(clause).as_str())
            })
            .map(|(_, clause)| clause.slug)
            .collect();
        assert!(excused.is_empty(), "{time:?}: sole killers after all: {excused:?}");
    }
}

#[test]
fn slowness_never_makes_a_violation() {
    // A correct store on a machine that stalls for up to seconds between any two events: each clause
    // may hold or stay undecided, and nothing else.
    for seed in 0..40 {
        for (suite, clause) in clauses() {
            let clock = SimClock::new();
            let mut rng = fastrand::Rng::with_seed(seed);
            let longest_ms = [1, 50, 500, 5_000][usize::try_from(seed % 4).unwrap()];
            let slowness =
                Box::new(move || if rng.u8(..) < 40 { rng.u64(0..longest_ms) } else { 0 });
            let mut sim = Sim::new(SimTime::Wall, clock, mutant::model).slowed(slowness);
            let judged = judge(clause, &mut sim, seed);
            assert!(
                !matches!(judged.verdict, Err(Stop::Broken { .. })),
                "{} at up to {longest_ms} ms (seed {seed}): {:?}",
                suite.clause_id(clause),
                judged.verdict
            );
        }
    }
}
