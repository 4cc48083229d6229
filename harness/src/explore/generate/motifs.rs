//! Motifs: short courses that lead to where stores go wrong. They are no tests: the steps around them
//! are drawn, and what they are answered is judged like everything else.

use super::{Act, Draw, Lease, LeaseRef, SeqRef, Span, StepId, Until};

/// The most claims in vain of one polling.
const POLLS_MAX: u32 = 6;

/// What a motif is about.
#[derive(Clone, Copy)]
enum Motif {
    /// Somebody else claims again and again.
    Polling,
    /// The end of a lease, from both sides.
    End,
    /// Mail that waited longer than the lease that it comes under.
    Aged,
    /// A lease from before a drop.
    Dropped,
    /// A lease that was renewed, once or again.
    Renewed,
    /// A live lease beside which something happens that must not touch it.
    Touched,
    /// An ack that removes nothing.
    Below,
    /// An expired lease that somebody else's has overtaken.
    Overtaken,
    /// Leases on two boxes, of which one has ended.
    Two,
}

const MOTIFS: [Motif; 9] = [
    Motif::Polling,
    Motif::End,
    Motif::Aged,
    Motif::Dropped,
    Motif::Renewed,
    Motif::Touched,
    Motif::Below,
    Motif::Overtaken,
    Motif::Two,
];

impl Draw<'_> {
    /// One motif, on a box of its own choice.
    pub(super) fn motif(&mut self) {
        let at = self.rng.usize(..self.boxes.len());
        match MOTIFS[self.rng.usize(..MOTIFS.len())] {
            Motif::Polling => {
                let held = self.held(at);
                let other = self.other_than(held.owner);
                for _ in 0..self.rng.u32(3..=POLLS_MAX) {
                    self.claim_as(at, other, Span::Short);
                }
                self.look_at_the_end(at, &held);
            }
            Motif::End => {
                let held = self.held(at);
                self.look_at_the_end(at, &held);
            }
            Motif::Aged => {
                self.append_to(at);
                let span = self.longer();
                self.wait_until(Until::In(span), self.now_ms + self.terms.ms(span));
                let held = self.held(at);
                self.maybe_reap();
                let other = self.other_than(held.owner);
                self.claim_as(at, other, Span::Short);
            }
            Motif::Dropped => {
                let held = self.held(at);
                let process = self.process();
                self.push(0, process, Act::Drop { of: self.boxes[at].to_owned() });
                self.pictures[at].waiting = 0;
                let before = self.pictures[at].held.take();
                self.pictures[at].past.extend(before);
                let id = self.append_to(at);
                let up_to = if self.rng.bool() { SeqRef::Beyond } else { SeqRef::OfAppend(id) };
                self.ack_as(at, held.owner, held.claim, up_to);
                self.maybe_reopen();
                let owner = self.owner();
                self.claim_as(at, owner, Span::Short);
            }
            Motif::Renewed => self.renewed(at),
            Motif::Touched => self.touched(at),
            Motif::Below => {
                let first = self.append_to(at);
                self.append_to(at);
                let held = self.held(at);
                self.ack_as(at, held.owner, held.claim, SeqRef::NthOf(held.claim, 0));
                let held = self.held(at);
                self.ack_as(at, held.owner, held.claim, SeqRef::OfAppend(first));
                let owner = self.owner();
                self.claim_as(at, owner, Span::Short);
            }
            Motif::Overtaken => {
                let before = self.held(at);
                self.wait_until(Until::Past(before.claim), before.ends_ms);
                let held = self.held(at);
                self.use_lease(at, before.owner, before.claim);
                self.look_at_the_end(at, &held);
            }
            Motif::Two => {
                let other = self.rng.usize(..self.boxes.len());
                let (one, two) = (self.held(at), self.held(other));
                let (first, last, of) =
                    if one.ends_ms < two.ends_ms { (one, two, other) } else { (two, one, at) };
                self.wait_until(Until::Past(first.claim), first.ends_ms);
                self.maybe_reap();
                let stranger = self.other_than(last.owner);
                self.claim_as(of, stranger, Span::Short);
            }
        }
    }

    /// Renews a lease once or again, to end later or sooner, and looks at both ends.
    fn renewed(&mut self, at: usize) {
        if !self.terms.renew {
            return;
        }
        let mut held = self.held(at);
        for _ in 0..=self.rng.usize(..2) {
            let ttl = if self.rng.bool() { self.longer() } else { Span::Short };
            let (of, process) = (self.boxes[at].to_owned(), self.process());
            let (owner, lease) = (self.owners[held.owner].to_owned(), LeaseRef::Of(held.claim));
            self.push(0, process, Act::Renew { of, owner, lease, ttl });
            held.ends_ms = self.now_ms + self.terms.ms(ttl);
        }
        self.pictures[at].held = Some(held.clone());
        self.maybe_reopen();
        if self.rng.bool() {
            // Where the lease would have ended without the renewal.
            self.wait_until(Until::JustBefore(held.claim), held.ends_ms.saturating_sub(1));
            self.maybe_reap();
        }
        self.look_at_the_end(at, &held);
    }

    /// Lets something happen beside a live lease, and looks whether it lives on and ends in time.
    fn touched(&mut self, at: usize) {
        let held = self.held(at);
        let stranger = self.other_than(held.owner);
        let (of, process) = (self.boxes[at].to_owned(), self.process());
        match self.rng.u32(..8) {
            0 => self.use_lease(at, stranger, held.claim),
            1 => {
                self.append_to(at);
            }
            2 if self.terms.peek => {
                self.push(0, process, Act::Peek { of });
            }
            3 => {
                self.push(0, process, Act::Reap);
            }
            4 => {
                let other = self.rng.usize(..self.boxes.len());
                if other != at {
                    let of = self.boxes[other].to_owned();
                    self.push(0, process, Act::Drop { of });
                    self.pictures[other].waiting = 0;
                }
            }
            5 => self.maybe_reopen(),
            6 => self.claim_as(at, held.owner, Span::Short),
            _ => {
                let past = &self.pictures[at].past;
                if let Some(over) = past.last().cloned() {
                    self.use_lease(at, over.owner, over.claim);
                }
            }
        }
        if self.rng.bool() {
            self.claim_as(at, stranger, Span::Short);
        }
        self.look_at_the_end(at, &held);
    }

    /// Acks, releases or renews with that lease.
    fn use_lease(&mut self, at: usize, owner: usize, claim: StepId) {
        let (of, who) = (self.boxes[at].to_owned(), self.owners[owner].to_owned());
        let (process, lease) = (self.process(), LeaseRef::Of(claim));
        match self.rng.u32(..3) {
            0 if self.terms.release => {
                self.push(0, process, Act::Release { of, owner: who, lease });
            }
            1 if self.terms.renew => {
                let ttl = self.span();
                self.push(0, process, Act::Renew { of, owner: who, lease, ttl });
            }
            _ => self.ack_as(at, owner, claim, SeqRef::LastOf(claim)),
        }
    }

    /// Another claims just before the end of the lease, and just behind it; or the holder tries to ack.
    fn look_at_the_end(&mut self, at: usize, held: &Lease) {
        let other = self.other_than(held.owner);
        if self.rng.bool() {
            self.wait_until(Until::JustBefore(held.claim), held.ends_ms.saturating_sub(1));
            if self.rng.u32(..3) == 0 {
                self.ack_as(at, held.owner, held.claim, SeqRef::LastOf(held.claim));
                return;
            }
            self.claim_as(at, other, Span::Short);
        }
        if self.rng.bool() {
            self.wait_until(Until::Past(held.claim), held.ends_ms);
            self.maybe_reap();
            if self.rng.u32(..3) == 0 {
                self.use_lease(at, held.owner, held.claim);
            }
            self.claim_as(at, other, Span::Short);
        }
    }

    /// A lease on that box: the one that lives there, or a new one on something to deliver.
    fn held(&mut self, at: usize) -> Lease {
        let live = self.pictures[at].held.clone().filter(|held| self.now_ms < held.ends_ms);
        if let Some(held) = live {
            return held;
        }
        if self.pictures[at].waiting == 0 || self.rng.bool() {
            self.append_to(at);
        }
        let (owner, ttl) = (self.owner(), self.span());
        self.claim_as(at, owner, ttl);
        let ends_ms = self.now_ms + self.terms.ms(ttl);
        let claim = StepId::try_from(self.steps.len()).unwrap_or(StepId::MAX);
        let delivered = self.pictures[at].waiting;
        let held = Lease { claim, owner, delivered, ends_ms };
        let before = self.pictures[at].held.replace(held.clone());
        self.pictures[at].past.extend(before);
        held
    }

    fn append_to(&mut self, at: usize) -> StepId {
        let (of, process) = (self.boxes[at].to_owned(), self.process());
        let body = format!("m{}", self.steps.len() + 1);
        let id = self.push(0, process, Act::Append { of, body, times: 1 });
        self.pictures[at].waiting += 1;
        self.pictures[at].appends.push(id);
        id
    }

    fn claim_as(&mut self, at: usize, owner: usize, ttl: Span) {
        let (of, process) = (self.boxes[at].to_owned(), self.process());
        let owner = self.owners[owner].to_owned();
        self.push(0, process, Act::Claim { of, owner, ttl, max: None });
    }

    fn ack_as(&mut self, at: usize, owner: usize, claim: StepId, up_to: SeqRef) {
        let (of, process) = (self.boxes[at].to_owned(), self.process());
        let owner = self.owners[owner].to_owned();
        self.push(0, process, Act::Ack { of, owner, lease: LeaseRef::Of(claim), up_to });
        if let Some(held) = self.pictures[at].held.take_if(|held| held.claim == claim) {
            self.pictures[at].past.push(held);
        }
    }

    fn other_than(&self, owner: usize) -> usize {
        (owner + 1) % self.owners.len()
    }

    /// A longer time than the usual lease.
    fn longer(&mut self) -> Span {
        use storeproof_contract::backend::Clock;
        match self.terms.clock {
            Clock::Caller => [Span::Middle, Span::Long, Span::Day][self.rng.usize(..3)],
            Clock::Wall => Span::Short,
        }
    }

    fn maybe_reap(&mut self) {
        if self.rng.bool() {
            let process = self.process();
            self.push(0, process, Act::Reap);
        }
    }

    fn maybe_reopen(&mut self) {
        if self.terms.durable && self.rng.bool() {
            let process = self.process();
            self.push(0, process, Act::Reopen);
        }
    }
}
