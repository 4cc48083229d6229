//! The mailbox of `memory`: the contract's rules and nothing else.

use super::MemoryStore;
use crate::arguments::{check_body, check_names, closed, expiry, not_held, terms};
use std::collections::{HashMap, VecDeque};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, SEQ_MAX, Seq,
};
use storeproof_contract::subject::{Reply, StoreError};

/// All boxes of one store. The pair of names is the key, never the names joined into one.
#[derive(Default)]
pub(super) struct Boxes {
    by_recipient: HashMap<Address, Mailbox>,
    /// Counts over all boxes and never goes back, so that no lease id is ever used twice.
    leases_granted: u64,
}

/// One box. It stays in the map when it is emptied, because its seqs must go on where they were.
#[derive(Default)]
struct Mailbox {
    last_seq: u64,
    pending: VecDeque<Message>,
    lease: Option<Lease>,
}

struct Lease {
    id: LeaseId,
    owner: String,
    expiry: Millis,
    /// The last seq that the claim delivered; what came later is not the holder's to ack.
    delivered: Seq,
}

impl Lease {
    fn lives(&self, now: Millis) -> bool {
        now < self.expiry
    }
}

impl Mailbox {
    /// The live lease, if `owner` holds it by the id `lease`.
    fn held(&mut self, owner: &str, lease: &LeaseId, now: Millis) -> Reply<&mut Lease> {
        self.lease
            .as_mut()
            .filter(|held| held.lives(now) && held.owner == owner && held.id == *lease)
            .ok_or_else(not_held)
    }
}

impl MemoryStore {
    fn boxes(&mut self) -> Reply<&mut Boxes> {
        self.boxes.as_mut().ok_or_else(closed)
    }

    /// The box of `of`, if anything was ever written to it.
    fn mailbox_of(&mut self, of: &Address) -> Reply<Option<&mut Mailbox>> {
        let boxes = self.boxes()?;
        check_names(of)?;
        Ok(boxes.by_recipient.get_mut(of))
    }
}

impl MailboxStore for MemoryStore {
    fn append(&mut self, to: &Address, body: &Json, _now: Millis) -> Reply<Seq> {
        let boxes = self.boxes()?;
        check_names(to)?;
        check_body(body)?;
        let mailbox = boxes.by_recipient.entry(to.clone()).or_default();
        if mailbox.last_seq >= SEQ_MAX {
            return Err(StoreError::Broken(format!("the box {to} has used every seq there is")));
        }
        mailbox.last_seq += 1;
        let seq = Seq(mailbox.last_seq);
        mailbox.pending.push_back(Message { seq, body: body.clone() });
        Ok(seq)
    }

    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let boxes = self.boxes()?;
        check_names(from)?;
        let terms = terms(ask, now)?;
        let Some(mailbox) = boxes.by_recipient.get_mut(from) else { return Ok(None) };
        if let Some(lease) = mailbox.lease.as_ref().filter(|lease| lease.lives(now)) {
            if lease.owner != ask.owner {
                return Ok(None);
            }
            let delivered = lease.delivered;
            let messages = mailbox.pending.iter().take_while(|m| m.seq <= delivered).cloned();
            return Ok(Some(Delivery { lease: lease.id.clone(), messages: messages.collect() }));
        }
        let messages: Vec<Message> = mailbox.pending.iter().take(terms.most).cloned().collect();
        // Nothing to deliver installs nothing: a lease on an empty box would lock out the next message.
        let Some(last) = messages.last() else { return Ok(None) };
        boxes.leases_granted += 1;
        let id = LeaseId(format!("lease-{}", boxes.leases_granted));
        mailbox.lease = Some(Lease {
            id: id.clone(),
            owner: ask.owner.clone(),
            expiry: terms.expiry,
            delivered: last.seq,
        });
        Ok(Some(Delivery { lease: id, messages }))
    }

    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let mailbox = self.mailbox_of(of)?.ok_or_else(not_held)?;
        let through = mailbox.held(owner, lease, now)?.delivered.min(up_to);
        let before = mailbox.pending.len();
        mailbox.pending.retain(|message| message.seq > through);
        mailbox.lease = None;
        Ok((before - mailbox.pending.len()) as u64)
    }

    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let mailbox = self.mailbox_of(of)?.ok_or_else(not_held)?;
        mailbox.held(owner, lease, now)?;
        mailbox.lease = None;
        Ok(())
    }

    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        let mailbox = self.mailbox_of(of)?.ok_or_else(not_held)?;
        let held = mailbox.held(owner, lease, now)?;
        held.expiry = expiry(now, ttl_ms)?;
        Ok(())
    }

    fn peek(&mut self, of: &Address, _now: Millis) -> Reply<Vec<Message>> {
        let mailbox = self.mailbox_of(of)?;
        Ok(mailbox.map(|mailbox| mailbox.pending.iter().cloned().collect()).unwrap_or_default())
    }

    fn reap(&mut self, now: Millis) -> Reply<()> {
        for mailbox in self.boxes()?.by_recipient.values_mut() {
            mailbox.lease.take_if(|lease| !lease.lives(now));
        }
        Ok(())
    }

    fn drop_box(&mut self, of: &Address, _now: Millis) -> Reply<u64> {
        let Some(mailbox) = self.mailbox_of(of)? else { return Ok(0) };
        mailbox.lease = None;
        Ok(std::mem::take(&mut mailbox.pending).len() as u64)
    }
}
