//! The mailbox as a Rust trait: what a store author implements, and what every mutant wraps.
//!
//! Source: the operations table of the mailbox contract.

use crate::json::Json;
use crate::subject::{Reply, StoreError};
use serde::{Deserialize, Serialize};

/// Whose namespace a recipient lives in. Core clauses use `default`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Scope(pub String);

/// A recipient's name within its scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub String);

/// A recipient: the pair that names one box.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    /// Its scope.
    pub scope: Scope,
    /// Its handle.
    pub handle: Handle,
}

impl Address {
    /// The recipient (`scope`, `handle`).
    #[must_use]
    pub fn new(scope: &str, handle: &str) -> Self {
        Self { scope: Scope(scope.to_owned()), handle: Handle(handle.to_owned()) }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}/{:?}", self.scope.0, self.handle.0)
    }
}

/// A message's number within its box: 1..2^53-1, in append order, never minted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(pub u64);

/// The greatest seq, 2^53-1.
pub const SEQ_MAX: u64 = (1 << 53) - 1;

/// A lease's id: a non-empty string, never reused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId(pub String);

/// Epoch milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Millis(pub u64);

/// A message as delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its number.
    pub seq: Seq,
    /// Its body, equal to what was appended.
    pub body: Json,
}

/// What a successful claim answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The lease that fences the box.
    pub lease: LeaseId,
    /// A non-empty prefix of the box, ascending.
    pub messages: Vec<Message>,
}

/// What a claim asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimAsk {
    /// Who claims.
    pub owner: String,
    /// How long the lease is to live, in milliseconds; the store refuses `<= 0` with `invalid_ttl`.
    pub ttl_ms: i64,
    /// The most messages to deliver; the store refuses `<= 0` with `invalid_max`.
    pub max: Option<i64>,
}

/// One open mailbox store. Every method may refuse with `closed` once the store was closed.
pub trait MailboxStore {
    /// Appends a message; the receipt is a promise.
    ///
    /// # Errors
    /// `invalid_name`, `invalid_body`, `too_large`, or the store's tombstone code.
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq>;

    /// Leases the whole box to one owner, or answers `None`.
    ///
    /// # Errors
    /// `invalid_name`, `invalid_ttl`, `invalid_max`.
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>>;

    /// Settles a lease: delivered messages up to and including `up_to` go, and how many went is
    /// answered.
    ///
    /// # Errors
    /// `lease_not_held`.
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64>;

    /// Gives a lease back: everything is claimable at once.
    ///
    /// # Errors
    /// `lease_not_held`.
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let _ = (of, owner, lease, now);
        Err(StoreError::Missing)
    }

    /// Moves a lease's expiry to `now + ttl_ms`.
    ///
    /// # Errors
    /// `lease_not_held`, `invalid_ttl`.
    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        let _ = (of, owner, lease, ttl_ms, now);
        Err(StoreError::Missing)
    }

    /// Everything not yet acked, leased or not; changes nothing.
    ///
    /// # Errors
    /// `invalid_name`.
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let _ = (of, now);
        Err(StoreError::Missing)
    }

    /// Housekeeping over the whole store.
    ///
    /// # Errors
    /// Only `closed`.
    fn reap(&mut self, now: Millis) -> Reply<()>;

    /// Empties a box, lease included, and answers how many messages went. (`drop` on the wire; named
    /// so that nobody reads Rust's `Drop`.)
    ///
    /// # Errors
    /// `invalid_name`.
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64>;
}

/// The hook by which the bench puts a recipient into the state before its deletion.
pub trait Tombstones {
    /// From now on, appends to the recipient are refused with the store's one tombstone code.
    ///
    /// # Errors
    /// `invalid_name`, or a breakdown.
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()>;
}
