//! Two processes that append at once never mint one number twice.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::delivery::Sent;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::{Listed, MET_BY_HISTORIES, bodies};
use crate::mailbox::store::{Address, MailboxStore, Message, Millis, Seq};
use crate::race::Lane;
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use std::collections::BTreeMap;

/// How many messages each side appends.
const APPENDS: usize = 100;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "single-mint",
    at: file!(),
    statement: "Receipts of two processes that append to one box at full speed are unique, increasing on each side, and all of them are delivered.",
    why: "A number minted twice makes two messages one: the second overwrites the first, or one ack removes both. Every sender saw a receipt.",
    steps: &[
        "both processes append 100 messages each to alpha, at the same time",
        "receipts: no number twice, increasing on each side",
        "the peer claims and acks until null: every message of both, once, in the order of its number, with its own body",
        "one more append by each side gets a number above all before",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "seq-cached-per-process",
            fault: "reads the last number once per process and counts on from there by itself",
            make: shared::<CachedSeq>,
        },
        Mutant {
            name: "seq-read-then-written",
            fault: "reads the last number and writes the next one in two transactions",
            make: shared::<ReadThenWritten>,
        },
        Mutant {
            name: "box-read-then-written",
            fault: "reads the whole box, adds the message and writes the whole box back, without a lock between",
            make: shared::<WholeBox>,
        },
        Mutant {
            name: "number-now-message-later",
            fault: "takes the number in one transaction and stores the message in another, at the end of what is there by then",
            make: shared::<StoredLater>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let alpha = at("alpha");
    let mut lanes: Vec<(_, Box<dyn Lane>)> = Vec::new();
    for (store, word) in [(&pair.a, "a"), (&pair.b, "b")] {
        let calls = t.append_calls(store, &alpha, &bodies(word, APPENDS));
        lanes.push((store.side, Box::new(Listed::new(calls).0)));
    }
    let raced = t.race(lanes, None)?;
    let mut sent: Vec<Sent> = Vec::new();
    for store in [&pair.a, &pair.b] {
        let own = t.receipts(&raced, store.side)?;
        increasing(&own)?;
        sent.extend(own);
    }
    unique(&sent)?;
    t.accounts_for(
        &pair.b,
        &alpha,
        &sent,
        None,
        "every receipt of either process is delivered, once and in order",
    )?;
    let mut last = sent.iter().map(|sent| sent.seq).max().unwrap_or(0);
    for store in [&pair.a, &pair.b] {
        let seq = t.append(store, &alpha, "after")?;
        if seq <= last {
            return broken(
                "a number is above every number that any process minted before",
                format!("append answered {seq} after {last}"),
            );
        }
        last = seq;
    }
    Ok(())
}

fn increasing(receipts: &[Sent]) -> Verdict {
    match receipts.windows(2).find(|pair| pair[1].seq <= pair[0].seq) {
        None => Ok(()),
        Some(pair) => broken(
            "the receipts of one process increase",
            format!("{} was receipted after {}", pair[1].seq, pair[0].seq),
        ),
    }
}

fn unique(sent: &[Sent]) -> Verdict {
    let mut by_seq: BTreeMap<u64, &Json> = BTreeMap::new();
    for Sent { seq, body } in sent {
        if let Some(other) = by_seq.insert(*seq, body) {
            return broken(
                "no number is minted twice, by whichever process",
                format!("both {other} and {body} were receipted as {seq}"),
            );
        }
    }
    Ok(())
}

altered!(CachedSeq remembers BTreeMap<Address, u64> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.append(to, body, now)?;
        let stored = self.0.with_box(to, |b| b.last_seq);
        let seq = self.1.entry(to.clone()).and_modify(|seq| *seq += 1).or_insert(stored);
        let seq = Seq(*seq);
        self.0.with_box(to, |b| {
            if let Some(last) = b.messages.last_mut() {
                last.seq = seq;
            }
            b.messages.sort_by_key(|m| m.seq);
        });
        Ok(seq)
    }
});

altered!(ReadThenWritten {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let last = self.0.with_box(to, |b| b.last_seq);
        self.0.gap()?;
        self.0.append(to, body, now)?;
        Ok(self.0.with_box(to, |b| {
            let seq = Seq(last + 1);
            if let Some(message) = b.messages.last_mut() {
                message.seq = seq;
            }
            b.last_seq = b.last_seq.max(seq.0);
            seq
        }))
    }
});

altered!(WholeBox {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let before = self.0.with_box(to, |b| b.messages.clone());
        self.0.gap()?;
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| {
            b.messages = before;
            b.messages.push(Message { seq, body: body.clone() });
        });
        Ok(seq)
    }
});

altered!(StoredLater {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| b.messages.retain(|m| m.seq != seq));
        self.0.gap()?;
        self.0.with_box(to, |b| b.messages.push(Message { seq, body: body.clone() }));
        Ok(seq)
    }
});
