//! The mailbox family: one ordered box per recipient, one lease per box.

pub mod core;
pub mod cross_process;
pub mod delivery;
pub mod history;
pub mod lease;
mod leases_given;
pub mod model;
pub mod moves;
pub mod mutant;
mod names;
pub mod ownership;
pub mod pair;
pub mod store;
pub mod tenancy;
pub mod tombstone;
pub mod wire;
