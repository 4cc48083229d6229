//! What is on disk before and after an operation, and the states that lie between.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use storeproof_contract::call::{Fault, FaultKind};

/// The largest root that is copied, in bytes.
const ROOT_BYTES_MAX: u64 = 16 << 20;
/// The most files in it.
const FILES_MAX: usize = 256;
/// The most cuts of one file; more added bytes than that are cut at evenly spread places.
const CUTS_MAX: usize = 160;

/// A file as a copy has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    bytes: Vec<u8>,
    inode: u64,
    changed_ns: i128,
}

/// A root's files by their place below it, and its folders, of which a state may need empty ones.
#[derive(Default)]
pub(super) struct Root {
    pub files: Files,
    pub folders: BTreeSet<PathBuf>,
}

/// Files as they were seen.
pub(super) type Files = BTreeMap<PathBuf, Seen>;

/// What may become of one file in a crash.
enum Change {
    /// It grew by appending; from so many bytes.
    Grew(usize),
    /// Another file took its name.
    Replaced,
    /// It changed in place.
    InPlace,
    /// It went away.
    Gone,
}

/// One crash state: every variant of it holds the cut; what else changed is as before, or as after.
pub(super) struct State {
    pub words: String,
    pub variants: Vec<BTreeMap<PathBuf, Vec<u8>>>,
}

/// Every state between two looks at a root.
pub(super) fn states(before: &Files, after: &Files) -> Vec<State> {
    let changes = changes(before, after);
    let bytes = |root: &Files| -> BTreeMap<PathBuf, Vec<u8>> {
        root.iter().map(|(path, seen)| (path.clone(), seen.bytes.clone())).collect()
    };
    let (all_before, all_after) = (bytes(before), bytes(after));
    let mut states = Vec::new();
    for (path, change) in &changes {
        let Change::Grew(from) = change else { continue };
        let whole = &after[path].bytes;
        for cut in cuts(*from, whole.len()) {
            let variants = [&all_before, &all_after].map(|others| {
                let mut files = others.clone();
                files.insert(path.clone(), whole[..cut].to_vec());
                files
            });
            let words = format!(
                "{} cut at byte {cut}, of {from} before and {} after the operation",
                path.display(),
                whole.len()
            );
            states.push(State { words, variants: variants.into() });
        }
    }
    states.extend(replacements(&changes, &all_before, &all_after, after));
    states
}

/// Each prefix of the replacements and removals, in the order in which they were made.
fn replacements(
    changes: &BTreeMap<PathBuf, Change>,
    all_before: &BTreeMap<PathBuf, Vec<u8>>,
    all_after: &BTreeMap<PathBuf, Vec<u8>>,
    after: &Files,
) -> Vec<State> {
    let is_one = |change: &Change| matches!(change, Change::Replaced | Change::Gone);
    let mut renamed: Vec<&PathBuf> =
        changes.iter().filter(|(_, change)| is_one(change)).map(|(path, _)| path).collect();
    renamed.sort_by_key(|path| after.get(*path).map_or(i128::MAX, |seen| seen.changed_ns));
    let mut states = Vec::new();
    for count in 0..renamed.len() {
        let variants = [all_before, all_after].map(|others| {
            let mut files = others.clone();
            for (at, path) in renamed.iter().enumerate() {
                let side = if at < count { all_after } else { all_before };
                match side.get(*path) {
                    Some(bytes) => files.insert((*path).clone(), bytes.clone()),
                    None => files.remove(*path),
                };
            }
            files
        });
        let words = format!("{count} of {} replaced or removed files", renamed.len());
        states.push(State { words, variants: variants.into() });
    }
    states
}

fn changes(before: &Files, after: &Files) -> BTreeMap<PathBuf, Change> {
    let mut changes = BTreeMap::new();
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let change = match (before.get(path), after.get(path)) {
            (Some(old), Some(new)) if old.bytes == new.bytes && old.inode == new.inode => continue,
            (Some(old), Some(new)) if old.inode != new.inode => Change::Replaced,
            (Some(old), Some(new)) if new.bytes.starts_with(&old.bytes) => {
                Change::Grew(old.bytes.len())
            }
            (Some(_), Some(_)) => Change::InPlace,
            (None, Some(_)) => Change::Grew(0),
            (Some(_), None) => Change::Gone,
            (None, None) => continue,
        };
        changes.insert(path.clone(), change);
    }
    changes
}

/// The places at which what was added is cut: none of it, all but the last byte, and all between.
fn cuts(from: usize, to: usize) -> Vec<usize> {
    let added = to - from;
    if added <= CUTS_MAX {
        return (from..to).collect();
    }
    (0..CUTS_MAX).map(|i| from + i * added / CUTS_MAX).collect()
}

/// The files below a root; `None` where they are too many or too large.
pub(super) fn look(root: &Path) -> Result<Option<Root>, Fault> {
    let mut found = Root::default();
    let (mut waiting, mut total) = (vec![root.to_path_buf()], 0);
    while let Some(folder) = waiting.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|error| machine("cannot list", &folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| machine("cannot list", &folder, &error))?;
            let path = entry.path();
            let meta = match fs::symlink_metadata(&path) {
                Ok(meta) => meta,
                // It went away between the two looks.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(machine("cannot look at", &path, &error)),
            };
            let below = path.strip_prefix(root).unwrap_or(&path).to_owned();
            if meta.is_dir() {
                found.folders.insert(below);
                waiting.push(path);
                continue;
            }
            total += meta.len();
            if !meta.is_file() || total > ROOT_BYTES_MAX || found.files.len() == FILES_MAX {
                return Ok(None);
            }
            let bytes = fs::read(&path).map_err(|error| machine("cannot read", &path, &error))?;
            let changed_ns =
                i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
            found.files.insert(below, Seen { bytes, inode: meta.ino(), changed_ns });
        }
    }
    Ok(Some(found))
}

pub(super) fn write(
    folder: &Path,
    folders: &BTreeSet<PathBuf>,
    files: &BTreeMap<PathBuf, Vec<u8>>,
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for below in folders {
        fs::create_dir_all(folder.join(below))?;
    }
    for (path, bytes) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(())
}

pub(super) fn machine(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(FaultKind::Bench, format!("{what} {}: {error}", path.display()))
}
