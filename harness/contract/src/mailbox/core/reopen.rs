//! Closing a durable store loses nothing.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::mailbox::model::State;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::Seq;
use crate::trial::{Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reopen",
    at: file!(),
    statement: "Pending messages, their seqs, and live leases survive close and attach.",
    why: "A receipt is a promise. Agents restart all the time; what was promised before the restart is owed after it.",
    steps: &[
        "append to alpha and beta; claim and ack the first of beta; ann claims alpha; close; attach",
        "bob's claim on alpha: null, ann's lease still lives",
        "ann acks alpha with her lease from before: taken, and counted",
        "beta holds the rest, same seqs, same bodies, same order",
        "close and attach once more: what is left is still there",
    ],
    needs: Some(Capability::Durable),
    check,
    mutants: &[
        Mutant {
            name: "leases-die-on-close",
            fault: "forgets leases when the storage is closed",
            make: subject::<LeasesDie>,
        },
        Mutant {
            name: "last-append-lost-on-close",
            fault: "loses the newest message of each box when the storage is closed",
            make: subject::<LastLost>,
        },
        Mutant {
            name: "renumbers-on-open",
            fault: "numbers pending messages from 1 when the storage is opened",
            make: subject::<Renumbers>,
        },
        Mutant {
            name: "lease-ids-change-on-open",
            fault: "gives live leases new ids when the storage is opened",
            make: subject::<NewIds>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (alpha, beta) = (at("alpha"), at("beta"));
    let mut mine = t.append_many(&store, &alpha, "a", 3)?;
    let mut theirs = t.append_many(&store, &beta, "b", 3)?;
    let ttl_ms = t.long_ttl_ms();
    let Some(first) = t.claim_for(&store, &beta, "cid", ttl_ms, Some(1))? else {
        return broken("waiting messages are claimable", "cid's claim with max 1 answered null");
    };
    t.ack_counted(&store, &first, theirs[0].seq, 1)?;
    theirs.remove(0);
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;

    let store = t.reopen(&store)?;
    t.fenced(&store, &lease, "bob")?;
    t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())?;
    t.holds_exactly(
        &store,
        &beta,
        &theirs,
        "pending messages survive close and attach, with their seqs and bodies",
    )?;

    let store = t.reopen(&store)?;
    let rest = mine.split_off(lease.messages.len().min(mine.len()));
    t.holds_exactly(&store, &alpha, &rest, "what was not acked survives close and attach again")?;
    if let Some(lease) = t.claim(&store, &beta, "cid")? {
        return broken(
            "what was acked does not come back by close and attach",
            format!("beta delivered {}", crate::mailbox::moves::shown(&lease.messages)),
        );
    }
    Ok(())
}

altered!(LeasesDie {
    fn reopened(state: &mut State) {
        state.boxes.values_mut().for_each(|b| b.lease = None);
    }
});

altered!(LastLost {
    fn reopened(state: &mut State) {
        for b in state.boxes.values_mut() {
            b.messages.pop();
        }
    }
});

altered!(Renumbers {
    fn reopened(state: &mut State) {
        for b in state.boxes.values_mut() {
            for (message, seq) in b.messages.iter_mut().zip(1..) {
                message.seq = Seq(seq);
            }
        }
    }
});

altered!(NewIds {
    fn reopened(state: &mut State) {
        for held in state.boxes.values_mut().filter_map(|b| b.lease.as_mut()) {
            held.id.0.push('x');
        }
    }
});
