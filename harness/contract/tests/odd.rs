//! Right but odd: stores that keep the contract in ways that ours do not must hold every clause of
//! every suite, by both clocks. A false alarm is as bad as a miss.

#[path = "odd/stores.rs"]
mod stores;

use std::collections::BTreeSet;
use storeproof_contract::mailbox::mutant::{shared, subject};
use storeproof_contract::sim::{Make, SimTime, judge_in, mounts};
use storeproof_contract::suite::clauses;
use stores::*;

const SEEDS: [u64; 3] = [1, 7, 4242];

fn holds(make: Make) -> BTreeSet<String> {
    let mut advisories = BTreeSet::new();
    for (suite, clause) in clauses().filter(|(suite, _)| mounts(suite, make)) {
        for time in [SimTime::Caller, SimTime::Wall] {
            for seed in SEEDS {
                let judged = judge_in(time, clause, make, seed);
                let id = suite.clause_id(clause);
                assert_eq!(judged.verdict, Ok(()), "{id} {time:?} {:#?}", judged.steps);
                advisories
                    .extend(judged.advisories.into_iter().map(|said| format!("{id}: {said}")));
            }
        }
    }
    advisories
}

#[test]
fn names_and_bodies_refused() {
    let advisories = holds(shared::<PlainOnly>);
    assert!(advisories.iter().any(|said| said.contains("were refused by name")), "{advisories:?}");
    assert!(advisories.iter().any(|said| said.contains("bodies were refused")), "{advisories:?}");
}

#[test]
fn one_counter_over_all_boxes() {
    holds(shared::<SharedCounter>);
}

#[test]
fn claims_of_one_message() {
    let advisories = holds(shared::<OneAtATime>);
    assert!(advisories.iter().any(|said| said.contains("ack-partial")), "{advisories:?}");
}

#[test]
fn zero_acked_for_a_settled_lease() {
    holds(shared::<SettledAcksCountNothing>);
}

#[test]
fn null_for_its_own_owner() {
    holds(shared::<NullForItsOwner>);
}

#[test]
fn gaps_in_seq() {
    holds(shared::<Gaps>);
}

#[test]
fn tombstones_that_end_with_the_box() {
    holds(shared::<TombstonesEndWithTheBox>);
}

#[test]
fn empty_boxes_forgotten() {
    holds(subject::<AcksForgotten>);
}

#[test]
fn other_reason_words() {
    let advisories = holds(shared::<OtherWords>);
    assert!(advisories.iter().any(|said| said.contains("not-yours")), "{advisories:?}");
}

#[test]
fn a_reclaim_that_moves_the_expiry() {
    holds(shared::<ReclaimRenews>);
}
