//! One call of a history: who asked what, when, and what came back.

use crate::backend::Clock;
use crate::call::{Answer, Fault, FaultKind, REFUSED};
use crate::host::Nothing;
use crate::json::{Json, cut, excerpt};
use crate::mailbox::delivery::{Sent, shown};
use crate::mailbox::store::{Address, Handle, Scope};
use crate::mailbox::wire::{
    AckParams, AckResult, AppendParams, AppendResult, BoxParams, ClaimParams, ClaimResult,
    DropResult, LeaseParams, PeekResult, ReapParams, RenewParams, WireMessage,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A moment of a run, twice: as a place in its order and as a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// A counter of the whole run: where a call's answer has a lower one than another call's sending,
    /// the first had really ended before the second began.
    pub order: u64,
    /// The epoch millisecond by which leases are judged; on the caller's clock both stamps of a call
    /// hold its `now`.
    pub ms: u64,
}

/// What a call asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// `mailbox/append`.
    Append {
        /// The body.
        body: Json,
    },
    /// `mailbox/claim`.
    Claim {
        /// Who claims.
        owner: String,
        /// How long the lease is to live.
        ttl_ms: u64,
        /// The most messages to deliver.
        max: Option<u64>,
    },
    /// `mailbox/ack`.
    Ack {
        /// Who acks.
        owner: String,
        /// The lease to settle.
        lease: String,
        /// Delivered messages up to and including this seq go.
        up_to: u64,
    },
    /// `mailbox/release`.
    Release {
        /// Who releases.
        owner: String,
        /// The lease.
        lease: String,
    },
    /// `mailbox/renew`.
    Renew {
        /// Who renews.
        owner: String,
        /// The lease.
        lease: String,
        /// How long it is to live from here.
        ttl_ms: u64,
    },
    /// `mailbox/peek`.
    Peek,
    /// `mailbox/drop`.
    Drop,
    /// `mailbox/reap`, which touches every box; its [`Call::of`] says nothing.
    Reap,
}

/// What a call that was carried out answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Got {
    /// An append's receipt.
    Seq(u64),
    /// A claim that found nothing, or a fence.
    Null,
    /// A claim's lease with its messages.
    Delivery {
        /// The lease.
        lease: String,
        /// What it delivered.
        messages: Vec<Sent>,
    },
    /// How many messages an ack or a drop removed, as it was answered.
    Count(f64),
    /// A release, a renewal or a reap.
    Done,
    /// What a peek showed.
    Messages(Vec<Sent>),
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was carried out.
    Ok(Got),
    /// It was refused, for the reason given; nothing may have changed.
    Refused(String),
    /// Its caller was killed or gave up waiting: it may have happened at any moment from its sending
    /// on, after everything else too, or never.
    Unknown,
}

/// One call of a history. Names and bodies are harmless ones, so that only leases justify a refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The box.
    pub of: Address,
    /// What was asked.
    pub act: Act,
    /// When it was sent.
    pub sent: Stamp,
    /// When it was answered; never for [`Outcome::Unknown`].
    pub answered: Option<Stamp>,
    /// The worker that made it: one call at a time.
    pub lane: usize,
    /// The process that carried it out; a new one has a new number.
    pub process: usize,
    /// What came of it.
    pub outcome: Outcome,
}

/// When a call was made, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// As [`Call::sent`].
    pub sent: Stamp,
    /// As [`Call::answered`].
    pub answered: Option<Stamp>,
    /// As [`Call::lane`].
    pub lane: usize,
    /// As [`Call::process`].
    pub process: usize,
}

/// By what a history is judged, beyond its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Which clock judges leases.
    pub clock: Clock,
    /// How coarse it is, in milliseconds.
    pub granularity_ms: u64,
    /// Processes that were killed, and the order at which: from there on a store may free their leases.
    pub deaths: BTreeMap<usize, u64>,
}

impl Rules {
    /// Nobody dies.
    #[must_use]
    pub fn new(clock: Clock, granularity_ms: u64) -> Self {
        Self { clock, granularity_ms, deaths: BTreeMap::new() }
    }
}

impl Call {
    /// A call as it went over the wire. No answer by the deadline, or because the process died, is
    /// [`Outcome::Unknown`].
    ///
    /// # Errors
    /// What of the call or its answer has not the protocol's form, and every other fault.
    pub fn read(method: &str, params: &Json, answer: &Answer, when: When) -> Result<Self, Fault> {
        let (of, act) = asked(method, params)?;
        let outcome = match answer {
            Answer::Result(result) => Outcome::Ok(got(method, result)?),
            Answer::Error(error) if error.code == REFUSED => {
                Outcome::Refused(error.reason().to_owned())
            }
            Answer::Error(error) => {
                let message = format!("{method} answered the error {}", error.to_json());
                return Err(Fault::new(FaultKind::Errored, message));
            }
            Answer::Fault(fault) => match fault.kind {
                FaultKind::Deadline | FaultKind::Died => Outcome::Unknown,
                FaultKind::BadLine
                | FaultKind::BadReply
                | FaultKind::BadForm
                | FaultKind::Errored
                | FaultKind::Limit
                | FaultKind::Undecided
                | FaultKind::Interrupted
                | FaultKind::Bench => return Err(fault.clone()),
            },
        };
        let When { sent, answered, lane, process } = when;
        let answered = if outcome == Outcome::Unknown { None } else { answered };
        if answered.is_none() && outcome != Outcome::Unknown {
            let message = format!("{method} was answered, but nobody noted when");
            return Err(Fault::new(FaultKind::Bench, message));
        }
        Ok(Self { of, act, sent, answered, lane, process, outcome })
    }

    /// What was asked, in a few words.
    #[must_use]
    pub fn asked(&self) -> String {
        match &self.act {
            Act::Append { body } => format!("append {}", excerpt(body)),
            Act::Claim { owner, ttl_ms, max: None } => format!("{owner} claims for {ttl_ms} ms"),
            Act::Claim { owner, ttl_ms, max: Some(max) } => {
                format!("{owner} claims {max} for {ttl_ms} ms")
            }
            Act::Ack { owner, lease, up_to } => {
                format!("{owner} acks {} up to #{up_to}", cut(lease))
            }
            Act::Release { owner, lease } => format!("{owner} releases {}", cut(lease)),
            Act::Renew { owner, lease, ttl_ms } => {
                format!("{owner} renews {} for {ttl_ms} ms", cut(lease))
            }
            Act::Peek => "peek".to_owned(),
            Act::Drop => "drop".to_owned(),
            Act::Reap => "reap".to_owned(),
        }
    }

    /// What came back, in a few words.
    #[must_use]
    pub fn came(&self) -> String {
        match &self.outcome {
            Outcome::Ok(Got::Seq(seq)) => format!("#{seq}"),
            Outcome::Ok(Got::Null) => "null".to_owned(),
            Outcome::Ok(Got::Delivery { lease, messages }) => {
                format!("{} {}", cut(lease), shown(messages))
            }
            Outcome::Ok(Got::Count(count)) => format!("{count}"),
            Outcome::Ok(Got::Done) => "done".to_owned(),
            Outcome::Ok(Got::Messages(messages)) => shown(messages),
            Outcome::Refused(reason) if reason.is_empty() => "refused".to_owned(),
            Outcome::Refused(reason) => format!("refused: {}", cut(reason)),
            Outcome::Unknown => "?".to_owned(),
        }
    }
}

fn asked(method: &str, params: &Json) -> Result<(Address, Act), Fault> {
    let of =
        |scope: String, handle: String| Address { scope: Scope(scope), handle: Handle(handle) };
    Ok(match method {
        "mailbox/append" => {
            let p: AppendParams = params_of(method, params)?;
            (of(p.scope, p.handle), Act::Append { body: p.body })
        }
        "mailbox/claim" => {
            let p: ClaimParams = params_of(method, params)?;
            let ttl_ms = whole(method, "ttlMs", &p.ttl_ms)?;
            let max = p.max.map(|max| whole(method, "max", &max)).transpose()?;
            (of(p.scope, p.handle), Act::Claim { owner: p.owner, ttl_ms, max })
        }
        "mailbox/ack" => {
            let p: AckParams = params_of(method, params)?;
            let act = Act::Ack { owner: p.owner, lease: p.lease, up_to: p.up_to };
            (of(p.scope, p.handle), act)
        }
        "mailbox/release" => {
            let p: LeaseParams = params_of(method, params)?;
            (of(p.scope, p.handle), Act::Release { owner: p.owner, lease: p.lease })
        }
        "mailbox/renew" => {
            let p: RenewParams = params_of(method, params)?;
            let ttl_ms = whole(method, "ttlMs", &p.ttl_ms)?;
            (of(p.scope, p.handle), Act::Renew { owner: p.owner, lease: p.lease, ttl_ms })
        }
        "mailbox/peek" => {
            let p: BoxParams = params_of(method, params)?;
            (of(p.scope, p.handle), Act::Peek)
        }
        "mailbox/drop" => {
            let p: BoxParams = params_of(method, params)?;
            (of(p.scope, p.handle), Act::Drop)
        }
        "mailbox/reap" => {
            let _: ReapParams = params_of(method, params)?;
            (Address::new("", ""), Act::Reap)
        }
        _ => {
            let message = format!("a history of mailbox calls has no place for {method}");
            return Err(Fault::new(FaultKind::Bench, message));
        }
    })
}

fn got(method: &str, result: &Json) -> Result<Got, Fault> {
    Ok(match method {
        "mailbox/append" => {
            let AppendResult { seq } = result_of(method, result)?;
            Got::Seq(seq_in(method, &seq)?)
        }
        "mailbox/claim" => match result_of::<Option<ClaimResult>>(method, result)? {
            None => Got::Null,
            Some(ClaimResult { lease, messages }) => {
                Got::Delivery { lease, messages: sent_in(method, messages)? }
            }
        },
        "mailbox/ack" => Got::Count(result_of::<AckResult>(method, result)?.acked),
        "mailbox/drop" => Got::Count(result_of::<DropResult>(method, result)?.dropped),
        "mailbox/peek" => {
            Got::Messages(sent_in(method, result_of::<PeekResult>(method, result)?.messages)?)
        }
        _ => {
            let _: Nothing = result_of(method, result)?;
            Got::Done
        }
    })
}

fn params_of<T: DeserializeOwned>(method: &str, params: &Json) -> Result<T, Fault> {
    T::deserialize(params).map_err(|error| {
        let message = format!("the params {} of {method}: {error}", excerpt(params));
        Fault::new(FaultKind::Bench, message)
    })
}

fn result_of<T: DeserializeOwned>(method: &str, result: &Json) -> Result<T, Fault> {
    T::deserialize(result).map_err(|error| {
        let message = format!("the result {} of {method}: {error}", excerpt(result));
        Fault::new(FaultKind::BadForm, message)
    })
}

fn whole(method: &str, member: &str, value: &Json) -> Result<u64, Fault> {
    value.as_u64().filter(|value| *value > 0).ok_or_else(|| {
        let message =
            format!("{member} of {method} is {}: a history asks nothing odd", excerpt(value));
        Fault::new(FaultKind::Bench, message)
    })
}

fn sent_in(method: &str, messages: Vec<WireMessage>) -> Result<Vec<Sent>, Fault> {
    messages.into_iter().map(|m| Ok(Sent { seq: seq_in(method, &m.seq)?, body: m.body })).collect()
}

fn seq_in(method: &str, seq: &Json) -> Result<u64, Fault> {
    let as_whole = |number: f64| number.fract() == 0.0 && (0.0..1e19).contains(&number);
    match (seq.as_u64(), seq.as_f64()) {
        (Some(seq), _) => Ok(seq),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole and in range"
        )]
        (None, Some(number)) if as_whole(number) => Ok(number as u64),
        (None, _) => {
            let message = format!("a seq in the result of {method} is {}", excerpt(seq));
            Err(Fault::new(FaultKind::BadForm, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{INTERNAL, RpcError};
    use serde_json::json;

    fn read(method: &str, params: &Json, answer: &Answer) -> Result<Call, Fault> {
        let stamp = |order| Stamp { order, ms: 7 };
        let when = When { sent: stamp(1), answered: Some(stamp(2)), lane: 0, process: 0 };
        Call::read(method, params, answer, when)
    }

    fn kind(method: &str, params: &Json, answer: &Answer) -> FaultKind {
        read(method, params, answer).expect_err("a fault").kind
    }

    #[test]
    fn a_call_is_read_from_the_wire() {
        let params = json!({
            "store": "s", "scope": "default", "handle": "alpha", "owner": "ann", "ttlMs": 50,
            "max": 2, "now": 7,
        });
        let delivered = json!({ "lease": "l", "messages": [{ "seq": 3.0, "body": null }] });
        let call = read("mailbox/claim", &params, &Answer::Result(delivered)).expect("a call");
        assert_eq!(call.asked(), "ann claims 2 for 50 ms");
        assert_eq!(call.came(), "l [#3 null]");
        let call = read("mailbox/claim", &params, &Answer::Result(Json::Null)).expect("a call");
        assert_eq!(call.outcome, Outcome::Ok(Got::Null));
        let refusal = Answer::Error(RpcError::refused("lease_not_held", "no"));
        let call = read("mailbox/claim", &params, &refusal).expect("a call");
        assert_eq!(call.outcome, Outcome::Refused("lease_not_held".to_owned()));
        let hung = Answer::Fault(Fault::new(FaultKind::Deadline, "5 s"));
        let call = read("mailbox/claim", &params, &hung).expect("a call");
        assert_eq!((call.outcome, call.answered), (Outcome::Unknown, None));
    }

    #[test]
    fn what_has_not_the_form_is_a_fault() {
        let of = json!({ "store": "s", "scope": "default", "handle": "alpha", "now": 7 });
        let result = |value: Json| Answer::Result(value);
        assert_eq!(kind("mailbox/peek", &of, &result(json!({}))), FaultKind::BadForm);
        assert_eq!(
            kind("mailbox/drop", &of, &result(json!({ "dropped": "1" }))),
            FaultKind::BadForm
        );
        assert_eq!(kind("mailbox/claim", &of, &result(Json::Null)), FaultKind::Bench);
        assert_eq!(kind("store/open", &of, &result(Json::Null)), FaultKind::Bench);
        let error = RpcError { code: INTERNAL, message: "disk".to_owned(), data: None };
        assert_eq!(kind("mailbox/drop", &of, &Answer::Error(error)), FaultKind::Errored);
        let mut append = of.clone();
        append["body"] = json!("a");
        for seq in [json!(1.5), json!("1"), json!(-1)] {
            let answer = result(json!({ "seq": seq }));
            assert_eq!(kind("mailbox/append", &append, &answer), FaultKind::BadForm);
        }
    }
}
