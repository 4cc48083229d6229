//! Whether a concurrent history is linearizable: for every box some order of its calls, true to what
//! had really ended before what began, that the contract allows.

use super::act::{Act, Call, Got, Outcome, Rules};
use super::blame::Blame;
use super::boxed::{Boxed, messages};
use super::linear;
use super::shrink::{self, Sub};
use super::wgl::{Found, search};
use crate::mailbox::store::Address;
use std::collections::BTreeMap;

/// How many steps the search may take over all boxes, unless told otherwise: a good history takes one
/// a call.
pub const SEARCH_STEPS_MAX: u64 = 2_000_000;
/// The most calls of one history.
pub const CALLS_MAX: usize = 4_000_000;

/// How much work a verdict may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of the search, over all boxes.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: SEARCH_STEPS_MAX }
    }
}

/// What a history came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The contract allows it.
    True,
    /// It does not.
    False(Box<Violation>),
    /// Nobody knows, and why; never a pass.
    Unknown(String),
}

/// What kind of breach it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// A seq was minted twice, or not above the earlier ones.
    Minted,
    /// A body came back changed.
    Body,
    /// A message was delivered that nobody had appended.
    Ghost,
    /// Messages came out of order.
    Order,
    /// A message was delivered after its ack.
    Again,
    /// A message was delivered after its box was dropped.
    Dropped,
    /// A message was lost, or held back without a fence.
    Lost,
    /// Two leases lived at once, or one ended before its time.
    Fence,
    /// A lease id was given twice.
    LeaseTwice,
    /// Somebody who did not hold the live lease ended or prolonged it.
    Taken,
    /// A call counted wrongly.
    Count,
    /// A call was refused that had to be carried out.
    Refused,
    /// Anything else that no order explains.
    Other,
}

impl Breach {
    /// The word that reports use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Minted => "minted",
            Self::Body => "body",
            Self::Ghost => "ghost",
            Self::Order => "order",
            Self::Again => "again",
            Self::Dropped => "dropped",
            Self::Lost => "lost",
            Self::Fence => "fence",
            Self::LeaseTwice => "lease-twice",
            Self::Taken => "taken",
            Self::Count => "count",
            Self::Refused => "refused",
            Self::Other => "other",
        }
    }

    /// The kind of a breach that the search found, by the clause and the call that it stuck at.
    fn of(clause: &str, call: &Call) -> Self {
        if matches!(call.outcome, Outcome::Refused(_)) {
            return Self::Refused;
        }
        if matches!(call.outcome, Outcome::Ok(Got::Count(_))) && !clause.contains("/ownership/") {
            return Self::Count;
        }
        match clause.rsplit('/').next().unwrap_or_default() {
            "seq-increases" | "seq-never-reused" => Self::Minted,
            "body-fidelity" => Self::Body,
            "ack-removes" => Self::Again,
            "drop-empties" => Self::Dropped,
            "claim-fences" | "one-live-lease" | "lease-lives-to-expiry" => Self::Fence,
            "fifo" | "ack-partial" | "expiry-redelivers" | "no-ghost-lease" => Self::Lost,
            _ if clause.contains("/ownership/") => Self::Taken,
            _ => Self::Other,
        }
    }
}

/// A history that the contract forbids, made small.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// What kind of breach it is.
    pub kind: Breach,
    /// The calls that cannot stand together, by the order of their sending. They are calls of the
    /// history; of messages that do not matter their deliveries show nothing and their acks count none.
    pub calls: Vec<Call>,
    /// The longest order in which the contract allows some of `calls`, by their places.
    pub order: Vec<usize>,
    /// The place of the call that had to come next and cannot.
    pub bad: usize,
    /// Which clause that breaks.
    pub blame: Blame,
    /// How many calls the box's whole history had.
    pub of_calls: usize,
}

/// Judges a history of any number of boxes. A reap is part of every box's history, but says nothing.
#[must_use]
pub fn check(history: &[Call], rules: &Rules, limits: &Limits) -> Verdict {
    if let Some(why) = malformed(history) {
        return Verdict::Unknown(why);
    }
    let is_refused_reap =
        |call: &&Call| call.act == Act::Reap && matches!(call.outcome, Outcome::Refused(_));
    if let Some(reap) = history.iter().find(is_refused_reap) {
        let sub = Sub::new(vec![reap.clone()], history.len());
        return Verdict::False(Box::new(sub.violation(rules, Some(Breach::Refused))));
    }
    if let Some([first, second]) = linear::lease_twice(history) {
        return Verdict::False(Box::new(lease_twice(history, first, second)));
    }
    let mut steps = limits.steps;
    let mut unknown = None;
    for places in boxes(history).values() {
        match check_box(history, places, rules, &mut steps) {
            Verdict::True => {}
            Verdict::Unknown(why) => unknown = Some(why),
            Verdict::False(violation) => return Verdict::False(violation),
        }
    }
    unknown.map_or(Verdict::True, Verdict::Unknown)
}

/// Judges by the search alone, without the checks that need none and without a small example; for
/// tests of the one against the other. `None` where it would take more than `limits` allows.
#[must_use]
pub fn is_linearizable(history: &[Call], rules: &Rules, limits: &Limits) -> Option<bool> {
    let mut steps = limits.steps;
    for places in boxes(history).values() {
        match search(&mut Boxed::new(history, places, rules), &mut steps) {
            Found::Order => {}
            Found::Stuck(_) => return Some(false),
            Found::TooMuch => return None,
        }
    }
    Some(linear::lease_twice(history).is_none())
}

fn boxes(history: &[Call]) -> BTreeMap<&Address, Vec<usize>> {
    let mut boxes: BTreeMap<&Address, Vec<usize>> = BTreeMap::new();
    for (place, call) in history.iter().enumerate() {
        if call.act != Act::Reap {
            boxes.entry(&call.of).or_default().push(place);
        }
    }
    boxes
}

fn malformed(history: &[Call]) -> Option<String> {
    if history.len() > CALLS_MAX {
        return Some(format!("{} calls are more than {CALLS_MAX}", history.len()));
    }
    history.iter().enumerate().find_map(|(place, call)| {
        let known = call.outcome != Outcome::Unknown;
        match call.answered {
            None if known => Some(format!("call {place} has an answer without its time")),
            Some(_) if !known => Some(format!("call {place} has a time without its answer")),
            Some(answered) if answered.order <= call.sent.order => {
                Some(format!("call {place} was answered before it was sent"))
            }
            Some(_) | None => None,
        }
    })
}

fn check_box(history: &[Call], places: &[usize], rules: &Rules, steps: &mut u64) -> Verdict {
    if let Some(evidence) = linear::breach(history, places, rules) {
        let sub = Sub::of_evidence(history, &evidence, places.len());
        // What a check says is only believed where the search, on these few calls, says the same.
        if let Some(violation) = sub.shrunk(rules, Some(evidence.breach), steps) {
            return Verdict::False(Box::new(violation));
        }
    }
    match search(&mut Boxed::new(history, places, rules), steps) {
        Found::Order => Verdict::True,
        Found::TooMuch => Verdict::Unknown(format!(
            "the search for an order of the {} calls on {} took more steps than it may",
            places.len(),
            history[places[0]].of
        )),
        Found::Stuck(stuck) => {
            let sub = Sub::of_stuck(history, places, &stuck);
            let whole =
                || Sub::new(places.iter().map(|at| history[*at].clone()).collect(), places.len());
            // The search said that there is no order; a violation without a small example is one too.
            let mut left = shrink::STEPS_MAX;
            let violation = sub
                .shrunk(rules, None, &mut left)
                .or_else(|| whole().shrunk(rules, None, &mut left))
                .unwrap_or_else(|| whole().violation(rules, None));
            Verdict::False(Box::new(violation))
        }
    }
}

impl Sub {
    /// The calls as they are, with the order that they stick in and the clause that this breaks.
    pub(super) fn violation(self, rules: &Rules, kind: Option<Breach>) -> Violation {
        let (order, bad, blame) = self.explained(rules);
        let of_calls = self.of_calls;
        let kind = kind.unwrap_or_else(|| Breach::of(blame.clause, &self.calls[bad]));
        Violation { kind, calls: self.calls, order, bad, blame, of_calls }
    }
}

/// Claims on two boxes that were given one lease, with what was appended there.
fn lease_twice(history: &[Call], first: usize, second: usize) -> Violation {
    let mut calls: Vec<Call> = Vec::new();
    for place in [first, second] {
        let claim = &history[place];
        let of_it = |call: &&Call| {
            let appended = |seq| messages(claim).iter().any(|m| m.seq == seq);
            call.of == claim.of
                && matches!(call.outcome, Outcome::Ok(Got::Seq(seq)) if appended(seq))
        };
        calls.extend(history.iter().filter(of_it).cloned());
        calls.push(claim.clone());
    }
    calls.sort_by_key(|call| call.sent.order);
    let last = |of: &Call| calls.iter().position(|call| call == of);
    let bad = last(&history[second]).unwrap_or(0);
    let blame = Blame {
        clause: "mailbox/ownership/double-ack",
        promised: "a lease id is never given twice in the life of the storage".to_owned(),
        seen: format!(
            "{} on {} was answered {}, and {} on {} {}",
            history[first].asked(),
            history[first].of,
            history[first].came(),
            history[second].asked(),
            history[second].of,
            history[second].came()
        ),
    };
    let order = (0..calls.len()).filter(|at| *at != bad).collect();
    Violation { kind: Breach::LeaseTwice, calls, order, bad, blame, of_calls: history.len() }
}
