//! A lease can be given back, by its holder only.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{Lease, at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{StoreRef, Trial, Verdict, broken};
use std::collections::BTreeSet;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "release",
    at: file!(),
    statement: "Release by the holder makes everything claimable at once and the lease dead; by anyone else it is refused and changes nothing.",
    why: "A consumer that shuts down hands its mail over without making anybody wait. If others can do it for it, the fence is no fence.",
    steps: &[
        "append m1, m2; ann claims",
        "bob releases with ann's lease id: refused; ann releases with an invented id: refused; cid claims: null",
        "ann releases: taken; ann acks with the released lease: refused",
        "bob claims at once: everything from the front, in order",
        "ann releases again: refused; bob's lease still fences",
        "on beta ann claims for a ttl; bob releases with her lease id, ann with an invented one: refused; just before her lease ends cid claims: null",
        "at the first moment at which it has surely ended, ann releases: refused, though nobody has claimed",
        "half a ttl later bob claims: delivered; ann releases with her old lease: refused, and bob's lease still fences",
        "bob acks, then releases with the settled lease: refused; what he did not ack is there, in order",
    ],
    needs: Some(Capability::Release),
    check,
    mutants: &[
        Mutant {
            name: "anybody-releases",
            fault: "takes a release from whoever names the lease",
            make: subject::<Anybody>,
        },
        Mutant {
            name: "release-keeps-the-fence",
            fault: "answers a release and does nothing",
            make: subject::<KeepsTheFence>,
        },
        Mutant {
            name: "released-lease-acks",
            fault: "takes an ack with a lease that was released",
            make: subject::<ReleasedAcks>,
        },
        Mutant {
            name: "refused-release-frees",
            fault: "frees the box while it refuses the release",
            make: subject::<RefusedFrees>,
        },
        Mutant {
            name: "release-removes",
            fault: "treats a release as an ack of the delivery",
            make: subject::<Removes>,
        },
        Mutant {
            name: "refused-release-prolongs",
            fault: "starts an hour anew for the lease while it refuses a release",
            make: subject::<RefusedProlongs>,
        },
        Mutant {
            name: "expired-lease-releases",
            fault: "takes a release with an expired lease as long as nobody else has claimed",
            make: subject::<ExpiredReleases>,
        },
        Mutant {
            name: "overtaken-lease-releases",
            fault: "frees the box for whoever once held a lease on it",
            make: subject::<OvertakenReleases>,
        },
        Mutant {
            name: "settled-lease-releases",
            fault: "takes a release with a lease that an ack settled",
            make: subject::<SettledReleases>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", 2)?;
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    refused(t, &store, &alpha, "bob", &lease.id, "bob does not hold the lease")?;
    refused(t, &store, &alpha, "ann", "no-such-lease", "no such lease was ever given")?;
    t.fenced(&store, &lease, "cid")?;
    released(t, &store, &lease)?;
    let why = "the lease was released";
    t.ack_refused(&store, &alpha, "ann", &lease.id, lease.last_seq(), why)?;
    let promised = "after a release everything is claimable at once, in order";
    let next = t.claim_some(&store, &alpha, "bob", promised)?;
    is_prefix(&next.messages, &sent, promised)?;
    refused(t, &store, &alpha, "ann", &lease.id, "the lease was released already")?;
    t.fenced(&store, &next, "cid")?;
    t.ack_counted(&store, &next, next.last_seq(), next.messages.len())?;
    t.holds_exactly(&store, &alpha, &sent[next.messages.len()..], promised)?;
    needs_a_live_lease(t, &store)
}

/// A lease that has expired, was overtaken or is settled releases nothing.
fn needs_a_live_lease(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let beta = at("beta");
    let sent = t.append_many(store, &beta, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let lease = t.claim_some_for(store, &beta, "ann", ttl_ms, "waiting messages are claimable")?;
    refused(t, store, &beta, "bob", &lease.id, "bob does not hold the lease")?;
    refused(t, store, &beta, "ann", "no-such-lease", "no such lease was ever given")?;
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.fenced(store, &lease, "cid")?;
    t.wait_for_expiry(&lease)?;
    refused(t, store, &beta, "ann", &lease.id, "the lease has expired")?;
    // When exactly the fence falls is another clause's matter.
    t.wait_past(&lease)?;
    let next = t.claim_some(store, &beta, "bob", "a refused release does not move the expiry")?;
    refused(t, store, &beta, "ann", &lease.id, "the lease has expired, and bob claimed since")?;
    t.fenced(store, &next, "cid")?;
    t.ack_counted(store, &next, next.last_seq(), next.messages.len())?;
    refused(t, store, &beta, "bob", &next.id, "the lease is settled")?;
    let rest = sent.get(next.messages.len()..).unwrap_or_default();
    t.holds_exactly(store, &beta, rest, "a refused release changes nothing")
}

fn released(t: &mut Trial<'_>, store: &StoreRef, lease: &Lease) -> Verdict {
    let Err(refusal) = t.try_release(store, &lease.of, &lease.owner, &lease.id)? else {
        return Ok(());
    };
    t.while_live(lease)?;
    broken("the holder of a live lease may release it", format!("the release was {refusal}"))
}

fn refused(
    t: &mut Trial<'_>,
    store: &StoreRef,
    of: &Address,
    owner: &str,
    lease: &str,
    why: &str,
) -> Verdict {
    match t.try_release(store, of, owner, lease)? {
        Err(refusal) => {
            t.expect_reason("mailbox/release", &refusal, &["lease_not_held"]);
            Ok(())
        }
        Ok(()) => broken(
            format!("release is refused: {why}"),
            format!("the release by {owner} with lease {lease:?} on {of} was taken"),
        ),
    }
}

altered!(Anybody {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let holder = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.owner.clone()));
        self.0.release(of, holder.as_deref().unwrap_or(owner), lease, now)
    }
});

altered!(KeepsTheFence {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        self.0.release(of, owner, lease, now)?;
        self.0.with_box(of, |b| b.lease = held);
        Ok(())
    }
});

altered!(ReleasedAcks remembers Vec<LeaseId> {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.0.release(of, owner, lease, now)?;
        self.1.push(lease.clone());
        Ok(())
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if !self.1.contains(lease) {
            return self.0.ack(of, owner, lease, up_to, now);
        }
        Ok(self.0.with_box(of, |b| {
            let before = b.messages.len();
            b.messages.retain(|m| m.seq > up_to);
            (before - b.messages.len()) as u64
        }))
    }
});

altered!(RefusedFrees {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let released: Result<(), StoreError> = self.0.release(of, owner, lease, now);
        self.0.with_box(of, |b| b.lease = None);
        released
    }
});

altered!(Removes {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.0.ack(of, owner, lease, Seq(u64::MAX), now).map(|_| ())
    }
});

altered!(RefusedProlongs {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let released = self.0.release(of, owner, lease, now);
        let time = self.0.time(now);
        if released.is_err() {
            self.0.with_box(of, |b| {
                if let Some(held) = b.lease.as_mut().filter(|held| time < held.expiry) {
                    held.expiry = Millis(time.0 + 3_600_000);
                }
            });
        }
        released
    }
});

altered!(ExpiredReleases {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.0.with_box(of, |b| {
            if let Some(held) = &mut b.lease
                && held.owner == owner
                && held.id == *lease
            {
                held.expiry = Millis(u64::MAX);
            }
        });
        self.0.release(of, owner, lease, now)
    }
});

altered!(OvertakenReleases remembers BTreeSet<(Address, String, LeaseId)> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        if let Some(delivery) = &claimed {
            self.1.insert((from.clone(), ask.owner.clone(), delivery.lease.clone()));
        }
        Ok(claimed)
    }
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        let once_held = self.1.contains(&(of.clone(), owner.to_owned(), lease.clone()));
        let overtaken =
            self.0.with_box(of, |b| b.live(time).is_some_and(|held| held.id != *lease));
        if once_held && overtaken {
            self.0.with_box(of, |b| b.lease = None);
            return Ok(());
        }
        self.0.release(of, owner, lease, now)
    }
});

altered!(SettledReleases remembers BTreeSet<LeaseId> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.1.insert(lease.clone());
        Ok(acked)
    }
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        if self.1.contains(lease) {
            return Ok(());
        }
        self.0.release(of, owner, lease, now)
    }
});
