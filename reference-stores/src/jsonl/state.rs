//! What the log adds up to: the boxes after replaying every record in order.

use super::record::{Recipient, Record};
use std::collections::{BTreeMap, VecDeque};
use storeproof_contract::mailbox::store::{Address, Message, Millis, SEQ_MAX, Seq};

/// All boxes of one storage.
#[derive(Debug, Default)]
pub(super) struct State {
    boxes: BTreeMap<Address, Mailbox>,
    leases_granted: u64,
}

/// One box; it stays when it is emptied, because its seqs must go on where they were.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    last_seq: u64,
    pending: VecDeque<Message>,
    lease: Option<Lease>,
}

/// A lease that was neither settled nor given back; it may have expired.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) number: u64,
    pub(super) owner: String,
    pub(super) expiry: Millis,
    /// The last seq that the claim delivered.
    pub(super) delivered: Seq,
}

impl Lease {
    fn lives(&self, now: Millis) -> bool {
        now < self.expiry
    }
}

impl Mailbox {
    /// Messages not yet acked, ascending.
    pub(super) fn pending(&self) -> impl Iterator<Item = &Message> {
        self.pending.iter()
    }

    /// How many of them there are.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// How many of them have a seq up to and including `seq`.
    pub(super) fn count_through(&self, seq: Seq) -> usize {
        self.pending.partition_point(|message| message.seq <= seq)
    }

    /// The lease, if it lives at `now`.
    pub(super) fn live_lease(&self, now: Millis) -> Option<&Lease> {
        self.lease.as_ref().filter(|lease| lease.lives(now))
    }

    /// Whether an empty box holds only its counter.
    fn has_bare_counter(&self) -> bool {
        self.pending.back().is_none_or(|last| last.seq.0 < self.last_seq)
    }

    fn end_lease(&mut self, number: u64) -> Result<(), String> {
        match self.lease.take() {
            Some(lease) if lease.number == number => Ok(()),
            other => {
                let found = other.map_or_else(|| "none".to_owned(), |l| l.number.to_string());
                Err(format!("it names lease {number}, but the box's lease is {found}"))
            }
        }
    }
}

impl State {
    /// The box of `of`, if anything was ever written to it.
    pub(super) fn mailbox(&self, of: &Address) -> Option<&Mailbox> {
        self.boxes.get(of)
    }

    /// The seq that the next message of `of` gets; `None` where all are used.
    pub(super) fn next_seq(&self, of: &Address) -> Option<u64> {
        let last = self.boxes.get(of).map_or(0, |mailbox| mailbox.last_seq);
        (last < SEQ_MAX).then_some(last + 1)
    }

    /// The number that the next lease gets.
    pub(super) fn next_lease(&self) -> u64 {
        self.leases_granted + 1
    }

    /// Takes one record in, or says why it cannot follow the ones before; then nothing that is read
    /// from this state can be trusted any more.
    pub(super) fn apply(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Append { of, seq, body } => {
                let mailbox = self.written(&of);
                if seq <= mailbox.last_seq || seq > SEQ_MAX {
                    return Err(format!("seq {seq} cannot follow seq {}", mailbox.last_seq));
                }
                mailbox.last_seq = seq;
                mailbox.pending.push_back(Message { seq: Seq(seq), body });
            }
            Record::Claim { of, lease: number, owner, expiry, delivered } => {
                if number <= self.leases_granted {
                    return Err(format!("lease {number} was granted before"));
                }
                self.leases_granted = number;
                let mailbox = self.written(&of);
                let (delivered, expiry) = (Seq(delivered), Millis(expiry));
                if mailbox.count_through(delivered) == 0 {
                    return Err(format!("lease {number} delivers nothing"));
                }
                mailbox.lease = Some(Lease { number, owner, expiry, delivered });
            }
            Record::Ack { of, lease, through } => {
                let mailbox = self.written(&of);
                mailbox.end_lease(lease)?;
                mailbox.pending.retain(|message| message.seq.0 > through);
            }
            Record::Release { of, lease } => self.written(&of).end_lease(lease)?,
            Record::Renew { of, lease, expiry } => match &mut self.written(&of).lease {
                Some(held) if held.number == lease => held.expiry = Millis(expiry),
                Some(_) | None => return Err(format!("lease {lease} is not the box's lease")),
            },
            Record::Drop { of } => {
                let mailbox = self.written(&of);
                mailbox.lease = None;
                mailbox.pending.clear();
            }
            Record::Minted { of, seq } => {
                let mailbox = self.written(&of);
                if seq < mailbox.last_seq || seq > SEQ_MAX {
                    return Err(format!("seq {} was minted already", mailbox.last_seq));
                }
                mailbox.last_seq = seq;
            }
            Record::Granted { leases } => {
                if leases < self.leases_granted {
                    return Err(format!("lease {} was granted already", self.leases_granted));
                }
                self.leases_granted = leases;
            }
        }
        Ok(())
    }

    fn written(&mut self, of: &Recipient) -> &mut Mailbox {
        self.boxes.entry(Address::from(of)).or_default()
    }

    /// The fewest records that add up to this state at `now`: pending messages, counters that no
    /// pending message carries, live leases in the order in which they were granted.
    pub(super) fn snapshot(&self, now: Millis) -> impl Iterator<Item = Record> {
        let messages = self.boxes.iter().flat_map(|(of, mailbox)| {
            let appends = mailbox.pending.iter().map(move |message| Record::Append {
                of: Recipient::from(of),
                seq: message.seq.0,
                body: message.body.clone(),
            });
            let counter = mailbox
                .has_bare_counter()
                .then(|| Record::Minted { of: Recipient::from(of), seq: mailbox.last_seq });
            appends.chain(counter)
        });
        let mut leases: Vec<_> = self
            .boxes
            .iter()
            .filter_map(|(of, mailbox)| Some((of, mailbox.live_lease(now)?)))
            .collect();
        leases.sort_by_key(|(_, lease)| lease.number);
        let leases = leases.into_iter().map(|(of, lease)| Record::Claim {
            of: Recipient::from(of),
            lease: lease.number,
            owner: lease.owner.clone(),
            expiry: lease.expiry.0,
            delivered: lease.delivered.0,
        });
        messages.chain(leases).chain([Record::Granted { leases: self.leases_granted }])
    }

    /// How many records [`State::snapshot`] gives.
    pub(super) fn snapshot_len(&self, now: Millis) -> u64 {
        let in_box = |mailbox: &Mailbox| {
            mailbox.pending.len()
                + usize::from(mailbox.has_bare_counter())
                + usize::from(mailbox.live_lease(now).is_some())
        };
        self.boxes.values().map(in_box).sum::<usize>() as u64 + 1
    }
}
