//! Neither a tombstone nor an append refused for it takes a message away (axis: side effect).

use super::{attempt_twice, delivered, is_dead, on_refusal};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::State;
use crate::mailbox::moves::{Sent, at, same_messages, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "clears-nothing",
    at: file!(),
    statement: "Side effect: what was receipted before the tombstone stays claimable, in order, through the tombstone and every append refused for it, after a reap, a reopening or a partial ack too.",
    why: "The recipient may still be at work on its last messages, and the deletion may yet be called off; a box cleared early loses mail that was promised, in silence.",
    steps: &[
        "append, tombstone, let two appends be refused: the earlier messages are delivered in order",
        "the same where the appends are refused under a lease that then expires",
        "the same after a reap, and (durable) after a reopening and a reap",
        "claim a tombstoned box and ack up to its first message: the rest is delivered in order",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "refusal-clears-the-box",
            fault: "clears an unleased box when it refuses an append to its tombstoned recipient",
            make: subject::<RefusalClearsTheBox>,
        },
        Mutant {
            name: "refusal-drops-the-last",
            fault: "rolls back one message too many when it refuses an append to a tombstoned recipient",
            make: subject::<RefusalDropsTheLast>,
        },
        Mutant {
            name: "refusal-settles-the-lease",
            fault: "takes what is leased for done when it refuses an append to a tombstoned recipient",
            make: subject::<RefusalSettlesTheLease>,
        },
        Mutant {
            name: "tombstone-clears-the-box",
            fault: "clears the box when its recipient is tombstoned",
            make: subject::<TombstoneClearsTheBox>,
        },
        Mutant {
            name: "tombstone-hides-the-box",
            fault: "answers null to every claim on a tombstoned recipient's box",
            make: subject::<TombstoneHidesTheBox>,
        },
        Mutant {
            name: "reap-clears-tombstoned-boxes",
            fault: "clears the boxes of tombstoned recipients when it reaps",
            make: subject::<ReapClears>,
        },
        Mutant {
            name: "reopening-clears-tombstoned-boxes",
            fault: "clears the boxes of tombstoned recipients when the storage is opened again",
            make: subject::<ReopeningClears>,
        },
        Mutant {
            name: "tombstoned-partial-ack-takes-all",
            fault: "removes a whole delivery at a partial ack on a tombstoned recipient's box",
            make: subject::<PartialAckTakesAll>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (waiting, leased) = (at("alpha"), at("beta"));
    let in_waiting = t.append_many(&store, &waiting, "earlier", 3)?;
    let in_leased = t.append_many(&store, &leased, "earlier", 3)?;
    t.tombstone(&store, &waiting)?;
    attempt_twice(t, &store, &waiting)?;
    still_holds(t, &store, &waiting, &in_waiting)?;

    let ttl_ms = t.short_ttl_ms();
    let promised = "what was appended is claimable";
    let lease = t.claim_some_for(&store, &leased, "ann", ttl_ms, promised)?;
    t.tombstone(&store, &leased)?;
    attempt_twice(t, &store, &leased)?;
    t.wait_past(&lease)?;
    still_holds(t, &store, &leased, &in_leased)?;

    partly_acked(t, &store)?;
    for (handle, reopened) in [("delta", false), ("epsilon", true)] {
        if reopened && !t.caps().durable {
            continue;
        }
        let (of, earlier) = tombstoned(t, &store, handle)?;
        let store = if reopened { t.reopen(&store)? } else { store.clone() };
        t.reap(&store)?;
        still_holds(t, &store, &of, &earlier)?;
    }
    Ok(())
}

/// A box with three messages, tombstoned, with two appends refused for it.
fn tombstoned(
    t: &mut Trial<'_>,
    store: &StoreRef,
    handle: &str,
) -> Result<(Address, Vec<Sent>), Stop> {
    let of = at(handle);
    let earlier = t.append_many(store, &of, "earlier", 3)?;
    t.tombstone(store, &of)?;
    attempt_twice(t, store, &of)?;
    Ok((of, earlier))
}

/// An ack up to the first message leaves the others.
fn partly_acked(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let (of, earlier) = tombstoned(t, store, "gamma")?;
    let Some(lease) = t.claim(store, &of, "ann")? else {
        return broken(
            "what was receipted before the tombstone stays claimable",
            format!("the claim by ann on {of} answered null"),
        );
    };
    // Whether the holder may ack is judged by `lease-undisturbed`.
    if t.try_ack(store, &of, "ann", &lease.id, earlier[0].seq)?.is_err() {
        return Ok(());
    }
    still_holds(t, store, &of, &earlier[1..])
}

/// What was there before is all there; what may have been added is judged by `adds-nothing`.
fn still_holds(t: &mut Trial<'_>, store: &StoreRef, of: &Address, earlier: &[Sent]) -> Verdict {
    let drained = delivered(t, store, of)?;
    let found: Vec<Sent> =
        drained.iter().filter(|m| earlier.iter().any(|e| e.seq == m.seq)).cloned().collect();
    if same_messages(&found, earlier) {
        return Ok(());
    }
    broken(
        "a tombstone and the appends refused for it take no message away",
        format!("{of} held {}, not {}", shown(&drained), shown(earlier)),
    )
}

altered!(RefusalClearsTheBox {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        on_refusal(&mut self.0, to, body, now, |model| {
            model.with_box(to, |b| {
                if b.live(time).is_none() {
                    b.messages.clear();
                }
            });
        })
    }
});

altered!(RefusalDropsTheLast {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        on_refusal(&mut self.0, to, body, now, |model| {
            model.with_box(to, |b| b.messages.pop());
        })
    }
});

altered!(RefusalSettlesTheLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        on_refusal(&mut self.0, to, body, now, |model| {
            model.with_box(to, |b| {
                if let Some(held) = b.live(time).cloned() {
                    b.messages.retain(|m| m.seq > held.delivered);
                }
            });
        })
    }
});

altered!(TombstoneClearsTheBox {
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        crate::mailbox::store::Tombstones::tombstone(&mut self.0, of, now)?;
        self.0.with_box(of, |b| b.messages.clear());
        Ok(())
    }
});

altered!(TombstoneHidesTheBox {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if is_dead(&self.0, from) {
            return Ok(None);
        }
        self.0.claim(from, ask, now)
    }
});

/// Clears the boxes of all tombstoned recipients.
fn clear_tombstoned(state: &mut State) {
    for of in &state.tombstones {
        if let Some(b) = state.boxes.get_mut(of) {
            b.messages.clear();
        }
    }
}

altered!(ReapClears {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        clear_tombstoned(&mut self.0.state());
        Ok(())
    }
});

altered!(ReopeningClears {
    fn reopened(state: &mut State) {
        clear_tombstoned(state);
    }
});

altered!(PartialAckTakesAll {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let whole = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.delivered));
        let up_to = whole.filter(|_| is_dead(&self.0, of)).unwrap_or(up_to);
        self.0.ack(of, owner, lease, up_to, now)
    }
});
