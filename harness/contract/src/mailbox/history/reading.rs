//! Calls in the ledger's terms: seqs, owners and leases by number, so that the relation never touches
//! a name or a body.

use super::act::{Act, Call, Got, Outcome, Rules, Stamp};
use super::relation::{Kind, LeaseNote, Ledger, Maybe, Op, Words};
use crate::json::Json;
use crate::mailbox::delivery::Sent;

/// The stamp of an answer that never came.
pub(super) const NEVER: Stamp = Stamp { order: u64::MAX, ms: u64::MAX };

/// The ledger of one box, with the numbers that its names have.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub ledger: Ledger,
    owners: Words,
    leases: Words,
    bodies: Words,
}

impl Reader {
    pub fn new(rules: Rules) -> Self {
        Self {
            ledger: Ledger::new(rules),
            owners: Words::default(),
            leases: Words::default(),
            bodies: Words::default(),
        }
    }

    /// The number of a body: the same for two that are the same JSON.
    pub fn body(&mut self, body: &Json) -> u32 {
        self.bodies.number(&key(body))
    }

    /// The owner of that number.
    pub fn owner_name(&self, number: u32) -> &str {
        self.owners.word(number)
    }

    fn lease(&mut self, id: &str) -> u32 {
        let number = self.leases.number(id);
        let notes = &mut self.ledger.leases;
        if notes.len() <= number as usize {
            notes.push(LeaseNote::default());
        }
        number
    }

    /// The call in the ledger's terms. Every seq that it shows must be in the ledger by now.
    pub fn read(&mut self, call: &Call) -> Op {
        let kind = match &call.outcome {
            Outcome::Ok(got) => self.answered(&call.act, got),
            Outcome::Refused(_) => self.refused(&call.act),
            Outcome::Unknown => self.unanswered(&call.act),
        };
        if let Kind::Maybe(Maybe::Append { .. }) = kind {
            let first = &mut self.ledger.first_maybe_append;
            *first = (*first).min(call.sent.order);
        }
        Op {
            sent: call.sent,
            answered: call.answered.unwrap_or(NEVER),
            process: u32::try_from(call.process).unwrap_or(u32::MAX),
            kind,
        }
    }

    fn answered(&mut self, act: &Act, got: &Got) -> Kind {
        match (act, got) {
            (Act::Append { .. }, Got::Seq(seq)) => {
                Kind::Append { at: self.ledger.count_to(*seq).saturating_sub(1) }
            }
            (Act::Claim { owner, ttl_ms, .. }, Got::Null) => {
                Kind::Null { owner: self.owners.number(owner), ttl_ms: *ttl_ms }
            }
            (Act::Claim { owner, ttl_ms, max }, Got::Delivery { lease, messages }) => {
                let owner = self.owners.number(owner);
                let lease = self.lease(lease);
                self.ledger.leases[lease as usize].owner.get_or_insert(owner);
                match self.stretch(messages) {
                    Some((from, len)) if len > 0 => {
                        let max = at_most(*max);
                        Kind::Delivery { owner, ttl_ms: *ttl_ms, max, lease, from, len }
                    }
                    Some(_) | None => Kind::Impossible,
                }
            }
            (Act::Ack { owner, lease, up_to }, Got::Count(count)) => {
                let (owner, lease) = (self.owners.number(owner), self.lease(lease));
                match whole(*count) {
                    Some(count) => Kind::Acked { owner, lease, up_to: *up_to, count },
                    None => Kind::Impossible,
                }
            }
            (Act::Release { owner, lease }, Got::Done) => {
                Kind::Released { owner: self.owners.number(owner), lease: self.lease(lease) }
            }
            (Act::Renew { owner, lease, ttl_ms }, Got::Done) => {
                let (owner, lease) = (self.owners.number(owner), self.lease(lease));
                Kind::Renewed { owner, lease, ttl_ms: *ttl_ms }
            }
            (Act::Peek, Got::Messages(messages)) => match self.stretch(messages) {
                Some((from, len)) => Kind::Peeked { from, len },
                None => Kind::Impossible,
            },
            (Act::Drop, Got::Count(count)) => match whole(*count) {
                Some(count) => Kind::Dropped { count },
                None => Kind::Impossible,
            },
            (Act::Reap, Got::Done) => Kind::Nothing,
            (
                Act::Append { .. }
                | Act::Claim { .. }
                | Act::Ack { .. }
                | Act::Release { .. }
                | Act::Renew { .. }
                | Act::Peek
                | Act::Drop
                | Act::Reap,
                _,
            ) => Kind::Impossible,
        }
    }

    fn refused(&mut self, act: &Act) -> Kind {
        match act {
            Act::Ack { owner, lease, .. }
            | Act::Release { owner, lease }
            | Act::Renew { owner, lease, .. } => {
                Kind::Refused { owner: self.owners.number(owner), lease: self.lease(lease) }
            }
            Act::Append { .. } | Act::Claim { .. } | Act::Peek | Act::Drop | Act::Reap => {
                Kind::Impossible
            }
        }
    }

    fn unanswered(&mut self, act: &Act) -> Kind {
        match act {
            Act::Append { body } => Kind::Maybe(Maybe::Append { body: self.body(body) }),
            Act::Claim { owner, ttl_ms, max } => Kind::Maybe(Maybe::Claim {
                owner: self.owners.number(owner),
                ttl_ms: *ttl_ms,
                max: at_most(*max),
            }),
            Act::Ack { owner, lease, up_to } => {
                let (owner, lease) = (self.owners.number(owner), self.lease(lease));
                self.ledger.leases[lease as usize].maybe_settled = true;
                Kind::Maybe(Maybe::Ack { owner, lease, up_to: *up_to })
            }
            Act::Release { owner, lease } => Kind::Maybe(Maybe::Release {
                owner: self.owners.number(owner),
                lease: self.lease(lease),
            }),
            Act::Renew { owner, lease, ttl_ms } => {
                let (owner, lease) = (self.owners.number(owner), self.lease(lease));
                Kind::Maybe(Maybe::Renew { owner, lease, ttl_ms: *ttl_ms })
            }
            Act::Drop => Kind::Maybe(Maybe::Drop),
            Act::Peek | Act::Reap => Kind::Nothing,
        }
    }

    /// Where in the ledger the messages lie, if they are consecutive seqs of it.
    fn stretch(&self, messages: &[Sent]) -> Option<(u32, u32)> {
        let Some(first) = messages.first() else { return Some((0, 0)) };
        let from = self.ledger.count_to(first.seq.checked_sub(1)?);
        let known = self.ledger.seqs.get(from as usize..)?.get(..messages.len())?;
        let len = u32::try_from(messages.len()).ok()?;
        known.iter().zip(messages).all(|(seq, m)| *seq == m.seq).then_some((from, len))
    }
}

fn at_most(max: Option<u64>) -> u32 {
    max.and_then(|max| u32::try_from(max).ok()).unwrap_or(u32::MAX)
}

/// A count, if it is one.
fn whole(count: f64) -> Option<u32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    let whole = (count.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&count))
        .then_some(count as u32);
    whole
}

/// A text that two bodies share exactly if they are the same JSON by `json::same`.
fn key(body: &Json) -> String {
    match body {
        Json::Null | Json::Bool(_) | Json::String(_) => body.to_string(),
        // Zero has two signs and one value.
        Json::Number(number) => format!("{:?}", number.as_f64().map(|n| n + 0.0)),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(key).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", Json::from(name.as_str()), key(value)))
                .collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::same;
    use serde_json::json;

    #[test]
    fn bodies_have_one_key_exactly_if_they_are_the_same() {
        let bodies = [
            json!(null),
            json!("null"),
            json!(0),
            json!(-0.0),
            json!(1),
            json!(1.0),
            json!("1"),
            json!([1, 2]),
            json!([[1], 2]),
            json!({"a": 1, "b": [2]}),
            json!({"b": [2.0], "a": 1}),
            json!({"a": null}),
            json!({}),
            json!(["a,b"]),
            json!(["a", "b"]),
        ];
        for a in &bodies {
            for b in &bodies {
                assert_eq!(key(a) == key(b), same(a, b), "{a} and {b}");
            }
        }
    }
}
