//! What happens to one handle does not happen to another.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{Altered, altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{StoreRef, Trial, Verdict, broken};
use std::cell::RefCell;

/// Harmless handles that a store may confuse: the longest ones differ in their last character only.
const LIKE_HANDLES: [&str; 5] = ["abcdefghijklmnop", "abcdefghijklmnoq", "b", "b1", "b2"];
/// How many messages a drop must count.
const DROPPED: usize = 30;
/// The most messages that the mutant counts.
const COUNTED_MAX: u64 = 10;
/// The longest handle that two mutants know, in characters.
const SHORT_HANDLE_CHARS: usize = 15;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "handles-independent",
    at: file!(),
    statement: "Append, claim, ack and drop on one handle leave a sibling handle untouched, also when one name begins with the other.",
    why: "Two agents of one team are two recipients. A store that matches names by prefix lets one agent empty another's mailbox.",
    steps: &[
        "append two messages each to a and ab; ann claims a; bob's claim on ab gets ab's",
        "bob acks everything of ab; ann's lease on a still fences and she can ack",
        "append to both again; bob claims ab; drop a: bob's lease stands and ab keeps its messages; the other way round for ab and a",
        "append one message each to two handles of 16 characters that differ in the last, and to b, b1, b2: each holds exactly its own",
        "append 30 messages to a box and drop it: dropped is 30",
        "append; open a second store and append there: each store holds exactly its own",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "fence-by-prefix",
            fault: "fences every handle that begins with a leased one",
            make: subject::<FenceByPrefix>,
        },
        Mutant {
            name: "drop-by-prefix",
            fault: "drops every handle that begins with the dropped one",
            make: subject::<DropByPrefix>,
        },
        Mutant {
            name: "drop-frees-by-prefix",
            fault: "ends the lease of every handle that begins with the dropped one",
            make: subject::<DropFreesByPrefix>,
        },
        Mutant {
            name: "ack-by-prefix",
            fault: "acks on every handle that begins with the acked one",
            make: subject::<AckByPrefix>,
        },
        Mutant {
            name: "cuts-handles-at-15",
            fault: "knows handles by their first 15 characters",
            make: subject::<CutsHandles>,
        },
        Mutant {
            name: "strips-digits-of-handles",
            fault: "knows handles without the digits at their end",
            make: subject::<StripsDigits>,
        },
        Mutant {
            name: "refuses-16-char-handles",
            fault: "refuses a handle of 16 characters",
            make: subject::<RefusesLongHandles>,
        },
        Mutant {
            name: "refuses-digits-in-handles",
            fault: "refuses a handle with a digit",
            make: subject::<RefusesDigits>,
        },
        Mutant {
            name: "drop-counts-to-ten",
            fault: "says that a drop removed 10 where it removed more",
            make: subject::<DropCountsToTen>,
        },
        Mutant {
            name: "open-wipes-another-store",
            fault: "empties the store opened before when a new one is opened",
            make: subject::<OpenWipes>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (a, ab) = (at("a"), at("ab"));
    for (leased, sibling) in [(&a, &ab), (&ab, &a)] {
        let mine = t.append_many(&store, leased, "mine", 2)?;
        let theirs = t.append_many(&store, sibling, "theirs", 2)?;
        let lease = t.claim_some(&store, leased, "ann", "waiting messages are claimable")?;
        is_prefix(&lease.messages, &mine, "a claim delivers what was sent to its own handle")?;
        let promised = format!("a lease on {leased} does not touch {sibling}");
        t.holds_exactly(&store, sibling, &theirs, &promised)?;
        t.fenced(&store, &lease, "cid")?;
        let theirs = t.append_many(&store, sibling, "theirs", 2)?;
        t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())?;
        let promised = format!("an ack on {leased} does not touch {sibling}");
        t.holds_exactly(&store, sibling, &theirs, &promised)?;
        let _ = t.drain(&store, leased)?;

        t.append(&store, leased, "dropped")?;
        let mut kept = t.append_many(&store, sibling, "kept", 2)?;
        let theirs = t.claim_some(&store, sibling, "bob", "waiting messages are claimable")?;
        drop_counts(t, &store, leased, 1)?;
        t.fenced(&store, &theirs, "cid")?;
        t.ack_counted(&store, &theirs, theirs.last_seq(), theirs.messages.len())?;
        kept.drain(..theirs.messages.len().min(kept.len()));
        let promised = format!("a drop of {leased} does not touch {sibling}");
        t.holds_exactly(&store, sibling, &kept, &promised)?;
    }
    like_handles(t, &store)?;
    t.append_many(&store, &a, "m", DROPPED)?;
    drop_counts(t, &store, &a, DROPPED)?;
    second_store(t, &store)
}

fn drop_counts(t: &mut Trial<'_>, store: &StoreRef, of: &Address, count: usize) -> Verdict {
    let dropped = t.drop_box(store, of)?;
    #[expect(clippy::cast_precision_loss, reason = "counts of a clause are tiny")]
    let right = dropped == count as f64;
    if right {
        return Ok(());
    }
    broken(format!("drop of {of} counts its own messages: {count}"), format!("dropped: {dropped}"))
}

fn like_handles(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let mut sent = Vec::new();
    for handle in LIKE_HANDLES {
        let of = at(handle);
        sent.push((t.append_many(store, &of, &format!("for-{handle}-"), 1)?, of));
    }
    for (messages, of) in sent {
        t.holds_exactly(store, &of, &messages, "each handle has a box of its own")?;
    }
    Ok(())
}

fn second_store(t: &mut Trial<'_>, first: &StoreRef) -> Verdict {
    let alpha = at("alpha");
    let ours = t.append_many(first, &alpha, "first", 2)?;
    let second = t.open()?;
    let theirs = t.append_many(&second, &alpha, "second", 1)?;
    let promised = "store/open gives a fresh, empty store and leaves the others alone";
    t.holds_exactly(first, &alpha, &ours, promised)?;
    t.holds_exactly(&second, &alpha, &theirs, promised)
}

/// The other recipients of the storage whose handle begins with `of`'s.
fn longer(model: &Model, of: &Address) -> Vec<Address> {
    let state = model.state();
    state
        .boxes
        .keys()
        .filter(|other| {
            *other != of && other.scope == of.scope && other.handle.0.starts_with(&of.handle.0)
        })
        .cloned()
        .collect()
}

altered!(FenceByPrefix {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let fenced = self.0.state().boxes.iter().any(|(other, b)| {
            other != from
                && other.scope == from.scope
                && from.handle.0.starts_with(&other.handle.0)
                && b.live(time).is_some_and(|held| held.owner != ask.owner)
        });
        if fenced { Ok(None) } else { self.0.claim(from, ask, now) }
    }
});

altered!(DropByPrefix {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let dropped = self.0.drop_box(of, now)?;
        for other in longer(&self.0, of) {
            self.0.drop_box(&other, now)?;
        }
        Ok(dropped)
    }
});

altered!(DropFreesByPrefix {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let dropped = self.0.drop_box(of, now)?;
        for other in longer(&self.0, of) {
            self.0.with_box(&other, |b| b.lease = None);
        }
        Ok(dropped)
    }
});

altered!(AckByPrefix {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        for other in longer(&self.0, of) {
            self.0.with_box(&other, |b| b.messages.clear());
        }
        Ok(acked)
    }
});

/// Defines a mutant that knows each handle by another name, or refuses it.
macro_rules! renames_handles {
    ($name:ident, $rename:expr) => {
        altered!($name {
            fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
                self.0.append(&renamed(to, $rename)?, body, now)
            }
            fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
                self.0.claim(&renamed(from, $rename)?, ask, now)
            }
            fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
                self.0.ack(&renamed(of, $rename)?, owner, lease, up_to, now)
            }
            fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
                self.0.drop_box(&renamed(of, $rename)?, now)
            }
        });
    };
}

fn renamed(of: &Address, rename: fn(&str) -> Option<String>) -> Reply<Address> {
    match rename(&of.handle.0) {
        Some(handle) => Ok(Address::new(&of.scope.0, &handle)),
        None => Err(StoreError::refused("invalid_name", "the store keeps no such handle")),
    }
}

renames_handles!(CutsHandles, |handle| Some(handle.chars().take(SHORT_HANDLE_CHARS).collect()));
renames_handles!(StripsDigits, |handle| {
    Some(handle.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
});
renames_handles!(RefusesLongHandles, |handle| {
    (handle.len() != SHORT_HANDLE_CHARS + 1).then(|| handle.to_owned())
});
renames_handles!(RefusesDigits, |handle| {
    let digit = handle.contains(|c: char| c.is_ascii_digit());
    (!digit).then(|| handle.to_owned())
});

altered!(DropCountsToTen {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        Ok(self.0.drop_box(of, now)?.min(COUNTED_MAX))
    }
});

thread_local! {
    /// The store that [`OpenWipes`] opened last.
    static OPENED_LAST: RefCell<Option<Model>> = const { RefCell::new(None) };
}

struct OpenWipes(Model);

impl Altered for OpenWipes {
    fn over(model: Model) -> Self {
        let is_new = model.state().boxes.is_empty();
        let before = OPENED_LAST.with(|last| last.replace(Some(model.clone())));
        if let Some(before) = before.filter(|_| is_new) {
            before.state().boxes.clear();
        }
        Self(model)
    }
    fn model(&mut self) -> &mut Model {
        &mut self.0
    }
}
