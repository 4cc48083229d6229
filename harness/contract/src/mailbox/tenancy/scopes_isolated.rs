//! What is appended, claimed, acked and leased in one scope never shows in another.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Model;
use crate::mailbox::moves::{Lease, Sent, is_prefix, same_messages, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq, Tombstones,
};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "scopes-isolated",
    at: file!(),
    statement: "Nothing that is appended, claimed, acked or leased in one scope shows in another scope's box of the same handle.",
    why: "Handles such as \"inbox\" repeat from tenant to tenant; where the scope is forgotten on one path, one tenant reads, loses or blocks another's mail.",
    steps: &[
        "append to one handle in two scopes and lease both boxes: each delivers its own messages, and neither fences the other, for owners of the same name too",
        "ack each scope's box with the other's lease: neither box loses a message (peek, where declared) nor its lease",
        "use one scope's lease on the other's box, to release and renew: both leases stand",
        "ack one box: the other's messages stay, and each box drains to its own messages",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "lease-known-by-handle",
            fault: "looks a lease up by handle and id, so that an ack sent to another scope settles it",
            make: subject::<LeaseKnownByHandle>,
        },
        Mutant {
            name: "renewal-known-by-handle",
            fault: "looks a lease up by handle and id, so that a renewal sent to another scope moves its expiry",
            make: subject::<RenewalKnownByHandle>,
        },
        Mutant {
            name: "release-in-every-scope",
            fault: "releases the leases of the same handle in every scope at once",
            make: subject::<ReleaseInEveryScope>,
        },
        Mutant {
            name: "peek-in-every-scope",
            fault: "shows, to a peek, the messages of the same handle in every scope",
            make: subject::<PeekInEveryScope>,
        },
        Mutant {
            name: "fence-by-handle",
            fault: "answers null while the same handle is leased in any other scope",
            make: subject::<FenceByHandle>,
        },
        Mutant {
            name: "scope-forgotten",
            fault: "keeps one box a handle, whatever the scope",
            make: subject::<ScopeForgotten>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (acme, globex) = (Address::new("acme", "inbox"), Address::new("globex", "inbox"));
    let mut ours = t.append_many(&store, &acme, "acme", 2)?;
    let mut theirs = t.append_many(&store, &globex, "globex", 2)?;
    let held = t.claim_some(&store, &acme, "ann", "what was appended is claimable in its scope")?;
    is_prefix(&held.messages, &ours, "a claim delivers the messages of its own scope")?;
    let promised = "a lease in one scope fences nothing in another";
    let other = t.claim_some(&store, &globex, "bob", promised)?;
    is_prefix(&other.messages, &theirs, "a claim delivers the messages of its own scope")?;
    strange_acks_change_nothing(t, &store, [(&held, &ours), (&other, &theirs)])?;
    strangers_change_nothing(t, &store, &held, &other)?;
    if t.caps().peek {
        peeks_its_own(t, &store, &acme, &ours)?;
        peeks_its_own(t, &store, &globex, &theirs)?;
    }
    t.ack(&store, &other, other.last_seq())?;
    theirs.drain(..other.messages.len());
    t.fenced(&store, &held, "cid")?;
    t.ack(&store, &held, held.last_seq())?;
    ours.drain(..held.messages.len());
    for i in 0..3 {
        for (to, sent) in [(&acme, &mut ours), (&globex, &mut theirs)] {
            let body = Json::from(format!("{} later {i}", to.scope.0));
            sent.push(Sent { seq: t.append(&store, to, body.clone())?, body });
        }
    }
    same_owner_twice(t, &store, [(&acme, &mut ours), (&globex, &mut theirs)])?;
    let promised = "each scope's box holds its own messages, and an ack removes them there alone";
    t.holds_exactly(&store, &acme, &ours, promised)?;
    t.holds_exactly(&store, &globex, &theirs, promised)
}

/// Acks each box with the lease of the other. Whether that is refused is judged by
/// `mailbox/ownership/wrong-box-ack`; here both boxes keep their messages and their leases.
fn strange_acks_change_nothing(
    t: &mut Trial<'_>,
    store: &StoreRef,
    [first, second]: [(&Lease, &[Sent]); 2],
) -> Verdict {
    for ((mine, _), (yours, _)) in [(first, second), (second, first)] {
        let _ = t.try_ack(store, &yours.of, &mine.owner, &mine.id, mine.last_seq())?;
    }
    for (lease, sent) in [first, second] {
        if t.caps().peek {
            // What it shows beyond them is judged by `peeks_its_own`.
            let found = t.peek(store, &lease.of)?;
            if let Some(gone) = sent.iter().find(|m| found.iter().all(|f| f.seq != m.seq)) {
                return broken(
                    "an ack sent to one scope's box with another scope's lease removes nothing from either",
                    format!(
                        "after two such acks {} was gone from {}",
                        shown(std::slice::from_ref(gone)),
                        lease.of
                    ),
                );
            }
        }
        let found = t.claim(store, &lease.of, "cid")?;
        t.while_live(lease)?;
        if let Some(got) = found {
            return broken(
                "an ack sent to one scope's box with another scope's lease settles neither's lease",
                format!("after two such acks cid got {} on {}", shown(&got.messages), lease.of),
            );
        }
    }
    Ok(())
}

/// Uses `held` on the box of `other`, and `other` on the box of `held`; both leases must stand.
fn strangers_change_nothing(
    t: &mut Trial<'_>,
    store: &StoreRef,
    held: &Lease,
    other: &Lease,
) -> Verdict {
    for (mine, yours) in [(held, other), (other, held)] {
        if t.caps().renew {
            let _ = t.try_renew(store, &yours.of, &mine.owner, &mine.id, t.short_ttl_ms())?;
        }
        if t.caps().release {
            let _ = t.try_release(store, &yours.of, &mine.owner, &mine.id)?;
        }
    }
    if t.caps().renew {
        // Had one of those renewals been taken, that lease would end now.
        t.wait(t.short_ttl_ms() + t.granularity_ms() + 1)?;
    }
    t.fenced(store, held, "cid")?;
    t.fenced(store, other, "cid")?;
    if t.caps().release {
        release_frees_its_own(t, store, held)?;
    }
    Ok(())
}

/// Leases the same handle in a third scope and releases it: `held` must stand.
fn release_frees_its_own(t: &mut Trial<'_>, store: &StoreRef, held: &Lease) -> Verdict {
    let initech = Address::new("initech", &held.of.handle.0);
    t.append(store, &initech, "initech")?;
    let promised = "a lease in one scope fences nothing in another";
    let third = t.claim_some(store, &initech, "dan", promised)?;
    let _ = t.try_release(store, &initech, "dan", &third.id)?;
    t.fenced(store, held, "cid")
}

fn peeks_its_own(t: &mut Trial<'_>, store: &StoreRef, of: &Address, sent: &[Sent]) -> Verdict {
    let found = t.peek(store, of)?;
    if same_messages(&found, sent) {
        return Ok(());
    }
    broken(
        "peek shows the messages of its own scope",
        format!("peek on {of} showed {}, not {}", shown(&found), shown(sent)),
    )
}

/// An owner of one name may hold both boxes: workers of two tenants are often called alike. What is
/// acked here is taken from the lists.
fn same_owner_twice(
    t: &mut Trial<'_>,
    store: &StoreRef,
    boxes: [(&Address, &mut Vec<Sent>); 2],
) -> Verdict {
    let promised = "a lease in one scope keeps no owner of the same name from a lease in another";
    let mut leases = Vec::new();
    for (of, sent) in boxes {
        let lease = t.claim_some(store, of, "worker", promised)?;
        is_prefix(&lease.messages, sent, "a claim delivers the messages of its own scope")?;
        sent.drain(..lease.messages.len());
        leases.push(lease);
    }
    for lease in &leases {
        t.ack(store, lease, lease.last_seq())?;
    }
    Ok(())
}

/// The recipients of the same handle in other scopes.
fn elsewhere(model: &Model, of: &Address) -> Vec<Address> {
    let state = model.state();
    state.boxes.keys().filter(|a| a.handle == of.handle && *a != of).cloned().collect()
}

altered!(LeaseKnownByHandle {
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let answer = self.0.ack(of, owner, lease, up_to, now);
        if answer.is_ok() || self.0.is_closed() {
            return answer;
        }
        let others = elsewhere(&self.0, of);
        others.iter().find_map(|a| self.0.ack(a, owner, lease, up_to, now).ok()).map_or(answer, Ok)
    }
});

altered!(RenewalKnownByHandle {
    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        let answer = self.0.renew(of, owner, lease, ttl_ms, now);
        if answer.is_ok() || self.0.is_closed() {
            return answer;
        }
        let others = elsewhere(&self.0, of);
        let taken = others.iter().any(|a| self.0.renew(a, owner, lease, ttl_ms, now).is_ok());
        if taken { Ok(()) } else { answer }
    }
});

altered!(ReleaseInEveryScope {
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.0.release(of, owner, lease, now)?;
        for other in elsewhere(&self.0, of) {
            self.0.with_box(&other, |b| b.lease = None);
        }
        Ok(())
    }
});

altered!(PeekInEveryScope {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let mut found = self.0.peek(of, now)?;
        for other in elsewhere(&self.0, of) {
            found.extend(self.0.peek(&other, now)?);
        }
        Ok(found)
    }
});

altered!(FenceByHandle {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        let fenced = elsewhere(&self.0, from)
            .iter()
            .any(|other| self.0.with_box(other, |b| b.live(time).is_some()));
        if fenced && !self.0.is_closed() {
            return Ok(None);
        }
        self.0.claim(from, ask, now)
    }
});

/// The one scope that the store knows.
fn anywhere(of: &Address) -> Address {
    let scope = if of.scope.0.is_empty() { "" } else { "default" };
    Address::new(scope, &of.handle.0)
}

altered!(ScopeForgotten {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.append(&anywhere(to), body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(&anywhere(from), ask, now)
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.0.ack(&anywhere(of), owner, lease, up_to, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.0.drop_box(&anywhere(of), now)
    }
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        self.0.tombstone(&anywhere(of), now)
    }
});
