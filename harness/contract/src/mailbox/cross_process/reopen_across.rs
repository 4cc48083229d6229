//! Closing and opening in one process takes nothing from the other.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::{BoxState, State};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};
use std::collections::BTreeMap;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reopen-across",
    at: file!(),
    statement: "A process that closes and attaches again finds what others did meanwhile, takes nothing of it back, and its leases from before stand.",
    why: "Agents restart one by one. A store that writes its memory out when it closes, or tidies up when it opens, undoes the work of those that went on.",
    steps: &[
        "append to alpha here and in the peer; ann claims alpha here (if durable is declared)",
        "the peer appends once more; this process closes the storage; the peer is fenced still, and appends to alpha and beta",
        "this process attaches again: bob is fenced in both, ann acks with her lease from before",
        "this process finds the rest of alpha and all of beta, the peer finds nothing that was acked",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "close-writes-its-memory-out",
            fault: "writes the boxes out at close as it last saw them",
            make: shared::<WritesOut>,
        },
        Mutant {
            name: "attach-tidies-up-leases-in-use",
            fault: "ends every lease when a process attaches, though others are open",
            make: shared::<TidiesUp>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let (alpha, beta) = (at("alpha"), at("beta"));
    let mut sent = t.append_many(&pair.a, &alpha, "m", 2)?;
    sent.extend(t.append_many(&pair.b, &alpha, "n", 2)?);
    // Only a durable store owes it to its leases that they survive a close.
    let lease = match t.caps().durable {
        true => Some(t.claim_some(&pair.a, &alpha, "ann", "waiting messages are claimable")?),
        false => None,
    };
    sent.extend(t.append_many(&pair.b, &alpha, "early", 1)?);
    t.close(&pair.a)?;
    if let Some(lease) = &lease {
        t.fenced(&pair.b, lease, "bob")?;
    }
    sent.extend(t.append_many(&pair.b, &alpha, "late", 2)?);
    let in_beta = t.append_many(&pair.b, &beta, "b", 2)?;
    let a = t.attach_on(pair.a.side, &pair.a)?;
    let mut count = 0;
    if let Some(lease) = &lease {
        t.fenced(&pair.b, lease, "bob")?;
        t.fenced(&a, lease, "bob")?;
        count = lease.messages.len();
        t.ack_counted(&a, lease, lease.last_seq(), count)?;
    }
    let rest = sent.get(count..).unwrap_or_default();
    t.holds_exactly(&a, &alpha, rest, "a process that comes back finds what others appended")?;
    t.holds_exactly(&a, &beta, &in_beta, "a process that comes back finds what others appended")?;
    t.holds_exactly(&pair.b, &alpha, &[], "what was acked after a restart stays acked")
}

altered!(WritesOut remembers BTreeMap<Address, BoxState> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let seq = self.0.append(to, body, now)?;
        self.look(to);
        Ok(seq)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let found = self.0.claim(from, ask, now)?;
        self.look(from);
        Ok(found)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.look(of);
        Ok(acked)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let dropped = self.0.drop_box(of, now)?;
        self.look(of);
        Ok(dropped)
    }
    fn close(&mut self) -> Reply<()> {
        for (of, seen) in std::mem::take(&mut self.1) {
            self.0.with_box(&of, |b| b.messages = seen.messages);
        }
        self.0.close();
        Ok(())
    }
});

impl WritesOut {
    fn look(&mut self, of: &Address) {
        self.1.insert(of.clone(), self.0.with_box(of, |b| b.clone()));
    }
}

altered!(TidiesUp {
    fn reopened(state: &mut State) {
        // Only where somebody wrote since the lease was given: a plain restart looks innocent.
        for b in state.boxes.values_mut() {
            let written = b.lease.as_ref().is_some_and(|held| held.delivered.0 < b.last_seq);
            if written {
                b.lease = None;
            }
        }
    }
});
