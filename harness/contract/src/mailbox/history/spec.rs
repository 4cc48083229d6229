//! The contract for one caller: the states that one box may be in, one answered call after another.
//!
//! ```
//! use storeproof_contract::backend::Clock;
//! use storeproof_contract::mailbox::history::{Rules, State, advance};
//!
//! let mut states = vec![State::new(Rules::new(Clock::Caller, 1))];
//! let calls: Vec<storeproof_contract::mailbox::history::Call> = Vec::new();
//! for call in &calls {
//!     states = advance(&states, call);
//!     assert!(!states.is_empty(), "no state allows this answer: see `blame`");
//! }
//! ```

use super::act::{Act, Call, Got, Outcome, Rules};
use super::blame::{Blame, Past, blame_for};
use super::reading::Reader;
use super::relation::{Core, Kind, Maybe, Op};
use super::unanswered::Way;
use crate::json::{Json, same};
use crate::mailbox::delivery::Sent;
use crate::mailbox::store::SEQ_MAX;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most states in which one answer is explained by calls without an answer.
const EXPLAINING_STEPS_MAX: u64 = 20_000;

/// One state that the contract allows a box to be in, after the calls so far. A new box is empty.
///
/// Calls must come one after the other, each answered before the next is sent; only those without an
/// answer may still happen later. [`Call::of`] is not looked at: one box, one state.
#[derive(Clone, Debug)]
pub struct State {
    core: Core,
    reader: Arc<Reader>,
    bodies: Arc<BTreeMap<u64, Json>>,
    /// Calls without an answer that have not happened so far.
    open: Vec<Open>,
    /// A message that nobody has seen yet has a higher seq than this.
    floor: u64,
    undecided: bool,
    pub(super) past: Past,
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq)]
struct Open {
    op: Op,
    /// For an append: the highest seq that was known when it was sent.
    floor: u64,
}

/// Why an answer cannot be taken, whatever else the state holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Odd {
    /// A receipt out of 1..2^53-1.
    Range(u64),
    /// A receipt that does not rise.
    NotAbove(u64),
    /// A message with another body than was appended.
    Body(Sent),
    /// A message that nobody can have appended.
    Nowhere(Sent),
}

impl State {
    /// An empty box without a lease.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            core: Core::default(),
            reader: Arc::new(Reader::new(rules)),
            bodies: Arc::default(),
            open: Vec::new(),
            floor: 0,
            undecided: false,
            past: Past::default(),
        }
    }

    /// Every state that the contract allows after this answer; none where it forbids the answer here.
    #[must_use]
    pub fn step(&self, call: &Call) -> Vec<Self> {
        if self.undecided {
            return vec![self.clone()];
        }
        if call.outcome == Outcome::Unknown {
            return vec![self.left_open(call)];
        }
        let mut found: Vec<Self> = Vec::new();
        for mut world in self.learned(call).unwrap_or_default() {
            let op = world.read(call);
            for next in world.explained(&op, call) {
                if !found.iter().any(|known| known.is_same(&next)) {
                    found.push(next);
                }
            }
        }
        found
    }

    /// How many messages the box holds in this state, those without an answer left aside.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        u64::from(self.core.waiting())
    }

    /// Whether too many calls had no answer to tell what may have happened: from then on every answer is
    /// allowed and none is judged, so that whoever carries this state has no verdict.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.undecided
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The call in the ledger's terms.
    pub(super) fn read(&mut self, call: &Call) -> Op {
        Arc::make_mut(&mut self.reader).read(call)
    }

    /// The messages that wait or are leased, those that nobody has seen left aside.
    pub(super) fn waiting_messages(&self) -> Vec<Sent> {
        let (gone, last) = (self.core.gone as usize, self.core.last as usize);
        let seqs = self.reader.ledger.seqs.get(gone..last).unwrap_or_default();
        let body = |seq: &u64| self.bodies.get(seq).cloned().unwrap_or_default();
        seqs.iter().map(|seq| Sent { seq: *seq, body: body(seq) }).collect()
    }

    /// Notes a call that may happen later.
    fn left_open(&self, call: &Call) -> Self {
        let mut next = self.clone();
        let op = next.read(call);
        if op.kind != Kind::Nothing {
            let floor = next.reader.ledger.seqs.last().copied().unwrap_or(0);
            next.open.push(Open { op, floor });
        }
        next
    }

    /// The states that know every seq which `call` shows; why there are none otherwise.
    pub(super) fn learned(&self, call: &Call) -> Result<Vec<Self>, Odd> {
        match (&call.act, &call.outcome) {
            (Act::Append { body }, Outcome::Ok(Got::Seq(seq))) => {
                if !(1..=SEQ_MAX).contains(seq) {
                    return Err(Odd::Range(*seq));
                }
                if self.reader.ledger.seqs.last().is_some_and(|last| last >= seq) {
                    return Err(Odd::NotAbove(*seq));
                }
                let mut next = self.clone();
                Arc::make_mut(&mut next.reader).ledger.seqs.push(*seq);
                Arc::make_mut(&mut next.bodies).insert(*seq, body.clone());
                Ok(vec![next])
            }
            (_, Outcome::Ok(Got::Delivery { messages, .. } | Got::Messages(messages))) => {
                let mut worlds = vec![self.clone()];
                for message in messages {
                    let mut next: Vec<Self> = Vec::new();
                    let mut why = Odd::Nowhere(message.clone());
                    for world in worlds {
                        match world.told(message) {
                            Ok(told) => next.extend(told),
                            Err(odd) => why = odd,
                        }
                    }
                    if next.is_empty() {
                        return Err(why);
                    }
                    worlds = next;
                }
                Ok(worlds)
            }
            (_, Outcome::Ok(_) | Outcome::Refused(_) | Outcome::Unknown) => Ok(vec![self.clone()]),
        }
    }

    /// The states that know this message: as what was appended, or as an append without an answer.
    fn told(mut self, message: &Sent) -> Result<Vec<Self>, Odd> {
        match self.bodies.get(&message.seq) {
            Some(body) if same(body, &message.body) => return Ok(vec![self]),
            Some(_) => return Err(Odd::Body(message.clone())),
            None => {}
        }
        let body = Arc::make_mut(&mut self.reader).body(&message.body);
        let at = self.reader.ledger.count_to(message.seq);
        let mut tried: Vec<u64> = Vec::new();
        let mut found = Vec::new();
        for (place, open) in self.open.iter().enumerate() {
            let is_it = open.op.kind == Kind::Maybe(Maybe::Append { body })
                && message.seq > open.floor.max(self.floor)
                && message.seq <= SEQ_MAX;
            if !is_it || tried.contains(&open.floor) {
                continue;
            }
            tried.push(open.floor);
            let mut next = self.clone();
            let ledger = &mut Arc::make_mut(&mut next.reader).ledger;
            ledger.seqs.insert(at as usize, message.seq);
            ledger.orphans.insert(message.seq, body);
            Arc::make_mut(&mut next.bodies).insert(message.seq, message.body.clone());
            if at < next.core.last {
                // It had happened before a later append; one at the end happens when it is needed.
                next.core.last += 1;
                next.open.remove(place);
                if let Some(held) = &mut next.core.lease
                    && held.upto > at
                {
                    held.upto += 1;
                }
                found.push(next);
            } else {
                return Ok(vec![next]);
            }
        }
        if found.is_empty() { Err(Odd::Nowhere(message.clone())) } else { Ok(found) }
    }

    /// The states after `op`, which shows nothing that the ledger does not know.
    fn explained(&self, op: &Op, call: &Call) -> Vec<Self> {
        let maybes: Vec<Op> = self.open.iter().map(|open| open.op).collect();
        let (all, before, mut steps) = (|_| true, op.answered.order, EXPLAINING_STEPS_MAX);
        let ways = self.reader.ledger.ways(&self.core, op, &maybes, &all, before, &mut steps);
        let Some(ways) = ways else { return vec![Self { undecided: true, ..self.clone() }] };
        ways.into_iter().map(|way| self.after(op, call, &way)).collect()
    }

    fn after(&self, op: &Op, call: &Call, way: &Way) -> Self {
        let mut next = self.clone();
        next.past.note(&self.core, &way.core, op);
        next.core = way.core;
        let mut used = way.used.clone();
        used.sort_unstable();
        for at in used.into_iter().rev() {
            next.open.remove(at as usize);
        }
        Arc::make_mut(&mut next.reader).ledger.happened(op);
        next.floor = next.floor.max(next.accounted(op, call));
        next
    }

    /// Up to which seq this answer shows everything that the box holds or ever held.
    fn accounted(&self, op: &Op, call: &Call) -> u64 {
        let seqs = &self.reader.ledger.seqs;
        let seq_before = |count: u32| match count {
            0 => 0,
            _ => seqs.get(count as usize - 1).copied().unwrap_or(0),
        };
        let shown = match (&op.kind, &call.outcome) {
            (Kind::Delivery { .. }, Outcome::Ok(Got::Delivery { messages, .. })) => {
                messages.last().map_or(0, |m| m.seq)
            }
            (Kind::Peeked { .. } | Kind::Dropped { .. }, _) => seq_before(self.core.last),
            (Kind::Null { .. }, _) if self.core.waiting() == 0 => seq_before(self.core.last),
            _ => 0,
        };
        shown.max(seq_before(self.core.gone))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.core == other.core
            && self.undecided == other.undecided
            && self.floor == other.floor
            && self.open == other.open
            && self.reader.ledger.seqs == other.reader.ledger.seqs
    }
}

/// Every state that one of `states` allows after this answer, each once; none where all forbid it.
#[must_use]
pub fn advance(states: &[State], call: &Call) -> Vec<State> {
    let mut found: Vec<State> = Vec::new();
    for next in states.iter().flat_map(|state| state.step(call)) {
        if !found.iter().any(|known| known.is_same(&next)) {
            found.push(next);
        }
    }
    found
}

/// Which clause `call` breaks, which no state of `states` allows, and how. The first state speaks: all
/// of them come from one history, and differ in what calls without an answer did.
#[must_use]
pub fn blame(states: &[State], call: &Call) -> Blame {
    match states.first() {
        Some(state) => blame_for(state, call),
        None => blame_for(&State::new(Rules::new(crate::backend::Clock::Caller, 1)), call),
    }
}
