//! `mailbox/ownership`: only the holder of a live lease acks, and only what that lease delivered.

use crate::backend::Capability;
use crate::suite::{Suite, Tier};

mod ack_after_drop;
mod double_ack;
mod foreign_ack;
mod no_lease_ack;
mod over_reach;
mod stale_ack_after_reclaim;
mod stale_ack_unclaimed;
mod up_to_below;
mod wrong_box_ack;

/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/ownership",
    tier: Tier::T1,
    about: "who may ack what: the holder of a live lease, and only what that lease delivered",
    needs: &[Capability::Mailbox],
    ceiling: "owners are told apart by the words they use; nothing here authenticates anybody, and nothing here speaks of two processes",
    clauses: &[
        &foreign_ack::CLAUSE,
        &stale_ack_after_reclaim::CLAUSE,
        &stale_ack_unclaimed::CLAUSE,
        &double_ack::CLAUSE,
        &wrong_box_ack::CLAUSE,
        &over_reach::CLAUSE,
        &no_lease_ack::CLAUSE,
        &ack_after_drop::CLAUSE,
        &up_to_below::CLAUSE,
    ],
};
