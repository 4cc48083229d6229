//! A tombstone is one recipient's, however much another one's names look like it (axis: boundary).

use super::{must_take, refusing_where};
use crate::clause::{Clause, Mutant};
use crate::json::{Json, cut};
use crate::mailbox::model::Model;
use crate::mailbox::mutant::{Altered, subject};
use crate::mailbox::names::{self, CarelessKey, Joined};
use crate::mailbox::store::{Address, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict};
use serde_json::json;
use std::collections::BTreeSet;
use std::marker::PhantomData;

/// How many random pairs a run adds to the known ones.
const GENERATED_PAIRS: usize = 40;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "keys-injective",
    at: file!(),
    statement: "Boundary: tombstoning one of two recipients whose names a careless key folds together leaves the other taking appends.",
    why: "Tombstones often live in a table of their own with a key of its own; where that key is joined or cleaned, a living recipient's mail is refused for a dead one's sake.",
    steps: &[
        "find out which of the look-alike names the store keeps at all",
        "tombstone the first of each pair: every second one takes appends",
        "in a fresh store, tombstone the second of each pair: every first one takes appends",
    ],
    needs: None,
    check,
    mutants: &[
        keyed::<Joined<':'>>(
            "tombstone-joined-by-colon",
            "looks tombstones up by scope and handle joined with a colon",
        ),
        keyed::<Joined<'/'>>(
            "tombstone-joined-by-slash",
            "looks tombstones up by scope and handle joined with a slash",
        ),
        keyed::<Joined<'#'>>(
            "tombstone-joined-by-hash",
            "looks tombstones up by scope and handle joined with a #",
        ),
        keyed::<Joined<'\0'>>(
            "tombstone-joined-by-nul",
            "looks tombstones up by scope and handle joined with a NUL",
        ),
        keyed::<names::HalfEscaped>(
            "tombstone-half-escaped",
            "looks tombstones up by names whose escape character is not escaped",
        ),
        keyed::<names::Unordered>(
            "tombstone-unordered",
            "looks tombstones up by scope and handle without their order",
        ),
        keyed::<names::Lowercased>(
            "tombstone-lowercased",
            "looks tombstones up by names in lower case",
        ),
        keyed::<names::Composed>(
            "tombstone-composed",
            "looks tombstones up by names in composed Unicode form",
        ),
        keyed::<names::Truncated>(
            "tombstone-cut-at-255",
            "looks tombstones up by the first 255 bytes of names",
        ),
        keyed::<names::PercentDecoded>(
            "tombstone-percent-decoded",
            "looks tombstones up by names with percent signs decoded",
        ),
        keyed::<names::Cleaned>(
            "tombstone-cleaned",
            "looks tombstones up by names cleaned for a file system",
        ),
    ],
    never_sole: None,
};

const fn keyed<K: CarelessKey>(name: &'static str, fault: &'static str) -> Mutant {
    Mutant { name, fault, make: subject::<TombstonesBy<K>> }
}

fn check(t: &mut Trial<'_>) -> Verdict {
    let pairs = kept_pairs(t)?;
    let turned: Vec<_> = pairs.iter().map(|(a, b)| (b.clone(), a.clone())).collect();
    seconds_are_free(t, &pairs)?;
    seconds_are_free(t, &turned)
}

/// The pairs of which the store keeps both, as it says in a storage without tombstones.
fn kept_pairs(t: &mut Trial<'_>) -> Result<Vec<(Address, Address)>, Stop> {
    let mut pairs = names::joins();
    pairs.extend(names::twin_handles("acme"));
    pairs.extend(names::swapped());
    pairs.extend(names::generated(t.rng(), GENERATED_PAIRS));
    let store = t.open()?;
    let all: BTreeSet<&Address> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    let mut refused = BTreeSet::new();
    for to in all {
        if t.try_append(&store, to, &Json::from("in time"))?.is_err() {
            refused.insert(to.clone());
        }
    }
    if let Some(one) = refused.first() {
        t.advise(format!(
            "{} recipients were refused by name, so nothing was judged of them: {}, …",
            refused.len(),
            cut(&one.to_string())
        ));
    }
    pairs.retain(|(a, b)| !refused.contains(a) && !refused.contains(b));
    Ok(pairs)
}

/// Tombstones the first of each pair, then appends to every second one that is not a first one too.
fn seconds_are_free(t: &mut Trial<'_>, pairs: &[(Address, Address)]) -> Verdict {
    let store = t.open()?;
    let mut dead = BTreeSet::new();
    for (first, _) in pairs {
        if !dead.contains(first) && tombstoned(t, &store, first)? {
            dead.insert(first.clone());
        }
    }
    for (first, second) in pairs {
        if dead.contains(first) && !dead.contains(second) {
            must_take(t, &store, second, first, "in time")?;
        }
    }
    Ok(())
}

/// Whether the hook took the name; one that it refuses is left alone.
fn tombstoned(t: &mut Trial<'_>, store: &StoreRef, of: &Address) -> Result<bool, Stop> {
    let params = json!({
        "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "now": t.now_ms(),
    });
    match t.ask::<Json>(store.side, "recipient/tombstone", params, true)? {
        Ok(_) => Ok(true),
        Err(refusal) => {
            t.advise(format!("the tombstone hook refused a name that append took: {refusal}"));
            Ok(false)
        }
    }
}

/// A store that keeps its boxes by the true key, and its tombstones by a careless one.
struct TombstonesBy<K>(Model, PhantomData<fn() -> K>);

impl<K: CarelessKey> Altered for TombstonesBy<K> {
    fn over(model: Model) -> Self {
        Self(model, PhantomData)
    }
    fn model(&mut self) -> &mut Model {
        &mut self.0
    }
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let key = K::key(to);
        refusing_where(&mut self.0, to, body, now, |dead| K::key(dead) == key)
    }
}
