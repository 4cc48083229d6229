//! The concurrent checker: good histories are true, broken ones false, and two oracles agree.

mod histories;

use histories::naive;
use histories::sim::{Plan, run};
use histories::{ack, append, claim, drop_box, reap};
use proptest::prelude::*;
use storeproof_contract::backend::Clock;
use storeproof_contract::mailbox::history::{
    Act, Breach, Call, Got, Lanes, Limits, Outcome, Rules, Verdict, check, is_linearizable,
};

/// How many cases: `PROPTEST_CASES` for a long run.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

fn plans() -> impl Strategy<Value = Plan> {
    (
        (1usize..=8, 1usize..=3, 1usize..400),
        prop_oneof![Just(Clock::Caller), Just(Clock::Wall)],
        prop_oneof![Just(0u32), 10u32..200],
        prop_oneof![Just(20u64), Just(200), Just(1_000_000)],
        any::<(bool, bool)>(),
    )
        .prop_map(
            |((lanes, boxes, calls), clock, kill_one_in, ttl_ms_max, (capped, rare_calls))| {
                let (plain, consumers) = (false, lanes);
                Plan {
                    lanes,
                    boxes,
                    calls,
                    clock,
                    kill_one_in,
                    ttl_ms_max,
                    capped,
                    rare_calls,
                    plain,
                    consumers,
                }
            },
        )
}

fn tiny() -> impl Strategy<Value = Plan> {
    (1usize..=4, 2usize..=7, prop_oneof![Just(0u32), 3u32..10], prop_oneof![Just(8u64), Just(500)])
        .prop_map(|(lanes, calls, kill_one_in, ttl_ms_max)| Plan {
            lanes,
            boxes: 1,
            calls,
            clock: Clock::Caller,
            kill_one_in,
            ttl_ms_max,
            capped: false,
            rare_calls: true,
            plain: false,
            consumers: lanes,
        })
}

/// Changes one answer of a history, somehow.
fn broken(mut history: Vec<Call>, seed: u64) -> Vec<Call> {
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..200 {
        let (at, other) = (rng.usize(..history.len()), rng.usize(..history.len()));
        let (a, b) = (history[at].outcome.clone(), history[other].outcome.clone());
        let changed = match (&history[at].act, a, b) {
            (_, Outcome::Ok(Got::Delivery { lease, mut messages }), _) if rng.bool() => {
                if messages.len() > 1 && rng.bool() {
                    let last = messages.len() - 1;
                    messages.swap(0, last);
                } else {
                    messages.remove(rng.usize(..messages.len()));
                }
                Some(Outcome::Ok(Got::Delivery { lease, messages }))
            }
            (
                Act::Claim { .. },
                Outcome::Ok(Got::Null | Got::Delivery { .. }),
                Outcome::Ok(Got::Delivery { lease, messages }),
            ) if at != other => {
                let lease = if rng.bool() { lease } else { "another".to_owned() };
                Some(Outcome::Ok(Got::Delivery { lease, messages }))
            }
            (Act::Claim { .. }, Outcome::Ok(Got::Delivery { .. }), _) => {
                Some(Outcome::Ok(Got::Null))
            }
            (_, Outcome::Ok(Got::Seq(_)), Outcome::Ok(Got::Seq(seq))) if at != other => {
                Some(Outcome::Ok(Got::Seq(seq)))
            }
            (_, Outcome::Ok(Got::Seq(seq)), _) => Some(Outcome::Ok(Got::Seq(seq + 1))),
            (_, Outcome::Ok(Got::Count(count)), _) => {
                Some(Outcome::Ok(Got::Count(if rng.bool() { count + 1.0 } else { 0.0 })))
            }
            (Act::Ack { .. }, Outcome::Refused(_), _) => {
                Some(Outcome::Ok(Got::Count(rng.u8(..2).into())))
            }
            (Act::Release { .. } | Act::Renew { .. }, Outcome::Refused(_), _) => {
                Some(Outcome::Ok(Got::Done))
            }
            _ => None,
        };
        if let Some(changed) = changed {
            history[at].outcome = changed;
            return history;
        }
    }
    history
}

fn agree(history: &[Call], rules: &Rules) -> Result<bool, TestCaseError> {
    let searched = is_linearizable(history, rules, &Limits::default());
    let checked = check(history, rules, &Limits::default());
    match (&checked, searched) {
        (Verdict::True, Some(true)) | (Verdict::False(_), Some(false)) => {}
        _ => {
            return Err(TestCaseError::fail(format!("search {searched:?}, check {checked:?}")));
        }
    }
    if let Verdict::False(violation) = checked {
        let again = is_linearizable(&violation.calls, rules, &Limits::default());
        prop_assert_eq!(again, Some(false), "the small history is not bad");
    }
    Ok(searched == Some(true))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn what_the_model_does_is_always_allowed(plan in plans(), seed in any::<u64>()) {
        let (history, rules) = run(seed, &plan);
        let verdict = check(&history, &rules, &Limits::default());
        prop_assert!(verdict == Verdict::True, "{verdict:#?}");
    }

    #[test]
    fn checks_and_search_say_the_same_of_broken_histories(
        plan in plans(),
        seed in any::<u64>(),
        how in any::<u64>(),
    ) {
        let (history, rules) = run(seed, &plan);
        if !history.is_empty() {
            agree(&broken(history, how), &rules)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(3_000)))]

    #[test]
    fn tiny_histories_are_what_every_order_says(
        plan in tiny(),
        seed in any::<u64>(),
        how in proptest::option::of(any::<u64>()),
    ) {
        let (mut history, mut rules) = run(seed, &plan);
        // The oracles know of no deaths.
        rules.deaths.clear();
        if let Some(how) = how && !history.is_empty() {
            history = broken(history, how);
        }
        history.retain(|call| call.act != Act::Reap);
        if !history.is_empty() {
            let ours = agree(&history, &rules)?;
            let (every, todc) = (naive::some_order(&history), naive::todc(&history));
            prop_assert_eq!(every, todc, "the oracles differ on {:#?}", history);
            let unanswered = |fits: fn(&Act) -> bool| {
                history.iter().any(|call| call.outcome == Outcome::Unknown && fits(&call.act))
            };
            // A lease that nobody was told of on a message that nobody ever sees: we do not ask where
            // the message went. That is more than the contract allows, and never less.
            let lenient = unanswered(|act| matches!(act, Act::Append { .. }))
                && unanswered(|act| matches!(act, Act::Claim { .. }));
            prop_assert!(ours == every || (lenient && ours), "ours {ours}, of {history:#?}");
        }
    }
}

fn calls(lines: &[histories::Line]) -> Vec<Call> {
    lines.iter().enumerate().map(|(place, line)| line.call(place)).collect()
}

/// A history of overlapping calls that must be false, for that reason; answers its small form.
#[track_caller]
fn breach(kind: Breach, clause: &str, lines: &[histories::Line]) -> Vec<Call> {
    let rules = Rules::new(Clock::Caller, 1);
    let verdict = check(&calls(lines), &rules, &Limits::default());
    let Verdict::False(violation) = verdict else { panic!("{kind:?} was not seen: {verdict:?}") };
    assert_eq!((violation.kind, violation.blame.clause), (kind, clause), "{violation:#?}");
    violation.calls
}

#[test]
fn every_kind_of_breach_is_seen_and_made_small() {
    let a = append("a", 1).by(0, 1, 2);
    let b = append("b", 2).by(1, 3, 4);
    let taken = claim("ann", 0).gives("l", &[(1, "a"), (2, "b")]).by(2, 5, 8);
    let acked = ack("ann", "l", 2).count(2.0).by(2, 9, 10);
    let noise = [append("x", 11).on("beta").by(3, 1, 90), claim("eve", 0).null().by(4, 6, 7)];
    let with = |rest: &[histories::Line]| [&[a.clone(), b.clone()], rest, &noise].concat();
    let short = |kind, clause: &str, lines: &[histories::Line], most: usize| {
        let small = breach(kind, clause, lines);
        assert!(small.len() <= most, "{} calls: {small:#?}", small.len());
    };
    let again = claim("bob", 0).gives("m", &[(1, "a")]).by(3, 11, 12);
    let core = |slug: &str| format!("mailbox/core/{slug}");
    let own = |slug: &str| format!("mailbox/ownership/{slug}");
    short(Breach::Again, &core("ack-removes"), &with(&[taken.clone(), acked.clone(), again]), 4);
    let twice = append("c", 2).by(0, 5, 6);
    short(Breach::Minted, &core("seq-increases"), &with(&[twice]), 2);
    let other = claim("bob", 0).gives("m", &[(1, "a")]).by(3, 9, 12);
    short(Breach::Fence, &core("claim-fences"), &with(&[taken.clone(), other]), 3);
    let skips = claim("ann", 0).gives("l", &[(2, "b")]).by(2, 5, 8);
    short(Breach::Lost, &core("fifo"), &with(&[skips]), 3);
    let turned = claim("ann", 0).gives("l", &[(2, "b"), (1, "a")]).by(2, 5, 8);
    short(Breach::Order, &core("fifo"), &with(&[turned]), 3);
    let nobody = claim("ann", 0).gives("l", &[(7, "z")]).by(2, 5, 8);
    short(Breach::Ghost, &core("fifo"), &with(&[nobody]), 1);
    let changed = claim("ann", 0).gives("l", &[(1, "A")]).by(2, 5, 8);
    short(Breach::Body, &core("body-fidelity"), &with(&[changed]), 2);
    let foreign = ack("bob", "l", 2).count(2.0).by(3, 9, 12);
    short(Breach::Taken, &own("foreign-ack"), &with(&[taken.clone(), foreign]), 3);
    let same = claim("ann", 0).gives("l", &[(3, "c")]).by(2, 13, 14);
    let reused = [taken.clone(), acked.clone(), append("c", 3).by(0, 11, 12), same];
    short(Breach::LeaseTwice, &own("double-ack"), &with(&reused), 6);
    let elsewhere = claim("bob", 0).gives("l", &[(11, "x")]).on("beta").by(3, 95, 96);
    short(Breach::LeaseTwice, &own("double-ack"), &with(&[taken.clone(), elsewhere]), 6);
    let kept = claim("bob", 0).null().by(3, 11, 12);
    let nothing = [a.clone(), b.clone(), kept.clone()];
    short(Breach::Lost, &core("fifo"), &nothing, 2);
    let dropped = [drop_box().count(2.0).by(3, 5, 6), claim("bob", 0).gives("m", &[(1, "a")])];
    let dropped = [dropped[0].clone(), dropped[1].clone().by(3, 9, 12)];
    short(Breach::Dropped, &core("drop-empties"), &with(&dropped), 3);
    let miscounted = ack("ann", "l", 2).count(1.0).by(2, 9, 10);
    short(Breach::Count, &core("ack-removes"), &with(&[taken.clone(), miscounted]), 4);
    let refused = ack("ann", "l", 2).refused().by(2, 9, 10);
    short(Breach::Refused, &core("lease-lives-to-expiry"), &with(&[taken, refused]), 3);
    short(Breach::Refused, &core("reap-harmless"), &with(&[reap().refused().by(3, 5, 6)]), 1);
}

#[test]
fn a_violation_is_drawn_lane_by_lane() {
    let lines = [
        append("a", 1).by(0, 1, 2),
        claim("ann", 0).gives("l", &[(1, "a")]).by(1, 3, 5),
        claim("bob", 0).null().by(0, 4, 90),
        ack("ann", "l", 1).count(1.0).by(1, 6, 7),
        claim("bob", 0).gives("m", &[(1, "a")]).by(2, 8, 9),
    ];
    let lanes = Lanes::of(&calls(&lines), Some(4));
    let drawn = lanes.text(100);
    let expected = "
     process 0, lane 0              process 1, lane 1              process 2, lane 2
  1  ● append \"a\" → #1
  2                                 ┌ ann claims for 100 ms
  3  ┌ bob claims for 100 ms        │
  2  │                              └ l [#1 \"a\"]
  4  │                              ● ann acks l up to #1 → 1
  5  │                                                             ● ✗ bob claims for 100 ms → m…
  3  └ null
  1  append \"a\" → #1
  2  ann claims for 100 ms → l [#1 \"a\"]
  3  bob claims for 100 ms → null
  4  ann acks l up to #1 → 1
✗ 5  bob claims for 100 ms → m [#1 \"a\"]
";
    assert_eq!(format!("\n{drawn}"), expected, "{drawn}");
    assert!(drawn.lines().all(|line| line.chars().count() <= 100));
    let json = serde_json::to_value(&lanes).expect("plain data");
    assert_eq!(json["rows"][4]["bad"], true);
    assert_eq!(json["rows"][2]["end"], 9);
}

#[test]
fn overlapping_calls_may_come_in_either_order() {
    let rules = Rules::new(Clock::Caller, 1);
    let good = |lines: &[histories::Line]| {
        let verdict = check(&calls(lines), &rules, &Limits::default());
        assert_eq!(verdict, Verdict::True);
    };
    // Receipts against the order of sending; a claim that overlaps the append that it delivers, or not.
    good(&[append("a", 2).by(0, 1, 5), append("b", 1).by(1, 2, 6)]);
    for answer in [claim("ann", 0).gives("l", &[(1, "a")]), claim("ann", 0).null()] {
        good(&[append("a", 1).by(0, 1, 9), answer.by(1, 2, 3)]);
    }
    // A claim that overlaps the ack before it.
    let held = [append("a", 1).by(0, 1, 2), claim("ann", 0).gives("l", &[(1, "a")]).by(1, 3, 4)];
    let overlapping = [ack("ann", "l", 0).count(0.0).by(1, 5, 9), claim("bob", 0).by(0, 6, 8)];
    for answer in [overlapping[1].clone().null(), overlapping[1].clone().gives("m", &[(1, "a")])] {
        good(&[held[0].clone(), held[1].clone(), overlapping[0].clone(), answer]);
    }
    // Acked as late as that, it can still be delivered to none but its holder.
    let late = [held[0].clone(), held[1].clone(), ack("ann", "l", 1).count(1.0).by(1, 5, 9)];
    let taken = overlapping[1].clone().gives("m", &[(1, "a")]);
    let lines = [late.to_vec(), vec![taken]].concat();
    assert!(matches!(check(&calls(&lines), &rules, &Limits::default()), Verdict::False(_)));
}

#[test]
fn what_was_not_found_out_is_no_verdict() {
    let rules = Rules::new(Clock::Caller, 1);
    let lines = [append("a", 1), append("b", 2), append("c", 3)];
    let verdict = check(&calls(&lines), &rules, &Limits { steps: 2 });
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
    let mut timeless = calls(&lines);
    timeless[1].answered = None;
    let verdict = check(&timeless, &rules, &Limits::default());
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
}
