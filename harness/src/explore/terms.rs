//! By what a subject is asked and judged: its clock, its granularity, and what it declares.

use super::script::{Act, Span};
use storeproof_contract::backend::{Clock, Manifest};
use storeproof_contract::mailbox::history::Rules;

/// The shortest lifetime that is ever asked for, in times the granularity.
const TTL_GRAINS_MIN: u64 = 3;

/// What of a subject's declaration decides how a script is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Which clock judges leases.
    pub clock: Clock,
    /// How coarse it is, in milliseconds.
    pub granularity_ms: u64,
    /// `mailbox/peek` is declared.
    pub peek: bool,
    /// `mailbox/release` is declared.
    pub release: bool,
    /// `mailbox/renew` is declared.
    pub renew: bool,
    /// Storages outlive the handle.
    pub durable: bool,
    /// Several processes may share a storage.
    pub cross_process: bool,
    /// One process takes several calls at once.
    pub concurrent: bool,
}

impl Terms {
    /// What `manifest` declares.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Self {
        let caps = &manifest.capabilities;
        Self {
            clock: caps.clock,
            granularity_ms: manifest.limits.lease_granularity_ms.unwrap_or(1).max(1),
            peek: caps.peek,
            release: caps.release,
            renew: caps.renew,
            durable: caps.durable,
            cross_process: caps.cross_process_safe,
            concurrent: caps.concurrent,
        }
    }

    /// By what its histories are judged.
    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules::new(self.clock, self.granularity_ms)
    }

    /// How long a span is here, in milliseconds; at least three times the granularity, so that what it
    /// says of a lease can be judged. On the caller's clock they are free, and no round numbers.
    #[must_use]
    pub fn ms(&self, span: Span) -> u64 {
        let (caller_ms, wall_ms) = match span {
            Span::Brief => (321, 150),
            Span::Short => (61_234, 400),
            Span::Middle => (1_234_567, 1_500),
            Span::Long => (7_234_567, 3_600_000),
            Span::Day => (90_061_234, 90_061_234),
        };
        let ms = match self.clock {
            Clock::Caller => caller_ms,
            Clock::Wall => wall_ms,
        };
        ms.max(TTL_GRAINS_MIN * self.granularity_ms)
    }

    /// To when a lease surely lives that was taken between the two moments, and from when it is surely
    /// over: the rule about time of `mailbox/lease.rs`.
    #[must_use]
    pub fn lifetime(&self, sent_ms: u64, answered_ms: u64, ttl_ms: u64) -> (u64, u64) {
        let g = self.granularity_ms;
        let (first, last) = (sent_ms + ttl_ms, answered_ms + ttl_ms);
        match self.clock {
            Clock::Caller => (first.saturating_sub(g), last + g - 1),
            Clock::Wall => (first.saturating_sub(g + 1), last + g + 1),
        }
    }

    /// The capability without which a step cannot be asked here.
    #[must_use]
    pub fn lacks(&self, act: &Act) -> Option<&'static str> {
        let (has, word) = match act {
            Act::Peek { .. } => (self.peek, "peek"),
            Act::Release { .. } => (self.release, "release"),
            Act::Renew { .. } => (self.renew, "renew"),
            Act::Reopen => (self.durable, "durable"),
            Act::Append { .. }
            | Act::Claim { .. }
            | Act::Ack { .. }
            | Act::Drop { .. }
            | Act::Reap
            | Act::Drain { .. }
            | Act::Wait { .. } => (true, ""),
        };
        (!has).then_some(word)
    }
}
