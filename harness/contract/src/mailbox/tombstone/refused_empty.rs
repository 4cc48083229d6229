//! An append to a tombstoned recipient is refused though its box is empty (axis: reason).

use super::{append_anyway, must_refuse};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "refused-empty",
    at: file!(),
    statement: "Reason: an append to a tombstoned recipient is refused while its box is empty, whether never written, acked empty or dropped.",
    why: "A box without rows is where a store finds no row to read the tombstone from; the receipt it gives then is for mail that the deletion sweeps away unseen.",
    steps: &[
        "tombstone a recipient nobody ever wrote to: an append is refused",
        "the same for a box that was drained by acks before",
        "the same for a box that was dropped before",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "accepts-when-never-written",
            fault: "takes an append to a tombstoned recipient whose box was never written",
            make: subject::<AcceptsWhenNeverWritten>,
        },
        Mutant {
            name: "accepts-when-emptied",
            fault: "takes an append to a tombstoned recipient whose box was emptied",
            make: subject::<AcceptsWhenEmptied>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (fresh, acked, dropped) = (at("alpha"), at("beta"), at("gamma"));
    t.append_many(&store, &acked, "acked", 2)?;
    t.drain(&store, &acked)?;
    t.append_many(&store, &dropped, "dropped", 2)?;
    t.drop_box(&store, &dropped)?;
    for (of, state) in [
        (&fresh, "though its box was never written"),
        (&acked, "though its box was acked empty"),
        (&dropped, "though its box was dropped empty"),
    ] {
        t.tombstone(&store, of)?;
        must_refuse(t, &store, of, state)?;
    }
    Ok(())
}

altered!(AcceptsWhenNeverWritten {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if self.0.with_box(to, |b| b.last_seq == 0) {
            return append_anyway(&mut self.0, to, body, now);
        }
        self.0.append(to, body, now)
    }
});

altered!(AcceptsWhenEmptied {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if self.0.with_box(to, |b| b.last_seq > 0 && b.messages.is_empty()) {
            return append_anyway(&mut self.0, to, body, now);
        }
        self.0.append(to, body, now)
    }
});
