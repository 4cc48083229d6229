//! A settled lease stays settled.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{Lease, Sent, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "double-ack",
    at: file!(),
    statement: "A second ack with a settled lease removes nothing: it is refused or answers acked 0, also when new messages or a new lease exist.",
    why: "Acks are retried after time-outs. A retry that still has force deletes what arrived in between.",
    steps: &[
        "append m1, m2; ann claims and acks; she acks again: refused, or acked 0",
        "append n1, n2; ann acks with the settled lease up to n2: refused, or acked 0",
        "ann claims n1; she acks with the settled lease up to n2: refused, or acked 0; her new lease still fences and can be acked",
        "claim and ack until null: everything that was not acked by a live lease",
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
    t.holds_exactly(&store, &alpha, &waiting, "an ack with a settled lease removes nothing")
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
fn remove(model: &crate::mailbox::model::Model, of: &Address, up_to: Seq) -> u64 {
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

altered!(CountsAgain remembers std::collections::BTreeMap<LeaseId, u64> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if let Some(count) = self.1.get(lease) {
            return Ok(*count);
        }
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.1.insert(lease.clone(), acked);
        Ok(acked)
    }
});

altered!(IdsComeAgain {
    fn claim(
        &mut self,
        from: &Address,
        ask: &crate::mailbox::store::ClaimAsk,
        now: Millis,
    ) -> Reply<Option<crate::mailbox::store::Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        Ok(claimed.map(|mut delivery| {
            delivery.lease = LeaseId(format!("{from} for {}", ask.owner));
            self.0.with_box(from, |b| {
                if let Some(held) = &mut b.lease {
                    held.id = delivery.lease.clone();
                }
            });
            delivery
        }))
    }
});
