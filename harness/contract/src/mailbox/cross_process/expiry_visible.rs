//! A lease ends in every process at the same moment.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, same_messages, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use std::collections::BTreeSet;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "expiry-visible",
    at: file!(),
    statement: "A lease that one process gave runs out for every process at its time, also where the giver does nothing any more.",
    why: "A lease that only its own process can end locks everybody out as soon as that process is stuck or gone.",
    steps: &[
        "append to alpha; ann claims it here for a short while; bob is fenced in the peer, also in the last quarter of the lease",
        "this process does nothing more; the lease runs out; bob's claim in the peer gets the same messages, same seqs, same order",
        "now bob's lease fences here",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "expiry-known-at-home-only",
            fault: "lets a lease run out only in the process that gave it",
            make: subject::<EndsAtHome>,
        },
        Mutant {
            name: "away-leases-end-early",
            fault: "takes a lease that another process gave for ended after three quarters of its time",
            make: subject::<EndsEarlyAway>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let alpha = at("alpha");
    let sent = t.append_many(&pair.b, &alpha, "m", 3)?;
    let ttl_ms = t.short_ttl_ms();
    let promised = "waiting messages are claimable";
    let lease = t.claim_some_for(&pair.a, &alpha, "ann", ttl_ms, promised)?;
    t.fenced(&pair.b, &lease, "bob")?;
    let quarters = t.last_quarter();
    t.wait_within(&lease, quarters)?;
    t.fenced(&pair.b, &lease, "bob")?;
    t.wait_for_expiry(&lease)?;
    let promised = "a lease that has run out fences nothing, in any process";
    let next = t.claim_some(&pair.b, &alpha, "bob", promised)?;
    t.when_dead(&lease)?;
    let waiting = sent.get(..next.messages.len()).unwrap_or_default();
    if !same_messages(&next.messages, waiting) {
        return broken(
            "after a lease has run out the same messages come again, with their seqs and in order",
            format!("{} waited, and {} came", shown(&sent), shown(&next.messages)),
        );
    }
    t.fenced(&pair.a, &next, "ann")
}

altered!(EndsAtHome remembers BTreeSet<String> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let away = self.0.with_box(from, |b| b.lease.clone()).filter(|held| !self.1.contains(&held.id.0));
        if away.is_some() {
            return Ok(None);
        }
        let found = self.0.claim(from, ask, now)?;
        self.1.extend(found.iter().map(|found| found.lease.0.clone()));
        Ok(found)
    }
});

altered!(EndsEarlyAway remembers (BTreeSet<String>, u64) {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let own = &self.1.0;
        self.0.with_box(from, |b| {
            let away = b.lease.as_ref().filter(|held| !own.contains(&held.id.0));
            // The time of the claim is not stored; a lease in its last part is near its end.
            let left_ms = away.map(|held| held.expiry.0.saturating_sub(time.0));
            if left_ms.is_some_and(|left| left > 0 && left < 20_000 && left * 4 < ask.ttl_ms.cast_unsigned()) {
                b.lease = None;
            }
        });
        let found = self.0.claim(from, ask, now)?;
        self.1.0.extend(found.iter().map(|found| found.lease.0.clone()));
        Ok(found)
    }
});
