//! Two subjects side by side: where their answers part, when lease ids and seqs are told by the steps
//! that brought them about.

use super::run::{Run, Told};
use super::script::{Script, StepId};
use std::collections::BTreeMap;
use storeproof_contract::json::excerpt;
use storeproof_contract::mailbox::history::{Got, Outcome};
use storeproof_contract::mailbox::moves::Sent;

/// Where two subjects part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The step.
    pub step: StepId,
    /// What the first one answered.
    pub first: String,
    /// What the other one answered.
    pub second: String,
}

/// The first step at which the two answer differently, whatever numbers and ids they use; `None` where
/// they agree as far as both went.
#[must_use]
pub fn parting(script: &Script, first: &Run, second: &Run) -> Option<Parting> {
    let (mut ours, mut theirs) = (Names::default(), Names::default());
    for step in &script.steps {
        let left_out = |run: &Run| run.left_out.iter().any(|(id, _)| *id == step.id);
        if left_out(first) || left_out(second) {
            continue;
        }
        let (a, b) = (ours.answers(step.id, &first.told), theirs.answers(step.id, &second.told));
        if a != b {
            return Some(Parting { step: step.id, first: a, second: b });
        }
    }
    None
}

/// How seqs and leases of one subject came about.
#[derive(Default)]
struct Names {
    seqs: BTreeMap<(String, u64), String>,
    leases: BTreeMap<String, String>,
}

impl Names {
    fn answers(&mut self, step: StepId, told: &[Told]) -> String {
        let mut words: Vec<String> = Vec::new();
        for (n, told) in (1..).zip(told.iter().filter(|told| told.step == step)) {
            let of = &told.call.of.handle.0;
            words.push(match &told.call.outcome {
                Outcome::Ok(Got::Seq(seq)) => {
                    let rises = self.seqs.keys().all(|(known, last)| known != of || last < seq);
                    let name = format!("message {n} of step {step}");
                    self.seqs.insert((of.clone(), *seq), name);
                    let how = if rises { "above" } else { "not above" };
                    format!("a receipt {how} all earlier ones")
                }
                Outcome::Ok(Got::Null) => "null".to_owned(),
                Outcome::Ok(Got::Delivery { lease, messages }) => {
                    let lease = match self.leases.get(lease) {
                        Some(known) => known.clone(),
                        None => {
                            let name = format!("lease {n} of step {step}");
                            self.leases.insert(lease.clone(), name);
                            "a new lease".to_owned()
                        }
                    };
                    format!("{lease} with {}", self.messages(of, messages))
                }
                Outcome::Ok(Got::Count(count)) => format!("{count}"),
                Outcome::Ok(Got::Done) => "done".to_owned(),
                Outcome::Ok(Got::Messages(messages)) => self.messages(of, messages),
                // Reason words are each subject's own.
                Outcome::Refused(_) => "refused".to_owned(),
                Outcome::Unknown => "no answer".to_owned(),
            });
        }
        if words.is_empty() { "nothing more".to_owned() } else { words.join("; ") }
    }

    fn messages(&self, of: &str, messages: &[Sent]) -> String {
        let name = |sent: &Sent| {
            let key = (of.to_owned(), sent.seq);
            let name = self.seqs.get(&key).map_or("a message of nowhere", String::as_str);
            format!("{name} {}", excerpt(&sent.body))
        };
        if messages.is_empty() {
            return "nothing".to_owned();
        }
        format!("[{}]", messages.iter().map(name).collect::<Vec<_>>().join(", "))
    }
}
