//! An ack in the middle settles the lease and leaves the rest for the next claim.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{Lease, at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict};

/// How many messages wait.
const MESSAGES: usize = 5;
/// How far apart a mutant numbers its messages.
const STRIDE: u64 = 10;

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
        "append to beta, and to gamma in between; where a delivery has a gap between two seqs, ann acks up to a number in the gap: exactly what lies below goes, the rest is claimable at once",
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
        Mutant {
            name: "ack-in-a-gap-takes-the-next",
            fault: "numbers by tens, and acks the next message too where upTo lies between two",
            make: subject::<TakesTheNext>,
        },
        Mutant {
            name: "ack-in-a-gap-removes-nothing",
            fault: "numbers by tens, and removes nothing where upTo lies between two",
            make: subject::<RemovesNothing>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    up_to_the_middle(t, &store)?;
    up_to_a_gap(t, &store)
}

fn up_to_the_middle(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let alpha = at("alpha");
    let mut waiting = t.append_many(store, &alpha, "m", MESSAGES)?;
    while !waiting.is_empty() {
        let lease = t.claim_some(store, &alpha, "ann", "waiting messages are claimable")?;
        is_prefix(&lease.messages, &waiting, "a claim delivers a prefix of what waits")?;
        if lease.messages.len() >= 2 {
            let half = lease.messages.len() / 2;
            t.ack_counted(store, &lease, lease.messages[half - 1].seq, half)?;
            let rest = waiting.split_off(half);
            let promised = "what a partial ack left is claimable at once, in order";
            let next = t.claim_some(store, &alpha, "bob", promised)?;
            is_prefix(&next.messages, &rest, promised)?;
            t.ack_counted(store, &next, next.last_seq(), next.messages.len())?;
            return t.holds_exactly(store, &alpha, &rest[next.messages.len()..], promised);
        }
        t.ack_counted(store, &lease, lease.last_seq(), 1)?;
        let below = waiting.remove(0);
        if waiting.len() == 1 {
            t.advise("the store never delivered two messages in one claim; the partial ack was judged by an ack below the delivered message");
            return below_the_delivery(t, store, below.seq);
        }
    }
    Ok(())
}

/// A shared counter leaves gaps in one box where the other one is appended to.
fn up_to_a_gap(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let (beta, gamma) = (at("beta"), at("gamma"));
    let mut waiting = Vec::new();
    for _ in 0..MESSAGES {
        waiting.extend(t.append_many(store, &beta, "b", 1)?);
        t.append(store, &gamma, "between")?;
    }
    let lease = t.claim_some(store, &beta, "ann", "waiting messages are claimable")?;
    is_prefix(&lease.messages, &waiting, "a claim delivers a prefix of what waits")?;
    let seqs: Vec<u64> = lease.messages.iter().map(|m| m.seq).collect();
    let Some(below) = seqs.windows(2).rposition(|pair| pair[1].saturating_sub(pair[0]) > 1) else {
        return Ok(());
    };
    let between = seqs[below].midpoint(seqs[below + 1]);
    t.ack_counted(store, &lease, between, below + 1)?;
    let promised = "an ack up to a number between two seqs removes exactly what lies below it";
    t.holds_exactly(store, &beta, &waiting[below + 1..], promised)
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

fn append_by_tens(model: &mut Model, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
    model.with_box(to, |b| b.last_seq += STRIDE - 1);
    model.append(to, body, now)
}

/// Where `up_to` lies strictly between two delivered messages: the seq of the next one.
fn next_after_gap(model: &Model, of: &Address, up_to: Seq) -> Option<Seq> {
    model.with_box(of, |b| {
        let delivered = b.lease.as_ref().map(|held| held.delivered)?;
        let first = b.messages.first()?.seq;
        let exact = b.messages.iter().any(|m| m.seq == up_to);
        let next = b.messages.iter().find(|m| m.seq > up_to && m.seq <= delivered)?.seq;
        (first < up_to && !exact).then_some(next)
    })
}

altered!(TakesTheNext {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        append_by_tens(&mut self.0, to, body, now)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let up_to = next_after_gap(&self.0, of, up_to).unwrap_or(up_to);
        self.0.ack(of, owner, lease, up_to, now)
    }
});

altered!(RemovesNothing {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        append_by_tens(&mut self.0, to, body, now)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let up_to = next_after_gap(&self.0, of, up_to).map_or(up_to, |_| Seq(0));
        self.0.ack(of, owner, lease, up_to, now)
    }
});
