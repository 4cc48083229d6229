//! A claim that found nothing leaves nothing behind.

use crate::clause::{Clause, Mutant};
use crate::mailbox::model::Held;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict};
use serde_json::json;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "no-ghost-lease",
    at: file!(),
    statement: "A claim that found an empty box installs no lease: the next message is claimable at once by anybody.",
    why: "A lease that nobody was told about locks the first real message away until it expires; the consumer that polls is never the one that gets mail.",
    steps: &[
        "ann claims a never-written box (what she is answered is not judged here)",
        "append m1; bob's claim gets it at once; bob acks it",
        "ann claims the drained box; append m2; cid's claim gets it at once",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "ghost-lease-on-new-box",
            fault: "fences a never-written box for whoever claimed it in vain",
            make: subject::<OnNewBox>,
        },
        Mutant {
            name: "ghost-lease-on-new-storage",
            fault: "fences the box by whose claim an empty storage was first touched",
            make: subject::<OnNewStorage>,
        },
        Mutant {
            name: "ghost-lease-on-drained-box",
            fault: "fences a box that was drained by acks for whoever claimed it in vain",
            make: subject::<OnDrainedBox>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    vain_claim(t, &store, &alpha)?;
    t.append(&store, &alpha, "m1")?;
    let promised = "a claim that found an empty box leaves no lease behind";
    let lease = t.claim_some(&store, &alpha, "bob", promised)?;
    t.ack(&store, &lease, lease.last_seq())?;
    vain_claim(t, &store, &alpha)?;
    t.append(&store, &alpha, "m2")?;
    t.claim_some(&store, &alpha, "cid", promised)?;
    Ok(())
}

fn vain_claim(t: &mut Trial<'_>, store: &StoreRef, of: &Address) -> Verdict {
    let ttl_ms = json!(t.long_ttl_ms());
    let _ = t.raw_claim(store, of, "ann", &ttl_ms, None, false)?;
    Ok(())
}

fn claim_with_ghost(
    model: &mut crate::mailbox::model::Model,
    from: &Address,
    ask: &ClaimAsk,
    now: Millis,
    haunted: impl Fn(u64) -> bool,
) -> Reply<Option<Delivery>> {
    let claimed = model.claim(from, ask, now)?;
    let id = model.mint_lease();
    let expiry = crate::mailbox::model::expiry(model.time(now), ask.ttl_ms)?;
    model.with_box(from, |b| {
        if claimed.is_none() && b.messages.is_empty() && haunted(b.last_seq) {
            b.lease = Some(Held { id, owner: ask.owner.clone(), expiry, delivered: Seq(0) });
        }
    });
    Ok(claimed)
}

altered!(OnNewBox {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_with_ghost(&mut self.0, from, ask, now, |last_seq| last_seq == 0)
    }
});

altered!(OnDrainedBox {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_with_ghost(&mut self.0, from, ask, now, |last_seq| last_seq > 0)
    }
});

altered!(OnNewStorage {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let untouched = self.0.state().boxes.is_empty();
        claim_with_ghost(&mut self.0, from, ask, now, |_| untouched)
    }
});
