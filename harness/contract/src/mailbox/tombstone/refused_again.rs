//! An append that was refused for a tombstone is refused again, however often it is tried (axis:
//! reason).

use super::{append_anyway, attempt, is_dead, must_refuse};
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};
use serde_json::json;
use std::collections::BTreeMap;

/// How often a sender tries in a row.
const TRIES: u32 = 12;
/// How long the longest body is that every store takes from a sender, in bytes.
const LONG_BODY_BYTES: usize = 1_024;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "refused-again",
    at: file!(),
    statement: "Reason: once an append to a tombstoned recipient was refused, every further one is refused, however often and with whatever body, at once, after a claim, after a while and after a reap.",
    why: "Senders retry; a tombstone that wears off with the first refusal, a sweep or the clock only delays the lost message.",
    steps: &[
        "tombstone a recipient; an append is refused",
        "append again twelve times, then with a body of 1 KiB, null, an object, a list and a number: refused each time",
        "append again after a claim, after a while, after a reap: refused each time",
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
            name: "accepts-the-eleventh-try",
            fault: "takes an append to a tombstoned recipient after ten refusals",
            make: subject::<AcceptsTheEleventhTry>,
        },
        Mutant {
            name: "accepts-a-null-body",
            fault: "takes an append to a tombstoned recipient whose body is null",
            make: subject::<AcceptsANullBody>,
        },
        Mutant {
            name: "accepts-an-object-body",
            fault: "takes an append to a tombstoned recipient whose body is an object",
            make: subject::<AcceptsAnObjectBody>,
        },
        Mutant {
            name: "accepts-a-long-body",
            fault: "takes an append to a tombstoned recipient whose body is long",
            make: subject::<AcceptsALongBody>,
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
    for _ in 0..TRIES {
        must_refuse(t, &store, &of, "however often it is tried again")?;
    }
    refused_with_any_body(t, &store, &of)?;
    // What it answers is judged by `mailbox/core/empty-claim-null`.
    let ttl_ms = Json::from(t.long_ttl_ms());
    let _ = t.raw_claim(&store, &of, "ann", &ttl_ms, None, false)?;
    must_refuse(t, &store, &of, "also after a claim")?;
    t.wait(t.short_ttl_ms())?;
    must_refuse(t, &store, &of, "also after a while")?;
    t.reap(&store)?;
    must_refuse(t, &store, &of, "also after a reap")
}

/// Appends other bodies than the plain word; a store may refuse some of them as bodies too.
fn refused_with_any_body(t: &mut Trial<'_>, store: &StoreRef, of: &Address) -> Verdict {
    let long = Json::from("x".repeat(LONG_BODY_BYTES));
    for body in [long, Json::Null, json!({ "word": "too late" }), json!(["too late"]), json!(7)] {
        if let Ok(seq) = t.try_append(store, of, &body)? {
            return broken(
                "an append to a tombstoned recipient is refused, whatever its body",
                format!(
                    "the append of {} to {of} was taken with the receipt {seq}",
                    crate::json::excerpt(&body)
                ),
            );
        }
    }
    Ok(())
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

altered!(AcceptsTheEleventhTry remembers BTreeMap<Address, u32> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if is_dead(&self.0, to) {
            let tries = self.1.entry(to.clone()).or_default();
            *tries += 1;
            if *tries > 10 {
                return append_anyway(&mut self.0, to, body, now);
            }
        }
        self.0.append(to, body, now)
    }
});

/// Stores that take an append to a tombstoned recipient whose body is as `odd` says.
macro_rules! accepts {
    ($($name:ident: |$body:ident| $odd:expr;)*) => {
        $(altered!($name {
            fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
                let odd: fn(&Json) -> bool = |$body| $odd;
                if is_dead(&self.0, to) && odd(body) {
                    return append_anyway(&mut self.0, to, body, now);
                }
                self.0.append(to, body, now)
            }
        });)*
    };
}

accepts! {
    AcceptsANullBody: |body| body.is_null();
    AcceptsAnObjectBody: |body| body.is_object();
    AcceptsALongBody: |body| body.as_str().is_some_and(|text| text.len() >= LONG_BODY_BYTES);
}
