//! Right but odd stores: they keep the contract in ways that ours do not.

#![allow(dead_code, reason = "each test file takes its part")]

use std::collections::BTreeSet;
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::model::{Model, State};
use storeproof_contract::mailbox::mutant::{Altered, subject};
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq, Tombstones,
};
use storeproof_contract::sim::Make;
use storeproof_contract::subject::{Reply, StoreError};

/// All of them by name.
pub const ODD: [(&str, Make); 10] = [
    ("PlainOnly", subject::<PlainOnly>),
    ("SharedCounter", subject::<SharedCounter>),
    ("OneAtATime", subject::<OneAtATime>),
    ("SettledAcksCountNothing", subject::<SettledAcksCountNothing>),
    ("NullForItsOwner", subject::<NullForItsOwner>),
    ("Gaps", subject::<Gaps>),
    ("TombstonesEndWithTheBox", subject::<TombstonesEndWithTheBox>),
    ("AcksForgotten", subject::<AcksForgotten>),
    ("OtherWords", subject::<OtherWords>),
    ("ReclaimRenews", subject::<ReclaimRenews>),
];

/// A model with its own memory and some methods of its own.
macro_rules! odd {
    ($(#[$doc:meta])* $name:ident, $memory:ty, { $($body:tt)* }) => {
        $(#[$doc])*
        pub struct $name(Model, #[allow(dead_code, reason = "most remember nothing")] $memory);

        impl Altered for $name {
            fn over(model: Model) -> Self {
                Self(model, Default::default())
            }
            fn model(&mut self) -> &mut Model {
                &mut self.0
            }
            $($body)*
        }
    };
}

odd!(
    /// Numbers all messages of the store by one counter.
    SharedCounter, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let last = self.0.state().boxes.values().map(|b| b.last_seq).max().unwrap_or(0);
        self.0.with_box(to, |b| b.last_seq = last);
        self.0.append(to, body, now)
    }
});

fn plain(of: &Address) -> Reply<()> {
    for name in [&of.scope.0, &of.handle.0] {
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || name.len() > 16 || !name.chars().all(known) {
            return Err(StoreError::refused("invalid_name", "names are [a-z][a-z0-9]{0,15}"));
        }
    }
    Ok(())
}

odd!(
    /// Refuses every name that T1 does not use, on every path, and every body that is no short ASCII text.
    PlainOnly, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        plain(to)?;
        match body.as_str() {
            Some(text) if text.is_ascii() && text.len() <= 1024 => self.0.append(to, body, now),
            Some(_) | None => Err(StoreError::refused("invalid_body", "short ASCII texts only")),
        }
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        plain(from)?;
        self.0.claim(from, ask, now)
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        plain(of)?;
        self.0.peek(of, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        plain(of)?;
        self.0.drop_box(of, now)
    }
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        plain(of)?;
        self.0.tombstone(of, now)
    }
});

odd!(
    /// Delivers one message a claim.
    OneAtATime, (), {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let ask = ClaimAsk { max: ask.max.map_or(Some(1), |max| Some(max.min(1))), ..ask.clone() };
        self.0.claim(from, &ask, now)
    }
});

odd!(
    /// Answers `acked: 0` where an ack comes again for a lease it settled.
    SettledAcksCountNothing, BTreeSet<(Address, LeaseId)>, {
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let key = (of.clone(), lease.clone());
        if self.1.contains(&key) {
            return Ok(0);
        }
        let acked = self.0.ack(of, owner, lease, up_to, now)?;
        self.1.insert(key);
        Ok(acked)
    }
});

odd!(
    /// Answers null to whoever holds the box already.
    NullForItsOwner, (), {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let time = self.0.time(now);
        if self.0.with_box(from, |b| b.live(time).is_some()) {
            return Ok(None);
        }
        self.0.claim(from, ask, now)
    }
});

odd!(
    /// Skips numbers.
    Gaps, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.0.with_box(to, |b| b.last_seq += 1_000);
        self.0.append(to, body, now)
    }
});

odd!(
    /// Takes a drop for the deletion's end, and keeps tombstones in memory alone; uses a code of its own.
    TombstonesEndWithTheBox, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        if !self.0.is_closed() && self.0.state().tombstones.contains(to) {
            return Err(StoreError::refused("gone", "deleted soon"));
        }
        self.0.append(to, body, now)
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        let dropped = self.0.drop_box(of, now)?;
        self.0.state().tombstones.remove(of);
        Ok(dropped)
    }
    fn reopened(state: &mut State) {
        state.tombstones.clear();
    }
});

odd!(
    /// Removes an empty box at a reap and remembers one greatest number for all of them, in the storage.
    AcksForgotten, (), {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        let floor = self.0.state().scrap.first().map_or(0, |(_, greatest)| greatest.seq.0);
        self.0.with_box(to, |b| b.last_seq = b.last_seq.max(floor));
        self.0.append(to, body, now)
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.0.reap(now)?;
        let mut state = self.0.state();
        let floor = state.scrap.first().map_or(0, |(_, greatest)| greatest.seq.0);
        let greatest = state.boxes.values().map(|b| b.last_seq).max().unwrap_or(0).max(floor);
        let kept = Message { seq: Seq(greatest), body: Json::Null };
        state.scrap = vec![(Address::new("default", "counter"), kept)];
        state.boxes.retain(|_, b| !b.messages.is_empty());
        Ok(())
    }
});

odd!(
    /// Has words of its own for every refusal but the closed one.
    OtherWords, (), {
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.0.ack(of, owner, lease, up_to, now).map_err(|_| StoreError::refused("not-yours", "no"))
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.0.claim(from, ask, now).map_err(|_| StoreError::refused("nonsense", "no"))
    }
});

odd!(
    /// Starts the ttl again when the holder claims again.
    ReclaimRenews, (), {
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let claimed = self.0.claim(from, ask, now)?;
        let time = self.0.time(now);
        self.0.with_box(from, |b| {
            if let (Some(_), Some(held)) = (&claimed, b.lease.as_mut()) {
                held.expiry = Millis(time.0 + u64::try_from(ask.ttl_ms).unwrap_or(0));
            }
        });
        Ok(claimed)
    }
});
