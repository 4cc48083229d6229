//! Two recipients that differ at all, in scope or in handle, are two boxes.

use crate::clause::{Clause, Mutant};
use crate::json::{Json, cut, same};
use crate::mailbox::model::Model;
use crate::mailbox::moves::{Sent, shown};
use crate::mailbox::mutant::{Altered, altered, subject};
use crate::mailbox::names::{self, CarelessKey, Cleaned, Joined, Lowercased, Trimmed};
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use crate::subject::{Reply, StoreError};
use crate::trial::{StoreRef, Trial, Verdict, broken};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

/// How many random pairs a run adds to the known ones.
const GENERATED_PAIRS: usize = 48;
/// How many refused recipients an advisory names.
const REFUSED_SHOWN_MAX: usize = 5;

/// How many messages of a wrong box a violation names.
const FOUND_SHOWN_MAX: usize = 3;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "keys-injective",
    at: file!(),
    statement: "Distinct pairs of scope and handle are distinct boxes: a store may refuse a name before anything changes, and never folds two into one.",
    why: "A key made by joining, cleaning, lowering or cutting names hands one recipient's mail to another, and nobody sees it until two such names meet.",
    steps: &[
        "append one message to each of some hundred recipients that careless stores confuse, swapped and random ones among them; a refused one must stay without a message",
        "drain every box: it holds its own message and no other",
        "in a fresh store, take the pairs that are known to be folded: a lease on one fences nothing on the other, and a drop of one empties nothing of the other",
    ],
    needs: None,
    check,
    mutants: &[
        folded::<Joined<':'>>("keys-joined-by-colon", "joins scope and handle with a colon"),
        folded::<Joined<'/'>>("keys-joined-by-slash", "joins scope and handle with a slash"),
        folded::<Joined<'-'>>("keys-joined-by-dash", "joins scope and handle with a dash"),
        folded::<Joined<'\0'>>("keys-joined-by-nul", "joins scope and handle with a NUL"),
        folded::<names::JsonByHand>(
            "keys-quoted-by-hand",
            "puts scope and handle between quotes and escapes none in them",
        ),
        folded::<names::HalfEscaped>(
            "keys-half-escaped",
            "escapes the separator in names but not the escape character",
        ),
        folded::<names::Unordered>(
            "keys-unordered",
            "keeps scope and handle as a set of two names, without their order",
        ),
        folded::<Lowercased>("keys-lowercased", "keeps names in lower case"),
        folded::<names::Composed>("keys-composed", "keeps names in composed Unicode form"),
        folded::<Trimmed>("keys-trimmed", "cuts blanks off the edges of names"),
        folded::<names::DotsStripped>("keys-without-last-dots", "cuts dots off the end of names"),
        folded::<names::Truncated>("keys-cut-at-255", "keeps the first 255 bytes of names"),
        folded::<names::CutAtNul>("keys-cut-at-nul", "ends names at their first NUL"),
        folded::<names::PercentDecoded>("keys-percent-decoded", "decodes percent signs in names"),
        folded::<Cleaned>(
            "keys-cleaned",
            "replaces whatever a file system might dislike in names by an underscore",
        ),
        Mutant {
            name: "claim-trims-names",
            fault: "cuts blanks off the edges of names when it claims and acks, and keeps them when it appends",
            make: subject::<ClaimTrims>,
        },
        Mutant {
            name: "claim-by-pattern",
            fault: "takes a percent sign in a claimed handle for a wildcard",
            make: subject::<ClaimByPattern>,
        },
        Mutant {
            name: "prototype-key",
            fault: "keeps boxes as members of a plain object, where __proto__ takes a message and keeps none",
            make: subject::<PrototypeKey>,
        },
        Mutant {
            name: "null-device",
            fault: "writes a handle such as NUL.tar.gz to a device that keeps nothing",
            make: subject::<NullDevice>,
        },
        Mutant {
            name: "refused-after-the-write",
            fault: "refuses a handle with a slash after it stored the message under the cleaned name",
            make: subject::<RefusedAfterTheWrite>,
        },
        Mutant {
            name: "leases-in-lower-case",
            fault: "looks leases up by names in lower case, so that a claim is fenced by a twin's lease",
            make: subject::<LeasesInLowerCase>,
        },
        Mutant {
            name: "drop-in-lower-case",
            fault: "drops every box whose names are the dropped ones in lower case",
            make: subject::<DropInLowerCase>,
        },
    ],
    never_sole: None,
};

const fn folded<K: CarelessKey>(name: &'static str, fault: &'static str) -> Mutant {
    Mutant { name, fault, make: subject::<Folded<K>> }
}

fn check(t: &mut Trial<'_>) -> Verdict {
    let pairs = names::joins().into_iter().chain(names::swapped());
    let pairs = pairs.chain(names::generated(t.rng(), GENERATED_PAIRS));
    let all: BTreeSet<Address> =
        pairs.flat_map(|(a, b)| [a, b]).chain(names::look_alikes()).collect();
    let store = t.open()?;
    let (mut written, mut refused) = (Vec::new(), Vec::new());
    for (i, to) in all.into_iter().enumerate() {
        let body = Json::from(format!("message {i}"));
        match t.try_append(&store, &to, &body)? {
            Ok(_) => written.push((to, body)),
            Err(refusal) => {
                t.expect_reason("mailbox/append", &refusal, &["invalid_name"]);
                refused.push(to);
            }
        }
    }
    advise_of_refused(t, &refused, written.len());
    for to in &refused {
        stays_without(t, &store, to)?;
    }
    for (to, body) in &written {
        holds_its_own(t, &store, to, body, &written)?;
    }
    let store = t.open()?;
    names::classics().iter().try_for_each(|(a, b)| undisturbed(t, &store, a, b))
}

fn advise_of_refused(t: &mut Trial<'_>, refused: &[Address], written: usize) {
    if refused.is_empty() {
        return;
    }
    let shown: Vec<String> =
        refused.iter().take(REFUSED_SHOWN_MAX).map(|to| cut(&to.to_string())).collect();
    t.advise(format!(
        "{} of {} recipients were refused by name, so nothing was judged of them: {}, …",
        refused.len(),
        refused.len() + written,
        shown.join(", ")
    ));
}

/// A refused name was refused before anything changed, and reads nobody else's box.
fn stays_without(t: &mut Trial<'_>, store: &StoreRef, to: &Address) -> Verdict {
    let ttl_ms = Json::from(t.long_ttl_ms());
    match t.raw_claim(store, to, "eve", &ttl_ms, None, true)? {
        Ok(None) | Err(_) => Ok(()),
        Ok(Some(lease)) => broken(
            "a name is refused before anything changed, on every path",
            format!(
                "the append to {} was refused, and a claim on it delivered {}",
                cut(&to.to_string()),
                shown(&lease.messages)
            ),
        ),
    }
}

fn holds_its_own(
    t: &mut Trial<'_>,
    store: &StoreRef,
    to: &Address,
    body: &Json,
    written: &[(Address, Json)],
) -> Verdict {
    let drained = t.drain(store, to)?;
    if matches!(drained.as_slice(), [only] if same(&only.body, body)) {
        return Ok(());
    }
    let whose = |message: &Sent| {
        let of = written.iter().find(|(_, body)| same(body, &message.body));
        of.map_or_else(
            || format!("the message {} of a refused name", message.body),
            |(of, _)| format!("the message of {}", cut(&of.to_string())),
        )
    };
    let mut held: Vec<String> = drained.iter().take(FOUND_SHOWN_MAX).map(whose).collect();
    if drained.is_empty() {
        held.push("nothing".to_owned());
    } else if drained.len() > FOUND_SHOWN_MAX {
        held.push(format!("{} more", drained.len() - FOUND_SHOWN_MAX));
    }
    broken(
        format!("{} holds the one message appended to it", cut(&to.to_string())),
        format!("it held {}", held.join(" and ")),
    )
}

/// Leases and drops keep the two apart as well. Where a name is refused there is nothing to judge.
fn undisturbed(t: &mut Trial<'_>, store: &StoreRef, a: &Address, b: &Address) -> Verdict {
    let (first, second) = (Json::from("first"), Json::from("second"));
    for to in [a, b] {
        if t.try_append(store, to, &first)?.is_err() {
            return Ok(());
        }
    }
    let twins = format!("{} and {}", cut(&a.to_string()), cut(&b.to_string()));
    let promised = format!("of {twins}, a lease on one fences nothing on the other");
    let held = t.claim_some(store, a, "ann", &promised)?;
    let other = t.claim_some(store, b, "bob", &promised)?;
    t.ack(store, &other, other.last_seq())?;
    t.fenced(store, &held, "cid")?;
    t.ack(store, &held, held.last_seq())?;
    for to in [a, b] {
        if t.try_append(store, to, &second)?.is_err() {
            return Ok(());
        }
    }
    if t.try_drop(store, a)?.is_err() {
        return Ok(());
    }
    let drained = t.drain(store, b)?;
    if matches!(drained.as_slice(), [only] if same(&only.body, &second)) {
        return Ok(());
    }
    broken(
        format!("of {twins}, a drop of the first takes nothing from the second"),
        format!("after the drop the second held {}", shown(&drained)),
    )
}

/// A store that knows its boxes by a careless key, and its tombstones by the true one.
struct Folded<K>(Model, PhantomData<fn() -> K>);

impl<K: CarelessKey> Folded<K> {
    fn key(of: &Address) -> Address {
        if of.scope.0.is_empty() || of.handle.0.is_empty() {
            return of.clone();
        }
        let Address { scope, handle } = K::key(of);
        Address::new(&format!("box {}", scope.0), &format!("box {}", handle.0))
    }
}

impl<K: CarelessKey> Altered for Folded<K> {
    fn over(model: Model) -> Self {
        Self(model, PhantomData)
    }
    fn model(&mut self) -> &mut Model {
        &mut self.0
    }
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if self.0.state().tombstones.contains(to) {
            return self.0.append(to, body, now);
        }
        self.0.append(&Self::key(to), body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(&Self::key(from), ask, now)
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.0.ack(&Self::key(of), owner, lease, up_to, now)
    }
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.0.release(&Self::key(of), owner, lease, now)
    }
    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        self.0.renew(&Self::key(of), owner, lease, ttl_ms, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        self.0.peek(&Self::key(of), now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.0.drop_box(&Self::key(of), now)
    }
}

altered!(ClaimTrims {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(&Trimmed::key(from), ask, now)
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.0.ack(&Trimmed::key(of), owner, lease, up_to, now)
    }
});

altered!(ClaimByPattern remembers BTreeMap<LeaseId, Address> {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let stem = from.handle.0.split('%').next().unwrap_or_default();
        let found = {
            let state = self.0.state();
            let mut waiting = state.boxes.iter().filter(|(_, b)| !b.messages.is_empty());
            waiting.find(|(of, _)| of.scope == from.scope && of.handle.0.starts_with(stem))
                .map(|(of, _)| of.clone())
        };
        let meant = found.filter(|_| from.handle.0.contains('%')).unwrap_or_else(|| from.clone());
        let claimed = self.0.claim(&meant, ask, now)?;
        if let Some(delivery) = &claimed {
            self.1.insert(delivery.lease.clone(), meant);
        }
        Ok(claimed)
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let meant = self.1.get(lease).filter(|_| of.handle.0.contains('%')).unwrap_or(of);
        self.0.ack(meant, owner, lease, up_to, now)
    }
});

/// The model's append, whose message is gone where `lost`.
fn losing(model: &mut Model, to: &Address, body: &Json, now: Millis, lost: bool) -> Reply<Seq> {
    let seq = model.append(to, body, now)?;
    if lost {
        model.with_box(to, |b| b.messages.retain(|m| m.seq != seq));
    }
    Ok(seq)
}

altered!(PrototypeKey {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let lost = to.scope.0 == "__proto__" || to.handle.0 == "__proto__";
        losing(&mut self.0, to, body, now, lost)
    }
});

altered!(NullDevice {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let stem = to.handle.0.split('.').next().unwrap_or_default();
        losing(&mut self.0, to, body, now, stem.eq_ignore_ascii_case("nul"))
    }
});

altered!(RefusedAfterTheWrite {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if !to.handle.0.contains('/') {
            return self.0.append(to, body, now);
        }
        self.0.append(&Cleaned::key(to), body, now)?;
        Err(StoreError::refused("invalid_name", "a handle holds no slash"))
    }
});

/// Other recipients whose names are the same in lower case.
fn twins(model: &Model, of: &Address) -> Vec<Address> {
    let key = Lowercased::key(of);
    let state = model.state();
    state.boxes.keys().filter(|a| *a != of && Lowercased::key(a) == key).cloned().collect()
}

altered!(LeasesInLowerCase {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let live = |twin: &Address| self.0.with_box(twin, |b| b.live(time).is_some());
        if twins(&self.0, from).iter().any(live) {
            return Ok(None);
        }
        self.0.claim(from, ask, now)
    }
});

altered!(DropInLowerCase {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        for twin in twins(&self.0, of) {
            self.0.drop_box(&twin, now)?;
        }
        self.0.drop_box(of, now)
    }
});
