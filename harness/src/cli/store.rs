//! Which bundled store is meant, and where its storages are to be.

use super::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use storeproof_contract::subject::{StoreError, Subject};
use storeproof_reference_stores::{Bundled, Place, STORES, bundled};

/// A bundled store at a place where it can work.
pub(super) struct Chosen {
    store: &'static Bundled,
    place: Place,
}

/// The store `name`, files below `base`, its server at `url` or where its environment variable says.
/// Nothing runs before the store has found what it needs.
pub(super) fn choose(name: &str, url: Option<&str>, base: PathBuf) -> Result<Chosen, Failure> {
    let Some(store) = bundled(name) else {
        let names: Vec<&str> = STORES.iter().map(|store| store.name).collect();
        return Err(Failure::nothing_ran(format!(
            "there is no bundled store {name:?}; there are {}. A store of your own goes behind --, \
             as in `storeproof certify -- python3 my_store.py`",
            names.join(", ")
        )));
    };
    let url = match (store.url_variable, url) {
        (None, Some(_)) => {
            return Err(Failure::nothing_ran(format!("{name} has no server: it takes no --url")));
        }
        (None, None) => None,
        (Some(_), Some(url)) => Some(url.to_owned()),
        (Some(variable), None) => std::env::var(variable).ok(),
    };
    std::fs::create_dir_all(&base)
        .map_err(|error| Failure::nothing_ran(format!("{}: {error}", base.display())))?;
    let place = Place { base, url };
    (store.check)(&place).map_err(|error| match error {
        StoreError::Broken(message) | StoreError::Refused { message, .. } => {
            Failure::nothing_ran(message)
        }
        StoreError::Missing => Failure::nothing_ran(error),
    })?;
    Ok(Chosen { store, place })
}

impl Chosen {
    /// A subject of the store.
    pub(super) fn make(&self) -> Box<dyn Subject> {
        (self.store.make)(&self.place)
    }

    /// How another process of this program finds the same server: by a variable of its environment, since
    /// everybody may read a command line.
    pub(super) fn server(&self) -> Option<(OsString, OsString)> {
        Some((self.store.url_variable?.into(), self.place.url.as_deref()?.into()))
    }
}

/// What stands for `--url` in a line that runs a case again: the variable, since a URL may hold a
/// password and reports are passed on.
pub(super) fn replayed_url(name: &str, url: Option<&str>) -> String {
    match (url, bundled(name).and_then(|store| store.url_variable)) {
        (Some(_), Some(variable)) => format!(" --url \"${variable}\""),
        (Some(_) | None, _) => String::new(),
    }
}
