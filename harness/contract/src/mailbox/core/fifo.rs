//! Messages come out in the order in which they went in.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// How many messages are sent.
const MESSAGES: usize = 25;
/// More than any other clause leaves in one box: what the mutants take for "deep".
const DEEP: usize = 20;

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
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", MESSAGES)?;
    t.holds_exactly(
        &store,
        &alpha,
        &sent,
        "messages come out once each, in append order, under their receipts' seqs",
    )
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
