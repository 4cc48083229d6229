//! Leases as the bench holds them, and the one rule about time.
//!
//! **The rule about time.** A lease claimed by a call sent at t0 and answered at t1 is certainly live
//! for a call answered before t0 + ttl - g, and certainly dead for a call sent after t1 + ttl + g,
//! where g is the subject's lease granularity. On the caller's clock t0 = t1 and both bounds are
//! exact: the fence holds while now <= expiry - g and is gone from expiry + g - 1. Whatever a clause
//! says about a lease it says through [`Trial::while_live`] or [`Trial::when_dead`], so that an answer
//! in between decides nothing and a slow machine is never blamed on the store.

use super::delivery::Sent;
use super::moves::shown;
use super::store::Address;
use crate::trial::{Moment, Stop, StoreRef, Trial, Verdict, broken};

/// How long a lease lives whose expiry is not the point, in milliseconds.
const LONG_TTL_MS: u64 = 3_600_000;
/// The same where the granularity is coarse: at least so many times the granularity, so that it
/// outlives a few leases of the shortest lifetime that such a store is asked for.
const LONG_TTL_GRAINS: u64 = 12;
/// How long a lease lives whose expiry is the point, on the caller's clock (milliseconds); no round
/// number of seconds, so that a store that rounds shows it.
const CALLER_TTL_MS: u64 = 61_234;
/// The same on the wall clock, at the first try; each further try takes [`WALL_TTL_GROWTH`] times as long.
const WALL_TTL_MS: u64 = 400;
/// See [`WALL_TTL_MS`].
const WALL_TTL_GROWTH: u64 = 4;
/// The shortest lifetime that is ever asked for, in times the granularity.
const TTL_GRAINS_MIN: u64 = 3;

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

impl Trial<'_> {
    /// A lifetime for leases whose expiry is not the point, in milliseconds.
    #[must_use]
    pub fn long_ttl_ms(&self) -> u64 {
        LONG_TTL_MS.max(LONG_TTL_GRAINS * self.granularity_ms())
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
        self.judgeable_ttl_ms(ttl_ms)
    }

    /// `ttl_ms`, or the shortest lifetime whose expiry can be judged at the subject's granularity.
    #[must_use]
    pub fn judgeable_ttl_ms(&self, ttl_ms: u64) -> u64 {
        ttl_ms.max(TTL_GRAINS_MIN * self.granularity_ms())
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

    /// Claims at most `max` messages as ann where messages wait and nothing fences them.
    ///
    /// # Errors
    /// A violation where nothing is delivered.
    pub fn claim_at_most(
        &mut self,
        store: &StoreRef,
        from: &Address,
        ttl_ms: u64,
        max: Option<u64>,
    ) -> Result<Lease, Stop> {
        match self.claim_for(store, from, "ann", ttl_ms, max)? {
            Some(lease) => Ok(lease),
            None => broken(
                "waiting messages are claimable",
                format!("ann's claim on {from} answered null"),
            ),
        }
    }

    /// The holder acks the first half of what `lease` delivered, at least one message. Answers how many.
    ///
    /// # Errors
    /// A violation where the ack is refused or counts otherwise.
    pub fn ack_first_half(&mut self, store: &StoreRef, lease: &Lease) -> Result<usize, Stop> {
        let half = (lease.messages.len() / 2).max(1);
        let up_to = lease.messages.get(half - 1).map_or(0, |message| message.seq);
        self.ack_counted(store, lease, up_to, half)?;
        Ok(half)
    }

    /// The holder of a live lease gives it back, which must be taken.
    ///
    /// # Errors
    /// A violation where it is refused although the lease lives.
    pub fn give_back(&mut self, store: &StoreRef, lease: &Lease) -> Verdict {
        let Err(refusal) = self.try_release(store, &lease.of, &lease.owner, &lease.id)? else {
            return Ok(());
        };
        self.while_live(lease)?;
        broken("the holder of a live lease may release it", format!("the release was {refusal}"))
    }
}
