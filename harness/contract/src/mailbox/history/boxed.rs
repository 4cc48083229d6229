//! One box's part of a concurrent history, in the ledger's terms.

use super::act::{Act, Call, Got, Outcome, Rules};
use super::reading::Reader;
use super::relation::{Kind, Ledger, Op};
use crate::json::{Json, same};
use crate::mailbox::delivery::Sent;
use crate::mailbox::store::SEQ_MAX;
use std::collections::HashMap;

/// The calls of one box, those with an answer by the order of their sending.
pub(super) struct Boxed {
    pub ledger: Ledger,
    pub ops: Vec<Op>,
    /// The place in the history of each of `ops`.
    pub calls: Vec<usize>,
    pub maybes: Vec<Op>,
    /// The place in the history of each of `maybes`.
    pub maybe_calls: Vec<usize>,
    /// By op: whether its owner makes one call at a time on this box, so that it can wait for none of
    /// them.
    pub solo: Vec<bool>,
}

impl Boxed {
    /// The calls of `history` at `places`, which are all of one box.
    pub fn new(history: &[Call], places: &[usize], rules: &Rules) -> Self {
        let mut places = places.to_vec();
        places.sort_by_key(|place| history[*place].sent.order);
        let mut reader = Reader::new(rules.clone());
        let odd = learn(&mut reader, history, &places);
        let mut boxed = Self {
            ledger: Ledger::new(rules.clone()),
            ops: Vec::with_capacity(places.len()),
            calls: Vec::with_capacity(places.len()),
            maybes: Vec::new(),
            maybe_calls: Vec::new(),
            solo: Vec::new(),
        };
        for (place, odd) in places.into_iter().zip(odd) {
            let op = reader.read(&history[place]);
            if let Kind::Maybe(_) = op.kind {
                boxed.maybes.push(op);
                boxed.maybe_calls.push(place);
            } else if op.kind != Kind::Nothing {
                let kind = if odd { Kind::Impossible } else { op.kind };
                boxed.ops.push(Op { kind, ..op });
                boxed.calls.push(place);
            }
        }
        boxed.ledger = reader.ledger;
        boxed.solo = solo(&boxed.ops, &boxed.maybes);
        boxed
    }
}

/// Puts every seq that the calls show into the ledger; answers, by call, whether no state can allow
/// what it shows.
fn learn(reader: &mut Reader, history: &[Call], places: &[usize]) -> Vec<bool> {
    let in_range = |seq: u64| (1..=SEQ_MAX).contains(&seq);
    let mut bodies: HashMap<u64, &Json> = HashMap::with_capacity(places.len());
    let mut odd = vec![false; places.len()];
    for (place, odd) in places.iter().zip(&mut odd) {
        if let (Act::Append { body }, Outcome::Ok(Got::Seq(seq))) =
            (&history[*place].act, &history[*place].outcome)
        {
            *odd = !in_range(*seq) || bodies.insert(*seq, body).is_some();
        }
    }
    let mut seqs: Vec<u64> = bodies.keys().copied().filter(|seq| in_range(*seq)).collect();
    for (place, odd) in places.iter().zip(&mut odd) {
        for message in messages(&history[*place]) {
            match bodies.get(&message.seq) {
                Some(body) => *odd |= !same(body, &message.body),
                None => {
                    bodies.insert(message.seq, &message.body);
                    seqs.push(message.seq);
                    let body = reader.body(&message.body);
                    reader.ledger.orphans.insert(message.seq, body);
                }
            }
        }
    }
    seqs.sort_unstable();
    reader.ledger.seqs = seqs;
    odd
}

/// The messages that a call's answer shows.
pub(super) fn messages(call: &Call) -> &[Sent] {
    match &call.outcome {
        Outcome::Ok(Got::Delivery { messages, .. } | Got::Messages(messages)) => messages,
        Outcome::Ok(Got::Seq(_) | Got::Null | Got::Count(_) | Got::Done)
        | Outcome::Refused(_)
        | Outcome::Unknown => &[],
    }
}

fn solo(ops: &[Op], maybes: &[Op]) -> Vec<bool> {
    let mut busy: HashMap<u32, (u64, bool)> = HashMap::new();
    for maybe in maybes {
        if let Some(owner) = maybe.kind.owner() {
            busy.insert(owner, (u64::MAX, false));
        }
    }
    for op in ops {
        if let Some(owner) = op.kind.owner() {
            let (until, alone) = busy.entry(owner).or_insert((0, true));
            *alone &= *until <= op.sent.order;
            *until = (*until).max(op.answered.order);
        }
    }
    let alone = |owner: u32| busy.get(&owner).is_some_and(|(_, alone)| *alone);
    ops.iter().map(|op| op.kind.owner().is_none_or(alone)).collect()
}
