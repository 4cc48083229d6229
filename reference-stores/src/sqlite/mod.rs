//! `sqlite`: one SQLite database per storage, every write its own immediate transaction.
//!
//! **Write-ahead log, synchronous FULL.** Under kill -9 both of SQLite's journals are sound: whoever
//! comes next rolls back a hot journal, or ignores what stands behind the last commit in the WAL. Three
//! things decide for the WAL. A commit is one append and one sync of one file, where the rollback
//! journal creates, syncs and deletes a second file around two syncs of the first: fewer states in
//! which a process can be killed. A commit needs no exclusive lock against readers, so a peeking
//! process cannot make a writer wait, nor the other way round. And the lock is held for a shorter time,
//! which several busy processes feel at once. The price is that all processes must be on one machine.
//!
//! **What each sync promises.** With synchronous FULL a commit returns after the WAL is synced, so a
//! receipt, a lease, an ack is on disk before anybody hears of it. `BEGIN IMMEDIATE` takes the write
//! lock before the first read, so what an operation decides on cannot change before it commits.
//!
//! **It does not promise**
//! - anything on a disk that answers a sync before the bytes are safe, on a network file system, or
//!   between machines;
//! - that what a killed process committed but had not synced survives a loss of power in the moment
//!   in which another process already reads it; nobody had a receipt for it;
//! - progress while a live process holds the write lock for longer than [`LOCK_WAIT_MS_MAX`]: then it
//!   answers with a breakdown, having changed nothing;
//! - fairness between processes, or sense where the caller's `now` goes back;
//! - to understand a database of another schema version: it is refused, never altered.

mod mailbox;
mod schema;

use crate::arguments::closed;
use crate::folder::Layout;
use crate::{mailbox_capabilities, manifest};
use rusqlite::Connection;
use std::path::PathBuf;
use storeproof_contract::backend::{Capabilities, Manifest};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{MailboxStore, Tombstones};
use storeproof_contract::subject::{Opened, Reply, Store, StoreError, Subject};

/// How long an operation waits for another process's write, in milliseconds: longer than any healthy
/// write takes, and below the bench's deadline of 10 s, so that the store says itself what is wrong.
pub const LOCK_WAIT_MS_MAX: u64 = 8_000;

const DATABASE: &str = "mailbox.db";

const LAYOUT: Layout = Layout {
    store: "sqlite",
    prefix: "sqlite-",
    files: &[DATABASE, "mailbox.db-wal", "mailbox.db-shm", "mailbox.db-journal"],
};

/// The subject; its storages are folders below `base`.
#[must_use]
pub fn subject(base: PathBuf) -> Box<dyn Subject> {
    Box::new(SqliteSubject { base })
}

struct SqliteSubject {
    base: PathBuf,
}

impl Subject for SqliteSubject {
    fn manifest(&self) -> Manifest {
        let capabilities = Capabilities {
            durable: true,
            cross_process_safe: true,
            tombstone: true,
            ..mailbox_capabilities()
        };
        manifest("sqlite", capabilities)
    }

    fn open(&mut self) -> Reply<Opened> {
        let storage = LAYOUT.create(&self.base)?;
        let connection = schema::create(&storage.folder.join(DATABASE), &storage.name)?;
        Ok(Opened {
            store: Box::new(SqliteStore { connection: Some(connection) }),
            location: Some(LAYOUT.location(&storage.root)),
            root: Some(storage.root),
        })
    }

    fn attach(&mut self, location: &Json) -> Reply<Box<dyn Store>> {
        let connection = schema::attach(&LAYOUT.named(location)?.join(DATABASE))?;
        Ok(Box::new(SqliteStore { connection: Some(connection) }))
    }

    fn destroy(&mut self, location: &Json) -> Reply<()> {
        LAYOUT.destroy(&self.base, location)
    }
}

/// One open handle; without a connection once it was closed.
struct SqliteStore {
    connection: Option<Connection>,
}

impl SqliteStore {
    fn connection(&mut self) -> Reply<&mut Connection> {
        self.connection.as_mut().ok_or_else(closed)
    }
}

impl Store for SqliteStore {
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        Some(self)
    }

    fn tombstones(&mut self) -> Option<&mut dyn Tombstones> {
        Some(self)
    }

    fn close(&mut self) -> Reply<()> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        // Not left to `Drop`, which would swallow the error.
        connection.close().map_err(|(_, error)| StoreError::Broken(format!("close: {error}")))
    }
}
