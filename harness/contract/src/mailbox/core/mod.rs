//! `mailbox/core`: what every mailbox owes; nothing in it can be opted out of.

use crate::backend::Capability;
use crate::suite::{Suite, Tier};

mod empty_claim_null;

/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/core",
    tier: Tier::T1,
    about: "what every mailbox store owes its senders and consumers, whatever else it can do",
    needs: &[Capability::Mailbox],
    ceiling: "one process, one call at a time: nothing here speaks of concurrency, power loss, or names and bodies beyond those sent",
    clauses: &[&empty_claim_null::CLAUSE],
};
