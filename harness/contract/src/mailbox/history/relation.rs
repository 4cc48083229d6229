//! The mailbox contract as a relation between one box's states and the answers it allows.
//!
//! A box is small once its messages are known by number: everything appended and not yet gone is one
//! stretch of the seqs that the history knows of, since an ack or a drop takes from the front only. A
//! [`Core`] is therefore a few words that cost nothing to copy, compare and hash.
//!
//! Whatever the contract leaves open, [`Ledger::step`] allows. Calls without an answer
//! ([`super::Outcome::Unknown`]) may happen at any later moment or never; [`Ledger::ways`] lets each
//! happen at the last moment at which it can matter, right before the call that cannot be explained
//! without it. (Why nothing is lost by that: `docs/design/0003-histories.md`.)

use super::act::{Rules, Stamp};
use crate::backend::Clock;
use std::collections::{HashMap, HashSet};

/// One box as the contract sees it. Numbers count the ledger's seqs from the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Core {
    /// So many went: acked or dropped.
    pub gone: u32,
    /// So many were appended.
    pub last: u32,
    /// So many more lie at the end whose seq nobody ever learns; only a drop counts them.
    pub loose: u32,
    /// Whether the box was ever dropped.
    pub dropped: bool,
    /// The last lease that was not ended by a call; it may have expired.
    pub lease: Option<Held>,
}

/// A lease as the relation knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    /// Its id; none where nobody was told.
    pub id: Option<u32>,
    pub owner: u32,
    pub process: u32,
    /// It delivered everything up to here; the most that it can have delivered where nobody was told.
    pub upto: u32,
    /// A call answered by then certainly found it live.
    pub live_to_ms: u64,
    /// A call sent from then on certainly found it expired.
    pub dead_from_ms: u64,
}

/// A call in the ledger's terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Op {
    pub sent: Stamp,
    /// Beyond everything for a call without an answer.
    pub answered: Stamp,
    pub process: u32,
    pub kind: Kind,
}

/// What a call asked and was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// The receipt is the ledger's seq number `at`, counted from 0.
    Append {
        at: u32,
    },
    Null {
        owner: u32,
        ttl_ms: u64,
    },
    /// It delivered `len` of the ledger's seqs after the first `from`.
    Delivery {
        owner: u32,
        ttl_ms: u64,
        max: u32,
        lease: u32,
        from: u32,
        len: u32,
    },
    Acked {
        owner: u32,
        lease: u32,
        up_to: u64,
        count: u32,
    },
    /// An ack, a release or a renewal was refused.
    Refused {
        owner: u32,
        lease: u32,
    },
    Released {
        owner: u32,
        lease: u32,
    },
    Renewed {
        owner: u32,
        lease: u32,
        ttl_ms: u64,
    },
    Peeked {
        from: u32,
        len: u32,
    },
    Dropped {
        count: u32,
    },
    /// Says nothing about this box.
    Nothing,
    /// No state allows this answer.
    Impossible,
    /// It has no answer.
    Maybe(Maybe),
}

/// What a call without an answer asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Maybe {
    Append { body: u32 },
    Claim { owner: u32, ttl_ms: u64, max: u32 },
    Ack { owner: u32, lease: u32, up_to: u64 },
    Release { owner: u32, lease: u32 },
    Renew { owner: u32, lease: u32, ttl_ms: u64 },
    Drop,
}

impl Kind {
    /// Who asked, where that is part of the call.
    pub fn owner(&self) -> Option<u32> {
        match *self {
            Self::Null { owner, .. }
            | Self::Delivery { owner, .. }
            | Self::Acked { owner, .. }
            | Self::Refused { owner, .. }
            | Self::Released { owner, .. }
            | Self::Renewed { owner, .. }
            | Self::Maybe(
                Maybe::Claim { owner, .. }
                | Maybe::Ack { owner, .. }
                | Maybe::Release { owner, .. }
                | Maybe::Renew { owner, .. },
            ) => Some(owner),
            Self::Append { .. }
            | Self::Peeked { .. }
            | Self::Dropped { .. }
            | Self::Nothing
            | Self::Impossible
            | Self::Maybe(Maybe::Append { .. } | Maybe::Drop) => None,
        }
    }
}

/// What is known of a lease beyond the state of its box.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaseNote {
    /// Who was given it, where anybody was.
    pub owner: Option<u32>,
    /// How many claims that were given it have happened.
    pub given: u32,
    /// How many acks of it have happened.
    pub settled: u32,
    /// Whether an ack of it has no answer.
    pub maybe_settled: bool,
}

/// What a history knows of one box's seqs and leases.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub rules: Rules,
    /// Every seq that was receipted or delivered, ascending.
    pub seqs: Vec<u64>,
    /// Those that only deliveries show, with their bodies' number: an append without an answer.
    pub orphans: HashMap<u64, u32>,
    pub leases: Vec<LeaseNote>,
    /// When the first append without an answer was sent: from then on a message that nobody ever sees
    /// may wait. (That it would have to be seen or dropped one day is not held against anybody.)
    pub first_maybe_append: u64,
}

/// One way to explain an answer: the state after it, and the calls without an answer that it takes,
/// in the order in which they happen before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    pub core: Core,
    pub used: Vec<u32>,
}

/// Up to two states.
type Next = [Option<Core>; 2];

impl Core {
    /// How many messages wait or are leased.
    pub fn waiting(&self) -> u32 {
        self.last - self.gone + self.loose
    }

    fn without_lease(self) -> Self {
        Self { lease: None, ..self }
    }

    /// The lease, if `owner` holds it by that id.
    pub fn held_by(&self, owner: u32, lease: u32) -> Option<&Held> {
        self.lease.as_ref().filter(|held| held.owner == owner && held.id == Some(lease))
    }
}

impl Ledger {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            seqs: Vec::new(),
            orphans: HashMap::new(),
            leases: Vec::new(),
            first_maybe_append: u64::MAX,
        }
    }

    /// How many of the ledger's seqs are at most `seq`.
    pub fn count_to(&self, seq: u64) -> u32 {
        u32::try_from(self.seqs.partition_point(|s| *s <= seq)).unwrap_or(u32::MAX)
    }

    /// Notes what `op` did to its lease.
    pub fn happened(&mut self, op: &Op) {
        if let Kind::Delivery { lease, .. } = op.kind {
            self.leases[lease as usize].given += 1;
        }
        if let Kind::Acked { lease, .. } = op.kind {
            self.leases[lease as usize].settled += 1;
        }
    }

    /// Takes [`Ledger::happened`] back.
    pub fn unhappened(&mut self, op: &Op) {
        if let Kind::Delivery { lease, .. } = op.kind {
            self.leases[lease as usize].given -= 1;
        }
        if let Kind::Acked { lease, .. } = op.kind {
            self.leases[lease as usize].settled -= 1;
        }
    }

    /// The states that the contract allows after `op` was answered as it was; none where it forbids it.
    pub fn step(&self, core: &Core, op: &Op) -> Next {
        match op.kind {
            Kind::Nothing => one(*core),
            Kind::Refused { owner, lease } => match core.held_by(owner, lease) {
                Some(held) if self.surely_live(held, op) => NONE,
                Some(_) | None => one(*core),
            },
            Kind::Dropped { count } if count == core.waiting() => {
                one(Core { gone: core.last, loose: 0, dropped: true, lease: None, ..*core })
            }
            // Appends that only a drop counts happen right before it.
            Kind::Dropped { .. } => NONE,
            _ if core.loose > 0 => NONE,
            Kind::Append { at } if at == core.last => one(Core { last: at + 1, ..*core }),
            Kind::Append { .. } => NONE,
            Kind::Null { owner, ttl_ms } => self.null(core, op, owner, ttl_ms),
            Kind::Delivery { .. } => self.delivery(core, op),
            Kind::Acked { owner, lease, up_to, count } => {
                self.acked(core, op, (owner, lease), up_to, count)
            }
            Kind::Released { owner, lease } => match core.held_by(owner, lease) {
                Some(held) if !surely_dead(held, op) => one(core.without_lease()),
                Some(_) | None => NONE,
            },
            Kind::Renewed { owner, lease, ttl_ms } => match core.held_by(owner, lease) {
                Some(held) if !surely_dead(held, op) => {
                    one(self.renewed(core, held, op.sent.ms, op.answered.ms, ttl_ms))
                }
                Some(_) | None => NONE,
            },
            Kind::Peeked { from, len } => {
                let whole = len == core.last - core.gone && (len == 0 || from == core.gone);
                if whole { one(*core) } else { NONE }
            }
            Kind::Impossible | Kind::Maybe(_) => NONE,
        }
    }

    /// A claim that was answered `null`: the box was empty, or fenced. Where its own holder asks again,
    /// expiry may have moved.
    fn null(&self, core: &Core, op: &Op, owner: u32, ttl_ms: u64) -> Next {
        match &core.lease {
            // Empty, as far as anybody saw; but a lease may lie on a message that nobody saw.
            Some(held) if core.waiting() == 0 && (held.owner != owner || surely_dead(held, op)) => {
                one(*core)
            }
            None if core.waiting() == 0 => one(*core),
            Some(held) if surely_dead(held, op) => NONE,
            Some(held) if held.owner == owner => {
                one(self.widened(core, held, (op.sent.ms, op.answered.ms), ttl_ms))
            }
            Some(_) => one(*core),
            None => NONE,
        }
    }

    /// A claim that delivered: a new lease on a prefix where nothing surely fences, or its own lease
    /// with its own messages.
    fn delivery(&self, core: &Core, op: &Op) -> Next {
        let Kind::Delivery { owner, ttl_ms, max, lease, from, len } = op.kind else { return NONE };
        let (upto, mut next) = (from + len, NONE);
        if from != core.gone || len == 0 || upto > core.last {
            return NONE;
        }
        let fresh = self.leases[lease as usize].given == 0;
        if let Some(held) = &core.lease
            && held.owner == owner
            && !surely_dead(held, op)
        {
            let same = match held.id {
                Some(id) => id == lease && upto == held.upto,
                None => fresh && upto <= held.upto,
            };
            if same {
                let known = Held { id: Some(lease), upto, ..*held };
                next[0] = Some(self.widened(core, &known, (op.sent.ms, op.answered.ms), ttl_ms));
            }
        }
        let fenced = core.lease.as_ref().is_some_and(|held| self.surely_live(held, op));
        if fresh && !fenced && len <= max {
            let held = self.leased(op, (op.sent.ms, op.answered.ms), owner, ttl_ms, upto);
            next[1] = Some(Core { lease: Some(Held { id: Some(lease), ..held }), ..*core });
        }
        next
    }

    /// An ack that was taken: by the holder, of what it was delivered; or of a lease that an ack or a
    /// drop has ended, without effect.
    fn acked(&self, core: &Core, op: &Op, (owner, lease): (u32, u32), up_to: u64, n: u32) -> Next {
        if let Some(held) = core.held_by(owner, lease) {
            let upto = self.count_to(up_to).clamp(core.gone, held.upto);
            if surely_dead(held, op) || n != upto - core.gone {
                return NONE;
            }
            return one(Core { gone: upto, ..core.without_lease() });
        }
        let note = &self.leases[lease as usize];
        let ended = note.settled > 0 || note.maybe_settled || core.dropped;
        let live = core.lease.is_some_and(|held| held.id == Some(lease));
        // Whoever asks: it removes nothing.
        if n == 0 && note.given > 0 && ended && !live { one(*core) } else { NONE }
    }

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

    fn leased(&self, by: &Op, taken: (u64, u64), owner: u32, ttl_ms: u64, upto: u32) -> Held {
        let (live_to_ms, dead_from_ms) = self.lifetime(taken.0, taken.1, ttl_ms);
        Held { id: None, owner, process: by.process, upto, live_to_ms, dead_from_ms }
    }

    fn renewed(&self, core: &Core, held: &Held, from_ms: u64, to_ms: u64, ttl_ms: u64) -> Core {
        let (live_to_ms, dead_from_ms) = self.lifetime(from_ms, to_ms, ttl_ms);
        Core { lease: Some(Held { live_to_ms, dead_from_ms, ..*held }), ..*core }
    }

    /// The holder claimed again: its lease ends as it did, or as a lease from this claim would.
    fn widened(&self, core: &Core, held: &Held, claimed: (u64, u64), ttl_ms: u64) -> Core {
        let (live_to_ms, dead_from_ms) = self.lifetime(claimed.0, claimed.1, ttl_ms);
        let held = Held {
            live_to_ms: live_to_ms.min(held.live_to_ms),
            dead_from_ms: dead_from_ms.max(held.dead_from_ms),
            ..*held
        };
        Core { lease: Some(held), ..*core }
    }

    /// The rule about time of `mailbox/lease.rs`: to when a lease taken between the two moments surely
    /// lives, and from when it is surely dead.
    fn lifetime(&self, from_ms: u64, to_ms: u64, ttl_ms: u64) -> (u64, u64) {
        let g = self.rules.granularity_ms;
        let (first_ms, last_ms) = (from_ms.saturating_add(ttl_ms), to_ms.saturating_add(ttl_ms));
        match self.rules.clock {
            Clock::Caller => (first_ms.saturating_sub(g), last_ms.saturating_add(g.max(1) - 1)),
            Clock::Wall => (first_ms.saturating_sub(g + 1), last_ms.saturating_add(g + 1)),
        }
    }

    /// Whether `op` was answered while the lease certainly lived: before it can have ended, and before
    /// its holder's death, which may end it.
    pub fn surely_live(&self, held: &Held, op: &Op) -> bool {
        let died = self.rules.deaths.get(&(held.process as usize));
        op.answered.ms <= held.live_to_ms && died.is_none_or(|at| op.answered.order <= *at)
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

/// Whether `op` was sent after the lease had certainly expired.
pub(super) fn surely_dead(held: &Held, op: &Op) -> bool {
    op.sent.ms >= held.dead_from_ms
}

const NONE: Next = [None, None];

fn one(core: Core) -> Next {
    [Some(core), None]
}

fn note(ways: &mut Vec<Way>, next: Next, used: &[u32]) {
    for core in next.into_iter().flatten() {
        let way = Way { core, used: used.to_vec() };
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
}

/// Numbers for words, in the order in which they first came up.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(HashMap<String, u32>);

impl Words {
    pub fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.0.get(word) {
            return *number;
        }
        let number = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.insert(word.to_owned(), number);
        number
    }

    /// The word of that number.
    pub fn word(&self, number: u32) -> &str {
        self.0.iter().find(|(_, n)| **n == number).map_or("?", |(word, _)| word.as_str())
    }
}
