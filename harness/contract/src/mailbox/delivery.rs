//! What was sent and what was delivered, and whether the two agree.

use super::store::Address;
use super::wire::WireMessage;
use crate::call::{Fault, FaultKind};
use crate::json::{Json, excerpt, same};
use crate::trial::{Stop, StoreRef, Trial, Verdict, broken};

/// The most claims one drain may take beyond the messages that it should find.
const DRAIN_CLAIMS_MAX: usize = 2_000;

/// What was appended, with its receipt.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The receipt.
    pub seq: u64,
    /// The body.
    pub body: Json,
}

impl Trial<'_> {
    /// Claims and acks until `null`; everything delivered, in order.
    ///
    /// # Errors
    /// A violation where something acked comes again, or an ack of the drain is refused.
    pub fn drain(&mut self, store: &StoreRef, from: &Address) -> Result<Vec<Sent>, Stop> {
        let mut drained: Vec<Sent> = Vec::new();
        for _ in 0..DRAIN_CLAIMS_MAX {
            let Some(lease) = self.claim(store, from, "drainer")? else { return Ok(drained) };
            let up_to = lease.last_seq();
            if let Some(again) =
                lease.messages.iter().find(|m| drained.iter().any(|d| d.seq == m.seq))
            {
                return broken(
                    "what was acked is never delivered again",
                    format!(
                        "{} was delivered on {from} after its ack",
                        shown(std::slice::from_ref(again))
                    ),
                );
            }
            self.ack(store, &lease, up_to)?;
            drained.extend(lease.messages);
        }
        let message = format!("{DRAIN_CLAIMS_MAX} claims and acks did not empty {from}");
        Err(Stop::Fault(Fault::new(FaultKind::Limit, message)))
    }

    /// Drains the box, which must hold exactly `expected`, in order.
    ///
    /// # Errors
    /// A violation of `promised` where it does not.
    pub fn holds_exactly(
        &mut self,
        store: &StoreRef,
        of: &Address,
        expected: &[Sent],
        promised: &str,
    ) -> Verdict {
        let drained = self.drain(store, of)?;
        if same_messages(&drained, expected) {
            return Ok(());
        }
        broken(promised, format!("{of} held {}, not {}", shown(&drained), shown(expected)))
    }
}

/// Whether two deliveries are the same messages in the same order.
#[must_use]
pub fn same_messages(a: &[Sent], b: &[Sent]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.seq == b.seq && same(&a.body, &b.body))
}

/// The delivery must be a non-empty prefix of `waiting`, in order.
///
/// # Errors
/// A violation of `promised` where it is not.
pub fn is_prefix(delivered: &[Sent], waiting: &[Sent], promised: &str) -> Verdict {
    let prefix = waiting.get(..delivered.len());
    if !delivered.is_empty() && prefix.is_some_and(|prefix| same_messages(delivered, prefix)) {
        return Ok(());
    }
    broken(
        promised,
        format!("{} waited, and the claim delivered {}", shown(waiting), shown(delivered)),
    )
}

/// Messages as a sentence shows them.
#[must_use]
pub fn shown(messages: &[Sent]) -> String {
    const SHOWN_MAX: usize = 6;
    if messages.is_empty() {
        return "nothing".to_owned();
    }
    let mut parts: Vec<String> = messages
        .iter()
        .take(SHOWN_MAX)
        .map(|m| format!("#{} {}", m.seq, excerpt(&m.body)))
        .collect();
    if messages.len() > SHOWN_MAX {
        parts.push(format!("… ({} in all)", messages.len()));
    }
    format!("[{}]", parts.join(", "))
}

pub(super) fn sent(messages: Vec<WireMessage>) -> Result<Vec<Sent>, Stop> {
    messages.into_iter().map(|m| Ok(Sent { seq: seq_of(&m.seq)?, body: m.body })).collect()
}

/// A seq as a whole number; its range is judged by `mailbox/core/seq-increases` alone.
pub(super) fn seq_of(seq: &Json) -> Result<u64, Stop> {
    if let Some(whole) = seq.as_u64() {
        return Ok(whole);
    }
    match seq.as_f64() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole and in range"
        )]
        Some(number) if number.fract() == 0.0 && (0.0..1e19).contains(&number) => Ok(number as u64),
        Some(_) => broken("a seq is an integer in 1..2^53-1", format!("the seq {}", excerpt(seq))),
        None => {
            let message = format!("a seq is {}, not a number", excerpt(seq));
            Err(Stop::Fault(Fault::new(FaultKind::BadForm, message)))
        }
    }
}
