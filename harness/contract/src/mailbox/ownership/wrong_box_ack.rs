//! A lease acks the box that it fences, and no other.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "wrong-box-ack",
    at: file!(),
    statement: "A lease of one handle presented on another is refused; both boxes are unharmed.",
    why: "One mix-up of two variables in a consumer would otherwise delete the mail of a recipient it never claimed.",
    steps: &[
        "append two messages each to alpha and beta; ann claims alpha",
        "ann acks beta with alpha's lease: refused",
        "ann claims beta as well; she acks beta with alpha's lease, and alpha with beta's: refused",
        "both leases still fence; ann acks each with its own: taken, and counted",
        "both boxes hold exactly what their own lease did not deliver",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "any-box-of-the-holder",
            fault: "takes an ack with a lease that its sender holds on any box",
            make: subject::<AnyBox>,
        },
        Mutant {
            name: "wrong-box-ack-settles",
            fault: "frees the lease's own box while it refuses the ack on another",
            make: subject::<SettlesOwn>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (alpha, beta) = (at("alpha"), at("beta"));
    let sent_alpha = t.append_many(&store, &alpha, "a", 2)?;
    let sent_beta = t.append_many(&store, &beta, "b", 2)?;
    let up_to = sent_alpha[1].seq.max(sent_beta[1].seq);
    let on_alpha = t.claim_some(&store, &alpha, "ann", "waiting messages are claimable")?;
    let why = "the lease fences another box";
    t.ack_refused(&store, &beta, "ann", &on_alpha.id, up_to, why)?;
    t.fenced(&store, &on_alpha, "bob")?;
    let on_beta =
        t.claim_some(&store, &beta, "ann", "a lease on one box does not fence another")?;
    t.ack_refused(&store, &beta, "ann", &on_alpha.id, up_to, why)?;
    t.ack_refused(&store, &alpha, "ann", &on_beta.id, up_to, why)?;
    for (lease, sent) in [(&on_alpha, &sent_alpha), (&on_beta, &sent_beta)] {
        t.fenced(&store, lease, "bob")?;
        t.ack_counted(&store, lease, lease.last_seq(), lease.messages.len())?;
        let rest = sent.get(lease.messages.len()..).unwrap_or(&[]);
        t.holds_exactly(&store, &lease.of, rest, "a refused ack removes nothing")?;
    }
    Ok(())
}

/// The box that `lease` lives on, if `owner` holds it.
fn fenced_by(
    model: &crate::mailbox::model::Model,
    owner: &str,
    lease: &LeaseId,
) -> Option<Address> {
    let state = model.state();
    state
        .boxes
        .iter()
        .find(|(_, b)| {
            b.lease.as_ref().is_some_and(|held| held.id == *lease && held.owner == owner)
        })
        .map(|(of, _)| of.clone())
}

altered!(AnyBox {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        match fenced_by(&self.0, owner, lease) {
            Some(other) if other != *of && other.scope == of.scope => Ok(self.0.with_box(of, |b| {
                let before = b.messages.len();
                b.messages.retain(|m| m.seq > up_to);
                (before - b.messages.len()) as u64
            })),
            Some(_) | None => self.0.ack(of, owner, lease, up_to, now),
        }
    }
});

altered!(SettlesOwn {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if let Some(other) = fenced_by(&self.0, owner, lease).filter(|other| other != of) {
            self.0.with_box(&other, |b| b.lease = None);
        }
        self.0.ack(of, owner, lease, up_to, now)
    }
});
