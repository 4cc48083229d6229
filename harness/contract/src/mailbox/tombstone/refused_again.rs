//! An append that was refused for a tombstone is refused again, however often it is tried (axis:
//! reason).

use super::{append_anyway, attempt, is_dead, must_refuse};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};
use std::collections::BTreeMap;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "refused-again",
    at: file!(),
    statement: "Reason: once an append to a tombstoned recipient was refused, every further one is refused, at once, after a claim, after a while and after a reap.",
    why: "Senders retry; a tombstone that wears off with the first refusal, a sweep or the clock only delays the lost message.",
    steps: &[
        "tombstone a recipient; an append is refused",
        "append again twice, after a claim, after a while, after a reap: refused each time",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "accepts-the-second-try",
            fault: "takes every append to a tombstoned recipient after the first refused one",
            make: subject::<AcceptsTheSecondTry>,
        },
        Mutant {
            name: "claim-lifts-the-tombstone",
            fault: "forgets a recipient's tombstone when its box is claimed and found empty",
            make: subject::<ClaimLiftsTheTombstone>,
        },
        Mutant {
            name: "tombstone-wears-off",
            fault: "forgets a tombstone a quarter of a second after its first refusal",
            make: subject::<TombstoneWearsOff>,
        },
        Mutant {
            name: "reap-lifts-tombstones",
            fault: "sweeps tombstones away when it reaps",
            make: subject::<ReapLiftsTombstones>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let of = at("alpha");
    t.tombstone(&store, &of)?;
    // That the first append is refused is judged by the other clauses of this axis.
    for _ in 0..2 {
        if attempt(t, &store, &of, "too late")?.is_err() {
            break;
        }
    }
    must_refuse(t, &store, &of, "also when it is tried again")?;
    must_refuse(t, &store, &of, "also when it is tried a third time")?;
    // What it answers is judged by `mailbox/core/empty-claim-null`.
    let ttl_ms = Json::from(t.long_ttl_ms());
    let _ = t.raw_claim(&store, &of, "ann", &ttl_ms, None, false)?;
    must_refuse(t, &store, &of, "also after a claim")?;
    t.wait(t.short_ttl_ms())?;
    must_refuse(t, &store, &of, "also after a while")?;
    t.reap(&store)?;
    must_refuse(t, &store, &of, "also after a reap")
}

altered!(AcceptsTheSecondTry remembers BTreeMap<Address, u32> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if !is_dead(&self.0, to) {
            return self.0.append(to, body, now);
        }
        let tries = self.1.entry(to.clone()).or_default();
        *tries += 1;
        if *tries > 1 {
            return append_anyway(&mut self.0, to, body, now);
        }
        self.0.append(to, body, now)
    }
});

altered!(ClaimLiftsTheTombstone {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        if claimed.is_none() && self.0.with_box(from, |b| b.messages.is_empty()) {
            self.0.state().tombstones.remove(from);
        }
        Ok(claimed)
    }
});

altered!(TombstoneWearsOff remembers BTreeMap<Address, Millis> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let time = self.0.time(now);
        if is_dead(&self.0, to) {
            let since = *self.1.entry(to.clone()).or_insert(time);
            if time.0 > since.0 + 250 {
                return append_anyway(&mut self.0, to, body, now);
            }
        }
        self.0.append(to, body, now)
    }
});

altered!(ReapLiftsTombstones {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        self.0.state().tombstones.clear();
        Ok(())
    }
});
