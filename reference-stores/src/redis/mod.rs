//! `redis`: every storage a set of keys under a prefix of its own, every operation one script.
//!
//! **One script is one step.** Redis runs a script alone, from its first command to its last, and logs
//! all its writes as one unit. So what an operation decides on cannot change before it has written, no
//! other client sees half of it, and a client that dies leaves no lock: there is none.
//!
//! **What a receipt promises.** Redis keeps promises only where it is told to. The store asks the server
//! for its settings at each connection and refuses to work unless `appendonly` is yes, `appendfsync` is
//! always, `no-appendfsync-on-rewrite` is no, and `maxmemory-policy` evicts no key that has no time to
//! live. Then the log is synced before any answer leaves the server. An operation whose answer was lost
//! is a breakdown that says so, never a receipt; the next one connects anew.
//!
//! **It does not promise**
//! - anything on a disk that answers a sync before the bytes are safe, or after a failover to a replica:
//!   replicas lag behind receipts;
//! - anything once somebody changes those settings while a connection stands;
//! - to tell what became of an operation while which the server went away;
//! - to work on a cluster, over an encrypted connection, or where `CONFIG GET` and `ACL GENPASS` are not
//!   allowed;
//! - more room than the server's memory: a full server refuses writes, loudly and whole.

mod keys;
mod mailbox;
mod server;

use crate::server::{Link, Naming};
use crate::{Place, mailbox_capabilities, manifest};
use redis::Connection;
use storeproof_contract::backend::{Capabilities, Manifest};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::MailboxStore;
use storeproof_contract::subject::{Opened, Reply, Store, Subject};

/// The environment variable with the server's URL.
pub const URL_VARIABLE: &str = "STOREPROOF_REDIS_URL";

const NAMING: Naming = Naming {
    store: "redis",
    member: "storage",
    prefix: "storeproof-mailbox-",
    variable: URL_VARIABLE,
};

/// The subject; its storages are keys of the database that the place's URL names.
#[must_use]
pub fn subject(place: &Place) -> Box<dyn Subject> {
    Box::new(RedisSubject { place: place.clone() })
}

/// Whether the server is there and can keep the store's promises.
///
/// # Errors
/// A breakdown that says what to set or to start.
pub fn check(place: &Place) -> Reply<()> {
    server::connect(place).map(|_| ())
}

struct RedisSubject {
    place: Place,
}

impl RedisSubject {
    fn store(&self, connection: Connection, name: String) -> Box<dyn Store> {
        Box::new(RedisStore { place: self.place.clone(), name, link: Link::new(connection) })
    }
}

impl Subject for RedisSubject {
    fn manifest(&self) -> Manifest {
        let capabilities =
            Capabilities { durable: true, cross_process_safe: true, ..mailbox_capabilities() };
        manifest("redis", capabilities)
    }

    fn open(&mut self) -> Reply<Opened> {
        let (connection, name) = server::create(&self.place)?;
        let location = Some(NAMING.location(&name));
        Ok(Opened { store: self.store(connection, name), location, root: None })
    }

    fn attach(&mut self, location: &Json) -> Reply<Box<dyn Store>> {
        let name = NAMING.named(location)?;
        let connection = server::attach(&self.place, &name)?;
        Ok(self.store(connection, name))
    }

    fn destroy(&mut self, location: &Json) -> Reply<()> {
        server::destroy(&self.place, location)
    }
}

/// One open handle with a connection of its own.
struct RedisStore {
    place: Place,
    /// The storage's name; all its keys begin with it.
    name: String,
    link: Link<Connection>,
}

impl Store for RedisStore {
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        Some(self)
    }

    fn close(&mut self) -> Reply<()> {
        // Every operation was synced before it was answered: hanging up takes nothing with it.
        drop(self.link.close());
        Ok(())
    }
}
