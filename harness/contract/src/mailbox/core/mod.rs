//! `mailbox/core`: what every mailbox owes; nothing in it can be opted out of.

use crate::backend::Capability;
use crate::suite::{Suite, Tier};

mod ack_partial;
mod ack_removes;
mod append_under_lease;
mod body_fidelity;
mod claim_fences;
mod close;
mod drop_empties;
mod empty_claim_null;
mod expiry_redelivers;
mod expiry_under_polling;
mod fifo;
mod handles_independent;
mod invalid_input;
mod lease_from_claim;
mod lease_lives_to_expiry;
mod max_is_prefix;
mod no_ghost_lease;
mod one_live_lease;
mod peek_inert;
mod reap_harmless;
mod release;
mod renew;
mod reopen;
mod seq_increases;
mod seq_never_reused;

/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/core",
    tier: Tier::T1,
    about: "what every mailbox store owes its senders and consumers, whatever else it can do",
    needs: &[Capability::Mailbox],
    ceiling: "one process, one call at a time: nothing here speaks of concurrency, power loss, or names and bodies beyond those sent",
    clauses: &[
        &empty_claim_null::CLAUSE,
        &no_ghost_lease::CLAUSE,
        &seq_increases::CLAUSE,
        &fifo::CLAUSE,
        &body_fidelity::CLAUSE,
        &claim_fences::CLAUSE,
        &one_live_lease::CLAUSE,
        &append_under_lease::CLAUSE,
        &ack_removes::CLAUSE,
        &ack_partial::CLAUSE,
        &max_is_prefix::CLAUSE,
        &expiry_redelivers::CLAUSE,
        &lease_lives_to_expiry::CLAUSE,
        &lease_from_claim::CLAUSE,
        &expiry_under_polling::CLAUSE,
        &handles_independent::CLAUSE,
        &reap_harmless::CLAUSE,
        &drop_empties::CLAUSE,
        &seq_never_reused::CLAUSE,
        &reopen::CLAUSE,
        &close::CLAUSE,
        &invalid_input::CLAUSE,
        &peek_inert::CLAUSE,
        &release::CLAUSE,
        &renew::CLAUSE,
    ],
};
