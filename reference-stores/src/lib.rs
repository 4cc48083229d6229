//! Baselines: mailbox stores that keep the whole contract, one feature each.
//!
//! They are what a store author can read after the spec, what `storeproof serve` offers, and what the
//! bench is checked on. They have no private door: the bench judges them through the same traits and
//! the same wire as a stranger's store. Each `mod.rs` says what its store does **not** promise.
#![deny(missing_docs)]
#![cfg_attr(
    not(any(feature = "memory", feature = "jsonl", feature = "sqlite")),
    allow(dead_code, reason = "a build that bundles no store has no use for their common rules")
)]

mod arguments;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod folder;
#[cfg(feature = "jsonl")]
pub mod jsonl;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::path::Path;
use storeproof_contract::backend::{Capabilities, Clock, Identity, Limits, Manifest};
use storeproof_contract::subject::Subject;
use storeproof_contract::{KIT, PROTOCOL};

/// A bundled store: its name on the command line, what it is, and how to make one.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Its name, as `certify` and `serve` take it.
    pub name: &'static str,
    /// What it is, as one sentence.
    pub about: &'static str,
    /// Makes the subject; its storages live below the folder, if it keeps any files at all.
    pub make: fn(&Path) -> Box<dyn Subject>,
}

/// Every store that this build bundles, in the order of lists and reports.
pub const STORES: &[Bundled] = &[
    #[cfg(feature = "memory")]
    Bundled {
        name: "memory",
        about: "a plain map in the process's memory; lives and dies with its handle",
        make: |_base| memory::subject(),
    },
    #[cfg(feature = "jsonl")]
    Bundled {
        name: "jsonl",
        about: "an append-only log of JSON lines under a kernel file lock, compacted by atomic rename",
        make: |base| jsonl::subject(base.to_path_buf()),
    },
    #[cfg(feature = "sqlite")]
    Bundled {
        name: "sqlite",
        about: "one SQLite database, every write its own immediate transaction",
        make: |base| sqlite::subject(base.to_path_buf()),
    },
];

/// The bundled store `name`, its storages below `base`; `None` where this build bundles no such store.
#[must_use]
pub fn subject(name: &str, base: &Path) -> Option<Box<dyn Subject>> {
    STORES.iter().find(|store| store.name == name).map(|store| (store.make)(base))
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
