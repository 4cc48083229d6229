//! Messages come out in the order in which they went in.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::{Sent, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{Trial, Verdict};

/// How many messages are sent.
const MESSAGES: usize = 25;
/// What the mutants take for "deep".
const DEEP: usize = 20;
/// How many equal messages are sent to a box of their own.
const EQUAL_MESSAGES: usize = 3;
/// How many messages are sent to the deep box: more than a page, a batch or a ring of the usual sizes.
const DEEP_MESSAGES: usize = 300;
/// How long the longest body is that no store may refuse: 1 KiB as JSON text, quotes included.
const FULL_BODY_CHARS: usize = 1022;
/// How many messages the mutants keep that forget or refuse more.
const KEPT: usize = 100;
/// The longest body of the mutant that refuses longer ones, in characters.
const SHORT_BODY_CHARS: usize = 1000;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "fifo",
    at: file!(),
    statement: "Messages are delivered in append order, each exactly once, under the seq of its receipt.",
    why: "An agent that reads \"cancel\" before \"start\", or never reads one of them, does the wrong thing with a straight face.",
    steps: &[
        "append 25 messages to one box",
        "claim and ack until null; however many a claim delivers at a time",
        "the bodies come in append order, and each seq equals its receipt",
        "the same with three equal bodies: three messages",
        "the same with a box of 300 messages, whose first body is an ASCII string of 1 KiB (1,022 characters)",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "swaps-when-deep",
            fault: "exchanges two neighbouring bodies when more than 20 messages wait",
            make: subject::<SwapsWhenDeep>,
        },
        Mutant {
            name: "newest-first-when-deep",
            fault: "delivers the newest message first when more than 20 wait",
            make: subject::<NewestFirst>,
        },
        Mutant {
            name: "keeps-only-the-last-twenty",
            fault: "throws the oldest message away when a box holds more than 20",
            make: subject::<RingBuffer>,
        },
        Mutant {
            name: "dedupes-equal-bodies",
            fault: "keeps a message only once while an equal one waits",
            make: subject::<Dedupes>,
        },
        Mutant {
            name: "keeps-only-the-last-hundred",
            fault: "throws the oldest message away when a box holds more than 100",
            make: subject::<LongRing>,
        },
        Mutant {
            name: "full-at-a-hundred",
            fault: "refuses an append to a box that holds 100 messages",
            make: subject::<Full>,
        },
        Mutant {
            name: "refuses-bodies-over-1000",
            fault: "refuses a body of more than 1,000 characters",
            make: subject::<RefusesLongBodies>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", MESSAGES)?;
    let promised = "messages come out once each, in append order, under their receipts' seqs";
    t.holds_exactly(&store, &alpha, &sent, promised)?;

    let equal = at("equal");
    let mut sent = Vec::new();
    for _ in 0..EQUAL_MESSAGES {
        sent.push(Sent { seq: t.append(&store, &equal, "same")?, body: Json::from("same") });
    }
    t.holds_exactly(&store, &equal, &sent, "messages with equal bodies are separate messages")?;

    let deep = at("deep");
    let full = Json::from(full_body());
    let mut sent = vec![Sent { seq: t.append(&store, &deep, full.clone())?, body: full }];
    sent.extend(t.append_many(&store, &deep, "m", DEEP_MESSAGES - 1)?);
    t.holds_exactly(&store, &deep, &sent, "a deep box keeps every message, in append order")
}

/// An ASCII text whose places differ from each other.
fn full_body() -> String {
    (0..)
        .flat_map(|i: u32| format!("{i}.").into_bytes())
        .map(char::from)
        .take(FULL_BODY_CHARS)
        .collect()
}

altered!(SwapsWhenDeep {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let mut claimed = self.0.claim(from, ask, now)?;
        if let Some(delivery) = claimed.as_mut().filter(|delivery| delivery.messages.len() > DEEP) {
            let body = delivery.messages[10].body.clone();
            delivery.messages[10].body = std::mem::replace(&mut delivery.messages[11].body, body);
        }
        Ok(claimed)
    }
});

altered!(NewestFirst {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let mut claimed = self.0.claim(from, ask, now)?;
        if let Some(delivery) = claimed.as_mut().filter(|delivery| delivery.messages.len() > DEEP) {
            delivery.messages.rotate_right(1);
        }
        Ok(claimed)
    }
});

altered!(RingBuffer {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| {
            if b.messages.len() > DEEP {
                b.messages.remove(0);
            }
        });
        Ok(seq)
    }
});

altered!(Dedupes {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| {
            if b.messages.iter().filter(|m| m.body == *body).count() > 1 {
                b.messages.pop();
            }
        });
        Ok(seq)
    }
});

altered!(LongRing {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| {
            if b.messages.len() > KEPT {
                b.messages.remove(0);
            }
        });
        Ok(seq)
    }
});

altered!(Full {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if self.0.with_box(to, |b| b.messages.len() >= KEPT) {
            return Err(StoreError::refused("too_large", "the box is full"));
        }
        self.0.append(to, body, now)
    }
});

altered!(RefusesLongBodies {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if body.as_str().is_some_and(|text| text.len() > SHORT_BODY_CHARS) {
            return Err(StoreError::refused("too_large", "the body is too long"));
        }
        self.0.append(to, body, now)
    }
});
