//! Random scripts get equal answers from the contract's model and from every bundled store, though
//! the durable ones are spoken to through three handles at once and reopened in between.
#![cfg(all(
    feature = "memory",
    feature = "jsonl",
    feature = "sqlite",
    feature = "postgres",
    feature = "redis"
))]

mod common;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use storeproof_contract::mailbox::mutant::model;
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, LeaseId, Message, Millis, SEQ_MAX, Seq,
};
use storeproof_contract::subject::{Reply, Store, StoreError, Subject};
use storeproof_contract::world::{Clockwork, World};

const CASES: u32 = 48;
/// Each step of these waits for a real disk.
const CASES_ON_SERVERS: u32 = 24;
const OPS_PER_CASE_MAX: usize = 60;
const HANDLES: usize = 3;
const OWNERS: [&str; 3] = ["ann", "bob", ""];
const BOXES: [(&str, &str); 4] = [("s", "a"), ("s", "ab"), ("sa", "b"), ("t", "a\0")];

/// One step; leases and seqs are named by what the script has seen, never by value.
#[derive(Clone, Debug)]
enum Op {
    Append { to: usize, body: Value },
    Claim { from: usize, owner: usize, ttl_ms: i64, max: Option<i64> },
    Ack { of: usize, owner: usize, lease: Which, up_to: UpTo },
    Release { of: usize, owner: usize, lease: Which },
    Renew { of: usize, owner: usize, lease: Which, ttl_ms: i64 },
    Peek { of: usize },
    Reap,
    Drop { of: usize },
    Tombstone { of: usize },
    Reopen,
    Wait { ms: u64 },
}

/// Which lease an operation names.
#[derive(Clone, Debug)]
enum Which {
    /// The last one granted on the operation's box, together with its real owner.
    Latest,
    /// The one granted so many grants ago, whatever its box.
    Ago(usize),
    Invented,
}

#[derive(Clone, Debug)]
enum UpTo {
    /// The seq of the lease's message at this place, counted from its end.
    FromEnd(usize),
    Zero,
    Max,
}

fn op() -> impl Strategy<Value = Op> {
    let of = 0..BOXES.len();
    let owner = 0..OWNERS.len();
    let ttl = prop_oneof![6 => Just(100_i64), 2 => Just(i64::MAX), 1 => Just(1), 1 => -1..=0_i64];
    let max = prop_oneof![4 => Just(None), 4 => (1..4_i64).prop_map(Some), 1 => Just(Some(0))];
    let which = || {
        prop_oneof![6 => Just(Which::Latest), 2 => (0..4_usize).prop_map(Which::Ago),
        1 => Just(Which::Invented)]
    };
    let up_to = prop_oneof![6 => (0..3_usize).prop_map(UpTo::FromEnd), 1 => Just(UpTo::Zero),
        1 => Just(UpTo::Max)];
    prop_oneof![
        8 => (of.clone(), body()).prop_map(|(to, body)| Op::Append { to, body }),
        6 => (of.clone(), owner.clone(), ttl.clone(), max)
            .prop_map(|(from, owner, ttl_ms, max)| Op::Claim { from, owner, ttl_ms, max }),
        4 => (of.clone(), owner.clone(), which(), up_to)
            .prop_map(|(of, owner, lease, up_to)| Op::Ack { of, owner, lease, up_to }),
        2 => (of.clone(), owner.clone(), which())
            .prop_map(|(of, owner, lease)| Op::Release { of, owner, lease }),
        2 => (of.clone(), owner, which(), ttl)
            .prop_map(|(of, owner, lease, ttl_ms)| Op::Renew { of, owner, lease, ttl_ms }),
        2 => of.clone().prop_map(|of| Op::Peek { of }),
        2 => Just(Op::Reap),
        1 => of.clone().prop_map(|of| Op::Drop { of }),
        1 => of.prop_map(|of| Op::Tombstone { of }),
        1 => Just(Op::Reopen),
        3 => prop_oneof![Just(1_u64), Just(99), Just(100), Just(1_000)].prop_map(|ms| Op::Wait { ms }),
    ]
}

fn body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\u{2028}\r\n\0\u{feff}\"\\\\𝄞]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A lease as the script saw it granted.
struct Grant {
    of: usize,
    owner: usize,
    id: LeaseId,
    seqs: Vec<u64>,
}

/// One store that a script runs on.
struct Player {
    subject: Box<dyn Subject>,
    location: Option<Value>,
    handles: Vec<Box<dyn Store>>,
    now_ms: u64,
    grants: Vec<Grant>,
    /// The receipts of each box in order: a message's name in a transcript is its place here.
    receipts: [Vec<u64>; BOXES.len()],
    tombstones: [bool; BOXES.len()],
}

impl Drop for Player {
    fn drop(&mut self) {
        // A folder goes with its base; a server would keep everything.
        if let Some(location) = &self.location {
            let _: Reply<()> = self.subject.destroy(location);
        }
    }
}

impl Player {
    fn new(mut subject: Box<dyn Subject>) -> Self {
        let opened = subject.open().unwrap();
        let mut handles = vec![opened.store];
        if let Some(location) = &opened.location {
            handles.extend((1..HANDLES).map(|_| subject.attach(location).unwrap()));
        }
        Self {
            subject,
            location: opened.location,
            handles,
            now_ms: 1_700_000_000_000,
            grants: Vec::new(),
            receipts: Default::default(),
            tombstones: Default::default(),
        }
    }

    /// The answer in words that do not depend on how a store numbers things.
    fn play(&mut self, via: usize, op: &Op) -> Value {
        let via = via % self.handles.len();
        match op {
            Op::Wait { ms } => self.now_ms += ms,
            Op::Reopen => {
                if let Some(location) = &self.location {
                    self.handles[via].close().unwrap();
                    self.handles[via] = self.subject.attach(location).unwrap();
                }
            }
            Op::Tombstone { of } => {
                self.tombstones[*of] = true;
                if let Some(hook) = self.handles[via].tombstones() {
                    hook.tombstone(&address(*of), Millis(self.now_ms)).unwrap();
                }
            }
            // A store without the hook cannot know; the script then does as it would have done.
            Op::Append { to, .. }
                if self.tombstones[*to] && self.handles[via].tombstones().is_none() =>
            {
                return json!("recipient_deleted");
            }
            Op::Append { .. }
            | Op::Claim { .. }
            | Op::Ack { .. }
            | Op::Release { .. }
            | Op::Renew { .. }
            | Op::Peek { .. }
            | Op::Reap
            | Op::Drop { .. } => {
                return self.ask(via, op).unwrap_or_else(|error| match error {
                    StoreError::Refused { reason, .. } => json!(reason),
                    StoreError::Missing | StoreError::Broken(_) => panic!("{op:?}: {error}"),
                });
            }
        }
        json!("done")
    }

    fn ask(&mut self, via: usize, op: &Op) -> Reply<Value> {
        let now = Millis(self.now_ms);
        let named = self.named(op);
        let store = self.handles[via].mailbox().unwrap();
        let (owner, lease) = (OWNERS[named.owner], &named.lease);
        Ok(match op {
            Op::Append { to, body } => {
                let seq = store.append(&address(*to), body, now)?;
                self.receipts[*to].push(seq.0);
                json!({ "receipt": self.receipts[*to].len() })
            }
            Op::Claim { from, owner, ttl_ms, max } => {
                let ask = ClaimAsk { owner: OWNERS[*owner].to_owned(), ttl_ms: *ttl_ms, max: *max };
                let Some(found) = store.claim(&address(*from), &ask, now)? else {
                    return Ok(Value::Null);
                };
                let seqs = found.messages.iter().map(|message| message.seq.0).collect();
                let grant = Grant { of: *from, owner: *owner, id: found.lease, seqs };
                let number = self.number_of(grant);
                json!({ "lease": number, "messages": self.shown(*from, &found.messages) })
            }
            Op::Ack { of, .. } => {
                json!({ "acked": store.ack(&address(*of), owner, lease, named.up_to, now)? })
            }
            Op::Release { of, .. } => {
                store.release(&address(*of), owner, lease, now)?;
                json!("released")
            }
            Op::Renew { of, ttl_ms, .. } => {
                store.renew(&address(*of), owner, lease, *ttl_ms, now)?;
                json!("renewed")
            }
            Op::Peek { of } => {
                let messages = store.peek(&address(*of), now)?;
                self.shown(*of, &messages)
            }
            Op::Reap => {
                store.reap(now)?;
                json!("reaped")
            }
            Op::Drop { of } => json!({ "dropped": store.drop_box(&address(*of), now)? }),
            Op::Tombstone { .. } | Op::Reopen | Op::Wait { .. } => unreachable!("no question"),
        })
    }

    /// The place of a lease among all that were granted; the same lease again has the same place.
    fn number_of(&mut self, grant: Grant) -> usize {
        let place = self.grants.iter().position(|seen| seen.id == grant.id);
        place.unwrap_or_else(|| {
            self.grants.push(grant);
            self.grants.len() - 1
        })
    }

    fn named(&self, op: &Op) -> Named {
        let (of, owner, which, up_to) = match op {
            Op::Ack { of, owner, lease, up_to } => (*of, *owner, lease, up_to),
            Op::Release { of, owner, lease } | Op::Renew { of, owner, lease, .. } => {
                (*of, *owner, lease, &UpTo::Zero)
            }
            Op::Append { .. }
            | Op::Claim { .. }
            | Op::Peek { .. }
            | Op::Reap
            | Op::Drop { .. }
            | Op::Tombstone { .. }
            | Op::Reopen
            | Op::Wait { .. } => (0, 0, &Which::Invented, &UpTo::Zero),
        };
        let grant = match which {
            Which::Latest => self.grants.iter().rfind(|grant| grant.of == of),
            Which::Ago(ago) => self.grants.iter().rev().nth(*ago),
            Which::Invented => None,
        };
        let Some(grant) = grant else {
            return Named { owner, lease: LeaseId("invented".to_owned()), up_to: Seq(0) };
        };
        let owner = if matches!(which, Which::Latest) { grant.owner } else { owner };
        let up_to = match up_to {
            UpTo::FromEnd(back) => grant.seqs.iter().rev().nth(*back).copied().unwrap_or(0),
            UpTo::Zero => 0,
            UpTo::Max => SEQ_MAX,
        };
        Named { owner, lease: grant.id.clone(), up_to: Seq(up_to) }
    }

    fn shown(&self, of: usize, messages: &[Message]) -> Value {
        let place = |seq: u64| self.receipts[of].iter().position(|receipt| *receipt == seq);
        messages.iter().map(|m| json!([place(m.seq.0).map(|at| at + 1), m.body])).collect()
    }
}

/// What an operation's symbols stand for on one store.
struct Named {
    owner: usize,
    lease: LeaseId,
    up_to: Seq,
}

fn address(of: usize) -> Address {
    Address::new(BOXES[of].0, BOXES[of].1)
}

#[test]
fn random_scripts_get_equal_answers() {
    play_random_scripts(CASES, &["memory", "jsonl", "sqlite"]);
}

#[test]
fn random_scripts_get_equal_answers_from_servers() {
    let names: Vec<&str> = common::running(&["postgres", "redis"]).collect();
    play_random_scripts(CASES_ON_SERVERS, &names);
}

fn play_random_scripts(cases: u32, names: &[&str]) {
    let seed = std::env::var("STOREPROOF_SEED")
        .ok()
        .map(|seed| seed.parse().expect("STOREPROOF_SEED is a number"))
        .unwrap_or_else(|| RandomState::new().build_hasher().finish());
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let script = prop::collection::vec((0..HANDLES, op()), 1..OPS_PER_CASE_MAX);
    let played = TestRunner::new(config).run(&script, |script| {
        let base = common::scratch();
        let player = |name| Player::new(common::subject(name, base.path()));
        let mut reference = Player::new(model(World::new(Clockwork::Caller)));
        let mut players: Vec<_> = names.iter().map(|name| (*name, player(name))).collect();
        for (n, (via, op)) in script.iter().enumerate() {
            let expected = reference.play(*via, op);
            for (name, player) in &mut players {
                let answer = player.play(*via, op);
                prop_assert_eq!(&answer, &expected, "{} at step {}: {:?}", name, n, op);
            }
        }
        Ok(())
    });
    match played {
        Ok(()) => {}
        Err(TestError::Fail(why, script)) => {
            panic!("STOREPROOF_SEED={seed}: {why}\nminimal script: {script:#?}")
        }
        Err(TestError::Abort(why)) => panic!("STOREPROOF_SEED={seed}: {why}"),
    }
}
