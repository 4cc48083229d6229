//! A clause: one promise, how it is judged, and the wrong stores that prove it can fail.

use crate::backend::Capability;
use crate::subject::Subject;
use crate::trial::{Trial, Verdict};
use crate::world::World;

/// One promise of one suite. It lives in a file named after its slug.
#[derive(Debug)]
pub struct Clause {
    /// The last component of its id; also its file's name, with `-` for `_`.
    pub slug: &'static str,
    /// `file!()` of the clause, held equal to the slug by a law.
    pub at: &'static str,
    /// What must hold, as one sentence.
    pub statement: &'static str,
    /// What a user loses where it does not hold.
    pub why: &'static str,
    /// How it is judged, a sentence a step.
    pub steps: &'static [&'static str],
    /// The capability without which the clause is `not-declared`.
    pub needs: Option<Capability>,
    /// Judges the subject behind the trial.
    pub check: fn(&mut Trial<'_>) -> Verdict,
    /// Deliberately wrong stores that this clause kills.
    pub mutants: &'static [Mutant],
    /// Why no mutant can be killed by this clause alone, where that is so.
    pub never_sole: Option<&'static str>,
}

/// A deliberately wrong store.
pub struct Mutant {
    /// Its name, unique over all clauses.
    pub name: &'static str,
    /// What it does wrong, as one sentence.
    pub fault: &'static str,
    /// Builds one process of it over the family's model, in the world that it is to live in.
    pub make: fn(World) -> Box<dyn Subject>,
}

impl std::fmt::Debug for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mutant").field("name", &self.name).finish_non_exhaustive()
    }
}
