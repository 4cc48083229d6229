//! A claim with a limit takes from the front and nothing more.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::{at, is_prefix};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// How many messages wait.
const MESSAGES: usize = 5;
/// Limits above what waits: a common batch, one beyond 32 bits with a sign, and the greatest.
const GENEROUS: [u64; 3] = [10, (1 << 31) + 1, (1 << 53) - 1];

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
        "with one message waiting, claim with max 10, 2^31+1 and 2^53-1: that message each time",
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
        Mutant {
            name: "null-until-max-wait",
            fault: "answers null while fewer messages wait than the max",
            make: subject::<NullUntilMax>,
        },
        Mutant {
            name: "max-in-32-bits",
            fault: "answers null to a max of more than 32 bits with a sign",
            make: subject::<In32Bits>,
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
    )?;
    for max in GENEROUS {
        let sent = t.append_many(&store, &alpha, "one", 1)?;
        let ttl_ms = t.long_ttl_ms();
        let promised = format!("a claim with max {max} delivers the one message that waits");
        match t.claim_for(&store, &alpha, "cid", ttl_ms, Some(max))? {
            None => return broken(promised, "it answered null"),
            Some(lease) => {
                is_prefix(&lease.messages, &sent, &promised)?;
                t.ack_counted(&store, &lease, lease.last_seq(), sent.len())?;
            }
        }
    }
    Ok(())
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

altered!(NullUntilMax {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let waiting = self.0.with_box(from, |b| b.messages.len());
        let short = ask.max.and_then(|max| usize::try_from(max).ok()).is_some_and(|max| max > waiting);
        if short { Ok(None) } else { self.0.claim(from, ask, now) }
    }
});

altered!(In32Bits {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let wide = ask.max.is_some_and(|max| max > i64::from(i32::MAX));
        if wide { Ok(None) } else { self.0.claim(from, ask, now) }
    }
});
