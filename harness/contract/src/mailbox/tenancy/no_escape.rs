//! No name leads out of the storage.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::State;
use crate::mailbox::moves::Sent;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "no-escape",
    at: file!(),
    statement: "A name with dots, slashes, drives or NULs in it is kept inside the storage or refused; nothing outside appears or changes.",
    why: "A handle comes from whoever sends mail; where it becomes a path as it is, any sender writes, reads or deletes files anywhere.",
    steps: &[
        "lay snares: names that lead a careless store to watched places outside its storage",
        "use each as handle, as scope and as both: append, claim, drop and reap; every one may be refused",
        "what was accepted comes back, and nothing at the watched places appeared or changed",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "path-of-the-handle",
            fault: "makes a path of the handle as it is when it appends",
            make: subject::<PathOfTheHandle>,
        },
        Mutant {
            name: "path-of-the-scope",
            fault: "makes a path of the scope as it is when it appends",
            make: subject::<PathOfTheScope>,
        },
        Mutant {
            name: "backslash-in-the-path",
            fault: "guards against slashes and lets backslashes lead out of its folder",
            make: subject::<BackslashInThePath>,
        },
        Mutant {
            name: "absolute-handle",
            fault: "guards against dots and takes a handle that begins with a slash for an absolute path",
            make: subject::<AbsoluteHandle>,
        },
        Mutant {
            name: "claim-leaves-the-root",
            fault: "refuses such a name when it appends, and creates the file when it claims",
            make: subject::<ClaimLeavesTheRoot>,
        },
        Mutant {
            name: "drop-leaves-the-root",
            fault: "refuses such a name when it appends and claims, and deletes the file when it drops",
            make: subject::<DropLeavesTheRoot>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    for name in t.lay_snares(&store)? {
        for of in [
            Address::new("default", &name),
            Address::new(&name, "alpha"),
            Address::new(&name, &name),
        ] {
            try_out(t, &store, &of)?;
        }
    }
    t.reap(&store)?;
    let sprung = t.sprung_snares()?;
    if sprung.is_empty() {
        return Ok(());
    }
    broken("no name makes anything outside the storage appear or change", sprung.join("; "))
}

/// Everything that a name goes through; refusals are as good as answers.
fn try_out(t: &mut Trial<'_>, store: &StoreRef, of: &Address) -> Verdict {
    let (body, ttl_ms) = (Json::from("kept inside"), Json::from(t.long_ttl_ms()));
    match t.try_append(store, of, &body)? {
        Ok(seq) => {
            let promised = "an accepted name keeps its message";
            t.holds_exactly(store, of, &[Sent { seq, body: body.clone() }], promised)?;
            let _ = t.try_append(store, of, &body)?;
        }
        Err(refusal) => {
            t.expect_reason("mailbox/append", &refusal, &["invalid_name"]);
            let _ = t.raw_claim(store, of, "ann", &ttl_ms, None, true)?;
        }
    }
    let _ = t.try_drop(store, of)?;
    Ok(())
}

/// The boxes for which `leads_out` holds, as files that appeared outside.
fn files_outside(state: &State, leads_out: impl Fn(&Address) -> bool) -> Vec<String> {
    let outside = state.boxes.keys().filter(|of| leads_out(of));
    outside.map(|of| format!("a file for {of} appeared outside the storage")).collect()
}

fn climbs(name: &str) -> bool {
    name.contains("../") || name.contains("..\\") || name.starts_with('/')
}

fn guarded(of: &Address) -> Reply<()> {
    if climbs(&of.scope.0) || climbs(&of.handle.0) {
        return Err(StoreError::refused("invalid_name", "this name leads out of the storage"));
    }
    Ok(())
}

altered!(PathOfTheHandle {
    fn escaped(state: &State) -> Vec<String> {
        files_outside(state, |of| climbs(&of.handle.0) && !climbs(&of.scope.0))
    }
});

altered!(PathOfTheScope {
    fn escaped(state: &State) -> Vec<String> {
        files_outside(state, |of| climbs(&of.scope.0) && !climbs(&of.handle.0))
    }
});

altered!(BackslashInThePath {
    fn escaped(state: &State) -> Vec<String> {
        files_outside(state, |of| of.handle.0.contains("..\\"))
    }
});

altered!(AbsoluteHandle {
    fn escaped(state: &State) -> Vec<String> {
        files_outside(state, |of| of.handle.0.starts_with('/'))
    }
});

altered!(ClaimLeavesTheRoot {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        guarded(to)?;
        self.0.append(to, body, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        guarded(of)?;
        self.0.drop_box(of, now)
    }
    fn escaped(state: &State) -> Vec<String> {
        files_outside(state, |of| climbs(&of.handle.0))
    }
});

altered!(DropLeavesTheRoot {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        guarded(to)?;
        self.0.append(to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        guarded(from)?;
        self.0.claim(from, ask, now)
    }
    fn escaped(state: &State) -> Vec<String> {
        files_outside(state, |of| climbs(&of.handle.0))
    }
});
