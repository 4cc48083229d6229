//! Where the durable stores keep their bytes: one folder per storage below a base folder.
//!
//! A location is data that may come from anybody. Attaching follows it only to a folder that the store
//! then recognises by its files; destroying follows it to no place but a direct child of the base, and
//! takes away only files whose names the store knows. Nothing here removes a tree.

use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use storeproof_contract::json::Json;
use storeproof_contract::subject::{Reply, StoreError};

/// What one kind of store calls its folders and the files in them.
pub(crate) struct Layout {
    /// The store's name, in locations.
    pub(crate) store: &'static str,
    /// How the names of its folders begin.
    pub(crate) prefix: &'static str,
    /// Every file that it ever makes in such a folder.
    pub(crate) files: &'static [&'static str],
}

/// A fresh folder of one storage.
#[derive(Debug)]
pub(crate) struct Storage {
    /// Its absolute path, free of links.
    pub(crate) folder: PathBuf,
    /// The same as text.
    pub(crate) root: String,
    /// Its own name: unique below the base, so it also tells one storage's leases from another's.
    pub(crate) name: String,
}

impl Layout {
    /// Makes a folder that did not exist before.
    pub(crate) fn create(&self, base: &Path) -> Reply<Storage> {
        let made = || -> io::Result<PathBuf> {
            fs::create_dir_all(base)?;
            let base = fs::canonicalize(base)?;
            let folder = tempfile::Builder::new().prefix(self.prefix).tempdir_in(&base)?.keep();
            sync_folder(&base)?;
            Ok(folder)
        };
        let folder = made().map_err(|error| broken("cannot make a folder below", base, &error))?;
        let name = folder.file_name().and_then(OsStr::to_str).map(str::to_owned);
        let (Some(name), Some(root)) = (name, folder.to_str().map(str::to_owned)) else {
            let message = format!("{} is not Unicode and cannot be a location", folder.display());
            return Err(StoreError::Broken(message));
        };
        Ok(Storage { folder, root, name })
    }

    /// The location of the storage in `root`.
    pub(crate) fn location(&self, root: &str) -> Json {
        json!({ "store": self.store, "folder": root })
    }

    /// The folder that a location names, which need not be below this process's base: another process
    /// may have opened it.
    pub(crate) fn named(&self, location: &Json) -> Reply<PathBuf> {
        let store = location.get("store").and_then(Json::as_str);
        let folder = location.get("folder").and_then(Json::as_str).map(PathBuf::from);
        match folder {
            Some(folder) if store == Some(self.store) && folder.is_absolute() => Ok(folder),
            Some(_) | None => Err(self.stranger(location, "it has not the form of one")),
        }
    }

    /// Removes the storage at `location`, if it really is one of ours below `base`. One that is gone
    /// already is fine.
    pub(crate) fn destroy(&self, base: &Path, location: &Json) -> Reply<()> {
        let folder = self.named(location)?;
        if !self.is_child(base, &folder) {
            return Err(self.stranger(location, "its folder is not a child of the base folder"));
        }
        match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(broken("cannot look at", &folder, &error)),
            // A link in our place would lead the removal elsewhere.
            Ok(meta) if !meta.is_dir() => {
                return Err(self.stranger(location, "it is not a folder"));
            }
            Ok(_) => {}
        }
        let found = self.found_files(&folder, location)?;
        for file in found {
            fs::remove_file(&file).map_err(|error| broken("cannot remove", &file, &error))?;
        }
        fs::remove_dir(&folder).map_err(|error| broken("cannot remove", &folder, &error))
    }

    /// The storage's files, or a refusal where anything else lies among them.
    fn found_files(&self, folder: &Path, location: &Json) -> Reply<Vec<PathBuf>> {
        let list = || -> io::Result<Vec<(PathBuf, bool)>> {
            fs::read_dir(folder)?
                .map(|entry| {
                    let entry = entry?;
                    let known = entry.file_name().to_str().is_some_and(|n| self.files.contains(&n));
                    Ok((entry.path(), known && !entry.file_type()?.is_dir()))
                })
                .collect()
        };
        let found = list().map_err(|error| broken("cannot list", folder, &error))?;
        if let Some((path, _)) = found.iter().find(|(_, ours)| !ours) {
            let why = format!("{} is none of the store's files", path.display());
            return Err(self.stranger(location, &why));
        }
        Ok(found.into_iter().map(|(path, _)| path).collect())
    }

    fn is_child(&self, base: &Path, folder: &Path) -> bool {
        let Some(name) = folder.file_name().and_then(OsStr::to_str) else { return false };
        let parent = folder.parent().and_then(|parent| fs::canonicalize(parent).ok());
        name.starts_with(self.prefix) && parent.is_some() && parent == fs::canonicalize(base).ok()
    }

    fn stranger(&self, location: &Json, why: &str) -> StoreError {
        let shown = storeproof_contract::json::excerpt(location);
        let message = format!("{shown} is no location of a {} store here: {why}", self.store);
        StoreError::refused("invalid_location", message)
    }
}

/// Makes names that were created or renamed in `folder` survive a loss of power.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// A breakdown at a path.
pub(crate) fn broken(what: &str, path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Broken(format!("{what} {}: {error}", path.display()))
}
