//! Housekeeping in one process loses nothing of what another one appends meanwhile.

use crate::call::Answer;
use crate::clause::{Clause, Mutant};
use crate::mailbox::moves::at;
use crate::mailbox::mutant::{altered, shared};
use crate::mailbox::pair::{Listed, MET_BY_HISTORIES, Until, bodies};
use crate::mailbox::store::{MailboxStore, Millis};
use crate::subject::Reply;
use crate::trial::{Trial, Verdict, broken};
use serde_json::json;

/// How many messages the peer appends.
const APPENDS: usize = 100;
/// The most reaps meanwhile.
const REAPS_MAX: u32 = 2_000;

/// The clause.
pub static CLAUSE: Clause = Clause {
    slug: "reap-keeps-peer-appends",
    at: file!(),
    statement: "While one process reaps again and again, every message that another one appends and gets a receipt for is there afterwards.",
    why: "A compaction that reads, rewrites and renames without the writer's lock throws away whatever was appended in between, receipts and all.",
    steps: &[
        "append and ack a few messages, so that there is something to clean up",
        "this process reaps in a loop while the peer appends 100 messages to alpha and to beta",
        "this process claims and acks until null: every receipt, once, in order, with its body",
    ],
    needs: None,
    check,
    mutants: &[
        Mutant {
            name: "reap-writes-back-a-stale-copy",
            fault: "reads the storage, cleans its copy, and writes the copy back without a lock between",
            make: shared::<StaleCopy>,
        },
        Mutant {
            name: "reap-empties-then-fills",
            fault: "takes the messages out and puts them back in two transactions, forgetting what came between",
            make: shared::<EmptiesFirst>,
        },
    ],
    never_sole: Some(MET_BY_HISTORIES),
};

fn check(t: &mut Trial<'_>) -> Verdict {
    let pair = t.pair()?;
    let (alpha, beta) = (at("alpha"), at("beta"));
    let old = t.append_many(&pair.a, &alpha, "old", 4)?;
    t.holds_exactly(&pair.a, &alpha, &old, "a box holds what was appended")?;
    let mut calls = Vec::new();
    for body in bodies("m", APPENDS / 2) {
        for of in [&alpha, &beta] {
            calls.extend(t.append_calls(&pair.b, of, std::slice::from_ref(&body)));
        }
    }
    let (appends, over) = Listed::new(calls);
    let params = json!({ "store": pair.a.id, "now": t.now_ms() });
    let reaps = Until { call: ("mailbox/reap", params), over, most: REAPS_MAX };
    let raced =
        t.race(vec![(pair.a.side, Box::new(reaps)), (pair.b.side, Box::new(appends))], None)?;
    for call in raced.iter().filter(|call| call.side == pair.a.side) {
        if let Some(Answer::Error(error)) = &call.answer {
            let seen = format!("reap answered {}", error.to_json());
            return broken("reap is not refused", seen);
        }
    }
    let receipts = t.receipts(&raced, pair.b.side)?;
    // Each box's own, in the order in which they were sent.
    let of_box = |i: usize| receipts.iter().skip(i).step_by(2).cloned();
    let promised = "what was receipted while another process reaped is there";
    let in_alpha: Vec<_> = of_box(0).collect();
    t.accounts_for(&pair.a, &alpha, &in_alpha, None, promised)?;
    let in_beta: Vec<_> = of_box(1).collect();
    t.accounts_for(&pair.b, &beta, &in_beta, None, promised)
}

altered!(StaleCopy {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let copy = self.0.state().boxes.clone();
        self.0.gap()?;
        for (of, before) in copy {
            self.0.with_box(&of, |b| b.messages = before.messages);
        }
        self.0.reap(now)
    }
});

altered!(EmptiesFirst {
    fn reap(&mut self, now: Millis) -> Reply<()> {
        let taken: Vec<_> = self
            .0
            .state()
            .boxes
            .iter_mut()
            .map(|(of, b)| (of.clone(), std::mem::take(&mut b.messages)))
            .collect();
        self.0.gap()?;
        for (of, messages) in taken {
            self.0.with_box(&of, |b| b.messages = messages);
        }
        self.0.reap(now)
    }
});
