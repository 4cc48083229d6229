//! A lease ends in every process at the same moment.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{at, same_messages, shown};
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Message, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// How long before its end a mutant takes a foreign lease for ended, in milliseconds.
const NEAR_ITS_END_MS: u64 = 120;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "expiry-visible",
    at: file!(),
    statement: "A lease that one process gave runs out for every process at its time, also where the giver does nothing any more.",
    why: "A lease that only its own process can end locks everybody out as soon as that process is stuck or gone.",
    steps: &[
        "append to alpha; ann claims it here for a short while; bob is fenced in the peer, also in the last quarter of the lease",
        "this process does nothing more; the lease runs out; bob's claim in the peer gets the same messages, same seqs, same order",
        "now bob's lease fences here",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "expiry-known-at-home-only",
            fault: "lets a lease run out only in the process that gave it",
            make: shared::<EndsAtHome>,
        },
        Mutant {
            name: "away-leases-end-early",
            fault: "takes a lease that another process gave for ended a little before its time",
            make: shared::<EndsEarlyAway>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let alpha = at("alpha");
    let sent = t.append_many(&pair.b, &alpha, "m", 3)?;
    let ttl_ms = t.short_ttl_ms();
    let promised = "waiting messages are claimable";
    let lease = t.claim_some_for(&pair.a, &alpha, "ann", ttl_ms, promised)?;
    t.fenced(&pair.b, &lease, "bob")?;
    let quarters = t.last_quarter();
    t.wait_within(&lease, quarters)?;
    t.fenced(&pair.b, &lease, "bob")?;
    t.wait_for_expiry(&lease)?;
    let promised = "a lease that has run out fences nothing, in any process";
    let next = t.claim_some(&pair.b, &alpha, "bob", promised)?;
    t.when_dead(&lease)?;
    let waiting = sent.get(..next.messages.len()).unwrap_or_default();
    if !same_messages(&next.messages, waiting) {
        return broken(
            "after a lease has run out the same messages come again, with their seqs and in order",
            format!("{} waited, and {} came", shown(&sent), shown(&next.messages)),
        );
    }
    t.fenced(&pair.a, &next, "ann")
}

/// The process that gave the box's lease, as mutants here note it.
fn giver(model: &Model, of: &Address) -> Option<u64> {
    let state = model.state();
    let id = state.boxes.get(of)?.lease.as_ref()?.id.0.clone();
    let note = state.scrap.iter().rev().find(|(at, note)| at == of && note.body == id.as_str());
    note.map(|(_, note)| note.seq.0)
}

fn note_giver(model: &Model, of: &Address, found: Option<&Delivery>) {
    if let Some(found) = found {
        let note = Message { seq: Seq(model.process()), body: Json::from(found.lease.0.as_str()) };
        model.state().scrap.push((of.clone(), note));
    }
}

altered!(EndsAtHome {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if giver(&self.0, from).is_some_and(|giver| giver != self.0.process()) {
            return Ok(None);
        }
        let found = self.0.claim(from, ask, now)?;
        note_giver(&self.0, from, found.as_ref());
        Ok(found)
    }
});

altered!(EndsEarlyAway {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        if giver(&self.0, from).is_some_and(|giver| giver != self.0.process()) {
            self.0.with_box(from, |b| {
                // The time of the claim is not stored; a lease in its last part is near its end.
                let left_ms = b.lease.as_ref().map(|held| held.expiry.0.saturating_sub(time.0));
                if left_ms.is_some_and(|left| left > 0 && left < NEAR_ITS_END_MS) {
                    b.lease = None;
                }
            });
        }
        let found = self.0.claim(from, ask, now)?;
        note_giver(&self.0, from, found.as_ref());
        Ok(found)
    }
});
