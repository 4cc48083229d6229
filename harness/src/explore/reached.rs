//! Whether a run came to the places where stores go wrong: a search that never saw a lease expire has
//! said nothing of leases that expire.

use super::terms::Terms;
use std::collections::{BTreeMap, BTreeSet};
use storeproof_contract::mailbox::history::{Act, Call, Got, Outcome};

/// How often a run came to each place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Calls that were made.
    pub calls: u64,
    /// Leases that were seen to have expired.
    pub expired: u64,
    /// Claims that another's live lease fenced off.
    pub contended: u64,
    /// Acks of a part of a delivery.
    pub partial_acks: u64,
    /// Drops of a leased box.
    pub drops_under_lease: u64,
    /// Acks with an expired lease.
    pub stale_acks: u64,
    /// Reopenings while a lease lived.
    pub reopened_under_lease: u64,
    /// Calls that overlapped another one.
    pub overlapping: u64,
    /// Deliveries of at least two messages.
    pub deliveries_of_two: u64,
    /// Deliveries where at least two messages waited.
    pub offers_of_two: u64,
}

impl Reached {
    /// Adds what another run came to.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.expired += other.expired;
        self.contended += other.contended;
        self.partial_acks += other.partial_acks;
        self.drops_under_lease += other.drops_under_lease;
        self.stale_acks += other.stale_acks;
        self.reopened_under_lease += other.reopened_under_lease;
        self.overlapping += other.overlapping;
        self.deliveries_of_two += other.deliveries_of_two;
        self.offers_of_two += other.offers_of_two;
    }

    /// Every place with how often it was reached; those that this subject has not are left out.
    #[must_use]
    pub fn places(&self, terms: &Terms, overlaps: bool) -> Vec<(&'static str, u64)> {
        let mut places = vec![
            ("expired lease", self.expired),
            ("contended claim", self.contended),
            ("drop under a lease", self.drops_under_lease),
            ("stale ack", self.stale_acks),
        ];
        // A store may deliver one message a claim; then there is no part of a delivery to ack.
        if self.deliveries_of_two > 0 || self.offers_of_two == 0 {
            places.push(("partial ack", self.partial_acks));
        }
        if terms.durable {
            places.push(("reopening under a lease", self.reopened_under_lease));
        }
        if overlaps {
            places.push(("overlapping calls", self.overlapping));
        }
        places
    }

    /// The places that were never reached.
    #[must_use]
    pub fn missing(&self, terms: &Terms, overlaps: bool) -> Vec<&'static str> {
        self.places(terms, overlaps)
            .into_iter()
            .filter(|(_, n)| *n == 0)
            .map(|(place, _)| place)
            .collect()
    }
}

/// Watches the calls of one script.
#[derive(Clone, Debug)]
pub struct Watch {
    terms: Terms,
    boxes: BTreeMap<String, Seen>,
    lapsed: BTreeSet<String>,
    /// What was reached so far.
    pub reached: Reached,
}

/// One box, as far as it matters here.
#[derive(Clone, Debug, Default)]
struct Seen {
    waiting: f64,
    held: Option<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    lease: String,
    owner: String,
    delivered: f64,
    live_to_ms: u64,
    dead_from_ms: u64,
}

impl Watch {
    /// Nothing reached yet.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self { terms, boxes: BTreeMap::new(), lapsed: BTreeSet::new(), reached: Reached::default() }
    }

    /// A store was closed and opened again, at this time.
    pub fn reopened(&mut self, now_ms: u64) {
        let lives = |seen: &Seen| seen.held.as_ref().is_some_and(|h| now_ms <= h.live_to_ms);
        if self.boxes.values().any(lives) {
            self.reached.reopened_under_lease += 1;
        }
    }

    /// Hears a call; in a race, by the order of the sendings.
    pub fn see(&mut self, call: &Call) {
        self.reached.calls += 1;
        let Outcome::Ok(got) = &call.outcome else { return self.refused(call) };
        let seen = self.boxes.entry(call.of.handle.0.clone()).or_default();
        let (sent_ms, answered_ms) = (call.sent.ms, call.answered.unwrap_or(call.sent).ms);
        match (&call.act, got) {
            (Act::Append { .. }, Got::Seq(_)) => seen.waiting += 1.0,
            (Act::Claim { owner, ttl_ms, .. }, got) => {
                if let Some(held) = seen.held.take_if(|held| sent_ms >= held.dead_from_ms) {
                    self.lapsed.insert(held.lease);
                    self.reached.expired += 1;
                }
                if let Got::Delivery { lease, messages } = got {
                    let (live_to_ms, dead_from_ms) =
                        self.terms.lifetime(sent_ms, answered_ms, *ttl_ms);
                    self.reached.offers_of_two += u64::from(seen.waiting >= 2.0);
                    self.reached.deliveries_of_two += u64::from(messages.len() >= 2);
                    let (lease, owner) = (lease.clone(), owner.clone());
                    #[expect(clippy::cast_precision_loss, reason = "counts of a script are small")]
                    let delivered = messages.len() as f64;
                    seen.held = Some(Held { lease, owner, delivered, live_to_ms, dead_from_ms });
                } else if let Some(held) = &seen.held
                    && held.owner != *owner
                    && answered_ms <= held.live_to_ms
                {
                    self.reached.contended += 1;
                }
            }
            (Act::Ack { lease, .. }, Got::Count(count)) => {
                if let Some(held) = seen.held.take_if(|held| held.lease == *lease) {
                    let partial = *count > 0.0 && *count < held.delivered;
                    self.reached.partial_acks += u64::from(partial);
                }
                seen.waiting -= count;
            }
            (Act::Release { lease, .. }, _) => {
                seen.held.take_if(|held| held.lease == *lease);
            }
            (Act::Renew { lease, ttl_ms, .. }, _) => {
                if let Some(held) = seen.held.as_mut().filter(|held| held.lease == *lease) {
                    (held.live_to_ms, held.dead_from_ms) =
                        self.terms.lifetime(sent_ms, answered_ms, *ttl_ms);
                }
            }
            (Act::Drop, _) => {
                let lives = seen.held.take().is_some_and(|held| answered_ms <= held.live_to_ms);
                self.reached.drops_under_lease += u64::from(lives);
                seen.waiting = 0.0;
            }
            (Act::Append { .. } | Act::Ack { .. } | Act::Peek | Act::Reap, _) => {}
        }
    }

    fn refused(&mut self, call: &Call) {
        let Act::Ack { lease, .. } = &call.act else { return };
        let seen = self.boxes.entry(call.of.handle.0.clone()).or_default();
        let expired = seen
            .held
            .as_ref()
            .is_some_and(|held| held.lease == *lease && call.sent.ms >= held.dead_from_ms);
        if expired || self.lapsed.contains(lease) {
            self.reached.stale_acks += 1;
        }
    }
}
