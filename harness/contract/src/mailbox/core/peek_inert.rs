//! Looking changes nothing.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::model::Held;
use crate::mailbox::moves::{Sent, at, same_messages, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Message, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};

/// How many messages wait in the deep box.
const DEEP_MESSAGES: usize = 30;
/// How many of them are leased.
const LEASED: u64 = 2;
/// How many messages a mutant shows at most, and how many another shows in order.
const SHOWN_MAX: usize = 10;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "peek-inert",
    at: file!(),
    statement: "Peek shows everything not yet acked, leased messages too, in order; it leases nothing, removes nothing and ends no lease.",
    why: "Peek is what people and dashboards look with. A look that takes mail, hides mail, or frees a lease changes what it was to show.",
    steps: &[
        "peek a never-written box: nothing; append m1, m2, m3; peek: all three, in order",
        "ann claims at once; peek: still all three; bob's claim: null",
        "ann acks what she got; peek: the rest",
        "append 30 to another box; peek: all, in order; ann claims with max 2; append late; peek: all 31; her ack up to late's seq takes what she was delivered alone (judged where a box that nobody peeked does so)",
        "append 3 to a third box; ann claims; after her lease has run out, peek: all three",
        "ack everything of a fourth box; peek: nothing; the next receipt is above the earlier ones",
        "append and drop; once a claim answers null, peek: nothing",
    ],
    needs: Some(Capability::Peek),
    check,
    mutants: &[
        Mutant {
            name: "peek-hides-leased",
            fault: "leaves out what is under a lease",
            make: subject::<HidesLeased>,
        },
        Mutant {
            name: "peek-leases",
            fault: "fences the box for whoever peeked",
            make: subject::<Leases>,
        },
        Mutant {
            name: "peek-removes",
            fault: "removes the first message that it shows",
            make: subject::<Removes>,
        },
        Mutant {
            name: "peek-ends-the-lease",
            fault: "frees the box that it looks at",
            make: subject::<EndsTheLease>,
        },
        Mutant {
            name: "peek-shows-ten",
            fault: "shows the first ten messages alone",
            make: subject::<ShowsTen>,
        },
        Mutant {
            name: "peek-reverses-deep-boxes",
            fault: "shows the newest first where more than ten wait",
            make: subject::<Reverses>,
        },
        Mutant {
            name: "peek-hides-late",
            fault: "leaves out what came during a live lease",
            make: subject::<HidesLate>,
        },
        Mutant {
            name: "peek-covers-late",
            fault: "puts what came during a live lease under that lease",
            make: subject::<CoversLate>,
        },
        Mutant {
            name: "peek-hides-expired",
            fault: "leaves out what was delivered under a lease that has run out",
            make: subject::<HidesExpired>,
        },
        Mutant {
            name: "peek-lowers-seq",
            fault: "counts on from the last message that it shows",
            make: subject::<LowersSeq>,
        },
        Mutant {
            name: "peek-shows-dropped",
            fault: "goes on showing what was dropped",
            make: subject::<ShowsDropped>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    shows(t, &store, &alpha, &[], "a never-written box is empty to peek")?;
    let mut sent = t.append_many(&store, &alpha, "m", 3)?;
    shows(t, &store, &alpha, &sent, "peek shows everything not yet acked, in order")?;
    let lease =
        t.claim_some(&store, &alpha, "ann", "peek leases nothing: the box is claimable at once")?;
    shows(t, &store, &alpha, &sent, "peek shows leased messages too")?;
    t.fenced(&store, &lease, "bob")?;
    t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())?;
    let rest = sent.split_off(lease.messages.len().min(sent.len()));
    shows(t, &store, &alpha, &rest, "peek shows what was not acked")?;
    t.holds_exactly(&store, &alpha, &rest, "peek removes nothing")?;

    covers_nothing(t, &store)?;
    after_expiry(t, &store)?;
    lowers_no_seq(t, &store)?;
    after_drop(t, &store)
}

/// A deep box, leased in part, gets a late message: peek shows all, and changes nothing about the lease.
fn covers_nothing(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    // What goes wrong on a box that nobody peeks is not peek's fault.
    if late_kept(t, store, &at("unseen"), false)? && !late_kept(t, store, &at("seen"), true)? {
        return broken(
            "peek puts nothing under a lease: an ack that reaches beyond takes only what was delivered",
            "it did so on a box that nobody peeked, and not on one that was peeked during the lease",
        );
    }
    Ok(())
}

/// Whether an ack up to the seq of a message that came during the lease takes what was delivered alone.
fn late_kept(t: &mut Trial<'_>, store: &StoreRef, of: &Address, peeks: bool) -> Result<bool, Stop> {
    let mut sent = t.append_many(store, of, "m", DEEP_MESSAGES)?;
    if peeks {
        shows(t, store, of, &sent, "peek shows a deep box whole and in order")?;
    }
    let ttl_ms = t.long_ttl_ms();
    let Some(lease) = t.claim_for(store, of, "ann", ttl_ms, Some(LEASED))? else {
        return Ok(false);
    };
    let late = t.append_many(store, of, "late", 1)?;
    let up_to = late[0].seq;
    sent.extend(late);
    if peeks {
        shows(t, store, of, &sent, "peek shows what came during a lease too")?;
    }
    let delivered = lease.messages.len().min(sent.len());
    #[expect(clippy::cast_precision_loss, reason = "counts of a clause are tiny")]
    let count = delivered as f64;
    if t.try_ack(store, of, "ann", &lease.id, up_to)? != Ok(count) {
        return Ok(false);
    }
    Ok(same_messages(&t.drain(store, of)?, &sent[delivered..]))
}

fn after_expiry(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let gamma = at("gamma");
    let sent = t.append_many(store, &gamma, "m", 3)?;
    let ttl_ms = t.short_ttl_ms();
    let promised = "waiting messages are claimable";
    let lease = t.claim_some_for(store, &gamma, "ann", ttl_ms, promised)?;
    t.wait_for_expiry(&lease)?;
    shows(t, store, &gamma, &sent, "peek shows messages whose lease has run out too")
}

fn lowers_no_seq(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let delta = at("delta");
    let sent = t.append_many(store, &delta, "m", 3)?;
    t.holds_exactly(store, &delta, &sent, "what was appended is delivered")?;
    shows(t, store, &delta, &[], "peek shows nothing of what was acked")?;
    let highest = sent.iter().map(|m| m.seq).max().unwrap_or(0);
    let seq = t.append(store, &delta, "next")?;
    if seq > highest {
        return Ok(());
    }
    broken(
        "peek changes nothing: the next seq is above all earlier ones",
        format!("after {highest} and a peek of the emptied box, append answered {seq}"),
    )
}

fn after_drop(t: &mut Trial<'_>, store: &StoreRef) -> Verdict {
    let epsilon = at("epsilon");
    t.append_many(store, &epsilon, "m", 3)?;
    t.drop_box(store, &epsilon)?;
    // What a drop leaves behind is not peek's fault.
    if t.claim(store, &epsilon, "bob")?.is_some() {
        return Ok(());
    }
    shows(t, store, &epsilon, &[], "peek shows nothing of what was dropped")
}

fn shows(
    t: &mut Trial<'_>,
    store: &StoreRef,
    of: &Address,
    expected: &[Sent],
    promised: &str,
) -> Verdict {
    let seen = t.peek(store, of)?;
    if same_messages(&seen, expected) {
        return Ok(());
    }
    broken(promised, format!("peek showed {}, not {}", shown(&seen), shown(expected)))
}

altered!(HidesLeased {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let time = self.0.time(now);
        let delivered = self.0.with_box(of, |b| b.live(time).map(|held| held.delivered));
        let mut found = self.0.peek(of, now)?;
        found.retain(|m| Some(m.seq) > delivered);
        Ok(found)
    }
});

altered!(Leases {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let found = self.0.peek(of, now)?;
        let time = self.0.time(now);
        self.0.with_box(of, |b| {
            if b.live(time).is_none() && !b.messages.is_empty() {
                b.lease = Some(Held {
                    id: LeaseId("peeked".to_owned()),
                    owner: String::new(),
                    expiry: Millis(time.0 + 60_000),
                    delivered: Seq(0),
                });
            }
        });
        Ok(found)
    }
});

altered!(Removes {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let found = self.0.peek(of, now)?;
        self.0.with_box(of, |b| {
            if !b.messages.is_empty() {
                b.messages.remove(0);
            }
        });
        Ok(found)
    }
});

altered!(EndsTheLease {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        self.0.with_box(of, |b| b.lease = None);
        self.0.peek(of, now)
    }
});

altered!(ShowsTen {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let mut found = self.0.peek(of, now)?;
        found.truncate(SHOWN_MAX);
        Ok(found)
    }
});

altered!(Reverses {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let mut found = self.0.peek(of, now)?;
        if found.len() > SHOWN_MAX {
            found.reverse();
        }
        Ok(found)
    }
});

altered!(HidesLate {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let time = self.0.time(now);
        let delivered = self.0.with_box(of, |b| b.live(time).map(|held| held.delivered));
        let mut found = self.0.peek(of, now)?;
        found.retain(|m| delivered.is_none_or(|last| m.seq <= last));
        Ok(found)
    }
});

altered!(CoversLate {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let found = self.0.peek(of, now)?;
        self.0.with_box(of, |b| {
            if let (Some(held), Some(last)) = (b.lease.as_mut(), b.messages.last()) {
                held.delivered = last.seq;
            }
        });
        Ok(found)
    }
});

altered!(HidesExpired {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let time = self.0.time(now);
        let delivered = self.0.with_box(of, |b| {
            b.lease.as_ref().filter(|held| held.expiry <= time).map(|held| held.delivered)
        });
        let mut found = self.0.peek(of, now)?;
        found.retain(|m| Some(m.seq) > delivered);
        Ok(found)
    }
});

altered!(LowersSeq {
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let found = self.0.peek(of, now)?;
        self.0.with_box(of, |b| b.last_seq = b.messages.last().map_or(0, |m| m.seq.0));
        Ok(found)
    }
});

altered!(ShowsDropped remembers Vec<(Address, Message)> {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.1.extend(self.0.peek(of, now)?.into_iter().map(|m| (of.clone(), m)));
        self.0.drop_box(of, now)
    }
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.1.retain(|(of, _)| of != to);
        self.0.append(to, body, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        let dropped = self.1.iter().filter(|(dropped, _)| dropped == of).map(|(_, m)| m.clone());
        Ok(dropped.chain(self.0.peek(of, now)?).collect())
    }
});
