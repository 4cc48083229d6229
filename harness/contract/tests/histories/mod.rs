//! A short hand for histories in tests.

#![allow(dead_code, reason = "each test file takes what it needs")]

pub mod naive;
pub mod sim;

use serde_json::json;
use storeproof_contract::mailbox::history::{Act, Call, Got, Outcome, Stamp};
use storeproof_contract::mailbox::moves::{Sent, at};

/// How long every lease of the short hand lives, in milliseconds.
pub const TTL_MS: u64 = 100;

/// A call in short hand. Times are in milliseconds from an arbitrary beginning.
#[derive(Clone, Debug)]
pub struct Line {
    pub act: Act,
    pub outcome: Outcome,
    pub ms: u64,
    pub took_ms: u64,
    pub handle: &'static str,
    pub lane: usize,
    /// When it was sent and answered in the run's order; one after the other where it is not given.
    pub span: Option<(u64, u64)>,
}

fn line(act: Act, outcome: Outcome) -> Line {
    Line { act, outcome, ms: 0, took_ms: 0, handle: "alpha", lane: 0, span: None }
}

pub fn append(body: &str, seq: u64) -> Line {
    line(Act::Append { body: json!(body) }, Outcome::Ok(Got::Seq(seq)))
}

pub fn claim(owner: &str, ms: u64) -> Line {
    let act = Act::Claim { owner: owner.to_owned(), ttl_ms: TTL_MS, max: None };
    Line { ms, ..line(act, Outcome::Ok(Got::Null)) }
}

pub fn ack(owner: &str, lease: &str, up_to: u64) -> Line {
    let act = Act::Ack { owner: owner.to_owned(), lease: lease.to_owned(), up_to };
    line(act, Outcome::Ok(Got::Count(1.0)))
}

pub fn release(owner: &str, lease: &str) -> Line {
    let act = Act::Release { owner: owner.to_owned(), lease: lease.to_owned() };
    line(act, Outcome::Ok(Got::Done))
}

pub fn renew(owner: &str, lease: &str, ms: u64) -> Line {
    let act = Act::Renew { owner: owner.to_owned(), lease: lease.to_owned(), ttl_ms: TTL_MS };
    Line { ms, ..line(act, Outcome::Ok(Got::Done)) }
}

pub fn peek() -> Line {
    line(Act::Peek, Outcome::Ok(Got::Messages(Vec::new())))
}

pub fn drop_box() -> Line {
    line(Act::Drop, Outcome::Ok(Got::Count(0.0)))
}

pub fn reap() -> Line {
    line(Act::Reap, Outcome::Ok(Got::Done))
}

fn messages(shown: &[(u64, &str)]) -> Vec<Sent> {
    shown.iter().map(|(seq, body)| Sent { seq: *seq, body: json!(body) }).collect()
}

impl Line {
    fn answers(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    pub fn gives(self, lease: &str, shown: &[(u64, &str)]) -> Self {
        let got = Got::Delivery { lease: lease.to_owned(), messages: messages(shown) };
        self.answers(Outcome::Ok(got))
    }

    pub fn null(self) -> Self {
        self.answers(Outcome::Ok(Got::Null))
    }

    pub fn shows(self, shown: &[(u64, &str)]) -> Self {
        self.answers(Outcome::Ok(Got::Messages(messages(shown))))
    }

    pub fn count(self, count: f64) -> Self {
        self.answers(Outcome::Ok(Got::Count(count)))
    }

    pub fn done(self) -> Self {
        self.answers(Outcome::Ok(Got::Done))
    }

    pub fn refused(self) -> Self {
        self.answers(Outcome::Refused("lease_not_held".to_owned()))
    }

    pub fn unknown(self) -> Self {
        self.answers(Outcome::Unknown)
    }

    pub fn at(self, ms: u64) -> Self {
        Self { ms, ..self }
    }

    pub fn took(self, took_ms: u64) -> Self {
        Self { took_ms, ..self }
    }

    pub fn at_most(mut self, most: u64) -> Self {
        if let Act::Claim { max, .. } = &mut self.act {
            *max = Some(most);
        }
        self
    }

    pub fn on(self, handle: &'static str) -> Self {
        Self { handle, ..self }
    }

    /// In that lane, from one place in the run's order to another.
    pub fn by(self, lane: usize, sent: u64, answered: u64) -> Self {
        Self { lane, span: Some((sent, answered)), ..self }
    }

    /// The call, as the `place`th of its history.
    pub fn call(&self, place: usize) -> Call {
        let place = place as u64;
        let (sent, answered) = self.span.unwrap_or((2 * place, 2 * place + 1));
        let known = self.outcome != Outcome::Unknown;
        Call {
            of: at(self.handle),
            act: self.act.clone(),
            sent: Stamp { order: sent, ms: self.ms },
            answered: known.then_some(Stamp { order: answered, ms: self.ms + self.took_ms }),
            lane: self.lane,
            process: self.lane,
            outcome: self.outcome.clone(),
        }
    }
}
