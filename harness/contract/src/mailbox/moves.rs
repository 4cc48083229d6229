//! The moves that mailbox clauses are written in: typed calls whose answers are judged where every
//! store must agree, and handed on where a clause has its own say.

pub use super::delivery::{Sent, is_prefix, same_messages, shown};
pub use super::lease::Lease;

use super::delivery::{sent, seq_of};
use super::store::Address;
use super::wire::{AckResult, AppendResult, ClaimResult, DropResult, PeekResult};
use crate::call::Refusal;
use crate::host::Nothing;
use crate::json::Json;
use crate::trial::{Answered, Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// The recipient `handle` in the scope that every mailbox serves.
#[must_use]
pub fn at(handle: &str) -> Address {
    Address::new("default", handle)
}

impl Trial<'_> {
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
        Ok(self.must::<AppendResult>(store.side, "mailbox/append", params, &promised)?.seq)
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
        match self.ask::<AppendResult>(store.side, "mailbox/append", params, bad_argument)? {
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
        let found = match self.ask::<Option<ClaimResult>>(
            store.side,
            "mailbox/claim",
            params,
            bad_argument,
        )? {
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
        Ok(self
            .ask::<AckResult>(store.side, "mailbox/ack", params, false)?
            .map(|result| result.acked))
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
        Ok(self.ask::<Nothing>(store.side, "mailbox/release", params, false)?.map(|_| ()))
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
        Ok(self.ask::<Nothing>(store.side, "mailbox/renew", params, true)?.map(|_| ()))
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
        sent(self.must::<PeekResult>(store.side, "mailbox/peek", params, &promised)?.messages)
    }

    /// Housekeeping over the whole store.
    ///
    /// # Errors
    /// As [`Trial::must`].
    pub fn reap(&mut self, store: &StoreRef) -> Verdict {
        let params = json!({ "store": store.id, "now": self.now_ms() });
        self.must::<Nothing>(store.side, "mailbox/reap", params, "reap is not refused").map(|_| ())
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
        Ok(self
            .ask::<DropResult>(store.side, "mailbox/drop", params, true)?
            .map(|result| result.dropped))
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
        self.must::<Nothing>(store.side, "recipient/tombstone", params, &promised).map(|_| ())
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
}
