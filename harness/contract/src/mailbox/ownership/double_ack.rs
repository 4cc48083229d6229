//! A settled lease stays settled.

use crate::clause::{Clause, Mutant};
use crate::mailbox::leases_given;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{Lease, Sent, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};
use std::collections::BTreeMap;

/// How many ids a store has that draws from few.
const FEW_IDS: u64 = 64;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "double-ack",
    at: file!(),
    statement: "A second ack with a settled lease removes nothing: it is refused or answers acked 0, also when new messages or a new lease exist; and no later lease of the storage gets its id.",
    why: "Acks are retried after time-outs. A retry that still has force deletes what arrived in between.",
    steps: &[
        "append m1, m2; ann claims and acks; she acks again: refused, or acked 0",
        "append n1, n2; ann acks with the settled lease up to n2: refused, or acked 0",
        "ann claims n1; she acks with the settled lease up to n2: refused, or acked 0; her new lease still fences and can be acked",
        "claim and ack until null: everything that was not acked by a live lease",
        "in a fresh store, lease two boxes again and again, and end the leases by ack, partial ack, release, drop and expiry, with a reap and (durable) a reopening in between: no lease id comes twice",
        "append, claim and ack in 80 quick rounds: no lease id comes twice",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "settled-lease-acks-what-came-later",
            fault: "takes an ack with a settled lease while no other lease exists",
            make: subject::<AcksLater>,
        },
        Mutant {
            name: "settled-lease-acks-under-the-next",
            fault: "takes an ack with a settled lease for its owner's next lease",
            make: subject::<AcksUnderNext>,
        },
        Mutant {
            name: "second-ack-counts-again",
            fault: "answers a second ack with the count of the first",
            make: subject::<CountsAgain>,
        },
        Mutant {
            name: "lease-ids-come-again",
            fault: "gives an owner the same lease id for every claim on a box",
            make: subject::<IdsComeAgain>,
        },
        Mutant {
            name: "lease-ids-counted-by-box",
            fault: "counts its lease ids box by box",
            make: subject::<IdsCountedByBox>,
        },
        Mutant {
            name: "lease-ids-of-few",
            fault: "takes its lease ids from a set of 64 in turn",
            make: subject::<IdsOfFew>,
        },
        Mutant {
            name: "lease-ids-restart-after-a-full-ack",
            fault: "counts its lease ids from the beginning once an ack has emptied a box",
            make: subject::<RestartAfterFullAck>,
        },
        Mutant {
            name: "lease-ids-restart-after-a-partial-ack",
            fault: "counts its lease ids from the beginning once an ack has left messages",
            make: subject::<RestartAfterPartialAck>,
        },
        Mutant {
            name: "lease-ids-restart-after-release",
            fault: "counts its lease ids from the beginning after a release",
            make: subject::<RestartAfterRelease>,
        },
        Mutant {
            name: "lease-ids-restart-after-drop",
            fault: "counts its lease ids from the beginning after a drop",
            make: subject::<RestartAfterDrop>,
        },
        Mutant {
            name: "lease-ids-restart-after-expiry",
            fault: "counts its lease ids from the beginning once a lease has expired",
            make: subject::<RestartAfterExpiry>,
        },
        Mutant {
            name: "lease-ids-restart-at-reap",
            fault: "counts its lease ids from the beginning after a reap",
            make: subject::<RestartAtReap>,
        },
        Mutant {
            name: "lease-ids-restart-at-reopen",
            fault: "counts its lease ids from the beginning when the storage is opened again",
            make: subject::<RestartAtReopen>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut waiting = t.append_many(&store, &alpha, "m", 2)?;
    let settled = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    t.ack_counted(&store, &settled, settled.last_seq(), settled.messages.len())?;
    waiting.drain(..settled.messages.len().min(waiting.len()));
    has_no_force(t, &store, &settled, settled.last_seq(), "it was settled by the first ack")?;

    waiting.extend(t.append_many(&store, &alpha, "n", 2)?);
    let up_to = waiting.last().map_or(0, |m: &Sent| m.seq);
    has_no_force(t, &store, &settled, up_to, "it was settled before those messages came")?;

    let next = t.claim_some(&store, &alpha, "ann", "what was not acked is claimable")?;
    has_no_force(t, &store, &settled, up_to, "it was settled before the next lease was given")?;
    t.fenced(&store, &next, "bob")?;
    t.ack_counted(&store, &next, next.last_seq(), next.messages.len())?;
    waiting.drain(..next.messages.len().min(waiting.len()));
    t.holds_exactly(&store, &alpha, &waiting, "an ack with a settled lease removes nothing")?;
    leases_given::none_given_twice(t)
}

fn has_no_force(
    t: &mut Trial<'_>,
    store: &StoreRef,
    settled: &Lease,
    up_to: u64,
    why: &str,
) -> Verdict {
    match t.try_ack(store, &settled.of, &settled.owner, &settled.id, up_to)? {
        Ok(acked) if acked != 0.0 => broken(
            format!("an ack with a settled lease is refused or answers acked 0: {why}"),
            format!("the ack with {:?} up to {up_to} answered acked: {acked}", settled.id),
        ),
        Ok(_) => Ok(()),
        Err(refusal) => {
            t.expect_reason("mailbox/ack", &refusal, &["lease_not_held"]);
            Ok(())
        }
    }
}

/// Removes everything up to `up_to`, whatever the lease.
fn remove(model: &Model, of: &Address, up_to: Seq) -> u64 {
    model.with_box(of, |b| {
        let before = b.messages.len();
        b.messages.retain(|m| m.seq > up_to);
        (before - b.messages.len()) as u64
    })
}

altered!(AcksLater remembers Vec<LeaseId> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if self.1.contains(lease) && self.0.with_box(of, |b| b.lease.is_none()) {
            return Ok(remove(&self.0, of, up_to));
        }
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.1.push(lease.clone());
        Ok(acked)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.1.clear();
        self.0.drop_box(of, now)
    }
});

altered!(AcksUnderNext remembers Vec<(String, LeaseId)> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let next = self.0.with_box(of, |b| b.lease.clone()).filter(|held| held.owner == owner);
        let settled = self.1.contains(&(owner.to_owned(), lease.clone()));
        let lease = next.filter(|_| settled).map_or_else(|| lease.clone(), |held| held.id);
        let acked = self.0.ack(of, owner, &lease, up_to, now)?;
        self.1.push((owner.to_owned(), lease));
        Ok(acked)
    }
});

altered!(CountsAgain remembers BTreeMap<LeaseId, u64> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if let Some(count) = self.1.get(lease) {
            return Ok(*count);
        }
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.1.insert(lease.clone(), acked);
        Ok(acked)
    }
});

/// The model's claim; a lease that it mints is called what `id` makes of the count.
fn claim_named(
    model: &mut Model,
    from: &Address,
    ask: &ClaimAsk,
    now: Millis,
    id: impl FnOnce(u64) -> String,
) -> Reply<Option<Delivery>> {
    let before = model.state().leases_minted;
    let mut claimed = model.claim(from, ask, now)?;
    let minted = model.state().leases_minted;
    if let Some(delivery) = claimed.as_mut().filter(|_| minted > before) {
        let lease = LeaseId(id(minted));
        delivery.lease.clone_from(&lease);
        model.with_box(from, |b| {
            if let Some(held) = &mut b.lease {
                held.id = lease;
            }
        });
    }
    Ok(claimed)
}

altered!(IdsComeAgain {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_named(&mut self.0, from, ask, now, |_| format!("{from} for {}", ask.owner))
    }
});

altered!(IdsOfFew {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_named(&mut self.0, from, ask, now, |minted| format!("lease-{}", minted % FEW_IDS))
    }
});

altered!(IdsCountedByBox remembers BTreeMap<Address, u64> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let count = self.1.entry(from.clone()).or_default();
        claim_named(&mut self.0, from, ask, now, |_| {
            *count += 1;
            format!("lease-{count}")
        })
    }
});

/// Forgets how many leases were minted.
fn restart(model: &Model) {
    model.state().leases_minted = 0;
}

/// The model's ack, after which the count of leases restarts if the box is empty, or if it is not.
fn ack_restarting(
    model: &mut Model,
    when_empty: bool,
    of: &Address,
    (owner, lease): (&str, &LeaseId),
    up_to: Seq,
    now: Millis,
) -> Reply<u64> {
    let acked = model.ack(of, owner, lease, up_to, now)?;
    if model.with_box(of, |b| b.messages.is_empty()) == when_empty {
        restart(model);
    }
    Ok(acked)
}

altered!(RestartAfterFullAck {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        ack_restarting(&mut self.0, true, of, (owner, lease), up_to, now)
    }
});

altered!(RestartAfterPartialAck {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        ack_restarting(&mut self.0, false, of, (owner, lease), up_to, now)
    }
});

altered!(RestartAfterRelease {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.0.release(of, owner, lease, now)?;
        restart(&self.0);
        Ok(())
    }
});

altered!(RestartAfterDrop {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let dropped = self.0.drop_box(of, now)?;
        restart(&self.0);
        Ok(dropped)
    }
});

altered!(RestartAfterExpiry {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        if self.0.with_box(from, |b| b.lease.is_some() && b.live(time).is_none()) {
            restart(&self.0);
        }
        self.0.claim(from, ask, now)
    }
});

altered!(RestartAtReap {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        restart(&self.0);
        Ok(())
    }
});

altered!(RestartAtReopen {
    fn reopened(state: &mut crate::mailbox::model::State) {
        state.leases_minted = 0;
    }
});
