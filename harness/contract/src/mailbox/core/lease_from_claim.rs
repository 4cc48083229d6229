//! A lease is as old as its claim, not as its message.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};
use std::collections::BTreeMap;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "lease-from-claim",
    at: file!(),
    statement: "A lease runs from its claim, however long the message had waited before.",
    why: "A backlog is when leases matter most. A store that measures from the append hands an old message out twice in the same moment.",
    steps: &[
        "append m1 and let it wait for two ttls",
        "ann claims for one ttl; reap; bob claims: null",
        "half a ttl later: reap; bob claims: null",
        "after the lease expired: bob claims and gets m1",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "lease-runs-from-the-append",
            fault: "lets a lease expire one ttl after its oldest message was appended",
            make: subject::<FromTheAppend>,
        },
        Mutant {
            name: "reap-frees-leases-on-old-messages",
            fault: "frees at reap every lease whose message has waited longer than the lease has left",
            make: subject::<ReapFreesOld>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    t.append(&store, &alpha, "m1")?;
    let ttl_ms = t.short_ttl_ms();
    t.wait(2 * ttl_ms)?;
    let lease =
        t.claim_some_for(&store, &alpha, "ann", ttl_ms, "a waiting message is claimable")?;
    t.reap(&store)?;
    t.fenced(&store, &lease, "bob")?;
    t.wait_within(&lease, 2)?;
    t.reap(&store)?;
    t.fenced(&store, &lease, "bob")?;
    t.wait_past(&lease)?;
    t.claim_some(&store, &alpha, "bob", "once a lease has expired the box is claimable")?;
    Ok(())
}

altered!(FromTheAppend remembers BTreeMap<(Address, Seq), Millis> {
    fn append(&mut self, to: &Address, body: &crate::json::Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.1.insert((to.clone(), seq), self.0.time(now));
        Ok(seq)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let fenced = self.0.with_box(from, |b| b.live(time).is_some());
        let claimed = self.0.claim(from, ask, now)?;
        let oldest = claimed.as_ref().and_then(|d| self.1.get(&(from.clone(), d.messages[0].seq)).copied());
        if let (false, Some(oldest)) = (fenced, oldest) {
            let expiry = crate::mailbox::model::expiry(oldest, ask.ttl_ms)?;
            self.0.with_box(from, |b| {
                if let Some(held) = &mut b.lease {
                    held.expiry = expiry;
                }
            });
        }
        Ok(claimed)
    }
});

altered!(ReapFreesOld remembers BTreeMap<Address, Millis> {
    fn append(&mut self, to: &Address, body: &crate::json::Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        self.1.entry(to.clone()).or_insert(time);
        self.0.append(to, body, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        for (of, since) in &self.1 {
            self.0.with_box(of, |b| {
                let ttl_ms = b.lease.as_ref().map_or(0, |held| held.expiry.0.saturating_sub(time.0));
                if time.0.saturating_sub(since.0) > ttl_ms.max(1) {
                    b.lease = None;
                }
            });
        }
        self.0.reap(now)
    }
});
