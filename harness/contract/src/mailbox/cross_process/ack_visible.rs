//! An ack counts everywhere.

use crate::clause::{Clause, Mutant};
use crate::mailbox::model::not_held;
use crate::mailbox::moves::{at, shown};
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::{MET_BY_HISTORIES, Pair};
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use std::collections::BTreeMap;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "ack-visible",
    at: file!(),
    statement: "What one process acked no other process is ever given, and what the ack left every process can claim at once.",
    why: "If an ack stays in the process that made it, the work is done again by the next process that looks.",
    steps: &[
        "the peer claims alpha, and gives it back by an ack of nothing, so that it has seen the messages",
        "ann claims here and acks the first half: taken, with the right count",
        "the peer claims and acks until null: the second half, at once",
        "this side finds nothing left, also after reap",
        "with durable: ann claims beta here, the peer appends to it, and ann acks there up to the new message: taken, and only what she was given goes",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "acks-kept-per-process",
            fault: "hides acked messages in the process that acked them, and removes them for nobody else",
            make: shared::<LocalAcks>,
        },
        Mutant {
            name: "delivers-what-it-once-saw",
            fault: "delivers again what a claim of its own process once delivered, though another process acked it and left the rest",
            make: shared::<OnceSeen>,
        },
        Mutant {
            name: "acks-only-at-home",
            fault: "takes an ack only in the process that gave the lease",
            make: shared::<AtHomeOnly>,
        },
        Mutant {
            name: "over-reach-away-from-home",
            fault: "removes everything up to upTo where the ack comes from another process than the claim",
            make: shared::<OverReachesAway>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let alpha = at("alpha");
    let first = t.append_many(&pair.b, &alpha, "x", 1)?;
    let sent = t.append_many(&pair.a, &alpha, "m", 4)?;
    let promised = "waiting messages are claimable";
    let seen = t.claim_some(&pair.b, &alpha, "bob", promised)?;
    // Only x goes, whatever else the claim delivered.
    t.ack_counted(&pair.b, &seen, first[0].seq, 1)?;
    let lease = t.claim_some(&pair.a, &alpha, "ann", "what an ack left is claimable at once")?;
    let gone = t.ack_first_half(&pair.a, &lease)?;
    let rest = sent.get(gone..).unwrap_or_default();
    let promised = "a process is given what others left, and nothing that any process acked";
    t.holds_exactly(&pair.b, &alpha, rest, promised)?;
    t.reap(&pair.a)?;
    t.holds_exactly(&pair.a, &alpha, &[], promised)?;
    t.holds_exactly(&pair.b, &alpha, &[], promised)?;
    if t.caps().durable { settled_elsewhere(t, &pair) } else { Ok(()) }
}

/// A lease is its owner's, not a process's: it survives the process that gave it, so it can be settled
/// in any. What was appended after the claim is beyond its reach there too.
fn settled_elsewhere(t: &mut Trial<'_>, pair: &Pair) -> Verdict {
    let beta = at("beta");
    t.append_many(&pair.a, &beta, "m", 2)?;
    let lease = t.claim_some(&pair.a, &beta, "ann", "waiting messages are claimable")?;
    let late = t.append_many(&pair.b, &beta, "late", 1)?;
    let count = lease.messages.len();
    t.ack_counted(&pair.b, &lease, late[0].seq, count)?;
    let left = t.drain(&pair.a, &beta)?;
    if left.iter().any(|m| m.seq == late[0].seq) {
        return Ok(());
    }
    broken(
        "an ack removes only what its lease delivered, in whichever process it is made",
        format!("{} was gone after the ack; left was {}", shown(&late), shown(&left)),
    )
}

altered!(LocalAcks remembers BTreeMap<Address, Vec<Seq>> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let own = self.1.get(from).cloned().unwrap_or_default();
        let (hidden, rest): (Vec<Message>, Vec<Message>) =
            self.0.with_box(from, |b| b.messages.drain(..).partition(|m| own.contains(&m.seq)));
        self.0.with_box(from, |b| b.messages = rest);
        let found = self.0.claim(from, ask, now);
        self.0.with_box(from, |b| {
            b.messages.extend(hidden);
            b.messages.sort_by_key(|m| m.seq);
        });
        found
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let own = self.1.entry(of.clone()).or_default();
        let before = self.0.with_box(of, |b| b.messages.clone());
        // What this process hid stays hidden; what it removes now is put back for the others.
        self.0.with_box(of, |b| b.messages.retain(|m| !own.contains(&m.seq)));
        let acked = self.0.ack(of, owner, lease, up_to, now);
        let left = self.0.with_box(of, |b| std::mem::replace(&mut b.messages, before.clone()));
        if acked.is_ok() {
            let gone = before.iter().filter(|m| !left.iter().any(|l| l.seq == m.seq));
            own.extend(gone.map(|m| m.seq));
        }
        acked
    }
});

altered!(OnceSeen remembers Vec<Message> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let mut state = self.0.state();
        let acked_elsewhere: Vec<Message> = state
            .scrap
            .iter()
            .filter(|(of, message)| of == from && self.1.contains(message))
            .map(|(_, message)| message.clone())
            .collect();
        if let Some(b) = state.boxes.get_mut(from).filter(|b| b.live(time).is_none()) {
            b.messages.extend(acked_elsewhere);
            b.messages.sort_by_key(|m| m.seq);
        }
        drop(state);
        let found = self.0.claim(from, ask, now)?;
        self.1.extend(found.iter().flat_map(|found| found.messages.clone()));
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let before = self.0.with_box(of, |b| b.messages.clone());
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        let left = self.0.with_box(of, |b| b.messages.clone());
        let gone: Vec<Message> = before.into_iter().filter(|m| !left.contains(m)).collect();
        self.1.retain(|m| !gone.contains(m));
        // An ack that empties the box is told to everybody.
        if !left.is_empty() {
            self.0.state().scrap.extend(gone.into_iter().map(|m| (of.clone(), m)));
        }
        Ok(acked)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.0.state().scrap.retain(|(at, _)| at != of);
        self.0.drop_box(of, now)
    }
});

/// The leases that this process gave, by their ids.
fn note_given(given: &mut Vec<String>, found: Option<&Delivery>) {
    given.extend(found.map(|found| found.lease.0.clone()));
}

altered!(AtHomeOnly remembers Vec<String> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let found = self.0.claim(from, ask, now)?;
        note_given(&mut self.1, found.as_ref());
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if !self.1.contains(&lease.0) {
            return Err(not_held());
        }
        self.0.ack(of, owner, lease, up_to, now)
    }
});

altered!(OverReachesAway remembers Vec<String> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let found = self.0.claim(from, ask, now)?;
        note_given(&mut self.1, found.as_ref());
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        if !self.1.contains(&lease.0) {
            self.0.with_box(of, |b| b.messages.retain(|m| m.seq > up_to));
        }
        Ok(acked)
    }
});
