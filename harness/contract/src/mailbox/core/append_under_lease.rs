//! Mail that arrives during a lease waits its turn.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::{Sent, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

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
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut sent = t.append_many(&store, &alpha, "m", 2)?;
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    let seq = t.append(&store, &alpha, "late")?;
    if sent.iter().any(|earlier| earlier.seq >= seq) {
        return broken(
            "a message appended during a lease gets a seq above all earlier ones",
            format!("it got {seq} after {}", sent[1].seq),
        );
    }
    sent.push(Sent { seq, body: Json::from("late") });
    t.fenced(&store, &lease, "bob")?;
    t.ack_counted(&store, &lease, seq, lease.messages.len())?;
    let rest = sent.split_off(lease.messages.len().min(sent.len()));
    t.holds_exactly(
        &store,
        &alpha,
        &rest,
        "what the lease did not deliver is delivered by a later claim",
    )
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
