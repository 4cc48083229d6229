//! Without a lease there is nothing to ack.

use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "no-lease-ack",
    at: file!(),
    statement: "An ack on a box that has no lease is refused, whether the box holds messages or was never written.",
    why: "If an ack without a lease works, reading is optional: any caller can delete mail without ever having been given it.",
    steps: &[
        "append m1, m2 to alpha; nobody claims",
        "ann acks alpha with an invented lease id, and with the first message's number for one: refused; she acks the never-written beta: refused",
        "claim and ack until null: both messages of alpha",
    ],
    needs: None,
    check,
    mutants: &[Mutant {
        name: "unleased-box-takes-any-ack",
        fault: "takes any ack on a box that never had a lease",
        make: subject::<TakesAny>,
    }],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let store = t.open()?;
    let (alpha, beta) = (at("alpha"), at("beta"));
    let sent = t.append_many(&store, &alpha, "m", 2)?;
    let why = "the box has no lease";
    t.ack_refused(&store, &alpha, "ann", "no-such-lease", sent[1].seq, why)?;
    // A store that takes a message's number for its lease is guessed at too.
    let guessed = sent[0].seq.to_string();
    t.ack_refused(&store, &alpha, "ann", &guessed, sent[1].seq, why)?;
    t.ack_refused(&store, &beta, "ann", "no-such-lease", 1, why)?;
    t.holds_exactly(&store, &alpha, &sent, "a refused ack removes nothing")
}

altered!(TakesAny {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        if self.0.is_closed() || self.0.state().leases_minted > 0 {
            return self.0.ack(of, owner, lease, up_to, now);
        }
        Ok(self.0.with_box(of, |b| {
            let before = b.messages.len();
            b.messages.retain(|m| m.seq > up_to);
            (before - b.messages.len()) as u64
        }))
    }
});
