//! A drop in one scope takes nothing from another.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::{BoxState, Model};
use crate::mailbox::moves::Sent;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "drop-isolated",
    at: file!(),
    statement: "A drop in one scope takes no message and no lease from another scope's box of the same handle, and never sets its numbering back.",
    why: "Dropping a box is how one tenant leaves; where it reaches further than its scope, the tenants who stay lose their mail.",
    steps: &[
        "append to the same handle in four scopes, one of which begins with another's name; lease one of them, drain one",
        "drop the handle in one scope, and in a scope that was never written",
        "the lease of the other scope stands and its holder can ack; the other boxes hold what they held",
        "the next seq of the drained box is above its earlier receipts",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "drop-by-scope-prefix",
            fault: "drops the same handle in every scope whose name begins with the dropped one's",
            make: subject::<DropByScopePrefix>,
        },
        Mutant {
            name: "drop-frees-leases-by-handle",
            fault: "frees, when it drops a box, the leases of the same handle in every scope",
            make: subject::<DropFreesLeasesByHandle>,
        },
        Mutant {
            name: "drop-restarts-numbers-by-handle",
            fault: "forgets, when it drops a box, the last seq of the same handle's empty boxes in every scope",
            make: subject::<DropRestartsNumbersByHandle>,
        },
        Mutant {
            name: "drop-by-handle",
            fault: "drops the same handle in every scope",
            make: subject::<DropByHandle>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let in_scope = |scope: &str| Address::new(scope, "inbox");
    let (acme, globex) = (in_scope("acme"), in_scope("globex"));
    let (acme2, acm, quiet) = (in_scope("acme2"), in_scope("acm"), in_scope("initech"));
    t.append_many(&store, &acme, "acme", 2)?;
    let theirs = t.append_many(&store, &globex, "globex", 2)?;
    let longer = t.append_many(&store, &acme2, "acmetwo", 2)?;
    let shorter = t.append_many(&store, &acm, "acm", 2)?;
    let drained = t.append_many(&store, &quiet, "initech", 3)?;
    t.drain(&store, &quiet)?;
    let promised = "what was appended is claimable in its scope";
    let held = t.claim_some(&store, &globex, "bob", promised)?;

    t.drop_box(&store, &acme)?;
    t.drop_box(&store, &in_scope("umbrella"))?;

    t.fenced(&store, &held, "cid")?;
    t.ack(&store, &held, held.last_seq())?;
    let promised = "a drop in one scope takes no message from another";
    let rest = &theirs[held.messages.len().min(theirs.len())..];
    t.holds_exactly(&store, &globex, rest, promised)?;
    t.holds_exactly(&store, &acme2, &longer, promised)?;
    t.holds_exactly(&store, &acm, &shorter, promised)?;
    numbered_above(t, &store, &quiet, &drained)
}

fn numbered_above(t: &mut Trial<'_>, store: &StoreRef, of: &Address, earlier: &[Sent]) -> Verdict {
    let last = earlier.iter().map(|m| m.seq).max().unwrap_or(0);
    let seq = t.append(store, of, Json::from("after the drop"))?;
    if seq > last {
        return Ok(());
    }
    broken(
        "a drop in one scope sets no other box's numbering back",
        format!("after {of} had given out {last}, its next receipt was {seq}"),
    )
}

/// The model's drop, and what `act` does to the boxes of the same handle in the scopes that `also`
/// picks.
fn dropping(
    model: &mut Model,
    of: &Address,
    now: Millis,
    also: impl Fn(&str) -> bool,
    act: impl Fn(&mut BoxState),
) -> Reply<u64> {
    let dropped = model.drop_box(of, now)?;
    for (address, b) in &mut model.state().boxes {
        if address.handle == of.handle && address != of && also(&address.scope.0) {
            act(b);
        }
    }
    Ok(dropped)
}

altered!(DropByScopePrefix {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let begins = |scope: &str| scope.starts_with(&of.scope.0) && scope != of.scope.0;
        dropping(&mut self.0, of, now, begins, |b| {
            b.lease = None;
            b.messages.clear();
        })
    }
});

altered!(DropFreesLeasesByHandle {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        dropping(&mut self.0, of, now, |_| true, |b| b.lease = None)
    }
});

altered!(DropRestartsNumbersByHandle {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        dropping(&mut self.0, of, now, |_| true, |b| {
            if b.messages.is_empty() {
                b.last_seq = 0;
            }
        })
    }
});

altered!(DropByHandle {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        dropping(&mut self.0, of, now, |_| true, |b| {
            b.lease = None;
            b.messages.clear();
        })
    }
});
