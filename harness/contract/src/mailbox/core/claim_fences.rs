//! While a lease lives, everybody else gets nothing.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{Lease, at, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "claim-fences",
    at: file!(),
    statement: "While one consumer's lease lives, every other consumer's claim on that box answers null, up to just before expiry.",
    why: "Two consumers on one box do the same work twice and in a different order; the lease exists to make that impossible.",
    steps: &[
        "append m1, m2; ann claims",
        "bob claims: null; cid claims with a max of 1: null",
        "just before the lease ends, bob claims again: null",
        "append three messages to beta; ann claims with a max of 1, so that some are not delivered; bob and cid claim: null all the same",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "no-fence",
            fault: "gives the box to whoever claims it",
            make: subject::<NoFence>,
        },
        Mutant {
            name: "fence-around-the-delivery",
            fault: "gives what a live lease has not delivered to the next consumer",
            make: subject::<FenceAroundTheDelivery>,
        },
        Mutant {
            name: "max-slips-through-the-fence",
            fault: "looks at the fence only for claims without a max",
            make: subject::<MaxSlipsThrough>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (alpha, beta) = (at("alpha"), at("beta"));
    t.append_many(&store, &alpha, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let lease =
        t.claim_some_for(&store, &alpha, "ann", ttl_ms, "a waiting message is claimable")?;
    t.fenced(&store, &lease, "bob")?;
    fenced_with_max(t, &store, &lease)?;
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.fenced(&store, &lease, "bob")?;

    // The fence is around the box, not around what was delivered.
    t.append_many(&store, &beta, "m", 3)?;
    let ttl_ms = t.long_ttl_ms();
    let Some(lease) = t.claim_for(&store, &beta, "ann", ttl_ms, Some(1))? else {
        return broken("waiting messages are claimable", "ann's claim with max 1 answered null");
    };
    t.fenced(&store, &lease, "bob")?;
    fenced_with_max(t, &store, &lease)
}

fn fenced_with_max(t: &mut Trial<'_>, store: &StoreRef, lease: &Lease) -> Verdict {
    let ttl_ms = t.long_ttl_ms();
    let with_max = t.claim_for(store, &lease.of, "cid", ttl_ms, Some(1))?;
    t.while_live(lease)?;
    match with_max {
        None => Ok(()),
        Some(got) => broken(
            "while ann's lease lives, every other claim answers null, with a max too",
            format!("cid's claim with a max of 1 got {}", shown(&got.messages)),
        ),
    }
}

altered!(NoFence {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.with_box(from, |b| b.lease = None);
        self.0.claim(from, ask, now)
    }
});

altered!(MaxSlipsThrough {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if ask.max.is_some_and(|max| max > 0) {
            self.0.with_box(from, |b| b.lease = None);
        }
        self.0.claim(from, ask, now)
    }
});

altered!(FenceAroundTheDelivery {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        if claimed.is_some() {
            return Ok(claimed);
        }
        let rest = self.0.with_box(from, |b| {
            let delivered = b.lease.as_ref().map_or(Seq(0), |held| held.delivered);
            b.messages.iter().filter(|m| m.seq > delivered).cloned().collect::<Vec<_>>()
        });
        if rest.is_empty() {
            return Ok(None);
        }
        Ok(Some(Delivery { lease: self.0.mint_lease(), messages: rest }))
    }
});
