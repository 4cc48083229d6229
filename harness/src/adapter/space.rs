//! What all subjects of one run share: the scratch folder, the clock, and the flag of Ctrl-C.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use storeproof_contract::call::{Fault, FaultKind};

/// The longest time between two looks at the flag of Ctrl-C.
pub(super) const SLICE: Duration = Duration::from_millis(100);

/// One run's scratch folder, clock and interruption flag; every child holds on to it, and when the last
/// one lets go the folder is removed with all it holds.
#[derive(Debug)]
pub struct RunSpace {
    folder: PathBuf,
    clock: RunClock,
    interrupted: Arc<AtomicBool>,
    children: AtomicU64,
}

impl RunSpace {
    /// A fresh scratch folder, with the clock started now. Set `interrupted` to end every wait.
    ///
    /// # Errors
    /// The machine's, where no folder can be made.
    pub fn create(interrupted: Arc<AtomicBool>) -> io::Result<Arc<Self>> {
        let folder = tempfile::Builder::new().prefix("storeproof-").tempdir()?.keep();
        // Canonical, so that a path built from TMPDIR means the same with and without `..`.
        let folder = fs::canonicalize(&folder).unwrap_or(folder);
        let clock = RunClock::start();
        Ok(Arc::new(Self { folder, clock, interrupted, children: AtomicU64::new(0) }))
    }

    /// The scratch folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run's clock.
    #[must_use]
    pub fn clock(&self) -> RunClock {
        self.clock
    }

    /// Whether the run is to end.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// A fresh folder for one child. It outlives the child, whose stores may be attached to again.
    pub(super) fn child_folder(&self) -> io::Result<PathBuf> {
        let number = self.children.fetch_add(1, Ordering::Relaxed) + 1;
        let folder = self.folder.join(format!("c{number}"));
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

impl Drop for RunSpace {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.folder).is_err() {
            open_folders(&self.folder);
            // Nobody is left to tell; whatever stays is in the machine's temp folder.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Makes every folder below `folder` removable; a store may have locked its own out.
fn open_folders(folder: &Path) {
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
}

/// Epoch milliseconds that never go back: the wall's time when the run began, moved on by the
/// machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    started_ms: u64,
    started: Instant,
}

impl RunClock {
    /// A clock that starts at the wall's time.
    #[must_use]
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { started_ms, started: Instant::now() }
    }

    /// The epoch millisecond.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.started_ms.saturating_add(passed)
    }
}

/// How long all waits for the wall clock in one clause may take together.
pub const CLAUSE_WAIT_S_MAX: u64 = 1_800;

/// Lets time pass by `idle`, in slices, until the run's clock shows `until_ms`; adds it to `waited`.
pub(super) fn wait_until(
    space: &RunSpace,
    waited: &mut Duration,
    until_ms: u64,
    mut idle: impl FnMut(Duration),
) -> Result<(), Fault> {
    let limit = Duration::from_secs(CLAUSE_WAIT_S_MAX);
    loop {
        let left = Duration::from_millis(until_ms.saturating_sub(space.clock().now_ms()));
        if left.is_zero() {
            return Ok(());
        }
        if space.is_interrupted() {
            return Err(Fault::new(FaultKind::Interrupted, "the run was interrupted"));
        }
        if *waited + left > limit {
            let message = format!(
                "the clause has waited {waited:?} for the wall clock and wants {left:?} more; \
                 the limit is {limit:?}"
            );
            return Err(Fault::new(FaultKind::Limit, message));
        }
        let before = Instant::now();
        idle(left.min(SLICE));
        *waited += before.elapsed();
    }
}

/// Sixteen hex digits that nobody can guess: std seeds its hashers from the machine's randomness.
pub(super) fn token() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}
