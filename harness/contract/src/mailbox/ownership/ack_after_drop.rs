//! A lease from before a drop has no say over what comes after it.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, SEQ_MAX, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "ack-after-drop",
    at: file!(),
    statement: "A lease from before a drop acks nothing that came after it.",
    why: "Drop starts a box over. A consumer that still holds the old lease would otherwise delete the new mail unread.",
    steps: &[
        "append m1, m2; ann claims; drop the box; append n1, n2",
        "ann acks with her old lease up to n2, and up to 2^53-1: refused, or acked 0",
        "bob claims at once; he acks; claim and ack until null: n1, n2, exactly",
    ],
    needs: None,
    check,
    mutants: &[Mutant {
        name: "dropped-lease-acks",
        fault: "takes an ack with a lease that a drop has ended",
        make: subject::<DroppedAcks>,
    }],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    t.append_many(&store, &alpha, "m", 2)?;
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    t.drop_box(&store, &alpha)?;
    let sent = t.append_many(&store, &alpha, "n", 2)?;
    for up_to in [sent[1].seq, SEQ_MAX] {
        match t.try_ack(&store, &alpha, "ann", &lease.id, up_to)? {
            Ok(acked) if acked != 0.0 => {
                return broken(
                    "a lease from before a drop acks nothing that came after it",
                    format!("the ack up to {up_to} answered acked: {acked}"),
                );
            }
            Ok(_) => {}
            Err(refusal) => t.expect_reason("mailbox/ack", &refusal, &["lease_not_held"]),
        }
    }
    t.holds_exactly(
        &store,
        &alpha,
        &sent,
        "what came after a drop is not acked by a lease from before it",
    )
}

altered!(DroppedAcks remembers Vec<LeaseId> {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let lease = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.id.clone()));
        self.1.extend(lease);
        self.0.drop_box(of, now)
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
