//! A subject that lives in the same process: what a Rust store author implements.

use crate::backend::Manifest;
use crate::json::Json;
use crate::mailbox::store::{MailboxStore, Tombstones};
use std::borrow::Cow;

/// A store kind: it says what it is and opens fresh storages.
pub trait Subject: Send {
    /// Who it is and what it declares.
    fn manifest(&self) -> Manifest;

    /// Opens a fresh, empty storage.
    ///
    /// # Errors
    /// A refusal, or a breakdown of the store.
    fn open(&mut self) -> Reply<Opened>;

    /// Opens a storage again by the location that [`Subject::open`] gave.
    ///
    /// # Errors
    /// A refusal, a breakdown, or [`StoreError::Missing`] for stores without locations.
    fn attach(&mut self, location: &Json) -> Reply<Box<dyn Store>> {
        let _ = location;
        Err(StoreError::Missing)
    }

    /// Removes a storage.
    ///
    /// # Errors
    /// A refusal, a breakdown, or [`StoreError::Missing`] for stores without locations.
    fn destroy(&mut self, location: &Json) -> Reply<()> {
        let _ = location;
        Err(StoreError::Missing)
    }

    /// Names by which a pretended store left its root; for mutants, which have no files.
    fn escaped(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A freshly opened storage.
pub struct Opened {
    /// The open store.
    pub store: Box<dyn Store>,
    /// How to attach to the same storage again; none for stores that live and die with their handle.
    pub location: Option<Json>,
    /// The absolute folder that holds all its bytes, for file stores.
    pub root: Option<String>,
}

/// One open store: the hooks it has, family by family.
pub trait Store: Send {
    /// Its mailbox methods.
    fn mailbox(&mut self) -> Option<&mut dyn MailboxStore> {
        None
    }

    /// Its tombstone hook.
    fn tombstones(&mut self) -> Option<&mut dyn Tombstones> {
        None
    }

    /// Closes the store; closing again is fine. Later operations must be refused with `closed`.
    ///
    /// # Errors
    /// A breakdown of the store.
    fn close(&mut self) -> Reply<()>;
}

/// What a store method answers.
pub type Reply<T> = Result<T, StoreError>;

/// Why a store method has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// A loud "no" with its reason code: an answer.
    Refused {
        /// The reason code, such as `lease_not_held`.
        reason: Cow<'static, str>,
        /// For a person.
        message: String,
    },
    /// The store does not have this method.
    Missing,
    /// Something broke; not an answer.
    Broken(String),
}

impl StoreError {
    /// A refusal with one of the contract's reason codes.
    #[must_use]
    pub fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { reason: Cow::Borrowed(reason), message: message.into() }
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { reason, message } => write!(f, "refused ({reason}): {message}"),
            Self::Missing => write!(f, "the store does not have this method"),
            Self::Broken(message) => write!(f, "the store broke: {message}"),
        }
    }
}

impl std::error::Error for StoreError {}
