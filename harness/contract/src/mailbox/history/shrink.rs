//! From a history that has no order to a few calls that have none.
//!
//! Nothing is taken away that could make a good history bad: a message goes with every mention of it,
//! an ack counts one less for each; a lease goes with its acks, with what they removed and with the
//! `null`s that it may explain; what changes nothing goes alone. A smaller history without an order is
//! therefore proof that the whole has none.

use super::act::{Act, Call, Got, Outcome, Rules};
use super::blame::Blame;
use super::boxed::{Boxed, messages};
use super::check::{Breach, Violation};
use super::linear::Evidence;
use super::spec::{State, advance, blame};
use super::wgl::{Found, Stuck, search};
use crate::mailbox::delivery::Sent;
use std::collections::{BTreeSet, HashMap, HashSet};

/// How many smaller histories are tried.
const TRIES_MAX: usize = 3_000;
/// How many steps all these searches may take.
pub(super) const STEPS_MAX: u64 = 1_000_000;
/// How long a history may be for which the clause is looked up at each try: a smaller one must break the
/// same.
const SAME_CLAUSE_CALLS_MAX: usize = 200;

/// In how many states the search for a clause believes the box at once.
const STATES_MAX: usize = 16;

/// Some calls of one box.
#[derive(Clone)]
pub(super) struct Sub {
    pub calls: Vec<Call>,
    pub of_calls: usize,
}

/// Something that can be taken away.
#[derive(Clone, PartialEq)]
enum Unit {
    Message(u64),
    Lease(String),
    Call(usize),
}

impl Sub {
    pub fn new(mut calls: Vec<Call>, of_calls: usize) -> Self {
        calls.sort_by_key(|call| call.sent.order);
        Self { calls, of_calls }
    }

    /// The calls and messages that a check named.
    pub fn of_evidence(history: &[Call], evidence: &Evidence, of_calls: usize) -> Self {
        let calls: Vec<Call> = evidence.calls.iter().map(|at| history[*at].clone()).collect();
        let others: HashSet<u64> = calls
            .iter()
            .flat_map(messages)
            .map(|m| m.seq)
            .filter(|seq| !evidence.seqs.contains(seq))
            .collect();
        let given = given(&calls);
        let calls = calls.iter().map(|call| without(call, &others, &given)).collect();
        Self::new(calls, of_calls)
    }

    /// What had been sent when the call that cannot come next was answered; what was answered later had
    /// no answer by then.
    pub fn of_stuck(history: &[Call], places: &[usize], stuck: &Stuck) -> Self {
        let end = history[stuck.next].answered.map_or(u64::MAX, |stamp| stamp.order);
        let calls = places.iter().map(|at| &history[*at]).filter(|call| call.sent.order < end);
        let calls = calls.cloned().map(|call| match call.answered {
            Some(stamp) if stamp.order > end => {
                Call { answered: None, outcome: Outcome::Unknown, ..call }
            }
            Some(_) | None => call,
        });
        Self::new(calls.collect(), places.len())
    }

    /// The smallest history that still has no order; `None` where this one has one, or where that is
    /// not to be found out in `steps`.
    pub fn shrunk(self, rules: &Rules, kind: Option<Breach>, steps: &mut u64) -> Option<Violation> {
        if !self.is_bad(rules, steps) {
            return None;
        }
        let mut shrinking = Shrinking { sub: self, rules, steps, tries: 0, clause: None };
        shrinking.run();
        Some(shrinking.sub.violation(rules, kind))
    }

    fn is_bad(&self, rules: &Rules, steps: &mut u64) -> bool {
        matches!(search(&mut self.boxed(rules), steps), Found::Stuck(_))
    }

    fn boxed(&self, rules: &Rules) -> Boxed {
        let places: Vec<usize> = (0..self.calls.len()).collect();
        Boxed::new(&self.calls, &places, rules)
    }

    /// The longest order, the call that cannot come next, and the clause that it breaks.
    pub fn explained(&self, rules: &Rules) -> (Vec<usize>, usize, Blame) {
        let mut steps = STEPS_MAX;
        let (order, next) = match search(&mut self.boxed(rules), &mut steps) {
            Found::Stuck(Stuck { order, next }) => (order, next),
            Found::Order | Found::TooMuch => (Vec::new(), 0),
        };
        let mut states = vec![State::new(rules.clone())];
        for at in &order {
            let mut stepped = advance(&states, &self.calls[*at]);
            stepped.truncate(STATES_MAX);
            if !stepped.is_empty() {
                states = stepped;
            }
        }
        let blame = blame(&states, &self.calls[next]);
        (order, next, blame)
    }
}

struct Shrinking<'a> {
    sub: Sub,
    rules: &'a Rules,
    steps: &'a mut u64,
    tries: usize,
    /// The clause that every smaller history must break too.
    clause: Option<&'static str>,
}

impl Shrinking<'_> {
    fn run(&mut self) {
        loop {
            let before = self.size();
            let units = self.sub.units(self.rules);
            let mut chunk = units.len().div_ceil(2).max(1);
            loop {
                self.pass(chunk);
                if chunk == 1 {
                    break;
                }
                chunk = chunk.div_ceil(2);
            }
            if self.size() == before || self.tries >= TRIES_MAX {
                break;
            }
        }
        self.without_the_unanswered();
    }

    fn size(&self) -> (usize, usize) {
        let shown = self.sub.calls.iter().map(|call| messages(call).len()).sum();
        (self.sub.calls.len(), shown)
    }

    /// Tries to do without each stretch of `chunk` units, from the front.
    fn pass(&mut self, chunk: usize) {
        let mut at = 0;
        loop {
            let units = self.sub.units(self.rules);
            let Some(some) = units.get(at..(at + chunk).min(units.len())).filter(|s| !s.is_empty())
            else {
                return;
            };
            if self.tries >= TRIES_MAX || *self.steps == 0 {
                return;
            }
            self.tries += 1;
            let smaller = self.sub.doing_without(some);
            match smaller.filter(|smaller| smaller.calls.len() < self.sub.calls.len() || chunk == 1)
            {
                Some(smaller) if self.is_as_bad(&smaller) => self.sub = smaller,
                Some(_) | None => at += chunk,
            }
        }
    }

    fn is_as_bad(&mut self, smaller: &Sub) -> bool {
        if smaller.calls.is_empty() || !smaller.is_bad(self.rules, self.steps) {
            return false;
        }
        if self.sub.calls.len() > SAME_CLAUSE_CALLS_MAX {
            return true;
        }
        let sub = &self.sub;
        let clause = *self.clause.get_or_insert_with(|| sub.explained(self.rules).2.clause);
        smaller.explained(self.rules).2.clause == clause
    }

    /// Calls without an answer explain nothing in a history that has no order in spite of them.
    fn without_the_unanswered(&mut self) {
        let calls = self.sub.calls.iter().filter(|call| call.outcome != Outcome::Unknown);
        let answered = Sub { calls: calls.cloned().collect(), of_calls: self.sub.of_calls };
        if self.is_as_bad(&answered) {
            self.sub = answered;
        }
    }
}

/// What each lease was given first, and to whom.
fn given(calls: &[Call]) -> HashMap<String, Vec<Sent>> {
    let mut given = HashMap::new();
    for call in calls {
        if let Outcome::Ok(Got::Delivery { lease, messages }) = &call.outcome {
            given.entry(lease.clone()).or_insert_with(|| messages.clone());
        }
    }
    given
}

/// The lease that a call names or was given.
fn lease_of(call: &Call) -> Option<&str> {
    match (&call.act, &call.outcome) {
        (Act::Claim { .. }, Outcome::Ok(Got::Delivery { lease, .. }))
        | (Act::Ack { lease, .. } | Act::Release { lease, .. } | Act::Renew { lease, .. }, _) => {
            Some(lease)
        }
        _ => None,
    }
}

/// What an ack that counted anything removed.
fn removed<'a>(
    call: &Call,
    given: &'a HashMap<String, Vec<Sent>>,
) -> impl Iterator<Item = u64> + use<'a> {
    let (lease, limit) = match (&call.act, &call.outcome) {
        (Act::Ack { lease, up_to, .. }, Outcome::Ok(Got::Count(count))) if *count > 0.0 => {
            (given.get(lease), *up_to)
        }
        _ => (None, 0),
    };
    lease.into_iter().flatten().map(|m| m.seq).filter(move |seq| *seq <= limit)
}

/// The call without any mention of `gone`.
fn without(call: &Call, gone: &HashSet<u64>, given: &HashMap<String, Vec<Sent>>) -> Call {
    let mut call = call.clone();
    let went = removed(&call, given).filter(|seq| gone.contains(seq)).count();
    match &mut call.outcome {
        Outcome::Ok(Got::Delivery { messages, .. } | Got::Messages(messages)) => {
            messages.retain(|m| !gone.contains(&m.seq));
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of messages are far below 2^53")]
        Outcome::Ok(Got::Count(count)) => *count -= went as f64,
        Outcome::Ok(Got::Seq(_) | Got::Null | Got::Done)
        | Outcome::Refused(_)
        | Outcome::Unknown => {}
    }
    call
}

impl Sub {
    /// What can be taken away, by the time at which it came.
    fn units(&self, rules: &Rules) -> Vec<Unit> {
        let mut units = Vec::new();
        let mut leases: BTreeSet<&str> = BTreeSet::new();
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        for (at, call) in self.calls.iter().enumerate() {
            if let Outcome::Ok(Got::Seq(seq)) = call.outcome
                && seen.insert(seq)
            {
                units.push(Unit::Message(seq));
            }
            if let Outcome::Ok(Got::Delivery { lease, .. }) = &call.outcome
                && leases.insert(lease)
            {
                units.push(Unit::Lease(lease.clone()));
            }
            let orphans = messages(call).iter().filter(|m| seen.insert(m.seq));
            units.extend(orphans.map(|m| Unit::Message(m.seq)));
            if self.changes_nothing(call, rules) {
                units.push(Unit::Call(at));
            }
        }
        units
    }

    /// Whether the history stays as good without that one call.
    fn changes_nothing(&self, call: &Call, rules: &Rules) -> bool {
        match (&call.act, &call.outcome) {
            (Act::Peek | Act::Reap, _) | (_, Outcome::Refused(_)) => true,
            (Act::Claim { owner, .. }, Outcome::Ok(Got::Null)) => {
                !self.may_hold(owner, call, rules)
            }
            _ => false,
        }
    }

    /// Whether the owner may hold a lease during the call: then its expiry may have moved by it.
    fn may_hold(&self, owner: &str, call: &Call, rules: &Rules) -> bool {
        let until = call.answered.map_or(u64::MAX, |stamp| stamp.order);
        let earlier = |other: &&Call| other.sent.order < until && other.sent != call.sent;
        self.calls.iter().filter(earlier).any(|other| {
            let (Act::Claim { owner: by, ttl_ms, .. } | Act::Renew { owner: by, ttl_ms, .. }) =
                &other.act
            else {
                return false;
            };
            let Some(answered) = other.answered else { return by == owner };
            let end_ms = answered.ms.saturating_add(ttl_ms + rules.granularity_ms + 1);
            let ended = match &other.outcome {
                Outcome::Ok(Got::Delivery { lease, .. }) => self.has_ended(lease, call),
                Outcome::Refused(_) => true,
                Outcome::Ok(_) | Outcome::Unknown => false,
            };
            by == owner && !ended && call.sent.ms < end_ms
        })
    }

    /// Whether the lease's holder had surely ended it before the call was sent.
    fn has_ended(&self, lease: &str, call: &Call) -> bool {
        self.calls.iter().any(|other| {
            let ends = match (&other.act, &other.outcome) {
                (Act::Ack { .. }, Outcome::Ok(Got::Count(count))) => *count > 0.0,
                (Act::Release { .. }, Outcome::Ok(_)) => true,
                _ => false,
            };
            let before = other.answered.is_some_and(|stamp| stamp.order < call.sent.order);
            ends && before && lease_of(other) == Some(lease)
        })
    }

    /// The history without these units and all that goes with them; `None` where that cannot be told.
    fn doing_without(&self, units: &[Unit]) -> Option<Self> {
        let given = given(&self.calls);
        let mut gone: HashSet<u64> = HashSet::new();
        let mut leases: HashSet<&str> = HashSet::new();
        let mut out = vec![false; self.calls.len()];
        for unit in units {
            match unit {
                Unit::Message(seq) => drop(gone.insert(*seq)),
                Unit::Lease(lease) => drop(leases.insert(lease)),
                Unit::Call(at) => out[*at] = true,
            }
        }
        loop {
            let before = (gone.len(), leases.len());
            // From when on a `null` may have been the fence of a lease that goes.
            let mut fenced_from = u64::MAX;
            for (at, call) in self.calls.iter().enumerate() {
                let shown = messages(call);
                let is_empty = !shown.is_empty() && shown.iter().all(|m| gone.contains(&m.seq));
                match lease_of(call) {
                    Some(lease) if leases.contains(lease) || (is_empty && !out[at]) => {
                        leases.insert(lease);
                        out[at] = true;
                        gone.extend(removed(call, &given));
                        fenced_from = fenced_from.min(call.sent.order);
                    }
                    Some(_) | None => {}
                }
                if let Outcome::Ok(Got::Seq(seq)) = call.outcome {
                    out[at] |= gone.contains(&seq);
                }
                out[at] |= is_empty;
            }
            for (at, call) in self.calls.iter().enumerate() {
                let is_null = call.outcome == Outcome::Ok(Got::Null);
                out[at] |= is_null && call.answered.is_some_and(|stamp| stamp.order > fenced_from);
            }
            if (gone.len(), leases.len()) == before {
                break;
            }
        }
        self.left(&out, &gone, &given)
    }

    /// What is left, with drops that count no message which went. `None` where nobody can tell which.
    fn left(
        &self,
        out: &[bool],
        gone: &HashSet<u64>,
        given: &HashMap<String, Vec<Sent>>,
    ) -> Option<Self> {
        let acked: HashSet<u64> = self.calls.iter().flat_map(|call| removed(call, given)).collect();
        let mut calls: Vec<Call> = Vec::new();
        let drops: Vec<&Call> = self.calls.iter().filter(|call| call.act == Act::Drop).collect();
        let mut counted: HashMap<u64, f64> = HashMap::new();
        if !drops.is_empty() {
            for call in &self.calls {
                let Outcome::Ok(Got::Seq(seq)) = call.outcome else { continue };
                if !gone.contains(&seq) || acked.contains(&seq) {
                    continue;
                }
                let answered = call.answered?.order;
                let mut later = drops
                    .iter()
                    .filter(|drop| drop.answered.is_none_or(|stamp| stamp.order > call.sent.order));
                let Some(first) = later.next() else { continue };
                let ends = first.answered?.order;
                if answered > first.sent.order || later.any(|other| other.sent.order < ends) {
                    return None;
                }
                *counted.entry(first.sent.order).or_default() += 1.0;
            }
        }
        for (call, out) in self.calls.iter().zip(out) {
            if *out {
                continue;
            }
            let mut call = without(call, gone, given);
            if let (Act::Drop, Outcome::Ok(Got::Count(count))) = (&call.act, &mut call.outcome) {
                *count -= counted.get(&call.sent.order).copied().unwrap_or(0.0);
            }
            calls.push(call);
        }
        Some(Self { calls, of_calls: self.of_calls })
    }
}
