//! A drop counts everywhere, and nobody's cache undoes it.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::MET_BY_HISTORIES;
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use std::collections::BTreeMap;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "drop-across",
    at: file!(),
    statement: "After one process drops a box no other process delivers anything of it, its old leases ack nothing, and the next number is above all before.",
    why: "A recipient was deleted on purpose. Another process that writes its copy back brings deleted mail to life again.",
    steps: &[
        "append to alpha; bob claims it in the peer, so that the peer knows the messages",
        "this process drops alpha: dropped is how many there were",
        "the peer's claim: null; bob's ack with his lease from before removes nothing",
        "the peer appends: its number is above all before, and it is claimable at once here, alone",
        "the same the other way round, without a lease",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "drop-undone-by-the-others-cache",
            fault: "writes back, at its next append, the messages that it had read before another process dropped the box",
            make: shared::<WritesBack>,
        },
        Mutant {
            name: "dropped-delivered-from-memory",
            fault: "delivers what it remembers of a box though another process dropped it",
            make: shared::<FromMemory>,
        },
        Mutant {
            name: "drop-resets-the-number-elsewhere",
            fault: "starts a dropped box at 1 again, except in the process that dropped it",
            make: shared::<StartsOver>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let alpha = at("alpha");
    let sent = t.append_many(&pair.a, &alpha, "m", 3)?;
    let lease = t.claim_some(&pair.b, &alpha, "bob", "waiting messages are claimable")?;
    let dropped = t.drop_box(&pair.a, &alpha)?;
    counted(dropped, 3)?;
    t.holds_exactly(&pair.b, &alpha, &[], "a dropped box is empty in every process")?;
    let last = sent.iter().map(|sent| sent.seq).max().unwrap_or(0);
    let seq = t.append(&pair.b, &alpha, "after")?;
    above(seq, last)?;
    let why = "the lease is from before the drop";
    t.ack_refused(&pair.b, &alpha, "bob", &lease.id, seq, why)?;
    let after = crate::mailbox::delivery::Sent { seq, body: Json::from("after") };
    t.holds_exactly(&pair.a, &alpha, &[after], "after a drop a box holds what was appended since")?;
    let beta = at("beta");
    let sent = t.append_many(&pair.b, &beta, "n", 2)?;
    let lease = t.claim_some(&pair.a, &beta, "ann", "waiting messages are claimable")?;
    t.ack_first_half(&pair.a, &lease)?;
    counted(t.drop_box(&pair.b, &beta)?, 1)?;
    let last = sent.iter().map(|sent| sent.seq).max().unwrap_or(0);
    let seq = t.append(&pair.a, &beta, "after")?;
    above(seq, last)?;
    let after = crate::mailbox::delivery::Sent { seq, body: Json::from("after") };
    t.holds_exactly(&pair.b, &beta, &[after], "after a drop a box holds what was appended since")
}

fn counted(dropped: f64, count: u32) -> Verdict {
    if dropped == f64::from(count) {
        return Ok(());
    }
    broken(
        format!("dropped says how many messages this drop removed: {count}"),
        format!("drop answered dropped: {dropped}"),
    )
}

fn above(seq: u64, last: u64) -> Verdict {
    if seq > last {
        return Ok(());
    }
    broken(
        "after a drop the next number is above all before, in every process",
        format!("append answered {seq} after {last}"),
    )
}

altered!(WritesBack remembers BTreeMap<Address, Vec<Message>> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let found = self.0.claim(from, ask, now)?;
        let copy = self.0.with_box(from, |b| b.messages.clone());
        if found.is_some() {
            self.1.insert(from.clone(), copy);
        }
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        self.1.remove(of);
        self.0.ack(of, owner, lease, up_to, now)
    }
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        let copy = self.1.remove(to).unwrap_or_default();
        let time = self.0.time(now);
        self.0.with_box(to, |b| {
            if b.live(time).is_none() {
                b.messages.extend(copy);
                b.messages.sort_by_key(|m| m.seq);
                b.messages.dedup_by_key(|m| m.seq);
            }
        });
        Ok(seq)
    }
});

altered!(FromMemory remembers BTreeMap<Address, Vec<Message>> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let is_empty = self.0.with_box(from, |b| b.messages.is_empty() && b.live(time).is_none());
        if is_empty && let Some(copy) = self.1.remove(from) {
            self.0.with_box(from, |b| b.messages = copy);
        }
        let found = self.0.claim(from, ask, now)?;
        if let Some(found) = &found {
            self.1.insert(from.clone(), found.messages.clone());
        }
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        self.1.clear();
        self.0.ack(of, owner, lease, up_to, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.1.clear();
        self.0.drop_box(of, now)
    }
});

altered!(StartsOver remembers BTreeMap<Address, u64> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if let Some(last) = self.1.get(to).copied() {
            self.0.with_box(to, |b| b.last_seq = b.last_seq.max(last));
        }
        self.0.append(to, body, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let last = self.0.with_box(of, |b| std::mem::take(&mut b.last_seq));
        self.1.insert(of.clone(), last);
        self.0.drop_box(of, now)
    }
});
