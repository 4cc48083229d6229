//! Housekeeping never brings a number back, for any process.

use crate::clause::{Clause, Mutant};
use crate::json::Json;
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::MET_BY_HISTORIES;
use crate::mailbox::store::{Address, MailboxStore, Millis, Seq};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use std::collections::BTreeMap;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reap-seq-across",
    at: file!(),
    statement: "After one process has emptied and reaped a box, the next number that another one mints is above all before.",
    why: "A compaction that forgets how far an empty box had counted mints old numbers again, and old acks remove new mail.",
    steps: &[
        "append three messages in each process, so that both know the box; ack them all; this process reaps",
        "the peer appends: its number is above all before",
        "the other way round: the peer acks and reaps, this process appends",
    ],
    needs: None,
    check,
    mutants: &[Mutant {
        name: "reap-lowers-seq-for-others",
        fault: "forgets at reap how far empty boxes had counted, except in the process that reaped",
        make: shared::<LowersElsewhere>,
    }],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    for (of, reaper, other) in [(at("alpha"), &pair.a, &pair.b), (at("beta"), &pair.b, &pair.a)] {
        let mut sent = t.append_many(other, &of, "m", 3)?;
        sent.extend(t.append_many(reaper, &of, "n", 3)?);
        t.holds_exactly(reaper, &of, &sent, "a box holds what either process appended")?;
        t.reap(reaper)?;
        let last = sent.iter().map(|sent| sent.seq).max().unwrap_or(0);
        let seq = t.append(other, &of, "after")?;
        if seq <= last {
            return broken(
                "a number is above all before, also after another process reaped the empty box",
                format!("append answered {seq} after {last}"),
            );
        }
    }
    Ok(())
}

altered!(LowersElsewhere remembers BTreeMap<Address, u64> {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let known = self.1.entry(to.clone()).or_default();
        self.0.with_box(to, |b| b.last_seq = b.last_seq.max(*known));
        let seq = self.0.append(to, body, now)?;
        *known = seq.0;
        Ok(seq)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        for (of, known) in &self.1 {
            self.0.with_box(of, |b| {
                if b.messages.is_empty() && b.last_seq == *known {
                    b.last_seq = 0;
                }
            });
        }
        self.0.reap(now)
    }
});
