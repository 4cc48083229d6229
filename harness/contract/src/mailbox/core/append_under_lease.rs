//! Mail that arrives during a lease waits its turn.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{Lease, Sent, at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use std::collections::BTreeSet;

use super::expiry_redelivers::claim_after;

/// How many messages wait before the claim; some stores treat five or more otherwise than a few.
const MESSAGES: usize = 6;
/// The claims under which a message arrives: one that asks for everything, one for a part.
const MAXES: [Option<u64>; 2] = [None, Some(2)];

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "append-under-lease",
    at: file!(),
    statement: "An append during a live lease gets a higher seq, is not covered by that lease, does not disturb it, and is delivered by a later claim.",
    why: "Senders do not wait for consumers. A message that slips under a lease it was never delivered with is acked unread.",
    steps: &[
        "append m1, m2; ann claims; append late: its seq is above all earlier ones",
        "bob claims: null, the lease stands",
        "ann acks up to late's own seq: acked counts only what she was delivered",
        "claim and ack until null: everything else comes, late at the end",
        "the same with six messages, claimed with and without max 2, where ann acks only half: the rest comes in order, late at the end",
        "the same where ann releases (if declared), and where her lease expires: everything comes in order, late at the end",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "append-ends-the-lease",
            fault: "frees the box when a message arrives",
            make: subject::<EndsTheLease>,
        },
        Mutant {
            name: "append-joins-the-lease",
            fault: "counts a message that arrives during a lease as delivered by it",
            make: subject::<JoinsTheLease>,
        },
        Mutant {
            name: "append-lost-under-lease",
            fault: "gives a receipt for a message that arrives during a lease and forgets it",
            make: subject::<LostUnderLease>,
        },
        Mutant {
            name: "expired-goes-behind-late",
            fault: "puts what a lease had delivered behind what arrived under it when the lease expires",
            make: subject::<ExpiredGoesBehind>,
        },
        Mutant {
            name: "late-lost-at-expiry",
            fault: "throws away what arrived under a lease when the lease expires",
            make: subject::<LateLostAtExpiry>,
        },
        Mutant {
            name: "undelivered-lost-at-expiry-of-max",
            fault: "throws away what a claim with max left when its lease expires",
            make: subject::<LostBehindMax>,
        },
        Mutant {
            name: "released-goes-behind-late",
            fault: "puts what was released behind what arrived under the lease",
            make: subject::<ReleasedGoesBehind>,
        },
        Mutant {
            name: "late-lost-at-release",
            fault: "keeps only what a lease delivered when it is released",
            make: subject::<LateLostAtRelease>,
        },
        Mutant {
            name: "first-of-many-lost-at-release",
            fault: "removes the first message when more than four are released",
            make: subject::<FirstOfManyLost>,
        },
        Mutant {
            name: "rest-goes-behind-late",
            fault: "puts what a partial ack left behind what arrived under the lease",
            make: subject::<RestGoesBehind>,
        },
        Mutant {
            name: "late-lost-at-partial-ack",
            fault: "keeps only the rest of the delivery when part of it is acked",
            make: subject::<LateLostAtPartialAck>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    waits_its_turn(t, &store)?;
    outlives_a_partial_ack(t, &store)?;
    if t.caps().release {
        outlives_a_release(t, &store)?;
    }
    outlives_the_expiry(t, &store)
}

fn waits_its_turn(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let alpha = at("alpha");
    let mut sent = t.append_many(store, &alpha, "m", 2)?;
    let lease = t.claim_some(store, &alpha, "ann", "waiting messages are claimable")?;
    let seq = t.append(store, &alpha, "late")?;
    if sent.iter().any(|earlier| earlier.seq >= seq) {
        return broken(
            "a message appended during a lease gets a seq above all earlier ones",
            format!("it got {seq} after {}", sent[1].seq),
        );
    }
    sent.push(Sent { seq, body: Json::from("late") });
    t.fenced(store, &lease, "bob")?;
    t.ack_counted(store, &lease, seq, lease.messages.len())?;
    let rest = sent.split_off(lease.messages.len().min(sent.len()));
    let promised = "what the lease did not deliver is delivered by a later claim";
    t.holds_exactly(store, &alpha, &rest, promised)
}

/// A box with a lease under which a message arrived.
struct Joined {
    lease: Lease,
    /// Everything in the box, the late message at the end.
    waiting: Vec<Sent>,
}

fn joined(
    t: &mut Trial<'_>,
    store: &StoreRef,
    of: &str,
    ttl_ms: u64,
    max: Option<u64>,
) -> Result<Joined, Stop> {
    let of = at(of);
    let mut waiting = t.append_many(store, &of, "m", MESSAGES)?;
    let lease = t.claim_at_most(store, &of, ttl_ms, max)?;
    is_prefix(&lease.messages, &waiting, "a claim delivers a prefix of what waits")?;
    waiting.extend(t.append_many(store, &of, "late", 1)?);
    Ok(Joined { lease, waiting })
}

fn outlives_a_partial_ack(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let ttl_ms = t.long_ttl_ms();
    for max in MAXES {
        let Joined { lease, waiting } = joined(t, store, "beta", ttl_ms, max)?;
        let half = t.ack_first_half(store, &lease)?;
        let promised = "after a partial ack the rest comes in order, what arrived later at the end";
        t.holds_exactly(store, &lease.of, &waiting[half..], promised)?;
    }
    Ok(())
}

fn outlives_a_release(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let ttl_ms = t.long_ttl_ms();
    for max in MAXES {
        let Joined { lease, waiting } = joined(t, store, "gamma", ttl_ms, max)?;
        t.give_back(store, &lease)?;
        let promised = "after a release everything comes in order, what arrived later at the end";
        t.holds_exactly(store, &lease.of, &waiting, promised)?;
    }
    Ok(())
}

fn outlives_the_expiry(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let ttl_ms = t.short_ttl_ms();
    let all = joined(t, store, "delta", ttl_ms, MAXES[0])?;
    let part = joined(t, store, "epsilon", ttl_ms, MAXES[1])?;
    for Joined { lease, waiting } in [all, part] {
        t.wait_past(&lease)?;
        let promised = "after expiry everything comes in order, what arrived later at the end";
        t.holds_exactly(store, &lease.of, &waiting, promised)?;
    }
    Ok(())
}

altered!(EndsTheLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| b.lease = None);
        Ok(seq)
    }
});

altered!(JoinsTheLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| {
            if let Some(held) = &mut b.lease {
                held.delivered = seq;
            }
        });
        Ok(seq)
    }
});

altered!(LostUnderLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        let time = self.0.time(now);
        self.0.with_box(to, |b| {
            if b.live(time).is_some() {
                b.messages.pop();
            }
        });
        Ok(seq)
    }
});

/// Puts everything up to `delivered` behind the rest.
fn behind(messages: &mut Vec<Message>, delivered: Seq) {
    let (old, newer): (Vec<_>, Vec<_>) = messages.drain(..).partition(|m| m.seq <= delivered);
    messages.extend(newer.into_iter().chain(old));
}

altered!(ExpiredGoesBehind {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_after(&mut self.0, from, ask, now, |b, delivered| behind(&mut b.messages, delivered))
    }
});

altered!(LateLostAtExpiry {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_after(&mut self.0, from, ask, now, |b, delivered| b.messages.retain(|m| m.seq <= delivered))
    }
});

altered!(LostBehindMax remembers BTreeSet<LeaseId> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let old = self.0.with_box(from, |b| b.lease.as_ref().map(|held| held.id.clone()));
        let by_max = old.is_some_and(|id| self.1.contains(&id));
        let claimed = claim_after(&mut self.0, from, ask, now, |b, delivered| {
            b.messages.retain(|m| !by_max || m.seq <= delivered);
        })?;
        if let (Some(delivery), Some(_)) = (&claimed, ask.max) {
            self.1.insert(delivery.lease.clone());
        }
        Ok(claimed)
    }
});

/// Releases through the model, after which `change` has its way with the messages.
fn release_then(
    model: &mut Model,
    of: &Address,
    owner: &str,
    lease: &LeaseId,
    now: Millis,
    change: impl FnOnce(&mut Vec<Message>, Seq),
) -> Reply<()> {
    let delivered = model.with_box(of, |b| b.lease.as_ref().map(|held| held.delivered));
    model.release(of, owner, lease, now)?;
    model.with_box(of, |b| change(&mut b.messages, delivered.unwrap_or(Seq(0))));
    Ok(())
}

altered!(ReleasedGoesBehind {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        release_then(&mut self.0, of, owner, lease, now, behind)
    }
});

altered!(LateLostAtRelease {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        release_then(&mut self.0, of, owner, lease, now, |messages, delivered| messages.retain(|m| m.seq <= delivered))
    }
});

altered!(FirstOfManyLost {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        release_then(&mut self.0, of, owner, lease, now, |messages, delivered| {
            if messages.iter().filter(|m| m.seq <= delivered).count() > 4 {
                messages.remove(0);
            }
        })
    }
});

/// Acks through the model; `change` has its way with the messages where the ack left part of the delivery.
fn ack_then(
    model: &mut Model,
    (of, owner, lease): (&Address, &str, &LeaseId),
    up_to: Seq,
    now: Millis,
    change: impl FnOnce(&mut Vec<Message>, Seq),
) -> Reply<u64> {
    let delivered = model.with_box(of, |b| b.lease.as_ref().map(|held| held.delivered));
    let acked = model.ack(of, owner, lease, up_to, now)?;
    model.with_box(of, |b| {
        let left = b.messages.iter().any(|m| Some(m.seq) <= delivered);
        if let (true, true, Some(delivered)) = (left, acked > 0, delivered) {
            change(&mut b.messages, delivered);
        }
    });
    Ok(acked)
}

altered!(RestGoesBehind {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        ack_then(&mut self.0, (of, owner, lease), up_to, now, behind)
    }
});

altered!(LateLostAtPartialAck {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        ack_then(&mut self.0, (of, owner, lease), up_to, now, |messages, delivered| {
            messages.retain(|m| m.seq <= delivered);
        })
    }
});
