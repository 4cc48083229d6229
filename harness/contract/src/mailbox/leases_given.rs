//! The lease ids that one storage gives while its leases end in every way: none may come twice.

use super::moves::{Lease, at};
use super::store::Address;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use std::collections::BTreeMap;

/// The boxes that take turns; ids that are counted box by box meet here.
const HANDLES: [&str; 2] = ["alpha", "beta"];
/// How many messages each box gets before a lease on it.
const APPENDED_A_LEASE: usize = 2;
/// How many rounds of append, claim and ack come last: ids drawn from a small set meet by then.
const QUICK_ROUNDS: usize = 80;
/// The most claims that empty a box of its few messages.
const EMPTYING_CLAIMS_MAX: usize = 40;

/// How leases end, or what happens once they have ended.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Ack,
    PartialAck,
    Release,
    Drop,
    Expiry,
    ExpiryAndReap,
    EmptyAndReap,
    EmptyAndReopen,
}

impl Ending {
    const ALL: [Self; 8] = [
        Self::Ack,
        Self::PartialAck,
        Self::Release,
        Self::Drop,
        Self::Expiry,
        Self::ExpiryAndReap,
        Self::EmptyAndReap,
        Self::EmptyAndReopen,
    ];

    /// Whether the subject has what this ending takes; waiting a second time only by the caller's clock.
    fn is_possible(self, t: &Trial<'_>) -> bool {
        match self {
            Self::Release => t.caps().release,
            Self::ExpiryAndReap => t.is_caller_clock(),
            Self::EmptyAndReopen => t.caps().durable,
            Self::Ack | Self::PartialAck | Self::Drop | Self::Expiry | Self::EmptyAndReap => true,
        }
    }

    fn is_by_time(self) -> bool {
        matches!(self, Self::Expiry | Self::ExpiryAndReap)
    }
}

/// Every lease id given so far, and the box it was given for.
#[derive(Default)]
struct Given(BTreeMap<String, Address>);

impl Given {
    /// Notes a claim's lease, whose id must be new to the storage.
    fn note(&mut self, lease: &Lease) -> Verdict {
        let Some(before) = self.0.insert(lease.id.clone(), lease.of.clone()) else { return Ok(()) };
        broken(
            "a lease id is never given twice in the life of the storage, so that a settled lease stays settled",
            format!(
                "{}'s claim on {} was given the lease id {:?}, which an ended lease on {before} had",
                lease.owner, lease.of, lease.id
            ),
        )
    }
}

/// Ends leases on two boxes in every way, and then claims and acks in quick rounds.
pub(super) fn none_given_twice(t: &mut Trial<'_>) -> Verdict {
    let mut store = t.open()?;
    let mut given = Given::default();
    for ending in Ending::ALL {
        if ending.is_possible(t) {
            store = ended(t, store, &mut given, ending)?;
        }
    }
    let alpha = at(HANDLES[0]);
    for _ in 0..QUICK_ROUNDS {
        t.append(&store, &alpha, "quick")?;
        let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
        given.note(&lease)?;
        t.ack(&store, &lease, lease.last_seq())?;
    }
    Ok(())
}

/// Gives each box a lease and ends it; answers the store, which may be another handle by then.
fn ended(
    t: &mut Trial<'_>,
    store: StoreRef,
    given: &mut Given,
    ending: Ending,
) -> Result<StoreRef, Stop> {
    let ttl_ms = if ending.is_by_time() { t.short_ttl_ms() } else { t.long_ttl_ms() };
    let mut leases = Vec::new();
    for handle in HANDLES {
        let of = at(handle);
        t.append_many(&store, &of, "m", APPENDED_A_LEASE)?;
        let promised = "once the last lease has ended, what waits is claimable";
        let lease = t.claim_some_for(&store, &of, "ann", ttl_ms, promised)?;
        given.note(&lease)?;
        leases.push(lease);
    }
    for lease in &leases {
        end(t, &store, given, lease, ending)?;
    }
    match ending {
        Ending::ExpiryAndReap | Ending::EmptyAndReap => t.reap(&store)?,
        Ending::EmptyAndReopen => return t.reopen(&store),
        Ending::Ack | Ending::PartialAck | Ending::Release | Ending::Drop | Ending::Expiry => {}
    }
    Ok(store)
}

fn end(
    t: &mut Trial<'_>,
    store: &StoreRef,
    given: &mut Given,
    lease: &Lease,
    ending: Ending,
) -> Verdict {
    match ending {
        Ending::Ack => t.ack(store, lease, lease.last_seq()).map(|_| ()),
        Ending::PartialAck => {
            let first = lease.messages.first().map_or(0, |message| message.seq);
            t.ack(store, lease, first).map(|_| ())
        }
        // Whether the holder may release is judged by `mailbox/core/release`; the next claim waits for it.
        Ending::Release => match t.try_release(store, &lease.of, &lease.owner, &lease.id)? {
            Ok(()) => Ok(()),
            Err(_) => t.ack(store, lease, lease.last_seq()).map(|_| ()),
        },
        Ending::Drop => t.drop_box(store, &lease.of).map(|_| ()),
        // Long past it: the moment of expiry is judged by `mailbox/core/lease-lives-to-expiry`.
        Ending::Expiry | Ending::ExpiryAndReap => t.wait_past(lease),
        Ending::EmptyAndReap | Ending::EmptyAndReopen => {
            t.ack(store, lease, lease.last_seq())?;
            emptied(t, store, given, &lease.of)
        }
    }
}

/// Claims and acks until `null`; a box that does not end is judged by the clauses about acks.
fn emptied(t: &mut Trial<'_>, store: &StoreRef, given: &mut Given, of: &Address) -> Verdict {
    for _ in 0..EMPTYING_CLAIMS_MAX {
        let Some(lease) = t.claim(store, of, "ann")? else { break };
        given.note(&lease)?;
        t.ack(store, &lease, lease.last_seq())?;
    }
    Ok(())
}
