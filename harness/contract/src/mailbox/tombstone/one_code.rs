//! Every refusal for a tombstone carries one and the same code of its own (axis: reason).

use super::{attempt, is_dead};
use crate::call::Refusal;
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::{BoxState, State};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, MailboxStore, Message, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The contract's codes that mean something else.
const TAKEN_CODES: [&str; 7] = [
    "invalid_name",
    "invalid_body",
    "invalid_ttl",
    "invalid_max",
    "too_large",
    "lease_not_held",
    "closed",
];

/// How long the longest body is that every store takes from a sender, in bytes.
const LONG_BODY_BYTES: usize = 1_024;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "one-code",
    at: file!(),
    statement: "Reason: every append that is refused for a tombstone is refused with one and the same reason code, which no other refusal of the contract uses.",
    why: "A sender decides by the code whether to retry, to mend its call or to give up; a code that changes with the state of the box, or that means something else, makes it do the wrong one.",
    steps: &[
        "tombstone recipients with boxes never written, waiting, leased, dropped, and in another scope, and append to each",
        "append again, after the lease expired, after an ack, after a reap",
        "append a body of 1 KiB, null, an object: where a living recipient takes it, its refusal counts",
        "append again after a reopening (durable); where it is refused, that counts",
        "every refusal so far has a reason code; it is the same one, and none that the contract gives another meaning",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "code-closed",
            fault: "refuses appends to a tombstoned recipient as though the store were closed",
            make: subject::<CodeClosed>,
        },
        Mutant {
            name: "code-invalid-name",
            fault: "refuses appends to a tombstoned recipient as though its name were invalid",
            make: subject::<CodeInvalidName>,
        },
        Mutant {
            name: "code-missing",
            fault: "refuses appends to a tombstoned recipient without a reason code",
            make: subject::<CodeMissing>,
        },
        Mutant {
            name: "code-by-recipient",
            fault: "puts the recipient's name into the reason code",
            make: subject::<CodeByRecipient>,
        },
        Mutant {
            name: "other-code-when-never-written",
            fault: "uses another code where the box was never written",
            make: subject::<OtherCodeWhenNeverWritten>,
        },
        Mutant {
            name: "other-code-when-nonempty",
            fault: "uses another code where messages wait unleased",
            make: subject::<OtherCodeWhenNonempty>,
        },
        Mutant {
            name: "other-code-when-emptied",
            fault: "uses another code where the box was emptied",
            make: subject::<OtherCodeWhenEmptied>,
        },
        Mutant {
            name: "other-code-under-lease",
            fault: "uses another code while a lease on the box lives",
            make: subject::<OtherCodeUnderLease>,
        },
        Mutant {
            name: "other-code-after-expiry",
            fault: "uses another code where the box's lease has expired",
            make: subject::<OtherCodeAfterExpiry>,
        },
        Mutant {
            name: "other-code-again",
            fault: "uses another code for every try after the first",
            make: subject::<OtherCodeAgain>,
        },
        Mutant {
            name: "other-code-for-a-long-body",
            fault: "uses another code where the refused body is long",
            make: subject::<OtherCodeForALongBody>,
        },
        Mutant {
            name: "other-code-for-an-object",
            fault: "uses another code where the refused body is an object",
            make: subject::<OtherCodeForAnObject>,
        },
        Mutant {
            name: "other-code-for-null",
            fault: "uses another code where the refused body is null",
            make: subject::<OtherCodeForNull>,
        },
        Mutant {
            name: "other-code-after-reopen",
            fault: "uses another code once the storage was opened again",
            make: subject::<OtherCodeAfterReopen>,
        },
    ],
    never_sole: None,
};

/// A refusal, and the path on which it was met.
type Met = (&'static str, Refusal);

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let mut met = met_on_every_path(t, &store)?;
    meet_with_other_bodies(t, &store, &mut met)?;
    if t.caps().durable {
        let store = t.reopen(&store)?;
        for (handle, path) in [
            ("alpha", "after a reopening, on a never-written box"),
            ("beta", "after a reopening, on an emptied box"),
        ] {
            meet(t, &store, &at(handle), path, &mut met)?;
        }
    }
    let Some((first_path, first)) = met.first() else {
        return broken(
            "an append to a tombstoned recipient is refused, with one code",
            "no append to any tombstoned recipient was refused",
        );
    };
    for (path, refusal) in &met {
        let reason = refusal.reason.as_str();
        if reason.is_empty() {
            return broken(
                "a refusal for a tombstone says its reason code in data.reason",
                format!("{path} the append was {refusal}"),
            );
        }
        if TAKEN_CODES.contains(&reason) {
            return broken(
                "a refusal for a tombstone has a reason code of its own",
                format!("{path} the reason was {reason:?}, which means something else"),
            );
        }
        if reason != first.reason {
            return broken(
                "every refusal for a tombstone has the same reason code",
                format!("{first_path} it was {:?}, and {path} it was {reason:?}", first.reason),
            );
        }
    }
    Ok(())
}

/// Appends on every path. Where one is taken, the clauses about refusal judge it.
fn met_on_every_path(t: &mut Trial<'_>, store: &StoreRef) -> Result<Vec<Met>, Stop> {
    let mut met = Vec::new();
    let (fresh, full, leased, dropped) = (at("alpha"), at("beta"), at("gamma"), at("delta"));
    let foreign = Address::new("acme", "alpha");
    for of in [&full, &leased, &dropped] {
        t.append_many(store, of, "earlier", 2)?;
    }
    let ttl_ms = t.short_ttl_ms();
    let promised = "what was appended is claimable";
    let lease = t.claim_some_for(store, &leased, "ann", ttl_ms, promised)?;
    t.drop_box(store, &dropped)?;
    for of in [&leased, &fresh, &full, &dropped, &foreign] {
        t.tombstone(store, of)?;
    }
    meet(t, store, &leased, "under a lease", &mut met)?;
    t.while_live(&lease)?;
    meet(t, store, &fresh, "on a never-written box", &mut met)?;
    meet(t, store, &full, "on a box where messages wait", &mut met)?;
    meet(t, store, &dropped, "on a dropped box", &mut met)?;
    meet(t, store, &foreign, "in another scope", &mut met)?;
    meet(t, store, &fresh, "on a second try", &mut met)?;
    t.wait_for_expiry(&lease)?;
    meet(t, store, &leased, "after the lease expired", &mut met)?;
    // Whether a tombstoned box is claimed and acked as before is judged by other clauses.
    while let Some(lease) = t.claim(store, &full, "bob")? {
        if t.try_ack(store, &full, "bob", &lease.id, lease.last_seq())?.is_err() {
            break;
        }
    }
    meet(t, store, &full, "after everything was acked", &mut met)?;
    t.reap(store)?;
    meet(t, store, &fresh, "after a reap, on a never-written box", &mut met)?;
    meet(t, store, &leased, "after a reap, on a box where messages wait", &mut met)?;
    t.drop_box(store, &leased)?;
    meet(t, store, &leased, "after a drop of the tombstoned box", &mut met)?;
    Ok(met)
}

/// Appends bodies that are no plain word; only where a living recipient takes such a body is the
/// refusal one for the tombstone.
fn meet_with_other_bodies(t: &mut Trial<'_>, store: &StoreRef, met: &mut Vec<Met>) -> Verdict {
    let (dead, living) = (at("alpha"), at("living"));
    for (path, body) in [
        ("with a body of 1 KiB", Json::from("x".repeat(LONG_BODY_BYTES))),
        ("with null for a body", Json::Null),
        ("with an object for a body", json!({ "word": "too late" })),
    ] {
        if t.try_append(store, &living, &body)?.is_err() {
            continue;
        }
        if let Err(refusal) = t.append_with(store, &dead, &body, false)? {
            met.push((path, refusal));
        }
    }
    Ok(())
}

fn meet(
    t: &mut Trial<'_>,
    store: &StoreRef,
    of: &Address,
    path: &'static str,
    met: &mut Vec<Met>,
) -> Verdict {
    if let Err(refusal) = attempt(t, store, of, "too late")? {
        met.push((path, refusal));
    }
    Ok(())
}

/// The answer to an append, with `code` in place of the model's where the recipient is tombstoned.
fn coded(reply: Reply<Seq>, dead: bool, code: impl Into<Cow<'static, str>>) -> Reply<Seq> {
    reply.map_err(|error| if dead { refused(code) } else { error })
}

fn refused(code: impl Into<Cow<'static, str>>) -> StoreError {
    StoreError::Refused { reason: code.into(), message: "the recipient is being deleted".into() }
}

/// Mutants that refuse with a code of their own where `when` holds of the tombstoned box.
macro_rules! codes {
    ($($name:ident: $code:literal when $when:expr;)*) => {
        $(altered!($name {
            fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
                let time = self.0.time(now);
                let when: fn(&BoxState, Millis) -> bool = $when;
                let other = is_dead(&self.0, to) && self.0.with_box(to, |b| when(b, time));
                coded(self.0.append(to, body, now), other, $code)
            }
        });)*
    };
}

codes! {
    CodeClosed: "closed" when |_, _| true;
    CodeInvalidName: "invalid_name" when |_, _| true;
    CodeMissing: "" when |_, _| true;
    OtherCodeWhenNeverWritten: "no_such_recipient" when |b, _| b.last_seq == 0;
    OtherCodeWhenNonempty: "box_frozen" when |b, now| {
        !b.messages.is_empty() && b.live(now).is_none()
    };
    OtherCodeWhenEmptied: "no_such_recipient" when |b, _| b.last_seq > 0 && b.messages.is_empty();
    OtherCodeUnderLease: "busy" when |b, now| b.live(now).is_some();
    OtherCodeAfterExpiry: "stale" when |b, now| b.lease.is_some() && b.live(now).is_none();
}

altered!(CodeByRecipient {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let dead = is_dead(&self.0, to);
        coded(self.0.append(to, body, now), dead, format!("{}_deleted", to.handle.0))
    }
});

altered!(OtherCodeAgain remembers BTreeSet<Address> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let again = is_dead(&self.0, to) && !self.1.insert(to.clone());
        coded(self.0.append(to, body, now), again, "already_told")
    }
});

/// Mutants that refuse with a code of their own where `odd` holds of the refused body.
macro_rules! body_codes {
    ($($name:ident: $code:literal when |$body:ident| $odd:expr;)*) => {
        $(altered!($name {
            fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
                let odd: fn(&Json) -> bool = |$body| $odd;
                let other = is_dead(&self.0, to) && odd(body);
                coded(self.0.append(to, body, now), other, $code)
            }
        });)*
    };
}

body_codes! {
    OtherCodeForALongBody: "quota" when |body| {
        body.as_str().is_some_and(|text| text.len() >= LONG_BODY_BYTES)
    };
    OtherCodeForAnObject: "odd_body" when |body| body.is_object();
    OtherCodeForNull: "odd_body" when |body| body.is_null();
}

altered!(OtherCodeAfterReopen {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let other = is_dead(&self.0, to) && !self.0.state().scrap.is_empty();
        coded(self.0.append(to, body, now), other, "gone")
    }
    fn reopened(state: &mut State) {
        let mark = Message { seq: Seq(0), body: Json::Null };
        state.scrap.push((Address::new("opened", "again"), mark));
    }
});
