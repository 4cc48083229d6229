//! Closing a durable store loses nothing.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::mailbox::model::{Held, Model, State};
use crate::mailbox::moves::{Lease, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Message, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// How much longer a mutant lets leases live that it finds on opening, in milliseconds.
const PROLONGED_MS: u64 = 30_000;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reopen",
    at: file!(),
    statement: "Pending messages, their seqs, and live leases survive close and attach, and so does what was done with them.",
    why: "A receipt is a promise. Agents restart all the time; what was promised before the restart is owed after it.",
    steps: &[
        "one box whose lease ended by a partial ack, one by release (if declared), one by drop with a message appended after it: close, attach; all that is left is claimable at once",
        "if bob's ack with the id of ann's lease was refused before, it is refused after close and attach too",
        "append to alpha and beta; claim and ack the first of beta; ann claims alpha; append late to alpha; close; attach",
        "bob's claim on alpha: null, ann's lease still lives",
        "ann acks alpha with her lease from before up to late's own seq: taken, and counts only what she was delivered",
        "beta holds the rest, same seqs, same bodies, same order",
        "close and attach once more: what is left is still there, late at the end",
        "ann claims two boxes and renews one of the leases (if declared); close, attach within the lifetime of both",
        "the lease that was not renewed ends when it would have ended without that, the other one still fences and can be acked",
    ],
    needs: Some(Capability::Durable),
    check,
    mutants: &[
        Mutant {
            name: "leases-die-on-close",
            fault: "forgets leases when the storage is closed",
            make: subject::<LeasesDie>,
        },
        Mutant {
            name: "last-append-lost-on-close",
            fault: "loses the newest message of each box when the storage is closed",
            make: subject::<LastLost>,
        },
        Mutant {
            name: "renumbers-on-open",
            fault: "numbers pending messages from 1 when the storage is opened",
            make: subject::<Renumbers>,
        },
        Mutant {
            name: "lease-ids-change-on-open",
            fault: "gives live leases new ids when the storage is opened",
            make: subject::<NewIds>,
        },
        Mutant {
            name: "leases-grow-on-open",
            fault: "lets leases live longer when the storage is opened",
            make: subject::<LeasesGrow>,
        },
        Mutant {
            name: "leases-stretch-on-open",
            fault: "lets leases cover all of the box when the storage is opened",
            make: subject::<LeasesStretch>,
        },
        Mutant {
            name: "late-lost-on-open",
            fault: "throws away what arrived under a lease when the storage is opened",
            make: subject::<LateLost>,
        },
        Mutant {
            name: "holders-forgotten-on-open",
            fault: "takes an ack from whoever names the lease once the storage was opened again",
            make: subject::<HoldersForgotten>,
        },
        Mutant {
            name: "partial-ack-forgotten-on-open",
            fault: "brings a lease back on opening that a partial ack had settled",
            make: subject::<PartialAckForgotten>,
        },
        Mutant {
            name: "release-forgotten-on-open",
            fault: "brings a lease back on opening that was released",
            make: subject::<ReleaseForgotten>,
        },
        Mutant {
            name: "renewal-forgotten-on-open",
            fault: "goes back to the expiry before the renewal when the storage is opened",
            make: subject::<RenewalForgotten>,
        },
        Mutant {
            name: "dropped-lease-back-on-open",
            fault: "brings the lease of a dropped box back when the storage is opened",
            make: subject::<DroppedLeaseBack>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let store = keeps_ends_of_leases(t, &store)?;
    let store = keeps_mail_and_lease(t, &store)?;
    keeps_expiries(t, &store)
}

fn keeps_ends_of_leases(t: &mut Trial<'_>, store: &StoreRef) -> Result<StoreRef, Stop> {
    let (acked, released, dropped) = (at("acked"), at("released"), at("dropped"));
    let waiting = "waiting messages are claimable";
    let partly = t.append_many(store, &acked, "m", 4)?;
    let lease = t.claim_some(store, &acked, "ann", waiting)?;
    let half = t.ack_first_half(store, &lease)?;
    let given = t.append_many(store, &released, "m", 2)?;
    if t.caps().release {
        let lease = t.claim_some(store, &released, "ann", waiting)?;
        t.give_back(store, &lease)?;
    }
    t.append_many(store, &dropped, "m", 2)?;
    t.claim_some(store, &dropped, "ann", waiting)?;
    t.drop_box(store, &dropped)?;
    let after = t.append_many(store, &dropped, "after", 1)?;
    let guarded = guarded(t, store)?;

    let store = t.reopen(store)?;
    if let Some(lease) = guarded {
        let why = "close and attach do not hand a lease to somebody else";
        t.ack_refused(&store, &lease.of, "bob", &lease.id, lease.last_seq(), why)?;
    }
    let promised = "a lease that a partial ack settled does not come back by close and attach";
    t.holds_exactly(&store, &acked, &partly[half..], promised)?;
    let promised = "a lease that was released does not come back by close and attach";
    t.holds_exactly(&store, &released, &given, promised)?;
    let promised = "a drop survives close and attach, and what was appended after it is claimable";
    t.holds_exactly(&store, &dropped, &after, promised)?;
    Ok(store)
}

/// A lease that only its holder may ack; none where the store lets others ack without any reopening.
fn guarded(t: &mut Trial<'_>, store: &StoreRef) -> Result<Option<Lease>, Stop> {
    let of = at("guarded");
    t.append_many(store, &of, "m", 2)?;
    let lease = t.claim_some(store, &of, "ann", "waiting messages are claimable")?;
    let refused = t.try_ack(store, &of, "bob", &lease.id, lease.last_seq())?.is_err();
    Ok(refused.then_some(lease))
}

fn keeps_mail_and_lease(t: &mut Trial<'_>, store: &StoreRef) -> Result<StoreRef, Stop> {
    let (alpha, beta) = (at("alpha"), at("beta"));
    let mut mine = t.append_many(store, &alpha, "a", 3)?;
    let mut theirs = t.append_many(store, &beta, "b", 3)?;
    let ttl_ms = t.long_ttl_ms();
    let Some(first) = t.claim_for(store, &beta, "cid", ttl_ms, Some(1))? else {
        return broken("waiting messages are claimable", "cid's claim with max 1 answered null");
    };
    t.ack_counted(store, &first, theirs[0].seq, 1)?;
    theirs.remove(0);
    let lease = t.claim_some(store, &alpha, "ann", "waiting messages are claimable")?;
    mine.extend(t.append_many(store, &alpha, "late", 1)?);
    let late = mine[mine.len() - 1].seq;

    let store = t.reopen(store)?;
    t.fenced(&store, &lease, "bob")?;
    t.ack_counted(&store, &lease, late, lease.messages.len())?;
    let promised = "pending messages survive close and attach, with their seqs and bodies";
    t.holds_exactly(&store, &beta, &theirs, promised)?;

    let store = t.reopen(&store)?;
    let rest = mine.split_off(lease.messages.len().min(mine.len()));
    t.holds_exactly(&store, &alpha, &rest, "what was not acked survives close and attach again")?;
    if let Some(lease) = t.claim(&store, &beta, "cid")? {
        return broken(
            "what was acked does not come back by close and attach",
            format!("beta delivered {}", crate::mailbox::moves::shown(&lease.messages)),
        );
    }
    Ok(store)
}

fn keeps_expiries(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let leased = at("leased");
    let sent = t.append_many(store, &leased, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let waiting = "waiting messages are claimable";
    let lease = t.claim_some_for(store, &leased, "ann", ttl_ms, waiting)?;
    let renewed = if t.caps().renew { Some(renewed(t, store)?) } else { None };
    t.wait_within(&lease, 2)?;

    let store = t.reopen(store)?;
    if t.is_caller_clock() {
        t.wait_within(&lease, 4)?;
        t.fenced(&store, &lease, "bob")?;
    }
    t.wait_for_expiry(&lease)?;
    t.wait(ttl_ms / 4)?;
    let promised = "after close and attach a lease ends when it would have ended without that";
    t.holds_exactly(&store, &leased, &sent, promised)?;
    let Some((before, lease)) = renewed else { return Ok(()) };
    t.wait_for_expiry(&before)?;
    t.fenced(&store, &lease, "bob")?;
    t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())
}

/// A short lease on another box, and the same one renewed for long.
fn renewed(t: &mut Trial<'_>, store: &StoreRef) -> Result<(Lease, Lease), Stop> {
    let of = at("renewed");
    t.append_many(store, &of, "m", 2)?;
    let (short_ms, ttl_ms) = (t.short_ttl_ms(), t.long_ttl_ms());
    let before = t.claim_some_for(store, &of, "ann", short_ms, "waiting messages are claimable")?;
    if let Err(refusal) = t.try_renew(store, &of, "ann", &before.id, ttl_ms)? {
        t.while_live(&before)?;
        let promised = "the holder of a live lease may renew it";
        return broken(promised, format!("the renewal was {refusal}"));
    }
    let lease = Lease { since: t.last(), ttl_ms, ..before.clone() };
    Ok((before, lease))
}

altered!(LeasesDie {
    fn reopened(state: &mut State) {
        state.boxes.values_mut().for_each(|b| b.lease = None);
    }
});

altered!(LastLost {
    fn reopened(state: &mut State) {
        for b in state.boxes.values_mut() {
            b.messages.pop();
        }
    }
});

altered!(Renumbers {
    fn reopened(state: &mut State) {
        for b in state.boxes.values_mut() {
            for (message, seq) in b.messages.iter_mut().zip(1..) {
                message.seq = Seq(seq);
            }
        }
    }
});

altered!(NewIds {
    fn reopened(state: &mut State) {
        for held in state.boxes.values_mut().filter_map(|b| b.lease.as_mut()) {
            held.id.0.push('x');
        }
    }
});

altered!(LeasesGrow {
    fn reopened(state: &mut State) {
        for held in state.boxes.values_mut().filter_map(|b| b.lease.as_mut()) {
            held.expiry.0 += PROLONGED_MS;
        }
    }
});

altered!(LeasesStretch {
    fn reopened(state: &mut State) {
        for b in state.boxes.values_mut() {
            if let Some(held) = &mut b.lease {
                held.delivered = Seq(b.last_seq);
            }
        }
    }
});

altered!(LateLost {
    fn reopened(state: &mut State) {
        for b in state.boxes.values_mut() {
            if let Some(held) = &b.lease {
                b.messages.retain(|m| m.seq <= held.delivered);
            }
        }
    }
});

altered!(HoldersForgotten {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let opened_again = !self.0.state().scrap.is_empty();
        let holder = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.owner.clone()));
        let owner = holder.as_deref().filter(|_| opened_again).unwrap_or(owner);
        self.0.ack(of, owner, lease, up_to, now)
    }
    fn reopened(state: &mut State) {
        state.scrap.push((at("opened"), Message { seq: Seq(1), body: json!(null) }));
    }
});

/// Writes a lease down as it was before something ended or changed it.
fn note(model: &Model, of: &Address, held: Option<Held>) {
    if let Some(Held { id, owner, expiry, delivered }) = held {
        let body = json!([id.0, owner, expiry.0]);
        model.state().scrap.push((of.clone(), Message { seq: delivered, body }));
    }
}

/// Puts the leases back that were noted, on boxes of which `on` holds.
fn revive(state: &mut State, on: fn(Option<&Held>) -> bool) {
    for (of, Message { seq, body }) in std::mem::take(&mut state.scrap) {
        let b = state.boxes.entry(of).or_default();
        if on(b.lease.as_ref()) {
            b.lease = Some(Held {
                id: LeaseId(body[0].as_str().unwrap_or_default().to_owned()),
                owner: body[1].as_str().unwrap_or_default().to_owned(),
                expiry: Millis(body[2].as_u64().unwrap_or(0)),
                delivered: seq,
            });
        }
    }
}

altered!(PartialAckForgotten {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        let last = held.as_ref().map(|held| held.delivered);
        if self.0.with_box(of, |b| b.messages.iter().any(|m| Some(m.seq) <= last)) {
            note(&self.0, of, held);
        }
        Ok(acked)
    }
    fn reopened(state: &mut State) {
        revive(state, |held| held.is_none());
    }
});

altered!(ReleaseForgotten {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        self.0.release(of, owner, lease, now)?;
        note(&self.0, of, held);
        Ok(())
    }
    fn reopened(state: &mut State) {
        revive(state, |held| held.is_none());
    }
});

altered!(RenewalForgotten {
    fn renew(&mut self, of: &Address, owner: &str, lease: &LeaseId, ttl_ms: i64, now: Millis) -> Reply<()> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        self.0.renew(of, owner, lease, ttl_ms, now)?;
        note(&self.0, of, held);
        Ok(())
    }
    fn reopened(state: &mut State) {
        revive(state, |held| held.is_some());
    }
});

altered!(DroppedLeaseBack {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        let dropped = self.0.drop_box(of, now)?;
        note(&self.0, of, held);
        Ok(dropped)
    }
    fn reopened(state: &mut State) {
        revive(state, |held| held.is_none());
    }
});
