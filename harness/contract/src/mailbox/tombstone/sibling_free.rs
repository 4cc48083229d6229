//! A tombstone leaves the other handles of its scope alone (axis: boundary).

use super::{attempt, must_take, refusing_where};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, Millis, Seq, Tombstones};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "sibling-free",
    at: file!(),
    statement: "Boundary: while one handle is tombstoned, the other handles of its scope take appends and deliver them, written before or not.",
    why: "Deleting one recipient must not silence its neighbours; senders would be told that living recipients are gone.",
    steps: &[
        "append to one sibling and leave another unwritten, then tombstone a third handle of the scope and let an append to it be refused",
        "both siblings take appends and deliver what they took",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "tombstone-of-written-siblings",
            fault: "tombstones, with a recipient, every handle of its scope that has been written",
            make: subject::<TombstoneOfWrittenSiblings>,
        },
        Mutant {
            name: "tombstone-of-the-scope",
            fault: "refuses appends to every handle of a scope in which one is tombstoned",
            make: subject::<TombstoneOfTheScope>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (dead, written, fresh) = (at("alpha"), at("beta"), at("gamma"));
    t.append(&store, &dead, "earlier")?;
    let mut sent = t.append_many(&store, &written, "earlier", 2)?;
    t.tombstone(&store, &dead)?;
    let _ = attempt(t, &store, &dead, "too late")?;
    sent.push(must_take(t, &store, &written, &dead, "in time")?);
    let first = must_take(t, &store, &fresh, &dead, "in time")?;
    let promised = "a tombstone takes nothing from the other handles of its scope";
    t.holds_exactly(&store, &written, &sent, promised)?;
    t.holds_exactly(&store, &fresh, &[first], promised)
}

altered!(TombstoneOfWrittenSiblings {
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        self.0.tombstone(of, now)?;
        let mut state = self.0.state();
        let written = state.boxes.iter().filter(|(a, b)| a.scope == of.scope && b.last_seq > 0);
        let dead: Vec<Address> = written.map(|(a, _)| a.clone()).collect();
        state.tombstones.extend(dead);
        Ok(())
    }
});

altered!(TombstoneOfTheScope {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        refusing_where(&mut self.0, to, body, now, |dead| dead.scope == to.scope)
    }
});
