//! The relation for one caller: what it leaves open, what it forbids, and which clause it names.

mod histories;

use histories::{Line, ack, append, claim, drop_box, peek, reap, release, renew};
use storeproof_contract::backend::Clock;
use storeproof_contract::mailbox::history::{Rules, State, advance, blame};

/// Carries the states along; answers the clause that the first forbidden answer breaks.
fn judge_by(rules: Rules, lines: &[Line]) -> Result<usize, &'static str> {
    let mut states = vec![State::new(rules)];
    for (place, line) in lines.iter().enumerate() {
        let call = line.call(place);
        let next = advance(&states, &call);
        if next.is_empty() {
            return Err(blame(&states, &call).clause);
        }
        states = next;
    }
    Ok(states.len())
}

fn judge(lines: &[Line]) -> Result<usize, &'static str> {
    judge_by(Rules::new(Clock::Caller, 1), lines)
}

#[track_caller]
fn allowed(lines: &[Line]) {
    if let Err(clause) = judge(lines) {
        panic!("forbidden by {clause}");
    }
}

#[track_caller]
fn forbidden(clause: &str, lines: &[Line]) {
    assert_eq!(judge(lines).err(), Some(clause));
}

#[test]
fn only_a_lease_that_a_drop_has_ended_is_one_from_before_it() {
    let lines = [
        drop_box().count(0.0),
        append("a", 1),
        claim("ann", 0).gives("l", &[(1, "a")]),
        claim("bob", 200).gives("k", &[(1, "a")]),
        ack("ann", "l", 1).count(1.0).at(200),
    ];
    forbidden("mailbox/ownership/stale-ack-after-reclaim", &lines);
    let before = [
        append("a", 1),
        claim("ann", 0).gives("l", &[(1, "a")]),
        drop_box().count(1.0),
        append("b", 2),
        ack("ann", "l", 2).count(1.0),
    ];
    forbidden("mailbox/ownership/ack-after-drop", &before);
}

#[test]
fn a_strangers_ack_of_a_live_lease_is_refused_though_the_box_was_dropped_once() {
    let stranger = ack("bob", "l", 1).count(0.0);
    let lines =
        [drop_box().count(0.0), append("a", 1), claim("ann", 0).gives("l", &[(1, "a")]), stranger];
    forbidden("mailbox/ownership/foreign-ack", &lines);
}

#[test]
fn what_the_contract_leaves_open_is_allowed() {
    // Gaps in seq; a claim of the whole, and a capped one.
    allowed(&[append("a", 3), append("b", 9), claim("ann", 0).gives("l", &[(3, "a"), (9, "b")])]);
    allowed(&[append("a", 3), append("b", 9), claim("ann", 0).gives("l", &[(3, "a")])]);
    // The holder asks again: null, or the same; and her lease may have moved with that or not.
    let held = [append("a", 1), claim("ann", 0).gives("l", &[(1, "a")])];
    for again in [claim("ann", 50).null(), claim("ann", 50).gives("l", &[(1, "a")])] {
        for other in [claim("bob", 120).null(), claim("bob", 120).gives("m", &[(1, "a")])] {
            allowed(&[held[0].clone(), held[1].clone(), again.clone(), other]);
        }
    }
    // A settled lease acked again, and one from before a drop.
    for second in [ack("ann", "l", 1).count(0.0), ack("ann", "l", 1).refused()] {
        let ended = ack("ann", "l", 1).count(1.0);
        allowed(&[held[0].clone(), held[1].clone(), ended, second.clone()]);
        allowed(&[held[0].clone(), held[1].clone(), drop_box().count(1.0), second]);
    }
    // The same by somebody else: it removes nothing either.
    let settled = ack("ann", "l", 1).count(1.0);
    let stranger = ack("bob", "l", 1).count(0.0);
    allowed(&[held[0].clone(), held[1].clone(), settled, stranger]);
    // Within the granularity both.
    let rules = Rules::new(Clock::Caller, 10);
    for other in [claim("bob", 95).null(), claim("bob", 95).gives("m", &[(1, "a")])] {
        let lines = [held[0].clone(), held[1].clone(), other];
        assert!(judge_by(rules.clone(), &lines).is_ok());
    }
    // A dead holder's lease may be freed.
    let mut rules = Rules::new(Clock::Caller, 1);
    rules.deaths.insert(0, 4);
    let freed = [held[0].clone(), held[1].clone(), claim("bob", 9).gives("m", &[(1, "a")])];
    assert!(judge_by(rules, &freed).is_ok());
}

#[test]
fn an_append_without_an_answer_may_be_there_or_not() {
    let begin = [append("a", 1), append("x", 0).unknown(), append("b", 5)];
    let with = |rest: &[Line]| [begin.to_vec(), rest.to_vec()].concat();
    let all = [(1, "a"), (3, "x"), (5, "b")];
    allowed(&with(&[claim("ann", 0).gives("l", &all)]));
    allowed(&with(&[claim("ann", 0).gives("l", &[(1, "a"), (5, "b")])]));
    // After everything else.
    let late = with(&[
        claim("ann", 0).gives("l", &[(1, "a"), (5, "b")]),
        ack("ann", "l", 5).count(2.0),
        claim("ann", 0).null(),
        claim("bob", 0).gives("m", &[(7, "x")]),
    ]);
    allowed(&late);
    // Not twice, not under a seq that is too low, not where it had to be shown before.
    forbidden(
        "mailbox/core/fifo",
        &with(&[claim("ann", 0).gives("l", &[(1, "a"), (3, "x"), (4, "x")])]),
    );
    let low = [append("a", 4), append("x", 0).unknown(), claim("ann", 0).gives("l", &[(3, "x")])];
    forbidden("mailbox/core/fifo", &low);
    let skipped = with(&[
        claim("ann", 0).gives("l", &[(1, "a"), (5, "b")]),
        ack("ann", "l", 1).count(1.0),
        claim("ann", 0).gives("m", &[(3, "x"), (5, "b")]),
    ]);
    forbidden("mailbox/core/fifo", &skipped);
    // A drop counts it, or not.
    for count in [2.0, 3.0] {
        allowed(&with(&[drop_box().count(count), claim("ann", 0).null()]));
    }
    forbidden("mailbox/core/drop-empties", &with(&[drop_box().count(4.0)]));
}

#[test]
fn other_calls_without_an_answer_may_have_happened() {
    let held = [append("a", 1), append("b", 2), claim("ann", 0).gives("l", &[(1, "a"), (2, "b")])];
    let with = |rest: &[Line]| [held.to_vec(), rest.to_vec()].concat();
    for rest in [claim("bob", 1).null(), claim("bob", 1).gives("m", &[(2, "b")])] {
        allowed(&with(&[ack("ann", "l", 1).unknown(), rest]));
    }
    for rest in [claim("bob", 1).null(), claim("bob", 1).gives("m", &[(1, "a"), (2, "b")])] {
        allowed(&with(&[release("ann", "l").unknown(), rest]));
    }
    for rest in [claim("bob", 149).null(), claim("bob", 149).gives("m", &[(1, "a")])] {
        allowed(&with(&[renew("ann", "l", 50).unknown(), rest]));
    }
    allowed(&with(&[
        drop_box().unknown(),
        append("c", 3),
        claim("bob", 0).gives("m", &[(3, "c")]),
    ]));
    allowed(&with(&[append("c", 3), drop_box().unknown(), claim("bob", 0).null()]));
    // Asked again after a lost answer.
    for first in [ack("ann", "l", 2).unknown(), drop_box().unknown()] {
        for second in [2.0, 0.0] {
            allowed(&with(&[first.clone(), ack("ann", "l", 2).count(second)]));
        }
    }
    // A claim without an answer: a fence that nobody was told about, until it expires.
    let unseen = [append("a", 1), claim("ann", 0).unknown()];
    let then = |rest: &[Line]| [unseen.to_vec(), rest.to_vec()].concat();
    allowed(&then(&[claim("bob", 50).null(), claim("bob", 100).gives("m", &[(1, "a")])]));
    allowed(&then(&[claim("bob", 50).gives("m", &[(1, "a")]), claim("ann", 60).null()]));
    allowed(&then(&[
        claim("ann", 50).gives("l", &[(1, "a")]),
        claim("bob", 120).gives("m", &[(1, "a")]),
    ]));
    forbidden("mailbox/core/fifo", &then(&[claim("bob", 100).null()]));
}

#[test]
fn what_the_contract_forbids_has_a_clause() {
    let a = append("a", 1);
    let b = append("b", 2);
    let both = claim("ann", 0).gives("l", &[(1, "a"), (2, "b")]);
    let held = [a.clone(), b.clone(), both.clone()];
    let with = |rest: &[Line]| [held.to_vec(), rest.to_vec()].concat();
    let settled = with(&[ack("ann", "l", 2).count(2.0)]);
    let after = |rest: &[Line]| [settled.clone(), rest.to_vec()].concat();
    let rows: Vec<(&str, Vec<Line>)> = vec![
        ("core/claim-fences", with(&[claim("bob", 99).gives("m", &[(1, "a")])])),
        ("core/one-live-lease", with(&[claim("ann", 9).gives("m", &[(1, "a")])])),
        ("core/one-live-lease", with(&[claim("ann", 9).gives("l", &[(1, "a")])])),
        ("core/lease-lives-to-expiry", with(&[claim("bob", 100).null()])),
        ("core/lease-lives-to-expiry", with(&[ack("ann", "l", 2).at(99).refused()])),
        (
            "core/renew",
            with(&[renew("ann", "l", 99).done(), claim("bob", 198).gives("m", &[(1, "a")])]),
        ),
        ("core/renew", with(&[renew("ann", "l", 100).done()])),
        ("core/release", with(&[release("bob", "l").done()])),
        ("core/release", with(&[release("ann", "l").done(), ack("ann", "l", 2).count(2.0)])),
        ("core/ack-removes", after(&[claim("bob", 0).gives("m", &[(2, "b")])])),
        ("core/ack-removes", after(&[peek().shows(&[(2, "b")])])),
        ("core/ack-removes", with(&[ack("ann", "l", 2).count(1.0)])),
        ("ownership/over-reach", with(&[append("c", 3), ack("ann", "l", 3).count(3.0)])),
        ("core/ack-partial", with(&[ack("ann", "l", 1).count(1.0), claim("bob", 0).null()])),
        ("core/seq-increases", vec![b.clone(), a.clone()]),
        ("core/seq-increases", vec![append("a", 0)]),
        ("core/seq-never-reused", after(&[append("c", 2)])),
        (
            "core/fifo",
            vec![a.clone(), b.clone(), claim("ann", 0).gives("l", &[(2, "b"), (1, "a")])],
        ),
        ("core/fifo", vec![a.clone(), b.clone(), claim("ann", 0).gives("l", &[(2, "b")])]),
        ("core/fifo", vec![claim("ann", 0).gives("l", &[(1, "a")])]),
        ("core/fifo", vec![a.clone(), claim("ann", 0).null()]),
        ("core/no-ghost-lease", vec![claim("ann", 0).null(), a.clone(), claim("bob", 0).null()]),
        ("core/body-fidelity", vec![a.clone(), claim("ann", 0).gives("l", &[(1, "b")])]),
        ("core/max-is-prefix", vec![a.clone(), b.clone(), both.clone().at_most(1)]),
        ("core/expiry-redelivers", with(&[claim("bob", 100).gives("m", &[(2, "b")])])),
        ("core/drop-empties", with(&[drop_box().count(1.0)])),
        (
            "core/drop-empties",
            with(&[drop_box().count(2.0), claim("bob", 0).gives("m", &[(1, "a")])]),
        ),
        ("core/peek-inert", with(&[peek().shows(&[(1, "a")])])),
        ("core/reap-harmless", vec![reap().refused()]),
        ("ownership/foreign-ack", with(&[ack("bob", "l", 2).count(2.0)])),
        ("ownership/foreign-ack", with(&[ack("ann", "x", 2).count(0.0)])),
        ("ownership/no-lease-ack", vec![a.clone(), ack("ann", "x", 1).count(1.0)]),
        ("ownership/stale-ack-unclaimed", with(&[ack("ann", "l", 2).at(100).count(2.0)])),
        (
            "ownership/stale-ack-after-reclaim",
            with(&[
                claim("bob", 100).gives("m", &[(1, "a")]),
                ack("ann", "l", 2).at(101).count(2.0),
            ]),
        ),
        ("ownership/double-ack", after(&[append("c", 3), ack("ann", "l", 3).count(1.0)])),
        ("ownership/double-ack", after(&[append("c", 3), claim("bob", 0).gives("l", &[(3, "c")])])),
        (
            "ownership/ack-after-drop",
            with(&[drop_box().count(2.0), append("c", 3), ack("ann", "l", 3).count(1.0)]),
        ),
    ];
    let ids = include_str!("ids.txt");
    for (clause, lines) in rows {
        let clause = format!("mailbox/{clause}");
        assert!(ids.lines().any(|id| id == clause), "{clause} is not published");
        assert_eq!(judge(&lines).err(), Some(clause.as_str()), "{lines:?}");
    }
}

#[test]
fn on_the_wall_clock_only_what_is_certain_is_judged() {
    let rules = Rules::new(Clock::Wall, 1);
    let held = [append("a", 1), claim("ann", 10).took(5).gives("l", &[(1, "a")])];
    let with = |line: Line| [held.to_vec(), vec![line]].concat();
    // The lease of 100 ms began between 10 and 15.
    let delivers = |from_ms: u64, took_ms: u64| {
        judge_by(rules.clone(), &with(claim("bob", from_ms).took(took_ms).gives("m", &[(1, "a")])))
    };
    let nothing =
        |from_ms: u64| judge_by(rules.clone(), &with(claim("bob", from_ms).took(9).null()));
    assert_eq!(delivers(50, 58), Err("mailbox/core/claim-fences"));
    assert!(delivers(50, 59).is_ok());
    assert!(nothing(116).is_ok());
    assert_eq!(nothing(117), Err("mailbox/core/lease-lives-to-expiry"));
}
