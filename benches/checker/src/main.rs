//! What a verdict on a concurrent history costs: our checker, and stateright's `LinearizabilityTester`
//! on the same histories, in one run. Exits with 1 where what issue 3 demands does not hold.
//!
//! What it does not measure: histories with lost answers, which stateright judges by another rule.

#[path = "../../../harness/contract/tests/histories/sim.rs"]
mod sim;
mod theirs;

use sim::{Plan, run};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use storeproof_contract::backend::Clock;
use storeproof_contract::mailbox::history::{
    Act, Call, Got, Limits, Outcome, Rules, Stamp, Verdict, check, is_linearizable,
};

const WORKERS: usize = 8;
/// How often each of our measurements is repeated; the fastest counts.
const REPEATS: usize = 5;
/// How long one history may take stateright before no longer one is tried.
const THEIRS_MAX: Duration = Duration::from_secs(20);
/// Its recursion is as deep as the history is long.
const THEIRS_STACK_BYTES: usize = 4 << 30;
/// What the issue demands.
const OURS_MS_MAX: f64 = 1_000.0;
const RATIO_MIN: f64 = 100.0;
const SMALL_MAX: usize = 6;

fn plan(calls: usize, boxes: usize, consumers: usize) -> Plan {
    Plan {
        lanes: WORKERS,
        boxes,
        calls,
        clock: Clock::Caller,
        kill_one_in: 0,
        ttl_ms_max: 1_000_000,
        capped: true,
        rare_calls: false,
        plain: true,
        consumers,
    }
}

fn main() -> ExitCode {
    let mut held = true;
    println!("our checker, {WORKERS} workers, fastest of {REPEATS}:");
    for (calls, boxes) in [(10_000, 1), (10_000, 4), (80_000, 1), (80_000, 4)] {
        let (history, rules) = run(7, &plan(calls, boxes, WORKERS));
        let good = ours(&history, &rules, |verdict| *verdict == Verdict::True);
        let searched = searched(&history, &rules);
        let bad = with_a_duplicate(&history);
        let mut small = 0;
        let found = ours(&bad, &rules, |verdict| match verdict {
            Verdict::False(violation) => {
                small = violation.calls.len();
                true
            }
            Verdict::True | Verdict::Unknown(_) => false,
        });
        println!(
            "  {:>6} calls, {boxes} box(es): true in {good:>7.1} ms ({:>9.0} calls/s; search alone {searched:>6.1} ms); \
             one duplicate: false in {found:>7.1} ms, shrunk to {small} calls",
            history.len(),
            history.len() as f64 / good * 1e3,
        );
        held &= good < OURS_MS_MAX && found < OURS_MS_MAX && small <= SMALL_MAX;
    }
    println!("stateright 0.31 against ours, the same good histories, one box:");
    for consumers in [WORKERS, 1] {
        held &= against_stateright(consumers) >= RATIO_MIN;
    }
    println!(
        "must be: below {OURS_MS_MAX} ms, at most {SMALL_MAX} calls, at least {RATIO_MIN} times on the largest: {}",
        if held { "held" } else { "NOT held" }
    );
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Longer and longer histories of which `consumers` workers claim and the others append; answers the
/// ratio on the longest that stateright can do.
fn against_stateright(consumers: usize) -> f64 {
    let mut ratio = 0.0;
    for calls in [100, 300, 1_000, 2_000, 4_000, 8_000, 16_000] {
        let (history, rules) = run(7, &plan(calls, 1, consumers));
        let ours = ours(&history, &rules, |verdict| *verdict == Verdict::True);
        let row = format!("{calls:>6} calls, {consumers} claim: ours {ours:>8.2} ms");
        let Some(theirs) = theirs(history) else {
            println!("  {row}, stateright not within {THEIRS_MAX:?}");
            break;
        };
        ratio = theirs / ours;
        println!("  {row}, stateright {theirs:>10.1} ms, {ratio:>6.0} times");
    }
    ratio
}

/// Milliseconds of the fastest of our verdicts, each of which must be right.
fn ours(history: &[Call], rules: &Rules, mut right: impl FnMut(&Verdict) -> bool) -> f64 {
    let once = || {
        let started = Instant::now();
        let verdict = check(history, rules, &Limits::default());
        let took = started.elapsed();
        assert!(right(&verdict), "a wrong verdict: {verdict:?}");
        took.as_secs_f64() * 1e3
    };
    std::iter::repeat_with(once).take(REPEATS).fold(f64::MAX, f64::min)
}

fn searched(history: &[Call], rules: &Rules) -> f64 {
    let once = || {
        let started = Instant::now();
        assert_eq!(is_linearizable(history, rules, &Limits::default()), Some(true));
        started.elapsed().as_secs_f64() * 1e3
    };
    std::iter::repeat_with(once).take(REPEATS).fold(f64::MAX, f64::min)
}

/// Milliseconds of stateright's verdict; none where it takes too long.
fn theirs(history: Vec<Call>) -> Option<f64> {
    let (tell, told) = mpsc::channel();
    let work = move || {
        let tester = theirs::tester(&history);
        let started = Instant::now();
        let is_good = theirs::is_good(&tester);
        let took = started.elapsed();
        // Nobody listens where it took too long.
        let _ = tell.send((is_good, took));
    };
    std::thread::Builder::new().stack_size(THEIRS_STACK_BYTES).spawn(work).ok()?;
    let (is_good, took) = told.recv_timeout(THEIRS_MAX).ok()?;
    assert!(is_good, "stateright calls a good history bad");
    Some(took.as_secs_f64() * 1e3)
}

/// The history, with one more claim at its end that delivers what an ack had removed before.
fn with_a_duplicate(history: &[Call]) -> Vec<Call> {
    let mut bad = history.to_vec();
    let is_ack = |call: &&Call| matches!((&call.act, &call.outcome), (Act::Ack { .. }, Outcome::Ok(Got::Count(n))) if *n > 0.0);
    let acks: Vec<&Call> = history.iter().filter(is_ack).collect();
    let ack = acks[acks.len() / 2];
    let Act::Ack { lease: acked, .. } = &ack.act else { unreachable!("filtered above") };
    let delivered = history.iter().find_map(|call| match &call.outcome {
        Outcome::Ok(Got::Delivery { lease, messages }) if lease == acked => messages.first(),
        _ => None,
    });
    let message = delivered.expect("what was acked was delivered").clone();
    let last = history.iter().filter_map(|call| call.answered).max_by_key(|stamp| stamp.order);
    let last = last.expect("some call was answered");
    bad.push(Call {
        of: ack.of.clone(),
        act: Act::Claim { owner: "late".into(), ttl_ms: 1_000, max: None },
        sent: Stamp { order: last.order + 1, ms: last.ms },
        answered: Some(Stamp { order: last.order + 2, ms: last.ms }),
        lane: WORKERS,
        process: WORKERS,
        outcome: Outcome::Ok(Got::Delivery { lease: "again".into(), messages: vec![message] }),
    });
    bad
}
