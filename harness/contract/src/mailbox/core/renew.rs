//! A lease can be prolonged, by its holder only.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::{Lease, at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use std::collections::{BTreeMap, BTreeSet};

/// Leases to follow: for how many short ttls each is claimed, and for how many it is renewed, in turn.
const COURSES: [(u64, &[u64]); 5] =
    [(1, &[1, 2]), (3, &[1]), (1, &[1]), (1, &[1, 1, 1]), (1, &[2, 1, 3])];
/// How many of them the wall's clock, on which each is a wait, has time for.
const WALL_COURSES: usize = 2;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "renew",
    at: file!(),
    statement: "Renew by the holder moves expiry to its now plus its ttl; by anyone else, or with a ttl that is not above 0, it is refused and changes nothing.",
    why: "Long work outlives its first lease. A renewal that does not hold hands the work to a second consumer while the first is still at it.",
    steps: &[
        "append m1, m2; ann claims for a ttl; after a quarter of it she renews for one ttl, and after a quarter of that for two",
        "just before the new expiry, long after the old one: reap; bob claims: null; after the new expiry: delivered, from the front",
        "the same for a claim of three ttls renewed for one, and on the caller's clock, to the millisecond, for one renewed for one, thrice for one, and for two, one and three",
        "on beta ann claims for a ttl; bob's renewal with her lease id, hers with an invented id, and hers with the ttls 0, -1, \"5\" and null: refused; just before her lease ends bob claims: null",
        "at the first moment at which it has surely ended, ann renews: refused, though nobody has claimed",
        "half a ttl later bob claims beta: its message; ann renews with her old lease: refused, and bob's lease still fences; bob acks and renews: refused",
        "append two to gamma; ann claims; append one more; ann renews and acks up to the last: acked counts what was delivered",
    ],
    needs: Some(Capability::Renew),
    check,
    mutants: &[
        Mutant {
            name: "renew-does-nothing",
            fault: "answers a renewal and does not move the expiry",
            make: subject::<DoesNothing>,
        },
        Mutant {
            name: "renew-lasts-for-ever",
            fault: "lets a renewed lease live for an hour more than it should",
            make: subject::<LastsForEver>,
        },
        Mutant {
            name: "anybody-renews",
            fault: "takes a renewal from whoever names the lease",
            make: subject::<Anybody>,
        },
        Mutant {
            name: "refused-renew-prolongs",
            fault: "moves the expiry while it refuses the renewal",
            make: subject::<RefusedProlongs>,
        },
        Mutant {
            name: "refused-renew-shortens",
            fault: "halves what the lease has left while it refuses the renewal",
            make: subject::<RefusedShortens>,
        },
        Mutant {
            name: "renew-never-shortens",
            fault: "keeps the old expiry where it is later than the new one",
            make: subject::<NeverShortens>,
        },
        Mutant {
            name: "renew-works-once",
            fault: "answers a second renewal of a lease and does not move the expiry",
            make: subject::<WorksOnce>,
        },
        Mutant {
            name: "reap-forgets-the-renewal",
            fault: "frees at reap every lease that is past the expiry of its claim",
            make: subject::<ReapForgets>,
        },
        Mutant {
            name: "renew-takes-ttls-below-zero",
            fault: "answers a renewal whose ttl is below 0 and does nothing",
            make: subject::<BelowZero>,
        },
        Mutant {
            name: "expired-lease-renews",
            fault: "revives an expired lease as long as nobody else has claimed",
            make: subject::<ExpiredRenews>,
        },
        Mutant {
            name: "overtaken-lease-renews",
            fault: "gives the box back to whoever renews a lease that it once had",
            make: subject::<OvertakenRenews>,
        },
        Mutant {
            name: "settled-lease-renews",
            fault: "answers a renewal of a lease that an ack settled",
            make: subject::<SettledRenews>,
        },
        Mutant {
            name: "renew-covers-what-came-since",
            fault: "lets a renewed lease ack what was appended after its claim",
            make: subject::<CoversWhatCameSince>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let exact = t.is_caller_clock();
    for (i, course) in COURSES.iter().enumerate() {
        if exact || i < WALL_COURSES {
            moves_expiry(t, &store, &at(&format!("alpha{i}")), course)?;
        }
    }
    needs_the_live_lease(t, &store)?;
    acks_what_it_delivered(t, &store)
}

/// Claims for `course.0` short ttls, renews for each of `course.1`, and sees the last one's end.
fn moves_expiry(
    t: &mut Trial<'_>,
    store: &StoreRef,
    of: &Address,
    course: &(u64, &[u64]),
) -> Verdict {
    let (claimed, renewals) = *course;
    let sent = t.append_many(store, of, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let promised = "waiting messages are claimable";
    let mut lease = t.claim_some_for(store, of, "ann", claimed * ttl_ms, promised)?;
    for times in renewals {
        t.wait_within(&lease, 1)?;
        lease = renewed(t, store, lease, times * ttl_ms)?;
    }
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.reap(store)?;
    t.fenced(store, &lease, "bob")?;
    if t.is_caller_clock() {
        t.wait_for_expiry(&lease)?;
    } else {
        t.wait_past(&lease)?;
    }
    let promised = "a renewed lease ends at its new expiry, and what it delivered comes again";
    let next = t.claim_some(store, of, "bob", promised)?;
    is_prefix(&next.messages, &sent, promised)
}

/// The holder renews `lease`, which must be taken while it lives.
fn renewed(t: &mut Trial<'_>, store: &StoreRef, lease: Lease, ttl_ms: u64) -> Result<Lease, Stop> {
    if let Err(refusal) = t.try_renew(store, &lease.of, &lease.owner, &lease.id, ttl_ms)? {
        t.while_live(&lease)?;
        return broken(
            "the holder of a live lease may renew it, again and again",
            format!("the renewal was {refusal}"),
        );
    }
    Ok(Lease { since: t.last(), ttl_ms, ..lease })
}

fn needs_the_live_lease(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let beta = at("beta");
    t.append(store, &beta, "m1")?;
    let ttl_ms = t.short_ttl_ms();
    let lease = t.claim_some_for(store, &beta, "ann", ttl_ms, "a waiting message is claimable")?;
    let long = Json::from(t.long_ttl_ms());
    refused(t, store, &lease, ("bob", &lease.id), &long, "bob does not hold the lease")?;
    refused(t, store, &lease, ("ann", "no-such-lease"), &long, "no such lease was ever given")?;
    for ttl in [Json::from(0), Json::from(-1), Json::from("5"), Json::Null] {
        refused(t, store, &lease, ("ann", &lease.id), &ttl, "a ttl is a number above 0")?;
    }
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.fenced(store, &lease, "bob")?;
    t.wait_for_expiry(&lease)?;
    refused(t, store, &lease, ("ann", &lease.id), &long, "the lease has expired")?;
    // When exactly the fence falls is another clause's matter.
    t.wait_past(&lease)?;
    let next = t.claim_some(store, &beta, "bob", "a refused renewal does not move the expiry")?;
    let why = "the lease has expired, and bob claimed since";
    refused(t, store, &lease, ("ann", &lease.id), &long, why)?;
    t.fenced(store, &next, "cid")?;
    t.ack_counted(store, &next, next.last_seq(), next.messages.len())?;
    refused(t, store, &next, ("bob", &next.id), &long, "the lease is settled")?;
    t.holds_exactly(store, &beta, &[], "a refused renewal brings nothing back")
}

/// A renewal that must be refused.
fn refused(
    t: &mut Trial<'_>,
    store: &StoreRef,
    on: &Lease,
    (owner, id): (&str, &str),
    ttl: &Json,
    why: &str,
) -> Verdict {
    match t.try_renew(store, &on.of, owner, id, ttl.clone())? {
        Err(refusal) => {
            // On a slow machine the lease may be over by now, which is a reason of its own.
            let is_ttl = ttl.as_u64().is_some_and(|ttl_ms| ttl_ms > 0);
            let words: &[&str] =
                if is_ttl { &["lease_not_held"] } else { &["invalid_ttl", "lease_not_held"] };
            t.expect_reason("mailbox/renew", &refusal, words);
            Ok(())
        }
        Ok(()) => broken(
            format!("renew is refused: {why}"),
            format!("the renewal by {owner} with lease {id:?} and ttlMs {ttl} was taken"),
        ),
    }
}

fn acks_what_it_delivered(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let gamma = at("gamma");
    t.append_many(store, &gamma, "m", 2)?;
    let lease = t.claim_some(store, &gamma, "ann", "waiting messages are claimable")?;
    let late = t.append(store, &gamma, "late")?;
    let ttl_ms = t.long_ttl_ms();
    let lease = renewed(t, store, lease, ttl_ms)?;
    // Whether the late one comes later is another clause's matter.
    t.ack_counted(store, &lease, late, lease.messages.len())
}

altered!(DoesNothing {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        self.0.renew(of, owner, lease, ttl_ms, now)?;
        self.0.with_box(of, |b| b.lease = held);
        Ok(())
    }
});

altered!(LastsForEver {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let ttl_ms = if ttl_ms > 0 { ttl_ms.saturating_add(3_600_000) } else { ttl_ms };
        self.0.renew(of, owner, lease, ttl_ms, now)
    }
});

altered!(Anybody {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let holder = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.owner.clone()));
        self.0.renew(of, holder.as_deref().unwrap_or(owner), lease, ttl_ms, now)
    }
});

altered!(RefusedProlongs {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let renewed = self.0.renew(of, owner, lease, ttl_ms, now);
        if renewed.is_err() {
            self.0.with_box(of, |b| {
                if let Some(held) = &mut b.lease {
                    held.expiry = Millis(held.expiry.0 + 3_600_000);
                }
            });
        }
        renewed
    }
});

altered!(RefusedShortens {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let renewed = self.0.renew(of, owner, lease, ttl_ms, now);
        let time = self.0.time(now);
        if renewed.is_err() {
            self.0.with_box(of, |b| {
                if let Some(held) = b.lease.as_mut().filter(|held| time < held.expiry) {
                    held.expiry = Millis(time.0 + (held.expiry.0 - time.0) / 2);
                }
            });
        }
        renewed
    }
});

altered!(NeverShortens {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let before = self.0.with_box(of, |b| b.lease.clone());
        self.0.renew(of, owner, lease, ttl_ms, now)?;
        self.0.with_box(of, |b| {
            if before.as_ref().map(|held| held.expiry) > b.lease.as_ref().map(|held| held.expiry) {
                b.lease = before;
            }
        });
        Ok(())
    }
});

altered!(WorksOnce remembers BTreeSet<LeaseId> {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let before = self.0.with_box(of, |b| b.lease.clone());
        self.0.renew(of, owner, lease, ttl_ms, now)?;
        if !self.1.insert(lease.clone()) {
            self.0.with_box(of, |b| b.lease = before);
        }
        Ok(())
    }
});

altered!(ReapForgets remembers BTreeMap<Address, (LeaseId, Millis)> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        let expiry = self.0.with_box(from, |b| b.lease.as_ref().map(|held| held.expiry));
        if let (Some(delivery), Some(expiry)) = (&claimed, expiry) {
            self.1.insert(from.clone(), (delivery.lease.clone(), expiry));
        }
        Ok(claimed)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        for (of, (lease, expiry)) in &self.1 {
            self.0.with_box(of, |b| {
                if time >= *expiry && b.lease.as_ref().is_some_and(|held| held.id == *lease) {
                    b.lease = None;
                }
            });
        }
        self.0.reap(now)
    }
});

altered!(BelowZero {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        if ttl_ms < 0 {
            return Ok(());
        }
        self.0.renew(of, owner, lease, ttl_ms, now)
    }
});

altered!(ExpiredRenews {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        self.0.with_box(of, |b| {
            let held = b.lease.as_mut().filter(|held| held.owner == owner && held.id == *lease);
            if let (Some(held), true) = (held, ttl_ms > 0) {
                held.expiry = Millis(u64::MAX);
            }
        });
        self.0.renew(of, owner, lease, ttl_ms, now)
    }
});

altered!(OvertakenRenews remembers BTreeSet<(Address, String, LeaseId)> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        if let Some(delivery) = &claimed {
            self.1.insert((from.clone(), ask.owner.clone(), delivery.lease.clone()));
        }
        Ok(claimed)
    }
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        if self.1.contains(&(of.clone(), owner.to_owned(), lease.clone())) {
            self.0.with_box(of, |b| {
                if let Some(held) = b.lease.as_mut().filter(|held| time < held.expiry) {
                    held.id = lease.clone();
                    owner.clone_into(&mut held.owner);
                }
            });
        }
        self.0.renew(of, owner, lease, ttl_ms, now)
    }
});

altered!(SettledRenews remembers BTreeSet<LeaseId> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.1.insert(lease.clone());
        Ok(acked)
    }
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        if self.1.contains(lease) {
            return Ok(());
        }
        self.0.renew(of, owner, lease, ttl_ms, now)
    }
});

altered!(CoversWhatCameSince {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        self.0.renew(of, owner, lease, ttl_ms, now)?;
        self.0.with_box(of, |b| {
            let last = Seq(b.last_seq);
            if let Some(held) = &mut b.lease {
                held.delivered = last;
            }
        });
        Ok(())
    }
});
