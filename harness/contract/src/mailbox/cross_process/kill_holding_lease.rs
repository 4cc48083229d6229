//! The lease of a dead process runs out like any other.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};
use serde_json::json;

/// How far beyond the usual time of a call a kill may come, as a share of it.
const BEYOND: f64 = 1.2;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "kill-holding-lease",
    at: file!(),
    statement: "After a process was killed that held a lease, or was about to get one, its messages are claimable again by the time the lease ends, and others go on meanwhile.",
    why: "A lease exists for exactly this: its holder died. If it never ends, the mail of that box is never worked on again.",
    steps: &[
        "in each round: append to a box of its own; bob claims it in the peer, which is killed (SIGKILL): in every second round after the claim was answered, in the others at a random point inside it",
        "this process appends one more message to the box; a store that frees the lease of a dead holder at once is not blamed",
        "when the last of the leases has run out: every box is claimable here, with all its messages, same seqs, same order",
        "an ack with a dead holder's lease is refused",
    ],
    needs: None,
    check,
    mutants: &[Mutant {
        name: "lease-without-end-at-first",
        fault: "writes a lease without an end and adds the end in a second transaction",
        make: shared::<EndComesLater>,
    }],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut pair = t.pair()?;
    let ttl_ms = t.short_ttl_ms();
    let mut boxes = Vec::new();
    for round in 1..=t.kill_rounds() {
        let of = at(&format!("box{round}"));
        let mut sent = t.append_many(&pair.a, &of, "m", 2)?;
        let mut held = None;
        if round % 2 == 0 {
            let promised = "waiting messages are claimable";
            held = Some(t.claim_some_for(&pair.b, &of, "bob", ttl_ms, promised)?);
            t.kill(pair.b.side)?;
        } else {
            let params = json!({
                "store": pair.b.id, "scope": of.scope.0, "handle": of.handle.0, "owner": "bob",
                "ttlMs": ttl_ms, "now": t.now_ms(),
            });
            let moment = t.rng().f64() * BEYOND;
            t.call_and_kill(pair.b.side, "mailbox/claim", params, moment)?;
        }
        t.survivor_answers(&pair.a)?;
        sent.extend(t.append_many(&pair.a, &of, "late", 1)?);
        boxes.push((of, sent, held));
        t.new_peer(&mut pair)?;
    }
    // Every claim was answered, or its process dead, before now.
    let until_ms = t.now_ms() + ttl_ms + t.granularity_ms() + 1;
    t.wait_until(until_ms)?;
    for (of, sent, held) in &boxes {
        if let Some(lease) = held {
            let why = "the lease of the dead holder has run out";
            t.ack_refused(&pair.a, of, "bob", &lease.id, lease.last_seq(), why)?;
        }
        let promised =
            "when the lease of a dead process has ended, all its messages are claimable, in order";
        t.holds_exactly(&pair.a, of, sent, promised)?;
    }
    Ok(())
}

altered!(EndComesLater {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let found = self.0.claim(from, ask, now)?;
        if found.is_some() {
            let end = self.0.with_box(from, |b| {
                b.lease.as_mut().map(|held| std::mem::replace(&mut held.expiry, Millis(u64::MAX)))
            });
            self.0.gap()?;
            self.0.with_box(from, |b| {
                if let (Some(held), Some(end)) = (&mut b.lease, end) {
                    held.expiry = end;
                }
            });
        }
        Ok(found)
    }
});
