//! A lease can be given back, by its holder only.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{Lease, at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{StoreRef, Trial, Verdict, broken};

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
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", 2)?;
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    refused(t, &store, "bob", &lease.id, "bob does not hold the lease")?;
    refused(t, &store, "ann", "no-such-lease", "no such lease was ever given")?;
    t.fenced(&store, &lease, "cid")?;
    released(t, &store, &lease)?;
    let why = "the lease was released";
    t.ack_refused(&store, &alpha, "ann", &lease.id, lease.last_seq(), why)?;
    let promised = "after a release everything is claimable at once, in order";
    let next = t.claim_some(&store, &alpha, "bob", promised)?;
    is_prefix(&next.messages, &sent, promised)?;
    refused(t, &store, "ann", &lease.id, "the lease was released already")?;
    t.fenced(&store, &next, "cid")?;
    t.ack_counted(&store, &next, next.last_seq(), next.messages.len())?;
    t.holds_exactly(&store, &alpha, &sent[next.messages.len()..], promised)
}

fn released(t: &mut Trial<'_>, store: &StoreRef, lease: &Lease) -> Verdict {
    let Err(refusal) = t.try_release(store, &lease.of, &lease.owner, &lease.id)? else {
        return Ok(());
    };
    t.while_live(lease)?;
    broken("the holder of a live lease may release it", format!("the release was {refusal}"))
}

fn refused(t: &mut Trial<'_>, store: &StoreRef, owner: &str, lease: &str, why: &str) -> Verdict {
    match t.try_release(store, &at("alpha"), owner, lease)? {
        Err(refusal) => {
            t.expect_reason("mailbox/release", &refusal, &["lease_not_held"]);
            Ok(())
        }
        Ok(()) => broken(
            format!("release is refused: {why}"),
            format!("the release by {owner} with lease {lease:?} was taken"),
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
