//! The search for an order of one box's calls that the relation allows (after Wing and Gong, with
//! Lowe's memory of what failed).
//!
//! A call may come next if no other call was answered before it was sent. Calls that change nothing and
//! are allowed come at once: they can only be in the way later. What makes good histories nearly linear
//! is the receipt: of all appends that may come next only the one with the next seq can.

use super::boxed::Boxed;
use super::relation::{Core, Kind, Op};
use std::collections::HashSet;

/// What the search came to.
pub(super) enum Found {
    /// An order that the relation allows.
    Order,
    /// There is none.
    Stuck(Stuck),
    /// More steps than it may take.
    TooMuch,
}

/// The longest order that the search came to before no call could come next.
pub(super) struct Stuck {
    /// Places in the history, in order, calls without an answer where they happened included.
    pub order: Vec<usize>,
    /// The place of the call that had to come next: the one that was answered first.
    pub next: usize,
}

/// A step of the search.
struct Frame {
    /// The op that came next.
    op: u32,
    /// The state before it.
    before: Core,
    /// Where this step's other choices begin.
    choices: usize,
    /// How many calls without an answer it took.
    used: usize,
    /// The highest op of all so far, before it.
    top: u32,
}

/// What may come next.
struct Choice {
    op: u32,
    core: Core,
    used: Vec<u32>,
}

/// What was found to lead nowhere: which calls had come, and the state.
#[derive(PartialEq, Eq, Hash)]
struct Failed {
    base: u32,
    done: Box<[u64]>,
    used: Box<[u32]>,
    core: Core,
}

struct Search<'a> {
    boxed: &'a mut Boxed,
    /// The next op that has not come, in the order of sending; the last is the end of the list.
    next: Vec<u32>,
    previous: Vec<u32>,
    done: Vec<u64>,
    used: Vec<u32>,
    used_at: Vec<bool>,
    core: Core,
    top: u32,
    frames: Vec<Frame>,
    choices: Vec<Choice>,
    failed: HashSet<Failed>,
    stuck: Option<Stuck>,
    candidates: Vec<u32>,
    /// By seq of the ledger: how many calls that have not come show messages from it on.
    shows: Vec<u32>,
    /// By lease: how many calls that have not come can only come while it is held.
    needs: Vec<u32>,
}

/// Searches; `steps` is how many it may take, and what is left of them afterwards.
pub(super) fn search(boxed: &mut Boxed, steps: &mut u64) -> Found {
    let count = u32::try_from(boxed.ops.len()).unwrap_or(u32::MAX);
    let mut search = Search {
        next: (1..=count).chain([0]).collect(),
        previous: std::iter::once(count).chain(0..count).collect(),
        done: vec![0; boxed.ops.len().div_ceil(64)],
        used: Vec::new(),
        used_at: vec![false; boxed.maybes.len()],
        core: Core::default(),
        top: 0,
        frames: Vec::new(),
        choices: Vec::new(),
        failed: HashSet::new(),
        stuck: None,
        candidates: Vec::new(),
        shows: vec![0; boxed.ledger.seqs.len()],
        needs: vec![0; boxed.ledger.leases.len()],
        boxed,
    };
    for at in 0..count {
        search.ahead(at, true);
    }
    search.run(steps)
}

impl Search<'_> {
    fn run(&mut self, steps: &mut u64) -> Found {
        let end = self.end();
        // Where the choices of the present step begin.
        let mut level = 0;
        if self.first() == end {
            return Found::Order;
        }
        if self.expand(steps).is_none() {
            return Found::TooMuch;
        }
        loop {
            if self.choices.len() == level {
                self.note_stuck();
                self.remember();
                let Some(start) = self.back() else { break };
                level = start;
                continue;
            }
            let Some(choice) = self.choices.pop() else { break };
            let Some(left) = steps.checked_sub(1) else { return Found::TooMuch };
            *steps = left;
            self.advance(choice, level);
            if self.first() == end {
                return Found::Order;
            }
            if !self.failed.is_empty() && self.failed.contains(&self.key()) {
                let Some(start) = self.back() else { break };
                level = start;
                continue;
            }
            level = self.choices.len();
            if self.expand(steps).is_none() {
                return Found::TooMuch;
            }
        }
        match self.stuck.take() {
            Some(stuck) => Found::Stuck(stuck),
            None => Found::TooMuch,
        }
    }

    /// The end of the list is also its beginning.
    fn end(&self) -> u32 {
        u32::try_from(self.boxed.ops.len()).unwrap_or(u32::MAX)
    }

    fn first(&self) -> u32 {
        self.next[self.end() as usize]
    }

    /// Collects what may come next in the present state, the best last. `None` where a single answer has
    /// too many explanations.
    fn expand(&mut self, steps: &mut u64) -> Option<()> {
        let before = self.collect();
        let level = self.choices.len();
        let (used_at, ledger) = (&self.used_at, &self.boxed.ledger);
        let free = |at: u32| !used_at[at as usize];
        for &at in &self.candidates {
            let op = &self.boxed.ops[at as usize];
            if op.kind.is_pure(self.boxed.solo[at as usize])
                && ledger.step(&self.core, op) == [Some(self.core), None]
            {
                self.choices.truncate(level);
                self.choices.push(Choice { op: at, core: self.core, used: Vec::new() });
                return Some(());
            }
            if self.boxed.maybes.is_empty() {
                for core in ledger.step(&self.core, op).into_iter().flatten() {
                    if self.leaves_a_way(op, &core) {
                        self.choices.push(Choice { op: at, core, used: Vec::new() });
                    }
                }
                continue;
            }
            for way in ledger.ways(&self.core, op, &self.boxed.maybes, &free, before, steps)? {
                if self.leaves_a_way(op, &way.core) {
                    self.choices.push(Choice { op: at, core: way.core, used: way.used });
                }
            }
        }
        let ops = &self.boxed.ops;
        self.choices[level..].sort_by_key(|choice| {
            let answered = ops[choice.op as usize].answered.order;
            std::cmp::Reverse((choice.used.len(), answered))
        });
        Some(())
    }

    /// Whether what must still come can come after `op` led to `after`: what other calls show must not
    /// be gone, and what other calls end or prolong must be held.
    fn leaves_a_way(&self, op: &Op, after: &Core) -> bool {
        let gone = self.core.gone as usize..after.gone as usize;
        let shown = self.shows.get(gone).is_some_and(|shows| shows.iter().any(|count| *count > 0));
        let held = self.core.lease.and_then(|held| held.id);
        let ended = held.filter(|id| after.lease.and_then(|held| held.id) != Some(*id));
        let needed = ended.is_some_and(|id| {
            let itself = u32::from(op.kind.needs() == Some(id));
            self.needs[id as usize] > itself
        });
        !shown && !needed
    }

    /// Notes whether `op` has yet to come.
    fn ahead(&mut self, op: u32, is_ahead: bool) {
        let kind = self.boxed.ops[op as usize].kind;
        if let Some(count) = kind.shows_from().and_then(|from| self.shows.get_mut(from as usize)) {
            *count = if is_ahead { *count + 1 } else { *count - 1 };
        }
        if let Some(count) = kind.needs().and_then(|lease| self.needs.get_mut(lease as usize)) {
            *count = if is_ahead { *count + 1 } else { *count - 1 };
        }
    }

    /// Collects the ops that may come next; answers before when they were all sent.
    fn collect(&mut self) -> u64 {
        self.candidates.clear();
        let (mut at, end, mut before) = (self.first(), self.end(), u64::MAX);
        while at != end {
            let op = &self.boxed.ops[at as usize];
            if op.sent.order >= before {
                break;
            }
            before = before.min(op.answered.order);
            self.candidates.push(at);
            at = self.next[at as usize];
        }
        before
    }

    fn advance(&mut self, choice: Choice, level: usize) {
        let Choice { op, core, used } = choice;
        let (before, after) = (self.previous[op as usize], self.next[op as usize]);
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
        self.done[op as usize / 64] |= 1 << (op % 64);
        for at in &used {
            self.used_at[*at as usize] = true;
        }
        self.frames.push(Frame {
            op,
            before: self.core,
            choices: level,
            used: used.len(),
            top: self.top,
        });
        self.used.extend(used);
        self.core = core;
        self.top = self.top.max(op);
        self.boxed.ledger.happened(&self.boxed.ops[op as usize]);
        self.ahead(op, false);
    }

    /// Takes the last step back; answers where its other choices begin.
    fn back(&mut self) -> Option<usize> {
        let frame = self.frames.pop()?;
        let op = frame.op;
        let (before, after) = (self.previous[op as usize], self.next[op as usize]);
        self.next[before as usize] = op;
        self.previous[after as usize] = op;
        self.done[op as usize / 64] &= !(1 << (op % 64));
        for at in self.used.drain(self.used.len() - frame.used..) {
            self.used_at[at as usize] = false;
        }
        self.core = frame.before;
        self.top = frame.top;
        self.boxed.ledger.unhappened(&self.boxed.ops[op as usize]);
        self.ahead(op, true);
        Some(frame.choices)
    }

    fn key(&self) -> Failed {
        let base = self.first();
        let words = base as usize / 64..(self.top as usize / 64 + 1).max(base as usize / 64);
        let mut used = self.used.clone();
        used.sort_unstable();
        let done = self.done.get(words).unwrap_or_default();
        Failed { base, done: done.into(), used: used.into(), core: self.core }
    }

    fn remember(&mut self) {
        let key = self.key();
        self.failed.insert(key);
    }

    /// Keeps the present order if it is the longest so far.
    fn note_stuck(&mut self) {
        let taken = self.frames.len() + self.used.len();
        if self.stuck.as_ref().is_some_and(|stuck| stuck.order.len() >= taken) {
            return;
        }
        self.collect();
        let ops = &self.boxed.ops;
        let first = self.candidates.iter().min_by_key(|at| ops[**at as usize].answered.order);
        let Some(&next) = first else { return };
        let mut used = self.used.iter();
        let mut order = Vec::with_capacity(taken);
        for frame in &self.frames {
            let helpers = used.by_ref().take(frame.used);
            order.extend(helpers.map(|at| self.boxed.maybe_calls[*at as usize]));
            order.push(self.boxed.calls[frame.op as usize]);
        }
        self.stuck = Some(Stuck { order, next: self.boxed.calls[next as usize] });
    }
}

impl Kind {
    /// The place in the ledger from which on it shows messages.
    fn shows_from(&self) -> Option<u32> {
        if let Self::Delivery { from, len, .. } | Self::Peeked { from, len } = *self
            && len > 0
        {
            return Some(from);
        }
        None
    }

    /// The lease without which it cannot come.
    fn needs(&self) -> Option<u32> {
        if let Self::Released { lease, .. } | Self::Renewed { lease, .. } = *self {
            return Some(lease);
        }
        if let Self::Acked { lease, count: 1.., .. } = *self { Some(lease) } else { None }
    }

    /// Whether the op, where it changes nothing now, never changes anything: then it may come at once.
    fn is_pure(&self, solo: bool) -> bool {
        match self {
            Self::Refused { .. } | Self::Peeked { .. } | Self::Nothing => true,
            Self::Null { .. } => solo,
            Self::Acked { count, .. } => *count == 0,
            Self::Append { .. }
            | Self::Delivery { .. }
            | Self::Released { .. }
            | Self::Renewed { .. }
            | Self::Dropped { .. }
            | Self::Impossible
            | Self::Maybe(_) => false,
        }
    }
}
