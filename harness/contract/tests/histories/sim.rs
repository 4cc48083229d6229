//! Good histories, by running the model from simulated workers whose calls overlap.

use fastrand::Rng;
use serde_json::json;
use std::sync::{Arc, Mutex};
use storeproof_contract::backend::Clock;
use storeproof_contract::mailbox::history::{Act, Call, Got, Outcome, Rules, Stamp};
use storeproof_contract::mailbox::model::Model;
use storeproof_contract::mailbox::moves::{Sent, at};
use storeproof_contract::mailbox::store::{Address, ClaimAsk, LeaseId, MailboxStore, Millis, Seq};
use storeproof_contract::sim::{Clockwork, World};

/// What a simulated run is like.
#[derive(Clone, Debug)]
pub struct Plan {
    pub lanes: usize,
    pub boxes: usize,
    pub calls: usize,
    pub clock: Clock,
    /// One call in so many loses its answer, and its worker is killed; none for 0.
    pub kill_one_in: u32,
    /// The longest lifetime of a lease; short ones expire in between.
    pub ttl_ms_max: u64,
    /// Whether claims take few messages at a time.
    pub capped: bool,
    /// Whether there are drops, peeks and reaps.
    pub rare_calls: bool,
    /// Whether the model's claim is taken as it is, without the freedoms that it does not take.
    pub plain: bool,
    /// So many of the workers claim; the others only append.
    pub consumers: usize,
}

#[derive(Clone)]
enum Lane {
    Idle,
    Asked(usize),
    Applied(usize, Outcome),
}

struct Sim {
    rng: Rng,
    plan: Plan,
    model: Model,
    order: u64,
    ms: u64,
    calls: Vec<Call>,
    lanes: Vec<Lane>,
    /// What each lane holds: box, lease and last seq.
    held: Vec<Vec<(Address, String, u64)>>,
    processes: Vec<usize>,
    /// Calls of killed workers that may still be carried out.
    ghosts: Vec<usize>,
    rules: Rules,
}

/// A run, with the rules that it is to be judged by.
pub fn run(seed: u64, plan: &Plan) -> (Vec<Call>, Rules) {
    let mut sim = Sim {
        rng: Rng::with_seed(seed),
        plan: plan.clone(),
        model: Model::new(Arc::new(Mutex::default()), World::new(Clockwork::Caller)),
        order: 0,
        ms: 1_000,
        calls: Vec::new(),
        lanes: vec![Lane::Idle; plan.lanes],
        held: vec![Vec::new(); plan.lanes],
        processes: (0..plan.lanes).collect(),
        ghosts: Vec::new(),
        rules: Rules::new(plan.clock, 1),
    };
    while sim.calls.len() < plan.calls || sim.lanes.iter().any(|l| !matches!(l, Lane::Idle)) {
        sim.tick();
    }
    sim.calls.retain(|call| call.answered.is_some() || call.outcome == Outcome::Unknown);
    (sim.calls, sim.rules)
}

impl Sim {
    fn stamp(&mut self) -> Stamp {
        self.order += 1;
        Stamp { order: self.order, ms: self.ms }
    }

    fn tick(&mut self) {
        let quiet = self.lanes.iter().all(|lane| matches!(lane, Lane::Idle));
        // Calls that overlap carry one `now` on the caller's clock.
        if (quiet || self.plan.clock == Clock::Wall) && self.rng.u32(..3) == 0 {
            self.ms += self.rng.u64(..=self.plan.ttl_ms_max / 4);
        }
        if !self.ghosts.is_empty() && self.rng.u32(..8) == 0 {
            let place = self.ghosts.swap_remove(self.rng.usize(..self.ghosts.len()));
            self.apply(place);
        }
        let lane = self.rng.usize(..self.lanes.len());
        match self.lanes[lane].clone() {
            Lane::Idle if self.calls.len() < self.plan.calls => self.ask(lane),
            Lane::Idle => {}
            Lane::Asked(place) | Lane::Applied(place, _) if self.killed() => self.kill(lane, place),
            Lane::Asked(place) => {
                let outcome = self.apply(place);
                self.lanes[lane] = Lane::Applied(place, outcome);
            }
            Lane::Applied(place, outcome) => self.answer(lane, place, outcome),
        }
    }

    fn killed(&mut self) -> bool {
        // Two ticks a call.
        self.plan.kill_one_in > 0 && self.rng.u32(..2 * self.plan.kill_one_in) == 0
    }

    fn kill(&mut self, lane: usize, place: usize) {
        self.calls[place].outcome = Outcome::Unknown;
        if matches!(self.lanes[lane], Lane::Asked(_)) && self.rng.bool() {
            self.ghosts.push(place);
        }
        self.lanes[lane] = Lane::Idle;
        self.order += 1;
        self.rules.deaths.insert(self.processes[lane], self.order);
        self.processes[lane] = self.processes.iter().max().map_or(0, |most| most + 1);
        self.held[lane].clear();
    }

    fn ask(&mut self, lane: usize) {
        let of = at(["alpha", "beta", "gamma", "delta"][self.rng.usize(..self.plan.boxes)]);
        let act = self.draw(lane, &of);
        let sent = self.stamp();
        let call = Call {
            of,
            act,
            sent,
            answered: None,
            lane,
            process: self.processes[lane],
            outcome: Outcome::Ok(Got::Done),
        };
        self.lanes[lane] = Lane::Asked(self.calls.len());
        self.calls.push(call);
    }

    fn draw(&mut self, lane: usize, of: &Address) -> Act {
        let owner = format!("w{lane}");
        let ttl_ms = 1 + self.rng.u64(..self.plan.ttl_ms_max);
        if lane >= self.plan.consumers {
            return Act::Append { body: json!(format!("m{}", self.calls.len())) };
        }
        let rare = if self.plan.rare_calls { self.rng.u32(..60) } else { 60 };
        match rare {
            0 => return Act::Drop,
            1 | 2 => return Act::Reap,
            3..=5 => return Act::Peek,
            _ => {}
        }
        let mine = self.held[lane].iter().position(|(held, ..)| held == of);
        match (mine, self.rng.u32(..12)) {
            (Some(at), 0..=6) => {
                let (_, lease, last) = self.held[lane].remove(at);
                let up_to = if self.rng.u32(..3) == 0 { last.saturating_sub(1) } else { last };
                Act::Ack { owner, lease, up_to }
            }
            (Some(at), 7) => {
                let (_, lease, _) = self.held[lane].remove(at);
                Act::Release { owner, lease }
            }
            (Some(at), 8) => {
                let lease = self.held[lane][at].1.clone();
                Act::Renew { owner, lease, ttl_ms }
            }
            (Some(at), 9) => {
                // Once more, as after a lost answer.
                let (_, lease, last) = self.held[lane][at].clone();
                Act::Ack { owner, lease, up_to: last }
            }
            (None, 0) => {
                // Somebody else's lease.
                let lease = self.held.iter().flatten().next().map(|(_, lease, _)| lease.clone());
                Act::Ack { owner, lease: lease.unwrap_or_else(|| "invented".into()), up_to: 9 }
            }
            (None, 1..=5) => {
                let max = self.plan.capped.then(|| self.rng.u64(1..=3));
                Act::Claim { owner, ttl_ms, max }
            }
            _ => Act::Append { body: json!(format!("m{}", self.calls.len())) },
        }
    }

    /// Carries the call out, now.
    fn apply(&mut self, place: usize) -> Outcome {
        let call = self.calls[place].clone();
        let now = match self.plan.clock {
            Clock::Caller => Millis(call.sent.ms),
            Clock::Wall => Millis(self.ms),
        };
        let of = &call.of;
        let answered = match &call.act {
            Act::Append { body } => {
                let gap = self.rng.u64(..6).saturating_sub(4);
                self.model.with_box(of, |b| b.last_seq += gap);
                self.model.append(of, body, now).map(|seq| Got::Seq(seq.0))
            }
            Act::Claim { owner, ttl_ms, max } => self.claim(of, owner, *ttl_ms, *max, now),
            Act::Ack { owner, lease, up_to } => self
                .model
                .ack(of, owner, &LeaseId(lease.clone()), Seq(*up_to), now)
                .map(|count| Got::Count(count as f64)),
            Act::Release { owner, lease } => {
                self.model.release(of, owner, &LeaseId(lease.clone()), now).map(|()| Got::Done)
            }
            Act::Renew { owner, lease, ttl_ms } => {
                let lease = LeaseId(lease.clone());
                self.model.renew(of, owner, &lease, *ttl_ms as i64, now).map(|()| Got::Done)
            }
            Act::Peek => self.model.peek(of, now).map(|found| Got::Messages(sent(found))),
            Act::Drop => self.model.drop_box(of, now).map(|count| Got::Count(count as f64)),
            Act::Reap => self.model.reap(now).map(|()| Got::Done),
        };
        answered.map_or_else(|_| Outcome::Refused("lease_not_held".into()), Outcome::Ok)
    }

    /// The model's claim, with the freedoms that it does not take itself.
    fn claim(
        &mut self,
        of: &Address,
        owner: &str,
        ttl_ms: u64,
        max: Option<u64>,
        now: Millis,
    ) -> Result<Got, storeproof_contract::subject::StoreError> {
        let live = self.model.with_box(of, |b| b.live(now).cloned());
        if !self.plan.plain && live.is_some_and(|held| held.owner == owner) {
            if self.rng.bool() {
                let expiry = Millis(now.0 + ttl_ms);
                self.model.with_box(of, |b| {
                    if let Some(held) = &mut b.lease {
                        held.expiry = expiry;
                    }
                });
            }
            if self.rng.bool() {
                return Ok(Got::Null);
            }
        }
        let most = if self.rng.u32(..4) == 0 { max.unwrap_or(9).min(2) } else { max.unwrap_or(99) };
        let ask =
            ClaimAsk { owner: owner.to_owned(), ttl_ms: ttl_ms as i64, max: Some(most as i64) };
        let found = self.model.claim(of, &ask, now)?;
        Ok(found.map_or(Got::Null, |found| Got::Delivery {
            lease: found.lease.0,
            messages: sent(found.messages),
        }))
    }

    fn answer(&mut self, lane: usize, place: usize, outcome: Outcome) {
        if let Outcome::Ok(Got::Delivery { lease, messages }) = &outcome {
            let of = self.calls[place].of.clone();
            let last = messages.last().map_or(0, |m| m.seq);
            self.held[lane].retain(|(_, known, _)| known != lease);
            self.held[lane].push((of, lease.clone(), last));
        }
        let stamp = self.stamp();
        self.calls[place].answered = Some(match self.plan.clock {
            Clock::Caller => Stamp { ms: self.calls[place].sent.ms, ..stamp },
            Clock::Wall => stamp,
        });
        self.calls[place].outcome = outcome;
        self.lanes[lane] = Lane::Idle;
    }
}

fn sent(messages: Vec<storeproof_contract::mailbox::store::Message>) -> Vec<Sent> {
    messages.into_iter().map(|m| Sent { seq: m.seq.0, body: m.body }).collect()
}
