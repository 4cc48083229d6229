//! A lease is as old as its claim, not as its message.

use crate::clause::{Clause, Mutant};
use crate::mailbox::model::Model;
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::{Reply, Subject};
use crate::trial::{StoreRef, Trial, Verdict};
use crate::world::{Clockwork, World};
use std::collections::{BTreeMap, BTreeSet};

/// How long mail waits for its consumer on the caller's clock: 366 days in milliseconds.
const LONG_WAIT_MS: u64 = 366 * 24 * 3_600_000;
/// The age at which a mutant throws mail away on the caller's clock: a day in milliseconds.
pub(super) const AGE_MAX_MS: u64 = 24 * 3_600_000;
/// The same on the wall's clock, where nobody waits for a day.
pub(super) const WALL_AGE_MAX_MS: u64 = 500;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "lease-from-claim",
    at: file!(),
    statement: "A lease runs from its claim, however long the message had waited before.",
    why: "A backlog is when leases matter most. A store that measures from the append hands an old message out twice in the same moment.",
    steps: &[
        "append m1, m2 and let them wait for two ttls",
        "ann claims for one ttl; reap; bob claims: null",
        "half a ttl later: reap; bob claims: null",
        "after the lease expired: bob claims, and both messages are still there",
        "(caller's clock) the same after 366 days",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "lease-runs-from-the-append",
            fault: "lets a lease expire one ttl after its oldest message was appended",
            make: subject::<FromTheAppend>,
        },
        Mutant {
            name: "reap-frees-leases-on-old-messages",
            fault: "frees at reap the first lease on messages that had waited longer than its ttl",
            make: subject::<ReapFreesOld>,
        },
        Mutant {
            name: "old-mail-is-not-delivered",
            fault: "throws away at a claim what has waited for a day (on the wall clock: half a second)",
            make: forgets_old,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let wait_ms = 2 * t.short_ttl_ms();
    claimed_after(t, &store, "alpha", wait_ms)?;
    if t.is_caller_clock() {
        claimed_after(t, &store, "beta", LONG_WAIT_MS)?;
    }
    Ok(())
}

fn claimed_after(t: &mut Trial<'_>, store: &StoreRef, handle: &str, wait_ms: u64) -> Verdict {
    let of = at(handle);
    let sent = t.append_many(store, &of, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    t.wait(wait_ms)?;
    let promised = "a message is claimable, however long it has waited";
    let lease = t.claim_some_for(store, &of, "ann", ttl_ms, promised)?;
    is_prefix(&lease.messages, &sent, promised)?;
    t.reap(store)?;
    t.fenced(store, &lease, "bob")?;
    t.wait_within(&lease, 2)?;
    t.reap(store)?;
    t.fenced(store, &lease, "bob")?;
    t.wait_past(&lease)?;
    t.holds_exactly(store, &of, &sent, "once a lease has expired the box is claimable")
}

altered!(FromTheAppend remembers BTreeMap<(Address, Seq), Millis> {
    fn append(&mut self, to: &Address, body: &crate::json::Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.1.insert((to.clone(), seq), self.0.time(now));
        Ok(seq)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let fenced = self.0.with_box(from, |b| b.live(time).is_some());
        let claimed = self.0.claim(from, ask, now)?;
        let oldest = claimed.as_ref().and_then(|d| self.1.get(&(from.clone(), d.messages[0].seq)).copied());
        if let (false, Some(oldest)) = (fenced, oldest) {
            let expiry = crate::mailbox::model::expiry(oldest, ask.ttl_ms)?;
            self.0.with_box(from, |b| {
                if let Some(held) = &mut b.lease {
                    held.expiry = expiry;
                }
            });
        }
        Ok(claimed)
    }
});

altered!(ReapFreesOld remembers (BTreeMap<Address, Millis>, BTreeSet<Address>) {
    fn append(&mut self, to: &Address, body: &crate::json::Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        self.1.0.entry(to.clone()).or_insert(time);
        self.0.append(to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let claimed = self.0.claim(from, ask, now)?;
        // Only the first lease of a box: what is redelivered has waited under a lease.
        let since = claimed.as_ref().and_then(|_| self.1.0.insert(from.clone(), Millis(u64::MAX)));
        let waited_ms = since.map_or(0, |since| time.0.saturating_sub(since.0));
        if i64::try_from(waited_ms).is_ok_and(|waited_ms| waited_ms > ask.ttl_ms) {
            self.1.1.insert(from.clone());
        }
        Ok(claimed)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        for of in &self.1.1 {
            self.0.with_box(of, |b| b.lease = None);
        }
        self.0.reap(now)
    }
});

fn forgets_old(world: World) -> Box<dyn Subject> {
    match world.clock {
        Clockwork::Caller => subject::<ForgetsAfterADay>(world),
        Clockwork::Wall(_) => subject::<ForgetsSoon>(world),
    }
}

/// When each message was appended.
pub(super) type Ages = BTreeMap<(Address, Seq), Millis>;

pub(super) fn append_dated(
    model: &mut Model,
    ages: &mut Ages,
    to: &Address,
    body: &crate::json::Json,
    now: Millis,
) -> Reply<Seq> {
    let seq = model.append(to, body, now)?;
    ages.insert((to.clone(), seq), model.time(now));
    Ok(seq)
}

/// Throws away what has waited for `age_max_ms` in a box that nobody has claimed.
fn forget(model: &Model, ages: &Ages, of: &Address, now: Millis, age_max_ms: u64) {
    let time = model.time(now).0;
    let since = |seq: Seq| ages.get(&(of.clone(), seq)).map_or(time, |since| since.0);
    model.with_box(of, |b| {
        if b.lease.is_none() {
            b.messages.retain(|m| time.saturating_sub(since(m.seq)) < age_max_ms);
        }
    });
}

altered!(ForgetsAfterADay remembers Ages {
    fn append(&mut self, to: &Address, body: &crate::json::Json, now: Millis) -> Reply<Seq> {
        append_dated(&mut self.0, &mut self.1, to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        forget(&self.0, &self.1, from, now, AGE_MAX_MS);
        self.0.claim(from, ask, now)
    }
});

altered!(ForgetsSoon remembers Ages {
    fn append(&mut self, to: &Address, body: &crate::json::Json, now: Millis) -> Reply<Seq> {
        append_dated(&mut self.0, &mut self.1, to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        forget(&self.0, &self.1, from, now, WALL_AGE_MAX_MS);
        self.0.claim(from, ask, now)
    }
});
