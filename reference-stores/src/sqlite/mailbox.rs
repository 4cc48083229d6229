//! The mailbox of `sqlite`: each operation is one transaction; what it decides on it reads inside it.

use super::SqliteStore;
use crate::arguments::{check_body, check_names, expiry, not_held, terms};
use crate::body::message;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, SEQ_MAX, Seq, Tombstones,
};
use storeproof_contract::subject::{Reply, StoreError};

/// The reason code of an append to a tombstoned recipient.
const TOMBSTONED: &str = "recipient_deleted";

impl MailboxStore for SqliteStore {
    fn append(&mut self, to: &Address, body: &Json, _now: Millis) -> Reply<Seq> {
        let writing = self.write_to(to)?;
        check_body(body)?;
        if writing.is_tombstoned(to)? {
            return Err(StoreError::refused(TOMBSTONED, "the recipient is being deleted"));
        }
        let seq = writing.mint_seq(to)?;
        writing.run(
            "INSERT INTO messages (scope, handle, seq, body) VALUES (?1, ?2, ?3, ?4)",
            params![scope(to), handle(to), sql(seq.0), body.to_string()],
        )?;
        writing.commit()?;
        Ok(seq)
    }

    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        let writing = self.write_to(from)?;
        let terms = terms(ask, now)?;
        if let Some(lease) = writing.live_lease(from, now)? {
            if lease.owner != ask.owner.as_bytes() {
                return Ok(None);
            }
            let messages = writing.messages(from, lease.delivered, usize::MAX)?;
            return Ok(Some(Delivery { lease: LeaseId(lease.id), messages }));
        }
        let messages = writing.messages(from, SEQ_MAX, terms.most)?;
        // Nothing to deliver installs nothing: a lease on an empty box would lock out the next message.
        let Some(last) = messages.last() else { return Ok(None) };
        let lease = writing.mint_lease()?;
        writing.run(
            "INSERT OR REPLACE INTO leases (scope, handle, id, owner, expiry, delivered)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                scope(from),
                handle(from),
                lease.0,
                ask.owner.as_bytes(),
                sql(terms.expiry.0),
                sql(last.seq.0)
            ],
        )?;
        writing.commit()?;
        Ok(Some(Delivery { lease, messages }))
    }

    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        let writing = self.write_to(of)?;
        let held = writing.held(of, owner, lease, now)?;
        let acked = writing.run(
            "DELETE FROM messages WHERE scope = ?1 AND handle = ?2 AND seq <= ?3",
            params![scope(of), handle(of), sql(up_to.0.min(held.delivered))],
        )?;
        writing.end_lease(of)?;
        writing.commit()?;
        Ok(acked)
    }

    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        let writing = self.write_to(of)?;
        writing.held(of, owner, lease, now)?;
        writing.end_lease(of)?;
        writing.commit()
    }

    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        let writing = self.write_to(of)?;
        writing.held(of, owner, lease, now)?;
        let expiry = expiry(now, ttl_ms)?;
        writing.run(
            "UPDATE leases SET expiry = ?3 WHERE scope = ?1 AND handle = ?2",
            params![scope(of), handle(of), sql(expiry.0)],
        )?;
        writing.commit()
    }

    fn peek(&mut self, of: &Address, _now: Millis) -> Reply<Vec<Message>> {
        let connection = self.connection()?;
        check_names(of)?;
        // One SELECT is one consistent read; it needs no write lock.
        let reading = connection.transaction_with_behavior(TransactionBehavior::Deferred);
        Writing(reading.map_err(failed)?).messages(of, SEQ_MAX, usize::MAX)
    }

    fn reap(&mut self, now: Millis) -> Reply<()> {
        let writing = self.write()?;
        // Freed pages are used again, and the WAL folds into the database by itself.
        writing.run("DELETE FROM leases WHERE expiry <= ?1", params![sql(now.0)])?;
        writing.commit()
    }

    fn drop_box(&mut self, of: &Address, _now: Millis) -> Reply<u64> {
        let writing = self.write_to(of)?;
        let dropped = writing.run(
            "DELETE FROM messages WHERE scope = ?1 AND handle = ?2",
            params![scope(of), handle(of)],
        )?;
        writing.end_lease(of)?;
        writing.commit()?;
        Ok(dropped)
    }
}

impl Tombstones for SqliteStore {
    fn tombstone(&mut self, of: &Address, _now: Millis) -> Reply<()> {
        let writing = self.write_to(of)?;
        writing.run(
            "INSERT OR IGNORE INTO tombstones (scope, handle) VALUES (?1, ?2)",
            params![scope(of), handle(of)],
        )?;
        writing.commit()
    }
}

impl SqliteStore {
    /// Begins an operation that may write, with the write lock in hand.
    fn write(&mut self) -> Reply<Writing<'_>> {
        let connection = self.connection()?;
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        begun.map(Writing).map_err(failed)
    }

    /// The same for an operation on the box of `of`.
    fn write_to(&mut self, of: &Address) -> Reply<Writing<'_>> {
        self.connection()?;
        check_names(of)?;
        self.write()
    }
}

/// One transaction; rolled back unless it is committed.
struct Writing<'c>(Transaction<'c>);

/// A lease as its row has it; it may have expired.
struct Lease {
    id: String,
    owner: Vec<u8>,
    expiry: u64,
    /// The last seq that the claim delivered.
    delivered: u64,
}

impl Writing<'_> {
    fn commit(self) -> Reply<()> {
        self.0.commit().map_err(failed)
    }

    /// Runs one statement and says how many rows it changed.
    fn run(&self, statement: &str, params: impl rusqlite::Params) -> Reply<u64> {
        let run = self.0.prepare_cached(statement).and_then(|mut run| run.execute(params));
        run.map(|rows| rows as u64).map_err(failed)
    }

    /// The one row that `statement` selects, if there is one.
    fn row<T>(
        &self,
        statement: &str,
        params: impl rusqlite::Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Reply<Option<T>> {
        let mut select = self.0.prepare_cached(statement).map_err(failed)?;
        select.query_row(params, read).optional().map_err(failed)
    }

    fn is_tombstoned(&self, of: &Address) -> Reply<bool> {
        let found = self.row(
            "SELECT 1 FROM tombstones WHERE scope = ?1 AND handle = ?2",
            params![scope(of), handle(of)],
            |_| Ok(()),
        )?;
        Ok(found.is_some())
    }

    /// Moves the box's counter and answers where it stands now.
    fn mint_seq(&self, of: &Address) -> Reply<Seq> {
        let minted = self.row(
            "INSERT INTO boxes (scope, handle, last_seq) VALUES (?1, ?2, 1)
             ON CONFLICT (scope, handle) DO UPDATE SET last_seq = last_seq + 1
             RETURNING last_seq",
            params![scope(of), handle(of)],
            |row| row.get::<_, i64>(0),
        )?;
        match minted.map(i64::cast_unsigned) {
            Some(seq) if seq <= SEQ_MAX => Ok(Seq(seq)),
            Some(_) | None => {
                Err(StoreError::Broken(format!("the box {of} has used every seq there is")))
            }
        }
    }

    /// Counts one more lease of the storage; the count is the id, so no id is ever used twice.
    fn mint_lease(&self) -> Reply<LeaseId> {
        let minted = self.row(
            "UPDATE storage SET leases_granted = leases_granted + 1
             RETURNING name || '.' || leases_granted",
            [],
            |row| row.get(0),
        )?;
        minted.map(LeaseId).ok_or_else(|| StoreError::Broken("the storage row is gone".to_owned()))
    }

    fn live_lease(&self, of: &Address, now: Millis) -> Reply<Option<Lease>> {
        let lease = self.row(
            "SELECT id, owner, expiry, delivered FROM leases WHERE scope = ?1 AND handle = ?2",
            params![scope(of), handle(of)],
            |row| {
                Ok(Lease {
                    id: row.get(0)?,
                    owner: row.get(1)?,
                    expiry: row.get::<_, i64>(2)?.cast_unsigned(),
                    delivered: row.get::<_, i64>(3)?.cast_unsigned(),
                })
            },
        )?;
        Ok(lease.filter(|lease| now.0 < lease.expiry))
    }

    fn held(&self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<Lease> {
        self.live_lease(of, now)?
            .filter(|held| held.owner == owner.as_bytes() && held.id == lease.0)
            .ok_or_else(not_held)
    }

    fn end_lease(&self, of: &Address) -> Reply<()> {
        let statement = "DELETE FROM leases WHERE scope = ?1 AND handle = ?2";
        self.run(statement, params![scope(of), handle(of)]).map(|_| ())
    }

    /// The first messages of a box, at most `most` and none above `last`.
    fn messages(&self, of: &Address, last: u64, most: usize) -> Reply<Vec<Message>> {
        let mut select = self
            .0
            .prepare_cached(
                "SELECT seq, body FROM messages
                 WHERE scope = ?1 AND handle = ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
            )
            .map_err(failed)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut rows =
            select.query(params![scope(of), handle(of), sql(last), most]).map_err(failed)?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let seq = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
            let body = row.get_ref(1).map_err(failed)?.as_bytes();
            messages.push(message(of, seq, body.map_err(|error| failed(error.into()))?)?);
        }
        Ok(messages)
    }
}

fn scope(of: &Address) -> &[u8] {
    of.scope.0.as_bytes()
}

fn handle(of: &Address) -> &[u8] {
    of.handle.0.as_bytes()
}

/// A number as SQLite keeps it. What is above its greatest integer becomes that: for a lease this is
/// the end of time, 292 million years from now.
fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::Broken(format!("SQLite: {error}"))
}
