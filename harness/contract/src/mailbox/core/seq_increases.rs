//! Receipts are whole numbers in range and only ever grow.

use crate::clause::{Clause, Mutant};
use crate::json::{Json, excerpt};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Message, Millis, SEQ_MAX, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// How many messages each of the two boxes is sent.
const APPENDS_PER_BOX: usize = 48;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "seq-increases",
    at: file!(),
    statement: "Receipts are integers in 1..2^53-1 that strictly increase per recipient in append order; gaps are fine.",
    why: "Consumers ack by number. A number that repeats or falls makes one ack stand for two messages, and one of them is lost.",
    steps: &[
        "append 48 messages each to two boxes, in turns",
        "each receipt is an integer in 1..2^53-1",
        "each receipt is above the one before it for the same box",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "seq-stalls",
            fault: "mints the same number again from the fortieth append to a box on",
            make: subject::<Stalls>,
        },
        Mutant { name: "seq-from-zero", fault: "starts to count at 0", make: subject::<FromZero> },
        Mutant {
            name: "seq-leaves-the-range",
            fault: "jumps beyond 2^53-1 at the fortieth append to a box",
            make: subject::<LeavesTheRange>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let boxes = [at("alpha"), at("beta")];
    let mut last: [Option<u64>; 2] = [None, None];
    for i in 1..=APPENDS_PER_BOX {
        for (to, last) in boxes.iter().zip(&mut last) {
            let receipt = t.append_raw(&store, to, &Json::from(format!("m{i}")))?;
            let Some(seq) = in_range(&receipt) else {
                return broken(
                    "a receipt is an integer in 1..2^53-1",
                    format!("append {i} to {to} was answered seq: {}", excerpt(&receipt)),
                );
            };
            if let Some(before) = last.filter(|before| seq <= *before) {
                return broken(
                    "each receipt is above the one before it for the same recipient",
                    format!("append {i} to {to} was answered {seq} after {before}"),
                );
            }
            *last = Some(seq);
        }
    }
    Ok(())
}

fn in_range(receipt: &Json) -> Option<u64> {
    let whole = receipt.as_u64().or_else(|| {
        let number = receipt.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole and in range"
        )]
        (number.fract() == 0.0 && (1.0..1e16).contains(&number)).then_some(number as u64)
    })?;
    (1..=SEQ_MAX).contains(&whole).then_some(whole)
}

altered!(Stalls {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.0.with_box(to, |b| b.last_seq = b.last_seq.min(39));
        Ok(seq)
    }
});

altered!(FromZero {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = Seq(self.0.append(to, body, now)?.0 - 1);
        self.0.with_box(to, |b| {
            b.messages.pop();
            b.messages.push(Message { seq, body: body.clone() });
        });
        Ok(seq)
    }
});

altered!(LeavesTheRange {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.with_box(to, |b| {
            if b.last_seq == 39 {
                b.last_seq = SEQ_MAX;
            }
        });
        self.0.append(to, body, now)
    }
});
