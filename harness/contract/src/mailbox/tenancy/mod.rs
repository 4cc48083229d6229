//! stub
use crate::suite::{Suite, Tier};
/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/tenancy",
    tier: Tier::T2,
    about: "",
    needs: &[],
    ceiling: "",
    clauses: &[],
};
