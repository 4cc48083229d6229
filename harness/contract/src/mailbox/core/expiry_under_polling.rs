//! Asking in vain changes nothing about when a lease ends.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// How often bob asks in vain.
const VAIN_CLAIMS: u64 = 6;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "expiry-under-polling",
    at: file!(),
    statement: "Another consumer that keeps claiming in vain neither prolongs nor shortens a lease, nor hides its expiry from itself.",
    why: "Consumers poll. If polling keeps a dead consumer's lease alive, its mail is stuck for exactly as long as anybody wants it.",
    steps: &[
        "append m1; ann claims for a ttl and does nothing",
        "bob claims six times while her lease lives, and once more at the last moment at which it surely lives: null each time",
        "after it expired (on the caller's clock at the very first moment), bob claims: m1",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "polling-prolongs-the-lease",
            fault: "adds a minute to the lease from the fourth vain claim on",
            make: subject::<Prolongs>,
        },
        Mutant {
            name: "polling-hides-the-expiry",
            fault: "answers null for ever to whoever claimed in vain four times",
            make: subject::<Hides>,
        },
        Mutant {
            name: "vain-claims-eat-the-lease",
            fault: "takes a tenth of its ttl from a lease with each vain claim",
            make: subject::<Eats>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    t.append(&store, &alpha, "m1")?;
    let ttl_ms = t.short_ttl_ms();
    let lease =
        t.claim_some_for(&store, &alpha, "ann", ttl_ms, "a waiting message is claimable")?;
    for i in 0..VAIN_CLAIMS {
        let quarter = i * t.last_quarter() / VAIN_CLAIMS;
        t.wait_within(&lease, quarter)?;
        t.fenced(&store, &lease, "bob")?;
    }
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.fenced(&store, &lease, "bob")?;
    if t.is_caller_clock() {
        t.wait_for_expiry(&lease)?;
    } else {
        t.wait_past(&lease)?;
    }
    t.claim_some(
        &store,
        &alpha,
        "bob",
        "a lease expires on time, however often others claimed in vain",
    )?;
    Ok(())
}

altered!(Prolongs remembers u32 {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        let time = self.0.time(now);
        let vain = claimed.is_none() && self.0.with_box(from, |b| b.live(time).is_some());
        self.1 = if vain { self.1 + 1 } else { 0 };
        if self.1 >= 4 {
            self.0.with_box(from, |b| {
                if let Some(held) = &mut b.lease {
                    held.expiry = Millis(held.expiry.0 + 60_000);
                }
            });
        }
        Ok(claimed)
    }
});

altered!(Hides remembers std::collections::BTreeMap<String, u32> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if self.1.get(&ask.owner).is_some_and(|vain| *vain >= 4) {
            return Ok(None);
        }
        let claimed = self.0.claim(from, ask, now)?;
        let time = self.0.time(now);
        if claimed.is_none() && self.0.with_box(from, |b| b.live(time).is_some()) {
            *self.1.entry(ask.owner.clone()).or_default() += 1;
        }
        Ok(claimed)
    }
});

altered!(Eats remembers u64 {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        if claimed.is_some() {
            self.1 = u64::try_from(ask.ttl_ms).unwrap_or(0);
            return Ok(claimed);
        }
        let tenth_ms = self.1 / 10;
        self.0.with_box(from, |b| {
            if let Some(held) = &mut b.lease {
                held.expiry = Millis(held.expiry.0.saturating_sub(tenth_ms));
            }
        });
        Ok(claimed)
    }
});
