//! What can be seen without any search: each check is one pass over a box's calls, and names the few
//! calls that cannot stand together.
//!
//! Each is sound (`docs/design/0003-histories.md` says why): it speaks only where no order of the calls,
//! and nothing that an unanswered call may have done, helps. None is complete; the search is.

use super::act::{Act, Call, Got, Outcome, Rules};
use super::boxed::messages;
use super::check::Breach;
use crate::backend::Clock;
use crate::json::same;
use std::collections::{BTreeSet, HashMap};

/// Calls that cannot stand together.
pub(super) struct Evidence {
    pub breach: Breach,
    /// Their places in the history.
    pub calls: BTreeSet<usize>,
    /// The messages that matter.
    pub seqs: BTreeSet<u64>,
}

/// What one box's calls say of one lease.
#[derive(Default)]
struct LeaseUse {
    /// The claims that were given it, by the order of their sending.
    claims: Vec<usize>,
    /// Acks, releases and renewals that name it, refused ones left aside.
    others: Vec<usize>,
}

/// One owner's claims on one box, refused ones left aside.
#[derive(Default)]
struct Claims {
    /// By the order of their sending.
    places: Vec<usize>,
    /// By place: the latest answer of any claim so far.
    latest: Vec<u64>,
}

/// One box's calls, by what the checks look for.
struct Pages<'a> {
    history: &'a [Call],
    rules: &'a Rules,
    /// By the order of their sending.
    places: Vec<usize>,
    /// Where each receipt was given, the first of it.
    appends: HashMap<u64, usize>,
    /// Every receipt, ascending.
    seqs: Vec<u64>,
    leases: HashMap<&'a str, LeaseUse>,
    owners: HashMap<&'a str, Claims>,
    /// Drops, refused ones left aside.
    drops: Vec<usize>,
}

/// The first evidence of a breach among the calls of one box.
pub(super) fn breach(history: &[Call], places: &[usize], rules: &Rules) -> Option<Evidence> {
    let pages = Pages::new(history, places, rules);
    pages
        .minted()
        .or_else(|| pages.bodies())
        .or_else(|| pages.again())
        .or_else(|| pages.skipped())
        .or_else(|| pages.held_back())
        .or_else(|| pages.taken())
        .or_else(|| pages.given_again())
        .or_else(|| pages.fence())
}

/// Two claims on different boxes that were given one lease id.
pub(super) fn lease_twice(history: &[Call]) -> Option<[usize; 2]> {
    let mut given: HashMap<&str, usize> = HashMap::new();
    for (place, call) in history.iter().enumerate() {
        let Some(lease) = given_lease(call) else { continue };
        let first = *given.entry(lease).or_insert(place);
        if history[first].of != call.of {
            return Some([first, place]);
        }
    }
    None
}

impl<'a> Pages<'a> {
    fn new(history: &'a [Call], places: &[usize], rules: &'a Rules) -> Self {
        let mut places = places.to_vec();
        places.sort_by_key(|place| history[*place].sent.order);
        let mut pages = Self {
            history,
            rules,
            places: Vec::new(),
            appends: HashMap::with_capacity(places.len()),
            seqs: Vec::new(),
            leases: HashMap::new(),
            owners: HashMap::new(),
            drops: Vec::new(),
        };
        for &place in &places {
            pages.sort_in(place);
        }
        pages.places = places;
        pages.seqs = pages.appends.keys().copied().collect();
        pages.seqs.sort_unstable();
        pages
    }

    fn sort_in(&mut self, place: usize) {
        let call = &self.history[place];
        if let Some(lease) = given_lease(call) {
            self.leases.entry(lease).or_default().claims.push(place);
        }
        match (&call.act, &call.outcome) {
            (_, Outcome::Refused(_)) => {}
            (Act::Append { .. }, Outcome::Ok(Got::Seq(seq))) => {
                self.appends.entry(*seq).or_insert(place);
            }
            (Act::Ack { lease, .. } | Act::Release { lease, .. } | Act::Renew { lease, .. }, _) => {
                self.leases.entry(lease).or_default().others.push(place)
            }
            (Act::Drop, _) => self.drops.push(place),
            (Act::Claim { owner, .. }, _) => {
                let answered = call.answered.map_or(u64::MAX, |stamp| stamp.order);
                let claims = self.owners.entry(owner).or_default();
                claims.places.push(place);
                claims.latest.push(claims.latest.last().map_or(answered, |l| answered.max(*l)));
            }
            (Act::Append { .. } | Act::Peek | Act::Reap, _) => {}
        }
    }

    fn call(&self, place: usize) -> &'a Call {
        &self.history[place]
    }

    fn sent(&self, place: usize) -> u64 {
        self.call(place).sent.order
    }

    /// Beyond everything for a call without an answer.
    fn answered(&self, place: usize) -> u64 {
        self.call(place).answered.map_or(u64::MAX, |stamp| stamp.order)
    }

    /// A receipt that was given twice, or that is not above one that had been given before its append
    /// was sent.
    fn minted(&self) -> Option<Evidence> {
        let mut by_answer: Vec<(u64, u64, usize)> = Vec::with_capacity(self.appends.len());
        for &place in &self.places {
            let call = self.call(place);
            if let Outcome::Ok(Got::Seq(seq)) = call.outcome
                && matches!(call.act, Act::Append { .. })
            {
                if self.appends[&seq] != place {
                    let calls = set([self.appends[&seq], place]);
                    return Some(Evidence { breach: Breach::Minted, calls, seqs: set([seq]) });
                }
                by_answer.push((self.answered(place), seq, place));
            }
        }
        let by_sending = by_answer.clone();
        by_answer.sort_unstable();
        let mut earlier = by_answer.iter().peekable();
        let mut highest: Option<(u64, usize)> = None;
        for (_, seq, place) in by_sending {
            while let Some((_, before, at)) =
                earlier.next_if(|(answered, _, _)| *answered < self.sent(place))
            {
                highest = highest.max(Some((*before, *at)));
            }
            if let Some((before, at)) = highest.filter(|(before, _)| *before >= seq) {
                let calls = set([at, place]);
                return Some(Evidence { breach: Breach::Minted, calls, seqs: set([before, seq]) });
            }
        }
        None
    }

    /// A message with another body than was appended under its seq, or that nobody can have appended;
    /// messages that do not rise.
    fn bodies(&self) -> Option<Evidence> {
        let unanswered = |place: &&usize| {
            let call = self.call(**place);
            matches!((&call.act, &call.outcome), (Act::Append { .. }, Outcome::Unknown))
        };
        let perhaps: Vec<usize> = self.places.iter().filter(unanswered).copied().collect();
        let is_perhaps = |body| {
            perhaps.iter().any(|place| {
                matches!(&self.call(*place).act, Act::Append { body: other } if same(other, body))
            })
        };
        for &place in &self.places {
            let shown = messages(self.call(place));
            for message in shown {
                let append = self.appends.get(&message.seq);
                let right = match append.map(|at| &self.call(*at).act) {
                    Some(Act::Append { body }) => same(body, &message.body),
                    _ => is_perhaps(&message.body),
                };
                if !right {
                    let breach = if append.is_some() { Breach::Body } else { Breach::Ghost };
                    let calls = append.copied().into_iter().chain([place]).collect();
                    return Some(Evidence { breach, calls, seqs: set([message.seq]) });
                }
            }
            if let Some(pair) = shown.windows(2).find(|pair| pair[0].seq >= pair[1].seq) {
                return self.evidence(Breach::Order, [place], [pair[0].seq, pair[1].seq]);
            }
        }
        None
    }

    /// Breach, calls and messages, with the messages' appends.
    fn evidence<const C: usize, const S: usize>(
        &self,
        breach: Breach,
        calls: [usize; C],
        seqs: [u64; S],
    ) -> Option<Evidence> {
        let seqs = set(seqs);
        let mut calls = set(calls);
        for seq in &seqs {
            // An unanswered append is no evidence that the search could repeat.
            calls.insert(*self.appends.get(seq)?);
        }
        Some(Evidence { breach, calls, seqs })
    }

    /// The acks that surely removed something: each with its lease's first claim.
    fn removals(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        self.leases.values().flat_map(move |lease| {
            lease.others.iter().filter_map(move |&place| {
                let call = self.call(place);
                let (Act::Ack { up_to, .. }, Outcome::Ok(Got::Count(count))) =
                    (&call.act, &call.outcome)
                else {
                    return None;
                };
                let claim = *lease.claims.first()?;
                (*count > 0.0).then_some((claim, place, *up_to))
            })
        })
    }

    /// A message that is shown by a call sent after the ack that removed it, or the drop, was answered.
    fn again(&self) -> Option<Evidence> {
        let mut gone: HashMap<u64, (u64, usize, usize)> = HashMap::new();
        for (claim, ack, up_to) in self.removals() {
            for message in messages(self.call(claim)).iter().filter(|m| m.seq <= up_to) {
                let by = (self.answered(ack), claim, ack);
                gone.entry(message.seq).and_modify(|first| *first = (*first).min(by)).or_insert(by);
            }
        }
        let drops = self.drops_by_answer();
        let last_drop = |before: u64| {
            let count = drops.partition_point(|(answered, _)| *answered < before);
            count.checked_sub(1).map(|at| drops[at].1)
        };
        for &place in &self.places {
            let shown = messages(self.call(place));
            for message in shown {
                if let Some((answered, claim, ack)) = gone.get(&message.seq)
                    && *answered < self.sent(place)
                {
                    return self.evidence(Breach::Again, [*claim, *ack, place], [message.seq]);
                }
            }
            let Some(first) = shown.first() else { continue };
            if let (Some(drop), Some(&append)) =
                (last_drop(self.sent(place)), self.appends.get(&first.seq))
                && self.answered(append) < self.sent(drop)
            {
                return self.evidence(Breach::Dropped, [drop, place], [first.seq]);
            }
        }
        None
    }

    /// For each answer of a drop: the last-sent drop that was answered by then.
    fn drops_by_answer(&self) -> Vec<(u64, usize)> {
        let mut drops: Vec<(u64, usize)> =
            self.drops.iter().map(|place| (self.answered(*place), *place)).collect();
        drops.sort_unstable();
        let mut last = None;
        for (_, place) in &mut drops {
            let latest = last.filter(|last| self.sent(*last) > self.sent(*place));
            *place = latest.unwrap_or(*place);
            last = Some(*place);
        }
        drops
    }

    /// By seq: when the first call was sent that may have removed it.
    fn first_removals(&self) -> (Vec<u64>, u64) {
        let mut earliest = vec![u64::MAX; self.seqs.len() + 1];
        let mut anything = u64::MAX;
        for lease in self.leases.values() {
            for &place in &lease.others {
                let Act::Ack { up_to, .. } = self.call(place).act else { continue };
                let Some(claim) = lease.claims.first() else {
                    // Nobody saw what it was given.
                    anything = anything.min(self.sent(place));
                    continue;
                };
                let shown = messages(self.call(*claim));
                let Some(last) = shown.iter().map(|m| m.seq).filter(|seq| *seq <= up_to).max()
                else {
                    continue;
                };
                let count = self.seqs.partition_point(|seq| *seq <= last);
                earliest[count] = earliest[count].min(self.sent(place));
            }
        }
        for at in (1..earliest.len()).rev() {
            earliest[at - 1] = earliest[at - 1].min(earliest[at]);
        }
        let drops = self.drops.iter().map(|place| self.sent(*place));
        (earliest, drops.fold(anything, u64::min))
    }

    /// A delivery that leaves out a receipted message below its highest, which nothing can have removed:
    /// what goes, goes from the front.
    fn skipped(&self) -> Option<Evidence> {
        let (earliest, anything) = self.first_removals();
        for &place in &self.places {
            let shown = messages(self.call(place));
            let Some(first) = shown.first() else { continue };
            let below = self.seqs.partition_point(|seq| *seq < first.seq);
            if below > 0 && earliest[below].min(anything) >= self.answered(place) {
                return self.evidence(Breach::Lost, [place], [self.seqs[below - 1], first.seq]);
            }
            let mut at = self.seqs.partition_point(|seq| *seq <= first.seq);
            for pair in shown.windows(2) {
                while self.seqs.get(at).is_some_and(|seq| *seq < pair[1].seq) {
                    let missing = self.seqs[at];
                    if missing > pair[0].seq {
                        let seqs = [pair[0].seq, missing, pair[1].seq];
                        return self.evidence(Breach::Lost, [place], seqs);
                    }
                    at += 1;
                }
            }
        }
        None
    }

    /// The last claim that was answered `null` although a message surely waited and nothing can fence.
    fn held_back(&self) -> Option<Evidence> {
        let is_null = |place: &&usize| {
            let call = self.call(**place);
            matches!((&call.act, &call.outcome), (Act::Claim { .. }, Outcome::Ok(Got::Null)))
        };
        let place = *self.places.iter().rfind(is_null)?;
        let waits = |seq: &&u64| self.answered(self.appends[*seq]) < self.sent(place);
        let seq = *self.seqs.iter().rfind(waits)?;
        let (earliest, anything) = self.first_removals();
        let count = self.seqs.partition_point(|s| *s <= seq);
        if earliest[count].min(anything) < self.answered(place) || self.may_be_fenced(place) {
            return None;
        }
        self.evidence(Breach::Lost, [place], [seq])
    }

    /// Whether any lease may live at some moment of the call.
    fn may_be_fenced(&self, place: usize) -> bool {
        let before = |at: usize| at != place && self.sent(at) < self.answered(place);
        // The latest end of any lease whose expiry a call may have set, whatever else ended it.
        let mut until_ms: u64 = 0;
        for &at in self.places.iter().filter(|at| before(**at)) {
            let call = self.call(at);
            let (Act::Claim { ttl_ms, .. } | Act::Renew { ttl_ms, .. }) = &call.act else {
                continue;
            };
            let fences = match &call.outcome {
                Outcome::Ok(Got::Delivery { lease, .. }) => !self.is_over(lease, place),
                Outcome::Unknown => true,
                Outcome::Ok(_) => !matches!(call.act, Act::Claim { .. }) || self.is_holder(at),
                Outcome::Refused(_) => false,
            };
            let answered_ms = match (call.answered, self.rules.clock) {
                (Some(stamp), _) => stamp.ms,
                (None, Clock::Caller) => call.sent.ms,
                (None, Clock::Wall) => return true,
            };
            if fences {
                until_ms = until_ms
                    .max(answered_ms.saturating_add(*ttl_ms + self.rules.granularity_ms + 1));
            }
        }
        self.call(place).sent.ms < until_ms
    }

    /// Whether the lease was surely ended by its holder before the call was sent.
    fn is_over(&self, lease: &str, place: usize) -> bool {
        let Some(lease) = self.leases.get(lease) else { return false };
        lease.others.iter().any(|at| {
            let call = self.call(*at);
            let ends = match (&call.act, &call.outcome) {
                (Act::Ack { .. }, Outcome::Ok(Got::Count(count))) => *count > 0.0,
                (Act::Release { .. }, Outcome::Ok(_)) => true,
                _ => false,
            };
            ends && self.answered(*at) < self.sent(place)
        })
    }

    /// Whether the claim's owner was ever given a lease here, or may have been.
    fn is_holder(&self, place: usize) -> bool {
        let Act::Claim { owner, .. } = &self.call(place).act else { return false };
        self.owners.get(owner.as_str()).is_some_and(|claims| {
            claims.places.iter().any(|at| self.call(*at).outcome != Outcome::Ok(Got::Null))
        })
    }

    /// An ack that was taken though its owner was never given that lease.
    fn taken(&self) -> Option<Evidence> {
        for lease in self.leases.values() {
            for &place in &lease.others {
                let call = self.call(place);
                let (Act::Ack { owner, .. }, Outcome::Ok(Got::Count(count))) =
                    (&call.act, &call.outcome)
                else {
                    continue;
                };
                // Whoever acks a lease that is over may be told that nothing was removed.
                if *count == 0.0 && !lease.claims.is_empty() {
                    continue;
                }
                let its_own = |claim: &usize| matches!(&self.call(*claim).act, Act::Claim { owner: holder, .. } if holder == owner);
                if lease.claims.iter().any(its_own) {
                    continue;
                }
                let Some(&claim) = lease.claims.first() else {
                    return self.evidence(Breach::Taken, [place], []);
                };
                let seq = messages(self.call(claim)).first()?.seq;
                return self.evidence(Breach::Taken, [claim, place], [seq]);
            }
        }
        None
    }

    /// A lease id that was given to another owner too, or again after its holder had ended it.
    fn given_again(&self) -> Option<Evidence> {
        for lease in self.leases.values() {
            let Some((&first, others)) = lease.claims.split_first() else { continue };
            for &place in others {
                let (a, b) = (self.call(first), self.call(place));
                let id = given_lease(b)?;
                let same_owner = match (&a.act, &b.act) {
                    (Act::Claim { owner, .. }, Act::Claim { owner: other, .. }) => owner == other,
                    _ => true,
                };
                if same_owner && !self.is_over(id, place) {
                    continue;
                }
                let ended = |at: &&usize| self.answered(**at) < self.sent(place);
                let mut calls = set([first, place]);
                calls.extend(lease.others.iter().filter(ended));
                let mut seqs: BTreeSet<u64> = messages(a).iter().map(|m| m.seq).collect();
                seqs.extend(messages(b).iter().map(|m| m.seq));
                for seq in &seqs {
                    calls.insert(*self.appends.get(seq)?);
                }
                return Some(Evidence { breach: Breach::LeaseTwice, calls, seqs });
            }
        }
        None
    }

    /// Two leases of which the second was given, from sending to answer, while the first surely lived.
    fn fence(&self) -> Option<Evidence> {
        let mut claims: Vec<usize> = Vec::new();
        for &place in &self.places {
            if given_lease(self.call(place)).is_some() {
                claims.push(place);
            }
        }
        for &first in &claims {
            let ends = self.answered(first);
            let next = claims.partition_point(|at| self.sent(*at) <= ends);
            let Some(&second) = claims.get(next) else { continue };
            let (a, b) = (self.call(first), self.call(second));
            if given_lease(a) != given_lease(b) && self.surely_lives(first, second) {
                let seqs = [messages(a).first()?.seq, messages(b).first()?.seq];
                return self.evidence(Breach::Fence, [first, second], seqs);
            }
        }
        None
    }

    /// Whether the lease that `first` was given surely lived until `second` was answered.
    fn surely_lives(&self, first: usize, second: usize) -> bool {
        let call = self.call(first);
        let (Act::Claim { owner, ttl_ms, .. }, Some(lease)) = (&call.act, given_lease(call)) else {
            return false;
        };
        let live_to_ms = (call.sent.ms + ttl_ms).saturating_sub(self.rules.granularity_ms + 1);
        let (to, ms) =
            (self.answered(second), self.call(second).answered.map_or(u64::MAX, |s| s.ms));
        let died = self.rules.deaths.get(&call.process).is_some_and(|at| *at < to);
        let touches = |at: &usize| self.sent(*at) < to && self.answered(*at) > self.sent(first);
        ms <= live_to_ms
            && !died
            && self.leases[lease].claims.first() == Some(&first)
            && !self.leases[lease].others.iter().any(|at| self.sent(*at) < to)
            && !self.claimed_again(owner, first, to)
            && !self.drops.iter().any(touches)
    }

    /// Whether the owner claimed anew between the claim `first` and the order `to`, or may have.
    fn claimed_again(&self, owner: &str, first: usize, to: u64) -> bool {
        let Some(claims) = self.owners.get(owner) else { return false };
        let at = claims.places.partition_point(|place| self.sent(*place) < self.sent(first));
        let earlier = at.checked_sub(1).and_then(|before| claims.latest.get(before));
        let later = claims.places.get(at + 1).is_some_and(|next| self.sent(*next) < to);
        later || earlier.is_some_and(|latest| *latest > self.sent(first))
    }
}

fn given_lease(call: &Call) -> Option<&str> {
    match (&call.act, &call.outcome) {
        (Act::Claim { .. }, Outcome::Ok(Got::Delivery { lease, .. })) => Some(lease),
        _ => None,
    }
}

fn set<T: Ord, const N: usize>(items: [T; N]) -> BTreeSet<T> {
    BTreeSet::from(items)
}
