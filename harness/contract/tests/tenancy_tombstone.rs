//! What the suites `mailbox/tenancy` and `mailbox/tombstone` owe: every mutant is killed by its own
//! clause, on both clocks; every clause is some mutant's only killer; right stores hold, odd ones too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use storeproof_contract::clause::Clause;
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::model::{Model, State};
use storeproof_contract::mailbox::mutant::{Altered, model, subject};
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq, Tombstones,
};
use storeproof_contract::sim::{Clockwork, Sim, SimClock};
use storeproof_contract::subject::{Reply, StoreError, Subject};
use storeproof_contract::suite::{Suite, clauses, mutants};
use storeproof_contract::trial::{Judgement, Stop, judge};

type Make = fn(Clockwork) -> Box<dyn Subject>;

const OURS: [&str; 2] = ["mailbox/tenancy", "mailbox/tombstone"];
const SEEDS: [u64; 3] = [1, 7, 4242];

fn judged(clause: &Clause, make: Make, wall: bool, seed: u64) -> Judgement {
    let clock = SimClock::new();
    let clockwork = if wall { Clockwork::Wall(clock.clone()) } else { Clockwork::Caller };
    judge(clause, &mut Sim::new(make(clockwork), clock), seed)
}

fn is_ours(suite: &Suite) -> bool {
    OURS.contains(&suite.id)
}

/// A fault or an undecided trial is never a kill.
fn kills(clause: &Clause, make: Make, wall: bool) -> bool {
    matches!(judged(clause, make, wall, 1).verdict, Err(Stop::Broken { .. }))
}

/// The ids of the clauses, of all suites, that kill a mutant on the caller's clock.
fn killers(make: Make) -> BTreeSet<String> {
    clauses()
        .filter(|(_, clause)| kills(clause, make, false))
        .map(|(suite, clause)| suite.clause_id(clause))
        .collect()
}

#[test]
fn every_mutant_is_killed_by_its_own_clause_and_every_clause_is_a_sole_killer() {
    let mut table = String::new();
    let mut wrong = Vec::new();
    let mut sole: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (suite, clause, mutant) in mutants().filter(|(suite, ..)| is_ours(suite)) {
        let own = suite.clause_id(clause);
        let found = killers(mutant.make);
        let _ = writeln!(table, "{own:44} {:34} {found:?}", mutant.name);
        for (clock, wall) in [("caller", false), ("wall", true)] {
            if !kills(clause, mutant.make, wall) {
                wrong.push(format!("{} survives {own} on the {clock} clock", mutant.name));
            }
        }
        if found.len() == 1 && found.contains(&own) {
            sole.entry(own).or_default().push(mutant.name);
        }
    }
    for (suite, clause) in clauses().filter(|(suite, _)| is_ours(suite)) {
        let id = suite.clause_id(clause);
        let _ = writeln!(table, "sole {id:44} {:?}", sole.get(&id).map_or(&[][..], |s| s));
        if sole.contains_key(&id) == clause.never_sole.is_some() {
            wrong.push(format!("{id}: never_sole and its mutants disagree"));
        }
    }
    writeln!(std::io::stdout(), "{table}").expect("stdout takes the table");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn mutant_names_are_unique_and_faults_are_verbs() {
    let mut names = BTreeSet::new();
    for (_, clause, mutant) in mutants() {
        assert!(names.insert(mutant.name), "{} is there twice", mutant.name);
        assert!(mutant.fault.starts_with(char::is_lowercase), "{}: {}", clause.slug, mutant.fault);
    }
}

fn holds(name: &str, make: Make) {
    for (suite, clause) in clauses().filter(|(suite, _)| is_ours(suite)) {
        for wall in [false, true] {
            for seed in SEEDS {
                let judgement = judged(clause, make, wall, seed);
                let id = suite.clause_id(clause);
                assert_eq!(judgement.verdict, Ok(()), "{name} on {id}, wall: {wall}");
            }
        }
    }
}

#[test]
fn the_model_holds_every_clause_without_an_advisory() {
    holds("the model", model);
    for (suite, clause) in clauses().filter(|(suite, _)| is_ours(suite)) {
        let advisories = judged(clause, model, false, 1).advisories;
        assert!(advisories.is_empty(), "{}: {advisories:?}", suite.clause_id(clause));
    }
}

#[test]
fn a_slow_machine_is_never_blamed_on_the_model() {
    for (suite, clause) in clauses().filter(|(suite, _)| is_ours(suite)) {
        for (seed, slow_ms) in [(1, 3), (2, 40), (3, 150), (4, 2_000)] {
            let clock = SimClock::new();
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut bench = Sim::new(model(Clockwork::Wall(clock.clone())), clock)
                .slowed(Box::new(move || rng.u64(0..=slow_ms)));
            let verdict = judge(clause, &mut bench, seed).verdict;
            let id = suite.clause_id(clause);
            assert!(!matches!(verdict, Err(Stop::Broken { .. })), "{id} at {slow_ms}: {verdict:?}");
        }
    }
}

#[test]
fn a_store_that_refuses_odd_names_holds_and_the_advisory_says_what_was_not_judged() {
    holds("plain names only", subject::<PlainNamesOnly>);
    let (_, clause) = clauses()
        .find(|(suite, clause)| suite.clause_id(clause) == "mailbox/tenancy/keys-injective")
        .expect("the clause is registered");
    let advisories = judged(clause, subject::<PlainNamesOnly>, false, 1).advisories;
    assert_eq!(advisories.len(), 1, "{advisories:?}");
    assert!(advisories[0].contains("were refused by name"), "{advisories:?}");
}

#[test]
fn right_but_odd_stores_hold_every_clause() {
    holds("one counter over all boxes", subject::<SharedCounter>);
    holds("claims of one message", subject::<OneAtATime>);
    holds("acked: 0 for a settled lease", subject::<SettledAcksCountNothing>);
    holds("null for its own owner", subject::<NullForItsOwner>);
    holds("gaps in seq", subject::<Gaps>);
    holds("drop and reopening lift tombstones", subject::<TombstonesEndWithTheBox>);
    holds("empty boxes are forgotten", subject::<AcksForgotten>);
}

/// A model with its own memory and some methods of its own.
macro_rules! odd {
    ($(#[$doc:meta])* $name:ident, $memory:ty, { $($body:tt)* }) => {
        $(#[$doc])*
        struct $name(Model, #[allow(dead_code, reason = "most remember nothing")] $memory);

        impl Altered for $name {
            fn over(model: Model) -> Self {
                Self(model, Default::default())
            }
            fn model(&mut self) -> &mut Model {
                &mut self.0
            }
            $($body)*
        }
    };
}

odd!(
    /// Numbers all messages of the store by one counter.
    SharedCounter, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let last = self.0.state().boxes.values().map(|b| b.last_seq).max().unwrap_or(0);
        self.0.with_box(to, |b| b.last_seq = last);
        self.0.append(to, body, now)
    }
});

fn plain(of: &Address) -> Reply<()> {
    for name in [&of.scope.0, &of.handle.0] {
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || name.len() > 16 || !name.chars().all(known) {
            return Err(StoreError::refused("invalid_name", "names are [a-z][a-z0-9]{0,15}"));
        }
    }
    Ok(())
}

odd!(
    /// Refuses every name that T1 does not use, on every path.
    PlainNamesOnly, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        plain(to)?;
        self.0.append(to, body, now)
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        plain(from)?;
        self.0.claim(from, ask, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        plain(of)?;
        self.0.peek(of, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        plain(of)?;
        self.0.drop_box(of, now)
    }
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        plain(of)?;
        self.0.tombstone(of, now)
    }
});

odd!(
    /// Delivers one message a claim.
    OneAtATime, (), {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let ask = ClaimAsk { max: ask.max.map_or(Some(1), |max| Some(max.min(1))), ..ask.clone() };
        self.0.claim(from, &ask, now)
    }
});

odd!(
    /// Answers `acked: 0` where an ack comes again for a lease it settled.
    SettledAcksCountNothing, BTreeSet<(Address, LeaseId)>, {
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let key = (of.clone(), lease.clone());
        if self.1.contains(&key) {
            return Ok(0);
        }
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.1.insert(key);
        Ok(acked)
    }
});

odd!(
    /// Answers null to whoever holds the box already.
    NullForItsOwner, (), {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        if self.0.with_box(from, |b| b.live(time).is_some()) {
            return Ok(None);
        }
        self.0.claim(from, ask, now)
    }
});

odd!(
    /// Skips numbers.
    Gaps, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.with_box(to, |b| b.last_seq += 1_000);
        self.0.append(to, body, now)
    }
});

odd!(
    /// Takes a drop for the deletion's end, and keeps tombstones in memory alone; uses a code of its own.
    TombstonesEndWithTheBox, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if !self.0.is_closed() && self.0.state().tombstones.contains(to) {
            return Err(StoreError::refused("gone", "deleted soon"));
        }
        self.0.append(to, body, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let dropped = self.0.drop_box(of, now)?;
        self.0.state().tombstones.remove(of);
        Ok(dropped)
    }
    fn reopened(state: &mut State) {
        state.tombstones.clear();
    }
});

odd!(
    /// Removes an empty box at a reap and remembers one greatest number for all of them.
    AcksForgotten, u64, {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let floor = self.1;
        self.0.with_box(to, |b| b.last_seq = b.last_seq.max(floor));
        self.0.append(to, body, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        let mut state = self.0.state();
        self.1 = state.boxes.values().map(|b| b.last_seq).max().unwrap_or(0).max(self.1);
        state.boxes.retain(|_, b| !b.messages.is_empty());
        Ok(())
    }
});
