//! The contract once more, in plain collections, for the caller's clock with a granularity of 1: slow,
//! obvious, and written apart from the relation that it is held against.

#![allow(clippy::wildcard_enum_match_arm, reason = "a short oracle names what it knows")]

use std::collections::BTreeSet;
use storeproof_contract::mailbox::history::{Act, Call, Got, Outcome};
use todc_utils::{Action, History, Specification, WGLChecker};

/// One state of one box.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Box {
    last_seq: u64,
    /// A seq of 0: nobody ever learns it.
    messages: Vec<(u64, String)>,
    lease: Option<Lease>,
    given: BTreeSet<(String, String)>,
    settled: BTreeSet<String>,
    dropped: bool,
    /// The next call with an answer must not be earlier, in milliseconds: a claim without one took the
    /// place of a lease that ended only then.
    not_before: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Lease {
    /// None where nobody was told.
    id: Option<String>,
    owner: String,
    expiry: u64,
    delivered: usize,
}

/// A call with the seqs that an append without an answer may turn out to have.
#[derive(Clone, Debug)]
pub struct Asked {
    pub call: Call,
    pub seqs: Vec<u64>,
}

pub type Boxes = BTreeSet<Box>;

pub fn step_all(boxes: &Boxes, asked: &Asked) -> Boxes {
    boxes.iter().flat_map(|b| step(b, asked)).collect()
}

fn step(b: &Box, asked: &Asked) -> Vec<Box> {
    let call = &asked.call;
    let now = call.sent.ms;
    match &call.outcome {
        Outcome::Unknown => {
            let mut all = vec![b.clone()];
            all.extend(perhaps(b, asked, now));
            all
        }
        _ if now < b.not_before => vec![],
        Outcome::Refused(_) => match &call.act {
            Act::Ack { owner, lease, .. }
            | Act::Release { owner, lease }
            | Act::Renew { owner, lease, .. } => {
                if live(b, owner, lease, now).is_some() {
                    vec![]
                } else {
                    vec![b.clone()]
                }
            }
            _ => vec![],
        },
        Outcome::Ok(got) => answered(b, &call.act, got, now),
    }
}

fn live<'a>(b: &'a Box, owner: &str, id: &str, now: u64) -> Option<&'a Lease> {
    b.lease.as_ref().filter(|l| l.owner == owner && l.id.as_deref() == Some(id) && now < l.expiry)
}

fn shown(messages: &[storeproof_contract::mailbox::moves::Sent]) -> Vec<(u64, String)> {
    messages.iter().map(|m| (m.seq, m.body.to_string())).collect()
}

fn answered(b: &Box, act: &Act, got: &Got, now: u64) -> Vec<Box> {
    let mut n = Box { not_before: 0, ..b.clone() };
    match (act, got) {
        (Act::Append { body }, Got::Seq(seq)) => {
            if *seq <= b.last_seq {
                return vec![];
            }
            n.last_seq = *seq;
            n.messages.push((*seq, body.to_string()));
            vec![n]
        }
        (Act::Claim { owner, ttl_ms, .. }, Got::Null) => {
            if b.messages.is_empty() {
                return vec![n];
            }
            match &b.lease {
                Some(l) if now < l.expiry && l.owner == *owner => {
                    n.lease = Some(Lease { expiry: now + ttl_ms, ..l.clone() });
                    vec![Box { not_before: 0, ..b.clone() }, n]
                }
                Some(l) if now < l.expiry => vec![n],
                _ => vec![],
            }
        }
        (Act::Claim { owner, ttl_ms, max }, Got::Delivery { lease, messages }) => {
            let messages = shown(messages);
            let is_prefix = !messages.is_empty() && b.messages.starts_with(&messages);
            let fresh = !b.given.iter().any(|(_, id)| id == lease);
            n.given.insert((owner.clone(), lease.clone()));
            let new = Lease {
                id: Some(lease.clone()),
                owner: owner.clone(),
                expiry: now + ttl_ms,
                delivered: messages.len(),
            };
            match &b.lease {
                _ if !is_prefix => vec![],
                Some(l) if now < l.expiry => {
                    let same = l.owner == *owner
                        && match &l.id {
                            Some(id) => id == lease && l.delivered == messages.len(),
                            None => fresh && messages.len() <= l.delivered,
                        };
                    if !same {
                        return vec![];
                    }
                    n.lease = Some(Lease { expiry: l.expiry, ..new.clone() });
                    vec![n.clone(), Box { lease: Some(new), ..n }]
                }
                _ if fresh && max.is_none_or(|max| messages.len() as u64 <= max) => {
                    n.lease = Some(new);
                    vec![n]
                }
                _ => vec![],
            }
        }
        (Act::Ack { owner, lease, up_to }, Got::Count(count)) => {
            if let Some(l) = live(b, owner, lease, now) {
                let delivered = &b.messages[..l.delivered];
                let went = delivered.iter().take_while(|(seq, _)| seq <= up_to).count();
                if *count != went as f64 {
                    return vec![];
                }
                n.messages.drain(..went);
                n.lease = None;
                n.settled.insert(lease.clone());
                return vec![n];
            }
            let held = b.lease.as_ref().is_some_and(|l| l.id.as_deref() == Some(lease));
            let its_own = b.given.iter().any(|(_, given)| given == lease);
            let ended = b.settled.contains(lease) || b.dropped;
            if *count == 0.0 && its_own && ended && !held { vec![n] } else { vec![] }
        }
        (Act::Release { owner, lease }, Got::Done) => match live(b, owner, lease, now) {
            Some(_) => vec![Box { lease: None, ..n }],
            None => vec![],
        },
        (Act::Renew { owner, lease, ttl_ms }, Got::Done) => match live(b, owner, lease, now) {
            Some(l) => {
                n.lease = Some(Lease { expiry: now + ttl_ms, ..l.clone() });
                vec![n]
            }
            None => vec![],
        },
        (Act::Peek, Got::Messages(messages)) => {
            if shown(messages) == b.messages {
                vec![n]
            } else {
                vec![]
            }
        }
        (Act::Drop, Got::Count(count)) => {
            if *count != b.messages.len() as f64 {
                return vec![];
            }
            vec![Box { messages: vec![], lease: None, dropped: true, ..n }]
        }
        (Act::Reap, Got::Done) => vec![n],
        _ => vec![],
    }
}

/// Every effect that a call without an answer may have.
fn perhaps(b: &Box, asked: &Asked, now: u64) -> Vec<Box> {
    let mut n = b.clone();
    match &asked.call.act {
        Act::Append { body } => {
            let body = body.to_string();
            let seqs = asked.seqs.iter().copied().filter(|seq| *seq > b.last_seq);
            let mut all: Vec<Box> = seqs
                .map(|seq| {
                    let mut n = n.clone();
                    n.last_seq = seq;
                    n.messages.push((seq, body.clone()));
                    n
                })
                .collect();
            n.messages.push((0, body));
            all.push(n);
            all
        }
        Act::Claim { owner, ttl_ms, max } => {
            let mut all = vec![];
            let live = b.lease.as_ref().filter(|l| now < l.expiry);
            if let Some(l) = live.filter(|l| l.owner == *owner) {
                let lease = Some(Lease { expiry: now + ttl_ms, ..l.clone() });
                all.push(Box { lease, ..n.clone() });
            }
            let most = max.map_or(usize::MAX, |max| max as usize).min(b.messages.len());
            if most > 0 {
                // Late, and with its old `now`: the store may have forgotten a lease that ended since.
                n.not_before = n.not_before.max(live.map_or(0, |l| l.expiry));
                n.lease = Some(Lease {
                    id: None,
                    owner: owner.clone(),
                    expiry: now + ttl_ms,
                    delivered: most,
                });
                all.push(n);
            }
            all
        }
        Act::Ack { owner, lease, up_to } => {
            let Some(l) = live(b, owner, lease, now) else { return vec![] };
            let delivered = &b.messages[..l.delivered];
            let went = delivered.iter().take_while(|(seq, _)| seq <= up_to).count();
            n.messages.drain(..went);
            n.lease = None;
            n.settled.insert(lease.clone());
            vec![n]
        }
        Act::Release { owner, lease } => match live(b, owner, lease, now) {
            Some(_) => vec![Box { lease: None, ..n }],
            None => vec![],
        },
        Act::Renew { owner, lease, ttl_ms } => match live(b, owner, lease, now) {
            Some(l) => {
                n.lease = Some(Lease { expiry: now + ttl_ms, ..l.clone() });
                vec![n]
            }
            None => vec![],
        },
        Act::Drop => vec![Box { messages: vec![], lease: None, dropped: true, ..n }],
        Act::Peek | Act::Reap => vec![],
    }
}

/// The calls of one box, each with the seqs that only deliveries know.
pub fn asked(history: &[Call]) -> Vec<Asked> {
    let receipted: BTreeSet<u64> = history
        .iter()
        .filter_map(|call| match call.outcome {
            Outcome::Ok(Got::Seq(seq)) => Some(seq),
            _ => None,
        })
        .collect();
    let of_body = |body: &serde_json::Value| {
        let mut seqs = BTreeSet::new();
        for call in history {
            if let Outcome::Ok(Got::Delivery { messages, .. } | Got::Messages(messages)) =
                &call.outcome
            {
                let fits = messages.iter().filter(|m| m.body == *body);
                seqs.extend(fits.map(|m| m.seq).filter(|seq| !receipted.contains(seq)));
            }
        }
        seqs.into_iter().collect()
    };
    history
        .iter()
        .map(|call| match &call.act {
            Act::Append { body } => Asked { call: call.clone(), seqs: of_body(body) },
            _ => Asked { call: call.clone(), seqs: vec![] },
        })
        .collect()
}

/// Tries every order.
pub fn some_order(history: &[Call]) -> bool {
    let asked = asked(history);
    let mut left: Vec<usize> = (0..asked.len()).collect();
    tries(&asked, &mut left, &Boxes::from([Box::default()]))
}

fn tries(asked: &[Asked], left: &mut Vec<usize>, boxes: &Boxes) -> bool {
    if boxes.is_empty() {
        return false;
    }
    let order = |at: usize| asked[at].call.answered.map_or(u64::MAX, |stamp| stamp.order);
    let until = left.iter().map(|at| order(*at)).min().unwrap_or(0);
    if left.is_empty() || until == u64::MAX {
        return true;
    }
    for place in 0..left.len() {
        let at = left[place];
        if asked[at].call.sent.order < until {
            left.remove(place);
            let found = tries(asked, left, &step_all(boxes, &asked[at]));
            left.insert(place, at);
            if found {
                return true;
            }
        }
    }
    false
}

pub struct Mailbox;

impl Specification for Mailbox {
    type State = Boxes;
    type Operation = Asked;

    fn init() -> Boxes {
        Boxes::from([Box::default()])
    }

    fn apply(asked: &Asked, boxes: &Boxes) -> (bool, Boxes) {
        let after = step_all(boxes, asked);
        if after.is_empty() { (false, boxes.clone()) } else { (true, after) }
    }
}

/// What `todc-utils` says. It has neither calls without an answer nor a lane with two calls at once:
/// the first are answered at the very end, each in a lane of its own, and may have done nothing.
pub fn todc(history: &[Call]) -> bool {
    let mut events: Vec<(u64, usize, Action<Asked>)> = Vec::new();
    for (lane, asked) in asked(history).into_iter().enumerate() {
        let answered = asked.call.answered.map_or(u64::MAX, |stamp| stamp.order);
        events.push((asked.call.sent.order, lane, Action::Call(asked.clone())));
        events.push((answered, lane, Action::Response(asked)));
    }
    events.sort_by_key(|(order, ..)| *order);
    let actions = events.into_iter().map(|(_, lane, action)| (lane, action)).collect();
    WGLChecker::<Mailbox>::is_linearizable(History::from_actions(actions))
}
