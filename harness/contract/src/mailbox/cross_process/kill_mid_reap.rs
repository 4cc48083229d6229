//! A process that is killed while it cleans up leaves everything that was there.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::MET_BY_HISTORIES;
use crate::mailbox::store::{MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use serde_json::json;

/// How far beyond the usual time of a call a kill may come, as a share of it.
const BEYOND: f64 = 1.2;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "kill-mid-reap",
    at: file!(),
    statement: "A process that is killed during a reap loses no message, frees no live lease, and brings no number back.",
    why: "A compaction is the one moment in which a store rewrites everything. If it can be cut in half, a restart at the wrong time takes the whole storage.",
    steps: &[
        "ann holds beta with a long lease",
        "in each round: append to alpha and drain it, then append two more; append to gamma and drain it; the peer is killed (SIGKILL) at a random point inside a reap",
        "this process finds exactly the two of alpha; the next number of gamma is above all before; beta is fenced; a reap here works",
        "at the end ann acks beta with her lease",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "reap-cut-short-loses-what-it-moved",
            fault: "moves the messages aside while it cleans up, and nobody brings them back where it is killed",
            make: shared::<MovesMessages>,
        },
        Mutant {
            name: "reap-cut-short-forgets-counters",
            fault: "sets the numbers of empty boxes aside while it cleans up, and nobody brings them back where it is killed",
            make: shared::<MovesCounters>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut pair = t.pair()?;
    let (alpha, beta, gamma) = (at("alpha"), at("beta"), at("gamma"));
    t.append_many(&pair.a, &beta, "b", 2)?;
    let held = t.claim_some(&pair.a, &beta, "ann", "waiting messages are claimable")?;
    let mut last = 0;
    for _ in 1..=t.kill_rounds() {
        let old = t.append_many(&pair.a, &alpha, "old", 2)?;
        t.holds_exactly(&pair.a, &alpha, &old, "a box holds what was appended")?;
        let sent = t.append_many(&pair.a, &alpha, "m", 2)?;
        last = next_of(t, &pair.a, &gamma, last)?;
        let params = json!({ "store": pair.b.id, "now": t.now_ms() });
        let moment = t.rng().f64() * BEYOND;
        // Whether it was carried out or not: nothing may be lost.
        t.call_and_kill(pair.b.side, "mailbox/reap", params, moment)?;
        t.survivor_answers(&pair.a)?;
        let promised = "a reap that was cut short loses nothing";
        t.accounts_for(&pair.a, &alpha, &sent, None, promised)?;
        last = next_of(t, &pair.a, &gamma, last)?;
        t.fenced(&pair.a, &held, "bob")?;
        t.reap(&pair.a)?;
        t.new_peer(&mut pair)?;
    }
    let count = held.messages.len();
    t.ack_counted(&pair.a, &held, held.last_seq(), count)
}

/// Appends to a box and empties it again; the number must be above `last`.
fn next_of(
    t: &mut Trial<'_>,
    store: &crate::trial::StoreRef,
    of: &crate::mailbox::store::Address,
    last: u64,
) -> Result<u64, crate::trial::Stop> {
    let body = Json::from("counted");
    let seq = t.append(store, of, body.clone())?;
    if seq <= last {
        return broken(
            "a number is above all before, also after a reap that was cut short",
            format!("append on {of} answered {seq} after {last}"),
        );
    }
    let sent = crate::mailbox::delivery::Sent { seq, body };
    t.holds_exactly(store, of, &[sent], "a box holds what was appended")?;
    Ok(seq)
}

altered!(MovesMessages {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let taken: Vec<_> = self
            .0
            .state()
            .boxes
            .iter_mut()
            .map(|(of, b)| (of.clone(), std::mem::take(&mut b.messages)))
            .collect();
        self.0.gap()?;
        for (of, messages) in taken {
            self.0.with_box(&of, |b| {
                b.messages.extend(messages);
                b.messages.sort_by_key(|m| m.seq);
            });
        }
        self.0.reap(now)
    }
});

altered!(MovesCounters {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let aside: Vec<_> = self
            .0
            .state()
            .boxes
            .iter_mut()
            .filter(|(_, b)| b.messages.is_empty())
            .map(|(of, b)| (of.clone(), std::mem::take(&mut b.last_seq)))
            .collect();
        self.0.gap()?;
        for (of, last) in aside {
            self.0.with_box(&of, |b| b.last_seq = b.last_seq.max(last));
        }
        self.0.reap(now)
    }
});
