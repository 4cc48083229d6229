//! Plan to events: the only place with threads.
//!
//! Each worker has a subject of its own (a child process, or a value in this process) and takes the
//! next case that is to be judged. A case that finds no subject is a fault of that case; the next one
//! gets a new subject. Nothing that a subject does ends the run early, and what was judged is kept.

use crate::adapter::{DEEP_STACK_BYTES, Stand};
use crate::event::Event;
use crate::plan::{Fate, Plan};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use storeproof_contract::call::{Fault, FaultKind};
use storeproof_contract::trial::{Judgement, Stop, judge};

/// How many of a child's notes are told for one case.
const NOTES_TOLD_MAX: usize = 2;

/// A worker's subject.
pub type BoxedStand = Box<dyn Stand>;

/// What the workers share.
struct Shared<'a> {
    plan: &'a Plan,
    queue: Mutex<std::vec::IntoIter<usize>>,
    interrupted: &'a AtomicBool,
    seed: u64,
    budget: Duration,
}

/// Judges every case of the plan that is to be judged, one worker for each of `stands`, and hands each
/// event to `watch` on the calling thread. `budget` is what the calls of one clause may take together.
///
/// # Errors
/// The machine's, where no thread can be started.
pub fn run(
    plan: &Plan,
    stands: Vec<BoxedStand>,
    seed: u64,
    budget: Duration,
    interrupted: &AtomicBool,
    mut watch: impl FnMut(Event),
) -> io::Result<()> {
    let to_judge: Vec<usize> =
        (0..plan.cases.len()).filter(|i| plan.cases[*i].fate == Fate::Judge).collect();
    let queue = Mutex::new(to_judge.into_iter());
    let shared = Shared { plan, queue, interrupted, seed, budget };
    thread::scope(|scope| {
        let (events, inbox) = channel();
        for (i, stand) in stands.into_iter().enumerate() {
            let (shared, events) = (&shared, events.clone());
            // Deeply nested answers are parsed and dropped by recursion.
            thread::Builder::new()
                .name(format!("worker-{}", i + 1))
                .stack_size(DEEP_STACK_BYTES)
                .spawn_scoped(scope, move || work(shared, stand, &events))?;
        }
        drop(events);
        for event in inbox {
            watch(event);
        }
        Ok(())
    })
}

fn work(shared: &Shared<'_>, mut stand: BoxedStand, events: &Sender<Event>) {
    while let Some(case) = next(shared) {
        // The receiver outlives the workers; if it is gone, so is the run.
        let _ = events.send(Event::Began { case });
        let started = Instant::now();
        let mut judgement = judge_one(shared, stand.as_mut(), case);
        judgement.advisories.extend(told(stand.take_notes()));
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let _ = events.send(Event::Ended { case, judgement: Box::new(judgement), ms });
    }
    stand.finish();
}

fn next(shared: &Shared<'_>) -> Option<usize> {
    if shared.interrupted.load(Ordering::Relaxed) {
        return None;
    }
    shared.queue.lock().unwrap_or_else(PoisonError::into_inner).next()
}

fn judge_one(shared: &Shared<'_>, stand: &mut dyn Stand, case: usize) -> Judgement {
    if let Err(fault) = stand.renew() {
        return could_not_judge(fault);
    }
    stand.begin_clause(shared.budget);
    let case = &shared.plan.cases[case];
    let seed = case_seed(shared.seed, &case.id);
    // A clause that panics is a bug of the bench; the case says so and the run goes on.
    catch_unwind(AssertUnwindSafe(|| judge(case.clause, stand, seed))).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        could_not_judge(Fault::new(
            FaultKind::Bench,
            format!("the clause itself panicked, please report it: {words}"),
        ))
    })
}

/// A chatty child's notes in a few lines.
fn told(mut notes: Vec<String>) -> Vec<String> {
    if notes.len() > NOTES_TOLD_MAX {
        let more = notes.len() - NOTES_TOLD_MAX;
        notes.truncate(NOTES_TOLD_MAX);
        notes.push(format!("and {more} notes more of the same case"));
    }
    notes
}

fn could_not_judge(fault: Fault) -> Judgement {
    Judgement {
        verdict: Err(Stop::Fault(fault)),
        steps: Vec::new(),
        advisories: Vec::new(),
        picture: None,
    }
}

/// Each case draws from a seed of its own, so that the same case draws the same whatever else runs.
fn case_seed(seed: u64, id: &str) -> u64 {
    // FNV-1a: stable for ever, which std's hasher does not promise.
    id.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
