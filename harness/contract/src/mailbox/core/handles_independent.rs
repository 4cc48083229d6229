//! What happens to one handle does not happen to another.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

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
        let dropped = t.drop_box(&store, leased)?;
        if dropped != 1.0 {
            return broken(
                format!("drop of {leased} counts its own message: 1"),
                format!("dropped: {dropped}"),
            );
        }
        t.fenced(&store, &theirs, "cid")?;
        t.ack_counted(&store, &theirs, theirs.last_seq(), theirs.messages.len())?;
        kept.drain(..theirs.messages.len().min(kept.len()));
        let promised = format!("a drop of {leased} does not touch {sibling}");
        t.holds_exactly(&store, sibling, &kept, &promised)?;
    }
    Ok(())
}

/// The other recipients of the storage whose handle begins with `of`'s.
fn longer(model: &crate::mailbox::model::Model, of: &Address) -> Vec<Address> {
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
