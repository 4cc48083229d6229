//! A claim with a limit takes from the front and nothing more.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// How many messages wait.
const MESSAGES: usize = 5;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "max-is-prefix",
    at: file!(),
    statement: "A claim with max = k delivers a non-empty prefix of at most k messages; what it did not deliver is not removed by that lease's ack.",
    why: "Consumers bound what they take so that they can bound what they lose. A limit that is ignored, or an ack that reaches past it, breaks that.",
    steps: &[
        "append m1 to m5; ann claims with max 2: one or two messages from the front",
        "ann acks the last of them; acked counts them",
        "bob claims with max 1: exactly the next one; bob acks it",
        "claim and ack until null: exactly the others, in order",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "max-ignored",
            fault: "delivers the whole box whatever the max",
            make: subject::<Ignored>,
        },
        Mutant {
            name: "max-from-the-end",
            fault: "delivers the newest messages when there is a max",
            make: subject::<FromTheEnd>,
        },
        Mutant {
            name: "full-ack-empties-the-box",
            fault: "empties the box when the last delivered message is acked",
            make: subject::<FullAckEmpties>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut waiting = t.append_many(&store, &alpha, "m", MESSAGES)?;
    for (owner, max) in [("ann", 2), ("bob", 1)] {
        let ttl_ms = t.long_ttl_ms();
        let Some(lease) = t.claim_for(&store, &alpha, owner, ttl_ms, Some(max))? else {
            return broken(
                "a claim with a max delivers what waits",
                format!("{owner}'s claim with max {max} answered null"),
            );
        };
        is_prefix(
            &lease.messages,
            &waiting,
            "a claim with a max delivers from the front of the box",
        )?;
        if lease.messages.len() as u64 > max {
            return broken(
                format!("a claim with max {max} delivers at most {max}"),
                format!("it delivered {}", lease.messages.len()),
            );
        }
        t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())?;
        waiting.drain(..lease.messages.len());
    }
    t.holds_exactly(
        &store,
        &alpha,
        &waiting,
        "what a claim with a max did not deliver is delivered later, in order",
    )
}

altered!(Ignored {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let max = ask.max.filter(|max| *max <= 0);
        self.0.claim(from, &ClaimAsk { max, ..ask.clone() }, now)
    }
});

altered!(FromTheEnd {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let Some(max) = ask.max.and_then(|max| usize::try_from(max).ok()).filter(|max| *max > 0) else {
            return self.0.claim(from, ask, now);
        };
        let claimed = self.0.claim(from, &ClaimAsk { max: None, ..ask.clone() }, now)?;
        Ok(claimed.map(|mut delivery| {
            let skipped = delivery.messages.len().saturating_sub(max);
            delivery.messages.drain(..skipped);
            delivery
        }))
    }
});

altered!(FullAckEmpties {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let full = self.0.with_box(of, |b| b.lease.as_ref().is_some_and(|held| held.delivered == up_to));
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        if full {
            self.0.with_box(of, |b| b.messages.clear());
        }
        Ok(acked)
    }
});
