//! Which published clause an answer breaks that no state allows.

use super::act::{Act, Call, Got, Outcome};
use super::relation::{Core, Held, Kind, Op, surely_dead};
use super::spec::{Odd, State};
use crate::mailbox::delivery::shown;

/// What an answer broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The published clause.
    pub clause: &'static str,
    /// What the contract promises at this point.
    pub promised: String,
    /// What was seen.
    pub seen: String,
}

/// What a state does not show of how it came about, for the choice between clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// How the last lease was ended by a call.
    ended: Ended,
    /// Whether the last claim found an empty box, and none was given anything since.
    empty_claim: bool,
    /// Whether the lease that is held was renewed.
    renewed: bool,
    /// Everything up to here was gone when the box was last dropped.
    gone_at_drop: u32,
    /// The leases that were given back.
    released: Vec<u32>,
    /// The leases that a drop has ended.
    dropped: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ended {
    #[default]
    Never,
    ByAck,
    ByPartialAck,
    ByRelease,
    ByDrop,
}

impl Past {
    /// Notes that `op` led from one state to another.
    pub fn note(&mut self, before: &Core, after: &Core, op: &Op) {
        match op.kind {
            Kind::Null { .. } if after.waiting() == 0 => self.empty_claim = true,
            Kind::Delivery { .. } => (self.empty_claim, self.renewed) = (false, false),
            Kind::Acked { .. } if before.lease != after.lease => {
                let partial = before.lease.is_some_and(|held| after.gone < held.upto);
                self.ended = if partial { Ended::ByPartialAck } else { Ended::ByAck };
            }
            Kind::Released { lease, .. } => {
                self.ended = Ended::ByRelease;
                self.released.push(lease);
            }
            Kind::Renewed { .. } => self.renewed = true,
            Kind::Dropped { .. } => {
                (self.ended, self.gone_at_drop) = (Ended::ByDrop, after.gone);
                self.dropped.extend(before.lease.and_then(|held| held.id));
            }
            Kind::Append { .. }
            | Kind::Null { .. }
            | Kind::Acked { .. }
            | Kind::Refused { .. }
            | Kind::Peeked { .. }
            | Kind::Nothing
            | Kind::Impossible
            | Kind::Maybe(_) => {}
        }
    }
}

/// A clause with what it promises.
type Broken = (&'static str, &'static str);

/// Names the clause. The first row that fits speaks:
///
/// | answer | state | clause |
/// |---|---|---|
/// | any call but ack, release, renew refused | | the clause of the call's plain work |
/// | receipt out of range; not above all earlier; the same, where messages went | | `core/seq-increases`; `core/seq-increases`; `core/seq-never-reused` |
/// | a body that was not appended; a message that nobody appended | | `core/body-fidelity`; `core/fifo` |
/// | `null` though messages wait | lease surely expired; ended by partial ack, release, drop; an empty claim before; otherwise | `core/lease-lives-to-expiry`; `core/ack-partial`, `core/release`, `core/drop-empties`; `core/no-ghost-lease`; `core/fifo` |
/// | a delivery | to the holder; to another while the fence stands (renewed) | `core/one-live-lease`; `core/claim-fences` (`core/renew`) |
/// | a delivery of what is gone | by ack; by drop | `core/ack-removes`; `core/drop-empties` |
/// | a delivery that leaves out the front | after partial ack; after expiry; otherwise | `core/ack-partial`; `core/expiry-redelivers`; `core/fifo` |
/// | more than `max`; a lease id for the second time | | `core/max-is-prefix`; `ownership/double-ack` |
/// | ack taken | not its lease; expired; overtaken; settled; before a drop; given back; no lease there | `ownership/foreign-ack`, `stale-ack-unclaimed`, `stale-ack-after-reclaim`, `double-ack`, `ack-after-drop`; `core/release`; `ownership/no-lease-ack` |
/// | ack of a live lease that counts more than was delivered; otherwise wrongly | | `ownership/over-reach`; `core/ack-removes` |
/// | the holder's ack, release, renewal refused | | `core/lease-lives-to-expiry` (`core/renew`), `core/release`, `core/renew` |
/// | release or renewal taken from another | | `core/release`, `core/renew` |
/// | peek shows what is gone; otherwise wrongly; drop counts wrongly | | `core/ack-removes`; `core/peek-inert`; `core/drop-empties` |
pub(super) fn blame_for(state: &State, call: &Call) -> Blame {
    let (clause, promised) = broken(state, call);
    let seen = format!("{} was answered {}; {}", call.asked(), call.came(), described(state));
    Blame { clause, promised: promised.to_owned(), seen }
}

fn broken(state: &State, call: &Call) -> Broken {
    if let Some(refused) = harmless_refused(call) {
        return refused;
    }
    let known = match state.learned(call) {
        Ok(known) => known,
        Err(odd) => return odd_clause(state, &odd),
    };
    let Some(mut state) = known.into_iter().next() else {
        return ("mailbox/core/fifo", "what is delivered was appended");
    };
    let op = state.read(call);
    match &op.kind {
        Kind::Append { .. } => {
            ("mailbox/core/seq-increases", "receipts rise in the order of the appends")
        }
        Kind::Null { .. } => null(&state, &op),
        Kind::Delivery { .. } => delivery(&state, &op),
        Kind::Acked { .. } => acked(&state, &op),
        Kind::Refused { .. } => refused(&state, call),
        Kind::Released { .. } => {
            ("mailbox/core/release", "only the holder of the live lease may release it")
        }
        Kind::Renewed { .. } => {
            ("mailbox/core/renew", "only the holder of the live lease may renew it")
        }
        Kind::Peeked { .. } => peeked(&state, call),
        Kind::Dropped { .. } => {
            ("mailbox/core/drop-empties", "dropped says how many messages the drop removed")
        }
        Kind::Impossible | Kind::Nothing | Kind::Maybe(_) => odd_answer(call),
    }
}

/// These histories use names and bodies that every store takes.
fn harmless_refused(call: &Call) -> Option<Broken> {
    let Outcome::Refused(_) = call.outcome else { return None };
    Some(match call.act {
        Act::Append { .. } => ("mailbox/core/fifo", "append takes a harmless body"),
        Act::Claim { .. } => {
            ("mailbox/core/empty-claim-null", "claim answers, and does not refuse")
        }
        Act::Peek => ("mailbox/core/peek-inert", "peek answers, and does not refuse"),
        Act::Drop => ("mailbox/core/drop-empties", "drop answers, and does not refuse"),
        Act::Reap => ("mailbox/core/reap-harmless", "reap answers, and does not refuse"),
        Act::Ack { .. } | Act::Release { .. } | Act::Renew { .. } => return None,
    })
}

fn odd_clause(state: &State, odd: &Odd) -> Broken {
    match odd {
        Odd::Range(_) => ("mailbox/core/seq-increases", "a seq is an integer in 1..2^53-1"),
        Odd::NotAbove(_) if state.core().gone > 0 => (
            "mailbox/core/seq-never-reused",
            "a seq is above every earlier one of its box, whatever was acked, reaped or dropped",
        ),
        Odd::NotAbove(_) => {
            ("mailbox/core/seq-increases", "a receipt is above every earlier one of its box")
        }
        Odd::Body(_) => ("mailbox/core/body-fidelity", "a body comes back as it was appended"),
        Odd::Nowhere(message) => {
            let seqs = &state.reader().ledger.seqs;
            let gone = state.core().gone as usize;
            if gone > 0 && seqs.get(gone - 1).is_some_and(|seq| message.seq <= *seq) {
                return ("mailbox/core/ack-removes", "what went is never delivered again");
            }
            ("mailbox/core/fifo", "what is delivered was appended, under the seq of its receipt")
        }
    }
}

fn null(state: &State, op: &Op) -> Broken {
    if let Some(held) = &state.core().lease
        && surely_dead(held, op)
    {
        return (
            "mailbox/core/lease-lives-to-expiry",
            "once a lease has expired, what waits is claimable",
        );
    }
    match state.past.ended {
        _ if state.past.empty_claim => {
            ("mailbox/core/no-ghost-lease", "a claim that found nothing fences nothing")
        }
        Ended::ByPartialAck => {
            ("mailbox/core/ack-partial", "what an ack left is claimable at once")
        }
        Ended::ByRelease => ("mailbox/core/release", "what was released is claimable at once"),
        Ended::ByDrop => {
            ("mailbox/core/drop-empties", "what was appended after a drop is claimable at once")
        }
        Ended::ByAck | Ended::Never => {
            ("mailbox/core/fifo", "a waiting message that nothing fences is delivered")
        }
    }
}

fn delivery(state: &State, op: &Op) -> Broken {
    let Kind::Delivery { owner, max, lease, from, len, .. } = op.kind else {
        return ("mailbox/core/fifo", "a delivery is what waits, from the front");
    };
    let (core, ledger) = (state.core(), &state.reader().ledger);
    if let Some(held) = &core.lease
        && ledger.surely_live(held, op)
    {
        if held.owner == owner {
            let promised = "the holder who claims again gets null, or its lease with its messages";
            return ("mailbox/core/one-live-lease", promised);
        }
        let clause =
            if state.past.renewed { "mailbox/core/renew" } else { "mailbox/core/claim-fences" };
        return (clause, "while a lease lives, every other claim answers null");
    }
    if from < core.gone {
        if from < state.past.gone_at_drop {
            return ("mailbox/core/drop-empties", "what a drop removed is never delivered again");
        }
        return ("mailbox/core/ack-removes", "what was acked is never delivered again");
    }
    if from > core.gone {
        return match (&core.lease, state.past.ended) {
            (Some(_), _) => (
                "mailbox/core/expiry-redelivers",
                "after a lease has expired, its messages are delivered again, from the front",
            ),
            (None, Ended::ByPartialAck) => {
                ("mailbox/core/ack-partial", "what an ack left is delivered again, in order")
            }
            (None, _) => ("mailbox/core/fifo", "a delivery begins with the oldest waiting message"),
        };
    }
    if len > max {
        return ("mailbox/core/max-is-prefix", "a claim delivers at most max messages");
    }
    if ledger.leases[lease as usize].given > 0 {
        return ("mailbox/ownership/double-ack", "a lease id is never given twice");
    }
    ("mailbox/core/fifo", "a delivery is what waits, from the front, in order")
}

fn acked(state: &State, op: &Op) -> Broken {
    let Kind::Acked { owner, lease, count, .. } = op.kind else {
        return ("mailbox/core/ack-removes", "acked says how many messages the ack removed");
    };
    let (core, note) = (state.core(), &state.reader().ledger.leases[lease as usize]);
    if let Some(held) = core.held_by(owner, lease) {
        return own_ack(core, held, op, count);
    }
    let refused = "an ack without the live lease is refused";
    match (note.owner, &core.lease) {
        (None, None) => ("mailbox/ownership/no-lease-ack", refused),
        (None, Some(_)) => ("mailbox/ownership/foreign-ack", refused),
        (Some(holder), _) if holder != owner => ("mailbox/ownership/foreign-ack", refused),
        (Some(_), _) if note.settled > 0 || note.maybe_settled => {
            ("mailbox/ownership/double-ack", "a settled lease acks nothing")
        }
        (Some(_), _) if state.past.released.contains(&lease) => {
            ("mailbox/core/release", "a lease that was given back acks nothing")
        }
        (Some(_), _) if state.past.dropped.contains(&lease) => {
            ("mailbox/ownership/ack-after-drop", "a lease from before a drop acks nothing")
        }
        (Some(_), _) => ("mailbox/ownership/stale-ack-after-reclaim", refused),
    }
}

fn own_ack(core: &Core, held: &Held, op: &Op, count: u32) -> Broken {
    if surely_dead(held, op) {
        let promised = "an ack with an expired lease is refused, though nobody claimed since";
        return ("mailbox/ownership/stale-ack-unclaimed", promised);
    }
    if count > held.upto - core.gone {
        return ("mailbox/ownership/over-reach", "an ack removes only what was delivered");
    }
    ("mailbox/core/ack-removes", "acked says how many messages the ack removed")
}

fn refused(state: &State, call: &Call) -> Broken {
    if matches!(call.act, Act::Release { .. }) {
        return ("mailbox/core/release", "the holder of a live lease may release it");
    }
    if matches!(call.act, Act::Renew { .. }) {
        return ("mailbox/core/renew", "the holder of a live lease may renew it");
    }
    if state.past.renewed {
        return ("mailbox/core/renew", "a renewed lease lives to its new end: its holder may ack");
    }
    let promised = "a lease lives to its expiry: until then its holder may ack";
    ("mailbox/core/lease-lives-to-expiry", promised)
}

fn peeked(state: &State, call: &Call) -> Broken {
    let (core, seqs) = (state.core(), &state.reader().ledger.seqs);
    let gone = seqs[..core.gone as usize].last().copied().unwrap_or(0);
    if let Outcome::Ok(Got::Messages(messages)) = &call.outcome
        && messages.first().is_some_and(|first| first.seq <= gone)
    {
        return ("mailbox/core/ack-removes", "what was acked is gone for good");
    }
    ("mailbox/core/peek-inert", "peek shows everything that was not acked, leased or not")
}

/// An answer that fits no state because of its own form.
fn odd_answer(call: &Call) -> Broken {
    match (&call.act, &call.outcome) {
        (Act::Claim { .. }, Outcome::Ok(Got::Delivery { messages, .. })) if messages.is_empty() => {
            (
                "mailbox/core/empty-claim-null",
                "a claim answers null, or a lease with at least one message",
            )
        }
        (Act::Claim { .. }, _) => {
            ("mailbox/core/fifo", "a delivery is what waits, from the front, in order")
        }
        (Act::Ack { .. }, _) => ("mailbox/core/ack-removes", "acked is a count of messages"),
        (Act::Drop, _) => ("mailbox/core/drop-empties", "dropped is a count of messages"),
        (Act::Peek, _) => {
            ("mailbox/core/peek-inert", "peek shows everything that was not acked, in order")
        }
        (Act::Append { .. }, _) => ("mailbox/core/seq-increases", "an append answers its seq"),
        (Act::Release { .. }, _) => ("mailbox/core/release", "a release answers that it was done"),
        (Act::Renew { .. }, _) => ("mailbox/core/renew", "a renewal answers that it was done"),
        (Act::Reap, _) => ("mailbox/core/reap-harmless", "reap answers that it was done"),
    }
}

/// The state in a few words, for the sentence of what was seen.
fn described(state: &State) -> String {
    let waiting = state.waiting_messages();
    let lease = match &state.core().lease {
        None => "no lease".to_owned(),
        Some(held) => format!("a lease of {}", state.reader().owner_name(held.owner)),
    };
    format!("before it the box held {}, and {lease}", shown(&waiting))
}
