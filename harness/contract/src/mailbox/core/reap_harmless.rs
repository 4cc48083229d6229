//! Housekeeping throws away nothing that anybody still counts on.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{Sent, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reap-harmless",
    at: file!(),
    statement: "Reap loses no message, frees no live lease and lowers no seq.",
    why: "Housekeeping runs when nobody looks. Compaction that forgets a message, a lease or a counter does its damage unseen.",
    steps: &[
        "append to alpha and beta; ann claims alpha with max 2, so that some stays undelivered; reap",
        "bob's claim on alpha: null; ann's ack: taken; beta still holds its messages",
        "cid claims beta and lets the lease expire; reap; beta still holds its messages",
        "with both boxes empty: reap; the next seq is above all earlier ones",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "reap-frees-live-leases",
            fault: "frees every lease at reap",
            make: subject::<FreesLive>,
        },
        Mutant {
            name: "reap-loses-unclaimed",
            fault: "throws away the messages of boxes without a lease",
            make: subject::<LosesUnclaimed>,
        },
        Mutant {
            name: "reap-loses-undelivered",
            fault: "throws away what a live lease has not delivered",
            make: subject::<LosesUndelivered>,
        },
        Mutant {
            name: "reap-buries-expired",
            fault: "throws away what an expired lease had delivered",
            make: subject::<BuriesExpired>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (alpha, beta) = (at("alpha"), at("beta"));
    let mut sent = t.append_many(&store, &alpha, "a", 3)?;
    let theirs = t.append_many(&store, &beta, "b", 2)?;
    let ttl_ms = t.long_ttl_ms();
    let Some(lease) = t.claim_for(&store, &alpha, "ann", ttl_ms, Some(2))? else {
        return broken("waiting messages are claimable", "ann's claim with max 2 answered null");
    };
    t.reap(&store)?;
    t.fenced(&store, &lease, "bob")?;
    t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())?;
    let rest: Vec<Sent> = sent.split_off(lease.messages.len().min(sent.len()));
    t.holds_exactly(&store, &alpha, &rest, "reap loses no message of a leased box")?;

    let ttl_ms = t.short_ttl_ms();
    let expired = t.claim_some_for(
        &store,
        &beta,
        "cid",
        ttl_ms,
        "reap loses no message that nobody claimed",
    )?;
    t.wait_past(&expired)?;
    t.reap(&store)?;
    t.holds_exactly(&store, &beta, &theirs, "reap loses no message of an expired lease")?;

    let last = sent.iter().chain(&rest).map(|m| m.seq).max().unwrap_or(0);
    lowers_no_seq(t, &store, last)
}

fn lowers_no_seq(t: &mut Trial<'_>, store: &StoreRef, last: u64) -> Verdict {
    t.reap(store)?;
    let seq = t.append(store, &at("alpha"), "next")?;
    if seq > last {
        return Ok(());
    }
    broken("reap lowers no seq", format!("after {last} and a reap the next seq was {seq}"))
}

altered!(FreesLive {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        self.0.state().boxes.values_mut().for_each(|b| b.lease = None);
        Ok(())
    }
});

altered!(LosesUnclaimed {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.state().boxes.values_mut().filter(|b| b.lease.is_none()).for_each(|b| b.messages.clear());
        self.0.reap(now)
    }
});

altered!(LosesUndelivered {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        for b in self.0.state().boxes.values_mut() {
            if let Some(delivered) = b.live(time).map(|held| held.delivered) {
                b.messages.retain(|m| m.seq <= delivered);
            }
        }
        self.0.reap(now)
    }
});

altered!(BuriesExpired {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        for b in self.0.state().boxes.values_mut() {
            if let Some(held) = b.lease.take_if(|held| time >= held.expiry) {
                b.messages.retain(|m| m.seq > held.delivered);
            }
        }
        self.0.reap(now)
    }
});
