//! The plain way: a state machine of `proptest-state-machine` that draws every operation as often as
//! every other, with references to any earlier step. Same operations, same judge.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine;
use storeproof::explore::script::{Act, LeaseRef, Script, SeqRef, Span, Step, StepId, Until};

/// The most steps of one case: about as many as our cases have on average at twice that.
const STEPS_MAX: usize = 40;
const BOXES: [&str; 3] = ["in", "inbox", "b"];
const OWNERS: [&str; 3] = ["ann", "anna", "bob"];

/// What the reference knows: which steps claimed and which appended.
#[derive(Clone, Debug, Default)]
pub struct Known {
    steps: StepId,
    claims: Vec<StepId>,
    appends: Vec<StepId>,
}

/// One operation and the process that is asked.
#[derive(Clone, Debug)]
pub struct Asked {
    act: Act,
    process: u8,
}

/// The state machine.
pub struct Mailbox;

fn names(all: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(all).prop_map(str::to_owned)
}

fn spans() -> impl Strategy<Value = Span> {
    proptest::sample::select(vec![Span::Brief, Span::Short, Span::Middle, Span::Long, Span::Day])
}

fn maxes() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(1u64..4)
}

fn leases(claims: Vec<StepId>) -> BoxedStrategy<LeaseRef> {
    if claims.is_empty() {
        return Just(LeaseRef::Invented).boxed();
    }
    let claim = proptest::sample::select(claims);
    prop_oneof![
        5 => claim.clone().prop_map(LeaseRef::Of),
        1 => Just(LeaseRef::Invented),
        1 => claim.clone().prop_map(LeaseRef::BeginningOf),
        1 => claim.clone().prop_map(LeaseRef::LongerThan),
        1 => claim.prop_map(LeaseRef::OtherCaseOf),
    ]
    .boxed()
}

fn seqs(claims: Vec<StepId>, appends: Vec<StepId>) -> BoxedStrategy<SeqRef> {
    let mut all = vec![Just(SeqRef::Beyond).boxed()];
    if !claims.is_empty() {
        let claim = proptest::sample::select(claims);
        all.push(claim.clone().prop_map(SeqRef::LastOf).boxed());
        all.push((claim.clone(), 0u32..4).prop_map(|(id, n)| SeqRef::NthOf(id, n)).boxed());
        all.push((claim, 0u32..4).prop_map(|(id, n)| SeqRef::BelowNth(id, n)).boxed());
    }
    if !appends.is_empty() {
        all.push(proptest::sample::select(appends).prop_map(SeqRef::OfAppend).boxed());
    }
    proptest::strategy::Union::new(all).boxed()
}

fn untils(claims: Vec<StepId>) -> BoxedStrategy<Until> {
    let span = spans().prop_map(Until::In);
    if claims.is_empty() {
        return span.boxed();
    }
    let claim = proptest::sample::select(claims);
    prop_oneof![span, claim.clone().prop_map(Until::Past), claim.prop_map(Until::JustBefore)]
        .boxed()
}

impl ReferenceStateMachine for Mailbox {
    type State = Known;
    type Transition = Asked;

    fn init_state() -> BoxedStrategy<Known> {
        Just(Known::default()).boxed()
    }

    fn transitions(known: &Known) -> BoxedStrategy<Asked> {
        let of = || names(&BOXES);
        let owner = || names(&OWNERS);
        let lease = || leases(known.claims.clone());
        let body = format!("m{}", known.steps + 1);
        let bodies = prop_oneof![3 => Just(body), 1 => "[ -~]{1,1024}"];
        let act = prop_oneof![
            (of(), bodies, 1u32..6).prop_map(|(of, body, times)| Act::Append {
                of,
                body: if times > 1 { body.chars().take(900).collect() } else { body },
                times
            }),
            (of(), owner(), spans(), maxes()).prop_map(|(of, owner, ttl, max)| Act::Claim {
                of,
                owner,
                ttl,
                max
            }),
            (of(), owner(), lease(), seqs(known.claims.clone(), known.appends.clone()))
                .prop_map(|(of, owner, lease, up_to)| Act::Ack { of, owner, lease, up_to }),
            (of(), owner(), lease()).prop_map(|(of, owner, lease)| Act::Release {
                of,
                owner,
                lease
            }),
            (of(), owner(), lease(), spans()).prop_map(|(of, owner, lease, ttl)| Act::Renew {
                of,
                owner,
                lease,
                ttl
            }),
            of().prop_map(|of| Act::Peek { of }),
            of().prop_map(|of| Act::Drop { of }),
            Just(Act::Reap),
            (of(), owner(), maxes()).prop_map(|(of, owner, max)| Act::Drain { of, owner, max }),
            untils(known.claims.clone()).prop_map(|until| Act::Wait { until }),
            Just(Act::Reopen),
        ];
        (act, 0u8..2).prop_map(|(act, process)| Asked { act, process }).boxed()
    }

    fn apply(mut known: Known, asked: &Asked) -> Known {
        known.steps += 1;
        match &asked.act {
            Act::Claim { .. } => known.claims.push(known.steps),
            Act::Append { .. } => known.appends.push(known.steps),
            _ => {}
        }
        known
    }
}

/// Draws cases without end.
pub struct Plain {
    runner: TestRunner,
}

impl Plain {
    pub fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self { runner: TestRunner::new_with_rng(Config::default(), rng) }
    }

    /// The script of the next case.
    pub fn script(&mut self) -> Script {
        let strategy = Mailbox::sequential_strategy(1..STEPS_MAX);
        let tree = strategy.new_tree(&mut self.runner);
        let (_, asked, _) = tree.expect("nothing is filtered").current();
        let steps = (1..).zip(asked).map(|(id, asked)| Step {
            id,
            lane: 0,
            process: asked.process,
            act: asked.act,
        });
        Script { steps: steps.collect() }
    }
}
