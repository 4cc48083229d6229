//! The mailbox contract as a relation between one box's states and the answers it allows.
//!
//! A box is small once its messages are known by number: everything appended and not yet gone is one
//! stretch of the seqs that the history knows of, since an ack or a drop takes from the front only. A
//! [`Core`] is therefore a few words that cost nothing to copy, compare and hash.
//!
//! Whatever the contract leaves open, [`Ledger::step`] allows. Calls without an answer
//! ([`super::Outcome::Unknown`]) are let in by `unanswered.rs`.

use super::act::{Rules, Stamp};
use crate::backend::Clock;
use std::collections::HashMap;

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

/// Up to two states.
pub(super) type Next = [Option<Core>; 2];

impl Core {
    /// How many messages wait or are leased.
    pub fn waiting(&self) -> u32 {
        self.last - self.gone + self.loose
    }

    pub fn without_lease(self) -> Self {
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

    pub fn leased(&self, by: &Op, taken: (u64, u64), owner: u32, ttl_ms: u64, upto: u32) -> Held {
        let (live_to_ms, dead_from_ms) = self.lifetime(taken.0, taken.1, ttl_ms);
        Held { id: None, owner, process: by.process, upto, live_to_ms, dead_from_ms }
    }

    pub fn renewed(&self, core: &Core, held: &Held, from_ms: u64, to_ms: u64, ttl_ms: u64) -> Core {
        let (live_to_ms, dead_from_ms) = self.lifetime(from_ms, to_ms, ttl_ms);
        Core { lease: Some(Held { live_to_ms, dead_from_ms, ..*held }), ..*core }
    }

    /// The holder claimed again: its lease ends as it did, or as a lease from this claim would.
    pub fn widened(&self, core: &Core, held: &Held, claimed: (u64, u64), ttl_ms: u64) -> Core {
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

/// Whether `op` was sent after the lease had certainly expired.
pub(super) fn surely_dead(held: &Held, op: &Op) -> bool {
    op.sent.ms >= held.dead_from_ms
}

pub(super) const NONE: Next = [None, None];

fn one(core: Core) -> Next {
    [Some(core), None]
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
