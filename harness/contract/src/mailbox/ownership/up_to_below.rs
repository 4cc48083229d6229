//! An ack that points below its delivery removes nothing and settles the lease.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "up-to-below",
    at: file!(),
    statement: "An ack up to an earlier, already acked message removes nothing, answers acked 0, and settles the lease.",
    why: "\"I finished none of these\" is a legitimate thing for a consumer to say; it must neither lose mail nor keep it locked.",
    steps: &[
        "append m1, m2; ann claims with max 1 and acks m1; she claims again",
        "she acks up to m1's seq: acked is 0",
        "she acks with the same lease again: refused, or acked 0",
        "bob claims at once; claim and ack until null: exactly what was left",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "below-ack-keeps-the-lease",
            fault: "keeps the lease alive when an ack removes nothing",
            make: subject::<KeepsTheLease>,
        },
        Mutant {
            name: "below-ack-takes-the-first",
            fault: "removes at least one delivered message with every ack",
            make: subject::<TakesTheFirst>,
        },
        Mutant {
            name: "below-ack-refused",
            fault: "refuses an ack that removes nothing",
            make: subject::<Refused>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut waiting = t.append_many(&store, &alpha, "m", 2)?;
    let ttl_ms = t.long_ttl_ms();
    let Some(first) = t.claim_for(&store, &alpha, "ann", ttl_ms, Some(1))? else {
        return broken("waiting messages are claimable", "ann's claim with max 1 answered null");
    };
    t.ack_counted(&store, &first, waiting[0].seq, 1)?;
    let below = waiting.remove(0).seq;
    let lease = t.claim_some(&store, &alpha, "ann", "what was not acked is claimable")?;
    t.ack_counted(&store, &lease, below, 0)?;
    if let Ok(acked) = t.try_ack(&store, &alpha, "ann", &lease.id, lease.last_seq())?
        && acked != 0.0
    {
        return broken(
            "every ack settles its lease",
            format!("a second ack with it answered acked: {acked}"),
        );
    }
    let promised = "an ack that removes nothing still settles the lease";
    let next = t.claim_some(&store, &alpha, "bob", promised)?;
    is_prefix(&next.messages, &waiting, "an ack below the delivery removes nothing")?;
    t.ack_counted(&store, &next, next.last_seq(), next.messages.len())?;
    let rest = &waiting[next.messages.len()..];
    t.holds_exactly(&store, &alpha, rest, "an ack below the delivery removes nothing")
}

altered!(KeepsTheLease {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        if acked == 0 {
            self.0.with_box(of, |b| b.lease = held);
        }
        Ok(acked)
    }
});

altered!(TakesTheFirst {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let first = self.0.with_box(of, |b| b.messages.first().map(|m| m.seq));
        self.0.ack(of, owner, lease, first.map_or(up_to, |first| first.max(up_to)), now)
    }
});

altered!(Refused {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let nothing = self.0.with_box(of, |b| b.messages.first().is_some_and(|m| m.seq > up_to));
        if nothing {
            return Err(StoreError::refused("invalid_seq", "upTo lies below the delivery"));
        }
        self.0.ack(of, owner, lease, up_to, now)
    }
});
