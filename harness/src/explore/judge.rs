//! The verdict on a script's calls: one after the other by the states that the contract allows, and
//! where calls overlapped, by the search for an order.

use std::collections::BTreeMap;
use storeproof_contract::mailbox::history::{
    Act, Call, Got, Outcome, Rules, State, advance, blame,
};
use storeproof_contract::mailbox::store::Address;

/// An answer that the contract forbids.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The published clause.
    pub clause: String,
    /// What kind of answer broke it: see [`kind_of`].
    pub kind: String,
    /// What the contract promises there.
    pub promised: String,
    /// What was seen.
    pub seen: String,
    /// A drawing of the calls that cannot stand together, where they overlapped.
    pub drawing: Option<String>,
}

impl Violation {
    /// Whether the other one is the same finding: the same clause, broken by the same kind of answer.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.clause == other.clause && self.kind == other.kind
    }
}

/// Carries the states of each box along.
#[derive(Clone, Debug)]
pub struct Judge {
    rules: Rules,
    boxes: BTreeMap<Address, Vec<State>>,
    /// On which box each lease was given.
    leases: BTreeMap<String, Address>,
}

impl Judge {
    /// An empty storage.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, boxes: BTreeMap::new(), leases: BTreeMap::new() }
    }

    /// Takes a call that ended before the next one begins.
    ///
    /// # Errors
    /// The violation, where no state allows its answer.
    pub fn see(&mut self, call: &Call) -> Result<(), Violation> {
        if let Outcome::Ok(Got::Delivery { lease, .. }) = &call.outcome {
            let known = self.leases.entry(lease.clone()).or_insert_with(|| call.of.clone());
            if *known != call.of {
                return Err(Violation {
                    clause: "mailbox/ownership/double-ack".to_owned(),
                    kind: kind_of(call),
                    promised: "a lease id is never given twice in the life of the storage".into(),
                    seen: format!(
                        "{} on {} was answered {}, a lease that was given on {known} before",
                        call.asked(),
                        call.of,
                        call.came()
                    ),
                    drawing: None,
                });
            }
        }
        let fresh = || vec![State::new(self.rules.clone())];
        let states = self.boxes.entry(call.of.clone()).or_insert_with(fresh);
        let next = advance(states, call);
        if next.is_empty() {
            let blame = blame(states, call);
            return Err(Violation {
                clause: blame.clause.to_owned(),
                kind: kind_of(call),
                promised: blame.promised,
                seen: format!("on {}: {}", call.of, blame.seen),
                drawing: None,
            });
        }
        *states = next;
        Ok(())
    }
}

/// The kind of an answer: what was asked, and in a word what came.
#[must_use]
pub fn kind_of(call: &Call) -> String {
    let asked = match &call.act {
        Act::Append { .. } => "append",
        Act::Claim { .. } => "claim",
        Act::Ack { .. } => "ack",
        Act::Release { .. } => "release",
        Act::Renew { .. } => "renew",
        Act::Peek => "peek",
        Act::Drop => "drop",
        Act::Reap => "reap",
    };
    let came = match &call.outcome {
        Outcome::Ok(Got::Seq(_)) => "receipt",
        Outcome::Ok(Got::Null) => "null",
        Outcome::Ok(Got::Delivery { .. }) => "delivery",
        Outcome::Ok(Got::Count(_)) => "count",
        Outcome::Ok(Got::Done) => "done",
        Outcome::Ok(Got::Messages(_)) => "messages",
        Outcome::Refused(_) => "refusal",
        Outcome::Unknown => "silence",
    };
    format!("{asked}/{came}")
}
