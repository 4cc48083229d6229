//! `mailbox/cross-process`: several processes share one storage, and one of them may die at any moment.

use crate::backend::Capability;
use crate::suite::{Suite, Tier};

mod ack_visible;
mod drop_across;
mod expiry_visible;
mod foreign_ack_across;
mod kill_holding_lease;
mod kill_mid_append;
mod kill_mid_reap;
mod lease_exclusion;
mod not_blocked_by_the_dead;
mod reap_keeps_peer_appends;
mod reap_seq_across;
mod reopen_across;
mod single_mint;
mod warm_cache;

/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/cross-process",
    tier: Tier::T2,
    about: "two processes on one storage: what one did the other sees, and what a killed one was promised stands",
    needs: &[Capability::Mailbox, Capability::CrossProcessSafe],
    ceiling: "kill -9 takes a process, never the machine: what was written and not synced is not lost here; kills and races are drawn at random, so a pass says that none of so many found anything",
    clauses: &[
        &single_mint::CLAUSE,
        &warm_cache::CLAUSE,
        &lease_exclusion::CLAUSE,
        &foreign_ack_across::CLAUSE,
        &ack_visible::CLAUSE,
        &expiry_visible::CLAUSE,
        &reap_keeps_peer_appends::CLAUSE,
        &drop_across::CLAUSE,
        &reap_seq_across::CLAUSE,
        &reopen_across::CLAUSE,
        &kill_mid_append::CLAUSE,
        &kill_mid_reap::CLAUSE,
        &kill_holding_lease::CLAUSE,
        &not_blocked_by_the_dead::CLAUSE,
    ],
};
