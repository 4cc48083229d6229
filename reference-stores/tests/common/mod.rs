//! What the tests share: a store in a folder of its own, with as many handles as a test needs.
#![allow(dead_code, reason = "every test binary uses its own part of this")]

use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq,
};
use storeproof_contract::subject::{Reply, Store, StoreError, Subject};
use storeproof_reference_stores::{Bundled, Place, bundled};
use tempfile::TempDir;

/// Where time starts in the tests, and where it mostly stays.
pub const NOW: Millis = Millis(1_000_000);

/// A durable store, its base folder and its one storage.
pub struct Fixture {
    pub base: TempDir,
    pub subject: Box<dyn Subject>,
    pub location: Value,
    /// The storage's folder; empty where a server keeps it.
    pub root: PathBuf,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Files go with their folder; a server would keep everything.
        if self.root.as_os_str().is_empty() {
            let _: Reply<()> = self.subject.destroy(&self.location);
        }
    }
}

/// The place of a test's storages.
pub fn place(store: &Bundled, base: &Path) -> Place {
    let url = store.url_variable.and_then(|variable| std::env::var(variable).ok());
    Place { base: base.to_path_buf(), url }
}

/// A subject of the bundled store `name`.
pub fn subject(name: &str, base: &Path) -> Box<dyn Subject> {
    let store = bundled(name).expect("a bundled store");
    (store.make)(&place(store, base))
}

/// Whether the test says where the server of the store `name` is; says loudly that a test does not run
/// with it where not, and fails where all tests must run.
pub fn has_server(name: &str) -> bool {
    let Some(variable) = bundled(name).and_then(|store| store.url_variable) else { return true };
    if std::env::var_os(variable).is_some() {
        return true;
    }
    assert!(
        std::env::var_os("STOREPROOF_ALL_TESTS").is_none(),
        "{variable} is not set, and STOREPROOF_ALL_TESTS is; eval \"$(scripts/services start)\""
    );
    // In one piece: other tests say the same meanwhile.
    let told = format!(
        "\n*** NOT RUN with {name}: {variable} is not set; eval \"$(scripts/services start)\" ***\n"
    );
    let _ = std::io::stderr().write_all(told.as_bytes());
    false
}

/// Those of these stores that can run here.
pub fn running(names: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    names.iter().copied().filter(|name| has_server(name))
}

/// One open handle: its own file descriptors, as another process would have.
pub struct Handle(pub Box<dyn Store>);

/// A folder in memory where the system has one: these tests are about what is written, and a disk's
/// thousands of syncs would only make them slow. `contract.rs` runs on the real disk.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder for the test")
}

/// A fresh storage of the store `name`, with a first handle on it.
pub fn fixture(name: &str) -> (Fixture, Handle) {
    let base = scratch();
    let mut subject = subject(name, base.path());
    let opened = subject.open().expect("open");
    let location = opened.location.expect("a durable store has a location");
    let root = opened.root.map(PathBuf::from).unwrap_or_default();
    (Fixture { base, subject, location, root }, Handle(opened.store))
}

impl Fixture {
    pub fn attach(&mut self) -> Handle {
        self.try_attach().expect("attach")
    }

    pub fn try_attach(&mut self) -> Reply<Handle> {
        self.subject.attach(&self.location).map(Handle)
    }

    pub fn log(&self) -> PathBuf {
        self.root.join("log.jsonl")
    }
}

impl Handle {
    pub fn mailbox(&mut self) -> &mut dyn MailboxStore {
        self.0.mailbox().expect("a mailbox store")
    }

    pub fn append(&mut self, handle: &str, body: impl Into<Value>) -> u64 {
        self.mailbox().append(&at(handle), &body.into(), NOW).expect("append").0
    }

    pub fn claim(&mut self, handle: &str, owner: &str) -> Option<Delivery> {
        self.mailbox().claim(&at(handle), &ask(owner), NOW).expect("claim")
    }

    pub fn ack(&mut self, handle: &str, owner: &str, lease: &LeaseId, up_to: u64) -> u64 {
        self.mailbox().ack(&at(handle), owner, lease, Seq(up_to), NOW).expect("ack")
    }

    pub fn ack_all(&mut self, handle: &str) {
        let delivery = self.claim(handle, "acker").expect("something to ack");
        let last = delivery.messages.last().expect("never empty").seq;
        self.ack(handle, "acker", &delivery.lease, last.0);
    }

    pub fn peek(&mut self, handle: &str) -> Vec<(u64, Value)> {
        pairs(self.mailbox().peek(&at(handle), NOW).expect("peek"))
    }

    pub fn reap(&mut self) {
        self.mailbox().reap(NOW).expect("reap");
    }

    pub fn drop_box(&mut self, handle: &str) -> u64 {
        self.mailbox().drop_box(&at(handle), NOW).expect("drop")
    }
}

pub fn pairs(messages: Vec<Message>) -> Vec<(u64, Value)> {
    messages.into_iter().map(|message| (message.seq.0, message.body)).collect()
}

pub fn at(handle: &str) -> Address {
    Address::new("default", handle)
}

pub fn ask(owner: &str) -> ClaimAsk {
    ClaimAsk { owner: owner.to_owned(), ttl_ms: 60_000, max: None }
}

pub fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("read")
}

pub fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("write");
}

/// The breakdown's message; anything else is not loud enough.
pub fn breakdown<T>(reply: Reply<T>) -> String {
    match reply {
        Err(StoreError::Broken(message)) => message,
        Err(StoreError::Refused { reason, .. }) => panic!("a refusal ({reason}), no breakdown"),
        Err(StoreError::Missing) => panic!("a missing method, no breakdown"),
        Ok(_) => panic!("an answer, no breakdown"),
    }
}

/// The refusal's reason code.
pub fn refusal<T>(reply: Reply<T>) -> String {
    match reply {
        Err(StoreError::Refused { reason, .. }) => reason.into_owned(),
        Err(StoreError::Broken(message)) => panic!("a breakdown, no refusal: {message}"),
        Err(StoreError::Missing) => panic!("a missing method, no refusal"),
        Ok(_) => panic!("an answer, no refusal"),
    }
}
