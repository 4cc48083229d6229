//! The smallest store that keeps the whole mailbox contract, in memory, with every capability.
//!
//! It is the ground that mutants are built over and that laws are checked on; it keeps each storage
//! in a shared cell, so that closing and attaching work as they do for a durable store.

use super::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq, Tombstones,
};
use crate::json::Json;
use crate::subject::{Reply, StoreError};
use crate::world::{Clockwork, Gap, World};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All that one storage keeps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// The boxes by recipient.
    #[serde(serialize_with = "as_pairs", deserialize_with = "from_pairs")]
    pub boxes: BTreeMap<Address, BoxState>,
    /// Recipients before their deletion.
    pub tombstones: BTreeSet<Address>,
    /// How many leases were minted in the life of the storage.
    pub leases_minted: u64,
    /// Room for what a mutant remembers of the storage; the model itself never looks at it.
    pub scrap: Vec<(Address, Message)>,
    /// The same for a mutant that locks the storage by a mark in it.
    pub marked: bool,
}

/// One recipient's box.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BoxState {
    /// The last seq minted in the life of the box; 0 before the first.
    pub last_seq: u64,
    /// Not yet acked, ascending.
    pub messages: Vec<Message>,
    /// The last lease that was neither settled nor released; it may have expired.
    pub lease: Option<Held>,
}

/// A lease as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its id.
    pub id: LeaseId,
    /// Its holder.
    pub owner: String,
    /// Live while now is below.
    pub expiry: Millis,
    /// The last seq it delivered.
    pub delivered: Seq,
}

/// JSON's keys are strings, a recipient is a pair.
fn as_pairs<S: Serializer>(boxes: &BTreeMap<Address, BoxState>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(boxes)
}

fn from_pairs<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Address, BoxState>, D::Error> {
    Vec::<(Address, BoxState)>::deserialize(from).map(|pairs| pairs.into_iter().collect())
}

impl BoxState {
    /// The lease, if it lives at `now`.
    #[must_use]
    pub fn live(&self, now: Millis) -> Option<&Held> {
        self.lease.as_ref().filter(|held| now < held.expiry)
    }

    /// What a claim delivers: everything up to `max`.
    #[must_use]
    pub fn front(&self, max: Option<i64>) -> Vec<Message> {
        let max = max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        self.messages.iter().take(max).cloned().collect()
    }
}

/// One open handle on a storage.
#[derive(Clone)]
pub struct Model {
    storage: Arc<Mutex<State>>,
    world: World,
    process: u64,
    closed: bool,
}

impl Model {
    /// A handle on `storage` in the process of that number, living in `world`.
    #[must_use]
    pub fn new(storage: Arc<Mutex<State>>, world: World, process: u64) -> Self {
        Self { storage, world, process, closed: false }
    }

    /// The number of the process that the handle is open in; no other process ever had it.
    #[must_use]
    pub fn process(&self) -> u64 {
        self.process
    }

    /// A moment in the middle of an operation in which another process may act. What the operation read
    /// before it may be out of date behind it.
    ///
    /// # Errors
    /// The process is killed there.
    pub fn gap(&self) -> Reply<()> {
        match self.world.gap() {
            Gap::Over => Ok(()),
            Gap::Killed => Err(StoreError::Broken("the process was killed".to_owned())),
        }
    }

    /// The operation under way will never answer.
    ///
    /// # Errors
    /// Always.
    pub fn hang<T>(&self) -> Reply<T> {
        self.world.hang();
        Err(StoreError::Broken("nobody hears this answer".to_owned()))
    }

    /// The storage, whatever state the handle is in.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The box of `of`, made if it is not there.
    pub fn with_box<T>(&self, of: &Address, act: impl FnOnce(&mut BoxState) -> T) -> T {
        act(self.state().boxes.entry(of.clone()).or_default())
    }

    /// The moment that judges leases.
    #[must_use]
    pub fn time(&self, now: Millis) -> Millis {
        match &self.world.clock {
            Clockwork::Caller => now,
            Clockwork::Wall(clock) => Millis(clock.now_ms()),
        }
    }

    /// Whether the handle was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Closes the handle.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Mints a lease id that no lease of this storage ever had.
    #[must_use]
    pub fn mint_lease(&self) -> LeaseId {
        let mut state = self.state();
        state.leases_minted += 1;
        LeaseId(format!("lease-{}", state.leases_minted))
    }

    fn open_for(&self, of: &Address) -> Reply<()> {
        self.open()?;
        if of.scope.0.is_empty() || of.handle.0.is_empty() {
            return Err(StoreError::refused("invalid_name", "scope and handle are non-empty"));
        }
        Ok(())
    }

    fn open(&self) -> Reply<()> {
        if self.closed {
            return Err(StoreError::refused("closed", "this store is closed"));
        }
        Ok(())
    }

    /// The live lease of `of` if `owner` holds it by that id.
    fn held(&self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<Held> {
        self.open_for(of)?;
        let now = self.time(now);
        self.with_box(of, |b| b.live(now).cloned())
            .filter(|held| held.owner == owner && held.id == *lease)
            .ok_or_else(not_held)
    }
}

/// The refusal for everything that needs a live lease and has none.
#[must_use]
pub fn not_held() -> StoreError {
    StoreError::refused("lease_not_held", "the caller does not hold the live lease of this box")
}

/// `now + ttl_ms`, refused where the ttl is not above 0.
///
/// # Errors
/// `invalid_ttl`.
pub fn expiry(now: Millis, ttl_ms: i64) -> Reply<Millis> {
    match u64::try_from(ttl_ms) {
        Ok(ttl_ms) if ttl_ms > 0 => Ok(Millis(now.0.saturating_add(ttl_ms))),
        Ok(_) | Err(_) => Err(StoreError::refused("invalid_ttl", "ttlMs is above 0")),
    }
}

impl MailboxStore for Model {
    fn append(&mut self, to: &Address, body: &Json, _now: Millis) -> Reply<Seq> {
        self.open_for(to)?;
        if self.state().tombstones.contains(to) {
            return Err(StoreError::refused("recipient_deleted", "the recipient is being deleted"));
        }
        Ok(self.with_box(to, |b| {
            b.last_seq += 1;
            let seq = Seq(b.last_seq);
            b.messages.push(Message { seq, body: body.clone() });
            seq
        }))
    }

    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.open_for(from)?;
        let now = self.time(now);
        let expiry = expiry(now, ask.ttl_ms)?;
        if ask.max.is_some_and(|max| max <= 0) {
            return Err(StoreError::refused("invalid_max", "max is above 0"));
        }
        let live = self.with_box(from, |b| b.live(now).cloned());
        if let Some(held) = live {
            if held.owner != ask.owner {
                return Ok(None);
            }
            let messages = self.with_box(from, |b| {
                b.messages.iter().filter(|m| m.seq <= held.delivered).cloned().collect()
            });
            return Ok(Some(Delivery { lease: held.id, messages }));
        }
        let messages = self.with_box(from, |b| b.front(ask.max));
        let Some(last) = messages.last() else { return Ok(None) };
        let (delivered, lease) = (last.seq, self.mint_lease());
        let held = Held { id: lease.clone(), owner: ask.owner.clone(), expiry, delivered };
        self.with_box(from, |b| b.lease = Some(held));
        Ok(Some(Delivery { lease, messages }))
    }

    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let held = self.held(of, owner, lease, now)?;
        Ok(self.with_box(of, |b| {
            let before = b.messages.len();
            b.messages.retain(|m| m.seq > up_to || m.seq > held.delivered);
            b.lease = None;
            (before - b.messages.len()) as u64
        }))
    }

    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.held(of, owner, lease, now)?;
        self.with_box(of, |b| b.lease = None);
        Ok(())
    }

    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        let mut held = self.held(of, owner, lease, now)?;
        held.expiry = expiry(self.time(now), ttl_ms)?;
        self.with_box(of, |b| b.lease = Some(held));
        Ok(())
    }

    fn peek(&mut self, of: &Address, _now: Millis) -> Reply<Vec<Message>> {
        self.open_for(of)?;
        Ok(self.with_box(of, |b| b.messages.clone()))
    }

    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.open()?;
        let now = self.time(now);
        for b in self.state().boxes.values_mut() {
            if b.live(now).is_none() {
                b.lease = None;
            }
        }
        Ok(())
    }

    fn drop_box(&mut self, of: &Address, _now: Millis) -> Reply<u64> {
        self.open_for(of)?;
        Ok(self.with_box(of, |b| {
            b.lease = None;
            std::mem::take(&mut b.messages).len() as u64
        }))
    }
}

impl Tombstones for Model {
    fn tombstone(&mut self, of: &Address, _now: Millis) -> Reply<()> {
        self.open_for(of)?;
        self.state().tombstones.insert(of.clone());
        Ok(())
    }
}
