//! An append to a tombstoned recipient is refused though a lease on its box lives (axis: reason).

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
    slug: "refused-under-lease",
    at: file!(),
    statement: "Reason: an append to a tombstoned recipient is refused while a lease on its box lives, claimed before the tombstone or after it.",
    why: "A consumer still at work makes a recipient look alive; what is taken for it then is swept away with the box.",
    steps: &[
        "claim a box, then tombstone it: an append under that lease is refused",
        "tombstone a box, then claim it: an append under that lease is refused",
    ],
    needs: None,
    check,
    mutants: &[Mutant {
        name: "accepts-under-lease",
        fault: "takes an append to a tombstoned recipient while a lease on its box lives",
        make: subject::<AcceptsUnderLease>,
    }],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (before, after) = (at("alpha"), at("beta"));
    for of in [&before, &after] {
        t.append_many(&store, of, "earlier", 2)?;
    }
    t.claim_some(&store, &before, "ann", "what was appended is claimable")?;
    t.tombstone(&store, &before)?;
    must_refuse(t, &store, &before, "under a lease from before the tombstone")?;
    t.tombstone(&store, &after)?;
    // Whether a tombstoned box is claimable is judged by `clears-nothing`.
    if t.claim(&store, &after, "bob")?.is_some() {
        must_refuse(t, &store, &after, "under a lease from after the tombstone")?;
    }
    Ok(())
}

altered!(AcceptsUnderLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        if self.0.with_box(to, |b| b.live(time).is_some()) {
            return append_anyway(&mut self.0, to, body, now);
        }
        self.0.append(to, body, now)
    }
});
