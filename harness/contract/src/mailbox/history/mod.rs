//! Histories: what concurrent callers asked of a mailbox and were answered, and whether the contract
//! allows it.
//!
//! A [`Call`] is one call with its answer. The contract is a relation ([`State::step`]): whatever it
//! leaves open is open here. One caller's calls are judged one after the other, by carrying the set of
//! possible states along; those of many are judged by searching for an order that the relation allows.

mod act;
mod blame;
mod boxed;
mod check;
mod lanes;
mod linear;
mod reading;
mod relation;
mod shrink;
mod spec;
mod unanswered;
mod wgl;

pub use act::{Act, Call, Got, Outcome, Rules, Stamp, When};
pub use blame::Blame;
pub use check::{
    Breach, CALLS_MAX, Limits, SEARCH_STEPS_MAX, Verdict, Violation, check, is_linearizable,
};
pub use lanes::{Lanes, Row};
pub use spec::{State, advance, blame};
