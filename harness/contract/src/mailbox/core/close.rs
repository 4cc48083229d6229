//! A closed store says so.

use crate::clause::{Clause, Mutant};
use crate::json::{Json, excerpt};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, MailboxStore, Millis, Seq};
use crate::subject::{Reply, StoreError};
use crate::trial::{StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "close",
    at: file!(),
    statement: "Closing twice is fine; any operation after close is a loud refusal, never null and never an empty list.",
    why: "\"Closed\" answered as \"empty\" makes a consumer stop while mail waits; an append taken by a closed store is mail thrown away.",
    steps: &[
        "append m1; close; close again: both fine",
        "append, claim, ack, reap, drop, and the declared ones of peek, release, renew: each is refused",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "closed-claims-null",
            fault: "answers null to a claim after close",
            make: subject::<ClaimsNull>,
        },
        Mutant {
            name: "closed-takes-appends",
            fault: "gives receipts after close",
            make: subject::<TakesAppends>,
        },
        Mutant {
            name: "closed-reaps",
            fault: "answers reap after close as if all were well",
            make: subject::<Reaps>,
        },
        Mutant {
            name: "second-close-refused",
            fault: "refuses to be closed twice",
            make: subject::<RefusesSecondClose>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    t.append(&store, &at("alpha"), "m1")?;
    t.close(&store)?;
    t.close(&store)?;
    for (method, params) in operations(t, &store) {
        match t.ask::<Json>(store.side, method, params, true)? {
            Err(refusal) => t.expect_reason(method, &refusal, &["closed"]),
            Ok(result) => {
                return broken(
                    "an operation on a closed store is refused loudly",
                    format!("{method} after close answered {}", excerpt(&result)),
                );
            }
        }
    }
    Ok(())
}

fn operations(t: &mut Trial<'_>, store: &StoreRef) -> Vec<(&'static str, Json)> {
    let now = t.now_ms();
    let ttl_ms = t.long_ttl_ms();
    let on = |more: Json| {
        let mut params = json!({ "store": store.id, "scope": "default", "handle": "alpha" });
        if let (Some(params), Json::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        params["now"] = json!(now);
        params
    };
    let lease = json!({ "owner": "ann", "lease": "no-such-lease" });
    let mut operations = vec![
        ("mailbox/append", on(json!({ "body": "m2" }))),
        ("mailbox/claim", on(json!({ "owner": "ann", "ttlMs": ttl_ms }))),
        ("mailbox/ack", on(json!({ "owner": "ann", "lease": "no-such-lease", "upTo": 1 }))),
        ("mailbox/reap", json!({ "store": store.id, "now": now })),
        ("mailbox/drop", on(json!({}))),
    ];
    if t.caps().peek {
        operations.push(("mailbox/peek", on(json!({}))));
    }
    if t.caps().release {
        operations.push(("mailbox/release", on(lease)));
    }
    if t.caps().renew {
        operations.push((
            "mailbox/renew",
            on(json!({ "owner": "ann", "lease": "no-such-lease", "ttlMs": ttl_ms })),
        ));
    }
    operations
}

altered!(ClaimsNull {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if self.0.is_closed() { Ok(None) } else { self.0.claim(from, ask, now) }
    }
});

altered!(TakesAppends {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if self.0.is_closed() {
            return Ok(self.0.with_box(to, |b| {
                b.last_seq += 1;
                Seq(b.last_seq)
            }));
        }
        self.0.append(to, body, now)
    }
});

altered!(Reaps {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        if self.0.is_closed() { Ok(()) } else { self.0.reap(now) }
    }
});

altered!(RefusesSecondClose {
    fn close(&mut self) -> Reply<()> {
        if self.0.is_closed() {
            return Err(StoreError::refused("closed", "this store is closed already"));
        }
        self.0.close();
        Ok(())
    }
});
