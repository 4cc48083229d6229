//! One storage open in two processes, and the moves that clauses about them share.

use super::delivery::{Sent, same_messages, seq_of, shown};
use super::moves::at;
use super::store::Address;
use super::wire::AppendResult;
use crate::backend::Side;
use crate::call::{Answer, Fault, FaultKind};
use crate::json::Json;
use crate::race::{Lane, Raced};
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a survivor is asked again that did not answer, or refused: see
/// [`Trial::survivor_answers`].
const KNOCKS_MAX: u32 = 3;

/// Why a clause about two processes is the only killer of nothing.
pub const MET_BY_HISTORIES: &str = "linearizable judges whole random histories of two processes and meets this fault in one of \
     them too; this clause goes for it, finds it every time, and says which promise it was";

/// One storage open in two processes.
#[derive(Clone, Debug)]
pub struct Pair {
    /// In the process that opened it, which no clause kills.
    pub a: StoreRef,
    /// In the peer, which attached to it.
    pub b: StoreRef,
}

/// A lane of calls that are known beforehand.
pub struct Listed {
    calls: std::vec::IntoIter<(&'static str, Json)>,
    over: Arc<AtomicBool>,
}

impl Listed {
    /// The lane, and a flag that is raised when it has reached its end.
    #[must_use]
    pub fn new(calls: Vec<(&'static str, Json)>) -> (Self, Arc<AtomicBool>) {
        let over = Arc::new(AtomicBool::new(false));
        (Self { calls: calls.into_iter(), over: Arc::clone(&over) }, over)
    }
}

impl Lane for Listed {
    fn next(&mut self) -> Option<(&'static str, Json)> {
        let next = self.calls.next();
        if next.is_none() {
            self.over.store(true, Ordering::Relaxed);
        }
        next
    }

    fn answered(&mut self, answer: &Answer) {
        if matches!(answer, Answer::Fault(_)) {
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

/// A lane that makes one call again and again until another lane is over.
pub struct Until {
    /// The call.
    pub call: (&'static str, Json),
    /// Raised by the other lane.
    pub over: Arc<AtomicBool>,
    /// The most calls.
    pub most: u32,
}

impl Lane for Until {
    fn next(&mut self) -> Option<(&'static str, Json)> {
        if self.most == 0 || self.over.load(Ordering::Relaxed) {
            return None;
        }
        self.most -= 1;
        Some(self.call.clone())
    }

    fn answered(&mut self, _answer: &Answer) {}
}

impl Trial<'_> {
    /// Opens a fresh storage in one process and attaches a second one to it.
    ///
    /// # Errors
    /// A violation where the peer cannot attach, a fault where there are no two processes.
    pub fn pair(&mut self) -> Result<Pair, Stop> {
        let sides = self.processes(2)?;
        let [a, b] = sides[..] else {
            let message = format!("the bench lent {} processes for 2", sides.len());
            return Err(Stop::Fault(Fault::new(FaultKind::Bench, message)));
        };
        let a = self.open_on(a)?;
        let b = self.attach_on(b, &a)?;
        Ok(Pair { a, b })
    }

    /// Starts a new peer in place of one that is gone, and attaches it.
    ///
    /// # Errors
    /// As [`Trial::pair`].
    pub fn new_peer(&mut self, pair: &mut Pair) -> Verdict {
        self.processes(2)?;
        pair.b = self.attach_on(pair.b.side, &pair.a)?;
        Ok(())
    }

    /// The params of an append.
    #[must_use]
    pub fn append_params(&mut self, store: &StoreRef, to: &Address, body: &Json) -> Json {
        json!({
            "store": store.id, "scope": to.scope.0, "handle": to.handle.0, "body": body,
            "now": self.now_ms(),
        })
    }

    /// The appends of `bodies` as a lane's calls.
    pub fn append_calls(
        &mut self,
        store: &StoreRef,
        to: &Address,
        bodies: &[Json],
    ) -> Vec<(&'static str, Json)> {
        bodies.iter().map(|body| ("mailbox/append", self.append_params(store, to, body))).collect()
    }

    /// What the appends of one side of a race were promised, in its order.
    ///
    /// # Errors
    /// A violation where one was refused.
    pub fn receipts(&mut self, raced: &[Raced], side: Side) -> Result<Vec<Sent>, Stop> {
        let mut receipts = Vec::new();
        for call in raced.iter().filter(|call| call.side == side) {
            let answer = match &call.answer {
                Some(Answer::Result(result)) => Ok(result.clone()),
                Some(Answer::Error(error)) => Err(error.clone()),
                Some(Answer::Fault(fault)) => return Err(Stop::Fault(fault.clone())),
                None => continue,
            };
            if call.method != "mailbox/append" {
                continue;
            }
            match self.read::<AppendResult>(call.method, answer, false)? {
                Ok(AppendResult { seq }) => {
                    let body = call.params.get("body").cloned().unwrap_or_default();
                    receipts.push(Sent { seq: seq_of(&seq)?, body });
                }
                Err(refusal) => {
                    return broken(
                        "append takes a harmless body, whatever other processes do",
                        format!("append was {refusal}"),
                    );
                }
            }
        }
        Ok(receipts)
    }

    /// Claims and acks in one process until `null`: what comes must be `receipts` in the order of their
    /// numbers, with nothing lost and nothing between, except that `maybe`, an append that was cut off
    /// after all of them, may be there whole.
    ///
    /// # Errors
    /// A violation of `promised` otherwise.
    pub fn accounts_for(
        &mut self,
        store: &StoreRef,
        of: &Address,
        receipts: &[Sent],
        maybe: Option<&Json>,
        promised: &str,
    ) -> Verdict {
        let mut expected = receipts.to_vec();
        expected.sort_by_key(|sent| sent.seq);
        let mut found = self.drain(store, of)?;
        if let Some(body) = maybe
            && found.last().is_some_and(|last| {
                crate::json::same(&last.body, body)
                    && expected.iter().all(|sent| sent.seq < last.seq)
            })
        {
            found.pop();
        }
        if same_messages(&found, &expected) {
            return Ok(());
        }
        broken(promised, format!("{of}: {}", difference(&found, &expected)))
    }

    /// Sees to it that the survivor of a kill answers: it is asked to append to a box of its own up to
    /// three times, with a whole deadline between two refusals, since a store may hold on to what the
    /// dead one held for a while.
    ///
    /// # Errors
    /// [`Stop::Undecided`] where it never does: `not-blocked-by-the-dead` judges that, and whatever else
    /// a clause wants to know cannot be seen.
    pub fn survivor_answers(&mut self, survivor: &StoreRef) -> Verdict {
        let knock = at("knock");
        for knocks in 1..=KNOCKS_MAX {
            if self.append_with(survivor, &knock, &json!("knock"), false)?.is_ok() {
                return Ok(());
            }
            if knocks < KNOCKS_MAX {
                self.pause(self.deadline_ms())?;
            }
        }
        Err(Stop::Undecided("the survivor of a kill was refused whatever it asked".to_owned()))
    }
}

/// Where what came and what had to come part.
fn difference(found: &[Sent], expected: &[Sent]) -> String {
    let is_in = |all: &[Sent], m: &Sent| all.iter().any(|other| other.seq == m.seq);
    let missing: Vec<Sent> = expected.iter().filter(|m| !is_in(found, m)).cloned().collect();
    let extra: Vec<Sent> = found.iter().filter(|m| !is_in(expected, m)).cloned().collect();
    let mut said = Vec::new();
    if !missing.is_empty() {
        said.push(format!(
            "{} of {} receipts were not delivered: {}",
            missing.len(),
            expected.len(),
            shown(&missing)
        ));
    }
    if !extra.is_empty() {
        said.push(format!("delivered without a receipt: {}", shown(&extra)));
    }
    let pairs = found.iter().zip(expected).zip(1..);
    if said.is_empty()
        && let Some(((got, due), at)) = pairs.into_iter().find(|((got, due), _)| {
            !same_messages(std::slice::from_ref(*got), std::slice::from_ref(*due))
        })
    {
        let one = std::slice::from_ref;
        said.push(format!("delivery {at} was {}, not {}", shown(one(got)), shown(one(due))));
    }
    if said.is_empty() {
        said.push(format!("{} messages came, not {}", found.len(), expected.len()));
    }
    said.join("; ")
}

/// Bodies `<word>1`, `<word>2`, …
#[must_use]
pub fn bodies(word: &str, count: usize) -> Vec<Json> {
    (1..=count).map(|i| Json::from(format!("{word}{i}"))).collect()
}
