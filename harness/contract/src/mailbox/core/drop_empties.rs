//! Drop empties a box, lease and all.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "drop-empties",
    at: file!(),
    statement: "Drop removes a box's messages and its lease and says how many messages went; the next claim answers null, the next append is claimable at once.",
    why: "Drop is how a recipient starts over. What survives it is read as new; a lease that survives it locks the new mail away.",
    steps: &[
        "append m1, m2, m3; ann claims; drop: dropped is 3",
        "bob claims: null; drop again: dropped is 0",
        "append m4; bob's claim gets exactly m4 at once",
        "append m5, drop without any lease: dropped is what was left",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "drop-keeps-the-lease",
            fault: "leaves the lease on a dropped box",
            make: subject::<KeepsTheLease>,
        },
        Mutant {
            name: "drop-spares-leased-messages",
            fault: "leaves what is under a lease in the box",
            make: subject::<SparesLeased>,
        },
        Mutant {
            name: "drop-counts-boxes",
            fault: "answers 1 for every drop",
            make: subject::<CountsBoxes>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    t.append_many(&store, &alpha, "m", 3)?;
    t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    drops(t, &store, 3)?;
    if let Some(lease) = t.claim(&store, &alpha, "bob")? {
        return broken(
            "a dropped box is empty: the next claim answers null",
            format!("bob's claim delivered {}", crate::mailbox::moves::shown(&lease.messages)),
        );
    }
    drops(t, &store, 0)?;
    let sent = t.append_many(&store, &alpha, "later", 1)?;
    let promised = "what is appended after a drop is claimable at once, and alone";
    t.holds_exactly(&store, &alpha, &sent, promised)?;
    t.append_many(&store, &alpha, "again", 2)?;
    drops(t, &store, 2)
}

fn drops(t: &mut Trial<'_>, store: &StoreRef, count: u32) -> Verdict {
    let dropped = t.drop_box(store, &at("alpha"))?;
    if dropped == f64::from(count) {
        return Ok(());
    }
    broken(format!("dropped says how many messages went: {count}"), format!("dropped: {dropped}"))
}

altered!(KeepsTheLease {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let lease = self.0.with_box(of, |b| b.lease.clone());
        let dropped = self.0.drop_box(of, now)?;
        self.0.with_box(of, |b| b.lease = lease);
        Ok(dropped)
    }
});

altered!(SparesLeased {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let spared = self.0.with_box(of, |b| {
            let delivered = b.lease.as_ref().map(|held| held.delivered);
            b.messages.iter().filter(|m| Some(m.seq) <= delivered).cloned().collect::<Vec<_>>()
        });
        let dropped = self.0.drop_box(of, now)?;
        self.0.with_box(of, |b| b.messages = spared);
        Ok(dropped)
    }
});

altered!(CountsBoxes {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.0.drop_box(of, now)?;
        Ok(1)
    }
});
