//! Only the holder acks, whichever process the ack comes from.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::MET_BY_HISTORIES;
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};
use std::collections::BTreeSet;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "foreign-ack-across",
    at: file!(),
    statement: "An ack in another process by anybody but the holder, or with a lease id that has ended, is refused and changes nothing.",
    why: "A consumer elsewhere whose lease ran out would remove what the new holder is working on.",
    steps: &[
        "append to alpha; ann claims it here",
        "in the peer: bob acks with ann's lease id, bob and ann ack with invented ids: refused",
        "ann's lease still fences in both processes",
        "the lease runs out; bob claims in the peer; ann's late ack here is refused and bob's lease stands",
        "bob acks what he was given in the peer; ann claims what is left, and nothing is lost",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "acks-unchecked-away-from-home",
            fault: "checks an ack only in the process that gave the lease",
            make: shared::<UncheckedAway>,
        },
        Mutant {
            name: "holder-remembered-by-its-process",
            fault: "takes an ack with a lease that this process once gave, though another process gave a newer one",
            make: shared::<RemembersItsOwn>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let alpha = at("alpha");
    let sent = t.append_many(&pair.b, &alpha, "m", 3)?;
    let ttl_ms = t.short_ttl_ms();
    let promised = "waiting messages are claimable";
    let lease = t.claim_some_for(&pair.a, &alpha, "ann", ttl_ms, promised)?;
    let up_to = lease.last_seq();
    let why = "the ack comes from nobody who holds the live lease";
    t.ack_refused(&pair.b, &alpha, "bob", &lease.id, up_to, why)?;
    t.ack_refused(&pair.b, &alpha, "bob", "no-such-lease", up_to, why)?;
    t.ack_refused(&pair.b, &alpha, "ann", "no-such-lease", up_to, why)?;
    t.fenced(&pair.a, &lease, "cid")?;
    t.fenced(&pair.b, &lease, "cid")?;
    t.wait_for_expiry(&lease)?;
    let promised = "a lease that has run out fences nothing, in any process";
    let next = t.claim_some(&pair.b, &alpha, "bob", promised)?;
    t.when_dead(&lease)?;
    t.ack_refused(
        &pair.a,
        &alpha,
        "ann",
        &lease.id,
        up_to,
        "her lease ran out and bob holds the next",
    )?;
    t.fenced(&pair.a, &next, "ann")?;
    let count = next.messages.len();
    t.ack_counted(&pair.b, &next, next.last_seq(), count)?;
    let rest = sent.get(count..).unwrap_or_default();
    t.holds_exactly(&pair.a, &alpha, rest, "a refused ack removes nothing")
}

altered!(UncheckedAway remembers BTreeSet<String> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let found = self.0.claim(from, ask, now)?;
        self.1.extend(found.iter().map(|found| found.lease.0.clone()));
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let held = self.0.with_box(of, |b| b.lease.clone());
        match held.filter(|held| !self.1.contains(&held.id.0)) {
            Some(held) => self.0.ack(of, &held.owner, &held.id, up_to, now),
            None => self.0.ack(of, owner, lease, up_to, now),
        }
    }
});

altered!(RemembersItsOwn remembers BTreeSet<String> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let found = self.0.claim(from, ask, now)?;
        self.1.extend(found.iter().map(|found| found.lease.0.clone()));
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let newer = self.0.with_box(of, |b| b.lease.clone()).filter(|held| !self.1.contains(&held.id.0));
        match newer.filter(|_| self.1.contains(&lease.0)) {
            Some(held) => self.0.ack(of, &held.owner, &held.id, up_to, now),
            None => {
                let acked = self.0.ack(of, owner, lease, up_to, now)?;
                self.1.remove(&lease.0);
                Ok(acked)
            }
        }
    }
});
