//! A tombstone leaves handles alone that merely begin with its own, or that its own begins with (axis:
//! boundary).

use super::{must_take, refusing_where};
use crate::clause::{Clause, Mutant};
use crate::json::{Json, cut};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::names::{CarelessKey, PADDED_NAMES, Trimmed};
use crate::mailbox::store::{Address, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "prefix-free",
    at: file!(),
    statement: "Boundary: while a handle is tombstoned, a handle that begins with it, or that it begins with, takes appends and delivers them.",
    why: "A tombstone that is looked up by the beginning of a key, a path or a pattern takes worker10 down with worker1.",
    steps: &[
        "tombstone a: ab, a1 and aa take appends and deliver them",
        "tombstone worker10: worker1 and worker take appends and deliver them",
        "the same for handles that add a blank, a dot or a NUL at the end, where the store keeps such names",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "tombstone-by-prefix",
            fault: "refuses appends to every handle that begins with a tombstoned one of its scope",
            make: subject::<TombstoneByPrefix>,
        },
        Mutant {
            name: "tombstone-by-beginning",
            fault: "refuses appends to every handle that a tombstoned one of its scope begins with",
            make: subject::<TombstoneByBeginning>,
        },
        Mutant {
            name: "tombstone-trimmed",
            fault: "looks tombstones up by handles without blanks at the edges",
            make: subject::<TombstoneTrimmed>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    for (dead, others) in [("a", ["ab", "a1", "aa"]), ("worker10", ["worker1", "worker", "w"])] {
        let (store, dead) = (t.open()?, at(dead));
        t.tombstone(&store, &dead)?;
        for other in others.map(at) {
            let sent = must_take(t, &store, &other, &dead, "in time")?;
            let promised = "a tombstone takes nothing from handles that share its beginning";
            t.holds_exactly(&store, &other, &[sent], promised)?;
        }
    }
    padded_names(t)
}

/// A store may refuse such a name; that is found out in a store without tombstones.
fn padded_names(t: &mut Trial<'_>) -> Verdict {
    let (free, store) = (t.open()?, t.open()?);
    let mut refused = Vec::new();
    for (plain, padded) in PADDED_NAMES {
        let (dead, other) = (at(plain), at(padded));
        if t.try_append(&free, &other, &Json::from("in time"))?.is_err() {
            refused.push(cut(&other.to_string()));
            continue;
        }
        t.tombstone(&store, &dead)?;
        must_take(t, &store, &other, &dead, "in time")?;
    }
    if !refused.is_empty() {
        t.advise(format!("refused by name, so nothing was judged of them: {}", refused.join(", ")));
    }
    Ok(())
}

altered!(TombstoneByPrefix {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        refusing_where(&mut self.0, to, body, now, |dead| {
            dead.scope == to.scope && to.handle.0.starts_with(&dead.handle.0)
        })
    }
});

altered!(TombstoneByBeginning {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        refusing_where(&mut self.0, to, body, now, |dead| {
            dead.scope == to.scope && dead.handle.0.starts_with(&to.handle.0)
        })
    }
});

altered!(TombstoneTrimmed {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let key = Trimmed::key(to);
        refusing_where(&mut self.0, to, body, now, |dead| Trimmed::key(dead) == key)
    }
});
