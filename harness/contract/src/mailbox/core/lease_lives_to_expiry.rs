//! A lease ends when it said it would: not before, not after.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "lease-lives-to-expiry",
    at: file!(),
    statement: "The fence of a lease holds up to its expiry and is gone after it, to the store's declared granularity.",
    why: "A fence that falls early lets two consumers in; one that stays keeps mail from everybody after a crash.",
    steps: &[
        "append m1; ann claims for a ttl",
        "at the last moment at which the lease surely lives, bob claims: null",
        "at the first moment at which it has surely ended, bob claims: m1",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "lease-outlives-its-expiry",
            fault: "keeps the fence up for a tenth of the ttl longer",
            make: subject::<Outlives>,
        },
        Mutant {
            name: "lease-falls-early",
            fault: "lets the fence fall after half of the ttl",
            make: subject::<FallsEarly>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    t.append(&store, &alpha, "m1")?;
    let ttl_ms = t.short_ttl_ms();
    let lease =
        t.claim_some_for(&store, &alpha, "ann", ttl_ms, "a waiting message is claimable")?;
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.fenced(&store, &lease, "bob")?;
    t.wait_for_expiry(&lease)?;
    let after =
        t.claim_some(&store, &alpha, "bob", "once a lease has expired the box is claimable")?;
    t.ack_counted(&store, &after, after.last_seq(), 1)
}

altered!(Outlives {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(from, &ClaimAsk { ttl_ms: ask.ttl_ms + ask.ttl_ms / 10, ..ask.clone() }, now)
    }
});

altered!(FallsEarly {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(from, &ClaimAsk { ttl_ms: (ask.ttl_ms + 1) / 2, ..ask.clone() }, now)
    }
});
