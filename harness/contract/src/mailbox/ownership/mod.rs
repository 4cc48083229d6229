//! stub
use crate::suite::{Suite, Tier};
/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/ownership",
    tier: Tier::T2,
    about: "",
    needs: &[],
    ceiling: "",
    clauses: &[],
};
