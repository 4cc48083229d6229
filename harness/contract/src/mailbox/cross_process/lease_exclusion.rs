//! One lease fences a box for all processes.

use crate::call::Answer;
use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::{Listed, MET_BY_HISTORIES};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::race::{Lane, Raced};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// How many boxes both processes claim at the same moment.
const CONTESTED: usize = 40;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "lease-exclusion",
    at: file!(),
    statement: "While a lease lives that one process claimed, claims in every other process answer null, and of two that claim at once only one gets it.",
    why: "Two agents that both hold the lease both do the work: the mail is sent twice, the payment is made twice.",
    steps: &[
        "append to alpha; ann claims it in this process; bob claims it in the peer: null",
        "ann acks all but the last; bob claims the rest in the peer at once; ann, here, is fenced now",
        "append to 40 boxes; both processes claim each of them at the same time: no box is given to both, and what neither got is claimable",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "leases-kept-per-process",
            fault: "keeps its table of leases in the process's memory",
            make: shared::<LocalLeases>,
        },
        Mutant {
            name: "claim-read-then-written",
            fault: "looks for a live lease and writes its own in two transactions",
            make: shared::<LookThenWrite>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let alpha = at("alpha");
    t.append_many(&pair.a, &alpha, "m", 3)?;
    let lease = t.claim_some(&pair.a, &alpha, "ann", "waiting messages are claimable")?;
    t.fenced(&pair.b, &lease, "bob")?;
    t.ack_first_half(&pair.a, &lease)?;
    let promised = "what an ack left is claimable at once, in every process";
    let rest = t.claim_some(&pair.b, &alpha, "bob", promised)?;
    t.fenced(&pair.a, &rest, "ann")?;
    let boxes: Vec<Address> = (0..CONTESTED).map(|i| at(&format!("box{i}"))).collect();
    for of in &boxes {
        t.append(&pair.a, of, "m")?;
    }
    let raced = contest(t, &pair.a, &pair.b, &boxes)?;
    for of in given_once(&raced, &boxes)? {
        let promised = "a box that neither of two claims got is claimable by the next";
        t.claim_some(&pair.a, &of, "cid", promised)?;
    }
    Ok(())
}

/// Both processes claim every box, at the same time and in the same order.
fn contest(
    t: &mut Trial<'_>,
    a: &StoreRef,
    b: &StoreRef,
    boxes: &[Address],
) -> Result<Vec<Raced>, Stop> {
    let ttl_ms = t.long_ttl_ms();
    let mut lanes: Vec<(_, Box<dyn Lane>)> = Vec::new();
    for (store, owner) in [(a, "ann"), (b, "bob")] {
        let mut calls = Vec::new();
        for of in boxes {
            let params = json!({
                "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "owner": owner,
                "ttlMs": ttl_ms, "now": t.now_ms(),
            });
            calls.push(("mailbox/claim", params));
        }
        lanes.push((store.side, Box::new(Listed::new(calls).0)));
    }
    t.race(lanes, None)
}

/// The boxes that nobody got: each of two claims may have stood in the other's way.
fn given_once(raced: &[Raced], boxes: &[Address]) -> Result<Vec<Address>, Stop> {
    let mut given: BTreeMap<&str, usize> = BTreeMap::new();
    for call in raced {
        let of = call.params["handle"].as_str().unwrap_or_default();
        match &call.answer {
            Some(Answer::Result(result)) => {
                *given.entry(of).or_default() += usize::from(!result.is_null());
            }
            Some(Answer::Error(error)) => {
                let seen = format!("the claim on {of:?} answered {}", error.to_json());
                return broken("a claim is not refused", seen);
            }
            Some(Answer::Fault(_)) | None => {}
        }
    }
    if let Some((of, times)) = given.iter().find(|(_, times)| **times > 1) {
        return broken(
            "of two processes that claim a box at once only one gets a lease",
            format!("{times} claims on {of:?} at the same time were given one each"),
        );
    }
    let got = |of: &&Address| given.get(of.handle.0.as_str()).is_none_or(|times| *times == 0);
    Ok(boxes.iter().filter(got).cloned().collect())
}

/// Runs `act` with no lease in the box but those that this process gave itself.
fn with_own_leases<T>(
    model: &mut crate::mailbox::model::Model,
    own: &mut BTreeMap<Address, crate::mailbox::model::Held>,
    of: &Address,
    act: impl FnOnce(&mut crate::mailbox::model::Model) -> Reply<T>,
) -> Reply<T> {
    let others = model.with_box(of, |b| std::mem::replace(&mut b.lease, own.get(of).cloned()));
    let reply = act(model);
    let now_own = model.with_box(of, |b| std::mem::replace(&mut b.lease, others));
    match now_own {
        Some(held) => own.insert(of.clone(), held),
        None => own.remove(of),
    };
    reply
}

altered!(LocalLeases remembers BTreeMap<Address, crate::mailbox::model::Held> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        with_own_leases(&mut self.0, &mut self.1, from, |model| model.claim(from, ask, now))
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        with_own_leases(&mut self.0, &mut self.1, of, |model| model.ack(of, owner, lease, up_to, now))
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        with_own_leases(&mut self.0, &mut self.1, of, |model| model.drop_box(of, now))
    }
});

altered!(LookThenWrite remembers BTreeSet<Address> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        if self.0.with_box(from, |b| b.live(time).is_none()) {
            self.0.gap()?;
            self.0.with_box(from, |b| b.lease = None);
        }
        self.0.claim(from, ask, now)
    }
});
