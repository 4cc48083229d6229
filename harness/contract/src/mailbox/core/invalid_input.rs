//! Arguments without meaning are refused, and nothing happens.

use crate::clause::{Clause, Mutant};
use crate::json::{Json, excerpt};
use crate::mailbox::model::Held;
use crate::mailbox::moves::{at, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, Handle, LeaseId, MailboxStore, Millis, Scope, Seq,
};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "invalid-input",
    at: file!(),
    statement: "An empty scope or handle, a ttlMs that is not above 0 or not a number, and a max that is not above 0 are refused loudly, and nothing changes.",
    why: "A store that guesses at nonsense leases for no time, delivers everything for a max of -1, or files mail under the empty name, where nobody looks.",
    steps: &[
        "append m1 to alpha",
        "append, claim, drop (and peek) with an empty scope, and with an empty handle: refused",
        "claim alpha with ttlMs 0, -1, a word, null, \"5\", true, [], {}: refused; with max 0, -1: refused",
        "bob claims alpha: m1, at once and alone",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "empty-handle-is-a-box",
            fault: "serves the empty handle like any other",
            make: subject::<EmptyHandle>,
        },
        Mutant {
            name: "empty-scope-is-default",
            fault: "takes an empty scope for the default scope",
            make: subject::<EmptyScope>,
        },
        Mutant {
            name: "zero-ttl-is-a-minute",
            fault: "takes a ttl that is not above 0 for a minute",
            make: subject::<ZeroTtl>,
        },
        Mutant {
            name: "negative-max-is-all",
            fault: "takes a max that is not above 0 for no limit",
            make: subject::<NegativeMax>,
        },
        Mutant {
            name: "refused-claim-leases",
            fault: "refuses a max of 0 after it has leased the box",
            make: subject::<RefusedClaimLeases>,
        },
        Mutant {
            name: "nonsense-claims-null",
            fault: "answers null to a claim with a ttl that is not above 0",
            make: subject::<ClaimsNull>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let sent = t.append_many(&store, &alpha, "m", 1)?;
    let mut taken = Vec::new();
    for (method, params, reason) in nonsense(t, &store) {
        match t.ask::<Json>(store.side, method, params.clone(), true)? {
            Err(refusal) => t.expect_reason(method, &refusal, &[reason]),
            Ok(result) => {
                taken.push(format!("{method} {} answered {}", what(&params), excerpt(&result)))
            }
        }
    }
    if !taken.is_empty() {
        return broken(
            "empty names, a ttlMs or max that is not above 0, and a ttlMs that is no number are refused loudly",
            taken.join("; "),
        );
    }
    let promised = "a refused call changes nothing: the box is claimable at once";
    let lease = t.claim_some(&store, &alpha, "bob", promised)?;
    if lease.messages.len() == 1 && lease.messages == sent {
        return Ok(());
    }
    broken(
        "a refused call changes nothing: the box holds exactly m1",
        format!("it held {}", shown(&lease.messages)),
    )
}

/// What is nonsense about a call, in a few words.
fn what(params: &Json) -> String {
    for name in ["scope", "handle"] {
        if params[name] == "" {
            return format!("with an empty {name}");
        }
    }
    match params.get("max") {
        Some(max) => format!("with max {max}"),
        None => format!("with ttlMs {}", params["ttlMs"]),
    }
}

fn nonsense(t: &mut Trial<'_>, store: &StoreRef) -> Vec<(&'static str, Json, &'static str)> {
    let (now, ttl_ms) = (t.now_ms(), t.long_ttl_ms());
    let mut calls = Vec::new();
    for (scope, handle) in [("", "alpha"), ("default", "")] {
        let on = json!({ "store": store.id, "scope": scope, "handle": handle });
        let with = |more: Json| merged(&on, more, now);
        calls.push(("mailbox/append", with(json!({ "body": "m2" })), "invalid_name"));
        calls.push((
            "mailbox/claim",
            with(json!({ "owner": "ann", "ttlMs": ttl_ms })),
            "invalid_name",
        ));
        calls.push(("mailbox/drop", with(json!({})), "invalid_name"));
        if t.caps().peek {
            calls.push(("mailbox/peek", with(json!({})), "invalid_name"));
        }
    }
    let on = json!({ "store": store.id, "scope": "default", "handle": "alpha", "owner": "ann" });
    for ttl in [
        json!(0),
        json!(-1),
        json!("soon"),
        json!(null),
        json!("5"),
        json!(true),
        json!([]),
        json!({}),
    ] {
        calls.push(("mailbox/claim", merged(&on, json!({ "ttlMs": ttl }), now), "invalid_ttl"));
    }
    for max in [json!(0), json!(-1)] {
        calls.push((
            "mailbox/claim",
            merged(&on, json!({ "ttlMs": ttl_ms, "max": max }), now),
            "invalid_max",
        ));
    }
    calls
}

fn merged(base: &Json, more: Json, now: u64) -> Json {
    let mut params = base.clone();
    if let (Some(params), Json::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more);
    }
    params["now"] = json!(now);
    params
}

/// The recipient with every empty name replaced, so that the model takes it.
fn named(of: &Address) -> Address {
    let or =
        |name: &str, other: &str| if name.is_empty() { other.to_owned() } else { name.to_owned() };
    Address { scope: Scope(of.scope.0.clone()), handle: Handle(or(&of.handle.0, "nobody")) }
}

altered!(EmptyHandle {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.append(&named(to), body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(&named(from), ask, now)
    }
});

/// The recipient with an empty scope taken for the default one.
fn in_default(of: &Address) -> Address {
    if of.scope.0.is_empty() { at(&of.handle.0) } else { of.clone() }
}

altered!(EmptyScope {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.append(&in_default(to), body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(&in_default(from), ask, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.0.drop_box(&in_default(of), now)
    }
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        self.0.ack(&in_default(of), owner, lease, up_to, now)
    }
});

altered!(ZeroTtl {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let ttl_ms = if ask.ttl_ms <= 0 { 60_000 } else { ask.ttl_ms };
        self.0.claim(from, &ClaimAsk { ttl_ms, ..ask.clone() }, now)
    }
});

altered!(NegativeMax {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(from, &ClaimAsk { max: ask.max.filter(|max| *max > 0), ..ask.clone() }, now)
    }
});

altered!(RefusedClaimLeases {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now);
        if claimed.is_err() && ask.max == Some(0) {
            let expiry = crate::mailbox::model::expiry(self.0.time(now), ask.ttl_ms)?;
            let held = Held { id: self.0.mint_lease(), owner: ask.owner.clone(), expiry, delivered: Seq(0) };
            self.0.with_box(from, |b| b.lease = Some(held));
        }
        claimed
    }
});

altered!(ClaimsNull {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if ask.ttl_ms <= 0 { Ok(None) } else { self.0.claim(from, ask, now) }
    }
});
