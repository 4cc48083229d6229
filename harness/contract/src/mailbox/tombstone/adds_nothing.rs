//! An append that is refused for a tombstone adds nothing, now or later (axis: side effect).

use super::{attempt, delivered, on_refusal};
use crate::clause::{Clause, Mutant};
use crate::json::{Json, same};
use crate::mailbox::model::{Model, State};
use crate::mailbox::moves::{Sent, at, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Message, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "adds-nothing",
    at: file!(),
    statement: "Side effect: an append that is refused for a tombstone adds no message to the box, neither at once nor after a reap or a reopening.",
    why: "A sender that was told no sends elsewhere; a message that is delivered all the same is acted on twice.",
    steps: &[
        "tombstone a never-written box, one where messages wait, and one under a lease; append to each: refused",
        "each box delivers nothing beyond its earlier messages, peek (where declared) shows nothing beyond them",
        "the same after a reap and, for a durable store, after a reopening",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "ghost-delivery",
            fault: "refuses an append to a tombstoned recipient after it stored the message",
            make: subject::<GhostDelivery>,
        },
        Mutant {
            name: "ghost-under-lease",
            fault: "stores the message it refuses to a tombstoned recipient while a lease on the box lives",
            make: subject::<GhostUnderLease>,
        },
        Mutant {
            name: "ghost-in-an-empty-box",
            fault: "stores the message it refuses to a tombstoned recipient whose box is empty",
            make: subject::<GhostInAnEmptyBox>,
        },
        Mutant {
            name: "ghost-after-reap",
            fault: "keeps refused messages in a journal that reaping replays",
            make: subject::<GhostAfterReap>,
        },
        Mutant {
            name: "ghost-after-reopen",
            fault: "keeps refused messages in a journal that opening the storage again replays",
            make: subject::<GhostAfterReopen>,
        },
        Mutant {
            name: "ghost-in-peek",
            fault: "shows refused messages to a peek",
            make: subject::<GhostInPeek>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut store = t.open()?;
    let leased = at("gamma");
    let mut boxes = vec![(at("alpha"), Vec::new())];
    for of in [at("beta"), leased.clone()] {
        let earlier = t.append_many(&store, &of, "earlier", 2)?;
        boxes.push((of, earlier));
    }
    let lease = t.claim_some(&store, &leased, "ann", "what was appended is claimable")?;
    for (of, allowed) in &mut boxes {
        t.tombstone(&store, of)?;
        for word in ["too late", "too late again"] {
            // One that is taken was appended, and is judged by the clauses about refusal.
            allowed.extend(attempt(t, &store, of, word)?);
        }
    }
    if t.caps().peek {
        for (of, allowed) in &boxes {
            let found = t.peek(&store, of)?;
            nothing_beyond(of, &found, allowed, "peek showed")?;
        }
    }
    // Whether the lease outlived the refused appends is judged by `lease-undisturbed`.
    let _ = t.try_ack(&store, &leased, "ann", &lease.id, lease.last_seq())?;
    delivers_nothing_beyond(t, &store, &boxes)?;
    t.reap(&store)?;
    delivers_nothing_beyond(t, &store, &boxes)?;
    if t.caps().durable {
        store = t.reopen(&store)?;
        delivers_nothing_beyond(t, &store, &boxes)?;
    }
    Ok(())
}

fn delivers_nothing_beyond(
    t: &mut Trial<'_>,
    store: &StoreRef,
    boxes: &[(Address, Vec<Sent>)],
) -> Verdict {
    for (of, allowed) in boxes {
        let drained = delivered(t, store, of)?;
        nothing_beyond(of, &drained, allowed, "claims delivered")?;
    }
    Ok(())
}

fn nothing_beyond(of: &Address, found: &[Sent], allowed: &[Sent], how: &str) -> Verdict {
    let known = |m: &Sent| allowed.iter().any(|a| a.seq == m.seq && same(&a.body, &m.body));
    if found.iter().all(known) {
        return Ok(());
    }
    broken(
        format!("a refused append adds nothing: {of} holds at most {}", shown(allowed)),
        format!("{how} {}", shown(found)),
    )
}

fn store_ghost(model: &mut Model, to: &Address, body: &Json) {
    model.with_box(to, |b| {
        b.last_seq += 1;
        b.messages.push(Message { seq: Seq(b.last_seq), body: body.clone() });
    });
}

/// Puts the refused messages of the journal into their boxes.
fn replay(state: &mut State) {
    for (to, message) in std::mem::take(&mut state.scrap) {
        let b = state.boxes.entry(to).or_default();
        b.last_seq += 1;
        b.messages.push(Message { seq: Seq(b.last_seq), body: message.body });
    }
}

fn journal(model: &mut Model, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
    on_refusal(model, to, body, now, |model| {
        let message = Message { seq: Seq(1 << 40), body: body.clone() };
        model.state().scrap.push((to.clone(), message));
    })
}

altered!(GhostDelivery {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        on_refusal(&mut self.0, to, body, now, |model| store_ghost(model, to, body))
    }
});

altered!(GhostUnderLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        on_refusal(&mut self.0, to, body, now, |model| {
            if model.with_box(to, |b| b.live(time).is_some()) {
                store_ghost(model, to, body);
            }
        })
    }
});

altered!(GhostInAnEmptyBox {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        on_refusal(&mut self.0, to, body, now, |model| {
            if model.with_box(to, |b| b.messages.is_empty()) {
                store_ghost(model, to, body);
            }
        })
    }
});

altered!(GhostAfterReap {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        journal(&mut self.0, to, body, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        replay(&mut self.0.state());
        Ok(())
    }
});

altered!(GhostAfterReopen {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        journal(&mut self.0, to, body, now)
    }
    fn reopened(state: &mut State) {
        replay(state);
    }
});

altered!(GhostInPeek {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        journal(&mut self.0, to, body, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let mut found = self.0.peek(of, now)?;
        let state = self.0.state();
        found.extend(state.scrap.iter().filter(|(to, _)| to == of).map(|(_, m)| m.clone()));
        Ok(found)
    }
});
