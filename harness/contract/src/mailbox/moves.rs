//! The moves that mailbox clauses are written in: typed calls, and the one rule about time.
//!
//! **The rule about time.** A lease claimed by a call sent at t0 and answered at t1 is certainly live
//! for a call answered before t0 + ttl - g, and certainly dead for a call sent after t1 + ttl + g,
//! where g is the subject's lease granularity. On the caller's clock t0 = t1 and both bounds are
//! exact: the fence holds while now <= expiry - g and is gone from expiry + g - 1. Whatever a clause
//! says about a lease it says through [`Trial::while_live`] or [`Trial::when_dead`], so that an answer
//! in between decides nothing and a slow machine is never blamed on the store.

use super::store::Address;
use super::wire::{AckResult, AppendResult, ClaimResult, DropResult, PeekResult, WireMessage};
use crate::call::{Fault, FaultKind, Refusal};
use crate::host::Nothing;
use crate::json::{Json, excerpt, same};
use crate::trial::{Answered, Moment, Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// How long a lease lives whose expiry is not the point, in milliseconds.
const LONG_TTL_MS: u64 = 3_600_000;
/// How long a lease lives whose expiry is the point, on the caller's clock (milliseconds).
const CALLER_TTL_MS: u64 = 60_000;
/// The same on the wall clock, at the first try; each further try takes [`WALL_TTL_GROWTH`] times as long.
const WALL_TTL_MS: u64 = 400;
/// See [`WALL_TTL_MS`].
const WALL_TTL_GROWTH: u64 = 4;
/// The most claims one drain may take beyond the messages that it should find.
const DRAIN_CLAIMS_MAX: usize = 2_000;

/// What was appended, with its receipt.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The receipt.
    pub seq: u64,
    /// The body.
    pub body: Json,
}

/// A lease as the bench holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// Its id.
    pub id: String,
    /// Who claimed it.
    pub owner: String,
    /// The box it fences.
    pub of: Address,
    /// What it delivered.
    pub messages: Vec<Sent>,
    /// When the claim (or the last renewal) was sent and answered.
    pub since: Moment,
    /// How long it lives from there, in milliseconds.
    pub ttl_ms: u64,
}

impl Lease {
    /// The seq of its last message.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.messages.last().map_or(0, |message| message.seq)
    }
}

/// The recipient `handle` in the scope that every mailbox serves.
#[must_use]
pub fn at(handle: &str) -> Address {
    Address::new("default", handle)
}

impl Trial<'_> {
    /// A lifetime for leases whose expiry is not the point, in milliseconds.
    #[must_use]
    pub fn long_ttl_ms(&self) -> u64 {
        LONG_TTL_MS.max(3 * self.granularity_ms())
    }

    /// A lifetime for leases whose expiry is the point, in milliseconds; at least three times the
    /// granularity, and longer with each try.
    #[must_use]
    pub fn short_ttl_ms(&self) -> u64 {
        let ttl_ms = if self.is_caller_clock() {
            CALLER_TTL_MS
        } else {
            WALL_TTL_MS * WALL_TTL_GROWTH.pow(self.attempt() - 1)
        };
        ttl_ms.max(3 * self.granularity_ms())
    }

    /// Appends; a refusal of these harmless arguments is a violation.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn append(
        &mut self,
        store: &StoreRef,
        to: &Address,
        body: impl Into<Json>,
    ) -> Result<u64, Stop> {
        let body = body.into();
        match self.append_with(store, to, &body, false)? {
            Ok(seq) => Ok(seq),
            Err(refusal) => broken(
                format!("append takes a harmless body for {to}"),
                format!("append was {refusal}"),
            ),
        }
    }

    /// Appends `count` messages with the bodies `<word>1`, `<word>2`, …
    ///
    /// # Errors
    /// As [`Trial::append`].
    pub fn append_many(
        &mut self,
        store: &StoreRef,
        to: &Address,
        word: &str,
        count: usize,
    ) -> Result<Vec<Sent>, Stop> {
        (1..=count)
            .map(|i| {
                let body = Json::from(format!("{word}{i}"));
                Ok(Sent { seq: self.append(store, to, body.clone())?, body })
            })
            .collect()
    }

    /// Appends a harmless body and answers the receipt as it came, whatever JSON it is.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn append_raw(
        &mut self,
        store: &StoreRef,
        to: &Address,
        body: &Json,
    ) -> Result<Json, Stop> {
        let params = json!({
            "store": store.id, "scope": to.scope.0, "handle": to.handle.0, "body": body,
            "now": self.now_ms(),
        });
        let promised = format!("append takes a harmless body for {to}");
        Ok(self.must::<AppendResult>("mailbox/append", params, &promised)?.seq)
    }

    /// Appends something that a store may refuse, by -32602 too.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn try_append(
        &mut self,
        store: &StoreRef,
        to: &Address,
        body: &Json,
    ) -> Result<Answered<u64>, Stop> {
        self.append_with(store, to, body, true)
    }

    /// Appends; a refusal is an answer, and -32602 is one only for a `bad_argument`.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn append_with(
        &mut self,
        store: &StoreRef,
        to: &Address,
        body: &Json,
        bad_argument: bool,
    ) -> Result<Answered<u64>, Stop> {
        let params = json!({
            "store": store.id, "scope": to.scope.0, "handle": to.handle.0, "body": body,
            "now": self.now_ms(),
        });
        match self.ask::<AppendResult>("mailbox/append", params, bad_argument)? {
            Ok(AppendResult { seq }) => seq_of(&seq).map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Claims with a lease that will not expire by itself during the clause.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn claim(
        &mut self,
        store: &StoreRef,
        from: &Address,
        owner: &str,
    ) -> Result<Option<Lease>, Stop> {
        self.claim_for(store, from, owner, self.long_ttl_ms(), None)
    }

    /// Claims for `ttl_ms`, at most `max` messages.
    ///
    /// # Errors
    /// As [`Trial::must`]; a delivery without messages or without a lease id is a violation.
    pub fn claim_for(
        &mut self,
        store: &StoreRef,
        from: &Address,
        owner: &str,
        ttl_ms: u64,
        max: Option<u64>,
    ) -> Result<Option<Lease>, Stop> {
        let (ttl_ms, max) = (json!(ttl_ms), max.map(Json::from));
        match self.raw_claim(store, from, owner, &ttl_ms, max.as_ref(), false)? {
            Ok(None) => Ok(None),
            Ok(Some(lease)) if lease.id.is_empty() => {
                broken("a lease id is a non-empty string", "claim answered the lease id \"\"")
            }
            Ok(Some(lease)) if lease.messages.is_empty() => broken(
                "claim answers null, or a lease with at least one message",
                format!(
                    "claim by {owner} on {from} answered the lease {:?} without any message",
                    lease.id
                ),
            ),
            Ok(Some(lease)) => Ok(Some(lease)),
            Err(refusal) => {
                broken(format!("claim on {from} is not refused"), format!("claim was {refusal}"))
            }
        }
    }

    /// Claims with any arguments and takes any answer of the right form, also an empty delivery or a
    /// refusal; -32602 is one only for a `bad_argument`.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn raw_claim(
        &mut self,
        store: &StoreRef,
        from: &Address,
        owner: &str,
        ttl_ms: &Json,
        max: Option<&Json>,
        bad_argument: bool,
    ) -> Result<Answered<Option<Lease>>, Stop> {
        let mut params = json!({
            "store": store.id, "scope": from.scope.0, "handle": from.handle.0, "owner": owner,
            "ttlMs": ttl_ms,
        });
        if let Some(max) = max {
            params["max"] = json!(max);
        }
        params["now"] = json!(self.now_ms());
        let found = match self.ask::<Option<ClaimResult>>("mailbox/claim", params, bad_argument)? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(ClaimResult { lease, messages }) = found else { return Ok(Ok(None)) };
        Ok(Ok(Some(Lease {
            id: lease,
            owner: owner.to_owned(),
            of: from.clone(),
            messages: sent(messages)?,
            since: self.last(),
            ttl_ms: ttl_ms.as_u64().unwrap_or(0),
        })))
    }

    /// Claims where messages wait and nothing fences them: `null` is a violation of `promised`.
    ///
    /// # Errors
    /// As [`Trial::claim_for`].
    pub fn claim_some(
        &mut self,
        store: &StoreRef,
        from: &Address,
        owner: &str,
        promised: &str,
    ) -> Result<Lease, Stop> {
        self.claim_some_for(store, from, owner, self.long_ttl_ms(), promised)
    }

    /// [`Trial::claim_some`] with a lifetime.
    ///
    /// # Errors
    /// As [`Trial::claim_for`].
    pub fn claim_some_for(
        &mut self,
        store: &StoreRef,
        from: &Address,
        owner: &str,
        ttl_ms: u64,
        promised: &str,
    ) -> Result<Lease, Stop> {
        match self.claim_for(store, from, owner, ttl_ms, None)? {
            Some(lease) => Ok(lease),
            None => broken(promised, format!("the claim by {owner} on {from} answered null")),
        }
    }

    /// Acks; a refusal is an answer.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn try_ack(
        &mut self,
        store: &StoreRef,
        of: &Address,
        owner: &str,
        lease: &str,
        up_to: u64,
    ) -> Result<Answered<f64>, Stop> {
        let params = json!({
            "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "owner": owner,
            "lease": lease, "upTo": up_to, "now": self.now_ms(),
        });
        Ok(self.ask::<AckResult>("mailbox/ack", params, false)?.map(|result| result.acked))
    }

    /// The holder of a live lease acks, which must be taken. Answers the count.
    ///
    /// # Errors
    /// A violation where it is refused although the lease lives.
    pub fn ack(&mut self, store: &StoreRef, lease: &Lease, up_to: u64) -> Result<f64, Stop> {
        let answer = self.try_ack(store, &lease.of, &lease.owner, &lease.id, up_to)?;
        match answer {
            Ok(acked) => Ok(acked),
            Err(refusal) => {
                self.while_live(lease)?;
                broken(
                    format!(
                        "{}, who holds the live lease of {}, may ack it",
                        lease.owner, lease.of
                    ),
                    format!("the ack was {refusal}"),
                )
            }
        }
    }

    /// The holder acks up to `up_to`, and `acked` must be `count`.
    ///
    /// # Errors
    /// A violation where it is refused or counts otherwise.
    pub fn ack_counted(
        &mut self,
        store: &StoreRef,
        lease: &Lease,
        up_to: u64,
        count: usize,
    ) -> Verdict {
        let acked = self.ack(store, lease, up_to)?;
        #[expect(clippy::cast_precision_loss, reason = "counts of a clause are tiny")]
        let right = acked == count as f64;
        if right {
            return Ok(());
        }
        broken(
            format!("acked says how many messages this ack removed: {count}"),
            format!("ack up to {up_to} answered acked: {acked}"),
        )
    }

    /// An ack that must be refused because its sender does not hold a live lease on that box.
    ///
    /// # Errors
    /// A violation, saying `why` it had to be refused, where it is taken.
    pub fn ack_refused(
        &mut self,
        store: &StoreRef,
        of: &Address,
        owner: &str,
        lease: &str,
        up_to: u64,
        why: &str,
    ) -> Verdict {
        match self.try_ack(store, of, owner, lease, up_to)? {
            Err(refusal) => {
                self.expect_reason("mailbox/ack", &refusal, &["lease_not_held"]);
                Ok(())
            }
            Ok(acked) => broken(
                format!("ack is refused: {why}"),
                format!(
                    "the ack by {owner} with lease {lease:?} on {of} was taken (acked: {acked})"
                ),
            ),
        }
    }

    /// Releases; a refusal is an answer.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn try_release(
        &mut self,
        store: &StoreRef,
        of: &Address,
        owner: &str,
        lease: &str,
    ) -> Result<Answered<()>, Stop> {
        let params = json!({
            "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "owner": owner,
            "lease": lease, "now": self.now_ms(),
        });
        Ok(self.ask::<Nothing>("mailbox/release", params, false)?.map(|_| ()))
    }

    /// Renews; a refusal is an answer.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn try_renew(
        &mut self,
        store: &StoreRef,
        of: &Address,
        owner: &str,
        lease: &str,
        ttl_ms: impl Into<Json>,
    ) -> Result<Answered<()>, Stop> {
        let ttl_ms: Json = ttl_ms.into();
        let params = json!({
            "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "owner": owner,
            "lease": lease, "ttlMs": ttl_ms, "now": self.now_ms(),
        });
        Ok(self.ask::<Nothing>("mailbox/renew", params, true)?.map(|_| ()))
    }

    /// Everything not yet acked, as `mailbox/peek` shows it.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn peek(&mut self, store: &StoreRef, of: &Address) -> Result<Vec<Sent>, Stop> {
        let params = json!({
            "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "now": self.now_ms(),
        });
        let promised = format!("peek on {of} is not refused");
        sent(self.must::<PeekResult>("mailbox/peek", params, &promised)?.messages)
    }

    /// Housekeeping over the whole store.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn reap(&mut self, store: &StoreRef) -> Verdict {
        let params = json!({ "store": store.id, "now": self.now_ms() });
        self.must::<Nothing>("mailbox/reap", params, "reap is not refused").map(|_| ())
    }

    /// Empties a box and answers the count.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn drop_box(&mut self, store: &StoreRef, of: &Address) -> Result<f64, Stop> {
        match self.try_drop(store, of)? {
            Ok(dropped) => Ok(dropped),
            Err(refusal) => {
                broken(format!("drop on {of} is not refused"), format!("drop was {refusal}"))
            }
        }
    }

    /// Empties a box; a refusal is an answer.
    ///
    /// # Errors
    /// As [`Trial::ask`].
    pub fn try_drop(&mut self, store: &StoreRef, of: &Address) -> Result<Answered<f64>, Stop> {
        let params = json!({
            "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "now": self.now_ms(),
        });
        Ok(self.ask::<DropResult>("mailbox/drop", params, true)?.map(|result| result.dropped))
    }

    /// Puts a recipient into the state before its deletion.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn tombstone(&mut self, store: &StoreRef, of: &Address) -> Verdict {
        let params = json!({
            "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "now": self.now_ms(),
        });
        let promised = format!("the tombstone hook takes {of}");
        self.must::<Nothing>("recipient/tombstone", params, &promised).map(|_| ())
    }

    /// Notes a reason word that is none of the table's.
    pub fn expect_reason(&mut self, method: &str, refusal: &Refusal, words: &[&str]) {
        if !refusal.reason.is_empty() && !words.contains(&refusal.reason.as_str()) {
            self.advise(format!(
                "{method} was refused with the reason {:?}; the contract's word is {}",
                refusal.reason,
                words.join(" or ")
            ));
        }
    }

    /// Goes on only if the last call was certainly answered while `lease` lived.
    ///
    /// # Errors
    /// [`Stop::Undecided`] otherwise.
    pub fn while_live(&self, lease: &Lease) -> Verdict {
        let bound_ms = lease.since.sent_ms + lease.ttl_ms - self.granularity_ms();
        let answered_ms = self.last().answered_ms;
        let live =
            if self.is_caller_clock() { answered_ms <= bound_ms } else { answered_ms < bound_ms };
        if live {
            return Ok(());
        }
        Err(Stop::Undecided(format!(
            "an answer that had to come before the lease of {} ms could end came {} ms after its claim was sent",
            lease.ttl_ms,
            answered_ms.saturating_sub(lease.since.sent_ms)
        )))
    }

    /// Goes on only if the last call was certainly sent after `lease` had expired.
    ///
    /// # Errors
    /// [`Stop::Undecided`] otherwise.
    pub fn when_dead(&self, lease: &Lease) -> Verdict {
        if self.last().sent_ms >= self.dead_from_ms(lease) {
            return Ok(());
        }
        Err(Stop::Undecided(format!(
            "a call came before the lease of {} ms had surely ended",
            lease.ttl_ms
        )))
    }

    fn dead_from_ms(&self, lease: &Lease) -> u64 {
        let expiry_ms = lease.since.answered_ms + lease.ttl_ms;
        let g = self.granularity_ms();
        if self.is_caller_clock() { expiry_ms + g - 1 } else { expiry_ms + g + 1 }
    }

    /// Lets time pass until the lease has surely expired, and not a millisecond longer.
    ///
    /// # Errors
    /// A fault where the wait was cut short.
    pub fn wait_for_expiry(&mut self, lease: &Lease) -> Verdict {
        let until_ms = self.dead_from_ms(lease);
        self.wait_until(until_ms)
    }

    /// Lets time pass until the lease is long dead: another half of its lifetime beyond its expiry.
    ///
    /// # Errors
    /// A fault where the wait was cut short.
    pub fn wait_past(&mut self, lease: &Lease) -> Verdict {
        let until_ms = self.dead_from_ms(lease) + lease.ttl_ms / 2;
        self.wait_until(until_ms)
    }

    /// Lets time pass until `quarters` quarters of the time in which the lease surely lives have gone;
    /// four quarters on the caller's clock is its very last live moment.
    ///
    /// # Errors
    /// A fault where the wait was cut short.
    pub fn wait_within(&mut self, lease: &Lease, quarters: u64) -> Verdict {
        let live_ms = lease.ttl_ms - self.granularity_ms();
        self.wait_until(lease.since.sent_ms + live_ms * quarters / 4)
    }

    /// The last quarter that leaves a wall-clock subject time to answer; the very end on the caller's.
    #[must_use]
    pub fn last_quarter(&self) -> u64 {
        if self.is_caller_clock() { 4 } else { 3 }
    }

    /// Claims as somebody else while `lease` lives: the answer must be `null`.
    ///
    /// # Errors
    /// A violation where something was delivered although the lease certainly lived.
    pub fn fenced(&mut self, store: &StoreRef, lease: &Lease, other: &str) -> Verdict {
        let found = self.claim(store, &lease.of, other)?;
        self.while_live(lease)?;
        match found {
            None => Ok(()),
            Some(got) => broken(
                format!(
                    "while {}'s lease lives, every other claim on {} answers null",
                    lease.owner, lease.of
                ),
                format!("{other} got the lease {:?} with {}", got.id, shown(&got.messages)),
            ),
        }
    }

    /// Claims and acks until `null`; everything delivered, in order.
    ///
    /// # Errors
    /// A violation where something acked comes again, or an ack of the drain is refused.
    pub fn drain(&mut self, store: &StoreRef, from: &Address) -> Result<Vec<Sent>, Stop> {
        let mut drained: Vec<Sent> = Vec::new();
        for _ in 0..DRAIN_CLAIMS_MAX {
            let Some(lease) = self.claim(store, from, "drainer")? else { return Ok(drained) };
            let up_to = lease.last_seq();
            if let Some(again) =
                lease.messages.iter().find(|m| drained.iter().any(|d| d.seq == m.seq))
            {
                return broken(
                    "what was acked is never delivered again",
                    format!(
                        "{} was delivered on {from} after its ack",
                        shown(std::slice::from_ref(again))
                    ),
                );
            }
            self.ack(store, &lease, up_to)?;
            drained.extend(lease.messages);
        }
        let message = format!("{DRAIN_CLAIMS_MAX} claims and acks did not empty {from}");
        Err(Stop::Fault(Fault::new(FaultKind::Limit, message)))
    }

    /// Drains the box, which must hold exactly `expected`, in order.
    ///
    /// # Errors
    /// A violation of `promised` where it does not.
    pub fn holds_exactly(
        &mut self,
        store: &StoreRef,
        of: &Address,
        expected: &[Sent],
        promised: &str,
    ) -> Verdict {
        let drained = self.drain(store, of)?;
        if same_messages(&drained, expected) {
            return Ok(());
        }
        broken(promised, format!("{of} held {}, not {}", shown(&drained), shown(expected)))
    }
}

/// Whether two deliveries are the same messages in the same order.
#[must_use]
pub fn same_messages(a: &[Sent], b: &[Sent]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.seq == b.seq && same(&a.body, &b.body))
}

/// The delivery must be a non-empty prefix of `waiting`, in order.
///
/// # Errors
/// A violation of `promised` where it is not.
pub fn is_prefix(delivered: &[Sent], waiting: &[Sent], promised: &str) -> Verdict {
    let prefix = waiting.get(..delivered.len());
    if !delivered.is_empty() && prefix.is_some_and(|prefix| same_messages(delivered, prefix)) {
        return Ok(());
    }
    broken(
        promised,
        format!("{} waited, and the claim delivered {}", shown(waiting), shown(delivered)),
    )
}

/// Messages as a sentence shows them.
#[must_use]
pub fn shown(messages: &[Sent]) -> String {
    const SHOWN_MAX: usize = 6;
    if messages.is_empty() {
        return "nothing".to_owned();
    }
    let mut parts: Vec<String> = messages
        .iter()
        .take(SHOWN_MAX)
        .map(|m| format!("#{} {}", m.seq, excerpt(&m.body)))
        .collect();
    if messages.len() > SHOWN_MAX {
        parts.push(format!("… ({} in all)", messages.len()));
    }
    format!("[{}]", parts.join(", "))
}

fn sent(messages: Vec<WireMessage>) -> Result<Vec<Sent>, Stop> {
    messages.into_iter().map(|m| Ok(Sent { seq: seq_of(&m.seq)?, body: m.body })).collect()
}

/// A seq as a whole number; its range is judged by `mailbox/core/seq-increases` alone.
fn seq_of(seq: &Json) -> Result<u64, Stop> {
    if let Some(whole) = seq.as_u64() {
        return Ok(whole);
    }
    match seq.as_f64() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole and in range"
        )]
        Some(number) if number.fract() == 0.0 && (0.0..1e19).contains(&number) => Ok(number as u64),
        Some(_) => broken("a seq is an integer in 1..2^53-1", format!("the seq {}", excerpt(seq))),
        None => {
            let message = format!("a seq is {}, not a number", excerpt(seq));
            Err(Stop::Fault(Fault::new(FaultKind::BadForm, message)))
        }
    }
}
