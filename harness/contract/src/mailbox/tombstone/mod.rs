//! `mailbox/tombstone`: what a store owes that sees its recipients being deleted.
//!
//! Three axes, and each clause says which it belongs to: the reason (appends are refused, on every
//! path, with one code), the side effect (a refused append changes nothing), the boundary (nobody but
//! the tombstoned recipient is refused). A clause judges its own axis: where an append is taken that
//! had to be refused, the clauses of the other axes count its message as appended and go on.

use crate::backend::Capability;
use crate::json::{Json, cut};
use crate::mailbox::model::Model;
use crate::mailbox::moves::Sent;
use crate::mailbox::store::{Address, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::suite::{Suite, Tier};
use crate::trial::{Answered, Stop, StoreRef, Trial, Verdict, broken};

/// The most claims taken from one box whose few messages are looked for.
const CLAIMS_MAX: usize = 20;

mod adds_nothing;
mod clears_nothing;
mod keys_injective;
mod lease_undisturbed;
mod one_code;
mod prefix_free;
mod refused_again;
mod refused_empty;
mod refused_nonempty;
mod refused_under_lease;
mod same_handle_other_scope_free;
mod sibling_free;

/// The suite.
pub static SUITE: Suite = Suite {
    id: "mailbox/tombstone",
    tier: Tier::T2,
    about: "what a store that sees a recipient being deleted owes its senders, its consumers and everybody beside it",
    needs: &[Capability::Mailbox, Capability::Tombstone],
    ceiling: "the state before the deletion, not the deletion: nothing here speaks of what is swept when, whether a tombstone outlives a drop or a reopening, or how the hook sets it",
    clauses: &[
        &refused_empty::CLAUSE,
        &refused_nonempty::CLAUSE,
        &refused_under_lease::CLAUSE,
        &refused_again::CLAUSE,
        &one_code::CLAUSE,
        &adds_nothing::CLAUSE,
        &clears_nothing::CLAUSE,
        &lease_undisturbed::CLAUSE,
        &sibling_free::CLAUSE,
        &same_handle_other_scope_free::CLAUSE,
        &prefix_free::CLAUSE,
        &keys_injective::CLAUSE,
    ],
};

/// An append that may be refused for a tombstone; -32602 is a fault, since nothing is wrong with the
/// arguments.
fn attempt(
    t: &mut Trial<'_>,
    store: &StoreRef,
    to: &Address,
    word: &str,
) -> Result<Answered<Sent>, Stop> {
    let body = Json::from(word);
    Ok(t.append_with(store, to, &body, false)?.map(|seq| Sent { seq, body }))
}

/// Two appends; whether they are refused is judged by the clauses about refusal.
fn attempt_twice(t: &mut Trial<'_>, store: &StoreRef, to: &Address) -> Verdict {
    for word in ["too late", "too late again"] {
        let _ = attempt(t, store, to, word)?;
    }
    Ok(())
}

/// What claims deliver from a box until one delivers nothing; whether leases and acks are right is
/// judged elsewhere.
fn delivered(t: &mut Trial<'_>, store: &StoreRef, of: &Address) -> Result<Vec<Sent>, Stop> {
    let (mut found, ttl_ms) = (Vec::new(), Json::from(t.long_ttl_ms()));
    for _ in 0..CLAIMS_MAX {
        let claimed = t.raw_claim(store, of, "drainer", &ttl_ms, None, false)?;
        let Ok(Some(lease)) = claimed else { break };
        if lease.messages.is_empty() {
            break;
        }
        found.extend(lease.messages.iter().cloned());
        if t.try_ack(store, of, "drainer", &lease.id, lease.last_seq())?.is_err() {
            break;
        }
    }
    Ok(found)
}

/// An append that has to be refused, to a box in the state that `state` says.
fn must_refuse(t: &mut Trial<'_>, store: &StoreRef, to: &Address, state: &str) -> Verdict {
    match attempt(t, store, to, "too late")? {
        Err(_) => Ok(()),
        Ok(sent) => broken(
            format!("an append to a tombstoned recipient is refused, {state}"),
            format!("the append to {to} was taken with the receipt {}", sent.seq),
        ),
    }
}

/// An append that has to be taken: `to` is not tombstoned.
fn must_take(
    t: &mut Trial<'_>,
    store: &StoreRef,
    to: &Address,
    dead: &Address,
    word: &str,
) -> Result<Sent, Stop> {
    match attempt(t, store, to, word)? {
        Ok(sent) => Ok(sent),
        Err(refusal) => broken(
            format!("the tombstone of {} refuses nobody else's mail", cut(&dead.to_string())),
            format!("the append to {} was {refusal}", cut(&to.to_string())),
        ),
    }
}

/// The model's refusal.
fn deleted() -> StoreError {
    StoreError::refused("recipient_deleted", "the recipient is being deleted")
}

/// Whether `of` is tombstoned, for a mutant that is open.
fn is_dead(model: &Model, of: &Address) -> bool {
    !model.is_closed() && model.state().tombstones.contains(of)
}

/// The model's append as though nobody had ever been tombstoned.
fn append_anyway(model: &mut Model, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
    let was_dead = model.state().tombstones.remove(to);
    let reply = model.append(to, body, now);
    if was_dead {
        model.state().tombstones.insert(to.clone());
    }
    reply
}

/// The model's append, and what `act` does where it was refused for a tombstone.
fn on_refusal(
    model: &mut Model,
    to: &Address,
    body: &Json,
    now: Millis,
    act: impl FnOnce(&mut Model),
) -> Reply<Seq> {
    let reply = model.append(to, body, now);
    if reply.is_err() && is_dead(model, to) {
        act(model);
    }
    reply
}

/// The model's append for a store that finds `to` tombstoned where `rule` matches any tombstone.
fn refusing_where(
    model: &mut Model,
    to: &Address,
    body: &Json,
    now: Millis,
    rule: impl Fn(&Address) -> bool,
) -> Reply<Seq> {
    if !model.is_closed() && model.state().tombstones.iter().any(rule) {
        return Err(deleted());
    }
    model.append(to, body, now)
}
