//! A tombstone leaves the same handle of other scopes alone (axis: boundary).

use super::{attempt, must_take, refusing_where};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "same-handle-other-scope-free",
    at: file!(),
    statement: "Boundary: while a handle is tombstoned in one scope, the same handle of every other scope takes appends and delivers them, written before or not.",
    why: "Handles repeat from tenant to tenant; a tombstone that forgets its scope lets one tenant's deletion silence the other's recipient.",
    steps: &[
        "append to the same handle in two scopes and leave a third and fourth unwritten, then tombstone it in the first",
        "the handle takes appends in the other scopes, one whose name begins with the first's among them, and delivers what it took",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "tombstone-by-handle",
            fault: "refuses appends to a tombstoned recipient's handle in every scope",
            make: subject::<TombstoneByHandle>,
        },
        Mutant {
            name: "tombstone-by-scope-prefix",
            fault: "refuses appends to a tombstoned recipient's handle in every scope whose name begins with the recipient's",
            make: subject::<TombstoneByScopePrefix>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let in_scope = |scope: &str| Address::new(scope, "inbox");
    let (dead, written) = (in_scope("acme"), in_scope("globex"));
    let (fresh, longer) = (in_scope("initech"), in_scope("acme2"));
    t.append(&store, &dead, "earlier")?;
    let mut sent = t.append_many(&store, &written, "earlier", 2)?;
    t.tombstone(&store, &dead)?;
    let _ = attempt(t, &store, &dead, "too late")?;
    let promised = "a tombstone takes nothing from the same handle of another scope";
    sent.push(must_take(t, &store, &written, &dead, "in time")?);
    t.holds_exactly(&store, &written, &sent, promised)?;
    for free in [&fresh, &longer] {
        let first = must_take(t, &store, free, &dead, "in time")?;
        t.holds_exactly(&store, free, &[first], promised)?;
    }
    Ok(())
}

altered!(TombstoneByHandle {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        refusing_where(&mut self.0, to, body, now, |dead| dead.handle == to.handle)
    }
});

altered!(TombstoneByScopePrefix {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        refusing_where(&mut self.0, to, body, now, |dead| {
            dead.handle == to.handle && to.scope.0.starts_with(&dead.scope.0)
        })
    }
});
