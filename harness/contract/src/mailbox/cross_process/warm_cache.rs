//! What a process read before does not keep it from seeing what others wrote since.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::BoxState;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::MET_BY_HISTORIES;
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use std::collections::BTreeMap;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "warm-cache",
    at: file!(),
    statement: "A process that has read a box before sees what another one appended since, and mints above it.",
    why: "A lock with a stale cache behind it passes every test of one process, and loses mail as soon as a second one starts.",
    steps: &[
        "the peer reads alpha: a claim, null; it appends m1 and drains it",
        "this side appends m2 and m3",
        "the peer appends m4: its number is above those of m2 and m3",
        "the peer claims and acks until null: m2, m3, m4; the other way round for a box that this side had read",
        "with peek: the peer, which peeked at an empty box before, sees m5 that this side appended",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "box-cached-at-first-claim",
            fault: "claims from what it read of the box at its first claim, with its own appends added",
            make: shared::<CachedBox>,
        },
        Mutant {
            name: "empty-cached-for-good",
            fault: "goes on to say that a box is empty once it has found it so, until it appends itself",
            make: shared::<CachedEmpty>,
        },
        Mutant {
            name: "peek-from-a-cache",
            fault: "peeks at what it read of the box when it first looked",
            make: shared::<CachedPeek>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let boxes = [(at("alpha"), &pair.b, &pair.a), (at("beta"), &pair.a, &pair.b)];
    for (of, reader, other) in &boxes {
        if let Some(lease) = t.claim(reader, of, "ann")? {
            return broken(
                "a claim on an empty box answers null",
                format!("the lease {:?} came", lease.id),
            );
        }
        let first = t.append(reader, of, "m1")?;
        t.holds_exactly(reader, of, &[sent(first, "m1")], "a box holds what was appended")?;
        let mut expected = t.append_many(other, of, "n", 2)?;
        let last = t.append(reader, of, "m4")?;
        if expected.iter().any(|message| message.seq >= last) {
            return broken(
                "a process mints above what another one minted before",
                format!("it minted {last} after {:?}", expected.iter().map(|m| m.seq).max()),
            );
        }
        expected.push(sent(last, "m4"));
        let promised = "a process sees what another one appended after it had read the box";
        t.holds_exactly(reader, of, &expected, promised)?;
        // Found empty again, then written by the other one alone.
        let more = t.append_many(other, of, "p", 2)?;
        t.holds_exactly(reader, of, &more, promised)?;
    }
    if t.caps().peek {
        peeks(t, &pair)?;
    }
    Ok(())
}

fn sent(seq: u64, body: &str) -> crate::mailbox::delivery::Sent {
    crate::mailbox::delivery::Sent { seq, body: Json::from(body) }
}

fn peeks(t: &mut Trial<'_>, pair: &crate::mailbox::pair::Pair) -> Verdict {
    let gamma = at("gamma");
    t.peek(&pair.b, &gamma)?;
    let appended = t.append_many(&pair.a, &gamma, "q", 2)?;
    let seen = t.peek(&pair.b, &gamma)?;
    if crate::mailbox::delivery::same_messages(&seen, &appended) {
        return Ok(());
    }
    let shown = crate::mailbox::delivery::shown;
    broken(
        "peek shows everything not yet acked, whichever process appended it",
        format!("{} was there, and peek showed {}", shown(&appended), shown(&seen)),
    )
}

altered!(CachedBox remembers BTreeMap<Address, BoxState> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        if let Some(cached) = self.1.get_mut(to) {
            let message = self.0.with_box(to, |b| b.messages.last().cloned());
            cached.messages.extend(message);
        }
        Ok(seq)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let cached = self.1.entry(from.clone()).or_insert_with(|| self.0.with_box(from, |b| b.clone()));
        let known: Vec<Seq> = cached.messages.iter().map(|m| m.seq).collect();
        let hidden = self.0.with_box(from, |b| {
            let (seen, hidden) = b.messages.drain(..).partition(|m| known.contains(&m.seq));
            b.messages = seen;
            hidden
        });
        let found = self.0.claim(from, ask, now);
        self.0.with_box(from, |b| {
            b.messages.extend::<Vec<_>>(hidden);
            b.messages.sort_by_key(|m| m.seq);
        });
        found
    }
});

altered!(CachedEmpty remembers BTreeMap<Address, ()> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.1.remove(to);
        self.0.append(to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if self.1.contains_key(from) && self.0.with_box(from, |b| b.lease.is_none()) {
            return Ok(None);
        }
        let found = self.0.claim(from, ask, now)?;
        if self.0.with_box(from, |b| b.messages.is_empty()) {
            self.1.insert(from.clone(), ());
        }
        Ok(found)
    }
});

altered!(CachedPeek remembers BTreeMap<Address, Vec<crate::mailbox::store::Message>> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.1.clear();
        self.0.append(to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.1.clear();
        self.0.claim(from, ask, now)
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &crate::mailbox::store::LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.1.clear();
        self.0.ack(of, owner, lease, up_to, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.1.clear();
        self.0.drop_box(of, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<crate::mailbox::store::Message>> {
        if !self.1.contains_key(of) {
            let seen = self.0.peek(of, now)?;
            self.1.insert(of.clone(), seen);
        }
        Ok(self.1.get(of).cloned().unwrap_or_default())
    }
});
