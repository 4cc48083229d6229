//! A lease that was overtaken acks nothing.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "stale-ack-after-reclaim",
    at: file!(),
    statement: "Once a lease has expired and another consumer has claimed, the first one's ack is refused; the second one's lease is unharmed and ackable.",
    why: "A slow consumer that comes back late would otherwise delete messages which another is still working on; if that one fails, they are gone.",
    steps: &[
        "append m1, m2; ann claims for a ttl and lets it expire; bob claims",
        "ann acks with her old lease: refused",
        "cid claims: null; bob acks: taken, and counted; the rest is still there",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "overtaken-lease-acks",
            fault: "takes an ack with a lease that expired and was overtaken",
            make: subject::<OvertakenAcks>,
        },
        Mutant {
            name: "stale-ack-frees-the-new-lease",
            fault: "frees the box while it refuses an overtaken lease's ack",
            make: subject::<FreesTheNew>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let old = t.claim_some_for(&store, &alpha, "ann", ttl_ms, "waiting messages are claimable")?;
    t.wait_past(&old)?;
    let new =
        t.claim_some(&store, &alpha, "bob", "once a lease has expired the box is claimable")?;
    let promised = "expired messages are redelivered from the front";
    is_prefix(&new.messages, &sent, promised)?;
    let why = "ann's lease has expired and bob holds the box now";
    t.ack_refused(&store, &alpha, "ann", &old.id, old.last_seq(), why)?;
    t.fenced(&store, &new, "cid")?;
    t.ack_counted(&store, &new, new.last_seq(), new.messages.len())?;
    t.holds_exactly(&store, &alpha, &sent[new.messages.len()..], "a refused ack removes nothing")
}

/// Claims through the model; a lease that the claim replaced is put on the list.
fn claim_noting(
    model: &mut crate::mailbox::model::Model,
    overtaken: &mut Vec<LeaseId>,
    from: &Address,
    ask: &ClaimAsk,
    now: Millis,
) -> Reply<Option<Delivery>> {
    let before = model.with_box(from, |b| b.lease.as_ref().map(|held| held.id.clone()));
    let claimed = model.claim(from, ask, now)?;
    if let (Some(before), Some(delivery)) = (before, &claimed)
        && before != delivery.lease
    {
        overtaken.push(before);
    }
    Ok(claimed)
}

altered!(OvertakenAcks remembers Vec<LeaseId> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_noting(&mut self.0, &mut self.1, from, ask, now)
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

altered!(FreesTheNew remembers Vec<LeaseId> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_noting(&mut self.0, &mut self.1, from, ask, now)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now);
        if self.1.contains(lease) {
            self.0.with_box(of, |b| b.lease = None);
        }
        acked
    }
});
