//! What earlier steps brought about, and the calls that a step makes of it.

use super::script::{Act, LeaseRef, SeqRef, StepId, Until};
use super::terms::Terms;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use storeproof_contract::backend::Clock;
use storeproof_contract::mailbox::history::{self, Call, Got, Outcome};
use storeproof_contract::mailbox::store::SEQ_MAX;

/// The scope of every box.
pub const SCOPE: &str = "default";
/// The lease id of an invented lease.
const INVENTED: &str = "no-such-lease";
/// The seq that stands for one that was never learned.
const SEQ_UNKNOWN: u64 = 1;
/// The most claims of one drain.
const DRAIN_CLAIMS_MAX: u32 = 300;

/// What the steps so far brought about.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    given: BTreeMap<StepId, Given>,
    receipts: BTreeMap<StepId, Vec<u64>>,
}

/// What a claim was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The lease.
    pub lease: String,
    /// Its box.
    pub of: String,
    /// Its holder.
    pub owner: String,
    /// What it delivered.
    pub seqs: Vec<u64>,
    /// When it began, in milliseconds.
    pub from_ms: u64,
    /// To when it surely lives.
    pub live_to_ms: u64,
    /// From when it is surely over.
    pub dead_from_ms: u64,
}

impl Memory {
    /// Notes what a call of step `id` came to.
    pub fn learn(&mut self, id: StepId, call: &Call, terms: &Terms) {
        let Outcome::Ok(got) = &call.outcome else { return };
        let (sent_ms, answered_ms) = (call.sent.ms, call.answered.unwrap_or(call.sent).ms);
        match (&call.act, got) {
            (history::Act::Append { .. }, Got::Seq(seq)) => {
                self.receipts.entry(id).or_default().push(*seq);
            }
            (history::Act::Claim { owner, ttl_ms, .. }, got) => {
                let of = &call.of.handle.0;
                let (live_to_ms, dead_from_ms) = terms.lifetime(sent_ms, answered_ms, *ttl_ms);
                // The holder asked again, which may or may not have moved the end of her lease.
                let again = |given: &&mut Given| {
                    given.of == *of && given.owner == *owner && sent_ms < given.dead_from_ms
                };
                for given in self.given.values_mut().filter(again) {
                    given.live_to_ms = given.live_to_ms.min(live_to_ms);
                    given.dead_from_ms = given.dead_from_ms.max(dead_from_ms);
                }
                let Got::Delivery { lease, messages } = got else { return };
                let known = self.given.values().find(|given| given.lease == *lease).cloned();
                let fresh = Given {
                    lease: lease.clone(),
                    of: of.clone(),
                    owner: owner.clone(),
                    seqs: messages.iter().map(|m| m.seq).collect(),
                    from_ms: sent_ms,
                    live_to_ms,
                    dead_from_ms,
                };
                self.given.insert(id, known.unwrap_or(fresh));
            }
            (history::Act::Renew { lease, ttl_ms, .. }, Got::Done) => {
                let (live_to_ms, dead_from_ms) = terms.lifetime(sent_ms, answered_ms, *ttl_ms);
                for given in self.given.values_mut().filter(|given| given.lease == *lease) {
                    (given.from_ms, given.live_to_ms) = (sent_ms, live_to_ms);
                    given.dead_from_ms = dead_from_ms;
                }
            }
            _ => {}
        }
    }

    /// Notes the real moments of a call that was made in a race.
    pub fn learn_again(&mut self, id: StepId, call: &Call, terms: &Terms) {
        if !matches!(call.act, history::Act::Append { .. }) {
            self.given.remove(&id);
            self.learn(id, call, terms);
        }
    }

    /// Until when a wait lasts; `None` where it is for a lease that nobody was given.
    #[must_use]
    pub fn until_ms(&self, until: Until, now_ms: u64, terms: &Terms) -> Option<u64> {
        Some(match until {
            Until::In(span) => now_ms + terms.ms(span),
            Until::Past(id) => self.given.get(&id)?.dead_from_ms,
            Until::JustBefore(id) => {
                let given = self.given.get(&id)?;
                match terms.clock {
                    Clock::Caller => given.live_to_ms,
                    // What is asked then must also be answered before the end.
                    Clock::Wall => {
                        given.from_ms + given.live_to_ms.saturating_sub(given.from_ms) * 3 / 4
                    }
                }
            }
        })
    }

    fn lease(&self, lease: LeaseRef) -> String {
        let given = lease.claim().and_then(|id| self.given.get(&id));
        let Some(id) = given.map(|given| given.lease.as_str()) else { return INVENTED.to_owned() };
        match lease {
            LeaseRef::Of(_) => id.to_owned(),
            LeaseRef::Invented => INVENTED.to_owned(),
            LeaseRef::BeginningOf(_) => {
                let mut chars = id.chars();
                chars.next_back();
                let beginning = chars.as_str();
                if beginning.is_empty() { INVENTED.to_owned() } else { beginning.to_owned() }
            }
            LeaseRef::LongerThan(_) => format!("{id}0"),
            LeaseRef::OtherCaseOf(_) => {
                let other = |c: char| match c {
                    'a'..='z' => c.to_ascii_uppercase(),
                    _ => c.to_ascii_lowercase(),
                };
                id.chars().map(other).collect()
            }
        }
    }

    fn seq(&self, seq: SeqRef) -> u64 {
        let nth = |id: StepId, n: u32| {
            let seqs = &self.given.get(&id)?.seqs;
            seqs.get(usize::try_from(n).ok()?).or_else(|| seqs.last()).copied()
        };
        let found = match seq {
            SeqRef::OfAppend(id) => self.receipts.get(&id).and_then(|seqs| seqs.last().copied()),
            SeqRef::LastOf(id) => nth(id, u32::MAX),
            SeqRef::NthOf(id, n) => nth(id, n),
            SeqRef::BelowNth(id, n) => nth(id, n).map(|seq| seq.saturating_sub(1)),
            SeqRef::Beyond => Some(SEQ_MAX),
        };
        found.unwrap_or(SEQ_UNKNOWN).min(SEQ_MAX)
    }
}

/// A step under way: the calls that it makes, one after the other.
#[derive(Clone, Debug)]
pub struct Doing {
    /// The step's.
    pub id: StepId,
    act: Act,
    made: u32,
    /// What a drain was delivered and has not acked.
    to_ack: Option<(String, u64)>,
    over: bool,
}

impl Doing {
    /// The step `id` that asks `act`.
    #[must_use]
    pub fn new(id: StepId, act: Act) -> Self {
        Self { id, act, made: 0, to_ack: None, over: false }
    }

    /// Its next call, if there is one.
    pub fn next(
        &mut self,
        memory: &Memory,
        terms: &Terms,
        store: &str,
        now: u64,
    ) -> Option<(&'static str, Json)> {
        let calls = match &self.act {
            Act::Append { times, .. } => *times,
            Act::Drain { .. } => 2 * DRAIN_CLAIMS_MAX,
            Act::Wait { .. } | Act::Reopen => 0,
            Act::Claim { .. }
            | Act::Ack { .. }
            | Act::Release { .. }
            | Act::Renew { .. }
            | Act::Peek { .. }
            | Act::Drop { .. }
            | Act::Reap => 1,
        };
        if self.over || self.made >= calls {
            return None;
        }
        self.made += 1;
        let (method, own) = self.asked(memory, terms)?;
        let mut params = json!({ "store": store });
        if let Some(of) = self.act.of() {
            (params["scope"], params["handle"]) = (json!(SCOPE), json!(of));
        }
        if let (Some(params), Json::Object(own)) = (params.as_object_mut(), own) {
            params.extend(own);
        }
        params["now"] = json!(now);
        Some((method, params))
    }

    /// The method with those of its params that not every call has.
    fn asked(&mut self, memory: &Memory, terms: &Terms) -> Option<(&'static str, Json)> {
        let claim = |owner: &str, ttl_ms: u64, max: Option<u64>| match max {
            None => json!({ "owner": owner, "ttlMs": ttl_ms }),
            Some(max) => json!({ "owner": owner, "ttlMs": ttl_ms, "max": max }),
        };
        Some(match &self.act {
            Act::Append { body, times: 1, .. } => ("mailbox/append", json!({ "body": body })),
            Act::Append { body, .. } => {
                ("mailbox/append", json!({ "body": format!("{body}-{}", self.made) }))
            }
            Act::Claim { owner, ttl, max, .. } => {
                ("mailbox/claim", claim(owner, terms.ms(*ttl), *max))
            }
            Act::Ack { owner, lease, up_to, .. } => {
                let (lease, up_to) = (memory.lease(*lease), memory.seq(*up_to));
                ("mailbox/ack", json!({ "owner": owner, "lease": lease, "upTo": up_to }))
            }
            Act::Release { owner, lease, .. } => {
                ("mailbox/release", json!({ "owner": owner, "lease": memory.lease(*lease) }))
            }
            Act::Renew { owner, lease, ttl, .. } => {
                let (lease, ttl_ms) = (memory.lease(*lease), terms.ms(*ttl));
                ("mailbox/renew", json!({ "owner": owner, "lease": lease, "ttlMs": ttl_ms }))
            }
            Act::Peek { .. } => ("mailbox/peek", json!({})),
            Act::Drop { .. } => ("mailbox/drop", json!({})),
            Act::Reap => ("mailbox/reap", json!({})),
            Act::Drain { owner, max, .. } => match self.to_ack.take() {
                Some((lease, up_to)) => {
                    ("mailbox/ack", json!({ "owner": owner, "lease": lease, "upTo": up_to }))
                }
                None => {
                    let ttl_ms = terms.ms(super::script::Span::Long);
                    ("mailbox/claim", claim(owner, ttl_ms, *max))
                }
            },
            Act::Wait { .. } | Act::Reopen => return None,
        })
    }

    /// Hears what its last call came to.
    pub fn answered(&mut self, outcome: &Outcome) {
        if !matches!(self.act, Act::Drain { .. }) {
            return;
        }
        match outcome {
            Outcome::Ok(Got::Delivery { lease, messages }) => {
                let last = messages.last().map_or(SEQ_UNKNOWN, |m| m.seq);
                self.to_ack = Some((lease.clone(), last.min(SEQ_MAX)));
            }
            Outcome::Ok(Got::Count(_)) => {}
            Outcome::Ok(Got::Seq(_) | Got::Null | Got::Done | Got::Messages(_))
            | Outcome::Refused(_)
            | Outcome::Unknown => self.over = true,
        }
    }
}
