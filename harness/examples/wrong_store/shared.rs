//! A pretended store over files: around each operation its storage is read from a file under a kernel
//! lock and written back, so that several processes share it. In a gap the lock is let go.

use std::fs::{File, OpenOptions};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use storeproof_contract::backend::Manifest;
use storeproof_contract::json::Json;
use storeproof_contract::mailbox::model::State;
use storeproof_contract::mailbox::store::{
    Address, ClaimAsk, Delivery, LeaseId, MailboxStore, Message, Millis, Seq, Tombstones,
};
use storeproof_contract::sim::Make;
use storeproof_contract::subject::{Opened, Reply, Store, StoreError, Subject};
use storeproof_contract::world::{Clockwork, Gap, World};

/// The longest gap, in microseconds: long enough for another process to act in it. Each is drawn, so
/// that two processes do not fall into step.
const GAP_US_MAX: u64 = 4_000;

/// The storage that is locked.
type Held = Arc<Mutex<Option<Locked>>>;

struct Locked {
    lock: File,
    name: String,
    state: Arc<Mutex<State>>,
}

/// The subject that `make` makes, over files in this process's temp folder.
pub fn subject(make: Make) -> Box<dyn Subject> {
    let held: Held = Arc::default();
    let in_gap = {
        let held = Arc::clone(&held);
        Arc::new(move || {
            // A failure here would be one of the test's own machine; the store then answers from memory.
            let _ = let_go(&held).and_then(|locked| {
                std::thread::sleep(Duration::from_micros(fastrand::u64(..GAP_US_MAX)));
                locked.map_or(Ok(()), |Locked { name, state, .. }| take(&held, &name, state))
            });
            Gap::Over
        })
    };
    let prefix = std::env::temp_dir().join(format!("wrong-{}", std::process::id()));
    let world = World::new(Clockwork::Caller)
        .with_gap(in_gap)
        .with_processes_from(u64::from(std::process::id()))
        .with_prefix(&prefix.to_string_lossy());
    Box::new(Shared { inner: make(world.clone()), world, held })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the storage and reads it from its file.
fn take(held: &Held, name: &str, state: Arc<Mutex<State>>) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(lock_of(name))?;
    file.lock()?;
    let text = std::fs::read(name)?;
    if !text.is_empty() {
        *lock(&state) = serde_json::from_slice(&text)?;
    }
    *lock(held) = Some(Locked { lock: file, name: name.to_owned(), state });
    Ok(())
}

/// Writes the storage to its file, by rename so that a kill leaves the old or the new one, and lets go.
fn let_go(held: &Held) -> io::Result<Option<Locked>> {
    let Some(locked) = lock(held).take() else { return Ok(None) };
    let text = serde_json::to_vec(&*lock(&locked.state))?;
    let new = format!("{}.new", locked.name);
    std::fs::write(&new, text)?;
    std::fs::rename(new, &locked.name)?;
    locked.lock.unlock()?;
    Ok(Some(locked))
}

fn lock_of(name: &str) -> String {
    format!("{name}.lock")
}

fn broken(error: &io::Error) -> StoreError {
    StoreError::Broken(error.to_string())
}

struct Shared {
    inner: Box<dyn Subject>,
    world: World,
    held: Held,
}

impl Shared {
    fn store(&self, inner: Box<dyn Store>, name: &str) -> Box<dyn Store> {
        let (world, held) = (self.world.clone(), Arc::clone(&self.held));
        Box::new(SharedStore { inner, world, held, name: name.to_owned() })
    }
}

impl Subject for Shared {
    fn manifest(&self) -> Manifest {
        Manifest { pid: Some(u64::from(std::process::id())), ..self.inner.manifest() }
    }

    fn open(&mut self) -> Reply<Opened> {
        let opened = self.inner.open()?;
        let name = opened.location.as_ref().and_then(Json::as_str).unwrap_or_default().to_owned();
        File::create(&name)
            .and_then(|_| File::create(lock_of(&name)))
            .map_err(|error| broken(&error))?;
        Ok(Opened { store: self.store(opened.store, &name), ..opened })
    }

    fn attach(&mut self, location: &Json) -> Reply<Box<dyn Store>> {
        let name = location.as_str().unwrap_or_default();
        if self.world.find::<State>(name).is_none() {
            self.world.put(name, State::default());
        }
        // What happens to a storage when it is attached to happens to the shared one.
        let state = self.world.find::<State>(name).unwrap_or_default();
        take(&self.held, name, state).map_err(|error| broken(&error))?;
        let attached = self.inner.attach(location);
        let_go(&self.held).map_err(|error| broken(&error))?;
        Ok(self.store(attached?, name))
    }

    fn destroy(&mut self, location: &Json) -> Reply<()> {
        let name = location.as_str().unwrap_or_default();
        std::fs::remove_file(name)
            .and_then(|()| std::fs::remove_file(lock_of(name)))
            .map_err(|error| broken(&error))?;
        self.inner.destroy(location)
    }
}

struct SharedStore {
    inner: Box<dyn Store>,
    world: World,
    held: Held,
    name: String,
}

impl SharedStore {
    /// One operation on the storage as its file has it.
    fn within<T>(&mut self, act: impl FnOnce(&mut dyn Store) -> Reply<T>) -> Reply<T> {
        let state = self.world.find::<State>(&self.name).unwrap_or_default();
        take(&self.held, &self.name, state).map_err(|error| broken(&error))?;
        let reply = act(self.inner.as_mut());
        let_go(&self.held).map_err(|error| broken(&error))?;
        if self.world.take_hang() {
            loop {
                std::thread::park();
            }
        }
        reply
    }

    fn mail<T>(&mut self, act: impl FnOnce(&mut dyn MailboxStore) -> Reply<T>) -> Reply<T> {
        self.within(|store| act(store.mailbox().ok_or(StoreError::Missing)?))
    }
}

impl Store for SharedStore {
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        Some(self)
    }
    fn tombstones(&mut self) -> Option<&mut dyn Tombstones> {
        Some(self)
    }
    fn close(&mut self) -> Reply<()> {
        self.within(|store| store.close())
    }
}

impl MailboxStore for SharedStore {
    fn append(&mut self, to: &Address, body: &Json, now: Millis) -> Reply<Seq> {
        self.mail(|store| store.append(to, body, now))
    }
    fn claim(&mut self, from: &Address, ask: &ClaimAsk, now: Millis) -> Reply<Option<Delivery>> {
        self.mail(|store| store.claim(from, ask, now))
    }
    fn ack(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        up_to: Seq,
        now: Millis,
    ) -> Reply<u64> {
        self.mail(|store| store.ack(of, owner, lease, up_to, now))
    }
    fn release(&mut self, of: &Address, owner: &str, lease: &LeaseId, now: Millis) -> Reply<()> {
        self.mail(|store| store.release(of, owner, lease, now))
    }
    fn renew(
        &mut self,
        of: &Address,
        owner: &str,
        lease: &LeaseId,
        ttl_ms: i64,
        now: Millis,
    ) -> Reply<()> {
        self.mail(|store| store.renew(of, owner, lease, ttl_ms, now))
    }
    fn peek(&mut self, of: &Address, now: Millis) -> Reply<Vec<Message>> {
        self.mail(|store| store.peek(of, now))
    }
    fn reap(&mut self, now: Millis) -> Reply<()> {
        self.mail(|store| store.reap(now))
    }
    fn drop_box(&mut self, of: &Address, now: Millis) -> Reply<u64> {
        self.mail(|store| store.drop_box(of, now))
    }
}

impl Tombstones for SharedStore {
    fn tombstone(&mut self, of: &Address, now: Millis) -> Reply<()> {
        self.within(|store| store.tombstones().ok_or(StoreError::Missing)?.tombstone(of, now))
    }
}
