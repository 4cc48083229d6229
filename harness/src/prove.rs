//! The kill table: every clause against every mutant, by both clocks, in simulated time.
//!
//! Only a verdict kills. A fault, a limit or an undecided trial is no kill, whatever it looks like.

use rayon::prelude::*;
use std::collections::BTreeSet;
use storeproof_contract::clause::{Clause, Mutant};
use storeproof_contract::sim::{SimTime, judge_in, mounts};
use storeproof_contract::suite::{Suite, clauses, mutants};
use storeproof_contract::trial::Stop;

/// The seed of the table; any will do, and it is always the same.
const SEED: u64 = 7;

/// One mutant and who kills it.
#[derive(Debug)]
pub struct Line {
    /// The suite of the clause it belongs to.
    pub suite: &'static Suite,
    /// The clause it belongs to.
    pub clause: &'static Clause,
    /// The mutant.
    pub mutant: &'static Mutant,
    /// Whether its own clause kills it by both clocks.
    pub killed: bool,
    /// Every case that kills it by both clocks.
    pub killed_by: Vec<String>,
}

/// The whole table.
#[derive(Debug)]
pub struct KillTable(pub Vec<Line>);

/// What is wrong with a table.
#[derive(Debug, PartialEq, Eq)]
pub enum Gap {
    /// A mutant that its own clause does not kill.
    Alive {
        /// Its name.
        mutant: String,
        /// Its clause.
        clause: String,
    },
    /// A clause without a mutant.
    Uncovered(String),
    /// A clause that is never the only killer and does not say why.
    NeverSole(String),
}

impl KillTable {
    /// Judges every mutant by every clause, on all cores.
    #[must_use]
    pub fn judge() -> Self {
        let all: Vec<_> = mutants().collect();
        Self(
            all.into_par_iter()
                .map(|(suite, clause, mutant)| line(suite, clause, mutant))
                .collect(),
        )
    }

    /// Everything that keeps the table from being whole.
    #[must_use]
    pub fn gaps(&self) -> Vec<Gap> {
        let alive = self.0.iter().filter(|line| !line.killed).map(|line| Gap::Alive {
            mutant: line.mutant.name.to_owned(),
            clause: line.suite.clause_id(line.clause),
        });
        let sole: BTreeSet<&str> = self.sole_killers();
        let of_clauses = clauses().filter_map(|(suite, clause)| {
            let id = suite.clause_id(clause);
            if !self.0.iter().any(|line| line.suite.clause_id(line.clause) == id) {
                return Some(Gap::Uncovered(id));
            }
            let excused = clause.never_sole.is_some();
            (!excused && !sole.contains(id.as_str())).then_some(Gap::NeverSole(id))
        });
        alive.chain(of_clauses).collect()
    }

    /// The cases that are the only killer of at least one mutant.
    #[must_use]
    pub fn sole_killers(&self) -> BTreeSet<&str> {
        self.0
            .iter()
            .filter(|line| line.killed_by.len() == 1)
            .map(|line| line.killed_by[0].as_str())
            .collect()
    }
}

fn line(suite: &'static Suite, clause: &'static Clause, mutant: &'static Mutant) -> Line {
    let killed_by: Vec<String> = clauses()
        .filter(|(suite, _)| mounts(suite, mutant.make))
        .filter(|(_, clause)| {
            [SimTime::Caller, SimTime::Wall].into_iter().all(|time| kills(time, clause, mutant))
        })
        .map(|(suite, clause)| suite.clause_id(clause))
        .collect();
    let killed = killed_by.contains(&suite.clause_id(clause));
    Line { suite, clause, mutant, killed, killed_by }
}

fn kills(time: SimTime, clause: &Clause, mutant: &Mutant) -> bool {
    matches!(judge_in(time, clause, mutant.make, SEED).verdict, Err(Stop::Broken { .. }))
}
