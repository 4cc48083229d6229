//! While a lease lives, everybody else gets nothing.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

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
            name: "max-slips-through-the-fence",
            fault: "looks at the fence only for claims without a max",
            make: subject::<MaxSlipsThrough>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    t.append_many(&store, &alpha, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let lease =
        t.claim_some_for(&store, &alpha, "ann", ttl_ms, "a waiting message is claimable")?;
    t.fenced(&store, &lease, "bob")?;
    let with_max = t.claim_for(&store, &alpha, "cid", ttl_ms, Some(1))?;
    t.while_live(&lease)?;
    if with_max.is_some() {
        return broken(
            "while ann's lease lives, every other claim answers null, with a max too",
            "cid's claim with a max of 1 was given messages",
        );
    }
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.fenced(&store, &lease, "bob")
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
