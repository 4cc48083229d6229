//! An expired lease acks nothing, even when nobody came after it.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// How late the mutant with a grace takes an ack, in milliseconds.
const GRACE_MS: u64 = 20;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "stale-ack-unclaimed",
    at: file!(),
    statement: "An ack with an expired lease is refused though nobody has claimed since; the messages stay claimable.",
    why: "If expiry only counts once somebody else has claimed, whether a late ack deletes mail depends on a race that nobody sees.",
    steps: &[
        "append m1, m2; ann claims for a ttl and lets it expire",
        "at the first moment at which the lease has surely ended, ann acks: refused",
        "half a ttl later, claim and ack until null: both messages, in order",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "expired-lease-acks",
            fault: "takes an ack with an expired lease as long as nobody else has claimed",
            make: subject::<ExpiredAcks>,
        },
        Mutant {
            name: "late-acks-have-a-grace",
            fault: "takes an ack until some milliseconds after the lease expired",
            make: subject::<Grace>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", 2)?;
    let ttl_ms = t.short_ttl_ms();
    let lease =
        t.claim_some_for(&store, &alpha, "ann", ttl_ms, "waiting messages are claimable")?;
    t.wait_for_expiry(&lease)?;
    t.ack_refused(&store, &alpha, "ann", &lease.id, lease.last_seq(), "ann's lease has expired")?;
    // When exactly the fence falls is another clause's matter.
    t.wait_past(&lease)?;
    t.holds_exactly(&store, &alpha, &sent, "a refused ack removes nothing")
}

altered!(ExpiredAcks {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        self.0.with_box(of, |b| {
            if let Some(held) = &mut b.lease
                && held.owner == owner
                && held.id == *lease
            {
                held.expiry = Millis(u64::MAX);
            }
        });
        self.0.ack(of, owner, lease, up_to, now)
    }
});

altered!(Grace {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let time = self.0.time(now);
        self.0.with_box(of, |b| {
            if let Some(held) = &mut b.lease
                && held.owner == owner
                && held.id == *lease
                && time.0 < held.expiry.0 + GRACE_MS
            {
                held.expiry = Millis(held.expiry.0 + GRACE_MS);
            }
        });
        self.0.ack(of, owner, lease, up_to, now)
    }
});
