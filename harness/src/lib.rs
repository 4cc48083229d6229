//! The bench: it takes a subject, mounts the suites that it declares, judges every clause, and keeps
//! the record. `main` only calls [`cli::main`].

pub mod adapter;
pub mod cli;
pub mod event;
pub mod exit_code;
pub mod expect;
pub mod explore;
pub mod pattern;
pub mod plan;
pub mod prove;
pub mod record;
pub mod run;
pub mod schema;
