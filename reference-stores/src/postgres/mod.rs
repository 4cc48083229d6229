//! `postgres`: one PostgreSQL schema per storage, every operation one statement of the server.
//!
//! **One statement is one transaction.** Each operation is a function of the storage's schema
//! (`schema.sql`). What it decides on it reads after it locked the box's row, so an operation cannot
//! overtake another on the same box, and a reader never sees a message before the one with the lower
//! number. The client never holds a lock between two messages of its own, so one that is killed or
//! stopped at any point leaves no lock behind and nobody waits for it.
//!
//! **What a receipt promises.** `synchronous_commit` is on in every session, and a server without
//! `fsync` or `full_page_writes` is refused: a receipt, a lease, an ack is on the server's disk before
//! anybody hears of it. An operation whose answer was lost is a breakdown that says so, never a receipt;
//! the next one connects anew.
//!
//! **It does not promise**
//! - anything on a disk that answers a sync before the bytes are safe, or after a failover to a standby
//!   that had not received everything;
//! - to tell what became of an operation while which the server went away;
//! - progress while somebody else's transaction holds a box's row for longer than [`LOCK_WAIT_MS_MAX`]:
//!   then it answers with a breakdown, having changed nothing;
//! - an answer from a server that stands still with its connections open: the caller waits with it;
//! - an encrypted connection: reach a server on another machine through a tunnel;
//! - room in the server: a storage keeps a row for every box that was ever written to;
//! - to understand a schema of another version: it is refused, never altered.

mod mailbox;
mod schema;

use crate::server::{Link, Naming};
use crate::{Place, mailbox_capabilities, manifest};
use postgres::Client;
use storeproof_contract::backend::{Capabilities, Manifest};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::{MailboxStore, Tombstones};
use storeproof_contract::subject::{Opened, Reply, Store, StoreError, Subject};

/// How long an operation waits for a row that another one has locked, in milliseconds.
pub const LOCK_WAIT_MS_MAX: u64 = 6_000;

/// The environment variable with the server's URL.
pub const URL_VARIABLE: &str = "STOREPROOF_POSTGRES_URL";

const NAMING: Naming = Naming {
    store: "postgres",
    member: "schema",
    prefix: "storeproof_mailbox_",
    variable: URL_VARIABLE,
};

/// The subject; its storages are schemas of the database that the place's URL names.
#[must_use]
pub fn subject(place: &Place) -> Box<dyn Subject> {
    Box::new(PostgresSubject { place: place.clone() })
}

/// Whether the server is there and can keep the store's promises.
///
/// # Errors
/// A breakdown that says what to set or to start.
pub fn check(place: &Place) -> Reply<()> {
    schema::connect(place).and_then(close)
}

struct PostgresSubject {
    place: Place,
}

impl PostgresSubject {
    fn store(&self, client: Client, name: String) -> Box<dyn Store> {
        Box::new(PostgresStore { place: self.place.clone(), name, link: Link::new(client) })
    }
}

impl Subject for PostgresSubject {
    fn manifest(&self) -> Manifest {
        let capabilities = Capabilities {
            durable: true,
            cross_process_safe: true,
            tombstone: true,
            ..mailbox_capabilities()
        };
        manifest("postgres", capabilities)
    }

    fn open(&mut self) -> Reply<Opened> {
        let (client, name) = schema::create(&self.place)?;
        let location = Some(NAMING.location(&name));
        Ok(Opened { store: self.store(client, name), location, root: None })
    }

    fn attach(&mut self, location: &Json) -> Reply<Box<dyn Store>> {
        let name = NAMING.named(location)?;
        let client = schema::attach(&self.place, &name)?;
        Ok(self.store(client, name))
    }

    fn destroy(&mut self, location: &Json) -> Reply<()> {
        schema::destroy(&self.place, location)
    }
}

/// One open handle with a connection of its own.
struct PostgresStore {
    place: Place,
    /// The storage's schema.
    name: String,
    link: Link<Client>,
}

impl Store for PostgresStore {
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        Some(self)
    }

    fn tombstones(&mut self) -> Option<&mut dyn Tombstones> {
        Some(self)
    }

    fn close(&mut self) -> Reply<()> {
        // Every operation was committed before it was answered, so a connection that is lost here
        // takes nothing with it.
        if let Some(client) = self.link.close() {
            let _: Reply<()> = close(client);
        }
        Ok(())
    }
}

fn close(client: Client) -> Reply<()> {
    client.close().map_err(|error| StoreError::Broken(format!("close: {}", schema::told(&error))))
}
