//! Calls without an answer: they may happen at any later moment or never.
//!
//! [`Ledger::ways`] lets each happen at the last moment at which it can matter, right before the call
//! that cannot be explained without it. (Why nothing is lost by that: `docs/design/0003-histories.md`.)

use super::relation::{Core, Kind, Ledger, Maybe, NONE, Next, Op, surely_dead};
use crate::backend::Clock;
use std::collections::HashSet;

/// One way to explain an answer: the state after it, and the calls without an answer that it takes,
/// in the order in which they happen before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    pub core: Core,
    pub used: Vec<u32>,
}

impl Ledger {
    /// Every way to explain `op` from `core`, with the help of calls without an answer: those of
    /// `maybes` that are `free` and were sent before `before`. Each state that it looks at on the way costs
    /// one of `steps`; `None` where there are not enough.
    pub fn ways(
        &self,
        core: &Core,
        op: &Op,
        maybes: &[Op],
        free: &dyn Fn(u32) -> bool,
        before: u64,
        steps: &mut u64,
    ) -> Option<Vec<Way>> {
        let mut ways = Vec::new();
        note(&mut ways, self.step(core, op), &[]);
        let open: Vec<u32> = (0u32..)
            .zip(maybes)
            .filter(|(at, maybe)| maybe.sent.order < before && free(*at))
            .map(|(at, _)| at)
            .collect();
        if ways.is_empty() {
            return self.helped(core, op, maybes, &open, steps);
        }
        // Allowed without any of them, and yet these may have come first and made a difference.
        for at in open {
            let other = &maybes[at as usize];
            let matters = match (op.kind, other.kind) {
                (Kind::Append { .. }, Kind::Maybe(Maybe::Drop)) => true,
                (
                    Kind::Delivery { owner, .. } | Kind::Null { owner, .. },
                    Kind::Maybe(Maybe::Claim { owner: o, .. }),
                ) => owner == o,
                _ => false,
            };
            if matters {
                for core in self.effects(core, other, op).into_iter().flatten() {
                    note(&mut ways, self.step(&core, op), &[at]);
                }
            }
        }
        Some(ways)
    }

    /// The ways to explain `op` that take some of `open`, none of them in vain.
    fn helped(
        &self,
        core: &Core,
        op: &Op,
        maybes: &[Op],
        open: &[u32],
        steps: &mut u64,
    ) -> Option<Vec<Way>> {
        let mut ways = Vec::new();
        if self.is_hopeless(core, op) {
            return Some(ways);
        }
        let helping = |at: &&u32| may_help(&maybes[**at as usize], op);
        let open: Vec<u32> = open.iter().filter(helping).copied().collect();
        let mut seen = HashSet::new();
        let mut todo = vec![Way { core: *core, used: Vec::new() }];
        while let Some(way) = todo.pop() {
            for at in open.iter().filter(|at| is_new(&way.used, **at, maybes)) {
                let effects = self.effects(&way.core, &maybes[*at as usize], op);
                for core in effects.into_iter().flatten() {
                    let used: Vec<u32> = way.used.iter().chain([at]).copied().collect();
                    let mut key = used.clone();
                    key.sort_unstable();
                    if !seen.insert((core, key)) {
                        continue;
                    }
                    *steps = steps.checked_sub(1)?;
                    let next = self.step(&core, op);
                    if next != NONE {
                        note(&mut ways, next, &used);
                    } else if !self.is_hopeless(&core, op) {
                        todo.push(Way { core, used });
                    }
                }
            }
        }
        Some(ways)
    }

    /// Whether no call without an answer can make `op` possible.
    fn is_hopeless(&self, core: &Core, op: &Op) -> bool {
        let is_next_orphan = || {
            let next = self.seqs.get(core.last as usize);
            next.is_some_and(|seq| self.orphans.contains_key(seq))
        };
        match op.kind {
            Kind::Append { at } => at < core.last || !is_next_orphan(),
            Kind::Delivery { from, len, .. } | Kind::Peeked { from, len } if len > 0 => {
                from < core.gone || (from + len > core.last && !is_next_orphan())
            }
            // Nothing is left to count once an unanswered ack or drop has ended the lease.
            Kind::Acked { count: 0, .. } => false,
            Kind::Acked { owner, lease, up_to, count } => {
                core.held_by(owner, lease).is_none_or(|held| {
                    count != self.count_to(up_to).clamp(core.gone, held.upto) - core.gone
                })
            }
            Kind::Released { owner, lease } | Kind::Renewed { owner, lease, .. } => {
                core.held_by(owner, lease).is_none()
            }
            Kind::Impossible => true,
            Kind::Delivery { .. }
            | Kind::Peeked { .. }
            | Kind::Null { .. }
            | Kind::Refused { .. }
            | Kind::Dropped { .. }
            | Kind::Nothing
            | Kind::Maybe(_) => false,
        }
    }

    /// The states after `maybe`, a call without an answer, happened right before `op`; none where it
    /// has no effect there.
    fn effects(&self, core: &Core, maybe: &Op, op: &Op) -> Next {
        let Kind::Maybe(asked) = maybe.kind else { return NONE };
        match asked {
            Maybe::Append { body } => [self.perhaps_appended(core, body, op), None],
            Maybe::Claim { .. }
            | Maybe::Ack { .. }
            | Maybe::Release { .. }
            | Maybe::Renew { .. }
            | Maybe::Drop
                if core.loose > 0 =>
            {
                NONE
            }
            Maybe::Claim { owner, ttl_ms, max } => {
                self.perhaps_claimed(core, maybe, op, (owner, ttl_ms, max))
            }
            Maybe::Ack { .. } | Maybe::Release { .. } | Maybe::Renew { .. } | Maybe::Drop => {
                [self.perhaps_ended(core, maybe, op, asked), None]
            }
        }
    }

    /// An append: as one that the drop `op` counts, or as the next message, which only deliveries know.
    fn perhaps_appended(&self, core: &Core, body: u32, op: &Op) -> Option<Core> {
        if let Kind::Dropped { count } = op.kind
            && core.waiting() < count
        {
            return Some(Core { loose: core.loose + 1, ..*core });
        }
        let next = self.seqs.get(core.last as usize)?;
        let is_it = core.loose == 0 && self.orphans.get(next) == Some(&body);
        is_it.then_some(Core { last: core.last + 1, ..*core })
    }

    /// A claim: a lease that nobody was told of, or one more by the holder, which may move expiry.
    fn perhaps_claimed(
        &self,
        core: &Core,
        maybe: &Op,
        op: &Op,
        (owner, ttl_ms, max): (u32, u64, u32),
    ) -> Next {
        let mut next = NONE;
        let until_ms = self.until_ms(maybe, op.answered.ms);
        if let Some(held) = &core.lease
            && held.owner == owner
            && !surely_dead(held, maybe)
        {
            let to_ms = until_ms.min(held.dead_from_ms).max(maybe.sent.ms);
            next[0] = Some(self.widened(core, held, (maybe.sent.ms, to_ms), ttl_ms))
                .filter(|widened| widened != core);
        }
        let fenced = core.lease.as_ref().is_some_and(|held| self.surely_live(held, op));
        // Only a claim can tell that a lease is there of which nobody was told.
        let shows = matches!(op.kind, Kind::Null { .. })
            || matches!(op.kind, Kind::Delivery { owner: other, .. } if other == owner);
        let waits = core.waiting() > 0 || self.first_maybe_append < op.answered.order;
        if shows && !fenced && waits {
            let upto = core.last.min(core.gone.saturating_add(max));
            let held = self.leased(maybe, (maybe.sent.ms, until_ms), owner, ttl_ms, upto);
            next[1] = Some(Core { lease: Some(held), ..*core });
        }
        next
    }

    /// What ends or prolongs a lease, or empties the box.
    fn perhaps_ended(&self, core: &Core, maybe: &Op, op: &Op, asked: Maybe) -> Option<Core> {
        let held_by =
            |owner, lease| core.held_by(owner, lease).filter(|held| !surely_dead(held, maybe));
        match asked {
            Maybe::Ack { owner, lease, up_to } => {
                let held = held_by(owner, lease)?;
                let gone = self.count_to(up_to).clamp(core.gone, held.upto);
                Some(Core { gone, ..core.without_lease() })
            }
            Maybe::Release { owner, lease } => held_by(owner, lease).map(|_| core.without_lease()),
            Maybe::Renew { owner, lease, ttl_ms } => {
                let held = held_by(owner, lease)?;
                let until_ms = self.until_ms(maybe, op.answered.ms.min(held.dead_from_ms));
                Some(self.renewed(core, held, maybe.sent.ms, until_ms, ttl_ms))
            }
            Maybe::Drop if core.waiting() > 0 || core.lease.is_some() => {
                Some(Core { gone: core.last, dropped: true, ..core.without_lease() })
            }
            Maybe::Drop | Maybe::Append { .. } | Maybe::Claim { .. } => None,
        }
    }

    /// By when `maybe` took its time: on the caller's clock that is its own `now`.
    fn until_ms(&self, maybe: &Op, latest_ms: u64) -> u64 {
        match self.rules.clock {
            Clock::Caller => maybe.sent.ms,
            Clock::Wall => latest_ms.max(maybe.sent.ms),
        }
    }
}

/// Whether a call without an answer can have to do with the answer of `op`.
fn may_help(maybe: &Op, op: &Op) -> bool {
    let Kind::Maybe(asked) = maybe.kind else { return false };
    match (op.kind, asked) {
        (Kind::Acked { count: 0, .. }, Maybe::Drop) => true,
        (Kind::Acked { count: 0, lease, .. }, Maybe::Ack { lease: other, .. }) => other == lease,
        (Kind::Append { .. }, Maybe::Append { .. } | Maybe::Drop) => true,
        (Kind::Append { .. }, _) => false,
        (Kind::Null { .. } | Kind::Refused { .. }, _) => !matches!(asked, Maybe::Append { .. }),
        (
            Kind::Acked { lease, owner, .. }
            | Kind::Released { lease, owner }
            | Kind::Renewed { lease, owner, .. },
            _,
        ) => match asked {
            Maybe::Renew { lease: other, .. } => other == lease,
            Maybe::Claim { owner: other, .. } => other == owner,
            Maybe::Append { .. } | Maybe::Ack { .. } | Maybe::Release { .. } | Maybe::Drop => false,
        },
        _ => true,
    }
}

/// Whether `at` may come after `used`: not twice, and with no third claim, since a second one can only
/// have ended the lease that kept the first from its own.
fn is_new(used: &[u32], at: u32, maybes: &[Op]) -> bool {
    let is_claim = |at: &u32| matches!(maybes[*at as usize].kind, Kind::Maybe(Maybe::Claim { .. }));
    let claims = used.iter().filter(|at| is_claim(at)).count();
    !used.contains(&at) && (claims < 2 || !is_claim(&at))
}

fn note(ways: &mut Vec<Way>, next: Next, used: &[u32]) {
    for core in next.into_iter().flatten() {
        let way = Way { core, used: used.to_vec() };
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
}
