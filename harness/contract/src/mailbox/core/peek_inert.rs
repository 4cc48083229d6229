//! Looking changes nothing.

use crate::backend::Capability;
use crate::clause::{Clause, Mutant};
use crate::mailbox::model::Held;
use crate::mailbox::moves::{Sent, at, same_messages, shown};
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Message, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

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
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let alpha = at("alpha");
    shows(t, &store, &[], "a never-written box is empty to peek")?;
    let mut sent = t.append_many(&store, &alpha, "m", 3)?;
    shows(t, &store, &sent, "peek shows everything not yet acked, in order")?;
    let lease =
        t.claim_some(&store, &alpha, "ann", "peek leases nothing: the box is claimable at once")?;
    shows(t, &store, &sent, "peek shows leased messages too")?;
    t.fenced(&store, &lease, "bob")?;
    t.ack_counted(&store, &lease, lease.last_seq(), lease.messages.len())?;
    let rest = sent.split_off(lease.messages.len().min(sent.len()));
    shows(t, &store, &rest, "peek shows what was not acked")?;
    t.holds_exactly(&store, &alpha, &rest, "peek removes nothing")
}

fn shows(t: &mut Trial<'_>, store: &StoreRef, expected: &[Sent], promised: &str) -> Verdict {
    let seen = t.peek(store, &at("alpha"))?;
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
