//! Neither a tombstone nor an append refused for it touches a lease (axis: side effect).

use super::{attempt_twice, is_dead, on_refusal};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::{Model, not_held};
use crate::mailbox::moves::{Lease, at, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Message, Millis, Seq, Tombstones};
use crate::subject::Reply;
use crate::trial::{Answered, Stop, StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "lease-undisturbed",
    at: file!(),
    statement: "Side effect: a live lease on a tombstoned box, and on its sibling's, goes on as if no append had been refused: it fences until its expiry and no longer, and its holder can ack, renew, release and peek.",
    why: "A refused append that frees the lease lets a second consumer do the same work; one that prolongs it, or shuts its holder out, keeps the work from being done at all.",
    steps: &[
        "lease a box and its sibling, tombstone the box, let two appends be refused: both fence, both holders can ack",
        "let appends be refused halfway through a lease: it fences to its end and is gone after it, as a lease beside it does",
        "under a lease on a tombstoned box, peek shows its messages, renew and release are taken (where declared)",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "refusal-frees-the-lease",
            fault: "frees the box's lease when it refuses an append to a tombstoned recipient",
            make: subject::<RefusalFreesTheLease>,
        },
        Mutant {
            name: "refusal-frees-a-sibling",
            fault: "frees the leases of the other boxes of the scope when it refuses an append to a tombstoned recipient",
            make: subject::<RefusalFreesASibling>,
        },
        Mutant {
            name: "refusal-prolongs-the-lease",
            fault: "starts the box's lease anew when it refuses an append to a tombstoned recipient",
            make: subject::<RefusalProlongsTheLease>,
        },
        Mutant {
            name: "refusal-shortens-the-lease",
            fault: "lets the box's lease end a moment after it refused an append to a tombstoned recipient",
            make: subject::<RefusalShortensTheLease>,
        },
        Mutant {
            name: "tombstone-frees-the-lease",
            fault: "frees the box's lease when its recipient is tombstoned",
            make: subject::<TombstoneFreesTheLease>,
        },
        Mutant {
            name: "tombstone-stops-acks",
            fault: "refuses every ack on a tombstoned recipient's box",
            make: subject::<TombstoneStopsAcks>,
        },
        Mutant {
            name: "tombstone-stops-renewals",
            fault: "refuses every renewal on a tombstoned recipient's box",
            make: subject::<TombstoneStopsRenewals>,
        },
        Mutant {
            name: "tombstone-stops-releases",
            fault: "refuses every release on a tombstoned recipient's box",
            make: subject::<TombstoneStopsReleases>,
        },
        Mutant {
            name: "tombstone-blinds-peek",
            fault: "shows no message of a tombstoned recipient to a peek",
            make: subject::<TombstoneBlindsPeek>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    fences_and_acks(t)?;
    expires_when_it_would(t)?;
    holder_goes_on(t)
}

fn fences_and_acks(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (dead, sibling) = (at("alpha"), at("beta"));
    let held = leased(t, &store, &dead, t.long_ttl_ms())?;
    let other = leased(t, &store, &sibling, t.long_ttl_ms())?;
    t.tombstone(&store, &dead)?;
    attempt_twice(t, &store, &dead)?;
    for lease in [&held, &other] {
        t.fenced(&store, lease, "cid")?;
        t.ack(&store, lease, lease.last_seq())?;
    }
    Ok(())
}

/// Beside the tombstoned box a lease of another scope runs as the measure: where that one ends too
/// early or too late, the store's own clock is at fault, which `mailbox/core` judges.
fn expires_when_it_would(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (dead, beside) = (at("alpha"), Address::new("acme", "beta"));
    leased(t, &store, &beside, t.short_ttl_ms())?;
    let held = leased(t, &store, &dead, t.short_ttl_ms())?;
    t.tombstone(&store, &dead)?;
    t.wait_within(&held, 2)?;
    attempt_twice(t, &store, &dead)?;
    t.wait_within(&held, t.last_quarter())?;
    if t.claim(&store, &beside, "cid")?.is_some() {
        return Ok(());
    }
    t.fenced(&store, &held, "cid")?;
    t.wait_for_expiry(&held)?;
    if t.claim(&store, &beside, "cid")?.is_none() {
        return Ok(());
    }
    let found = t.claim(&store, &dead, "cid")?;
    t.when_dead(&held)?;
    match found {
        Some(_) => Ok(()),
        None => broken(
            "a lease on a tombstoned box ends at its expiry, whatever appends were refused under it",
            format!("the claim by cid on {dead} answered null after the lease had expired"),
        ),
    }
}

fn holder_goes_on(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let dead = at("alpha");
    let held = leased(t, &store, &dead, t.long_ttl_ms())?;
    t.tombstone(&store, &dead)?;
    attempt_twice(t, &store, &dead)?;
    if t.caps().peek {
        let found = t.peek(&store, &dead)?;
        if !held.messages.iter().all(|m| found.contains(m)) {
            return broken(
                "peek goes on showing the messages of a tombstoned box, leased ones too",
                format!("{} were leased, and peek showed {}", shown(&held.messages), shown(&found)),
            );
        }
    }
    if t.caps().renew {
        let answer = t.try_renew(&store, &dead, &held.owner, &held.id, held.ttl_ms)?;
        taken(t, &held, "renew", answer)?;
    }
    if t.caps().release {
        let answer = t.try_release(&store, &dead, &held.owner, &held.id)?;
        taken(t, &held, "release", answer)?;
    }
    Ok(())
}

fn taken(t: &Trial<'_>, held: &Lease, what: &str, answer: Answered<()>) -> Verdict {
    let Err(refusal) = answer else { return Ok(()) };
    t.while_live(held)?;
    broken(
        format!("{}, who holds the live lease of {}, may {what} it", held.owner, held.of),
        format!("the {what} was {refusal}"),
    )
}

fn leased(t: &mut Trial<'_>, store: &StoreRef, of: &Address, ttl_ms: u64) -> Result<Lease, Stop> {
    t.append_many(store, of, "earlier", 4)?;
    t.claim_some_for(store, of, "ann", ttl_ms, "what was appended is claimable")
}

/// Moves the expiry of the box's live lease, if it has one.
fn move_expiry(model: &Model, of: &Address, now: Millis, to: impl FnOnce(Millis) -> Millis) {
    model.with_box(of, |b| {
        if let Some(held) = b.lease.as_mut().filter(|held| now < held.expiry) {
            held.expiry = to(held.expiry);
        }
    });
}

altered!(RefusalFreesTheLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        on_refusal(&mut self.0, to, body, now, |model| model.with_box(to, |b| b.lease = None))
    }
});

altered!(RefusalFreesASibling {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        on_refusal(&mut self.0, to, body, now, |model| {
            for (of, b) in &mut model.state().boxes {
                if of.scope == to.scope && of != to {
                    b.lease = None;
                }
            }
        })
    }
});

altered!(RefusalProlongsTheLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        on_refusal(&mut self.0, to, body, now, |model| {
            move_expiry(model, to, time, |expiry| Millis(expiry.0.max(time.0 + 60_000)));
        })
    }
});

altered!(RefusalShortensTheLease {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        on_refusal(&mut self.0, to, body, now, |model| {
            move_expiry(model, to, time, |expiry| Millis(expiry.0.min(time.0 + 10)));
        })
    }
});

altered!(TombstoneFreesTheLease {
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        self.0.tombstone(of, now)?;
        self.0.with_box(of, |b| b.lease = None);
        Ok(())
    }
});

altered!(TombstoneStopsAcks {
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        if is_dead(&self.0, of) {
            return Err(not_held());
        }
        self.0.ack(of, owner, lease, up_to, now)
    }
});

altered!(TombstoneStopsRenewals {
    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        if is_dead(&self.0, of) {
            return Err(not_held());
        }
        self.0.renew(of, owner, lease, ttl_ms, now)
    }
});

altered!(TombstoneStopsReleases {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        if is_dead(&self.0, of) {
            return Err(not_held());
        }
        self.0.release(of, owner, lease, now)
    }
});

altered!(TombstoneBlindsPeek {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let found = self.0.peek(of, now)?;
        Ok(if is_dead(&self.0, of) { Vec::new() } else { found })
    }
});
