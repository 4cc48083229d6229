//! Serves a [`Subject`] over the protocol's calls: the one door to every Rust store, whether the
//! bench sits in the same process or at the other end of a pipe.

use crate::backend::Manifest;
use crate::call::{Answer, INTERNAL, INVALID_PARAMS, METHOD_MISSING, RpcError};
use crate::json::Json;
use crate::mailbox::wire as mailbox;
use crate::subject::{Reply, Store, StoreError, Subject};
use crate::suite::Hooks;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::HashMap;

/// A subject with its open stores.
pub struct Host {
    subject: Box<dyn Subject>,
    manifest: Manifest,
    stores: HashMap<String, Box<dyn Store>>,
    minted: u64,
}

/// Params of the calls that name one store.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreParams {
    /// Store id from `store/open` or `store/attach`.
    pub store: String,
}

/// Params of the calls that name a storage.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocationParams {
    /// A location from `store/open`.
    pub location: Json,
}

/// Params of `initialize`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitializeParams {
    /// Protocol version of the bench.
    pub protocol: String,
    /// Kit version of the bench.
    pub kit: String,
    /// Who judges.
    pub harness: Harness,
    /// The run.
    pub run: RunParams,
}

/// Who judges.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Harness {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What the subject is told of the run.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunParams {
    /// The seed that, with the plan, decides the run: 0..2^53-1.
    pub seed: u64,
}

/// Result of `store/open`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenResult {
    /// Id of the open store, for further calls.
    pub store: String,
    /// How to attach to the same storage again, from this or another process.
    #[serde(default)]
    pub location: Option<Json>,
    /// The absolute folder that holds all its bytes.
    #[serde(default)]
    pub root: Option<String>,
}

/// Result of `store/attach`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttachResult {
    /// Id of the open store, for further calls.
    pub store: String,
}

/// An object of which no member is read: `{}` will do.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nothing {}

impl Host {
    /// A host for `subject`, with no store open yet.
    #[must_use]
    pub fn new(subject: Box<dyn Subject>) -> Self {
        let manifest = subject.manifest();
        Self { subject, manifest, stores: HashMap::new(), minted: 0 }
    }

    /// What the subject declared.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The subject behind the host.
    #[must_use]
    pub fn subject(&self) -> &dyn Subject {
        self.subject.as_ref()
    }

    /// Opens one storage to see which hooks its stores have, and removes it again.
    ///
    /// # Errors
    /// What the store answered, where it could not be opened.
    pub fn hooks(&mut self) -> Reply<Hooks> {
        let mut opened = self.subject.open()?;
        let hooks = Hooks {
            mailbox: opened.store.mailbox().is_some(),
            tombstone: opened.store.tombstones().is_some(),
        };
        opened.store.close()?;
        if let Some(location) = &opened.location {
            match self.subject.destroy(location) {
                Ok(()) | Err(StoreError::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(hooks)
    }

    /// Carries out one call of the protocol, `initialize` and `shutdown` included.
    pub fn call(&mut self, method: &str, params: &Json) -> Answer {
        match self.dispatch(method, params) {
            Ok(result) => Answer::Result(result),
            Err(error) => Answer::Error(error),
        }
    }

    fn dispatch(&mut self, method: &str, params: &Json) -> Result<Json, RpcError> {
        match method {
            "initialize" => serde_json::to_value(&self.manifest).map_err(|error| broken(&error)),
            "shutdown" => Ok(json!({})),
            "store/open" => self.open(),
            "store/attach" => {
                let LocationParams { location } = decode(params)?;
                let store = self.subject.attach(&location).map_err(|e| answer(method, e))?;
                Ok(json!({ "store": self.keep(store) }))
            }
            "store/close" => {
                let store = self.store(params)?;
                store.close().map_err(|e| answer(method, e))?;
                Ok(json!({}))
            }
            "store/destroy" => {
                let LocationParams { location } = decode(params)?;
                self.subject.destroy(&location).map_err(|e| answer(method, e))?;
                Ok(json!({}))
            }
            "recipient/tombstone" => {
                let store = self.store(params)?;
                let hook = store.tombstones().ok_or_else(|| missing(method))?;
                mailbox::tombstone(hook, params)
            }
            _ if method.starts_with("mailbox/") => {
                let store = self.store(params)?;
                let hook = store.mailbox().ok_or_else(|| missing(method))?;
                mailbox::dispatch(hook, method, params)
            }
            _ => Err(missing(method)),
        }
    }

    fn open(&mut self) -> Result<Json, RpcError> {
        let opened = self.subject.open().map_err(|e| answer("store/open", e))?;
        let mut result = json!({ "store": self.keep(opened.store) });
        if let Some(location) = opened.location {
            result["location"] = location;
        }
        if let Some(root) = opened.root {
            result["root"] = Json::String(root);
        }
        Ok(result)
    }

    fn keep(&mut self, store: Box<dyn Store>) -> String {
        self.minted += 1;
        let id = format!("s{}", self.minted);
        self.stores.insert(id.clone(), store);
        id
    }

    fn store(&mut self, params: &Json) -> Result<&mut Box<dyn Store>, RpcError> {
        let StoreParams { store } = decode(params)?;
        self.stores
            .get_mut(&store)
            .ok_or_else(|| RpcError::refused("closed", format!("no store {store} is open here")))
    }
}

/// Reads `params` as `T`, or says what is wrong with them.
pub(crate) fn decode<T: DeserializeOwned>(params: &Json) -> Result<T, RpcError> {
    T::deserialize(params).map_err(|error| RpcError {
        code: INVALID_PARAMS,
        message: format!("invalid params: {error}"),
        data: None,
    })
}

/// What a store error is on the wire.
pub(crate) fn answer(method: &str, error: StoreError) -> RpcError {
    match error {
        StoreError::Refused { reason, message } => RpcError::refused(&reason, message),
        StoreError::Missing => missing(method),
        StoreError::Broken(message) => RpcError { code: INTERNAL, message, data: None },
    }
}

pub(crate) fn missing(method: &str) -> RpcError {
    RpcError {
        code: METHOD_MISSING,
        message: format!("this subject does not have the method {method}"),
        data: None,
    }
}

pub(crate) fn broken(error: &dyn std::fmt::Display) -> RpcError {
    RpcError { code: INTERNAL, message: error.to_string(), data: None }
}
