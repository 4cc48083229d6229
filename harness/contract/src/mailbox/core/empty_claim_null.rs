//! A claim on a box that was never written answers `null`.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "empty-claim-null",
    at: file!(),
    statement: "A claim on a box that was never written answers null.",
    why: "A consumer that polls an empty box must be able to tell \"nothing yet\" from a delivery; an empty delivery makes it process nothing, ack nothing, and spin.",
    steps: &[
        "claim a box that nobody ever wrote to: null",
        "claim it again as somebody else, and with a max: null",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "empty-delivery",
            fault: "answers a lease with an empty list of messages for a box that was never written",
            make: subject::<EmptyDelivery>,
        },
        Mutant {
            name: "empty-delivery-for-a-max",
            fault: "answers a lease with an empty list of messages when a claim with a max finds nothing",
            make: subject::<EmptyDeliveryForMax>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let ttl_ms = Json::from(t.long_ttl_ms());
    for (owner, max) in [("ann", None), ("bob", None), ("cid", Some(Json::from(1)))] {
        match t.raw_claim(&store, &alpha, owner, &ttl_ms, max.as_ref(), false)? {
            Ok(None) => {}
            Ok(Some(lease)) => {
                return broken(
                    "a claim on a never-written box answers null",
                    format!("the lease {:?} with {} messages", lease.id, lease.messages.len()),
                );
            }
            Err(refusal) => {
                return broken(
                    "a claim on a never-written box answers null",
                    format!("it was {refusal}"),
                );
            }
        }
    }
    Ok(())
}

altered!(EmptyDelivery {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        let never_written = self.0.with_box(from, |b| b.last_seq == 0);
        if claimed.is_none() && never_written {
            return Ok(Some(Delivery { lease: self.0.mint_lease(), messages: Vec::new() }));
        }
        Ok(claimed)
    }
});

altered!(EmptyDeliveryForMax {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        if claimed.is_none() && ask.max.is_some() && self.0.with_box(from, |b| b.lease.is_none()) {
            return Ok(Some(Delivery { lease: self.0.mint_lease(), messages: Vec::new() }));
        }
        Ok(claimed)
    }
});
