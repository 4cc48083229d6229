//! What was acked stays away.

use crate::clause::{Clause, Mutant};
use crate::mailbox::model::State;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Message, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

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
            name: "acked-counts-one-more",
            fault: "answers one more than it removed",
            make: subject::<CountsOneMore>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", 3)?;
    let ttl_ms = t.short_ttl_ms();
    let mut gone = 0;
    let mut last = None;
    while gone < sent.len() {
        let lease =
            t.claim_some_for(&store, &alpha, "ann", ttl_ms, "what was not acked is claimable")?;
        t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())?;
        gone += lease.messages.len();
        last = Some(lease);
    }
    stays_away(t, &store, "after its ack")?;
    if let Some(lease) = last {
        t.wait_past(&lease)?;
    }
    stays_away(t, &store, "after its lease would have expired")?;
    t.reap(&store)?;
    stays_away(t, &store, "after reap")?;
    if t.caps().durable {
        store = t.reopen(&store)?;
        stays_away(t, &store, "after close and attach")?;
    }
    Ok(())
}

fn stays_away(t: &mut Trial<'_>, store: &StoreRef, when: &str) -> Verdict {
    match t.claim(store, &at("alpha"), "bob")? {
        None => Ok(()),
        Some(lease) => broken(
            format!("what was acked is not delivered again {when}"),
            format!("bob's claim delivered {}", crate::mailbox::moves::shown(&lease.messages)),
        ),
    }
}

fn remembering(
    model: &mut crate::mailbox::model::Model,
    of: &Address,
    ack: impl FnOnce(&mut crate::mailbox::model::Model) -> Reply<u64>,
) -> Reply<(u64, Vec<Message>)> {
    let before = model.with_box(of, |b| b.messages.clone());
    let acked = ack(model)?;
    let left = model.with_box(of, |b| b.messages.clone());
    Ok((acked, before.into_iter().filter(|m| !left.contains(m)).collect()))
}

fn put_back(state: &mut State) {
    for (of, message) in std::mem::take(&mut state.scrap) {
        state.boxes.entry(of).or_default().messages.push(message);
    }
}

altered!(BackAtExpiry remembers Vec<(Millis, Address, Message)> {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let expiry = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.expiry));
        let (acked, gone) = remembering(&mut self.0, of, |m| m.ack(of, owner, lease, up_to, now))?;
        let expiry = expiry.unwrap_or(now);
        self.1.extend(gone.into_iter().map(|message| (expiry, of.clone(), message)));
        Ok(acked)
    }
    fn claim(
        &mut self,
        from: &Address,
        ask: &crate::mailbox::store::ClaimAsk,
        now: Millis,
    ) -> Reply<Option<crate::mailbox::store::Delivery>> {
        let time = self.0.time(now);
        let (due, later) = std::mem::take(&mut self.1).into_iter().partition(|(expiry, _, _)| time >= *expiry);
        self.1 = later;
        let due: Vec<(Millis, Address, Message)> = due;
        for (_, of, message) in due {
            self.0.with_box(&of, |b| b.messages.push(message));
        }
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
