//! A lease can be prolonged, by its holder only.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::{Lease, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "renew",
    at: file!(),
    statement: "Renew by the holder moves expiry to its now plus its ttl; by anyone else, or with a ttl that is not above 0, it is refused and changes nothing.",
    why: "Long work outlives its first lease. A renewal that does not hold hands the work to a second consumer while the first is still at it.",
    steps: &[
        "append m1; ann claims for a ttl; half-way she renews for two ttls",
        "after the old expiry and before the new one, bob claims: null; after the new one: m1",
        "on beta ann claims for a ttl; bob's renewal with her lease id, hers with an invented id, and hers with ttl 0: refused",
        "after the ttl she claimed for, bob claims beta: its message",
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
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    moves_expiry(t, &store)?;
    refuses_strangers(t, &store)
}

fn moves_expiry(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let alpha = at("alpha");
    t.append(store, &alpha, "m1")?;
    let ttl_ms = t.short_ttl_ms();
    let lease = t.claim_some_for(store, &alpha, "ann", ttl_ms, "a waiting message is claimable")?;
    t.wait_within(&lease, 2)?;
    if let Err(refusal) = t.try_renew(store, &alpha, "ann", &lease.id, 2 * ttl_ms)? {
        t.while_live(&lease)?;
        return broken(
            "the holder of a live lease may renew it",
            format!("the renewal was {refusal}"),
        );
    }
    let renewed = Lease { since: t.last(), ttl_ms: 2 * ttl_ms, ..lease.clone() };
    t.wait_for_expiry(&lease)?;
    t.fenced(store, &renewed, "bob")?;
    t.wait_past(&renewed)?;
    t.claim_some(store, &alpha, "bob", "a renewed lease ends at its new expiry")?;
    Ok(())
}

fn refuses_strangers(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let beta = at("beta");
    t.append(store, &beta, "m1")?;
    let ttl_ms = t.short_ttl_ms();
    let lease = t.claim_some_for(store, &beta, "ann", ttl_ms, "a waiting message is claimable")?;
    let long = Json::from(t.long_ttl_ms());
    let calls = [
        ("bob", lease.id.as_str(), long.clone(), "lease_not_held", "bob does not hold the lease"),
        ("ann", "no-such-lease", long, "lease_not_held", "no such lease was ever given"),
        ("ann", lease.id.as_str(), Json::from(0), "invalid_ttl", "a ttl is above 0"),
    ];
    for (owner, id, ttl, reason, why) in calls {
        match t.try_renew(store, &beta, owner, id, ttl.clone())? {
            // On a slow machine the lease may be over by now, which is a reason of its own.
            Err(refusal) => t.expect_reason("mailbox/renew", &refusal, &[reason, "lease_not_held"]),
            Ok(()) => {
                return broken(
                    format!("renew is refused: {why}"),
                    format!("the renewal by {owner} with lease {id:?} and ttlMs {ttl} was taken"),
                );
            }
        }
    }
    t.wait_past(&lease)?;
    t.claim_some(store, &beta, "bob", "a refused renewal does not move the expiry")?;
    Ok(())
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
