//! One consumer never holds two live leases on one box.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, same_messages, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "one-live-lease",
    at: file!(),
    statement: "The holder of a live lease who claims again gets null, or the same lease with the same messages; never a second lease.",
    why: "A consumer that lost the answer to its claim asks again. A second lease, or other messages under the first, makes its ack settle something it never saw.",
    steps: &[
        "append m1, m2, m3; ann claims",
        "ann claims again: null, or the same lease id with the same messages",
        "append m4; ann claims again: the same",
        "ann acks with the lease she was given first: taken, and it counts what that lease delivered",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "second-lease-for-the-holder",
            fault: "mints a new lease for the holder's second claim",
            make: subject::<SecondLease>,
        },
        Mutant {
            name: "holder-takes-what-came-later",
            fault: "adds later messages to the lease when its holder claims again",
            make: subject::<TakesWhatCameLater>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    t.append_many(&store, &alpha, "m", 3)?;
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    for more in [false, true] {
        if more {
            t.append(&store, &alpha, "m4")?;
        }
        let again = t.claim(&store, &alpha, "ann")?;
        t.while_live(&lease)?;
        if let Some(again) =
            again.filter(|a| a.id != lease.id || !same_messages(&a.messages, &lease.messages))
        {
            return broken(
                format!(
                    "the holder who claims again gets null, or the lease {:?} with {}",
                    lease.id,
                    shown(&lease.messages)
                ),
                format!("she got the lease {:?} with {}", again.id, shown(&again.messages)),
            );
        }
    }
    t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())
}

altered!(SecondLease {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        self.0.with_box(from, |b| {
            if b.live(time).is_some_and(|held| held.owner == ask.owner) {
                b.lease = None;
            }
        });
        self.0.claim(from, ask, now)
    }
});

altered!(TakesWhatCameLater {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.with_box(from, |b| {
            let last = b.messages.last().map(|m| m.seq);
            if let (Some(held), Some(last)) = (b.lease.as_mut(), last)
                && held.owner == ask.owner
            {
                held.delivered = last;
            }
        });
        self.0.claim(from, ask, now)
    }
});
