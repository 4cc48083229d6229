//! Drop empties a box, lease and all.

use crate::clause::{Clause, Mutant};
use crate::mailbox::model::{Model, State};
use crate::mailbox::moves::{at, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Message, Millis};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

use super::ack_removes::{Due, put_back, put_back_due};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "drop-empties",
    at: file!(),
    statement: "Drop removes a box's messages and its lease and says how many messages went; the next claim answers null, the next append is claimable at once.",
    why: "Drop is how a recipient starts over. What survives it is read as new; a lease that survives it locks the new mail away.",
    steps: &[
        "append m1, m2, m3; ann claims; drop: dropped is 3",
        "bob claims: null; drop again: dropped is 0",
        "append m4; bob's claim gets exactly m4 at once",
        "append m5, drop without any lease: dropped is what was left",
        "append to beta; ann claims; append late; drop; append next: it is claimable at once, and alone",
        "let the lifetime of ann's lease pass; bob claims: null; reap; bob claims: null; (durable) close and attach; bob claims: null",
        "append last: it is claimable at once, and alone",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "drop-keeps-the-lease",
            fault: "leaves the lease on a dropped box",
            make: subject::<KeepsTheLease>,
        },
        Mutant {
            name: "drop-spares-leased-messages",
            fault: "leaves what is under a lease in the box",
            make: subject::<SparesLeased>,
        },
        Mutant {
            name: "drop-counts-boxes",
            fault: "answers 1 for every drop",
            make: subject::<CountsBoxes>,
        },
        Mutant {
            name: "drop-keeps-the-lease-if-mail-came",
            fault: "leaves the lease on a dropped box where a message had arrived under it",
            make: subject::<KeepsTheLeaseIfMailCame>,
        },
        Mutant {
            name: "dropped-comes-back-at-expiry",
            fault: "puts dropped messages back when the lease they were under would have expired",
            make: subject::<BackAtExpiry>,
        },
        Mutant {
            name: "dropped-comes-back-by-reap",
            fault: "puts dropped messages back at the next reap",
            make: subject::<BackByReap>,
        },
        Mutant {
            name: "dropped-comes-back-on-reopen",
            fault: "forgets drops when the storage is closed",
            make: subject::<BackOnReopen>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    empties(t, &store)?;
    stays_empty(t, store)
}

fn empties(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let alpha = at("alpha");
    t.append_many(store, &alpha, "m", 3)?;
    t.claim_some(store, &alpha, "ann", "waiting messages are claimable")?;
    drops(t, store, &alpha, 3)?;
    holds_nothing(t, store, &alpha, "a dropped box is empty: the next claim answers null")?;
    drops(t, store, &alpha, 0)?;
    let sent = t.append_many(store, &alpha, "later", 1)?;
    let promised = "what is appended after a drop is claimable at once, and alone";
    t.holds_exactly(store, &alpha, &sent, promised)?;
    t.append_many(store, &alpha, "again", 2)?;
    drops(t, store, &alpha, 2)
}

fn stays_empty(t: &mut Trial<'_>, mut store: StoreRef) -> Verdict {
    let beta = at("beta");
    t.append_many(&store, &beta, "m", 3)?;
    let ttl_ms = t.short_ttl_ms();
    let lease = t.claim_some_for(&store, &beta, "ann", ttl_ms, "waiting messages are claimable")?;
    t.append(&store, &beta, "late")?;
    drops(t, &store, &beta, 4)?;
    let promised = "what is appended after a drop is claimable at once, and alone";
    let next = t.append_many(&store, &beta, "next", 1)?;
    t.holds_exactly(&store, &beta, &next, promised)?;
    t.wait_past(&lease)?;
    let gone = "what was dropped does not come back when its lease would have expired";
    holds_nothing(t, &store, &beta, gone)?;
    t.reap(&store)?;
    holds_nothing(t, &store, &beta, "what was dropped does not come back by reap")?;
    if t.caps().durable {
        store = t.reopen(&store)?;
        let gone = "what was dropped does not come back by close and attach";
        holds_nothing(t, &store, &beta, gone)?;
    }
    let last = t.append_many(&store, &beta, "last", 1)?;
    t.holds_exactly(&store, &beta, &last, promised)
}

fn holds_nothing(t: &mut Trial<'_>, store: &StoreRef, of: &Address, promised: &str) -> Verdict {
    match t.claim(store, of, "bob")? {
        None => Ok(()),
        Some(lease) => {
            broken(promised, format!("bob's claim delivered {}", shown(&lease.messages)))
        }
    }
}

fn drops(t: &mut Trial<'_>, store: &StoreRef, of: &Address, count: u32) -> Verdict {
    let dropped = t.drop_box(store, of)?;
    if dropped == f64::from(count) {
        return Ok(());
    }
    broken(format!("dropped says how many messages went: {count}"), format!("dropped: {dropped}"))
}

altered!(KeepsTheLease {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let lease = self.0.with_box(of, |b| b.lease.clone());
        let dropped = self.0.drop_box(of, now)?;
        self.0.with_box(of, |b| b.lease = lease);
        Ok(dropped)
    }
});

altered!(SparesLeased {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let spared = self.0.with_box(of, |b| {
            let delivered = b.lease.as_ref().map(|held| held.delivered);
            b.messages.iter().filter(|m| Some(m.seq) <= delivered).cloned().collect::<Vec<_>>()
        });
        let dropped = self.0.drop_box(of, now)?;
        self.0.with_box(of, |b| b.messages = spared);
        Ok(dropped)
    }
});

altered!(CountsBoxes {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.0.drop_box(of, now)?;
        Ok(1)
    }
});

altered!(KeepsTheLeaseIfMailCame {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let lease = self.0.with_box(of, |b| {
            let last = b.messages.last().map(|m| m.seq);
            b.lease.clone().filter(|held| Some(held.delivered) < last)
        });
        let dropped = self.0.drop_box(of, now)?;
        self.0.with_box(of, |b| b.lease = lease);
        Ok(dropped)
    }
});

altered!(BackAtExpiry remembers Vec<Due> {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let due: Vec<Due> = self.0.with_box(of, |b| match &b.lease {
            Some(held) => b.messages.iter().map(|m| (held.expiry, of.clone(), m.clone())).collect(),
            None => Vec::new(),
        });
        self.1.extend(due);
        self.0.drop_box(of, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        put_back_due(&mut self.0, &mut self.1, now);
        self.0.claim(from, ask, now)
    }
});

/// Drops through the model and keeps what went.
fn drop_keeping(model: &mut Model, of: &Address, now: Millis) -> Reply<u64> {
    let gone: Vec<Message> = model.with_box(of, |b| b.messages.clone());
    let dropped = model.drop_box(of, now)?;
    model.state().scrap.extend(gone.into_iter().map(|message| (of.clone(), message)));
    Ok(dropped)
}

altered!(BackByReap {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        drop_keeping(&mut self.0, of, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        put_back(&mut self.0.state());
        self.0.reap(now)
    }
});

altered!(BackOnReopen {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        drop_keeping(&mut self.0, of, now)
    }
    fn reopened(state: &mut State) {
        put_back(state);
    }
});
