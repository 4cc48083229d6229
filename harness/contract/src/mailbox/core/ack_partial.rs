//! An ack in the middle settles the lease and leaves the rest for the next claim.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{Lease, at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict};

/// How many messages wait.
const MESSAGES: usize = 5;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "ack-partial",
    at: file!(),
    statement: "An ack up to the middle of a delivery removes that part; the rest is claimable at once, in order, with its seqs and bodies, and acked is right.",
    why: "A consumer that gets through half its mail and stops must neither lose the other half nor see the first half again.",
    steps: &[
        "append m1 to m5; ann claims until a claim delivers at least two",
        "ann acks up to the middle of it; acked counts that part",
        "bob claims at once: the rest, in order, same seqs and bodies",
        "bob acks and drains: exactly the rest",
        "a store that never delivers two at once: an ack below the delivered message counts 0 and the message is claimable at once (with an advisory)",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "partial-ack-takes-all",
            fault: "removes the whole delivery when any of it is acked",
            make: subject::<TakesAll>,
        },
        Mutant {
            name: "partial-ack-of-many-takes-all",
            fault: "removes the whole delivery when part of one of more than four messages is acked",
            make: subject::<TakesAllOfMany>,
        },
        Mutant {
            name: "partial-ack-keeps-the-lease",
            fault: "keeps the lease alive for the part that was not acked",
            make: subject::<KeepsTheLease>,
        },
        Mutant {
            name: "partial-ack-renumbers",
            fault: "gives the rest new numbers",
            make: subject::<Renumbers>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut waiting = t.append_many(&store, &alpha, "m", MESSAGES)?;
    while !waiting.is_empty() {
        let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
        is_prefix(&lease.messages, &waiting, "a claim delivers a prefix of what waits")?;
        if lease.messages.len() >= 2 {
            let half = lease.messages.len() / 2;
            t.ack_counted(&store, &lease, lease.messages[half - 1].seq, half)?;
            let rest = waiting.split_off(half);
            let promised = "what a partial ack left is claimable at once, in order";
            let next = t.claim_some(&store, &alpha, "bob", promised)?;
            is_prefix(&next.messages, &rest, promised)?;
            t.ack_counted(&store, &next, next.last_seq(), next.messages.len())?;
            return t.holds_exactly(&store, &alpha, &rest[next.messages.len()..], promised);
        }
        t.ack_counted(&store, &lease, lease.last_seq(), 1)?;
        let below = waiting.remove(0);
        if waiting.len() == 1 {
            t.advise("the store never delivered two messages in one claim; the partial ack was judged by an ack below the delivered message");
            return below_the_delivery(t, &store, below.seq);
        }
    }
    Ok(())
}

fn below_the_delivery(t: &mut Trial<'_>, store: &StoreRef, below: u64) -> Verdict {
    let alpha = at("alpha");
    let lease: Lease = t.claim_some(store, &alpha, "ann", "waiting messages are claimable")?;
    t.ack_counted(store, &lease, below, 0)?;
    let promised = "what an ack left is claimable at once";
    t.holds_exactly(store, &alpha, &lease.messages, promised)
}

altered!(TakesAll {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let any = self.0.with_box(of, |b| b.messages.first().is_some_and(|m| m.seq <= up_to));
        let up_to = if any { Seq(u64::MAX) } else { up_to };
        self.0.ack(of, owner, lease, up_to, now)
    }
});

altered!(TakesAllOfMany {
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let many = self.0.with_box(of, |b| {
            let delivered = b.lease.as_ref().map_or(Seq(0), |held| held.delivered);
            let first = b.messages.first().is_some_and(|m| m.seq <= up_to);
            first && b.messages.iter().filter(|m| m.seq <= delivered).count() > 4
        });
        let up_to = if many { Seq(u64::MAX) } else { up_to };
        self.0.ack(of, owner, lease, up_to, now)
    }
});

altered!(KeepsTheLease {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.0.with_box(of, |b| {
            let rest = held.as_ref().is_some_and(|held| b.messages.first().is_some_and(|m| m.seq <= held.delivered));
            if acked > 0 && rest {
                b.lease = held;
            }
        });
        Ok(acked)
    }
});

altered!(Renumbers {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let delivered = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.delivered));
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.0.with_box(of, |b| {
            let rest = b.messages.iter().any(|m| delivered.is_some_and(|delivered| m.seq <= delivered));
            if acked > 0 && rest {
                for message in &mut b.messages {
                    b.last_seq += 1;
                    message.seq = Seq(b.last_seq);
                }
            }
        });
        Ok(acked)
    }
});
