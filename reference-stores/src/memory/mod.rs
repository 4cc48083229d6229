//! `memory`: a plain map in the memory of one process.
//!
//! **It does not promise**
//! - that anything survives its handle: there is no location, nothing to attach to, and close frees all;
//! - anything to a second handle or a second process: each open makes its own storage;
//! - a bound on memory: an emptied box keeps its seq counter for as long as the store is open;
//! - sense where the caller's `now` goes back: leases are judged by the `now` of each call.

mod mailbox;

use crate::{mailbox_capabilities, manifest};
use mailbox::Boxes;
use storeproof_contract::backend::Manifest;
use storeproof_contract::mailbox::store::MailboxStore;
use storeproof_contract::subject::{Opened, Reply, Store, Subject};

/// The subject.
#[must_use]
pub fn subject() -> Box<dyn Subject> {
    Box::new(MemorySubject)
}

struct MemorySubject;

impl Subject for MemorySubject {
    fn manifest(&self) -> Manifest {
        manifest("memory", mailbox_capabilities())
    }

    fn open(&mut self) -> Reply<Opened> {
        let store = MemoryStore { boxes: Some(Boxes::default()) };
        Ok(Opened { store: Box::new(store), location: None, root: None })
    }
}

/// One open store; without boxes once it was closed.
struct MemoryStore {
    boxes: Option<Boxes>,
}

impl Store for MemoryStore {
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        Some(self)
    }

    fn close(&mut self) -> Reply<()> {
        self.boxes = None;
        Ok(())
    }
}
