//! A run in words: the numbered steps with what each was answered.

use super::run::{Run, Told};
use super::script::{Script, Step};
use storeproof_contract::backend::Side;

/// The most calls of one step that are told one by one.
const CALLS_TOLD_MAX: usize = 3;

/// The steps of `script` with the answers of `run`, a line each; a step that makes many calls is told
/// by its first ones and its last.
#[must_use]
pub fn steps(script: &Script, run: &Run) -> Vec<String> {
    let several = script.processes() > 1;
    let racing = script.is_concurrent();
    let mut lines = Vec::new();
    for step in &script.steps {
        let asked = format!("{:>3}. {}{}", step.id, whose(step, several, racing), step.act);
        let calls: Vec<&Told> = run.told.iter().filter(|told| told.step == step.id).collect();
        let why = run.left_out.iter().find(|(id, _)| *id == step.id).map(|(_, why)| why);
        match (calls.as_slice(), why) {
            (_, Some(why)) => lines.push(format!("{asked} -> left out: {why}")),
            ([], None) => lines.push(asked),
            ([one], None) => lines.push(format!("{asked} -> {}", one.call.came())),
            (many, None) => {
                lines.push(asked);
                lines.extend(those(many));
            }
        }
    }
    lines
}

/// The steps of `script` alone.
#[must_use]
pub fn asked(script: &Script) -> Vec<String> {
    let (several, racing) = (script.processes() > 1, script.is_concurrent());
    let line =
        |step: &Step| format!("{:>3}. {}{}", step.id, whose(step, several, racing), step.act);
    script.steps.iter().map(line).collect()
}

fn whose(step: &Step, several: bool, racing: bool) -> String {
    let process = Side(step.process).letter();
    match (several, racing && step.lane > 0) {
        (false, false) => String::new(),
        (true, false) => format!("{process}: "),
        (false, true) => format!("lane {}: ", step.lane),
        (true, true) => format!("{process}, lane {}: ", step.lane),
    }
}

fn those(calls: &[&Told]) -> Vec<String> {
    let line = |told: &&Told| format!("     {} -> {}", told.call.asked(), told.call.came());
    if calls.len() <= CALLS_TOLD_MAX + 1 {
        return calls.iter().map(line).collect();
    }
    let mut lines: Vec<String> = calls[..CALLS_TOLD_MAX].iter().map(line).collect();
    lines.push(format!("     … {} calls more …", calls.len() - CALLS_TOLD_MAX - 1));
    lines.extend(calls.last().map(line));
    lines
}
