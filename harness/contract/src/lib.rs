//! The law: every suite and clause a store can be held to, and the smallest stores that break them.
//!
//! A [`clause::Clause`] is a pure function of what a [`backend::Backend`] answers. This crate opens no
//! file, starts no process, reads no clock and prints nothing; whoever runs it lends all of that. The
//! same clause therefore judges a Rust value in the same process and a child in any language.
#![deny(missing_docs)]

pub mod backend;
pub mod call;
pub mod clause;
pub mod host;
pub mod json;
pub mod mailbox;
pub mod page;
pub mod race;
pub mod sim;
pub mod subject;
pub mod suite;
pub mod trial;
pub mod world;

/// The kit (the frozen set of clauses) that this crate judges by.
pub const KIT: &str = "1.0";
/// The adapter protocol that this crate speaks; only the major decides compatibility.
pub const PROTOCOL: &str = "1";
