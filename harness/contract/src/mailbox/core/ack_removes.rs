//! What was acked stays away.

use crate::clause::{Clause, Mutant};
use crate::mailbox::model::{Model, State};
use crate::mailbox::moves::{Lease, Sent, at, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};

/// How many messages wait in a box that is acked in part.
const PARTLY_ACKED: usize = 4;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "ack-removes",
    at: file!(),
    statement: "What was acked is never delivered again: not after the lease would have expired, not after reap, not after reopen; and acked counts what went.",
    why: "An acked message that comes back is work done twice: a payment sent again, an email sent again.",
    steps: &[
        "append m1, m2, m3; ann claims and acks until all three went; each acked is right",
        "bob claims: null",
        "let the lifetime of ann's last lease pass; bob claims: null",
        "reap; bob claims: null",
        "(durable) close and attach; bob claims: null",
        "three more boxes of which ann acked the first half of a delivery hold exactly the rest: one after the lease's lifetime, one after reap, (durable) one after close and attach",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "acked-comes-back-at-expiry",
            fault: "puts acked messages back when their lease would have expired",
            make: subject::<BackAtExpiry>,
        },
        Mutant {
            name: "acked-comes-back-by-reap",
            fault: "puts acked messages back at the next reap",
            make: subject::<BackByReap>,
        },
        Mutant {
            name: "acked-comes-back-on-reopen",
            fault: "forgets acks when the storage is closed",
            make: subject::<BackOnReopen>,
        },
        Mutant {
            name: "partly-acked-comes-back-at-expiry",
            fault: "puts the acked part of a delivery back when its lease would have expired",
            make: subject::<PartBackAtExpiry>,
        },
        Mutant {
            name: "partly-acked-comes-back-by-reap",
            fault: "puts the acked part of a delivery back at the next reap",
            make: subject::<PartBackByReap>,
        },
        Mutant {
            name: "partly-acked-comes-back-on-reopen",
            fault: "forgets acks of a part when the storage is closed",
            make: subject::<PartBackOnReopen>,
        },
        Mutant {
            name: "acked-counts-one-more",
            fault: "answers one more than it removed",
            make: subject::<CountsOneMore>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut store = t.open()?;
    ack_all(t, &store)?;
    let (expired, _) = ack_half(t, &store, "beta")?;
    let (reaped, _) = ack_half(t, &store, "gamma")?;
    let (reopened, lease) = ack_half(t, &store, "delta")?;
    stays_away(t, &store, "after its ack")?;
    t.wait_past(&lease)?;
    stays_away(t, &store, "after its lease would have expired")?;
    let promised = "after the lifetime of its lease a box that was acked in part holds the rest";
    t.holds_exactly(&store, &at("beta"), &expired, promised)?;
    t.reap(&store)?;
    stays_away(t, &store, "after reap")?;
    let promised = "after reap a box that was acked in part holds the rest";
    t.holds_exactly(&store, &at("gamma"), &reaped, promised)?;
    if t.caps().durable {
        store = t.reopen(&store)?;
        stays_away(t, &store, "after close and attach")?;
        let promised = "after close and attach a box that was acked in part holds the rest";
        t.holds_exactly(&store, &at("delta"), &reopened, promised)?;
    }
    Ok(())
}

fn ack_all(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let alpha = at("alpha");
    let sent = t.append_many(store, &alpha, "m", 3)?;
    let ttl_ms = t.short_ttl_ms();
    let mut gone = 0;
    while gone < sent.len() {
        let lease =
            t.claim_some_for(store, &alpha, "ann", ttl_ms, "what was not acked is claimable")?;
        t.ack_counted(store, &lease, lease.last_seq(), lease.messages.len())?;
        gone += lease.messages.len();
    }
    Ok(())
}

/// Acks the first half of a delivery. Answers what that left in the box, and the settled lease.
fn ack_half(t: &mut Trial<'_>, store: &StoreRef, handle: &str) -> Result<(Vec<Sent>, Lease), Stop> {
    let of = at(handle);
    let mut sent = t.append_many(store, &of, "m", PARTLY_ACKED)?;
    let ttl_ms = t.short_ttl_ms();
    let lease = t.claim_some_for(store, &of, "ann", ttl_ms, "waiting messages are claimable")?;
    let half = t.ack_first_half(store, &lease)?;
    Ok((sent.split_off(half.min(sent.len())), lease))
}

fn stays_away(t: &mut Trial<'_>, store: &StoreRef, when: &str) -> Verdict {
    match t.claim(store, &at("alpha"), "bob")? {
        None => Ok(()),
        Some(lease) => broken(
            format!("what was acked is not delivered again {when}"),
            format!("bob's claim delivered {}", shown(&lease.messages)),
        ),
    }
}

fn remembering(
    model: &mut Model,
    of: &Address,
    ack: impl FnOnce(&mut Model) -> Reply<u64>,
) -> Reply<(u64, Vec<Message>)> {
    let before = model.with_box(of, |b| b.messages.clone());
    let acked = ack(model)?;
    let left = model.with_box(of, |b| b.messages.clone());
    Ok((acked, before.into_iter().filter(|m| !left.contains(m)).collect()))
}

/// As [`remembering`], but only what went by an ack that left part of the delivery.
fn remembering_part(
    model: &mut Model,
    of: &Address,
    ack: impl FnOnce(&mut Model) -> Reply<u64>,
) -> Reply<(u64, Vec<Message>)> {
    let delivered = model.with_box(of, |b| b.lease.as_ref().map(|held| held.delivered));
    let (acked, gone) = remembering(model, of, ack)?;
    let part = model.with_box(of, |b| b.messages.iter().any(|m| Some(m.seq) <= delivered));
    Ok((acked, if part { gone } else { Vec::new() }))
}

pub(super) fn put_back(state: &mut State) {
    for (of, message) in std::mem::take(&mut state.scrap) {
        state.boxes.entry(of).or_default().messages.push(message);
    }
}

/// A message that comes back to a box at a moment.
pub(super) type Due = (Millis, Address, Message);

/// Puts back what is due.
pub(super) fn put_back_due(model: &mut Model, kept: &mut Vec<Due>, now: Millis) {
    let time = model.time(now);
    let (due, later): (Vec<Due>, Vec<Due>) =
        std::mem::take(kept).into_iter().partition(|(expiry, _, _)| time >= *expiry);
    *kept = later;
    for (_, of, message) in due {
        model.with_box(&of, |b| b.messages.push(message));
    }
}

altered!(BackAtExpiry remembers Vec<Due> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let expiry = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.expiry));
        let (acked, gone) = remembering(&mut self.0, of, |m| m.ack(of, owner, lease, up_to, now))?;
        let expiry = expiry.unwrap_or(now);
        self.1.extend(gone.into_iter().map(|message| (expiry, of.clone(), message)));
        Ok(acked)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        put_back_due(&mut self.0, &mut self.1, now);
        self.0.claim(from, ask, now)
    }
});

altered!(BackByReap {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let (acked, gone) = remembering(&mut self.0, of, |m| m.ack(of, owner, lease, up_to, now))?;
        self.0.state().scrap.extend(gone.into_iter().map(|message| (of.clone(), message)));
        Ok(acked)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        put_back(&mut self.0.state());
        self.0.reap(now)
    }
});

altered!(BackOnReopen {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let (acked, gone) = remembering(&mut self.0, of, |m| m.ack(of, owner, lease, up_to, now))?;
        self.0.state().scrap.extend(gone.into_iter().map(|message| (of.clone(), message)));
        Ok(acked)
    }
    fn reopened(state: &mut State) {
        put_back(state);
    }
});

altered!(CountsOneMore {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        Ok(self.0.ack(of, owner, lease, up_to, now)? + 1)
    }
});

altered!(PartBackAtExpiry remembers Vec<Due> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let expiry = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.expiry));
        let (acked, gone) = remembering_part(&mut self.0, of, |m| m.ack(of, owner, lease, up_to, now))?;
        let expiry = expiry.unwrap_or(now);
        self.1.extend(gone.into_iter().map(|message| (expiry, of.clone(), message)));
        Ok(acked)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        put_back_due(&mut self.0, &mut self.1, now);
        self.0.claim(from, ask, now)
    }
});

altered!(PartBackByReap {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let (acked, gone) = remembering_part(&mut self.0, of, |m| m.ack(of, owner, lease, up_to, now))?;
        self.0.state().scrap.extend(gone.into_iter().map(|message| (of.clone(), message)));
        Ok(acked)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        put_back(&mut self.0.state());
        self.0.reap(now)
    }
});

altered!(PartBackOnReopen {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let (acked, gone) = remembering_part(&mut self.0, of, |m| m.ack(of, owner, lease, up_to, now))?;
        self.0.state().scrap.extend(gone.into_iter().map(|message| (of.clone(), message)));
        Ok(acked)
    }
    fn reopened(state: &mut State) {
        put_back(state);
    }
});
