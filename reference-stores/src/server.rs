//! What the stores behind a server share: where the server is, how a storage on it is named, and a
//! connection that is made again after it was lost.
//!
//! A location is data that may come from anybody, and it goes into reports: it holds the name of a
//! storage, never how to reach the server. Each process knows that for itself.

use crate::Place;
use crate::arguments::closed;
use serde_json::json;
use std::time::{Duration, Instant};
use storeproof_contract::json::{Json, excerpt};
use storeproof_contract::subject::{Reply, StoreError};

/// How long a connection may take to come up, in milliseconds.
pub(crate) const CONNECT_MS_MAX: u64 = 5_000;
/// How long a server may take over one operation, in milliseconds: longer than any healthy one takes,
/// and below the bench's deadline of 10 s, so that the store says itself what is wrong.
pub(crate) const ANSWER_MS_MAX: u64 = 8_000;
/// A connection that rested for so long, in milliseconds, is asked whether it still stands. A server
/// does not restart in less.
const REST_MS_MAX: u64 = 100;
/// The digits of a storage's name: 122 random bits or more, drawn by the server.
const NAME_DIGITS: usize = 32;

/// How one kind of store names its storages.
pub(crate) struct Naming {
    /// The store's name, in locations.
    pub(crate) store: &'static str,
    /// The member of a location that holds the storage's name.
    pub(crate) member: &'static str,
    /// How the names of its storages begin.
    pub(crate) prefix: &'static str,
    /// The environment variable with the server's URL.
    pub(crate) variable: &'static str,
}

impl Naming {
    /// The name of a fresh storage, from hexadecimal digits that nobody can guess.
    pub(crate) fn name(&self, digits: &str) -> Reply<String> {
        let name = format!("{}{digits}", self.prefix);
        if self.is_name(&name) {
            return Ok(name);
        }
        Err(StoreError::Broken(format!("the server drew no usable name: {digits:?}")))
    }

    /// The location of the storage `name`.
    pub(crate) fn location(&self, name: &str) -> Json {
        json!({ "store": self.store, (self.member): name })
    }

    /// The name in a location. Every name that passes is safe inside a statement or a pattern.
    pub(crate) fn named(&self, location: &Json) -> Reply<String> {
        let store = location.get("store").and_then(Json::as_str);
        let name = location.get(self.member).and_then(Json::as_str);
        match name {
            Some(name) if store == Some(self.store) && self.is_name(name) => Ok(name.to_owned()),
            Some(_) | None => Err(self.stranger(location, "it has not the form of one")),
        }
    }

    fn is_name(&self, name: &str) -> bool {
        let hexadecimal = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        name.strip_prefix(self.prefix)
            .is_some_and(|digits| digits.len() == NAME_DIGITS && digits.bytes().all(hexadecimal))
    }

    /// The refusal of a location that leads to none of our storages.
    pub(crate) fn stranger(&self, location: &Json, why: &str) -> StoreError {
        let message =
            format!("{} is no location of a {} store: {why}", excerpt(location), self.store);
        StoreError::refused("invalid_location", message)
    }

    /// The server's URL, or what to do where there is none.
    pub(crate) fn url<'p>(&self, place: &'p Place) -> Reply<&'p str> {
        place.url.as_deref().filter(|url| !url.is_empty()).ok_or_else(|| {
            StoreError::Broken(format!(
                "{} needs a server: set {} or give --url; eval \"$(scripts/services start)\" starts \
                 one and sets it",
                self.store, self.variable
            ))
        })
    }

    /// The breakdown of a URL that cannot be read. It repeats nothing of it, nor what a parser says of it:
    /// a password may be in any part of what is misspelt.
    pub(crate) fn bad_url(&self, form: &str) -> StoreError {
        let message = format!("{} (or --url) has to have the form {form}", self.variable);
        StoreError::Broken(message)
    }

    /// The breakdown of a server that cannot be reached.
    pub(crate) fn unreachable(&self, server: &str, why: &str) -> StoreError {
        StoreError::Broken(format!(
            "no connection to a {} server at {server}: {why}. Start it, or point {} at one that runs; \
             eval \"$(scripts/services start)\" starts one",
            self.store, self.variable
        ))
    }

    /// The breakdown of a server whose settings break promises of the store.
    pub(crate) fn unfit(&self, server: &str, wrong: &[String]) -> StoreError {
        StoreError::Broken(format!(
            "the {} server at {server} cannot keep what the store promises: {}",
            self.store,
            wrong.join("; ")
        ))
    }
}

/// The breakdown of an operation of which nobody knows whether it was carried out.
pub(crate) fn unknown(what: &str, why: &str) -> StoreError {
    StoreError::Broken(format!(
        "{what}: {why}; whether the operation was carried out is unknown, the next one connects anew"
    ))
}

/// One handle's connection.
pub(crate) struct Link<C> {
    connection: Option<C>,
    used: Instant,
    closed: bool,
}

impl<C> Link<C> {
    pub(crate) fn new(connection: C) -> Self {
        Self { connection: Some(connection), used: Instant::now(), closed: false }
    }

    /// The refusal of everything after the handle was closed.
    pub(crate) fn check_open(&self) -> Reply<()> {
        if self.closed { Err(closed()) } else { Ok(()) }
    }

    /// A connection that stood a moment ago; made anew where there is none. Nothing is ever sent twice:
    /// what is asked of a connection that rested changes nothing.
    pub(crate) fn ready(
        &mut self,
        stands: impl FnOnce(&mut C) -> bool,
        connect: impl FnOnce() -> Reply<C>,
    ) -> Reply<&mut C> {
        self.check_open()?;
        let rested = self.used.elapsed() > Duration::from_millis(REST_MS_MAX);
        let kept = self.connection.take();
        let connection = match kept.and_then(|mut c| (!rested || stands(&mut c)).then_some(c)) {
            Some(connection) => connection,
            None => connect()?,
        };
        self.used = Instant::now();
        Ok(self.connection.insert(connection))
    }

    /// Lets go of a connection that did not answer as it should.
    pub(crate) fn lose(&mut self) {
        self.connection = None;
    }

    /// Closes the handle; closing again is fine.
    pub(crate) fn close(&mut self) -> Option<C> {
        self.closed = true;
        self.connection.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMING: Naming =
        Naming { store: "there", member: "storage", prefix: "p_", variable: "SOME_URL" };

    #[test]
    fn only_names_of_our_own_form_pass() {
        let digits = "0123456789abcdef0123456789abcdef";
        let name = NAMING.name(digits).unwrap();
        assert_eq!(NAMING.named(&NAMING.location(&name)), Ok(name));
        let upper = digits.to_uppercase();
        let injected = format!("{}; x", &digits[..29]);
        for bad in
            ["", &digits[1..], &upper, &injected, &format!("{digits}0"), &format!("{digits}\n")]
        {
            assert!(NAMING.name(bad).is_err(), "{bad:?}");
            let location = json!({ "store": "there", "storage": format!("p_{bad}") });
            assert!(NAMING.named(&location).is_err(), "{bad:?}");
        }
        for location in [Json::Null, json!("p_"), json!({ "storage": format!("p_{digits}") })] {
            assert!(NAMING.named(&location).is_err(), "{location}");
        }
    }

    #[test]
    fn a_lost_connection_is_made_anew_and_a_closed_handle_makes_none() {
        let mut link = Link::new(1);
        assert_eq!(link.ready(|_| panic!("it did not rest"), || Ok(2)), Ok(&mut 1));
        link.lose();
        assert_eq!(link.ready(|_| true, || Ok(2)), Ok(&mut 2));
        link.used -= Duration::from_millis(REST_MS_MAX + 1);
        assert_eq!(link.ready(|_| false, || Ok(3)), Ok(&mut 3));
        assert_eq!(link.close(), Some(3));
        assert_eq!(link.close(), None);
        assert!(link.ready(|_| true, || Ok(4)).is_err());
    }
}
