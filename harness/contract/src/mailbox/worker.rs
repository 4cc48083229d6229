//! A worker of a random concurrent history: it appends, claims what it can get, acks what it holds, and
//! now and then tries what it must not.

use super::store::Address;
use super::wire::ClaimResult;
use crate::backend::Capabilities;
use crate::call::Answer;
use crate::json::Json;
use crate::race::Lane;
use serde::Deserialize as _;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

/// A lease that some worker was given.
#[derive(Clone, Debug)]
pub struct Given {
    of: Address,
    owner: String,
    lease: String,
    seqs: Vec<u64>,
}

/// Every lease that any worker of the case was given, the newest last.
pub type Leases = Arc<Mutex<Vec<Given>>>;

/// What all workers of one race share.
#[derive(Clone, Debug)]
pub struct Shift {
    /// The boxes they work on.
    pub boxes: Vec<Address>,
    /// How often a call is a drop, in 256ths.
    pub drops: u8,
    /// How often a worker that holds a lease settles it with its next call, in 256ths.
    pub settles: u8,
    /// The one moment that all overlapping calls carry, in epoch milliseconds.
    pub now_ms: u64,
    /// How long leases live, in milliseconds; longer than the race.
    pub ttl_ms: u64,
    /// Which optional methods there are.
    pub caps: Capabilities,
    /// Every lease of the case.
    pub leases: Leases,
}

/// One worker.
pub struct Worker {
    shift: Shift,
    store: String,
    owner: String,
    rng: fastrand::Rng,
    calls_left: usize,
    appended: usize,
    /// What it holds as far as it knows.
    held: Option<Given>,
    /// The box of the claim under way.
    claiming: Option<Address>,
}

impl Worker {
    /// A worker of that name for `calls` calls to the open store of that id.
    #[must_use]
    pub fn new(shift: Shift, store: &str, owner: &str, calls: usize, seed: u64) -> Self {
        Self {
            shift,
            store: store.to_owned(),
            owner: owner.to_owned(),
            rng: fastrand::Rng::with_seed(seed),
            calls_left: calls,
            appended: 0,
            held: None,
            claiming: None,
        }
    }

    fn any_box(&mut self) -> Address {
        let at = self.rng.usize(..self.shift.boxes.len());
        self.shift.boxes[at].clone()
    }

    fn on(&self, of: &Address) -> Json {
        json!({
            "store": self.store, "scope": of.scope.0, "handle": of.handle.0, "owner": self.owner,
            "now": self.shift.now_ms,
        })
    }

    fn append(&mut self) -> (&'static str, Json) {
        let of = self.any_box();
        self.appended += 1;
        let mut params = self.on(&of);
        params["body"] = json!(format!("{}{}", self.owner, self.appended));
        ("mailbox/append", without_owner(params))
    }

    fn claim(&mut self) -> (&'static str, Json) {
        let of = self.any_box();
        let mut params = self.on(&of);
        params["ttlMs"] = json!(self.shift.ttl_ms);
        if self.rng.u8(..) < 80 {
            params["max"] = json!(self.rng.u64(1..=3));
        }
        self.claiming = Some(of);
        ("mailbox/claim", params)
    }

    /// Settles what it holds: all, a part, or (where declared) by giving it back.
    fn settle(&mut self, held: Given) -> (&'static str, Json) {
        let mut params = self.on(&held.of);
        params["lease"] = json!(held.lease);
        let draw = self.rng.u8(..);
        if self.shift.caps.release && draw < 30 {
            return ("mailbox/release", params);
        }
        if self.shift.caps.renew && draw < 60 {
            params["ttlMs"] = json!(self.shift.ttl_ms);
            self.held = Some(held);
            return ("mailbox/renew", params);
        }
        let some = self.rng.usize(..held.seqs.len().max(1));
        let up_to = if draw < 190 { held.seqs.last() } else { held.seqs.get(some) };
        params["upTo"] = json!(up_to.copied().unwrap_or(1));
        ("mailbox/ack", params)
    }

    /// An ack with somebody else's lease, or with one of its own from before.
    fn trespass(&mut self) -> Option<(&'static str, Json)> {
        let given = {
            let leases = self.shift.leases.lock().unwrap_or_else(PoisonError::into_inner);
            if leases.is_empty() {
                return None;
            }
            leases[self.rng.usize(..leases.len())].clone()
        };
        if self.held.as_ref().is_some_and(|held| held.lease == given.lease) {
            return None;
        }
        let mut params = self.on(&given.of);
        if self.rng.bool() && given.owner == self.owner {
            params["owner"] = json!("somebody");
        }
        params["lease"] = json!(given.lease);
        params["upTo"] = json!(given.seqs.last().copied().unwrap_or(1));
        Some(("mailbox/ack", params))
    }
}

impl Lane for Worker {
    fn next(&mut self) -> Option<(&'static str, Json)> {
        self.calls_left = self.calls_left.checked_sub(1)?;
        self.claiming = None;
        if let Some(held) = self.held.take_if(|_| self.rng.u8(..) < self.shift.settles) {
            return Some(self.settle(held));
        }
        let of = self.any_box();
        if self.rng.u8(..) < self.shift.drops {
            return Some(("mailbox/drop", without_owner(self.on(&of))));
        }
        Some(match self.rng.u8(..) {
            0..95 => self.append(),
            95..200 => self.claim(),
            200..216 if self.shift.caps.peek => ("mailbox/peek", without_owner(self.on(&of))),
            200..216 => self.claim(),
            216..236 => ("mailbox/reap", json!({ "store": self.store, "now": self.shift.now_ms })),
            236.. => match self.trespass() {
                Some(call) => call,
                None => self.append(),
            },
        })
    }

    fn answered(&mut self, answer: &Answer) {
        let (Some(of), Answer::Result(result)) = (self.claiming.take(), answer) else { return };
        // A delivery of another form is for the checker to find.
        let Ok(Some(ClaimResult { lease, messages })) = Option::<ClaimResult>::deserialize(result)
        else {
            return;
        };
        let seqs = messages.iter().filter_map(|message| message.seq.as_u64()).collect();
        let given = Given { of, owner: self.owner.clone(), lease, seqs };
        self.shift.leases.lock().unwrap_or_else(PoisonError::into_inner).push(given.clone());
        self.held = Some(given);
    }
}

fn without_owner(mut params: Json) -> Json {
    if let Some(members) = params.as_object_mut() {
        members.shift_remove("owner");
    }
    params
}
