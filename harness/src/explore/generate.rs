//! Draws scripts. Each case has its own mood: which calls come often, rarely or never, how long leases
//! live, how many boxes, owners and processes there are. A light picture of the boxes leads the draw to
//! where stores go wrong: into a live lease, past its end, to an ack that is too late or not one's own.

use super::script::{Act, LeaseRef, Script, SeqRef, Span, Step, StepId, Until};
use super::terms::Terms;
use fastrand::Rng;
use storeproof_contract::backend::Clock;

mod motifs;

/// Names of boxes: some begin like others.
const BOXES: [&str; 8] =
    ["inbox", "in", "a", "a1", "a2", "b", "abcdefghijklmnop", "abcdefghijklmno"];
/// Names of owners, likewise.
const OWNERS: [&str; 4] = ["ann", "anna", "bob", "cy"];
/// Bodies of which a store may make something else.
const BODIES: [&str; 8] = [
    "same",
    "same",
    " blanks around ",
    "null",
    "12345678901234567890",
    "{\"a\":1}",
    "2024-01-01T00:00:00Z",
    "it's 100% \"quoted\" \\ $1 ?",
];
/// The most milliseconds that one case waits for the wall clock.
const WALL_WAIT_MS_MAX: u64 = 2_500;
/// One case in so many is concurrent, where that can be.
const CONCURRENT_ONE_IN: u32 = 3;
/// One case in so many fills a box deep.
const DEEP_ONE_IN: u32 = 6;

/// What may be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// What the subject declares.
    pub terms: Terms,
    /// Whether one process alone may be asked, call by call.
    pub single: bool,
    /// Whether calls may overlap and, where the subject declares it, go to several processes.
    pub several: bool,
}

impl Scope {
    /// Whether calls may overlap.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        self.several && (self.terms.cross_process || self.terms.concurrent)
    }
}

/// A kind of step, as the mood weighs it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Append,
    Claim,
    Ack,
    Release,
    Renew,
    Peek,
    Drop,
    Reap,
    Drain,
    Wait,
    Reopen,
    Motif,
}

/// Each kind with how often it usually comes.
const KINDS: [(Kind, u32); 12] = [
    (Kind::Append, 9),
    (Kind::Claim, 9),
    (Kind::Ack, 9),
    (Kind::Release, 3),
    (Kind::Renew, 3),
    (Kind::Peek, 2),
    (Kind::Drop, 2),
    (Kind::Reap, 2),
    (Kind::Drain, 1),
    (Kind::Wait, 5),
    (Kind::Reopen, 2),
    (Kind::Motif, 4),
];

/// A box as the draw pictures it.
#[derive(Clone, Default)]
struct Picture {
    waiting: u32,
    appends: Vec<StepId>,
    held: Option<Lease>,
    /// Leases that ended, however.
    past: Vec<Lease>,
}

#[derive(Clone)]
struct Lease {
    claim: StepId,
    owner: usize,
    delivered: u32,
    ends_ms: u64,
}

/// Draws the script of one case.
#[must_use]
pub fn script(rng: &mut Rng, scope: &Scope) -> Script {
    let mut draw = Draw::new(rng, scope);
    let most = [6, 14, 30][draw.rng.usize(..3)];
    let steps = 3 + draw.rng.usize(..most);
    let concurrent = scope.overlaps() && draw.rng.u32(..CONCURRENT_ONE_IN) == 0;
    if !concurrent {
        for _ in 0..steps {
            draw.step(0);
        }
        if draw.rng.bool() {
            draw.drain_all();
        }
        return Script { steps: draw.steps };
    }
    for _ in 0..draw.rng.usize(..6) {
        draw.step(0);
    }
    for _ in 0..=draw.rng.usize(..2) {
        draw.race();
    }
    draw.drain_all();
    Script { steps: draw.steps }
}

struct Draw<'r> {
    rng: &'r mut Rng,
    terms: Terms,
    weights: Vec<(Kind, u32)>,
    boxes: Vec<&'static str>,
    owners: Vec<&'static str>,
    processes: u8,
    spans: Vec<Span>,
    deep: bool,
    odd_bodies: bool,
    capped: bool,
    pictures: Vec<Picture>,
    steps: Vec<Step>,
    now_ms: u64,
    waited_ms: u64,
}

impl<'r> Draw<'r> {
    fn new(rng: &'r mut Rng, scope: &Scope) -> Self {
        let terms = scope.terms;
        let mut weights = Vec::new();
        for (kind, usual) in KINDS {
            let mood = if matches!(kind, Kind::Append | Kind::Claim) { 1 } else { 0 };
            let mood = [mood, 1, 1, 4][rng.usize(..4)];
            let served = match kind {
                Kind::Release => terms.release,
                Kind::Renew => terms.renew,
                Kind::Peek => terms.peek,
                Kind::Reopen => terms.durable,
                Kind::Append
                | Kind::Claim
                | Kind::Ack
                | Kind::Drop
                | Kind::Reap
                | Kind::Drain
                | Kind::Wait
                | Kind::Motif => true,
            };
            weights.push((kind, if served { usual * mood } else { 0 }));
        }
        let boxes = some_of(rng, &BOXES, 1, 3);
        let owners = some_of(rng, &OWNERS, 2, 3);
        let several = scope.several && terms.cross_process && (rng.bool() || !scope.single);
        let processes = if several { 2 + rng.u8(..2) } else { 1 };
        let mut spans = match terms.clock {
            Clock::Caller => some_of(
                rng,
                &[Span::Brief, Span::Short, Span::Short, Span::Middle, Span::Long],
                1,
                3,
            ),
            Clock::Wall => some_of(rng, &[Span::Brief, Span::Short, Span::Long], 1, 2),
        };
        spans.dedup();
        Self {
            terms,
            weights,
            pictures: vec![Picture::default(); boxes.len()],
            boxes,
            owners,
            processes,
            spans,
            deep: rng.u32(..DEEP_ONE_IN) == 0,
            odd_bodies: rng.u32(..3) == 0,
            capped: rng.bool(),
            steps: Vec::new(),
            now_ms: 0,
            waited_ms: 0,
            rng,
        }
    }

    fn push(&mut self, lane: u8, process: u8, act: Act) -> StepId {
        let id = StepId::try_from(self.steps.len()).unwrap_or(StepId::MAX) + 1;
        self.steps.push(Step { id, lane, process, act });
        id
    }

    fn process(&mut self) -> u8 {
        self.rng.u8(..self.processes)
    }

    fn span(&mut self) -> Span {
        self.spans[self.rng.usize(..self.spans.len())]
    }

    fn owner(&mut self) -> usize {
        self.rng.usize(..self.owners.len())
    }

    /// A box, with a liking for one that `fits`.
    fn a_box(&mut self, fits: impl Fn(&Picture) -> bool) -> usize {
        let fitting: Vec<usize> =
            (0..self.pictures.len()).filter(|at| fits(&self.pictures[*at])).collect();
        if fitting.is_empty() || self.rng.u32(..5) == 0 {
            return self.rng.usize(..self.pictures.len());
        }
        fitting[self.rng.usize(..fitting.len())]
    }

    fn step(&mut self, lane: u8) {
        let process = self.process();
        self.step_in(lane, process);
    }

    fn step_in(&mut self, lane: u8, process: u8) {
        let racing = lane > 0;
        let fits =
            |kind: &Kind| !racing || !matches!(kind, Kind::Wait | Kind::Reopen | Kind::Drain);
        let all: u32 = self.weights.iter().filter(|(k, _)| fits(k)).map(|(_, w)| w).sum();
        let mut drawn = self.rng.u32(..all.max(1));
        let mut kind = Kind::Append;
        for (this, weight) in self.weights.iter().filter(|(k, _)| fits(k)) {
            kind = *this;
            if drawn < *weight {
                break;
            }
            drawn -= weight;
        }
        match kind {
            Kind::Append => self.append(lane, process),
            Kind::Claim => self.claim(lane, process),
            Kind::Ack => self.ack(lane, process),
            Kind::Release => self.release(lane, process),
            Kind::Renew => self.renew(lane, process),
            Kind::Peek => {
                let of = self.a_box(|b| b.waiting > 0);
                self.push(lane, process, Act::Peek { of: self.boxes[of].to_owned() });
            }
            Kind::Drop => self.drop_box(lane, process),
            Kind::Reap => {
                self.push(lane, process, Act::Reap);
            }
            Kind::Drain => {
                let of = self.a_box(|b| b.waiting > 0 && b.held.is_none());
                self.drain(of, process);
            }
            Kind::Wait => self.wait(),
            Kind::Reopen => {
                self.push(lane, process, Act::Reopen);
            }
            Kind::Motif => self.motif(),
        }
    }

    fn append(&mut self, lane: u8, process: u8) {
        let at = self.rng.usize(..self.boxes.len());
        let times = match (self.deep && lane == 0, self.rng.u32(..4)) {
            (true, 0) => 1 + self.rng.u32(..120),
            (_, 1) => 2 + self.rng.u32(..4),
            (true | false, _) => 1,
        };
        let body = match (self.odd_bodies, self.rng.u32(..4)) {
            (true, 0) => "x".repeat(1001 + self.rng.usize(..20)),
            (true, 1 | 2) => BODIES[self.rng.usize(..BODIES.len())].to_owned(),
            (true | false, _) => format!("m{}", self.steps.len() + 1),
        };
        let of = self.boxes[at].to_owned();
        let id = self.push(lane, process, Act::Append { of, body, times });
        self.pictures[at].waiting += times;
        self.pictures[at].appends.push(id);
    }

    fn claim(&mut self, lane: u8, process: u8) {
        let at = self.a_box(|b| b.waiting > 0);
        let live = self.pictures[at].held.clone().filter(|held| self.now_ms < held.ends_ms);
        let owner = match &live {
            Some(held) if self.rng.u32(..4) == 0 => held.owner,
            Some(_) | None => self.owner(),
        };
        let max = match (self.capped, self.rng.u32(..3)) {
            (true, 0) => Some(1 + self.rng.u64(..3)),
            (true, 1) if self.rng.u32(..4) == 0 => Some(1 << self.rng.u32(20..52)),
            (true | false, _) => None,
        };
        let ttl = self.span();
        let (of, who) = (self.boxes[at].to_owned(), self.owners[owner].to_owned());
        let claim = self.push(lane, process, Act::Claim { of, owner: who, ttl, max });
        let ends_ms = self.now_ms + self.terms.ms(ttl);
        let picture = &mut self.pictures[at];
        if picture.waiting == 0 || live.is_some() {
            return;
        }
        let most = max.and_then(|max| u32::try_from(max).ok()).unwrap_or(u32::MAX);
        let delivered = picture.waiting.min(most);
        if let Some(before) = picture.held.replace(Lease { claim, owner, delivered, ends_ms }) {
            picture.past.push(before);
        }
    }

    /// A lease to use, with the place of its box and who is to use it: the live one by its holder most
    /// of the time, else one that is over, somebody else's, another box's, or none at all.
    fn a_lease(&mut self) -> (usize, usize, LeaseRef, StepId) {
        let at = self.a_box(|b| b.held.is_some());
        let held = self.pictures[at].held.clone();
        let past = &self.pictures[at].past;
        let over = (!past.is_empty()).then(|| past[self.rng.usize(..past.len())].clone());
        let stranger = self.owner();
        match (self.rng.u32(..12), held, over) {
            (0..=5, Some(held), _) | (6 | 7, Some(held), None) => {
                (at, held.owner, LeaseRef::Of(held.claim), held.claim)
            }
            (6 | 7, _, Some(over)) | (0..=5, None, Some(over)) => {
                (at, over.owner, LeaseRef::Of(over.claim), over.claim)
            }
            (8, Some(held), _) => (at, stranger, LeaseRef::Of(held.claim), held.claim),
            (9, Some(held), _) => {
                let other = self.rng.usize(..self.boxes.len());
                (other, held.owner, LeaseRef::Of(held.claim), held.claim)
            }
            (10, Some(held), _) => (at, held.owner, self.false_lease(held.claim), held.claim),
            (_, _, Some(over)) => {
                let owner = if self.rng.bool() { over.owner } else { stranger };
                (at, owner, LeaseRef::Of(over.claim), over.claim)
            }
            (_, held, None) => {
                (at, stranger, LeaseRef::Invented, held.map_or(0, |held| held.claim))
            }
        }
    }

    /// A lease that nobody was given, or one that looks like the one of `claim`.
    fn false_lease(&mut self, claim: StepId) -> LeaseRef {
        let like = [
            LeaseRef::Invented,
            LeaseRef::BeginningOf(claim),
            LeaseRef::LongerThan(claim),
            LeaseRef::OtherCaseOf(claim),
        ];
        like[self.rng.usize(..like.len())]
    }

    fn ack(&mut self, lane: u8, process: u8) {
        let (at, owner, lease, claim) = self.a_lease();
        let delivered = self.pictures[at].held.as_ref().map_or(1, |held| held.delivered);
        let appends = &self.pictures[at].appends;
        let earlier = (!appends.is_empty()).then(|| appends[self.rng.usize(..appends.len())]);
        let up_to = match (self.rng.u32(..10), earlier) {
            (0..=3, _) => SeqRef::LastOf(claim),
            (4..=6, _) => SeqRef::NthOf(claim, self.rng.u32(..delivered.clamp(1, 8))),
            (7, _) if self.rng.bool() => SeqRef::Beyond,
            (7, _) => SeqRef::BelowNth(claim, self.rng.u32(..delivered.clamp(1, 8))),
            (_, Some(append)) => SeqRef::OfAppend(append),
            (_, None) => SeqRef::LastOf(claim),
        };
        let (of, who) = (self.boxes[at].to_owned(), self.owners[owner].to_owned());
        self.push(lane, process, Act::Ack { of, owner: who, lease, up_to });
        let now_ms = self.now_ms;
        let picture = &mut self.pictures[at];
        let good = |held: &mut Lease| {
            LeaseRef::Of(held.claim) == lease && held.owner == owner && now_ms < held.ends_ms
        };
        if let Some(held) = picture.held.take_if(good) {
            let gone = match up_to {
                SeqRef::NthOf(_, n) => held.delivered.min(n + 1),
                SeqRef::BelowNth(_, n) => held.delivered.min(n),
                SeqRef::LastOf(_) | SeqRef::Beyond | SeqRef::OfAppend(_) => held.delivered,
            };
            picture.waiting -= gone.min(picture.waiting);
            picture.past.push(held);
        }
    }

    fn release(&mut self, lane: u8, process: u8) {
        let (at, owner, lease, _) = self.a_lease();
        let (of, who) = (self.boxes[at].to_owned(), self.owners[owner].to_owned());
        self.push(lane, process, Act::Release { of, owner: who, lease });
        let now_ms = self.now_ms;
        let picture = &mut self.pictures[at];
        let good = |held: &mut Lease| {
            LeaseRef::Of(held.claim) == lease && held.owner == owner && now_ms < held.ends_ms
        };
        if let Some(held) = picture.held.take_if(good) {
            picture.past.push(held);
        }
    }

    fn renew(&mut self, lane: u8, process: u8) {
        let (at, owner, lease, _) = self.a_lease();
        let ttl = self.span();
        let (of, who) = (self.boxes[at].to_owned(), self.owners[owner].to_owned());
        self.push(lane, process, Act::Renew { of, owner: who, lease, ttl });
        let (now_ms, ends_ms) = (self.now_ms, self.now_ms + self.terms.ms(ttl));
        if let Some(held) = self.pictures[at].held.as_mut()
            && LeaseRef::Of(held.claim) == lease
            && held.owner == owner
            && now_ms < held.ends_ms
        {
            held.ends_ms = ends_ms;
        }
    }

    fn drop_box(&mut self, lane: u8, process: u8) {
        let at = self.a_box(|b| b.held.is_some());
        self.push(lane, process, Act::Drop { of: self.boxes[at].to_owned() });
        let picture = &mut self.pictures[at];
        picture.waiting = 0;
        picture.past.extend(picture.held.take());
    }

    fn drain(&mut self, at: usize, process: u8) {
        let owner = self.owner();
        let max = match (self.capped, self.rng.bool()) {
            (true, true) => Some(1 + self.rng.u64(..3)),
            (true | false, _) => None,
        };
        let (of, owner) = (self.boxes[at].to_owned(), self.owners[owner].to_owned());
        self.push(0, process, Act::Drain { of, owner, max });
        let picture = &mut self.pictures[at];
        if picture.held.as_ref().is_none_or(|held| self.now_ms >= held.ends_ms) {
            picture.waiting = 0;
            picture.past.extend(picture.held.take());
        }
    }

    fn wait(&mut self) {
        let at = self.a_box(|b| b.held.is_some());
        let held = self.pictures[at].held.clone();
        let (until, until_ms) = match (self.rng.u32(..8), held) {
            (0..=4, Some(held)) => (Until::Past(held.claim), held.ends_ms),
            (5 | 6, Some(held)) => (Until::JustBefore(held.claim), held.ends_ms.saturating_sub(1)),
            _ => {
                let spans: &[Span] = match self.terms.clock {
                    Clock::Caller => &[Span::Brief, Span::Short, Span::Middle, Span::Day],
                    Clock::Wall => &[Span::Brief, Span::Short],
                };
                let span = spans[self.rng.usize(..spans.len())];
                (Until::In(span), self.now_ms + self.terms.ms(span))
            }
        };
        self.wait_until(until, until_ms);
    }

    fn wait_until(&mut self, until: Until, until_ms: u64) {
        let takes_ms = until_ms.saturating_sub(self.now_ms);
        if self.terms.clock == Clock::Wall && self.waited_ms + takes_ms > WALL_WAIT_MS_MAX {
            return;
        }
        self.waited_ms += takes_ms;
        self.now_ms += takes_ms;
        let process = self.process();
        self.push(0, process, Act::Wait { until });
    }

    /// Two to four workers side by side.
    fn race(&mut self) {
        let lanes = 2 + self.rng.u8(..3);
        let mut turns = Vec::new();
        for lane in 1..=lanes {
            let process = if self.processes > 1 { (lane - 1) % self.processes } else { 0 };
            turns.extend(vec![(lane, process); 2 + self.rng.usize(..6)]);
        }
        self.rng.shuffle(&mut turns);
        for (lane, process) in turns {
            self.step_in(lane, process);
        }
    }

    /// Looks at what is left, once no lease can live any more.
    fn drain_all(&mut self) {
        let span = match self.terms.clock {
            Clock::Caller => Span::Day,
            Clock::Wall => Span::Short,
        };
        let ms = self.terms.ms(span);
        if self.terms.clock == Clock::Caller || self.waited_ms + ms <= WALL_WAIT_MS_MAX {
            self.push(0, 0, Act::Wait { until: Until::In(span) });
            self.now_ms += ms;
        }
        for at in 0..self.boxes.len() {
            let process = self.process();
            self.drain(at, process);
        }
    }
}

/// `least` to `most` different ones of `all`, in their order.
fn some_of<T: Copy>(rng: &mut Rng, all: &[T], least: usize, most: usize) -> Vec<T> {
    let count = rng.usize(least..=most).min(all.len());
    let mut places: Vec<usize> = (0..all.len()).collect();
    rng.shuffle(&mut places);
    let mut chosen: Vec<usize> = places.into_iter().take(count).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|place| all[place]).collect()
}
