//! A process that died blocks nobody.

use crate::call::{Fault, FaultKind, Refusal};
use crate::clause::{Clause, Mutant};
use crate::host::Nothing;
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::Pair;
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// How often a survivor is tried after a kill before it counts as blocked.
const ROUNDS: u32 = 3;
/// How far beyond the usual time of a call a kill may come, as a share of it.
const BEYOND: f64 = 1.2;
/// How often a mutant looks whether a lock is free before it waits for ever.
const LOOKS_MAX: u32 = 1_000;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "not-blocked-by-the-dead",
    at: file!(),
    statement: "A process that answered before another one was killed goes on answering after it.",
    why: "A lock file that outlives its owner stops every agent on the machine until somebody deletes it by hand, at night.",
    steps: &[
        "this process appends to alpha, claims it and reaps: answered; the peer is killed (SIGKILL) at a random point inside an append, claim, drop or reap",
        "this process does the same again; where it is refused, or does not answer for a whole deadline, it is tried three times, a deadline apart",
        "only if all three fail while it still answers for a storage that the dead one never touched, it counts as blocked",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "lock-outlives-its-owner",
            fault: "locks by a mark in the storage, waits for ever while it is there, and leaves it behind where it is killed",
            make: shared::<WaitsForTheDead>,
        },
        Mutant {
            name: "busy-for-ever-after-a-kill",
            fault: "locks by a mark in the storage, refuses while it is there, and leaves it behind where it is killed",
            make: shared::<RefusesForTheDead>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut pair = t.pair()?;
    let alpha = at("alpha");
    if let Err(refusal) = tried(t, &pair.a, &alpha)? {
        let seen = format!("with nobody dead yet, a call was {refusal}");
        return broken("an append, a claim and a reap are not refused", seen);
    }
    for round in 1..=t.kill_rounds() {
        let common = json!({
            "store": pair.b.id, "scope": alpha.scope.0, "handle": alpha.handle.0,
            "now": t.now_ms(),
        });
        let mut params = common.clone();
        let method = match round % 4 {
            0 => "mailbox/drop",
            1 => "mailbox/append",
            2 => "mailbox/claim",
            _ => "mailbox/reap",
        };
        match method {
            "mailbox/append" => params["body"] = json!("killed"),
            "mailbox/claim" => {
                params["owner"] = json!("bob");
                params["ttlMs"] = json!(t.short_ttl_ms());
            }
            "mailbox/reap" => params = json!({ "store": pair.b.id, "now": t.now_ms() }),
            _ => {}
        }
        let moment = t.rng().f64() * BEYOND;
        t.call_and_kill(pair.b.side, method, params, moment)?;
        if let Some(how) = blocked(t, &mut pair, &alpha)? {
            return broken(
                "a process goes on answering after another one was killed",
                format!(
                    "an append, a claim or a reap that was answered before the peer was killed in {method} {how}, \
                     {ROUNDS} times of {ROUNDS}, while a storage that the peer never touched answered"
                ),
            );
        }
        t.new_peer(&mut pair)?;
    }
    Ok(())
}

/// How the survivor is blocked, if it is.
fn blocked(t: &mut Trial<'_>, pair: &mut Pair, of: &Address) -> Result<Option<String>, Stop> {
    let mut how = String::new();
    for round in 1..=ROUNDS {
        how = match tried(t, &pair.a, of) {
            Ok(Ok(())) => return Ok(None),
            Ok(Err(refusal)) => {
                answers_elsewhere(t, pair)?;
                if round < ROUNDS {
                    t.pause(t.deadline_ms())?;
                }
                format!("was {refusal}")
            }
            Err(Stop::Fault(Fault { kind: FaultKind::Deadline, .. })) => {
                // The bench had to end what did not answer; the storage is the same for a new process.
                t.buried(pair.a.side);
                t.processes(2)?;
                answers_elsewhere(t, pair)?;
                match t.attach_on(pair.a.side, &pair.a) {
                    Ok(a) => pair.a = a,
                    // Not even to attach: the next round will find nobody to ask.
                    Err(Stop::Fault(Fault { kind: FaultKind::Deadline, .. })) => {}
                    Err(stop) => return Err(stop),
                }
                "was not answered for a whole deadline".to_owned()
            }
            Err(stop) => return Err(stop),
        };
    }
    Ok(Some(how))
}

/// An append, a claim and a reap, each of which was answered before anybody died.
fn tried(t: &mut Trial<'_>, store: &StoreRef, of: &Address) -> Result<Result<(), Refusal>, Stop> {
    if let Err(refusal) = t.append_with(store, of, &Json::from("after"), false)? {
        return Ok(Err(refusal));
    }
    // Whether it gets a lease or null: the dead one may have held the box.
    let ttl_ms = Json::from(t.short_ttl_ms());
    if let Err(refusal) = t.raw_claim(store, of, "survivor", &ttl_ms, None, false)? {
        return Ok(Err(refusal));
    }
    let params = json!({ "store": store.id, "now": t.now_ms() });
    Ok(t.ask::<Nothing>(store.side, "mailbox/reap", params, false)?.map(|_| ()))
}

/// The same process must answer for another storage; otherwise it is not the dead one that blocks it.
fn answers_elsewhere(t: &mut Trial<'_>, pair: &Pair) -> Verdict {
    let other = t.open_on(pair.a.side)?;
    let answered = tried(t, &other, &at("alpha"))?;
    t.close(&other)?;
    match answered {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Stop::Fault(Fault::new(
            FaultKind::Errored,
            format!(
                "a storage that the dead process never touched does not answer either: {refusal}"
            ),
        ))),
    }
}

/// Stores whose operations wait, as `enter` says, until the storage is not marked as locked, and mark it
/// while they act.
macro_rules! locks {
    ($($name:ident: $enter:path;)*) => {
        $(altered!($name {
            fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
                $enter(&self.0)?;
                self.0.append(to, body, now)
            }
            fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
                $enter(&self.0)?;
                self.0.claim(from, ask, now)
            }
            fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
                $enter(&self.0)?;
                self.0.drop_box(of, now)
            }
            fn reap(&mut self, now: Millis) -> Reply<()> {
                $enter(&self.0)?;
                self.0.reap(now)
            }
        });)*
    };
}

locks! {
    WaitsForTheDead: wait_for_the_mark;
    RefusesForTheDead: refuse_for_the_mark;
}

fn wait_for_the_mark(model: &Model) -> Reply<()> {
    let mut looks = 0;
    while model.state().marked {
        looks += 1;
        if looks > LOOKS_MAX {
            return model.hang();
        }
        model.gap()?;
    }
    under_mark(model)
}

fn refuse_for_the_mark(model: &Model) -> Reply<()> {
    if model.state().marked {
        return Err(StoreError::refused("busy", "somebody else is writing"));
    }
    under_mark(model)
}

/// Marks the storage as locked, lets others act, and takes the mark away.
fn under_mark(model: &Model) -> Reply<()> {
    model.state().marked = true;
    model.gap()?;
    model.state().marked = false;
    Ok(())
}
