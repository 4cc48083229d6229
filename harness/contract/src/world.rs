//! What a pretended store lives in: a clock, the storages that its processes share, and the gaps in
//! which another process may act or this one be killed.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where simulated wall time starts: an arbitrary epoch millisecond.
const START_MS: u64 = 1_700_000_000_000;

/// A wall clock that only the simulation moves.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<AtomicU64>);

impl SimClock {
    /// A clock at the simulation's start.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(START_MS)))
    }

    /// The simulated epoch millisecond.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn advance_to(&self, ms: u64) {
        self.0.fetch_max(ms, Ordering::Relaxed);
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Which clock a simulated store lives by.
#[derive(Clone, Debug)]
pub enum Clockwork {
    /// The `now` of each call.
    Caller,
    /// The simulated wall clock.
    Wall(SimClock),
}

/// How a process leaves a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// It goes on.
    Over,
    /// It is killed there.
    Killed,
}

/// What happens in gaps.
pub type InGap = Arc<dyn Fn() -> Gap + Send + Sync>;

/// The storages of one world by name, whatever a family keeps in them.
type Shelf = BTreeMap<String, Arc<dyn Any + Send + Sync>>;

/// What all processes of one pretended subject share.
#[derive(Clone)]
pub struct World {
    /// The clock that judges leases.
    pub clock: Clockwork,
    shelf: Arc<Mutex<Shelf>>,
    /// How the names of storages opened here begin.
    prefix: Arc<str>,
    opened: Arc<AtomicU64>,
    processes: Arc<AtomicU64>,
    gap: InGap,
    hangs: Arc<AtomicBool>,
}

impl World {
    /// A world of its own, in whose gaps nothing happens.
    #[must_use]
    pub fn new(clock: Clockwork) -> Self {
        Self {
            clock,
            shelf: Arc::default(),
            prefix: "storage".into(),
            opened: Arc::default(),
            processes: Arc::default(),
            gap: Arc::new(|| Gap::Over),
            hangs: Arc::default(),
        }
    }

    /// The same world with something happening in its gaps.
    #[must_use]
    pub fn with_gap(mut self, gap: InGap) -> Self {
        self.gap = gap;
        self
    }

    /// The same world with other names for its storages, for processes that do not share a memory.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The same world counting its processes from `number`, for those that do not share a memory.
    #[must_use]
    pub fn with_processes_from(mut self, number: u64) -> Self {
        self.processes = Arc::new(AtomicU64::new(number));
        self
    }

    /// The number of one more process.
    #[must_use]
    pub fn new_process(&self) -> u64 {
        self.processes.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets others act, in the middle of an operation.
    #[must_use]
    pub fn gap(&self) -> Gap {
        (self.gap)()
    }

    /// The operation under way will never answer.
    pub fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    /// Whether the last operation was one that never answers.
    #[must_use]
    pub fn take_hang(&self) -> bool {
        self.hangs.swap(false, Ordering::Relaxed)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a fresh storage on the shelf and answers its name.
    pub fn add<S: Any + Send>(&self, storage: S) -> (String, Arc<Mutex<S>>) {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("{}-{number}", self.prefix);
        let storage = self.put(&name, storage);
        (name, storage)
    }

    /// Puts a storage on the shelf under a name that another process gave it.
    pub fn put<S: Any + Send>(&self, name: &str, storage: S) -> Arc<Mutex<S>> {
        let storage = Arc::new(Mutex::new(storage));
        self.shelf().insert(name.to_owned(), Arc::clone(&storage) as Arc<dyn Any + Send + Sync>);
        storage
    }

    /// The storage of that name.
    #[must_use]
    pub fn find<S: Any + Send>(&self, name: &str) -> Option<Arc<Mutex<S>>> {
        let found = self.shelf().get(name).cloned()?;
        found.downcast().ok()
    }

    /// Takes a storage from the shelf.
    pub fn remove(&self, name: &str) {
        self.shelf().remove(name);
    }

    /// Every storage of this kind with its name.
    #[must_use]
    pub fn all<S: Any + Send>(&self) -> Vec<(String, Arc<Mutex<S>>)> {
        let shelf = self.shelf();
        shelf
            .iter()
            .filter_map(|(name, it)| Some((name.clone(), Arc::clone(it).downcast().ok()?)))
            .collect()
    }
}
