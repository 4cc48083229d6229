//! Only the holder acks.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "foreign-ack",
    at: file!(),
    statement: "An ack by somebody who does not hold the lease, or with an invented lease id, is refused and changes nothing: the holder still fences the box and can ack.",
    why: "Whoever may ack another's messages may delete mail that nobody has read.",
    steps: &[
        "append m1, m2, m3; ann claims",
        "bob acks with ann's lease id: refused; bob acks with an invented id: refused; ann acks with an invented id: refused",
        "cid claims: null; ann acks: taken, and counts her whole delivery",
        "claim and ack until null: exactly what she was not delivered",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "ack-ignores-the-owner",
            fault: "takes an ack from whoever names the live lease",
            make: subject::<IgnoresTheOwner>,
        },
        Mutant {
            name: "ack-ignores-the-lease-id",
            fault: "takes any lease id from the owner of the live lease",
            make: subject::<IgnoresTheId>,
        },
        Mutant {
            name: "refused-foreign-ack-frees",
            fault: "frees the box while it refuses a stranger's ack",
            make: subject::<RefusedFrees>,
        },
        Mutant {
            name: "refused-foreign-ack-removes",
            fault: "removes the first message while it refuses a stranger's ack",
            make: subject::<RefusedRemoves>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut sent = t.append_many(&store, &alpha, "m", 3)?;
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    let up_to = lease.last_seq();
    t.ack_refused(&store, &alpha, "bob", &lease.id, up_to, "bob does not hold ann's lease")?;
    t.ack_refused(&store, &alpha, "bob", "no-such-lease", up_to, "no such lease was ever given")?;
    t.ack_refused(&store, &alpha, "ann", "no-such-lease", up_to, "no such lease was ever given")?;
    t.fenced(&store, &lease, "cid")?;
    t.ack_counted(&store, &lease, up_to, lease.messages.len())?;
    let rest = sent.split_off(lease.messages.len().min(sent.len()));
    t.holds_exactly(&store, &alpha, &rest, "a refused ack removes nothing")
}

altered!(IgnoresTheOwner {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let holder = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.owner.clone()));
        self.0.ack(of, holder.as_deref().unwrap_or(owner), lease, up_to, now)
    }
});

altered!(IgnoresTheId {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let id = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.id.clone()));
        self.0.ack(of, owner, id.as_ref().unwrap_or(lease), up_to, now)
    }
});

/// Whether the box is leased to somebody other than `owner`.
fn is_foreign(model: &crate::mailbox::model::Model, of: &Address, owner: &str) -> bool {
    model.with_box(of, |b| b.lease.as_ref().is_some_and(|held| held.owner != owner))
}

altered!(RefusedFrees {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let foreign = is_foreign(&self.0, of, owner);
        let acked = self.0.ack(of, owner, lease, up_to, now);
        if foreign {
            self.0.with_box(of, |b| b.lease = None);
        }
        acked
    }
});

altered!(RefusedRemoves {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let foreign = is_foreign(&self.0, of, owner);
        let acked = self.0.ack(of, owner, lease, up_to, now);
        if foreign {
            self.0.with_box(of, |b| b.messages.remove(0));
        }
        acked
    }
});
