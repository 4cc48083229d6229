//! A number once given is never given again.

use crate::clause::{Clause, Mutant};
use crate::mailbox::model::{BoxState, State};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, subject};
use crate::mailbox::store::{Address, LeaseId, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{StoreRef, Trial, Verdict, broken};

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "seq-never-reused",
    at: file!(),
    statement: "After acking everything, after reap, after drop and after reopen, the next seq is above all earlier receipts.",
    why: "Consumers and logs remember numbers. One that comes back makes a late ack, or a record of work done, stand for a message nobody has read.",
    steps: &[
        "append three messages and ack them all; the next seq is above them",
        "drop the box; the next seq is above all earlier ones",
        "empty the box and reap; the next seq is above all earlier ones",
        "(durable) empty the box, close and attach; the next seq is above all earlier ones",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "seq-restarts-when-empty",
            fault: "counts from the highest message left, so that an emptied box starts over",
            make: subject::<RestartsWhenEmpty>,
        },
        Mutant {
            name: "seq-restarts-after-drop",
            fault: "forgets a dropped box's counter",
            make: subject::<RestartsAfterDrop>,
        },
        Mutant {
            name: "seq-restarts-after-reap",
            fault: "forgets the counters of empty boxes at reap",
            make: subject::<RestartsAfterReap>,
        },
        Mutant {
            name: "seq-restarts-on-reopen",
            fault: "counts on from the highest message found when the storage is opened",
            make: subject::<RestartsOnReopen>,
        },
    ],
    never_sole: None,
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let mut store = t.open()?;
    let alpha = at("alpha");
    let mut last = t.append_many(&store, &alpha, "m", 3)?[2].seq;
    t.drain(&store, &alpha)?;
    last = next_is_above(t, &store, last, "everything was acked")?;
    t.drop_box(&store, &alpha)?;
    last = next_is_above(t, &store, last, "a drop")?;
    t.drain(&store, &alpha)?;
    t.reap(&store)?;
    last = next_is_above(t, &store, last, "everything was acked and reaped")?;
    if t.caps().durable {
        t.drain(&store, &alpha)?;
        store = t.reopen(&store)?;
        next_is_above(t, &store, last, "everything was acked and the storage reopened")?;
    }
    Ok(())
}

fn next_is_above(
    t: &mut Trial<'_>,
    store: &StoreRef,
    last: u64,
    after: &str,
) -> Result<u64, crate::trial::Stop> {
    let seq = t.append(store, &at("alpha"), "next")?;
    if seq > last {
        return Ok(seq);
    }
    broken(
        format!("after {after} the next seq is above {last}, the last receipt"),
        format!("it was {seq}"),
    )
}

fn count_from_what_is_left(b: &mut BoxState) {
    b.last_seq = b.messages.iter().map(|m| m.seq.0).max().unwrap_or(0);
}

altered!(RestartsWhenEmpty {
    fn ack(&mut self, of: &Address, owner: &str, lease: &LeaseId, up_to: Seq, now: Millis) -> Reply<u64> {
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.0.with_box(of, count_from_what_is_left);
        Ok(acked)
    }
});

altered!(RestartsAfterDrop {
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let dropped = self.0.drop_box(of, now)?;
        self.0.with_box(of, |b| b.last_seq = 0);
        Ok(dropped)
    }
});

altered!(RestartsAfterReap {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        self.0.state().boxes.values_mut().for_each(count_from_what_is_left);
        Ok(())
    }
});

altered!(RestartsOnReopen {
    fn reopened(state: &mut State) {
        state.boxes.values_mut().for_each(count_from_what_is_left);
    }
});
