//! An ack reaches what was delivered, however far it points.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, SEQ_MAX, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "over-reach",
    at: file!(),
    statement: "An ack whose upTo lies beyond the delivered messages, up to 2^53-1, removes only what was delivered, and acked says how many.",
    why: "\"Ack everything\" must mean everything that I was given; otherwise it deletes mail that nobody has seen.",
    steps: &[
        "append m1 to m4; ann claims with max 1 and acks up to m4: acked counts what she was delivered",
        "bob claims with max 1 and acks up to 2^53-1: acked counts what he was delivered",
        "claim and ack until null: exactly the others, in order",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "over-reach-takes-undelivered",
            fault: "removes every message up to upTo, delivered or not",
            make: subject::<TakesUndelivered>,
        },
        Mutant {
            name: "over-reach-counts-upto",
            fault: "counts what lies below upTo, not what it removed",
            make: subject::<CountsUpTo>,
        },
        Mutant {
            name: "greatest-upto-empties-the-box",
            fault: "empties the box for an upTo of 2^53-1",
            make: subject::<GreatestEmpties>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut waiting = t.append_many(&store, &alpha, "m", 4)?;
    let far = waiting[3].seq;
    for (owner, up_to) in [("ann", far), ("bob", SEQ_MAX)] {
        let ttl_ms = t.long_ttl_ms();
        let Some(lease) = t.claim_for(&store, &alpha, owner, ttl_ms, Some(1))? else {
            if waiting.is_empty() {
                break;
            }
            return broken(
                "what was not delivered is claimable",
                format!("{owner}'s claim answered null"),
            );
        };
        t.ack_counted(&store, &lease, up_to, lease.messages.len())?;
        waiting.drain(..lease.messages.len().min(waiting.len()));
    }
    t.holds_exactly(&store, &alpha, &waiting, "an ack removes only what its lease delivered")
}

altered!(TakesUndelivered {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let far = self.0.with_box(of, |b| {
            // A message that came during the lease is spared, so that only this clause can tell.
            b.messages.last().map(|m| m.seq).filter(|last| *last <= up_to && b.messages.len() > 3)
        });
        self.0.with_box(of, |b| {
            if let (Some(far), Some(held)) = (far, b.lease.as_mut()) {
                held.delivered = far;
            }
        });
        self.0.ack(of, owner, lease, up_to, now)
    }
});

altered!(CountsUpTo {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let below = self.0.with_box(of, |b| b.messages.iter().filter(|m| m.seq <= up_to).count());
        self.0.ack(of, owner, lease, up_to, now)?;
        Ok(below as u64)
    }
});

altered!(GreatestEmpties {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        if up_to.0 == SEQ_MAX {
            self.0.with_box(of, |b| b.messages.clear());
        }
        Ok(acked)
    }
});
