//! Housekeeping throws away nothing that anybody still counts on.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{Sent, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Millis, Seq};
use crate::subject::{Reply, Subject};
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use crate::world::{Clockwork, World};

use super::lease_from_claim::{AGE_MAX_MS, Ages, WALL_AGE_MAX_MS, append_dated};

/// How often a backlog is reaped while it waits on the caller's clock.
const REAPS: u64 = 12;
/// How long it waits before each reap, in milliseconds; 366 days in all.
const REAP_EVERY_MS: u64 = 366 * 24 * 3_600_000 / REAPS;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reap-harmless",
    at: file!(),
    statement: "Reap loses no message, frees no live lease and lowers no seq.",
    why: "Housekeeping runs when nobody looks. Compaction that forgets a message, a lease or a counter does its damage unseen.",
    steps: &[
        "append to alpha and beta; ann claims alpha with max 2, so that some stays undelivered; append late to alpha; reap",
        "bob's claim on alpha: null; ann's ack up to late's own seq: taken, and counts only what she was delivered; the rest of alpha is there, late at the end",
        "cid claims beta and lets the lease expire while dan's lease on gamma lives; reap; bob's claim on gamma: null; beta still holds its messages",
        "(caller's clock) a backlog waits for 366 days with a reap in each month and is still there",
        "with both boxes empty: reap; the next seq is above all earlier ones",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "reap-frees-live-leases",
            fault: "frees every lease at reap",
            make: subject::<FreesLive>,
        },
        Mutant {
            name: "reap-loses-unclaimed",
            fault: "throws away the messages of boxes without a lease",
            make: subject::<LosesUnclaimed>,
        },
        Mutant {
            name: "reap-loses-undelivered",
            fault: "throws away what a live lease has not delivered",
            make: subject::<LosesUndelivered>,
        },
        Mutant {
            name: "reap-buries-expired",
            fault: "throws away what an expired lease had delivered",
            make: subject::<BuriesExpired>,
        },
        Mutant {
            name: "reap-stretches-leases",
            fault: "lets a live lease cover all of the box at reap",
            make: subject::<Stretches>,
        },
        Mutant {
            name: "reap-frees-all-when-one-expired",
            fault: "frees every lease at a reap that finds an expired one",
            make: subject::<FreesAllWithOne>,
        },
        Mutant {
            name: "reap-forgets-old-mail",
            fault: "throws away at reap what has waited for a day (on the wall clock: half a second)",
            make: forgets_old,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let theirs = t.append_many(&store, &at("beta"), "b", 2)?;
    let last = spares_a_live_lease(t, &store)?;
    tells_expired_from_live(t, &store, &theirs)?;
    if t.is_caller_clock() {
        spares_a_backlog(t, &store)?;
    }
    lowers_no_seq(t, &store, last)
}

/// Leaves alpha empty and answers its last seq.
fn spares_a_live_lease(t: &mut Trial<'_>, store: &StoreRef) -> Result<u64, Stop> {
    let alpha = at("alpha");
    let mut sent = t.append_many(store, &alpha, "a", 3)?;
    let ttl_ms = t.long_ttl_ms();
    let lease = t.claim_at_most(store, &alpha, ttl_ms, Some(2))?;
    sent.extend(t.append_many(store, &alpha, "late", 1)?);
    let last = sent[sent.len() - 1].seq;
    t.reap(store)?;
    t.fenced(store, &lease, "bob")?;
    t.ack_counted(store, &lease, last, lease.messages.len())?;
    let rest: Vec<Sent> = sent.split_off(lease.messages.len().min(sent.len()));
    t.holds_exactly(store, &alpha, &rest, "reap loses no message of a leased box")?;
    Ok(last)
}

fn tells_expired_from_live(t: &mut Trial<'_>, store: &StoreRef, theirs: &[Sent]) -> Verdict {
    let (beta, gamma) = (at("beta"), at("gamma"));
    let sent = t.append_many(store, &gamma, "c", 2)?;
    let live = t.claim_some(store, &gamma, "dan", "waiting messages are claimable")?;
    let promised = "reap loses no message that nobody claimed";
    let ttl_ms = t.short_ttl_ms();
    let expired = t.claim_some_for(store, &beta, "cid", ttl_ms, promised)?;
    t.wait_past(&expired)?;
    t.reap(store)?;
    t.fenced(store, &live, "bob")?;
    t.ack_counted(store, &live, live.last_seq(), live.messages.len())?;
    t.holds_exactly(store, &beta, theirs, "reap loses no message of an expired lease")?;
    let rest = &sent[live.messages.len().min(sent.len())..];
    t.holds_exactly(store, &gamma, rest, "reap loses no message of a leased box")
}

fn spares_a_backlog(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let delta = at("delta");
    let sent = t.append_many(store, &delta, "d", 3)?;
    for _ in 0..REAPS {
        t.wait(REAP_EVERY_MS)?;
        t.reap(store)?;
    }
    t.holds_exactly(store, &delta, &sent, "reap loses no message, however long it has waited")
}

fn lowers_no_seq(t: &mut Trial<'_>, store: &StoreRef, last: u64) -> Verdict {
    t.reap(store)?;
    let seq = t.append(store, &at("alpha"), "next")?;
    if seq > last {
        return Ok(());
    }
    broken("reap lowers no seq", format!("after {last} and a reap the next seq was {seq}"))
}

altered!(FreesLive {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        self.0.state().boxes.values_mut().for_each(|b| b.lease = None);
        Ok(())
    }
});

altered!(LosesUnclaimed {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.state().boxes.values_mut().filter(|b| b.lease.is_none()).for_each(|b| b.messages.clear());
        self.0.reap(now)
    }
});

altered!(LosesUndelivered {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        for b in self.0.state().boxes.values_mut() {
            if let Some(delivered) = b.live(time).map(|held| held.delivered) {
                b.messages.retain(|m| m.seq <= delivered);
            }
        }
        self.0.reap(now)
    }
});

altered!(BuriesExpired {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        for b in self.0.state().boxes.values_mut() {
            if let Some(held) = b.lease.take_if(|held| time >= held.expiry) {
                b.messages.retain(|m| m.seq > held.delivered);
            }
        }
        self.0.reap(now)
    }
});

altered!(Stretches {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        for b in self.0.state().boxes.values_mut() {
            if let Some(held) = &mut b.lease {
                held.delivered = Seq(b.last_seq);
            }
        }
        Ok(())
    }
});

altered!(FreesAllWithOne {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        let mut state = self.0.state();
        if state.boxes.values().filter_map(|b| b.lease.as_ref()).any(|held| time >= held.expiry) {
            state.boxes.values_mut().for_each(|b| b.lease = None);
        }
        drop(state);
        self.0.reap(now)
    }
});

fn forgets_old(world: World) -> Box<dyn Subject> {
    match world.clock {
        Clockwork::Caller => subject::<ForgetsAfterADay>(world),
        Clockwork::Wall(_) => subject::<ForgetsSoon>(world),
    }
}

/// Throws away what has waited for `age_max_ms` and is under no live lease.
fn forget(model: &Model, ages: &Ages, now: Millis, age_max_ms: u64) {
    let time = model.time(now);
    for (of, b) in &mut model.state().boxes {
        if b.live(time).is_none() {
            let since = |seq: Seq| ages.get(&(of.clone(), seq)).map_or(time.0, |since| since.0);
            b.messages.retain(|m| time.0.saturating_sub(since(m.seq)) < age_max_ms);
        }
    }
}

altered!(ForgetsAfterADay remembers Ages {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        append_dated(&mut self.0, &mut self.1, to, body, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        forget(&self.0, &self.1, now, AGE_MAX_MS);
        self.0.reap(now)
    }
});

altered!(ForgetsSoon remembers Ages {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        append_dated(&mut self.0, &mut self.1, to, body, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        forget(&self.0, &self.1, now, WALL_AGE_MAX_MS);
        self.0.reap(now)
    }
});
