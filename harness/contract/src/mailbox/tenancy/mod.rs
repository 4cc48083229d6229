//! `mailbox/tenancy`: what a store owes that keeps its tenants apart.

use crate::backend::Capability;
use crate::suite::{Suite, Tier};

mod drop_isolated;
mod keys_injective;
mod no_escape;
mod reap_isolated;
mod scopes_isolated;

/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/tenancy",
    tier: Tier::T2,
    about: "what a store that keeps scopes apart owes each tenant against the others, and every name against names like it",
    needs: &[Capability::Mailbox, Capability::Tenancy],
    ceiling: "the names sent, not all names; nothing here speaks of access rights, of load that one tenant puts on another, or of files that no snare points at",
    clauses: &[
        &scopes_isolated::CLAUSE,
        &drop_isolated::CLAUSE,
        &reap_isolated::CLAUSE,
        &keys_injective::CLAUSE,
        &no_escape::CLAUSE,
    ],
};
