//! A lease that was overtaken acks nothing.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "stale-ack-after-reclaim",
    at: file!(),
    statement: "Once a lease has expired and another consumer has claimed, the first one's ack is refused; the second one's lease is unharmed and ackable.",
    why: "A slow consumer that comes back late would otherwise delete messages which another is still working on; if that one fails, they are gone.",
    steps: &[
        "append m1, m2; ann claims for a ttl and lets it expire; bob claims",
        "ann acks with her old lease: refused",
        "cid claims: null; bob acks: taken, and counted; the rest is still there",
        "the same on beta, where ann herself claims anew: her new lease has another id, and the old one acks nothing",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "overtaken-lease-acks",
            fault: "takes an ack with a lease that expired and was overtaken",
            make: subject::<OvertakenAcks>,
        },
        Mutant {
            name: "expired-lease-id-comes-again",
            fault: "gives the id of an expired lease to the next one",
            make: subject::<IdComesAgain>,
        },
        Mutant {
            name: "stale-ack-frees-the-new-lease",
            fault: "frees the box while it refuses an overtaken lease's ack",
            make: subject::<FreesTheNew>,
        },
        Mutant {
            name: "expired-lease-shuts-its-owner-out",
            fault: "answers null to an owner whose own lease on the box has expired",
            make: subject::<ShutsItsOwnerOut>,
        },
        Mutant {
            name: "expired-lease-lives-on-for-its-owner",
            fault: "gives an owner its expired lease back, under the old id",
            make: subject::<LivesOn>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    for (handle, second) in [("alpha", "bob"), ("beta", "ann")] {
        overtaken_by(t, &store, &at(handle), second)?;
    }
    Ok(())
}

/// Ann's lease on the box expires and `second`, who may be ann herself, claims.
fn overtaken_by(t: &mut Trial<'_>, store: &StoreRef, of: &Address, second: &str) -> Verdict {
    let sent = t.append_many(store, of, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let old = t.claim_some_for(store, of, "ann", ttl_ms, "waiting messages are claimable")?;
    t.wait_past(&old)?;
    let promised = "once a lease has expired the box is claimable";
    let new = t.claim_some(store, of, second, promised)?;
    t.when_dead(&old)?;
    if new.id == old.id {
        return broken(
            "a lease id is never given twice, so that an ack with the old lease can be told from one with the new",
            format!(
                "{second}'s claim after the expiry was given the old lease id {:?} again",
                old.id
            ),
        );
    }
    let promised = "expired messages are redelivered from the front";
    is_prefix(&new.messages, &sent, promised)?;
    let why = "the lease has expired and the box was claimed anew";
    t.ack_refused(store, of, "ann", &old.id, old.last_seq(), why)?;
    t.fenced(store, &new, "cid")?;
    t.ack_counted(store, &new, new.last_seq(), new.messages.len())?;
    t.holds_exactly(store, of, &sent[new.messages.len()..], "a refused ack removes nothing")
}

/// Claims through the model; a lease that the claim replaced is put on the list.
fn claim_noting(
    model: &mut crate::mailbox::model::Model,
    overtaken: &mut Vec<LeaseId>,
    from: &Address,
    ask: &ClaimAsk,
    now: Millis,
) -> Reply<Option<Delivery>> {
    let before = model.with_box(from, |b| b.lease.as_ref().map(|held| held.id.clone()));
    let claimed = model.claim(from, ask, now)?;
    if let (Some(before), Some(delivery)) = (before, &claimed)
        && before != delivery.lease
    {
        overtaken.push(before);
    }
    Ok(claimed)
}

altered!(OvertakenAcks remembers Vec<LeaseId> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_noting(&mut self.0, &mut self.1, from, ask, now)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if !self.1.contains(lease) {
            return self.0.ack(of, owner, lease, up_to, now);
        }
        Ok(self.0.with_box(of, |b| {
            let before = b.messages.len();
            b.messages.retain(|m| m.seq > up_to);
            (before - b.messages.len()) as u64
        }))
    }
});

altered!(FreesTheNew remembers Vec<LeaseId> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        claim_noting(&mut self.0, &mut self.1, from, ask, now)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now);
        if self.1.contains(lease) {
            self.0.with_box(of, |b| b.lease = None);
        }
        acked
    }
});

altered!(IdComesAgain {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let expired = self.0.with_box(from, |b| {
            b.lease.as_ref().filter(|held| time >= held.expiry).map(|held| held.id.clone())
        });
        let mut claimed = self.0.claim(from, ask, now)?;
        if let (Some(expired), Some(delivery)) = (expired, claimed.as_mut()) {
            self.0.with_box(from, |b| {
                if let Some(held) = &mut b.lease {
                    held.id = expired.clone();
                }
            });
            delivery.lease = expired;
        }
        Ok(claimed)
    }
});

/// The expired lease of the box, where `owner` had it.
fn expired_of(
    model: &crate::mailbox::model::Model,
    of: &Address,
    owner: &str,
    now: Millis,
) -> Option<crate::mailbox::model::Held> {
    let time = model.time(now);
    let held = model.with_box(of, |b| b.lease.clone());
    held.filter(|held| held.owner == owner && time >= held.expiry)
}

altered!(ShutsItsOwnerOut {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if !self.0.is_closed() && expired_of(&self.0, from, &ask.owner, now).is_some() {
            return Ok(None);
        }
        self.0.claim(from, ask, now)
    }
});

altered!(LivesOn {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let expired = expired_of(&self.0, from, &ask.owner, now);
        let mut claimed = self.0.claim(from, ask, now)?;
        if let (Some(expired), Some(delivery)) = (expired, claimed.as_mut()) {
            delivery.lease.clone_from(&expired.id);
            self.0.with_box(from, |b| {
                if let Some(held) = &mut b.lease {
                    held.id = expired.id;
                }
            });
        }
        Ok(claimed)
    }
});
