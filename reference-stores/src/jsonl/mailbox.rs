//! The mailbox of `jsonl`: each operation decides by the state under the lock and writes one record.

use super::JsonlStore;
use super::log::Locked;
use super::record::{Recipient, Record};
use super::state::{Lease, Mailbox};
use crate::arguments::{check_body, check_names, expiry, not_held, terms};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use storeproof_contract::subject::{Reply, StoreError};

impl MailboxStore for JsonlStore {
    fn append(&mut self, to: &Address, body: &Json, _now: Millis) -> Reply<Seq> {
        let mut log = self.locked_for(to)?;
        check_body(body)?;
        let seq = log.state().next_seq(to).ok_or_else(|| {
            StoreError::Broken(format!("the box {to} has used every seq there is"))
        })?;
        log.write(Record::Append { of: Recipient::from(to), seq, body: body.clone() })?;
        Ok(Seq(seq))
    }

    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let mut log = self.locked_for(from)?;
        let terms = terms(ask, now)?;
        let Some(mailbox) = log.state().mailbox(from) else { return Ok(None) };
        if let Some(lease) = mailbox.live_lease(now) {
            if lease.owner != ask.owner {
                return Ok(None);
            }
            let messages = first(mailbox, mailbox.count_through(lease.delivered));
            return Ok(Some(Delivery { lease: log.lease_id(lease.number), messages }));
        }
        let messages = first(mailbox, terms.most);
        // Nothing to deliver installs nothing: a lease on an empty box would lock out the next message.
        let Some(last) = messages.last() else { return Ok(None) };
        let number = log.state().next_lease();
        log.write(Record::Claim {
            of: Recipient::from(from),
            lease: number,
            owner: ask.owner.clone(),
            expiry: terms.expiry.0,
            delivered: last.seq.0,
        })?;
        Ok(Some(Delivery { lease: log.lease_id(number), messages }))
    }

    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let mut log = self.locked_for(of)?;
        let held = held(&log, of, owner, lease, now)?;
        let through = held.delivered.min(up_to);
        let acked = log.state().mailbox(of).map_or(0, |mailbox| mailbox.count_through(through));
        log.write(Record::Ack { of: Recipient::from(of), lease: held.number, through: through.0 })?;
        Ok(acked as u64)
    }

    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let mut log = self.locked_for(of)?;
        let held = held(&log, of, owner, lease, now)?;
        log.write(Record::Release { of: Recipient::from(of), lease: held.number })
    }

    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        let mut log = self.locked_for(of)?;
        let held = held(&log, of, owner, lease, now)?;
        let expiry = expiry(now, ttl_ms)?;
        log.write(Record::Renew { of: Recipient::from(of), lease: held.number, expiry: expiry.0 })
    }

    fn peek(&mut self, of: &Address, _now: Millis) -> Reply<Vec<Message>> {
        let log = self.locked_for(of)?;
        Ok(log.state().mailbox(of).map(|mailbox| first(mailbox, usize::MAX)).unwrap_or_default())
    }

    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.locked()?.compact(now)
    }

    fn drop_box(&mut self, of: &Address, _now: Millis) -> Reply<u64> {
        let mut log = self.locked_for(of)?;
        let Some(mailbox) = log.state().mailbox(of) else { return Ok(0) };
        let dropped = mailbox.len();
        // An emptied box has no lease, so dropping it again would change nothing.
        if dropped > 0 {
            log.write(Record::Drop { of: Recipient::from(of) })?;
        }
        Ok(dropped as u64)
    }
}

impl JsonlStore {
    /// The log under its lock, for an operation on the box of `of`.
    fn locked_for(&mut self, of: &Address) -> Reply<Locked<'_>> {
        let log = self.open_log()?;
        check_names(of)?;
        log.locked()
    }
}

/// The live lease of `of`, if `owner` holds it by the id `lease`.
fn held(log: &Locked<'_>, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<Lease> {
    log.state()
        .mailbox(of)
        .and_then(|mailbox| mailbox.live_lease(now))
        .filter(|held| held.owner == owner && log.lease_id(held.number) == *lease)
        .cloned()
        .ok_or_else(not_held)
}

fn first(mailbox: &Mailbox, most: usize) -> Vec<Message> {
    mailbox.pending().take(most).cloned().collect()
}
