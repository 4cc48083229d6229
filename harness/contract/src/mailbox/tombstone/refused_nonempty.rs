//! An append to a tombstoned recipient is refused though messages wait in its box (axis: reason).

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
    slug: "refused-nonempty",
    at: file!(),
    statement: "Reason: an append to a tombstoned recipient is refused while earlier messages wait in its box.",
    why: "A receipt is a promise; one given while a deletion is under way is for a message that nobody will ever read, and no other answer says so.",
    steps: &["append once, or several times, then tombstone the recipient", "an append is refused"],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "accepts-when-nonempty",
            fault: "takes an append to a tombstoned recipient in whose box messages wait unleased",
            make: subject::<AcceptsWhenNonempty>,
        },
        Mutant {
            name: "tombstone-ignored",
            fault: "takes every append, tombstone or not",
            make: subject::<TombstoneIgnored>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (one, many) = (at("alpha"), at("beta"));
    t.append_many(&store, &one, "earlier", 1)?;
    t.append_many(&store, &many, "earlier", 3)?;
    for of in [&one, &many] {
        t.tombstone(&store, of)?;
        must_refuse(t, &store, of, "though messages wait in its box")?;
    }
    Ok(())
}

altered!(AcceptsWhenNonempty {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        if self.0.with_box(to, |b| !b.messages.is_empty() && b.live(time).is_none()) {
            return append_anyway(&mut self.0, to, body, now);
        }
        self.0.append(to, body, now)
    }
});

altered!(TombstoneIgnored {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        append_anyway(&mut self.0, to, body, now)
    }
});
