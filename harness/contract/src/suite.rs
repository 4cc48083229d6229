//! Suites: the clauses that stand or fall with the same hooks, and whether they are mounted.

use crate::backend::{Capabilities, Capability};
use crate::clause::{Clause, Mutant};
use crate::mailbox;

/// A set of clauses that need the same hooks.
#[derive(Debug)]
pub struct Suite {
    /// `family/suite`.
    pub id: &'static str,
    /// Who owes it.
    pub tier: Tier,
    /// What the suite is about, as one sentence.
    pub about: &'static str,
    /// Every capability it needs, in the order in which a missing one is named.
    pub needs: &'static [Capability],
    /// What passing it does not prove.
    pub ceiling: &'static str,
    /// Its clauses in the order of the spec.
    pub clauses: &'static [&'static Clause],
}

/// Who owes a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Every store of the family.
    T1,
    /// Those that declare the capability.
    T2,
}

/// Whether a suite stands before the subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// Its clauses are judged.
    Mounted,
    /// The subject does not declare what it needs.
    NotDeclared(String),
    /// The declaration contradicts itself or the hooks; nothing may run.
    Refused(String),
}

/// The hooks that a subject in the same process really has; unknown (`None`) for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// It has mailbox methods.
    pub mailbox: bool,
    /// It has the tombstone hook.
    pub tombstone: bool,
}

impl Suite {
    /// The id of one of its clauses.
    #[must_use]
    pub fn clause_id(&self, clause: &Clause) -> String {
        format!("{}/{}", self.id, clause.slug)
    }

    /// Whether the suite is mounted for a subject that declares `caps` and, in process, has `hooks`.
    #[must_use]
    pub fn mount(&self, caps: &Capabilities, hooks: Option<Hooks>) -> Mount {
        if caps.mailbox && caps.is_queue() {
            return Mount::Refused(
                "the subject declares both mailbox and queue; a store leases either the box or the \
                 message: declare one of them"
                    .to_owned(),
            );
        }
        if let Some(hooks) = hooks
            && let Some(refusal) = self.contradiction(caps, hooks)
        {
            return Mount::Refused(refusal);
        }
        if caps.tombstone && !caps.tenancy && self.needs.contains(&Capability::Tombstone) {
            return Mount::Refused(
                "the subject declares tombstone without tenancy; the boundary clauses need two \
                 scopes: declare tenancy too, or take tombstone back"
                    .to_owned(),
            );
        }
        match self.needs.iter().find(|need| !caps.has(**need)) {
            Some(need) => {
                Mount::NotDeclared(format!("the subject does not declare {}", need.word()))
            }
            None => Mount::Mounted,
        }
    }

    fn contradiction(&self, caps: &Capabilities, hooks: Hooks) -> Option<String> {
        let pairs = [
            (Capability::Mailbox, caps.mailbox, hooks.mailbox),
            (Capability::Tombstone, caps.tombstone, hooks.tombstone),
        ];
        for (capability, declared, hooked) in pairs {
            if !self.needs.contains(&capability) || declared == hooked {
                continue;
            }
            let word = capability.word();
            return Some(if declared {
                format!("{word} is declared but the subject has no hooks for it")
            } else {
                format!("the subject has hooks for {word} but does not declare it")
            });
        }
        None
    }
}

static SUITES: [&Suite; 5] = [
    &mailbox::core::SUITE,
    &mailbox::ownership::SUITE,
    &mailbox::tenancy::SUITE,
    &mailbox::cross_process::SUITE,
    &mailbox::tombstone::SUITE,
];

/// Every suite, in the order of plans and reports.
#[must_use]
pub fn suites() -> &'static [&'static Suite] {
    &SUITES
}

/// Every clause with its suite.
pub fn clauses() -> impl Iterator<Item = (&'static Suite, &'static Clause)> {
    suites().iter().flat_map(|suite| suite.clauses.iter().map(move |clause| (*suite, *clause)))
}

/// Every mutant with the suite and clause it belongs to.
pub fn mutants() -> impl Iterator<Item = (&'static Suite, &'static Clause, &'static Mutant)> {
    clauses().flat_map(|(suite, clause)| {
        clause.mutants.iter().map(move |mutant| (suite, clause, mutant))
    })
}
