//! Reaping, whatever it finds expired in one scope, loses and frees nothing in another.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::{BoxState, Model};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reap-isolated",
    at: file!(),
    statement: "Reaping sweeps the whole store, yet an expired lease in one scope lets it free no live lease, lose no message and restart no numbering in another.",
    why: "Housekeeping runs for all tenants at once; where it mixes them up, one tenant's crashed worker costs another tenant a fence or a message.",
    steps: &[
        "in four scopes with the same handle: one lease that expires, one that lives, one box nobody claimed, one drained",
        "let the short lease expire and reap twice",
        "the living lease fences and its holder can ack; every box holds what it held, the expired one too",
        "the next seq of the drained box is above its earlier receipts",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "reap-frees-leases-by-handle",
            fault: "frees, when it reaps an expired lease, the leases of the same handle in every scope",
            make: subject::<ReapFreesLeasesByHandle>,
        },
        Mutant {
            name: "reap-loses-unclaimed-scopes",
            fault: "clears out, when it reaps, the boxes without a lease of every scope but the default one",
            make: subject::<ReapLosesUnclaimedScopes>,
        },
        Mutant {
            name: "reap-settles-expired-scopes",
            fault: "takes, when it reaps an expired lease outside the default scope, its messages for done",
            make: subject::<ReapSettlesExpiredScopes>,
        },
        Mutant {
            name: "reap-restarts-numbers-of-scopes",
            fault: "forgets, when it reaps, the last seq of the empty boxes of every scope but the default one",
            make: subject::<ReapRestartsNumbersOfScopes>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let in_scope = |scope: &str| Address::new(scope, "inbox");
    let (acme, globex) = (in_scope("acme"), in_scope("globex"));
    let (idle, quiet) = (in_scope("umbrella"), in_scope("initech"));
    let ours = t.append_many(&store, &acme, "acme", 2)?;
    let theirs = t.append_many(&store, &globex, "globex", 2)?;
    let unclaimed = t.append_many(&store, &idle, "umbrella", 2)?;
    let drained = t.append_many(&store, &quiet, "initech", 3)?;
    t.drain(&store, &quiet)?;
    let promised = "what was appended is claimable in its scope";
    let held = t.claim_some(&store, &globex, "bob", promised)?;
    let ttl_ms = t.short_ttl_ms();
    let dead = t.claim_some_for(&store, &acme, "ann", ttl_ms, promised)?;

    t.wait_past(&dead)?;
    t.reap(&store)?;
    t.when_dead(&dead)?;
    t.reap(&store)?;

    t.fenced(&store, &held, "cid")?;
    t.ack(&store, &held, held.last_seq())?;
    let promised = "reaping loses no message of any scope";
    let rest = &theirs[held.messages.len().min(theirs.len())..];
    t.holds_exactly(&store, &globex, rest, promised)?;
    t.holds_exactly(&store, &idle, &unclaimed, promised)?;
    t.holds_exactly(
        &store,
        &acme,
        &ours,
        "what was leased in one scope is claimable there after its lease expired and was reaped",
    )?;
    let last = drained.iter().map(|m| m.seq).max().unwrap_or(0);
    let seq = t.append(&store, &quiet, Json::from("after the reap"))?;
    if seq > last {
        return Ok(());
    }
    broken(
        "reaping sets no box's numbering back",
        format!("after {quiet} had given out {last}, its next receipt was {seq}"),
    )
}

/// The model's reap, with `act` on the boxes outside the default scope before it.
fn reaping(model: &mut Model, now: Millis, act: impl Fn(&mut BoxState, Millis)) -> Reply<()> {
    let time = model.time(now);
    if !model.is_closed() {
        for (of, b) in &mut model.state().boxes {
            if of.scope.0 != "default" {
                act(b, time);
            }
        }
    }
    model.reap(now)
}

altered!(ReapFreesLeasesByHandle {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let time = self.0.time(now);
        let expired = |b: &BoxState| b.lease.is_some() && b.live(time).is_none();
        let found: Vec<Address> = {
            let state = self.0.state();
            state.boxes.iter().filter(|(_, b)| expired(b)).map(|(of, _)| of.clone()).collect()
        };
        for (of, b) in &mut self.0.state().boxes {
            if found.iter().any(|dead| dead.handle == of.handle && dead != of) {
                b.lease = None;
            }
        }
        self.0.reap(now)
    }
});

altered!(ReapLosesUnclaimedScopes {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        reaping(&mut self.0, now, |b, _| {
            if b.lease.is_none() {
                b.messages.clear();
            }
        })
    }
});

altered!(ReapSettlesExpiredScopes {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        reaping(&mut self.0, now, |b, time| {
            if let Some(held) = b.lease.clone().filter(|_| b.live(time).is_none()) {
                b.messages.retain(|m| m.seq > held.delivered);
            }
        })
    }
});

altered!(ReapRestartsNumbersOfScopes {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        reaping(&mut self.0, now, |b, _| {
            if b.messages.is_empty() {
                b.last_seq = 0;
            }
        })
    }
});
