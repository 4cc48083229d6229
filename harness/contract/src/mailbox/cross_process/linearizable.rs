//! Whatever two processes do at the same time, it looks as if it had been done one after the other.

use crate::call::{Answer, Fault, FaultKind};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::history::{Limits, Verdict as Judged, Violation, check as check_history};
use crate::mailbox::model::Model;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::Pair;
use crate::mailbox::recorded::Recorded;
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::mailbox::worker::{Leases, Shift, Worker};
use crate::race::{KillAt, Lane};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// How many races one case has; in every third of them a process is killed.
const RACES: u32 = 9;
/// How many workers each process has.
const WORKERS: usize = 2;
/// How many calls each of them makes in a race.
const CALLS: usize = 50;
/// How far beyond the usual time of a call a kill may come, as a share of it.
const BEYOND: f64 = 1.2;
/// How wide the picture of a violation is drawn, in characters.
const PICTURE_CHARS: usize = 110;
/// The most claims that empty one box at the end.
const DRAIN_MAX: usize = 2_000;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "linearizable",
    at: file!(),
    statement: "For every box there is one order of all calls, true to what had ended before what began, in which the contract allows every answer, also where a process was killed on the way.",
    why: "Each operation may be right by itself and two of them wrong together. An order that nobody can find is a message lost, given twice, or counted twice.",
    steps: &[
        "four workers in two processes append, claim, ack, release, renew, peek, drop and reap two boxes at random and at the same time, and try acks that must be refused; every call and answer is noted with its place in time",
        "nine such races over one box or two, every second one with many drops, with all leases run out between them (by the caller's clock); in three of them the peer is killed (SIGKILL) inside a call: whether that call happened is left open",
        "this process claims and acks both boxes until null",
        "the whole history is searched for an order that the contract allows; where there is none, its smallest part without one is shown",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "drop-counts-then-empties",
            fault: "counts the messages of a dropped box in one transaction and empties it in another",
            make: shared::<CountsThenEmpties>,
        },
        Mutant {
            name: "ack-removes-by-count",
            fault: "finds out how many messages an ack removes, and removes so many from the front in another transaction",
            make: shared::<RemovesByCount>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut pair = t.pair()?;
    let boxes = vec![at("alpha"), at("beta")];
    let leases = Leases::default();
    let mut recorded = Recorded::new(t.caps().clock, t.granularity_ms());
    for race in 1..=RACES {
        // Races differ: what needs many drops, or one box that everybody wants, comes up in some.
        let is_stormy = race % 2 == 0;
        let count = if is_stormy { 1 } else { t.rng().usize(1..=boxes.len()) };
        let shift = Shift {
            boxes: boxes[..count].to_vec(),
            drops: if is_stormy { 48 } else { 6 },
            settles: [90, 140, 220][t.rng().usize(..3)],
            now_ms: t.now_ms(),
            ttl_ms: t.long_ttl_ms(),
            caps: t.caps().clone(),
            leases: leases.clone(),
        };
        let kill = (race % 3 == 0).then(|| KillAt {
            side: pair.b.side,
            after: t.rng().usize(CALLS / 2..CALLS),
            at: t.rng().f64() * BEYOND,
        });
        let lanes = workers(t, &pair, &shift, race);
        let raced = t.race(lanes, kill)?;
        recorded.race(&raced)?;
        if kill.is_some() {
            recorded.died(pair.b.side);
            t.survivor_answers(&pair.a)?;
            t.new_peer(&mut pair)?;
        }
        if t.is_caller_clock() {
            t.wait(shift.ttl_ms + t.granularity_ms())?;
        }
    }
    for of in &boxes {
        drain(t, &mut recorded, &pair.a, of)?;
    }
    match check_history(&recorded.calls, &recorded.rules, &Limits::default()) {
        Judged::True => Ok(()),
        Judged::Unknown(why) => {
            let message = format!("{why}; nobody knows whether there is one");
            Err(Stop::Fault(Fault::new(FaultKind::Limit, message)))
        }
        Judged::False(violation) => told(t, &violation),
    }
}

fn workers(
    t: &mut Trial<'_>,
    pair: &Pair,
    shift: &Shift,
    race: u32,
) -> Vec<(crate::backend::Side, Box<dyn Lane>)> {
    let mut lanes: Vec<(_, Box<dyn Lane>)> = Vec::new();
    for (store, word) in [(&pair.a, "a"), (&pair.b, "b")] {
        for worker in 1..=WORKERS {
            let owner = format!("{word}{worker}r{race}n");
            let seed = t.rng().u64(..);
            let worker = Worker::new(shift.clone(), &store.id, &owner, CALLS, seed);
            lanes.push((store.side, Box::new(worker)));
        }
    }
    lanes
}

/// Claims and acks until `null`. On the wall's clock a lease of a race may still live; its box then
/// keeps what it has, which is no breach.
fn drain(t: &mut Trial<'_>, recorded: &mut Recorded, store: &StoreRef, of: &Address) -> Verdict {
    for _ in 0..DRAIN_MAX {
        let mut params = json!({
            "store": store.id, "scope": of.scope.0, "handle": of.handle.0, "owner": "drainer",
            "ttlMs": t.long_ttl_ms(), "now": t.now_ms(),
        });
        let answer = recorded.call(t, store.side, "mailbox/claim", &params)?;
        let Answer::Result(result) = answer else { return Ok(()) };
        let (Some(lease), Some(messages)) =
            (result["lease"].as_str(), result["messages"].as_array())
        else {
            return Ok(());
        };
        let last = messages.last().map_or(Json::from(1), |message| message["seq"].clone());
        params["lease"] = json!(lease);
        params["upTo"] = last;
        if let Some(members) = params.as_object_mut() {
            members.shift_remove("ttlMs");
        }
        recorded.call(t, store.side, "mailbox/ack", &params)?;
    }
    let message = format!("{DRAIN_MAX} claims and acks did not empty {of}");
    Err(Stop::Fault(Fault::new(FaultKind::Limit, message)))
}

fn told(t: &mut Trial<'_>, violation: &Violation) -> Verdict {
    let lanes = violation.lanes();
    // The data of the picture is ours; if it had no JSON there would be none to draw.
    t.draw(serde_json::to_value(&lanes).unwrap_or_default());
    broken(
        format!(
            "there is an order of all calls that the contract allows; here {}",
            violation.blame.promised
        ),
        format!(
            "{} (see {}); no order of these {} calls is allowed, of {} on the box:\n{}",
            violation.blame.seen,
            violation.blame.clause,
            violation.calls.len(),
            violation.of_calls,
            lanes.text(PICTURE_CHARS)
        ),
    )
}

altered!(CountsThenEmpties {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let count = self.0.with_box(of, |b| b.messages.len() as u64);
        self.0.gap()?;
        self.0.drop_box(of, now)?;
        Ok(count)
    }
});

/// Whether the lease is the live one of that owner.
fn holds(model: &Model, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Option<Seq> {
    let now = model.time(now);
    model.with_box(of, |b| {
        let held = b.live(now).filter(|held| held.owner == owner && held.id == *lease);
        held.map(|held| held.delivered)
    })
}

altered!(RemovesByCount {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let Some(delivered) = holds(&self.0, of, owner, lease, now) else {
            return self.0.ack(of, owner, lease, up_to, now);
        };
        let up_to = up_to.min(delivered);
        let count = self.0.with_box(of, |b| b.messages.iter().filter(|m| m.seq <= up_to).count());
        self.0.gap()?;
        self.0.with_box(of, |b| {
            b.messages.drain(..count.min(b.messages.len()));
            b.lease = None;
        });
        Ok(count as u64)
    }
});
