//! What a consumer took and never acked goes to the next one.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// How many messages wait.
const MESSAGES: usize = 5;

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
    t.holds_exactly(&store, &alpha, &sent[next.messages.len()..], promised)
}

/// Claims through the model, after `change` had its way with a box whose lease has expired.
fn claim_after(
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
