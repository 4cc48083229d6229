//! Only the holder acks.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Held;
use crate::mailbox::moves::{Lease, at, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Millis, Seq};
use crate::mailbox::wire::AckResult;
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};
use serde_json::json;

/// Names that a careless comparison takes for the holder's, "ann": longer, shorter, in capitals, with
/// blanks, empty.
const NEAR_OWNERS: [&str; 7] = ["anna", "an", "Ann", "ANN", " ann", "ann ", ""];

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "foreign-ack",
    at: file!(),
    statement: "An ack by somebody who does not hold the lease, or with an invented lease id, is refused and changes nothing: the holder still fences the box and can ack.",
    why: "Whoever may ack another's messages may delete mail that nobody has read.",
    steps: &[
        "append m1, m2, m3; ann claims",
        "bob acks with ann's lease id: refused; bob acks with an invented id: refused; ann acks with an invented id: refused",
        "anna, an, Ann, ANN, ann with a blank before or after her name, and nobody (an empty owner) ack with ann's lease id, and ann acks with ids near hers (empty, one letter shorter, longer, in other case): refused",
        "each of those names claims: null (a blank or an empty one may be refused)",
        "cid claims: null; ann acks: taken, and counts her whole delivery",
        "claim and ack until null: exactly what she was not delivered",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "ack-ignores-the-owner",
            fault: "takes an ack from whoever names the live lease",
            make: subject::<IgnoresTheOwner>,
        },
        Mutant {
            name: "ack-ignores-the-lease-id",
            fault: "takes any lease id from the owner of the live lease",
            make: subject::<IgnoresTheId>,
        },
        Mutant {
            name: "refused-foreign-ack-frees",
            fault: "frees the box while it refuses a stranger's ack",
            make: subject::<RefusedFrees>,
        },
        Mutant {
            name: "refused-foreign-ack-removes",
            fault: "removes the first message while it refuses a stranger's ack",
            make: subject::<RefusedRemoves>,
        },
        Mutant {
            name: "owner-cut-to-the-holder",
            fault: "takes an ack from an owner whose name begins with the holder's",
            make: subject::<OwnerBegins>,
        },
        Mutant {
            name: "owner-matched-as-a-beginning",
            fault: "takes an ack from an owner with whose name the holder's begins",
            make: subject::<OwnerIsABeginning>,
        },
        Mutant {
            name: "owner-in-any-case",
            fault: "compares owners without regard to case when they ack",
            make: subject::<OwnerInAnyCase>,
        },
        Mutant {
            name: "owner-trimmed",
            fault: "compares owners without the blanks around their names when they ack",
            make: subject::<OwnerTrimmed>,
        },
        Mutant {
            name: "empty-owner-acks-for-anybody",
            fault: "takes an ack with an empty owner for the holder's",
            make: subject::<EmptyOwner>,
        },
        Mutant {
            name: "lease-id-matched-as-a-beginning",
            fault: "takes the beginning of the live lease's id for the whole",
            make: subject::<IdIsABeginning>,
        },
        Mutant {
            name: "lease-id-cut-to-its-length",
            fault: "takes a lease id that begins with the live one",
            make: subject::<IdBegins>,
        },
        Mutant {
            name: "lease-id-in-any-case",
            fault: "compares lease ids without regard to case",
            make: subject::<IdInAnyCase>,
        },
        Mutant {
            name: "empty-lease-id-acks-any",
            fault: "takes an empty lease id for the holder's",
            make: subject::<EmptyId>,
        },
        Mutant {
            name: "empty-owner-passes-the-fence",
            fault: "gives an empty owner a lease though another one lives",
            make: subject::<EmptyOwnerPasses>,
        },
        Mutant {
            name: "longer-name-reclaims",
            fault: "takes a claim by an owner whose name begins with the holder's for the holder's own",
            make: subject::<LongerNameReclaims>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    let mut sent = t.append_many(&store, &alpha, "m", 3)?;
    let lease = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    let up_to = lease.last_seq();
    t.ack_refused(&store, &alpha, "bob", &lease.id, up_to, "bob does not hold ann's lease")?;
    t.ack_refused(&store, &alpha, "bob", "no-such-lease", up_to, "no such lease was ever given")?;
    t.ack_refused(&store, &alpha, "ann", "no-such-lease", up_to, "no such lease was ever given")?;
    impostors_are_refused(t, &store, &lease)?;
    impostors_are_fenced(t, &store, &lease)?;
    t.fenced(&store, &lease, "cid")?;
    t.ack_counted(&store, &lease, up_to, lease.messages.len())?;
    let rest = sent.split_off(lease.messages.len().min(sent.len()));
    t.holds_exactly(&store, &alpha, &rest, "a refused ack removes nothing")
}

/// Ids that a careless comparison takes for `id`: empty, shorter, longer, in other case.
fn near_ids(id: &str) -> Vec<String> {
    let mut shorter = id.to_owned();
    shorter.pop();
    let longer = [format!("{id}x"), format!("{id} ")];
    let cased = [id.to_lowercase(), id.to_uppercase()];
    let mut ids: Vec<String> = vec![String::new(), shorter];
    ids.extend(longer.into_iter().chain(cased));
    ids.retain(|near| near != id);
    ids.dedup();
    ids
}

fn impostors_are_refused(t: &mut Trial<'_>, store: &StoreRef, lease: &Lease) -> Verdict {
    for owner in NEAR_OWNERS {
        impostor_is_refused(t, store, lease, owner, &lease.id)?;
    }
    for id in near_ids(&lease.id) {
        impostor_is_refused(t, store, lease, &lease.owner, &id)?;
    }
    Ok(())
}

/// An ack whose owner or lease id is not quite the holder's; a store may find such a name invalid too.
fn impostor_is_refused(
    t: &mut Trial<'_>,
    store: &StoreRef,
    lease: &Lease,
    owner: &str,
    id: &str,
) -> Verdict {
    let params = json!({
        "store": store.id, "scope": lease.of.scope.0, "handle": lease.of.handle.0, "owner": owner,
        "lease": id, "upTo": lease.last_seq(), "now": t.now_ms(),
    });
    match t.ask::<AckResult>(store.side, "mailbox/ack", params, true)? {
        Err(refusal) => {
            t.expect_reason("mailbox/ack", &refusal, &["lease_not_held", "invalid_name"]);
            Ok(())
        }
        Ok(AckResult { acked }) => broken(
            format!(
                "ack is refused: only {:?} with the lease {:?} holds it",
                lease.owner, lease.id
            ),
            format!("the ack by {owner:?} with the lease {id:?} was taken (acked: {acked})"),
        ),
    }
}

fn impostors_are_fenced(t: &mut Trial<'_>, store: &StoreRef, lease: &Lease) -> Verdict {
    let ttl_ms = Json::from(t.long_ttl_ms());
    for owner in NEAR_OWNERS {
        let is_plain = !owner.is_empty() && !owner.contains(' ');
        if is_plain {
            t.fenced(store, lease, owner)?;
            continue;
        }
        let found = t.raw_claim(store, &lease.of, owner, &ttl_ms, None, true)?;
        t.while_live(lease)?;
        if let Ok(Some(got)) = found {
            return broken(
                format!("while {}'s lease lives, nobody else's claim is answered", lease.owner),
                format!("{owner:?} got the lease {:?} with {}", got.id, shown(&got.messages)),
            );
        }
    }
    Ok(())
}

altered!(IgnoresTheOwner {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let holder = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.owner.clone()));
        self.0.ack(of, holder.as_deref().unwrap_or(owner), lease, up_to, now)
    }
});

altered!(IgnoresTheId {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let id = self.0.with_box(of, |b| b.lease.as_ref().map(|held| held.id.clone()));
        self.0.ack(of, owner, id.as_ref().unwrap_or(lease), up_to, now)
    }
});

/// Whether the box is leased to somebody other than `owner`.
fn is_foreign(model: &crate::mailbox::model::Model, of: &Address, owner: &str) -> bool {
    model.with_box(of, |b| b.lease.as_ref().is_some_and(|held| held.owner != owner))
}

altered!(RefusedFrees {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let foreign = is_foreign(&self.0, of, owner);
        let acked = self.0.ack(of, owner, lease, up_to, now);
        if foreign {
            self.0.with_box(of, |b| b.lease = None);
        }
        acked
    }
});

altered!(RefusedRemoves {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let foreign = is_foreign(&self.0, of, owner);
        let acked = self.0.ack(of, owner, lease, up_to, now);
        if foreign {
            self.0.with_box(of, |b| b.messages.drain(..b.messages.len().min(1)).count());
        }
        acked
    }
});

/// Stores that take an ack for the holder's where the owner and the lease id are as `near` says.
macro_rules! confuses {
    ($($name:ident: |$held:ident, $owner:ident, $id:ident| $near:expr;)*) => {
        $(altered!($name {
            fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
                let near: fn(&Held, &str, &str) -> bool = |$held, $owner, $id| $near;
                let held = self.0.with_box(of, |b| b.lease.clone());
                match held.filter(|held| near(held, owner, &lease.0)) {
                    Some(held) => self.0.ack(of, &held.owner, &held.id, up_to, now),
                    None => self.0.ack(of, owner, lease, up_to, now),
                }
            }
        });)*
    };
}

confuses! {
    OwnerBegins: |held, owner, id| owner.starts_with(&held.owner) && held.id.0 == id;
    OwnerIsABeginning: |held, owner, id| {
        !owner.is_empty() && held.owner.starts_with(owner) && held.id.0 == id
    };
    OwnerInAnyCase: |held, owner, id| held.owner.eq_ignore_ascii_case(owner) && held.id.0 == id;
    OwnerTrimmed: |held, owner, id| held.owner.trim() == owner.trim() && held.id.0 == id;
    EmptyOwner: |held, owner, id| owner.is_empty() && held.id.0 == id;
    IdIsABeginning: |held, owner, id| {
        !id.is_empty() && held.id.0.starts_with(id) && held.owner == owner
    };
    IdBegins: |held, owner, id| id.starts_with(&held.id.0) && held.owner == owner;
    IdInAnyCase: |held, owner, id| held.id.0.eq_ignore_ascii_case(id) && held.owner == owner;
    EmptyId: |held, owner, id| id.is_empty() && held.owner == owner;
}

altered!(EmptyOwnerPasses {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        if ask.owner.is_empty() {
            self.0.with_box(from, |b| b.lease = None);
        }
        self.0.claim(from, ask, now)
    }
});

altered!(LongerNameReclaims {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let holder = self.0.with_box(from, |b| b.live(time).map(|held| held.owner.clone()));
        let owner = holder.filter(|holder| ask.owner.starts_with(holder.as_str()));
        let owner = owner.unwrap_or_else(|| ask.owner.clone());
        self.0.claim(from, &ClaimAsk { owner, ..ask.clone() }, now)
    }
});
