//! The mailbox as stateright asks for it: a sequential object, exact to the millisecond of the
//! caller's clock, with the answers that the model gives.

use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use std::collections::VecDeque;
use storeproof_contract::mailbox::history::{Act, Call, Got, Outcome};

/// One box.
#[derive(Clone, Default)]
pub struct Mailbox {
    last_seq: u64,
    messages: VecDeque<u64>,
    lease: Option<(String, String, u64, usize)>,
}

#[derive(Clone, Debug)]
pub struct Op {
    act: Act,
    now: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ret(Outcome);

impl Mailbox {
    fn holds(&self, owner: &str, lease: &str, now: u64) -> Option<usize> {
        let (id, holder, expiry, delivered) = self.lease.as_ref()?;
        (id == lease && holder == owner && now < *expiry).then_some(*delivered)
    }
}

impl SequentialSpec for Mailbox {
    type Op = Op;
    type Ret = Ret;

    fn invoke(&mut self, _op: &Op) -> Ret {
        // Only calls in flight at the end are invoked without their answer, and there are none.
        Ret(Outcome::Unknown)
    }

    fn is_valid_step(&mut self, op: &Op, ret: &Ret) -> bool {
        match (&op.act, &ret.0) {
            (Act::Append { .. }, Outcome::Ok(Got::Seq(seq))) => {
                let rises = *seq > self.last_seq;
                self.last_seq = *seq;
                self.messages.push_back(*seq);
                rises
            }
            (Act::Claim { .. }, Outcome::Ok(Got::Null)) => {
                let live = self.lease.as_ref().is_some_and(|(_, _, expiry, _)| op.now < *expiry);
                self.messages.is_empty() || live
            }
            (Act::Claim { owner, ttl_ms, .. }, Outcome::Ok(Got::Delivery { lease, messages })) => {
                if self.lease.as_ref().is_some_and(|(_, _, expiry, _)| op.now < *expiry) {
                    return self.holds(owner, lease, op.now) == Some(messages.len());
                }
                let expiry = op.now + ttl_ms;
                self.lease = Some((lease.clone(), owner.clone(), expiry, messages.len()));
                messages.len() <= self.messages.len()
                    && messages.iter().zip(&self.messages).all(|(m, seq)| m.seq == *seq)
            }
            (Act::Ack { owner, lease, up_to }, outcome) => {
                let Some(delivered) = self.holds(owner, lease, op.now) else {
                    return matches!(outcome, Outcome::Refused(_));
                };
                let waiting = self.messages.iter().take(delivered);
                let went = waiting.take_while(|seq| *seq <= up_to).count();
                self.messages.drain(..went);
                self.lease = None;
                *outcome == Outcome::Ok(Got::Count(went as f64))
            }
            (Act::Release { owner, lease }, outcome) => {
                if self.holds(owner, lease, op.now).is_none() {
                    return matches!(outcome, Outcome::Refused(_));
                }
                self.lease = None;
                *outcome == Outcome::Ok(Got::Done)
            }
            (Act::Renew { owner, lease, ttl_ms }, outcome) => {
                if self.holds(owner, lease, op.now).is_none() {
                    return matches!(outcome, Outcome::Refused(_));
                }
                if let Some((_, _, expiry, _)) = &mut self.lease {
                    *expiry = op.now + ttl_ms;
                }
                *outcome == Outcome::Ok(Got::Done)
            }
            _ => false,
        }
    }
}

/// A tester that has seen the whole history.
pub fn tester(history: &[Call]) -> LinearizabilityTester<usize, Mailbox> {
    let mut events: Vec<(u64, bool, &Call)> = Vec::new();
    for call in history {
        events.push((call.sent.order, false, call));
        events.push((call.answered.map_or(u64::MAX, |stamp| stamp.order), true, call));
    }
    events.sort_by_key(|(order, ..)| *order);
    let mut tester = LinearizabilityTester::new(Mailbox::default());
    for (_, is_answer, call) in events {
        let taken = if is_answer {
            tester.on_return(call.lane, Ret(call.outcome.clone())).map(|_| ())
        } else {
            let op = Op { act: call.act.clone(), now: call.sent.ms };
            tester.on_invoke(call.lane, op).map(|_| ())
        };
        taken.expect("one call at a time in each lane");
    }
    tester
}

/// What stateright says.
pub fn is_good(tester: &LinearizabilityTester<usize, Mailbox>) -> bool {
    tester.serialized_history().is_some()
}
