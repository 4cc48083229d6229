//! Snares for `.no-escape`: canaries at places that belong to no store, and the names by which a store
//! that builds paths from names would reach them.
//!
//! What it does not see: what a store does to files that no laid name points at, or inside its root.

use super::space::token;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use storeproof_contract::call::{Fault, FaultKind};

/// The most entries of a watched folder that are looked at.
const ENTRIES_MAX: usize = 1_000_000;

/// The canaries of one clause. Dropping or clearing it removes them, and what the snares caught.
#[derive(Debug)]
pub struct Snares {
    folder: PathBuf,
    laid: Vec<Laid>,
}

/// One watched folder.
#[derive(Debug)]
struct Laid {
    folder: PathBuf,
    /// What every name begins with that these snares could bring about, here or one folder up.
    token: String,
    canary: Option<Canary>,
    /// Where entries beginning with the token are looked for.
    watched: Vec<PathBuf>,
    /// Not judged, whatever happens in it.
    root: Option<PathBuf>,
}

#[derive(Debug)]
struct Canary {
    path: PathBuf,
    print: Print,
}

/// All that can be seen of a file from outside, but for when it was read.
#[derive(Debug, PartialEq, Eq)]
struct Print {
    content: Vec<u8>,
    inode: (u64, u64),
    mode: u32,
    owner: (u32, u32),
    links: u64,
    changed: (i64, i64),
}

impl Snares {
    /// Snares around `folder`, the subject's TMPDIR.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), laid: Vec::new() }
    }

    /// Lays canaries in the TMPDIR and beside `root`; answers the names that point at them.
    ///
    /// # Errors
    /// A fault where `root` is not an absolute path, or the TMPDIR takes no canary.
    pub fn lay(&mut self, root: Option<&str>) -> Result<Vec<String>, Fault> {
        let root = root.map(Path::new);
        if let Some(root) = root.filter(|root| !root.is_absolute()) {
            let message = format!("store/open answered a root that is not absolute: {root:?}");
            return Err(Fault::new(FaultKind::BadForm, message));
        }
        let real_root = root.map(|root| fs::canonicalize(root).unwrap_or_else(|_| root.into()));
        let mut places = BTreeSet::new();
        // `..` means the parent of what a link points at to the machine, but the folder of the link to
        // code that shortens paths as text: both are beside the root.
        for beside in [root.and_then(Path::parent), real_root.as_deref().and_then(Path::parent)] {
            places.extend(beside.and_then(|folder| fs::canonicalize(folder).ok()));
        }
        let tmp = fs::canonicalize(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let is_inside =
            |place: &Path| real_root.as_ref().is_some_and(|root| place.starts_with(root));
        let beside: Vec<_> =
            if root.is_some() { places.iter().cloned().collect() } else { vec![tmp.clone()] };
        places.insert(tmp.clone());
        let mut names = Vec::new();
        for place in places.into_iter().filter(|place| !is_inside(place)) {
            match Laid::new(&place, real_root.clone()) {
                Ok(laid) => {
                    names.extend(laid.names(beside.contains(&place)));
                    self.laid.push(laid);
                }
                Err(error) if place == tmp => {
                    let message = format!("no canary can be laid in {}: {error}", place.display());
                    return Err(Fault::new(FaultKind::Bench, message));
                }
                // A folder that not even the bench may look into.
                Err(_) => {}
            }
        }
        Ok(names)
    }

    /// What changed or appeared where the snares point, one sentence each with its path.
    ///
    /// # Errors
    /// A fault where a place cannot be looked at any more.
    pub fn sprung(&self) -> Result<Vec<String>, Fault> {
        let mut sprung = BTreeSet::new();
        for laid in &self.laid {
            sprung.extend(laid.canary.as_ref().and_then(Canary::told));
            for path in laid.appeared()? {
                sprung.insert(format!("{} appeared, outside the store's root", path.display()));
            }
        }
        Ok(sprung.into_iter().collect())
    }

    /// Removes the canaries, and what a store left at the places they watch.
    pub fn clear(&mut self) {
        for laid in self.laid.drain(..) {
            let caught = laid.appeared().unwrap_or_default();
            // Only what begins with the token, which nobody else can have made.
            for path in caught.iter().chain(laid.canary.as_ref().map(|canary| &canary.path)) {
                if fs::remove_file(path).is_err() {
                    let _ = fs::remove_dir_all(path);
                }
            }
        }
    }
}

impl Drop for Snares {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Laid {
    fn new(folder: &Path, root: Option<PathBuf>) -> std::io::Result<Self> {
        let token = format!("sp{}", token());
        let path = folder.join(format!("{token}c"));
        let canary = match fs::write(&path, format!("canary {token}\n")) {
            Ok(()) => Some(Canary { print: Print::of(&path)?, path }),
            // A folder that is not ours to write to takes no canary; what appears in it is seen.
            Err(_) if fs::read_dir(folder).is_ok() => None,
            Err(error) => return Err(error),
        };
        let parent = folder.parent().filter(|parent| fs::read_dir(parent).is_ok());
        let watched = std::iter::once(folder).chain(parent).map(Path::to_path_buf).collect();
        Ok(Self { folder: folder.to_path_buf(), token, canary, watched, root })
    }

    /// The ways in which a name can mean a file in this folder; relative ones where `is_beside`, which
    /// says that the folder is the root's parent as far as anybody knows.
    fn names(&self, is_beside: bool) -> Vec<String> {
        let canary = self.canary.is_some().then_some("c");
        let mut names = Vec::new();
        for kind in std::iter::once("m").chain(canary) {
            let name = format!("{}{kind}", self.token);
            let absolute = self.folder.join(&name).to_string_lossy().into_owned();
            names.extend([format!("{absolute}\u{0}x"), absolute]);
            if is_beside {
                let ups = ["../", "../../", "a/../../", "..\\", "....//", "..%2f"];
                names.extend(ups.iter().map(|up| format!("{up}{name}")));
                names.push(format!("../{name}\u{0}x"));
            }
        }
        names
    }

    /// New entries that begin with the token, in the watched folders.
    fn appeared(&self) -> Result<Vec<PathBuf>, Fault> {
        let mut found = Vec::new();
        for folder in &self.watched {
            let entries = fs::read_dir(folder).map_err(|error| {
                let message = format!("{} cannot be looked into: {error}", folder.display());
                Fault::new(FaultKind::Bench, message)
            })?;
            for entry in entries.flatten().take(ENTRIES_MAX) {
                let path = entry.path();
                let is_ours = entry.file_name().to_string_lossy().starts_with(&self.token);
                let is_canary = self.canary.as_ref().is_some_and(|canary| canary.path == path);
                let is_inside = self.root.as_ref().is_some_and(|root| path.starts_with(root));
                if is_ours && !is_canary && !is_inside {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }
}

impl Canary {
    fn told(&self) -> Option<String> {
        let path = self.path.display();
        match Print::of(&self.path) {
            Ok(print) if print == self.print => None,
            Ok(print) if print.content != self.print.content => {
                Some(format!("{path} has other content, outside the store's root"))
            }
            Ok(_) => Some(format!("{path} was changed or replaced, outside the store's root")),
            Err(_) => Some(format!("{path} is gone or no longer a file, outside the store's root")),
        }
    }
}

impl Print {
    fn of(path: &Path) -> std::io::Result<Self> {
        let meta = fs::symlink_metadata(path)?;
        if !meta.is_file() {
            return Err(std::io::Error::other("not a file"));
        }
        Ok(Self {
            content: fs::read(path)?,
            inode: (meta.dev(), meta.ino()),
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            links: meta.nlink(),
            changed: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        scratch: tempfile::TempDir,
        root: PathBuf,
        snares: Snares,
    }

    fn place() -> (Place, Vec<String>) {
        let scratch = tempfile::tempdir().expect("scratch folder");
        let root = scratch.path().join("elsewhere/store");
        fs::create_dir_all(&root).expect("root");
        fs::create_dir(scratch.path().join("tmp")).expect("tmp");
        let mut snares = Snares::new(&scratch.path().join("tmp"));
        let names = snares.lay(root.to_str()).expect("laid");
        (Place { scratch, root, snares }, names)
    }

    fn entries(folder: &Path) -> usize {
        walk(folder).len()
    }

    fn walk(folder: &Path) -> Vec<PathBuf> {
        let found: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().collect();
        let below = found.iter().filter(|entry| entry.path().is_dir());
        let below: Vec<PathBuf> = below.flat_map(|entry| walk(&entry.path())).collect();
        found.iter().map(fs::DirEntry::path).chain(below).collect()
    }

    #[test]
    fn a_store_that_joins_names_to_its_root_is_caught() {
        let (_, all) = place();
        let mut caught = 0;
        for number in 0..all.len() {
            for suffix in ["", ".json"] {
                let (mut place, names) = place();
                let before = entries(place.scratch.path());
                // What a C library makes of a NUL, and what sanitisers make of the disguises.
                let name = names[number].split('\0').next().unwrap_or_default();
                let name = name.replace('\\', "/").replace("%2f", "/").replace("....//", "../");
                fs::create_dir_all(place.root.join("a")).expect("a folder of the store's");
                let path = place.root.join(format!("{name}{suffix}"));
                assert_eq!(place.snares.sprung(), Ok(Vec::new()));
                fs::write(&path, "escaped").expect("a careless write");
                let sprung = place.snares.sprung().expect("looked");
                assert_eq!(sprung.len(), 1, "{name}{suffix}: {sprung:?}");
                caught += 1;
                place.snares.clear();
                assert!(entries(place.scratch.path()) <= before, "something of the snares is left");
                assert_eq!(place.snares.sprung(), Ok(Vec::new()), "cleared");
            }
        }
        assert!(caught >= 30, "{caught}");
    }

    #[test]
    fn a_canary_may_not_be_removed_replaced_or_changed() {
        let doings: [fn(&Path); 5] = [
            |path| fs::remove_file(path).expect("removed"),
            |path| fs::write(path, "other").expect("written"),
            |path| {
                fs::remove_file(path).expect("removed");
                fs::create_dir(path).expect("a folder instead");
            },
            |path| {
                let content = fs::read(path).expect("read");
                fs::write(path.with_extension("new"), content).expect("written");
                fs::rename(path.with_extension("new"), path).expect("replaced by its equal");
            },
            |path| {
                use std::os::unix::fs::PermissionsExt as _;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600 ^ 0o020)).expect("mode");
            },
        ];
        for (number, doing) in doings.into_iter().enumerate() {
            let (place, _) = place();
            let canary = place.snares.laid[number % 2].canary.as_ref().expect("a canary");
            doing(&canary.path);
            let sprung = place.snares.sprung().expect("looked");
            assert!(sprung.len() == 1, "{number}: {sprung:?}");
            assert!(sprung[0].starts_with(&*canary.path.to_string_lossy()), "{sprung:?}");
        }
    }

    #[test]
    fn what_happens_inside_the_root_and_to_other_files_is_not_judged() {
        let (place, names) = place();
        for name in &names {
            let flat = name.replace(['/', '\\', '\0'], "_");
            fs::write(place.root.join(flat), "kept inside").expect("written");
        }
        let token = place.snares.laid[0].token.clone();
        fs::write(place.root.join(format!("{token}m")), "inside").expect("written");
        fs::write(place.root.join("../other"), "a neighbour").expect("written");
        assert_eq!(place.snares.sprung(), Ok(Vec::new()));
    }

    #[test]
    fn without_a_root_the_tmpdir_is_watched_and_a_relative_root_is_a_fault() {
        let scratch = tempfile::tempdir().expect("scratch folder");
        let mut snares = Snares::new(scratch.path());
        assert!(!snares.lay(None).expect("laid").is_empty());
        let fault = snares.lay(Some("store")).expect_err("relative");
        assert_eq!(fault.kind, FaultKind::BadForm);
        // A root that is the TMPDIR itself: the canary lies beside it, not in it.
        let own = scratch.path().join("own");
        fs::create_dir(&own).expect("own");
        let mut snares = Snares::new(&own);
        assert!(!snares.lay(own.to_str()).expect("laid").is_empty());
        assert_eq!(entries(&own), 0);
        drop(snares);
    }
}
