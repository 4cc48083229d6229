//! Wrong stores of the registry that exploring cannot see, and why: what it never asks, it never finds.

use storeproof_contract::clause::{Clause, Mutant};
use storeproof_contract::suite::{Suite, mutants};

/// Suites and clauses of whose wrong stores none is looked for.
const ABOUT: [(&str, &str); 4] = [
    ("mailbox/tenancy", "all boxes lie in one scope, under names of T1's alphabet"),
    ("mailbox/tombstone", "no recipient is tombstoned"),
    ("mailbox/core/close", "nothing is asked of a closed store"),
    ("mailbox/core/invalid-input", "nothing invalid is asked"),
];
const BODIES: &str = "bodies are short printable ASCII texts";
const OWNERS: &str = "owners have names of T1's alphabet";
const KILLS: &str = "no process is killed";
/// Wrong stores by name.
const NAMED: [(&str, &str); 28] = [
    ("cuts-at-nul", BODIES),
    ("composes-accents", BODIES),
    ("drops-null-members", BODIES),
    ("drops-proto-key", BODIES),
    ("mangles-astral", BODIES),
    ("rounds-numbers", BODIES),
    ("cuts-long-strings", BODIES),
    ("flattens-deep-bodies", BODIES),
    ("empty-becomes-null", BODIES),
    ("strips-byte-order-marks", BODIES),
    ("keeps-ten-digits", BODIES),
    ("huge-numbers-become-null", BODIES),
    ("drops-falsy-members", BODIES),
    ("nests-dotted-keys", BODIES),
    ("drops-dollar-keys", BODIES),
    ("composes-keys", BODIES),
    ("cuts-keys-at-nul", BODIES),
    ("replaces-noncharacters", BODIES),
    ("cuts-long-arrays", BODIES),
    ("swaps-long-chunks", BODIES),
    ("tears-wide-characters", BODIES),
    ("peek-drops-nulls", BODIES),
    ("redelivery-drops-nulls", BODIES),
    ("reopen-drops-nulls", BODIES),
    ("reopen-writes-ascii", BODIES),
    ("open-wipes-another-store", "one storage is open at a time"),
    ("renew-takes-ttls-below-zero", "nothing invalid is asked"),
    ("empty-lease-id-acks-any", "no lease id is empty"),
];
/// More of them.
const NAMED_TOO: [(&str, &str); 6] = [
    ("owner-in-any-case", OWNERS),
    ("owner-trimmed", OWNERS),
    ("empty-owner-acks-for-anybody", OWNERS),
    ("empty-owner-passes-the-fence", OWNERS),
    ("lease-without-end-at-first", KILLS),
    ("lock-outlives-its-owner", KILLS),
];

/// Why exploring cannot see this wrong store; `None` where it can.
#[must_use]
pub fn unseen(suite: &Suite, clause: &Clause, mutant: &Mutant) -> Option<&'static str> {
    let id = suite.clause_id(clause);
    let about = ABOUT.iter().find(|(about, _)| *about == suite.id || *about == id);
    let named = || NAMED.iter().chain(&NAMED_TOO).find(|(name, _)| *name == mutant.name);
    about.or_else(named).map(|(_, why)| *why)
}

/// The wrong stores that exploring is held to find.
pub fn seen() -> impl Iterator<Item = (&'static Suite, &'static Clause, &'static Mutant)> {
    mutants().filter(|(suite, clause, mutant)| unseen(suite, clause, mutant).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exception_names_something_of_the_registry() {
        for (about, _) in ABOUT {
            assert!(mutants().any(|(s, c, _)| s.id == about || s.clause_id(c) == about), "{about}");
        }
        for (name, _) in NAMED.iter().chain(&NAMED_TOO) {
            assert!(mutants().any(|(.., mutant)| mutant.name == *name), "{name}");
        }
    }
}
