//! Baselines: mailbox stores that keep the whole contract, one feature each.
//!
//! They are what a store author can read after the spec, what `storeproof serve` offers, and what the
//! bench is checked on. They have no private door: the bench judges them through the same traits and
//! the same wire as a stranger's store. Each `mod.rs` says what its store does **not** promise.
#![deny(missing_docs)]
#![cfg_attr(
    not(any(
        feature = "memory",
        feature = "jsonl",
        feature = "sqlite",
        feature = "postgres",
        feature = "redis"
    )),
    allow(dead_code, reason = "a build that bundles no store has no use for their common rules")
)]

mod arguments;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
mod body;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod folder;
#[cfg(feature = "jsonl")]
pub mod jsonl;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod server;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::path::PathBuf;
use storeproof_contract::backend::{Capabilities, Clock, Identity, Limits, Manifest};
use storeproof_contract::subject::{Reply, Subject};
use storeproof_contract::{KIT, PROTOCOL};

/// Where a store keeps its storages.
#[derive(Clone)]
pub struct Place {
    /// The folder below which storages live, for stores that keep files.
    pub base: PathBuf,
    /// How to reach the server, for stores that have one. It may hold a password: it is in no report, no
    /// location and no error, and a place cannot be printed.
    pub url: Option<String>,
}

/// A bundled store: its name on the command line, what it is, and how to make one.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Its name, as `certify` and `serve` take it.
    pub name: &'static str,
    /// What it is, as one sentence.
    pub about: &'static str,
    /// The environment variable with the URL of its server, if it needs one.
    pub url_variable: Option<&'static str>,
    /// Whether it can work at this place; a breakdown says what to set or to start.
    pub check: fn(&Place) -> Reply<()>,
    /// Makes the subject.
    pub make: fn(&Place) -> Box<dyn Subject>,
}

/// Every store that this build bundles, in the order of lists and reports.
pub const STORES: &[Bundled] = &[
    #[cfg(feature = "memory")]
    Bundled {
        name: "memory",
        about: "a plain map in the process's memory; lives and dies with its handle",
        url_variable: None,
        check: |_place| Ok(()),
        make: |_place| memory::subject(),
    },
    #[cfg(feature = "jsonl")]
    Bundled {
        name: "jsonl",
        about: "an append-only log of JSON lines under a kernel file lock, compacted by atomic rename",
        url_variable: None,
        check: |_place| Ok(()),
        make: |place| jsonl::subject(place.base.clone()),
    },
    #[cfg(feature = "sqlite")]
    Bundled {
        name: "sqlite",
        about: "one SQLite database, every write its own immediate transaction",
        url_variable: None,
        check: |_place| Ok(()),
        make: |place| sqlite::subject(place.base.clone()),
    },
    #[cfg(feature = "postgres")]
    Bundled {
        name: "postgres",
        about: "one PostgreSQL schema, every operation one statement that locks its box's row; needs a server",
        url_variable: Some(postgres::URL_VARIABLE),
        check: postgres::check,
        make: postgres::subject,
    },
    #[cfg(feature = "redis")]
    Bundled {
        name: "redis",
        about: "Redis keys under one prefix, every operation one script, synced at once; needs a server",
        url_variable: Some(redis::URL_VARIABLE),
        check: redis::check,
        make: redis::subject,
    },
];

/// The bundled store `name`; `None` where this build bundles no such store.
#[must_use]
pub fn bundled(name: &str) -> Option<&'static Bundled> {
    STORES.iter().find(|store| store.name == name)
}

/// What every store here says of itself, beside what it declares.
fn manifest(name: &str, capabilities: Capabilities) -> Manifest {
    Manifest {
        protocol: PROTOCOL.to_owned(),
        kit: KIT.to_owned(),
        subject: Identity {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language: Some("rust".to_owned()),
            homepage: None,
        },
        pid: Some(u64::from(std::process::id())),
        capabilities,
        faces: Vec::new(),
        limits: Limits::default(),
        server: None,
    }
}

/// What all stores here declare: a mailbox with every optional method, on the caller's clock.
fn mailbox_capabilities() -> Capabilities {
    Capabilities {
        mailbox: true,
        tenancy: true,
        peek: true,
        release: true,
        renew: true,
        clock: Clock::Caller,
        ..Capabilities::default()
    }
}
