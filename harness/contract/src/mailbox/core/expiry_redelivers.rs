//! What a consumer took and never acked goes to the next one.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{Lease, at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict};
use std::collections::BTreeMap;

/// How many messages wait.
const MESSAGES: usize = 5;
/// How often the same messages are taken and come back unacked.
const ROUNDS: usize = 24;
/// How often a mutant delivers a message before it takes it for undeliverable.
const DELIVERIES_MAX: u32 = 5;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "expiry-redelivers",
    at: file!(),
    statement: "After a lease expired unacked, another owner gets the same messages with the same seqs in the same order.",
    why: "Consumers crash. What they had claimed must reach the next one whole, or a crash loses mail.",
    steps: &[
        "append m1 to m5; ann claims and does nothing",
        "let her lease expire, with time to spare",
        "bob claims: the same messages from the front, same seqs, same order",
        "bob acks and drains: all five, once each",
        "(caller's clock) claim and let the lease expire 24 times: the same messages from the front each time, and all five at the end",
        "(release) claim and release 24 times: the same",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "expired-is-lost",
            fault: "throws away what an expired lease had delivered",
            make: subject::<Lost>,
        },
        Mutant {
            name: "expired-goes-last",
            fault: "puts the first of the expired messages behind the others",
            make: subject::<GoesLast>,
        },
        Mutant {
            name: "many-expired-go-last",
            fault: "puts the first of more than four expired messages behind the others",
            make: subject::<ManyGoLast>,
        },
        Mutant {
            name: "expired-is-renumbered",
            fault: "redelivers expired messages under new numbers",
            make: subject::<Renumbered>,
        },
        Mutant {
            name: "five-deliveries-are-enough",
            fault: "throws away a message that was delivered five times and not acked",
            make: subject::<FiveAreEnough>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", MESSAGES)?;
    let ttl_ms = t.short_ttl_ms();
    let lease =
        t.claim_some_for(&store, &alpha, "ann", ttl_ms, "waiting messages are claimable")?;
    t.wait_past(&lease)?;
    let promised = "after expiry another owner gets the same messages, same seqs, same order";
    let next = t.claim_some(&store, &alpha, "bob", promised)?;
    is_prefix(&next.messages, &sent, promised)?;
    t.ack_counted(&store, &next, next.last_seq(), next.messages.len())?;
    t.holds_exactly(&store, &alpha, &sent[next.messages.len()..], promised)?;
    if t.is_caller_clock() {
        let promised = "however often a lease expired, the same messages come again";
        comes_back(t, &store, "beta", |t, _, lease| t.wait_past(lease), promised)?;
    }
    if t.caps().release {
        let promised = "however often a lease was released, the same messages come again";
        comes_back(t, &store, "gamma", |t, store, lease| t.give_back(store, lease), promised)?;
    }
    Ok(())
}

/// Claims again and again without an ack, each lease ended by `end`; nothing may be lost or move.
fn comes_back(
    t: &mut Trial<'_>,
    store: &StoreRef,
    handle: &str,
    end: fn(&mut Trial<'_>, &StoreRef, &Lease) -> Verdict,
    promised: &str,
) -> Verdict {
    let of = at(handle);
    let sent = t.append_many(store, &of, "m", MESSAGES)?;
    for round in 0..ROUNDS {
        let owner = if round % 2 == 0 { "ann" } else { "bob" };
        let lease = t.claim_some(store, &of, owner, promised)?;
        is_prefix(&lease.messages, &sent, promised)?;
        end(t, store, &lease)?;
    }
    t.holds_exactly(store, &of, &sent, promised)
}

/// Claims through the model, after `change` had its way with a box whose lease has expired.
pub(super) fn claim_after(
    model: &mut crate::mailbox::model::Model,
    from: &Address,
    ask: &ClaimAsk,
    now: Millis,
    change: impl FnOnce(&mut crate::mailbox::model::BoxState, Seq),
) -> Reply<Option<Delivery>> {
    let time = model.time(now);
    model.with_box(from, |b| {
        if let Some(held) = b.lease.take_if(|held| time >= held.expiry) {
            change(b, held.delivered);
        }
    });
    model.claim(from, ask, now)
}

altered!(Lost {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_after(&mut self.0, from, ask, now, |b, delivered| b.messages.retain(|m| m.seq > delivered))
    }
});

altered!(GoesLast {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_after(&mut self.0, from, ask, now, |b, _| {
            if b.messages.len() > 1 {
                b.messages.rotate_left(1);
            }
        })
    }
});

altered!(ManyGoLast {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_after(&mut self.0, from, ask, now, |b, _| {
            if b.messages.len() > 4 {
                b.messages.rotate_left(1);
            }
        })
    }
});

altered!(Renumbered {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_after(&mut self.0, from, ask, now, |b, _| {
            for message in &mut b.messages {
                b.last_seq += 1;
                message.seq = Seq(b.last_seq);
            }
        })
    }
});

altered!(FiveAreEnough remembers BTreeMap<(Address, Seq), u32> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let counts = &self.1;
        let spent = |seq: Seq| counts.get(&(from.clone(), seq)).is_some_and(|n| *n >= DELIVERIES_MAX);
        self.0.with_box(from, |b| b.messages.retain(|m| !spent(m.seq)));
        let claimed = self.0.claim(from, ask, now)?;
        for message in claimed.iter().flat_map(|delivery| &delivery.messages) {
            *self.1.entry((from.clone(), message.seq)).or_default() += 1;
        }
        Ok(claimed)
    }
});
