//! `jsonl`: an append-only log of events, one JSON record a line, in one folder per storage.
//!
//! The folder holds `lock` (a kernel lock is taken on it around every operation; it is never deleted
//! while the storage exists, so two owners can never hold locks on two files of that name) and
//! `log.jsonl`. All boxes share the one log, so no name ever becomes a path. Nothing is cached beyond
//! the lock: each operation first reads what others have appended since, and starts over where the log
//! was replaced by a compaction (`log.rs`).
//!
//! **What each sync promises.** A record is written by one write and synced before the operation
//! answers: a receipt, a lease, an ack is on disk before anybody hears of it. What another process
//! wrote is synced before an answer rests on it, since that process may have been killed between its
//! write and its sync. A compaction is written aside, synced, renamed over the log, and the folder
//! synced; a process that finds a replaced log syncs the folder too, for the same reason. So a kill at
//! any instruction leaves either the old log or the new one, whole, with at most one record at its end
//! that nobody was told of: an incomplete one is cut off, a complete one that only lacks its newline
//! is kept.
//!
//! **It does not promise**
//! - anything on a disk that answers a sync before the bytes are safe, or on a file system without
//!   working `flock` (some network mounts);
//! - to notice a flipped bit that leaves a record well formed and in sequence: lines carry no checksum;
//! - to guess. A line it cannot read, or a record that cannot follow the ones before, stops every
//!   operation with the file, line and byte named, until a person has looked. The same goes for a
//!   last line that a loss of power filled with garbage up to its newline;
//! - progress while a live process holds the lock: it waits, however long, rather than break a lock;
//! - small memory: all pending messages are held in each process, and attaching reads the whole log;
//! - fairness between processes, or sense where the caller's `now` goes back;
//! - to run where files have no inode numbers (it is for Unix).

mod log;
mod mailbox;
mod record;
mod state;

use crate::arguments::closed;
use crate::folder::Layout;
use crate::{mailbox_capabilities, manifest};
use log::{Locked, Log};
use std::path::PathBuf;
use storeproof_contract::backend::{Capabilities, Manifest};
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::store::MailboxStore;
use storeproof_contract::subject::{Opened, Reply, Store, Subject};

/// The file that the kernel lock is taken on.
const LOCK: &str = "lock";
/// The log.
const LOG: &str = "log.jsonl";
/// A compaction in the making; what a killed process left of it is overwritten by the next one.
const LOG_NEW: &str = "log.jsonl.new";

const LAYOUT: Layout = Layout { store: "jsonl", prefix: "jsonl-", files: &[LOCK, LOG, LOG_NEW] };

/// The subject; its storages are folders below `base`.
#[must_use]
pub fn subject(base: PathBuf) -> Box<dyn Subject> {
    Box::new(JsonlSubject { base })
}

struct JsonlSubject {
    base: PathBuf,
}

impl Subject for JsonlSubject {
    fn manifest(&self) -> Manifest {
        let capabilities =
            Capabilities { durable: true, cross_process_safe: true, ..mailbox_capabilities() };
        manifest("jsonl", capabilities)
    }

    fn open(&mut self) -> Reply<Opened> {
        let storage = LAYOUT.create(&self.base)?;
        let log = Log::create(&storage.folder, &storage.name)?;
        Ok(Opened {
            store: Box::new(JsonlStore { log: Some(log) }),
            location: Some(LAYOUT.location(&storage.root)),
            root: Some(storage.root),
        })
    }

    fn attach(&mut self, location: &Json) -> Reply<Box<dyn Store>> {
        let log = Log::attach(&LAYOUT.named(location)?)?;
        Ok(Box::new(JsonlStore { log: Some(log) }))
    }

    fn destroy(&mut self, location: &Json) -> Reply<()> {
        LAYOUT.destroy(&self.base, location)
    }
}

/// One open handle; without a log once it was closed.
struct JsonlStore {
    log: Option<Log>,
}

impl JsonlStore {
    /// The log under its lock, with everything in view that any process has appended.
    fn locked(&mut self) -> Reply<Locked<'_>> {
        self.open_log()?.locked()
    }

    fn open_log(&mut self) -> Reply<&mut Log> {
        self.log.as_mut().ok_or_else(closed)
    }
}

impl Store for JsonlStore {
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        Some(self)
    }

    fn close(&mut self) -> Reply<()> {
        // Every answer was synced when it was given, so there is nothing left to flush.
        self.log = None;
        Ok(())
    }
}
