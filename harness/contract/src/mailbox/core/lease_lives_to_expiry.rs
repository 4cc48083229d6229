//! A lease ends when it said it would: not before, not after.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{Lease, at};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict};
use std::collections::BTreeMap;

/// Lifetimes that no rounding, floor or ceiling leaves as they are, from a second to more than a day
/// (milliseconds); on the caller's clock each is judged to the millisecond.
const ODD_TTLS_MS: [u64; 4] = [1_001, 61_235, 7_200_001, 90_000_003];
/// A lease id that no store gave.
const INVENTED: &str = "no-such-lease";
/// What others may do to a leased box without moving the lease's end.
const TOUCHES: [Touch; 7] = [
    Touch::Append,
    Touch::Peek,
    Touch::Reap,
    Touch::VainClaim,
    Touch::ForeignAck,
    Touch::ForeignRelease,
    Touch::ForeignRenew,
];

/// See [`TOUCHES`].
#[derive(Clone, Copy)]
enum Touch {
    Append,
    Peek,
    Reap,
    VainClaim,
    ForeignAck,
    ForeignRelease,
    ForeignRenew,
}

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "lease-lives-to-expiry",
    at: file!(),
    statement: "The fence of a lease holds up to its expiry and is gone after it, to the store's declared granularity.",
    why: "A fence that falls early lets two consumers in; one that stays keeps mail from everybody after a crash.",
    steps: &[
        "append m1; ann claims for a ttl",
        "at the last moment at which the lease surely lives, bob claims: null",
        "at the first moment at which it has surely ended, bob claims: m1",
        "on the caller's clock the same on fresh boxes for ttls of 1001, 61235, 7200001 and 90000003 ms",
        "the same again while others touch the leased box: an append, a peek, a reap, a vain claim, and an ack, a release and a renewal that are refused (each on a box of its own on the caller's clock, all on one on the wall's; peek, release and renew where declared)",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "lease-outlives-its-expiry",
            fault: "keeps the fence up for a tenth of the ttl longer",
            make: subject::<Outlives>,
        },
        Mutant {
            name: "lease-falls-early",
            fault: "lets the fence fall after half of the ttl",
            make: subject::<FallsEarly>,
        },
        Mutant {
            name: "fence-lingers",
            fault: "answers null to claims for a tenth of the ttl after the lease has ended for its holder",
            make: subject::<Lingers>,
        },
        Mutant {
            name: "ttl-in-whole-seconds",
            fault: "rounds every ttl up to whole seconds",
            make: subject::<WholeSeconds>,
        },
        Mutant {
            name: "ttl-out-of-range-is-halved",
            fault: "lets a lease of less than half a second or more than an hour live half as long",
            make: subject::<OutOfRange>,
        },
        Mutant {
            name: "append-prolongs-the-lease",
            fault: "adds half a minute to a live lease with each append",
            make: subject::<AppendProlongs>,
        },
        Mutant {
            name: "peek-prolongs-the-lease",
            fault: "adds half a minute to a live lease with each peek",
            make: subject::<PeekProlongs>,
        },
        Mutant {
            name: "reap-prolongs-the-lease",
            fault: "adds half a minute to every live lease with each reap",
            make: subject::<ReapProlongs>,
        },
        Mutant {
            name: "refused-ack-shortens-the-lease",
            fault: "halves what a lease has left while it refuses an ack",
            make: subject::<RefusedAckShortens>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let ttl_ms = t.short_ttl_ms();
    lives(t, &store, &at("alpha"), ttl_ms, &[])?;
    if !t.is_caller_clock() {
        // Once, all together: on the wall's clock each lease is a wait.
        return lives(t, &store, &at("beta"), ttl_ms, &TOUCHES);
    }
    for (i, ttl_ms) in ODD_TTLS_MS.into_iter().enumerate() {
        let ttl_ms = t.judgeable_ttl_ms(ttl_ms);
        lives(t, &store, &at(&format!("beta{i}")), ttl_ms, &[])?;
    }
    for (i, touch) in TOUCHES.into_iter().enumerate() {
        lives(t, &store, &at(&format!("gamma{i}")), ttl_ms, &[touch])?;
    }
    Ok(())
}

/// A lease of `ttl_ms` on a fresh box holds to its end and no longer, though it is touched meanwhile.
fn lives(
    t: &mut Trial<'_>,
    store: &StoreRef,
    of: &Address,
    ttl_ms: u64,
    touches: &[Touch],
) -> Verdict {
    t.append(store, of, "m1")?;
    let lease = t.claim_some_for(store, of, "ann", ttl_ms, "a waiting message is claimable")?;
    if t.is_caller_clock() {
        t.wait_within(&lease, 1)?;
    }
    for touch in touches {
        if !left_alone(t, store, &lease, *touch)? {
            return Ok(());
        }
    }
    let late = t.last_quarter();
    t.wait_within(&lease, late)?;
    t.fenced(store, &lease, "bob")?;
    t.wait_for_expiry(&lease)?;
    let promised = "once a lease has expired the box is claimable, whatever was asked meanwhile";
    t.claim_some(store, of, "bob", promised).map(|_| ())
}

/// Touches the box. `false` where the store took what it had to refuse: what follows from that is
/// for the clause about that refusal to say.
fn left_alone(
    t: &mut Trial<'_>,
    store: &StoreRef,
    lease: &Lease,
    touch: Touch,
) -> Result<bool, Stop> {
    let of = &lease.of;
    match touch {
        Touch::Append => t.append(store, of, "m2").map(|_| true),
        Touch::Peek if t.caps().peek => t.peek(store, of).map(|_| true),
        Touch::Reap => t.reap(store).map(|()| true),
        Touch::VainClaim => t.fenced(store, lease, "cid").map(|()| true),
        Touch::ForeignAck => {
            let up_to = lease.last_seq();
            let by_bob = t.try_ack(store, of, "bob", &lease.id, up_to)?;
            Ok(by_bob.is_err() && t.try_ack(store, of, "ann", INVENTED, up_to)?.is_err())
        }
        Touch::ForeignRelease if t.caps().release => {
            let by_bob = t.try_release(store, of, "bob", &lease.id)?;
            Ok(by_bob.is_err() && t.try_release(store, of, "ann", INVENTED)?.is_err())
        }
        Touch::ForeignRenew if t.caps().renew => {
            let ttl_ms = t.long_ttl_ms();
            let by_bob = t.try_renew(store, of, "bob", &lease.id, ttl_ms)?;
            Ok(by_bob.is_err() && t.try_renew(store, of, "ann", INVENTED, ttl_ms)?.is_err())
        }
        Touch::Peek | Touch::ForeignRelease | Touch::ForeignRenew => Ok(true),
    }
}

altered!(Outlives {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(from, &ClaimAsk { ttl_ms: ask.ttl_ms + ask.ttl_ms / 10, ..ask.clone() }, now)
    }
});

altered!(FallsEarly {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(from, &ClaimAsk { ttl_ms: (ask.ttl_ms + 1) / 2, ..ask.clone() }, now)
    }
});

altered!(Lingers remembers BTreeMap<Address, u64> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let ended = self.0.with_box(from, |b| b.lease.as_ref().map(|held| held.expiry));
        if let (Some(ended), Some(ttl_ms)) = (ended, self.1.get(from))
            && time >= ended
            && time.0 < ended.0 + ttl_ms / 10
        {
            return Ok(None);
        }
        let claimed = self.0.claim(from, ask, now)?;
        if claimed.is_some() {
            self.1.insert(from.clone(), u64::try_from(ask.ttl_ms).unwrap_or(0));
        }
        Ok(claimed)
    }
});

altered!(WholeSeconds {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let ttl_ms = ask.ttl_ms.saturating_add(999) / 1_000 * 1_000;
        self.0.claim(from, &ClaimAsk { ttl_ms, ..ask.clone() }, now)
    }
});

altered!(OutOfRange {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let in_range = (500..=3_600_000).contains(&ask.ttl_ms);
        let ttl_ms = if in_range { ask.ttl_ms } else { ask.ttl_ms / 2 };
        self.0.claim(from, &ClaimAsk { ttl_ms, ..ask.clone() }, now)
    }
});

/// Half a minute more for the lease of `of`, if it lives at `now`.
fn prolong(model: &Model, of: &Address, now: Millis) {
    let time = model.time(now);
    model.with_box(of, |b| {
        if let Some(held) = b.lease.as_mut().filter(|held| time < held.expiry) {
            held.expiry = Millis(held.expiry.0 + 30_000);
        }
    });
}

altered!(AppendProlongs {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        prolong(&self.0, to, now);
        self.0.append(to, body, now)
    }
});

altered!(PeekProlongs {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        prolong(&self.0, of, now);
        self.0.peek(of, now)
    }
});

altered!(ReapProlongs {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let boxes: Vec<Address> = self.0.state().boxes.keys().cloned().collect();
        for of in boxes {
            prolong(&self.0, &of, now);
        }
        self.0.reap(now)
    }
});

altered!(RefusedAckShortens {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now);
        let time = self.0.time(now);
        if acked.is_err() {
            self.0.with_box(of, |b| {
                if let Some(held) = b.lease.as_mut().filter(|held| time < held.expiry) {
                    held.expiry = Millis(time.0 + (held.expiry.0 - time.0) / 2);
                }
            });
        }
        acked
    }
});
