//! What a run will do, decided before anything runs: every case of every suite with its fate, and a
//! mount verdict for every suite. Pure and printable.

use crate::pattern::Pattern;
use storeproof_contract::backend::Capabilities;
use storeproof_contract::clause::Clause;
use storeproof_contract::suite::{Hooks, Mount, Suite, suites};

/// What the person asked for.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Suite patterns; none means all.
    pub suites: Vec<Pattern>,
    /// Clause patterns; none means all.
    pub clauses: Vec<Pattern>,
    /// Shard K of N, counted from 1.
    pub shard: Option<Shard>,
}

/// One shard of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub k: usize,
    /// Of how many.
    pub n: usize,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.k, self.n)
    }
}

/// What is known of the subject when the plan is made.
#[derive(Clone, Debug)]
pub enum Known {
    /// It shook hands.
    Declared {
        /// What it declares.
        caps: Box<Capabilities>,
        /// The hooks it really has, for a subject in this process.
        hooks: Option<Hooks>,
    },
    /// It did not; every asked clause will be an error that says why.
    Nothing(String),
}

/// Everything that the run will do.
#[derive(Debug)]
pub struct Plan {
    /// One verdict a suite.
    pub mounts: Vec<PlannedMount>,
    /// One case a row, in the order of reports.
    pub cases: Vec<Case>,
}

/// A suite with its verdict.
#[derive(Debug)]
pub struct PlannedMount {
    /// The suite.
    pub suite: &'static Suite,
    /// Whether it stands before the subject.
    pub mount: Mount,
    /// Whether the person asked for any of it.
    pub asked: bool,
    /// How many cases it has in the plan.
    pub cases: usize,
}

/// One case.
#[derive(Debug)]
pub struct Case {
    /// Its suite.
    pub suite: &'static Suite,
    /// Its clause.
    pub clause: &'static Clause,
    /// Case id.
    pub id: String,
    /// What will become of it.
    pub fate: Fate,
}

/// What will become of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It will be judged.
    Judge,
    /// A capability is absent.
    NotDeclared(String),
    /// A filter or a shard leaves it out.
    NotRun(String),
    /// It cannot be judged, as is known beforehand.
    Error(String),
}

/// Why a plan does not run; exit 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A pattern takes nothing.
    #[error("{option} {pattern} matches nothing; see `storeproof list {listing}`")]
    NoMatch {
        /// The option it was given with.
        option: &'static str,
        /// The pattern.
        pattern: String,
        /// What to list to see what there is.
        listing: &'static str,
    },
    /// Each pattern takes something, but together they take nothing.
    #[error("no clause is left by --suite and --clause together; see `storeproof list clauses`")]
    NothingLeft,
    /// A suite is refused.
    #[error("the mount of {suite} is refused: {reason}")]
    Refused {
        /// Suite id.
        suite: &'static str,
        /// Why.
        reason: String,
    },
}

impl Ask {
    /// Holds every pattern against the registry.
    ///
    /// # Errors
    /// [`PlanError::NoMatch`] or [`PlanError::NothingLeft`].
    pub fn check(&self) -> Result<(), PlanError> {
        for pattern in &self.suites {
            if !suites().iter().any(|suite| pattern.takes(suite.id)) {
                return Err(no_match("--suite", pattern, "suites"));
            }
        }
        for pattern in &self.clauses {
            if !all_ids().any(|id| pattern.takes(&id)) {
                return Err(no_match("--clause", pattern, "clauses"));
            }
        }
        let any = suites().iter().any(|suite| {
            suite
                .clauses
                .iter()
                .any(|clause| self.left_out(suite, &suite.clause_id(clause)).is_none())
        });
        if any { Ok(()) } else { Err(PlanError::NothingLeft) }
    }

    /// Why the filters leave a case out, if they do.
    fn left_out(&self, suite: &Suite, id: &str) -> Option<String> {
        if !self.suites.is_empty() && !self.suites.iter().any(|pattern| pattern.takes(suite.id)) {
            return Some("left out by --suite".to_owned());
        }
        if !self.clauses.is_empty() && !self.clauses.iter().any(|pattern| pattern.takes(id)) {
            return Some("left out by --clause".to_owned());
        }
        None
    }

    /// Whether a suite was asked for by exactly its id.
    fn by_name(&self, suite: &Suite) -> bool {
        self.suites.iter().any(|pattern| pattern.text() == suite.id)
    }
}

/// A pattern that takes nothing.
pub(crate) fn no_match(
    option: &'static str,
    pattern: &Pattern,
    listing: &'static str,
) -> PlanError {
    PlanError::NoMatch { option, pattern: pattern.text().to_owned(), listing }
}

/// The id of every case of the whole plan, mounted or not, before filters and shards.
pub fn all_ids() -> impl Iterator<Item = String> {
    suites().iter().flat_map(|suite| suite.clauses.iter().map(|clause| suite.clause_id(clause)))
}

impl Plan {
    /// Makes the plan. A refused mount is in it; [`Plan::refusal`] says whether anything may run.
    #[must_use]
    pub fn new(ask: &Ask, known: &Known) -> Self {
        let mut plan = Self { mounts: Vec::new(), cases: Vec::new() };
        for suite in suites() {
            let mount = mount(suite, ask, known);
            let first = plan.cases.len();
            for clause in suite.clauses {
                let id = suite.clause_id(clause);
                let fate = fate(suite, clause, &id, ask, known, &mount);
                plan.cases.push(Case { suite, clause, id, fate });
            }
            let own = &plan.cases[first..];
            let asked = own.iter().any(|case| ask.left_out(suite, &case.id).is_none());
            let cases = own.len();
            plan.mounts.push(PlannedMount { suite, mount, asked, cases });
        }
        if let Some(shard) = ask.shard {
            plan.keep_shard(shard);
        }
        plan
    }

    /// The first refused mount among what was asked for.
    #[must_use]
    pub fn refusal(&self) -> Option<PlanError> {
        self.mounts.iter().filter(|planned| planned.asked).find_map(|planned| {
            match &planned.mount {
                Mount::Refused(reason) => {
                    Some(PlanError::Refused { suite: planned.suite.id, reason: reason.clone() })
                }
                Mount::Mounted | Mount::NotDeclared(_) => None,
            }
        })
    }

    /// Takes every case that would be judged out of the run, because some mount is refused.
    pub fn call_off(&mut self, refusal: &PlanError) {
        for case in &mut self.cases {
            if case.fate == Fate::Judge {
                case.fate = Fate::NotRun(format!("nothing ran: {refusal}"));
            }
        }
    }

    /// How many cases will be judged.
    #[must_use]
    pub fn to_judge(&self) -> usize {
        self.cases.iter().filter(|case| case.fate == Fate::Judge).count()
    }

    /// Deals the cases that would run to the shards in turn, so that each gets its share of slow ones.
    fn keep_shard(&mut self, shard: Shard) {
        let would_run =
            self.cases.iter_mut().filter(|case| matches!(case.fate, Fate::Judge | Fate::Error(_)));
        for (i, case) in would_run.enumerate() {
            if i % shard.n != shard.k - 1 {
                case.fate = Fate::NotRun(format!("left to another shard than {shard}"));
            }
        }
    }
}

fn mount(suite: &Suite, ask: &Ask, known: &Known) -> Mount {
    match known {
        Known::Nothing(why) => Mount::Refused(why.clone()),
        Known::Declared { caps, hooks } => match suite.mount(caps, *hooks) {
            Mount::NotDeclared(reason) if ask.by_name(suite) => {
                Mount::Refused(format!("it was asked for by name, and {reason}"))
            }
            mount @ (Mount::Mounted | Mount::NotDeclared(_) | Mount::Refused(_)) => mount,
        },
    }
}

fn fate(suite: &Suite, clause: &Clause, id: &str, ask: &Ask, known: &Known, mount: &Mount) -> Fate {
    if let Some(reason) = ask.left_out(suite, id) {
        return Fate::NotRun(reason);
    }
    match (mount, known) {
        (Mount::Refused(reason), _) => Fate::Error(reason.clone()),
        (Mount::NotDeclared(reason), _) => Fate::NotDeclared(reason.clone()),
        (Mount::Mounted, Known::Declared { caps, .. }) => match clause.needs {
            Some(need) if !caps.has(need) => {
                Fate::NotDeclared(format!("the subject does not declare {}", need.word()))
            }
            Some(_) | None => Fate::Judge,
        },
        (Mount::Mounted, Known::Nothing(why)) => Fate::Error(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(caps: Capabilities) -> Known {
        Known::Declared { caps: Box::new(caps), hooks: None }
    }

    fn mailbox() -> Capabilities {
        Capabilities { mailbox: true, ..Capabilities::default() }
    }

    fn ask(suite: &str) -> Ask {
        Ask { suites: vec![Pattern::new(suite)], ..Ask::default() }
    }

    #[test]
    fn every_clause_has_a_row_whatever_was_asked() {
        for ask in [Ask::default(), ask("mailbox/core"), ask("mailbox/tombstone")] {
            let plan = Plan::new(&ask, &declared(mailbox()));
            assert_eq!(plan.cases.len(), all_ids().count());
            assert_eq!(plan.mounts.len(), suites().len());
        }
    }

    #[test]
    fn an_undeclared_suite_is_refused_by_name_and_not_declared_by_pattern() {
        let known = declared(mailbox());
        assert!(matches!(
            Plan::new(&ask("mailbox/tombstone"), &known).refusal(),
            Some(PlanError::Refused { suite: "mailbox/tombstone", .. })
        ));
        let plan = Plan::new(&ask("mailbox/**"), &known);
        assert_eq!(plan.refusal(), None);
        assert!(plan.cases.iter().any(|case| matches!(case.fate, Fate::NotDeclared(_))));
    }

    #[test]
    fn shards_share_out_the_cases_without_loss_or_overlap() {
        let known = declared(Capabilities { tenancy: true, ..mailbox() });
        let whole = Plan::new(&Ask::default(), &known).to_judge();
        let mut seen = std::collections::BTreeSet::new();
        for k in 1..=3 {
            let ask = Ask { shard: Some(Shard { k, n: 3 }), ..Ask::default() };
            for case in Plan::new(&ask, &known).cases {
                if case.fate == Fate::Judge {
                    assert!(seen.insert(case.id));
                }
            }
        }
        assert_eq!(seen.len(), whole);
    }

    #[test]
    fn patterns_that_take_nothing_are_refused() {
        for (suites, clauses) in [(vec!["mailbox/cor"], vec![]), (vec![], vec!["mailbox/core/fif"])]
        {
            let ask = Ask {
                suites: suites.into_iter().map(Pattern::new).collect(),
                clauses: clauses.into_iter().map(Pattern::new).collect(),
                shard: None,
            };
            assert!(matches!(ask.check(), Err(PlanError::NoMatch { .. })));
        }
        let crossed = Ask {
            suites: vec![Pattern::new("mailbox/core")],
            clauses: vec![Pattern::new("mailbox/tenancy/**")],
            shard: None,
        };
        assert_eq!(crossed.check(), Err(PlanError::NothingLeft));
    }

    #[test]
    fn a_subject_that_never_shook_hands_leaves_only_errors() {
        let plan = Plan::new(&Ask::default(), &Known::Nothing("it exited".to_owned()));
        assert!(plan.cases.iter().all(|case| case.fate == Fate::Error("it exited".to_owned())));
    }
}
